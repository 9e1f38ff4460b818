//! Writes what the server says into a buffer. No I/O.

use bytes::{BufMut, BytesMut};

use super::frame::Format;
use super::refusal::{Refusal, state};

/// Messages that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    pub(crate) buffer: BytesMut,
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The number of its type.
    pub(crate) oid: u32,
    /// The length of its values, -1 if they differ.
    pub(crate) len: i16,
}

/// Where a session stands, as `ReadyForQuery` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    None,
    Open,
    Failed,
}

impl Replies {
    /// Refuses encryption; the client may go on without.
    pub(crate) fn no_encryption(&mut self) {
        self.buffer.put_u8(b'N');
    }

    pub(crate) fn authentication_ok(&mut self) {
        self.short(b'R', |body| body.put_i32(0));
    }

    /// Says that we know no minor version beyond 3.0, nor the options of this name.
    pub(crate) fn negotiate_version(&mut self, unknown: &[String]) {
        self.short(b'v', |body| {
            body.put_i32(0);
            body.put_i32(i32::try_from(unknown.len()).unwrap_or(i32::MAX));
            for name in unknown {
                put_text(body, name);
            }
        });
    }

    pub(crate) fn parameter(&mut self, name: &str, value: &str) {
        self.short(b'S', |body| {
            put_text(body, name);
            put_text(body, value);
        });
    }

    pub(crate) fn key_data(&mut self, process: i32, secret: [u8; 4]) {
        self.short(b'K', |body| {
            body.put_i32(process);
            body.put_slice(&secret);
        });
    }

    pub(crate) fn ready(&mut self, transaction: Transaction) {
        let status = match transaction {
            Transaction::None => b'I',
            Transaction::Open => b'T',
            Transaction::Failed => b'E',
        };
        self.short(b'Z', |body| body.put_u8(status));
    }

    pub(crate) fn error(&mut self, refusal: &Refusal) {
        self.notice_or_error(b'E', refusal.severity(), refusal.state, &refusal.message);
    }

    pub(crate) fn warning(&mut self, state: &str, message: &str) {
        self.notice_or_error(b'N', "WARNING", state, message);
    }

    fn notice_or_error(&mut self, kind: u8, severity: &str, state: &str, message: &str) {
        self.short(kind, |body| {
            for (field, text) in [(b'S', severity), (b'V', severity), (b'C', state), (b'M', message)] {
                body.put_u8(field);
                put_text(body, text);
            }
            body.put_u8(0);
        });
    }

    pub(crate) fn complete(&mut self, tag: &str) {
        self.short(b'C', |body| put_text(body, tag));
    }

    pub(crate) fn empty_query(&mut self) {
        self.short(b'I', |_| {});
    }

    pub(crate) fn parse_complete(&mut self) {
        self.short(b'1', |_| {});
    }

    pub(crate) fn bind_complete(&mut self) {
        self.short(b'2', |_| {});
    }

    pub(crate) fn close_complete(&mut self) {
        self.short(b'3', |_| {});
    }

    pub(crate) fn portal_suspended(&mut self) {
        self.short(b's', |_| {});
    }

    pub(crate) fn no_data(&mut self) {
        self.short(b'n', |_| {});
    }

    /// The types of a statement's parameters.
    pub(crate) fn parameters(&mut self, types: &[u32]) {
        self.short(b't', |body| {
            body.put_u16(u16::try_from(types.len()).unwrap_or(u16::MAX));
            for oid in types {
                body.put_u32(*oid);
            }
        });
    }

    /// The columns of an answer.
    ///
    /// # Errors
    /// There are more of them than the protocol can count.
    pub(crate) fn columns(&mut self, columns: &[Column], formats: &[Format]) -> Result<(), Refusal> {
        let count = column_count(columns.len())?;
        self.short(b'T', |body| {
            body.put_i16(count);
            for (index, column) in columns.iter().enumerate() {
                put_text(body, &column.name);
                body.put_i32(0);
                body.put_i16(0);
                body.put_u32(column.oid);
                body.put_i16(column.len);
                body.put_i32(-1);
                body.put_i16(Format::of(formats, index).code());
            }
        });
        Ok(())
    }

    /// A row; `value` writes the value of a column and returns whether there is one (it is null otherwise).
    ///
    /// # Errors
    /// Those of `value`, and a row that is too long. Then the row is not in the buffer.
    pub(crate) fn row(
        &mut self,
        columns: usize,
        mut value: impl FnMut(usize, &mut BytesMut) -> Result<bool, Refusal>,
    ) -> Result<(), Refusal> {
        let count = column_count(columns)?;
        let start = self.buffer.len();
        let written = self.frame(b'D', |body| {
            body.put_i16(count);
            for index in 0..columns {
                let at = body.len();
                body.put_i32(0);
                let len = if value(index, body)? { length_since(body, at.saturating_add(4))? } else { -1 };
                patch(body, at, len);
            }
            Ok(())
        });
        if written.is_err() {
            self.buffer.truncate(start);
        }
        written
    }

    /// A message whose body cannot come near to the protocol's limit.
    fn short(&mut self, kind: u8, body: impl FnOnce(&mut BytesMut)) {
        let start = self.buffer.len();
        let written = self.frame(kind, |buffer| {
            body(buffer);
            Ok(())
        });
        if written.is_err() {
            self.buffer.truncate(start);
        }
    }

    fn frame(
        &mut self,
        kind: u8,
        body: impl FnOnce(&mut BytesMut) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.buffer.put_u8(kind);
        let at = self.buffer.len();
        self.buffer.put_i32(0);
        body(&mut self.buffer)?;
        let len = length_since(&self.buffer, at)?;
        patch(&mut self.buffer, at, len);
        Ok(())
    }
}

/// A text with the zero that ends it; a zero inside would end it too early.
fn put_text(body: &mut BytesMut, text: &str) {
    for part in text.split('\0') {
        body.put_slice(part.as_bytes());
    }
    body.put_u8(0);
}

fn column_count(columns: usize) -> Result<i16, Refusal> {
    i16::try_from(columns).map_err(|_| Refusal::error(state::LIMIT_EXCEEDED, "more than 32767 columns"))
}

fn length_since(buffer: &BytesMut, at: usize) -> Result<i32, Refusal> {
    let len = i32::try_from(buffer.len().saturating_sub(at));
    len.map_err(|_| Refusal::error(state::LIMIT_EXCEEDED, "a row is longer than two gigabytes"))
}

fn patch(buffer: &mut BytesMut, at: usize, value: i32) {
    if let Some(place) = buffer.get_mut(at..at.saturating_add(4)) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}
