//! A hand parser of the few protocol fields that the benchmark needs.
//!
//! Only versions before the flexible encoding are spoken, so that this stays a page of code that has
//! nothing in common with the codec of the product.
//!
//! ```text
//! FRAME          => size:INT32 REQUEST_HEADER body
//! REQUEST_HEADER => api_key:INT16 api_version:INT16 correlation_id:INT32 client_id:NULLABLE_STRING
//! ARRAY          => count:INT32 element*count      (count -1: null)
//! STRING         => length:INT16 byte*length       (length -1: null)
//! ```

use std::io;

/// The request kinds that the benchmark speaks.
pub(crate) mod key {
    pub(crate) const PRODUCE: i16 = 0;
    pub(crate) const FETCH: i16 = 1;
    pub(crate) const LIST_OFFSETS: i16 = 2;
    pub(crate) const METADATA: i16 = 3;
    pub(crate) const FIND_COORDINATOR: i16 = 10;
    pub(crate) const API_VERSIONS: i16 = 18;
    pub(crate) const CREATE_TOPICS: i16 = 19;
    pub(crate) const INIT_PRODUCER_ID: i16 = 22;
}

/// A position in a message that is read from front to back.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, len: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn int8(&mut self) -> io::Result<i8> {
        self.array().map(i8::from_be_bytes)
    }

    pub(crate) fn int16(&mut self) -> io::Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn int32(&mut self) -> io::Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn int64(&mut self) -> io::Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// A string that may be null; null reads as empty, which no caller needs to tell apart.
    pub(crate) fn string(&mut self) -> io::Result<&'a str> {
        let len = usize::try_from(self.int16()?).unwrap_or(0);
        std::str::from_utf8(self.take(len)?).map_err(|_| invalid("a string is not UTF-8"))
    }

    /// The count of an array that may be null; null reads as 0.
    ///
    /// Every element takes a byte at least, so a count above the bytes left is refused.
    pub(crate) fn count(&mut self) -> io::Result<usize> {
        let count = usize::try_from(self.int32()?).unwrap_or(0);
        if count > self.rest.len() { Err(truncated()) } else { Ok(count) }
    }
}

/// The fields in front of every request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestHeader {
    pub(crate) key: i16,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
}

impl RequestHeader {
    /// The fixed part, in front of the client's id.
    pub(crate) const FIXED_LEN: usize = 8;

    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> io::Result<Self> {
        Ok(Self { key: cursor.int16()?, version: cursor.int16()?, correlation_id: cursor.int32()? })
    }
}

/// Appending of fields to a message that is being built.
pub(crate) trait Put {
    fn bytes(&mut self, bytes: &[u8]);

    fn int8(&mut self, value: i8) {
        self.bytes(&value.to_be_bytes());
    }

    fn int16(&mut self, value: i16) {
        self.bytes(&value.to_be_bytes());
    }

    fn int32(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    fn int64(&mut self, value: i64) {
        self.bytes(&value.to_be_bytes());
    }

    /// A length or count; what is built here is far below 2 GiB.
    fn count(&mut self, len: usize) {
        self.int32(i32::try_from(len).unwrap_or(i32::MAX));
    }

    /// A string of at most 32767 bytes, which all names here are.
    fn string(&mut self, text: &str) {
        self.int16(i16::try_from(text.len()).unwrap_or(i16::MAX));
        self.bytes(text.as_bytes());
    }

    fn null_string(&mut self) {
        self.int16(-1);
    }
}

impl Put for Vec<u8> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Prefixes a finished message with its size.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(message.len() + 4);
    frame.count(message.len());
    frame.bytes(message);
    frame
}

pub(crate) fn truncated() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message ends inside a field")
}

pub(crate) fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_read_back() {
        let mut message = Vec::new();
        message.int16(key::METADATA);
        message.int16(4);
        message.int32(77);
        message.string("client");
        message.null_string();
        message.count(3);
        message.int8(-1);
        message.int64(1 << 40);
        let mut cursor = Cursor::new(&message);
        let header = RequestHeader::parse(&mut cursor).unwrap();
        assert_eq!(header, RequestHeader { key: key::METADATA, version: 4, correlation_id: 77 });
        assert_eq!(cursor.string().unwrap(), "client");
        assert_eq!(cursor.string().unwrap(), "");
        assert_eq!(cursor.count().unwrap(), 3);
        assert_eq!(cursor.int8().unwrap(), -1);
        assert_eq!(cursor.int64().unwrap(), 1 << 40);
        assert!(cursor.rest().is_empty());
    }

    #[test]
    fn a_message_cut_anywhere_is_an_error_and_no_panic() {
        let mut message = Vec::new();
        message.int16(1);
        message.int16(2);
        message.int32(3);
        message.string("a name");
        for len in 0..message.len() {
            let mut cursor = Cursor::new(&message[..len]);
            let read = RequestHeader::parse(&mut cursor).and_then(|_| cursor.string().map(str::len));
            assert!(read.is_err(), "cut at {len}");
        }
    }

    #[test]
    fn a_count_beyond_the_message_is_refused() {
        let mut message = Vec::new();
        message.int32(i32::MAX);
        message.bytes(b"abc");
        assert!(Cursor::new(&message).count().is_err());
        assert_eq!(Cursor::new(&(-1_i32).to_be_bytes()).count().unwrap(), 0);
    }
}
