//! What can go wrong while decoding and encoding, with the place where it did.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// Why bytes are not the message that they were taken for.
///
/// ```
/// use kolumn_kafka_wire::{Message, messages::MetadataRequest};
///
/// // version 0: an array that claims 2^31-1 topics
/// let error = MetadataRequest::decode(&[0x7f, 0xff, 0xff, 0xff], 0).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "`MetadataRequest` version 0, field `topics` at byte 4: 2147483647 elements cannot lie in the 0 bytes left"
/// );
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct DecodeError(Box<Decode>);

#[derive(Clone, PartialEq, Eq)]
struct Decode {
    reason: Reason,
    position: usize,
    place: Place,
}

/// What the caller of a failed decoding can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The bytes end before the message does. In a complete frame the same as `Malformed`: close the connection.
    Truncated,
    /// The bytes cannot be this message: close the connection.
    Malformed,
    /// The message ends before the bytes do.
    TrailingBytes,
    /// The message exists, but not in this version.
    UnsupportedVersion,
    /// There is no message with this API key.
    UnknownApiKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Short { needed: usize, left: usize },
    Count { claimed: usize, left: usize },
    NegativeLength(i64),
    TextTooLong { len: usize },
    FrameTooLong { claimed: usize, limit: usize },
    Utf8,
    Varint,
    Null,
    TagOrder { tag: u32, before: u32 },
    Trailing { left: usize },
    Version,
    ApiKey(i16),
}

/// Message, version and field path. The path is built while unwinding, so innermost first.
#[derive(Clone, PartialEq, Eq, Default)]
struct Place {
    message: Option<(&'static str, i16)>,
    path: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Field(&'static str),
    Index(usize),
}

impl DecodeError {
    #[cold]
    pub(crate) fn new(reason: Reason, position: usize) -> Self {
        Self(Box::new(Decode { reason, position, place: Place::default() }))
    }

    /// What to do about it.
    #[must_use]
    pub fn kind(&self) -> DecodeErrorKind {
        match self.0.reason {
            Reason::Short { .. } => DecodeErrorKind::Truncated,
            Reason::Count { .. }
            | Reason::NegativeLength(_)
            | Reason::TextTooLong { .. }
            | Reason::FrameTooLong { .. }
            | Reason::Utf8
            | Reason::Varint
            | Reason::Null
            | Reason::TagOrder { .. } => DecodeErrorKind::Malformed,
            Reason::Trailing { .. } => DecodeErrorKind::TrailingBytes,
            Reason::Version => DecodeErrorKind::UnsupportedVersion,
            Reason::ApiKey(_) => DecodeErrorKind::UnknownApiKey,
        }
    }

    /// The message that was being decoded, if it got that far.
    #[must_use]
    pub fn message(&self) -> Option<&'static str> {
        self.0.place.message.map(|(name, _)| name)
    }

    /// The version that it was decoded as.
    #[must_use]
    pub fn version(&self) -> Option<i16> {
        self.0.place.message.map(|(_, version)| version)
    }

    /// The field, as in `topics[3].partitions[0].records`; empty if it is none in particular.
    #[must_use]
    pub fn field_path(&self) -> impl fmt::Display + '_ {
        Path(&self.0.place.path)
    }

    /// How far into the input decoding had come.
    #[must_use]
    pub fn position(&self) -> usize {
        self.0.position
    }

    #[cold]
    pub(crate) fn in_message(mut self, name: &'static str, version: i16) -> Self {
        self.0.place.message.get_or_insert((name, version));
        self
    }

    pub(crate) fn at_index(self, index: usize) -> Self {
        self.at(Step::Index(index))
    }

    // out of line: called from every field of every message
    #[cold]
    #[inline(never)]
    fn at(mut self, step: Step) -> Self {
        self.0.place.path.push(step);
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.place.fmt(f)?;
        write!(f, " at byte {}: ", self.0.position)?;
        match self.0.reason {
            Reason::Short { needed, left } => write!(f, "{needed} bytes needed, {left} left"),
            Reason::Count { claimed, left } => {
                write!(f, "{claimed} elements cannot lie in the {left} bytes left")
            }
            Reason::NegativeLength(length) => write!(f, "length {length} is negative"),
            Reason::FrameTooLong { claimed, limit } => {
                write!(f, "length {claimed} is over the limit of {limit}")
            }
            Reason::TextTooLong { len } => write!(f, "text of {len} bytes is longer than 32767"),
            Reason::Utf8 => f.write_str("text is not UTF-8"),
            Reason::Varint => f.write_str("variable-length number is too long"),
            Reason::Null => f.write_str("null is not allowed"),
            Reason::TagOrder { tag, before } => write!(f, "tag {tag} after tag {before}"),
            Reason::Trailing { left } => write!(f, "{left} bytes left over"),
            Reason::Version => f.write_str("there is no such version"),
            Reason::ApiKey(key) => write!(f, "no request with API key {key}"),
        }
    }
}

impl fmt::Debug for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DecodeError({self})")
    }
}

impl core::error::Error for DecodeError {}

/// Why a message cannot be written in a version.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodeError(Box<Encode>);

#[derive(Clone, PartialEq, Eq)]
struct Encode {
    kind: EncodeErrorKind,
    place: Place,
}

/// What is wrong with a message that cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeErrorKind {
    /// The message does not have this version.
    UnsupportedVersion,
    /// A field that this version lacks has another value than its default, and must not be dropped silently.
    FieldNotInVersion,
    /// A field is null where the version does not allow it.
    NullNotAllowed,
    /// A text, byte string, array or the whole message is longer than its length field can say.
    TooLong,
    /// An unknown tagged field has the number of a known one, or one number occurs twice.
    DuplicateTag,
    /// Records are deferred where the bytes are needed now.
    DeferredRecords,
}

impl EncodeError {
    #[cold]
    pub(crate) fn new(kind: EncodeErrorKind) -> Self {
        Self(Box::new(Encode { kind, place: Place::default() }))
    }

    #[cold]
    pub(crate) fn not_in_version(field: &'static str) -> Self {
        let mut error = Self::new(EncodeErrorKind::FieldNotInVersion);
        error.0.place.path.push(Step::Field(field));
        error
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> EncodeErrorKind {
        self.0.kind
    }

    /// The message that was being encoded.
    #[must_use]
    pub fn message(&self) -> Option<&'static str> {
        self.0.place.message.map(|(name, _)| name)
    }

    /// The version that it was encoded as.
    #[must_use]
    pub fn version(&self) -> Option<i16> {
        self.0.place.message.map(|(_, version)| version)
    }

    /// The field, as in `topics[3].name`; empty if it is none in particular.
    #[must_use]
    pub fn field_path(&self) -> impl fmt::Display + '_ {
        Path(&self.0.place.path)
    }

    #[cold]
    pub(crate) fn in_message(mut self, name: &'static str, version: i16) -> Self {
        self.0.place.message.get_or_insert((name, version));
        self
    }

    pub(crate) fn at_index(self, index: usize) -> Self {
        self.at(Step::Index(index))
    }

    // out of line: called from every field of every message
    #[cold]
    #[inline(never)]
    fn at(mut self, step: Step) -> Self {
        self.0.place.path.push(step);
        self
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.place.fmt(f)?;
        f.write_str(match self.0.kind {
            EncodeErrorKind::UnsupportedVersion => ": there is no such version",
            EncodeErrorKind::FieldNotInVersion => ": set, but not part of this version",
            EncodeErrorKind::NullNotAllowed => ": null is not allowed",
            EncodeErrorKind::TooLong => ": longer than its length field can say",
            EncodeErrorKind::DuplicateTag => ": a tag occurs twice",
            EncodeErrorKind::DeferredRecords => ": deferred records where bytes are needed",
        })
    }
}

impl fmt::Debug for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodeError({self})")
    }
}

impl core::error::Error for EncodeError {}

/// Names the field in which a value failed.
pub(crate) trait InField {
    /// Adds the field to the error's path.
    fn field(self, name: &'static str) -> Self;
}

impl<T> InField for Result<T, DecodeError> {
    #[inline]
    fn field(self, name: &'static str) -> Self {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(error.at(Step::Field(name))),
        }
    }
}

impl InField for Result<(), EncodeError> {
    #[inline]
    fn field(self, name: &'static str) -> Self {
        match self {
            Ok(()) => Ok(()),
            Err(error) => Err(error.at(Step::Field(name))),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message {
            Some((name, version)) => write!(f, "`{name}` version {version}")?,
            None => f.write_str("frame")?,
        }
        if self.path.is_empty() { Ok(()) } else { write!(f, ", field `{}`", Path(&self.path)) }
    }
}

struct Path<'a>(&'a [Step]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.0.iter().rev().enumerate() {
            match step {
                Step::Field(name) if depth == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
