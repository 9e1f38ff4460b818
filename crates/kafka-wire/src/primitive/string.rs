//! Text: borrowed from the wire, or shared.

use alloc::string::String;
use alloc::sync::Arc;
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};
use core::{fmt, ops};

use super::{Classic, Form, Value, check_null, null_not_allowed, read_len};
use crate::error::{DecodeError, EncodeError, EncodeErrorKind, Reason};
use crate::reader::Reader;
use crate::writer::Writer;

/// A text: a slice of the wire, or one that is owned together with its clones.
///
/// ```
/// use kolumn_kafka_wire::Str;
///
/// let topic = Str::from("orders");
/// assert_eq!(topic, "orders");
/// assert_eq!(topic.len(), 6);
/// ```
#[derive(Clone)]
pub struct Str<'a>(Repr<'a>);

#[derive(Clone)]
enum Repr<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

impl<'a> Str<'a> {
    /// Borrowed for ever.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Str<'static> {
        Str(Repr::Borrowed(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Borrowed(text) => text,
            Repr::Shared(text) => text,
        }
    }

    pub(crate) fn read_nullable(
        reader: &mut Reader<'a>,
        form: Form,
        null_allowed: bool,
    ) -> Result<Option<Self>, DecodeError> {
        let text = match read_len(reader, form, Classic::Int16)? {
            None => None,
            Some(len) if len > LEN_MAX => return Err(reader.error(Reason::TextTooLong { len })),
            Some(len) => {
                let bytes = reader.take(len)?;
                let text = core::str::from_utf8(bytes).map_err(|_| reader.error(Reason::Utf8))?;
                Some(Self(Repr::Borrowed(text)))
            }
        };
        check_null(text, reader, null_allowed)
    }

    pub(crate) fn write_nullable(
        value: Option<&Self>,
        writer: &mut Writer,
        form: Form,
        null_allowed: bool,
    ) -> Result<(), EncodeError> {
        match value {
            Some(text) => text.write_value(writer, form),
            None if !null_allowed => Err(null_not_allowed()),
            None if form.flexible => writer.compact_len(None),
            None => {
                writer.i16(-1);
                Ok(())
            }
        }
    }
}

/// `STRING => length:INT16 UTF-8`, or `COMPACT_STRING => length+1:UNSIGNED_VARINT UTF-8`
impl<'a> Value<'a> for Str<'a> {
    type Owned = Str<'static>;

    fn read_value(reader: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
        Ok(Self::read_nullable(reader, form, false)?.unwrap_or_default())
    }

    fn write_value(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        let bytes = self.as_bytes();
        let len = i16::try_from(bytes.len()).map_err(|_| EncodeError::new(EncodeErrorKind::TooLong))?;
        if form.flexible {
            writer.compact_len(Some(bytes.len()))?;
        } else {
            writer.i16(len);
        }
        writer.bytes(bytes);
        Ok(())
    }

    fn into_owned(self) -> Str<'static> {
        Str(Repr::Shared(match self.0 {
            Repr::Borrowed(text) => Arc::from(text),
            Repr::Shared(text) => text,
        }))
    }
}

impl Default for Str<'_> {
    fn default() -> Self {
        Self(Repr::Borrowed(""))
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(text: &'a str) -> Self {
        Self(Repr::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Str<'a> {
    fn from(text: &'a String) -> Self {
        Self(Repr::Borrowed(text))
    }
}

impl From<String> for Str<'_> {
    fn from(text: String) -> Self {
        Self(Repr::Shared(Arc::from(text)))
    }
}

impl From<Arc<str>> for Str<'_> {
    fn from(text: Arc<str>) -> Self {
        Self(Repr::Shared(text))
    }
}

impl ops::Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Str<'_> {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Str<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Str<'_> {}

impl PartialEq<str> for Str<'_> {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Str<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd for Str<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Str<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

/// The bound of the classic length, an int16. Kafka's own codec holds compact strings to it too.
const LEN_MAX: usize = 0x7fff;
