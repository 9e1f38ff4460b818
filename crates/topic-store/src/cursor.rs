//! Reading and writing the numbers and strings of our own formats (big-endian), without trusting a length.

use bytes::BufMut;
use uuid::Uuid;

/// The bytes break the format; says which part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Takes values off the front of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed("ends too early"))?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    pub(crate) fn uuid(&mut self) -> Result<Uuid, Malformed> {
        self.array().map(Uuid::from_bytes)
    }

    pub(crate) fn string(&mut self) -> Result<&'a str, Malformed> {
        let len = usize::from(self.u16()?);
        let (head, rest) = self.rest.split_at_checked(len).ok_or(Malformed("a string ends too early"))?;
        self.rest = rest;
        std::str::from_utf8(head).map_err(|_| Malformed("a string is not UTF-8"))
    }

    /// Bytes with a 32-bit length before them.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.count(1)?;
        let (head, rest) = self.rest.split_at_checked(len).ok_or(Malformed("bytes end too early"))?;
        self.rest = rest;
        Ok(head)
    }

    /// A count of elements of which each takes at least `element_len` bytes: never more than the rest can hold.
    pub(crate) fn count(&mut self, element_len: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.u32()?).map_err(|_| Malformed("a count is out of range"))?;
        if count > self.rest.len() / element_len.max(1) {
            return Err(Malformed("a count promises more than there is"));
        }
        Ok(count)
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("bytes are left over")) }
    }
}

/// Writes a string with its 16-bit length. Longer ones are cut at a character: our own limits are far below.
pub(crate) fn put_string(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.put_u16(u16::try_from(end).unwrap_or(0));
    out.put_slice(text.as_bytes().get(..end).unwrap_or_default());
}

/// Writes a 32-bit count.
pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    out.put_u32(u32::try_from(count).unwrap_or(u32::MAX));
}
