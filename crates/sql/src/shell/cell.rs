//! Values as text.

use std::borrow::Cow;
use std::fmt::Write;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

/// A value of a column.
pub(super) enum Cell<'a> {
    Null,
    Bool(bool),
    /// Digits, or `NaN` and `inf`.
    Number(String),
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
    /// A list, struct or map as JSON.
    Nested(String),
}

impl<'a> Cell<'a> {
    pub(super) fn of(array: &'a dyn Array, row: usize) -> Result<Self, ArrowError> {
        if array.is_null(row) {
            return Ok(Self::Null);
        }
        Ok(match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Bool(array.as_boolean().value(row)),
            DataType::Utf8 => Self::Text(array.as_string::<i32>().value(row).into()),
            DataType::LargeUtf8 => Self::Text(array.as_string::<i64>().value(row).into()),
            DataType::Utf8View => Self::Text(array.as_string_view().value(row).into()),
            DataType::Binary => Self::Bytes(array.as_binary::<i32>().value(row)),
            DataType::LargeBinary => Self::Bytes(array.as_binary::<i64>().value(row)),
            DataType::BinaryView => Self::Bytes(array.as_binary_view().value(row)),
            DataType::FixedSizeBinary(_) => Self::Bytes(array.as_fixed_size_binary().value(row)),
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::Struct(_)
            | DataType::Map(..) => {
                let mut text = String::new();
                write_nested(array, row, &mut text)?;
                Self::Nested(text)
            }
            other => {
                let text =
                    ArrayFormatter::try_new(array, &FormatOptions::new())?.value(row).try_to_string()?;
                if other.is_numeric() { Self::Number(text) } else { Self::Text(text.into()) }
            }
        })
    }

    /// As a cell of a table; `lines` says whether tabs and line ends stay what they are.
    pub(super) fn plain(&self, lines: bool) -> Cow<'_, str> {
        let text = match self {
            Self::Null => return Cow::Borrowed(""),
            Self::Bool(true) => return Cow::Borrowed("true"),
            Self::Bool(false) => return Cow::Borrowed("false"),
            Self::Number(text) | Self::Nested(text) => return Cow::Borrowed(text),
            Self::Text(text) => Cow::Borrowed(text.as_ref()),
            Self::Bytes(bytes) => bytes_as_text(bytes),
        };
        let stays = |c: char| !is_control(c) || (lines && matches!(c, '\t' | '\n' | '\r'));
        if text.chars().all(stays) {
            return text;
        }
        let mut escaped = String::with_capacity(text.len());
        for c in text.chars() {
            if stays(c) { escaped.push(c) } else { push_escaped(c, &mut escaped) }
        }
        Cow::Owned(escaped)
    }

    /// As JSON.
    pub(super) fn write_json(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(text) if text.ends_with(|c: char| c.is_ascii_digit()) => out.push_str(text),
            Self::Number(text) => write_json_text(text, out), // NaN and infinity are no numbers to JSON
            Self::Text(text) => write_json_text(text, out),
            Self::Bytes(bytes) => write_json_text(&bytes_as_text(bytes), out),
            Self::Nested(text) => out.push_str(text),
        }
    }
}

/// A text with its quotes, fit for any terminal.
pub(super) fn write_json_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_control(c) => push_escaped(c, out),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A message that commands no terminal.
pub(super) fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) && c != '\n' { push_escaped(c, &mut out) } else { out.push(c) }
    }
    out
}

fn write_nested(array: &dyn Array, row: usize, out: &mut String) -> Result<(), ArrowError> {
    if array.is_null(row) {
        out.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        DataType::List(_) => write_list(&*array.as_list::<i32>().value(row), out),
        DataType::LargeList(_) => write_list(&*array.as_list::<i64>().value(row), out),
        DataType::FixedSizeList(..) => write_list(&*array.as_fixed_size_list().value(row), out),
        DataType::Struct(_) => {
            let columns = array.as_struct();
            write_between('{', '}', columns.num_columns(), out, |i, out| {
                if let (Some(field), Some(column)) = (columns.fields().get(i), columns.columns().get(i)) {
                    write_json_text(field.name(), out);
                    out.push(':');
                    write_nested(column, row, out)?;
                }
                Ok(())
            })
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            write_between('{', '}', entries.len(), out, |i, out| {
                write_json_text(&Cell::of(keys, i)?.plain(true), out);
                out.push(':');
                write_nested(values, i, out)
            })
        }
        _ => {
            Cell::of(array, row)?.write_json(out);
            Ok(())
        }
    }
}

fn write_list(items: &dyn Array, out: &mut String) -> Result<(), ArrowError> {
    write_between('[', ']', items.len(), out, |i, out| write_nested(items, i, out))
}

fn write_between(
    open: char,
    close: char,
    len: usize,
    out: &mut String,
    mut item: impl FnMut(usize, &mut String) -> Result<(), ArrowError>,
) -> Result<(), ArrowError> {
    out.push(open);
    for i in 0..len {
        if i > 0 {
            out.push(',');
        }
        item(i, out)?;
    }
    out.push(close);
    Ok(())
}

/// The text that they are, or their hexadecimal digits.
fn bytes_as_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(|c| is_control(c) && !matches!(c, '\t' | '\n' | '\r')) => text.into(),
        _ => {
            let mut hex = String::with_capacity(2 + 2 * bytes.len());
            hex.push_str("\\x");
            for byte in bytes {
                let _ = write!(hex, "{byte:02x}"); // a String takes everything
            }
            hex.into()
        }
    }
}

/// Characters that command a terminal, and those that change the direction of the text around them.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

fn push_escaped(c: char, out: &mut String) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c => {
            let _ = write!(out, "\\u{:04x}", u32::from(c)); // a String takes everything
        }
    }
}
