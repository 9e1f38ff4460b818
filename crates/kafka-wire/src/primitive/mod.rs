//! The types that fields of messages have: one wire type per file.

mod array;
mod bytes;
mod integer;
mod string;
mod tagged;
mod uuid;
pub(crate) mod varint;

pub use array::{Array, IntoIter, Iter};
pub use bytes::{Blob, Records};
pub use string::Str;
pub use tagged::{TaggedField, TaggedFields};
pub use uuid::Uuid;

pub(crate) use tagged::KnownTag;

use crate::error::{DecodeError, EncodeError, EncodeErrorKind, Reason};
use crate::reader::Reader;
use crate::writer::Writer;

/// In which form a value stands on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Form {
    /// The version of the message that the value is part of.
    pub version: i16,
    /// Whether this version is flexible: compact lengths, and tagged fields at the end of each struct.
    pub flexible: bool,
}

impl Form {
    /// A version of a message.
    #[must_use]
    pub const fn new(version: i16, flexible: bool) -> Self {
        Self { version, flexible }
    }

    /// The same version, with classic lengths.
    pub(crate) const fn classic(self) -> Self {
        Self { flexible: false, ..self }
    }
}

/// What a field or an element of an array can be: a primitive, or a struct of a message.
pub trait Value<'a>: Clone + Sized {
    /// The same value without borrowed parts.
    type Owned: Value<'static> + 'static;

    /// How many bytes every value takes, if that is always the same.
    const LEN: Option<usize> = None;

    /// Reads one value and leaves the reader behind it.
    ///
    /// # Errors
    /// If the bytes are not such a value. The reader may then stand anywhere.
    fn read_value(reader: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError>;

    /// Writes the value.
    ///
    /// # Errors
    /// If the value cannot be written in this version.
    fn write_value(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError>;

    /// Copies what is borrowed.
    ///
    /// Arrays that were views of the wire become vectors of structs, which can be many times larger than the bytes
    /// were: do this after a message was judged. To keep a message as it came, keep its bytes.
    fn into_owned(self) -> Self::Owned;
}

/// `NULLABLE_STRUCT => present:INT8 struct` where a negative number stands for null.
pub(crate) fn read_nullable_struct<'a, T: Value<'a>>(
    reader: &mut Reader<'a>,
    form: Form,
) -> Result<Option<T>, DecodeError> {
    if reader.i8()? < 0 { Ok(None) } else { T::read_value(reader, form).map(Some) }
}

pub(crate) fn write_nullable_struct<'a, T: Value<'a>>(
    value: Option<&T>,
    writer: &mut Writer,
    form: Form,
) -> Result<(), EncodeError> {
    match value {
        None => writer.i8(-1),
        Some(value) => {
            writer.i8(1);
            value.write_value(writer, form)?;
        }
    }
    Ok(())
}

/// A length that may be null: `INT16`, `INT32` or, in flexible versions, `UNSIGNED_VARINT` of the length + 1.
#[derive(Clone, Copy)]
enum Classic {
    Int16,
    Int32,
}

fn read_len(reader: &mut Reader<'_>, form: Form, classic: Classic) -> Result<Option<usize>, DecodeError> {
    let len = if form.flexible {
        i64::from(varint::read_u32(reader)?) - 1
    } else {
        match classic {
            Classic::Int16 => i64::from(reader.i16()?),
            Classic::Int32 => i64::from(reader.i32()?),
        }
    };
    match len {
        -1 => Ok(None),
        len => match u32::try_from(len).ok().and_then(|len| usize::try_from(len).ok()) {
            Some(len) => Ok(Some(len)),
            None => Err(reader.error(Reason::NegativeLength(len))),
        },
    }
}

/// Refuses null where it is not allowed.
fn check_null<T>(
    value: Option<T>,
    reader: &Reader<'_>,
    null_allowed: bool,
) -> Result<Option<T>, DecodeError> {
    if value.is_none() && !null_allowed { Err(reader.error(Reason::Null)) } else { Ok(value) }
}

fn null_not_allowed() -> EncodeError {
    EncodeError::new(EncodeErrorKind::NullNotAllowed)
}
