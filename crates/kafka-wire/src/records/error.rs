//! What can be wrong with batches and records, one error per family of operations.

use core::error::Error;
use core::fmt;

use super::attributes::{Compression, UnknownCodec};
use super::cursor::Fault;

/// The bytes are not a batch of format version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchError {
    kind: BatchErrorKind,
}

/// Why bytes are not a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchErrorKind {
    /// The batch does not end in the input. At the end of a fetched slice that is legal; a consumer
    /// fetches again from there.
    Partial,
    /// The format version is not 2; 0 and 1 are the message sets of clients from before 2017.
    UnsupportedMagic(i8),
    /// The length is negative or too small for a header.
    InvalidLength(i32),
}

impl BatchError {
    pub(super) const fn new(kind: BatchErrorKind) -> Self {
        Self { kind }
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> BatchErrorKind {
        self.kind
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            BatchErrorKind::Partial => f.write_str("the record batch is not complete"),
            BatchErrorKind::UnsupportedMagic(magic) => {
                write!(f, "record format version {magic} is not supported, only 2 is")
            }
            BatchErrorKind::InvalidLength(length) => write!(f, "a record batch cannot have length {length}"),
        }
    }
}

impl Error for BatchError {}

/// A record is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordError {
    kind: RecordErrorKind,
    index: i32,
    position: usize,
}

/// Why a record is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordErrorKind {
    /// The batch announces a negative number of records.
    NegativeCount,
    /// The batch announces more records than its payload can hold.
    CountExceedsPayload,
    /// The payload, or the record within its length, ended too early.
    Truncated,
    /// A variable-length integer has more bits than its type.
    VarintTooLong,
    /// A length or count is negative where only a key or a value may be null.
    NegativeLength,
    /// The record's length covers more bytes than its fields take.
    UnusedRecordBytes,
    /// A header's key is not UTF-8.
    HeaderKeyNotUtf8,
    /// Bytes are left after the last record.
    TrailingBytes,
}

impl RecordError {
    pub(super) const fn new(kind: RecordErrorKind, index: i32, position: usize) -> Self {
        Self { kind, index, position }
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> RecordErrorKind {
        self.kind
    }

    /// The record's place in the batch, from 0; the number of records for what comes after the last.
    #[must_use]
    pub const fn index(&self) -> i32 {
        self.index
    }

    /// Where in the uncompressed payload the record begins.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }
}

impl RecordErrorKind {
    const fn message(self) -> &'static str {
        match self {
            Self::NegativeCount => "the record count is negative",
            Self::CountExceedsPayload => "the payload is too small for the record count",
            Self::Truncated => "the bytes end too early",
            Self::VarintTooLong => "a variable-length integer is too long",
            Self::NegativeLength => "a length is negative",
            Self::UnusedRecordBytes => "the length covers more than the fields",
            Self::HeaderKeyNotUtf8 => "a header key is not UTF-8",
            Self::TrailingBytes => "bytes are left after the last record",
        }
    }
}

impl From<Fault> for RecordErrorKind {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Truncated => Self::Truncated,
            Fault::VarintTooLong => Self::VarintTooLong,
        }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, index, position } = self;
        write!(f, "record {index} at byte {position}: {}", kind.message())
    }
}

impl Error for RecordError {}

/// A payload cannot be inflated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflateError {
    kind: InflateErrorKind,
    reason: &'static str,
}

/// Why a payload cannot be inflated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InflateErrorKind {
    /// The data is not what the codec writes, or was damaged.
    Corrupt(Compression),
    /// The payload is larger than the limit.
    TooLarge(Compression),
    /// The codec is known, but this build was made without its feature.
    CodecNotBuilt(Compression),
    /// Nobody has defined this codec.
    UnknownCodec(UnknownCodec),
}

impl InflateError {
    pub(super) const fn new(kind: InflateErrorKind, reason: &'static str) -> Self {
        Self { kind, reason }
    }

    pub(super) const fn unknown_codec(codec: UnknownCodec) -> Self {
        Self::new(InflateErrorKind::UnknownCodec(codec), "")
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> InflateErrorKind {
        self.kind
    }
}

impl fmt::Display for InflateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            InflateErrorKind::Corrupt(codec) => write!(f, "the {codec} data is damaged: {}", self.reason),
            InflateErrorKind::TooLarge(codec) => write!(f, "the {codec} data inflates beyond the limit"),
            InflateErrorKind::CodecNotBuilt(codec) => write!(f, "this build does not support {codec}"),
            InflateErrorKind::UnknownCodec(unknown) => unknown.fmt(f),
        }
    }
}

impl Error for InflateError {}

/// A producer's batch must not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateError {
    kind: ValidateErrorKind,
    reason: Reason,
}

/// What to tell the producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValidateErrorKind {
    /// The checksum does not fit the bytes: they were damaged on the way, sending again may help.
    Corrupt,
    /// The header or the compressed stream breaks a rule; the batch as a whole is refused.
    InvalidBatch,
    /// One record breaks a rule, see [`record_index`](ValidateError::record_index).
    InvalidRecord,
    /// The codec exists, but this build was made without it.
    UnsupportedCompression,
    /// The payload inflates beyond the limit.
    TooLarge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Checksum { stored: u32, computed: u32 },
    Rule { record: Option<i32>, text: &'static str },
    Record(RecordError),
    Inflate(InflateError),
}

impl ValidateError {
    pub(super) const fn checksum(stored: u32, computed: u32) -> Self {
        Self { kind: ValidateErrorKind::Corrupt, reason: Reason::Checksum { stored, computed } }
    }

    pub(super) const fn batch(text: &'static str) -> Self {
        Self { kind: ValidateErrorKind::InvalidBatch, reason: Reason::Rule { record: None, text } }
    }

    pub(super) const fn record(index: i32, text: &'static str) -> Self {
        Self { kind: ValidateErrorKind::InvalidRecord, reason: Reason::Rule { record: Some(index), text } }
    }

    /// What to tell the producer.
    #[must_use]
    pub const fn kind(&self) -> ValidateErrorKind {
        self.kind
    }

    /// Which record broke the rule, if it was one.
    #[must_use]
    pub const fn record_index(&self) -> Option<i32> {
        match self.reason {
            Reason::Rule { record, .. } => record,
            Reason::Record(error) => match self.kind {
                ValidateErrorKind::InvalidRecord => Some(error.index),
                _ => None,
            },
            Reason::Checksum { .. } | Reason::Inflate(_) => None,
        }
    }
}

impl From<RecordError> for ValidateError {
    fn from(error: RecordError) -> Self {
        let kind = match error.kind {
            RecordErrorKind::NegativeCount
            | RecordErrorKind::CountExceedsPayload
            | RecordErrorKind::TrailingBytes => ValidateErrorKind::InvalidBatch,
            RecordErrorKind::Truncated
            | RecordErrorKind::VarintTooLong
            | RecordErrorKind::NegativeLength
            | RecordErrorKind::UnusedRecordBytes
            | RecordErrorKind::HeaderKeyNotUtf8 => ValidateErrorKind::InvalidRecord,
        };
        Self { kind, reason: Reason::Record(error) }
    }
}

impl From<InflateError> for ValidateError {
    fn from(error: InflateError) -> Self {
        let kind = match error.kind {
            InflateErrorKind::Corrupt(_) | InflateErrorKind::UnknownCodec(_) => {
                ValidateErrorKind::InvalidBatch
            }
            InflateErrorKind::TooLarge(_) => ValidateErrorKind::TooLarge,
            InflateErrorKind::CodecNotBuilt(_) => ValidateErrorKind::UnsupportedCompression,
        };
        Self { kind, reason: Reason::Inflate(error) }
    }
}

impl fmt::Display for ValidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::Checksum { stored, computed } => {
                write!(f, "the batch's checksum is {stored:#010x}, its bytes have {computed:#010x}")
            }
            Reason::Rule { record: Some(index), text } => write!(f, "record {index}: {text}"),
            Reason::Rule { record: None, text } => f.write_str(text),
            Reason::Record(_) => f.write_str("a record is malformed"),
            Reason::Inflate(_) => f.write_str("the records cannot be inflated"),
        }
    }
}

impl Error for ValidateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.reason {
            Reason::Record(error) => Some(error),
            Reason::Inflate(error) => Some(error),
            Reason::Checksum { .. } | Reason::Rule { .. } => None,
        }
    }
}

/// A batch cannot be built from what was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildError {
    kind: BuildErrorKind,
}

/// Why a batch cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildErrorKind {
    /// A length or the number of records does not fit the format's 32 bits.
    TooLarge,
    /// A timestamp is further from the first one than 64 bits can say.
    TimestampOutOfRange,
    /// An offset does not follow the one before, or the batch's end is before its last record.
    OffsetOutOfOrder,
    /// This build was made without the codec's feature.
    CodecNotBuilt(Compression),
    /// The codec failed; it does not on sound memory.
    CodecFailed(Compression),
}

impl BuildError {
    pub(super) const fn new(kind: BuildErrorKind) -> Self {
        Self { kind }
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> BuildErrorKind {
        self.kind
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            BuildErrorKind::TooLarge => f.write_str("the batch is larger than 32 bits can say"),
            BuildErrorKind::TimestampOutOfRange => {
                f.write_str("the timestamp is too far from the batch's first one")
            }
            BuildErrorKind::OffsetOutOfOrder => f.write_str("the offset does not follow the one before"),
            BuildErrorKind::CodecNotBuilt(codec) => write!(f, "this build does not support {codec}"),
            BuildErrorKind::CodecFailed(codec) => write!(f, "{codec} failed to compress"),
        }
    }
}

impl Error for BuildError {}
