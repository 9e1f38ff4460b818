//! Rows on paper.

use std::io::{self, Write};

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::arrow::error::ArrowError;
use unicode_width::UnicodeWidthStr;

use super::Format;
use super::cell::{Cell, write_json_text};

/// Prints the answer to one statement.
pub(super) struct Printer<'a> {
    format: Format,
    schema: SchemaRef,
    output: &'a mut (dyn Write + Send),
    rows: u64,
    /// The first rows of a table, until it is known how wide its columns are.
    held: Vec<Vec<String>>,
    held_len: usize,
    widths: Option<Vec<usize>>,
    begun: bool,
}

impl<'a> Printer<'a> {
    pub(super) fn new(format: Format, schema: SchemaRef, output: &'a mut (dyn Write + Send)) -> Self {
        Self { format, schema, output, rows: 0, held: Vec::new(), held_len: 0, widths: None, begun: false }
    }

    pub(super) fn print(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let columns = batch.columns().iter().map(values).collect::<Result<Vec<_>, _>>();
        let columns = columns.map_err(io::Error::other)?;
        self.begin()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| Cell::of(column, row)).collect::<Result<Vec<_>, _>>();
            let cells = cells.map_err(io::Error::other)?;
            match self.format {
                Format::Table => self.table_row(&cells)?,
                Format::Csv => self.csv_row(&cells)?,
                Format::Json => self.json_row(&cells)?,
            }
            self.rows += 1;
        }
        Ok(())
    }

    /// Ends the answer.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.begin()?;
        self.flush()?;
        if self.format == Format::Table {
            if self.schema.fields().is_empty() {
                writeln!(self.output, "OK")?;
            } else {
                let unit = if self.rows == 1 { "row" } else { "rows" };
                writeln!(self.output, "({} {unit})", self.rows)?;
            }
        }
        Ok(())
    }

    /// Prints what is held back.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.format != Format::Table || self.schema.fields().is_empty() || self.widths.is_some() {
            return Ok(());
        }
        let names: Vec<String> = self.schema.fields().iter().map(|field| name(field)).collect();
        let held = std::mem::take(&mut self.held);
        let width = |i: usize| {
            let cells = held.iter().chain([&names]).filter_map(|row| row.get(i));
            cells.map(|cell| cell.width()).max().unwrap_or(0).min(WIDTH_MAX)
        };
        let widths: Vec<usize> = (0..names.len()).map(width).collect();
        self.table_line(&names, &widths)?;
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        writeln!(self.output, "{}", rules.join("+"))?;
        for row in &held {
            self.table_line(row, &widths)?;
        }
        self.widths = Some(widths);
        Ok(())
    }

    /// The line of names, where the format has one at once.
    fn begin(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.begun, true) && self.format == Format::Csv {
            let names = self.schema.fields().iter().map(|field| csv_field(&name(field)));
            let line = names.collect::<Vec<_>>().join(",");
            if !self.schema.fields().is_empty() {
                writeln!(self.output, "{line}")?;
            }
        }
        Ok(())
    }

    fn table_row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        let row: Vec<String> =
            cells
                .iter()
                .map(|cell| {
                    if matches!(cell, Cell::Null) { NULL.to_owned() } else { cell.plain(false).into_owned() }
                })
                .collect();
        if let Some(widths) = self.widths.take() {
            let written = self.table_line(&row, &widths);
            self.widths = Some(widths);
            return written;
        }
        self.held_len += row.iter().map(String::len).sum::<usize>();
        self.held.push(row);
        if self.held.len() >= HELD_ROWS_MAX || self.held_len >= HELD_LEN_MAX {
            self.flush()?;
        }
        Ok(())
    }

    fn table_line(&mut self, row: &[String], widths: &[usize]) -> io::Result<()> {
        let last = row.len().saturating_sub(1);
        let mut line = String::new();
        for (i, ((cell, width), field)) in row.iter().zip(widths).zip(self.schema.fields()).enumerate() {
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            line.push_str(if i == 0 { " " } else { " | " });
            if field.data_type().is_numeric() {
                line.push_str(&padding);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                if i < last {
                    line.push_str(&padding);
                }
            }
        }
        writeln!(self.output, "{line}")
    }

    fn csv_row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        let fields = cells.iter().map(|cell| match cell {
            Cell::Null => String::new(),
            cell => csv_field(&cell.plain(true)),
        });
        writeln!(self.output, "{}", fields.collect::<Vec<_>>().join(","))
    }

    fn json_row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        let mut line = String::from("{");
        for (i, (cell, field)) in cells.iter().zip(self.schema.fields()).enumerate() {
            if i > 0 {
                line.push(',');
            }
            write_json_text(field.name(), &mut line);
            line.push(':');
            cell.write_json(&mut line);
        }
        writeln!(self.output, "{line}}}")
    }
}

fn name(field: &Field) -> String {
    Cell::Text(field.name().into()).plain(false).into_owned()
}

fn csv_field(text: &str) -> String {
    if text.is_empty() || text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Dictionaries become what they stand for.
fn values(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match column.data_type() {
        DataType::Dictionary(_, values) => cast(column, values),
        _ => Ok(ArrayRef::clone(column)),
    }
}

const NULL: &str = "NULL";
/// Longer values are printed in full, and stand out from their column.
const WIDTH_MAX: usize = 100;
const HELD_ROWS_MAX: usize = 1000;
const HELD_LEN_MAX: usize = 1 << 20;
