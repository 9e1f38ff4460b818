//! Byte strings and record batches: borrowed from the wire, shared, or (records only) still to be found.

use alloc::vec::Vec;
use bytes::Bytes;
use core::{fmt, ops};

use super::{Classic, Form, Value, check_null, null_not_allowed, read_len};
use crate::error::{DecodeError, EncodeError};
use crate::reader::Reader;
use crate::writer::Writer;

/// A byte string: a slice of the wire, or bytes that share its buffer.
#[derive(Clone)]
#[expect(clippy::exhaustive_enums, reason = "the two ways of holding bytes are what the type is about")]
pub enum Blob<'a> {
    /// A slice.
    Borrowed(&'a [u8]),
    /// A reference-counted slice.
    Shared(Bytes),
}

/// Record batches, as opaque bytes; [`crate::records`] reads them.
#[derive(Clone)]
#[expect(clippy::exhaustive_enums, reason = "a sender has to handle every way of holding records")]
pub enum Records<'a> {
    /// A slice.
    Borrowed(&'a [u8]),
    /// A reference-counted slice: sent by reference.
    Shared(Bytes),
    /// A promise of `len` bytes, which whoever sends the message finds by `token`. Never the result of decoding.
    Deferred {
        /// How many bytes the records have.
        len: usize,
        /// What the sender needs to find them.
        token: u64,
    },
}

impl<'a> Blob<'a> {
    /// The bytes, shared: copied only if they are borrowed.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        match self {
            Blob::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
            Blob::Shared(bytes) => bytes,
        }
    }

    pub(crate) fn read_nullable(
        reader: &mut Reader<'a>,
        form: Form,
        null_allowed: bool,
    ) -> Result<Option<Self>, DecodeError> {
        let blob = match read_len(reader, form, Classic::Int32)? {
            None => None,
            Some(len) => Some(reader.blob(len)?),
        };
        check_null(blob, reader, null_allowed)
    }

    pub(crate) fn write_nullable(
        value: Option<&Self>,
        writer: &mut Writer,
        form: Form,
        null_allowed: bool,
    ) -> Result<(), EncodeError> {
        match value {
            Some(blob) => blob.write_value(writer, form),
            None => write_null(writer, form, null_allowed),
        }
    }
}

/// `BYTES => length:INT32 byte*`, or `COMPACT_BYTES => length+1:UNSIGNED_VARINT byte*`
impl<'a> Value<'a> for Blob<'a> {
    type Owned = Blob<'static>;

    fn read_value(reader: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
        Ok(Self::read_nullable(reader, form, false)?.unwrap_or_default())
    }

    fn write_value(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        write_len(writer, form, self.len())?;
        match self {
            Blob::Borrowed(bytes) => writer.bytes(bytes),
            Blob::Shared(bytes) => writer.shared(bytes),
        }
        Ok(())
    }

    fn into_owned(self) -> Blob<'static> {
        Blob::Shared(self.into_bytes())
    }
}

impl<'a> Records<'a> {
    /// How many bytes the records have.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Records::Borrowed(bytes) => bytes.len(),
            Records::Shared(bytes) => bytes.len(),
            Records::Deferred { len, .. } => *len,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, unless they are deferred.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[u8]> {
        match self {
            Records::Borrowed(bytes) => Some(bytes),
            Records::Shared(bytes) => Some(bytes),
            Records::Deferred { .. } => None,
        }
    }

    /// The bytes, unless they are deferred, shared: copied only if they are borrowed.
    #[must_use]
    pub fn into_bytes(self) -> Option<Bytes> {
        match self {
            Records::Borrowed(bytes) => Some(Bytes::copy_from_slice(bytes)),
            Records::Shared(bytes) => Some(bytes),
            Records::Deferred { .. } => None,
        }
    }

    pub(crate) fn read_nullable(
        reader: &mut Reader<'a>,
        form: Form,
        null_allowed: bool,
    ) -> Result<Option<Self>, DecodeError> {
        let records = match read_len(reader, form, Classic::Int32)? {
            None => None,
            Some(len) => Some(reader.records(len)?),
        };
        check_null(records, reader, null_allowed)
    }

    pub(crate) fn write_nullable(
        value: Option<&Self>,
        writer: &mut Writer,
        form: Form,
        null_allowed: bool,
    ) -> Result<(), EncodeError> {
        match value {
            Some(records) => records.write_value(writer, form),
            None => write_null(writer, form, null_allowed),
        }
    }
}

/// `RECORDS` and `COMPACT_RECORDS` have the layout of byte strings.
impl<'a> Value<'a> for Records<'a> {
    type Owned = Records<'static>;

    fn read_value(reader: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
        Ok(Self::read_nullable(reader, form, false)?.unwrap_or_default())
    }

    fn write_value(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        write_len(writer, form, self.len())?;
        match self {
            Records::Borrowed(bytes) => writer.bytes(bytes),
            Records::Shared(bytes) => writer.shared(bytes),
            Records::Deferred { len, token } => writer.deferred(*len, *token)?,
        }
        Ok(())
    }

    fn into_owned(self) -> Records<'static> {
        match self {
            Records::Borrowed(bytes) => Records::Shared(Bytes::copy_from_slice(bytes)),
            Records::Shared(bytes) => Records::Shared(bytes),
            Records::Deferred { len, token } => Records::Deferred { len, token },
        }
    }
}

fn write_len(writer: &mut Writer, form: Form, len: usize) -> Result<(), EncodeError> {
    if form.flexible { writer.compact_len(Some(len)) } else { writer.classic_len(Some(len)) }
}

fn write_null(writer: &mut Writer, form: Form, null_allowed: bool) -> Result<(), EncodeError> {
    if !null_allowed {
        Err(null_not_allowed())
    } else if form.flexible {
        writer.compact_len(None)
    } else {
        writer.classic_len(None)
    }
}

impl Default for Blob<'_> {
    fn default() -> Self {
        Blob::Borrowed(&[])
    }
}

impl Default for Records<'_> {
    fn default() -> Self {
        Records::Borrowed(&[])
    }
}

impl ops::Deref for Blob<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Blob::Borrowed(bytes) => bytes,
            Blob::Shared(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Blob<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Blob<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Blob<'_> {}

impl PartialEq for Records<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Records::Deferred { len, token }, Records::Deferred { len: other_len, token: other_token }) => {
                (len, token) == (other_len, other_token)
            }
            _ => self.as_slice().is_some() && self.as_slice() == other.as_slice(),
        }
    }
}

impl Eq for Records<'_> {}

impl fmt::Debug for Blob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl fmt::Debug for Records<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Records::Deferred { len, token } => write!(f, "records({len} bytes, token {token})"),
            _ => write!(f, "records({} bytes)", self.len()),
        }
    }
}

impl<'a> From<&'a [u8]> for Blob<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Blob::Borrowed(bytes)
    }
}

impl From<Bytes> for Blob<'_> {
    fn from(bytes: Bytes) -> Self {
        Blob::Shared(bytes)
    }
}

impl From<Vec<u8>> for Blob<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Blob::Shared(bytes.into())
    }
}

impl<'a> From<&'a [u8]> for Records<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Records::Borrowed(bytes)
    }
}

impl From<Bytes> for Records<'_> {
    fn from(bytes: Bytes) -> Self {
        Records::Shared(bytes)
    }
}

impl From<Vec<u8>> for Records<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Records::Shared(bytes.into())
    }
}
