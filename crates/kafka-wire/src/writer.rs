//! Writes a message in two passes: the first counts and finds every error, the second fills one allocation.

use alloc::vec::{self, Vec};
use bytes::Bytes;
use core::{iter, option, slice};

use crate::error::{EncodeError, EncodeErrorKind};
use crate::primitive::varint;

/// Where a message is written to. Callers get one from [`Encoded::build`]; messages write themselves into it.
#[derive(Debug)]
pub struct Writer {
    pass: Pass,
    /// Bytes of the message so far, payloads by reference included.
    len: usize,
    /// Bytes of the message so far that are copied.
    copied: usize,
    by_reference: bool,
    buffer: Vec<u8>,
    payloads: Vec<(usize, Payload)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Count,
    Fill,
}

#[derive(Debug)]
enum Payload {
    Shared(Bytes),
    Deferred { len: usize, token: u64 },
}

/// A message ready to send: its parts in order.
#[derive(Debug, Clone, Default)]
pub struct Encoded {
    parts: Parts,
    len: usize,
}

/// Most messages are one part, which needs no list.
#[derive(Debug, Clone)]
enum Parts {
    One(Part),
    Many(Vec<Part>),
}

impl Default for Parts {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

/// A piece of an encoded message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a sender has to handle every kind of part")]
pub enum Part {
    /// These bytes.
    Bytes(Bytes),
    /// `len` bytes that the caller finds by the `token` of [`crate::Records::Deferred`].
    Deferred {
        /// How many bytes have to be sent in its place.
        len: usize,
        /// What the caller gave.
        token: u64,
    },
}

impl Encoded {
    /// A shared payload of at least so many bytes becomes a part of its own instead of being copied.
    pub const REFERENCE_LEN_MIN: usize = 512;

    /// Runs `write` twice: to count, then to fill.
    ///
    /// # Errors
    /// What `write` returns, or if the whole is longer than an int32 can say.
    pub fn build(mut write: impl FnMut(&mut Writer) -> Result<(), EncodeError>) -> Result<Self, EncodeError> {
        let writer = run(true, &mut write)?;
        Ok(writer.into_encoded())
    }

    /// As [`Encoded::build`], with every payload copied into one contiguous buffer.
    ///
    /// # Errors
    /// As [`Encoded::build`], or if records are deferred.
    pub fn build_contiguous(
        mut write: impl FnMut(&mut Writer) -> Result<(), EncodeError>,
    ) -> Result<Bytes, EncodeError> {
        let writer = run(false, &mut write)?;
        Ok(Bytes::from(writer.buffer))
    }

    /// The parts in the order in which they have to be sent.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        match &self.parts {
            Parts::One(part) => slice::from_ref(part),
            Parts::Many(parts) => parts,
        }
    }

    /// The parts, to own.
    #[must_use]
    pub fn into_parts(self) -> Vec<Part> {
        self.into_iter().collect()
    }

    /// The length of all parts together.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl PartialEq for Encoded {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Encoded {}

impl IntoIterator for Encoded {
    type Item = Part;
    type IntoIter = iter::Chain<option::IntoIter<Part>, vec::IntoIter<Part>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self.parts {
            Parts::One(part) => (Some(part), Vec::new()),
            Parts::Many(parts) => (None, parts),
        };
        one.into_iter().chain(many)
    }
}

impl Writer {
    /// How many bytes were written so far, payloads by reference included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes these bytes as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.len = self.len.saturating_add(bytes.len());
        self.copied = self.copied.saturating_add(bytes.len());
        if self.pass == Pass::Fill {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Writes 1 or 0.
    pub fn bool(&mut self, value: bool) {
        self.bytes(&[u8::from(value)]);
    }

    /// Writes an int8.
    pub fn i8(&mut self, value: i8) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes an int16.
    pub fn i16(&mut self, value: i16) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes an int32.
    pub fn i32(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes an int64.
    pub fn i64(&mut self, value: i64) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes a uint16.
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes a uint32.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes a float64.
    pub fn f64(&mut self, value: f64) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes bytes that are shared: by reference if that is worth it.
    pub fn shared(&mut self, bytes: &Bytes) {
        if !self.by_reference || bytes.len() < Encoded::REFERENCE_LEN_MIN {
            return self.bytes(bytes);
        }
        self.len = self.len.saturating_add(bytes.len());
        if self.pass == Pass::Fill {
            self.payloads.push((self.buffer.len(), Payload::Shared(bytes.clone())));
        }
    }

    /// Leaves a gap of `len` bytes, to be filled by whoever sends the message.
    ///
    /// # Errors
    /// If the message has to be contiguous.
    pub fn deferred(&mut self, len: usize, token: u64) -> Result<(), EncodeError> {
        if !self.by_reference {
            return Err(EncodeError::new(EncodeErrorKind::DeferredRecords));
        }
        self.len = self.len.saturating_add(len);
        if self.pass == Pass::Fill && len > 0 {
            self.payloads.push((self.buffer.len(), Payload::Deferred { len, token }));
        }
        Ok(())
    }

    /// How many bytes `write` would write.
    pub(crate) fn measure(
        &self,
        write: &dyn Fn(&mut Writer) -> Result<(), EncodeError>,
    ) -> Result<usize, EncodeError> {
        let mut counter = Writer::new(Pass::Count, self.by_reference);
        write(&mut counter)?;
        Ok(counter.len)
    }

    /// Writes the length of a compact value: one more than `len`, 0 being null.
    pub(crate) fn compact_len(&mut self, len: Option<usize>) -> Result<(), EncodeError> {
        let encoded = match len {
            None => 0,
            Some(len) => {
                let len = i32::try_from(len).map_err(|_| EncodeError::new(EncodeErrorKind::TooLong))?;
                len.unsigned_abs() + 1
            }
        };
        varint::write_u32(self, encoded);
        Ok(())
    }

    /// Writes an int32 length, -1 being null.
    pub(crate) fn classic_len(&mut self, len: Option<usize>) -> Result<(), EncodeError> {
        let encoded = match len {
            None => -1,
            Some(len) => i32::try_from(len).map_err(|_| EncodeError::new(EncodeErrorKind::TooLong))?,
        };
        self.i32(encoded);
        Ok(())
    }

    fn new(pass: Pass, by_reference: bool) -> Self {
        Self { pass, len: 0, copied: 0, by_reference, buffer: Vec::new(), payloads: Vec::new() }
    }

    fn into_encoded(self) -> Encoded {
        let buffer = Bytes::from(self.buffer);
        if self.payloads.is_empty() && !buffer.is_empty() {
            return Encoded { parts: Parts::One(Part::Bytes(buffer)), len: self.len };
        }
        let mut parts = Vec::with_capacity(2 * self.payloads.len() + 1);
        let mut start = 0;
        for (cut, payload) in self.payloads {
            if cut > start {
                parts.push(Part::Bytes(buffer.slice(start..cut)));
            }
            parts.push(match payload {
                Payload::Shared(bytes) => Part::Bytes(bytes),
                Payload::Deferred { len, token } => Part::Deferred { len, token },
            });
            start = cut;
        }
        if start < buffer.len() {
            parts.push(Part::Bytes(buffer.slice(start..)));
        }
        Encoded { parts: Parts::Many(parts), len: self.len }
    }
}

/// What `write` writes, with its length in four bytes before it.
pub(crate) fn frame(
    write: &mut dyn FnMut(&mut Writer) -> Result<(), EncodeError>,
) -> Result<Encoded, EncodeError> {
    let mut frame = |len: i32, writer: &mut Writer| {
        writer.i32(len);
        write(writer)
    };
    let counted = count(true, &mut |writer| frame(0, writer))?;
    let prefix_len = size_of::<i32>();
    let len =
        i32::try_from(counted.len - prefix_len).map_err(|_| EncodeError::new(EncodeErrorKind::TooLong))?;
    Ok(fill(&counted, &mut |writer| frame(len, writer))?.into_encoded())
}

/// The length that `write` needs, every error found.
pub(crate) fn count(
    by_reference: bool,
    write: &mut dyn FnMut(&mut Writer) -> Result<(), EncodeError>,
) -> Result<Writer, EncodeError> {
    let mut counter = Writer::new(Pass::Count, by_reference);
    write(&mut counter)?;
    if i32::try_from(counter.len).is_err() {
        return Err(EncodeError::new(EncodeErrorKind::TooLong));
    }
    Ok(counter)
}

fn run(
    by_reference: bool,
    write: &mut dyn FnMut(&mut Writer) -> Result<(), EncodeError>,
) -> Result<Writer, EncodeError> {
    let counted = count(by_reference, write)?;
    fill(&counted, write)
}

/// What `write` writes, in memory of the length that was counted.
fn fill(
    counted: &Writer,
    write: &mut dyn FnMut(&mut Writer) -> Result<(), EncodeError>,
) -> Result<Writer, EncodeError> {
    let mut filler = Writer::new(Pass::Fill, counted.by_reference);
    filler.buffer.reserve_exact(counted.copied);
    write(&mut filler)?;
    debug_assert_eq!((filler.len, filler.buffer.len()), (counted.len, counted.copied), "both passes agree");
    Ok(filler)
}
