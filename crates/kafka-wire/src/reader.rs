//! A cursor over bytes that came from a peer: hands out borrowed values and never reads past the end.

use bytes::Bytes;

use crate::error::{DecodeError, Reason};
use crate::primitive::{Blob, Records, Uuid};

/// A cursor over the bytes of a frame, a message or a part of one.
///
/// Everything it returns borrows from the input. If the input is a [`Bytes`] (see [`Reader::shared`]), byte
/// strings and records are returned as slices that share it, so that they can outlive the borrow.
/// It is cheap to copy: a copy is a bookmark.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Where the input ends, counted from the start of the frame: the position is `end - rest.len()`.
    end: usize,
    frame: Option<&'a Bytes>,
}

impl<'a> Reader<'a> {
    /// Reads borrowed bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, end: bytes.len(), frame: None }
    }

    /// Reads bytes that are reference counted: byte strings and records will be slices of `frame`.
    #[must_use]
    pub fn shared(frame: &'a Bytes) -> Self {
        Self { rest: frame, end: frame.len(), frame: Some(frame) }
    }

    /// How many bytes are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// How many bytes of the input lie before the cursor.
    #[must_use]
    pub fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    /// What is left, without moving on.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Moves on by `len` bytes and returns them.
    ///
    /// # Errors
    /// If fewer bytes are left.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.short(len));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Moves on by `len` bytes and returns a reader of only these, which counts positions on.
    ///
    /// # Errors
    /// If fewer bytes are left.
    pub fn take_reader(&mut self, len: usize) -> Result<Reader<'a>, DecodeError> {
        let end = self.position().saturating_add(len);
        Ok(Reader { rest: self.take(len)?, end, frame: self.frame })
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// If bytes are left.
    pub fn finish(&self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.error(Reason::Trailing { left: self.rest.len() }))
        }
    }

    /// Reads an int8 and takes every value but 0 for true.
    ///
    /// # Errors
    /// If no byte is left. The same holds for the fixed-length values below.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.i8()? != 0)
    }

    /// Reads an int8.
    ///
    /// # Errors
    /// If too few bytes are left.
    pub fn i8(&mut self) -> Result<i8, DecodeError> {
        Ok(i8::from_be_bytes(*self.chunk()?))
    }

    /// Reads an int16.
    ///
    /// # Errors
    /// If too few bytes are left.
    pub fn i16(&mut self) -> Result<i16, DecodeError> {
        Ok(i16::from_be_bytes(*self.chunk()?))
    }

    /// Reads an int32.
    ///
    /// # Errors
    /// If too few bytes are left.
    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        Ok(i32::from_be_bytes(*self.chunk()?))
    }

    /// Reads an int64.
    ///
    /// # Errors
    /// If too few bytes are left.
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        Ok(i64::from_be_bytes(*self.chunk()?))
    }

    /// Reads a uint16.
    ///
    /// # Errors
    /// If too few bytes are left.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(*self.chunk()?))
    }

    /// Reads a uint32.
    ///
    /// # Errors
    /// If too few bytes are left.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(*self.chunk()?))
    }

    /// Reads a float64.
    ///
    /// # Errors
    /// If too few bytes are left.
    pub fn f64(&mut self) -> Result<f64, DecodeError> {
        Ok(f64::from_be_bytes(*self.chunk()?))
    }

    /// Reads 16 bytes of a UUID.
    ///
    /// # Errors
    /// If too few bytes are left.
    pub fn uuid(&mut self) -> Result<Uuid, DecodeError> {
        Ok(Uuid::from_bytes(*self.chunk()?))
    }

    pub(crate) fn error(&self, reason: Reason) -> DecodeError {
        DecodeError::new(reason, self.position())
    }

    /// The last `len` bytes read, shared if the input is.
    pub(crate) fn blob(&mut self, len: usize) -> Result<Blob<'a>, DecodeError> {
        let start = self.position();
        let borrowed = self.take(len)?;
        Ok(match self.frame {
            Some(frame) => Blob::Shared(frame.slice(start..self.position())),
            None => Blob::Borrowed(borrowed),
        })
    }

    pub(crate) fn records(&mut self, len: usize) -> Result<Records<'a>, DecodeError> {
        Ok(match self.blob(len)? {
            Blob::Borrowed(bytes) => Records::Borrowed(bytes),
            Blob::Shared(bytes) => Records::Shared(bytes),
        })
    }

    /// The same input without sharing: for walks whose values are thrown away.
    pub(crate) fn borrowing(self) -> Self {
        Self { frame: None, ..self }
    }

    /// What lies between this bookmark and a later one.
    pub(crate) fn until(self, later: &Reader<'a>) -> Self {
        let len = self.rest.len().saturating_sub(later.rest.len());
        let rest = self.rest.get(..len).unwrap_or(self.rest);
        Self { rest, end: self.position() + rest.len(), frame: self.frame }
    }

    pub(crate) fn set_position_of(&mut self, later: &Reader<'a>) {
        self.rest = later.rest;
    }

    fn chunk<const N: usize>(&mut self) -> Result<&'a [u8; N], DecodeError> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.short(N));
        };
        self.rest = rest;
        Ok(taken)
    }

    #[cold]
    fn short(&self, needed: usize) -> DecodeError {
        self.error(Reason::Short { needed, left: self.rest.len() })
    }
}
