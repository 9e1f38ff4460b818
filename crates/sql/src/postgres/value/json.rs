//! Values as JSON: what has parts with names, such as the headers of a record.

use std::fmt::Write as _;

use bytes::{BufMut, BytesMut};
use datafusion::arrow::array::Array;

use super::super::refusal::Refusal;
use super::text::{self, ByteaOutput};
use super::{Value, value_at};

/// Bytes are written as text where they are UTF-8, else as `\x` and hexadecimal digits.
pub(super) fn write(value: &Value<'_>, out: &mut BytesMut) -> Result<(), Refusal> {
    match value {
        Value::Null => out.put_slice(b"null"),
        Value::Bool(value) => out.put_slice(if *value { b"true" } else { b"false" }),
        Value::Integer(_) | Value::Decimal(_) => text::write(value, ByteaOutput::Hex, out)?,
        Value::Float4(number) if number.is_finite() => text::write(value, ByteaOutput::Hex, out)?,
        Value::Float8(number) if number.is_finite() => text::write(value, ByteaOutput::Hex, out)?,
        Value::Text(text) => string(text, out),
        Value::Bytes(bytes) => {
            if let Ok(text) = std::str::from_utf8(bytes) {
                string(text, out);
            } else {
                out.put_slice(b"\"\\\\x");
                text::hex(bytes, out);
                out.put_u8(b'"');
            }
        }
        Value::List(elements) => {
            out.put_u8(b'[');
            for row in 0..elements.len() {
                if row > 0 {
                    out.put_u8(b',');
                }
                write(&value_at(elements.as_ref(), row)?, out)?;
            }
            out.put_u8(b']');
        }
        Value::Struct(array, row) => {
            out.put_u8(b'{');
            for (index, (name, column)) in array.column_names().into_iter().zip(array.columns()).enumerate() {
                if index > 0 {
                    out.put_u8(b',');
                }
                string(name, out);
                out.put_u8(b':');
                write(&value_at(column.as_ref(), *row)?, out)?;
            }
            out.put_u8(b'}');
        }
        other => {
            let mut spelled = BytesMut::new();
            text::write(other, ByteaOutput::Hex, &mut spelled)?;
            string(&String::from_utf8_lossy(&spelled), out);
        }
    }
    Ok(())
}

fn string(text: &str, out: &mut BytesMut) {
    out.put_u8(b'"');
    for character in text.chars() {
        match character {
            '"' => out.put_slice(b"\\\""),
            '\\' => out.put_slice(b"\\\\"),
            '\n' => out.put_slice(b"\\n"),
            '\r' => out.put_slice(b"\\r"),
            '\t' => out.put_slice(b"\\t"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.put_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.put_u8(b'"');
}
