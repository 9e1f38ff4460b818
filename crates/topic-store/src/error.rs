//! The errors of the store: one type per family of operations, each with a kind that says what to do.

use std::fmt;

use crate::read::PartitionOffsets;

macro_rules! family {
    ($(#[$doc:meta])* $name:ident, $kind:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, thiserror::Error)]
        #[error("{message}")]
        pub struct $name {
            kind: $kind,
            message: String,
        }

        impl $name {
            pub(crate) fn new(kind: $kind, message: impl fmt::Display) -> Self {
                Self { kind, message: message.to_string() }
            }

            /// What went wrong, for callers that act on it.
            #[must_use]
            pub const fn kind(&self) -> $kind {
                self.kind
            }

            /// What went wrong, for people.
            #[must_use]
            pub fn message(&self) -> &str {
                &self.message
            }
        }
    };
}

family! {
    /// Why the store did not open.
    OpenError, OpenErrorKind
}

/// The kinds of [`OpenError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// The settings contradict each other.
    Settings,
    /// Another process has the directory open.
    Locked,
    /// What had been synced is damaged; nothing was changed.
    Damaged,
    /// Written by a newer version.
    Unsupported,
    /// The disk refused.
    Io,
}

family! {
    /// Why a view or topic was not created, or a topic not changed or deleted.
    TopicError, TopicErrorKind
}

/// The kinds of [`TopicError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TopicErrorKind {
    /// The view does not exist.
    UnknownView,
    /// The topic does not exist in this view.
    UnknownTopic,
    /// A topic of this name, or of one that collides with it, exists or is being created.
    Exists,
    /// The name breaks the rules.
    InvalidName,
    /// The number of partitions is not in the allowed range.
    InvalidPartitions,
    /// The settings were refused; the message is that of the [`ConfigError`].
    InvalidConfig,
    /// The log's space is used up; deletions reopen it.
    Full,
    /// Too much is waiting for the disk; try again after [`Store::space_changed`](crate::Store::space_changed).
    Busy,
    /// The log has failed and only answers reads.
    ReadOnly,
}

/// A topic's settings were refused: which one, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    key: String,
    value: String,
    reason: String,
    /// Whether it is the key that is wrong, not the value.
    is_unknown: bool,
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, reason, is_unknown } = self;
        if *is_unknown {
            write!(f, "there is no topic setting `{key}`")
        } else {
            write!(f, "invalid value `{value}` for `{key}`: {reason}")
        }
    }
}

impl ConfigError {
    pub(crate) fn new(key: &str, value: &str, reason: impl fmt::Display) -> Self {
        Self { key: key.into(), value: value.into(), reason: reason.to_string(), is_unknown: false }
    }

    pub(crate) fn unknown(key: &str, value: &str) -> Self {
        Self { is_unknown: true, ..Self::new(key, value, "there is no topic setting of this name") }
    }

    /// The key as given.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value as given.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Why it was refused.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Why a batch was not appended. Nothing was assigned and nothing written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct AppendError {
    kind: AppendErrorKind,
    message: String,
    record_errors: Vec<(i32, String)>,
}

/// The kinds of [`AppendError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AppendErrorKind {
    /// The topic does not exist.
    UnknownTopic,
    /// The topic has no such partition.
    UnknownPartition,
    /// Checksum or sizes are wrong: damaged on its way.
    Corrupt,
    /// The batch or one of its records breaks the format or the topic's rules.
    InvalidRecord,
    /// A message set of this old magic.
    UnsupportedFormat(i8),
    /// The codec is not one that this build can inflate.
    UnsupportedCompression,
    /// Larger than the topic allows.
    TooLarge {
        /// The batch's length.
        len: usize,
        /// What the topic allows.
        max: usize,
    },
    /// A timestamp is outside the topic's bounds.
    InvalidTimestamp,
    /// A sequence number is missing before this batch.
    OutOfOrderSequence,
    /// The producer has been fenced by a newer epoch.
    InvalidProducerEpoch,
    /// The log's space is used up; deletions and retention reopen it.
    Full,
    /// Too much is waiting for the disk; try again after [`Store::space_changed`](crate::Store::space_changed).
    Busy,
    /// The log has failed and only answers reads.
    ReadOnly,
}

impl AppendError {
    pub(crate) fn new(kind: AppendErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), record_errors: Vec::new() }
    }

    pub(crate) fn at_record(mut self, index: i32) -> Self {
        self.record_errors.push((index, self.message.clone()));
        self
    }

    /// What went wrong, for callers that act on it.
    #[must_use]
    pub const fn kind(&self) -> AppendErrorKind {
        self.kind
    }

    /// What went wrong, for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The records at fault (index in the batch, text), where single records are.
    #[must_use]
    pub fn record_errors(&self) -> &[(i32, String)] {
        &self.record_errors
    }
}

/// What was assigned did not become durable: the log has failed, which is final.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the log has failed before the write was durable: {cause}")]
pub struct CommitError {
    cause: String,
}

impl CommitError {
    pub(crate) fn new(cause: impl Into<String>) -> Self {
        Self { cause: cause.into() }
    }
}

/// Why nothing was read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ReadError {
    kind: ReadErrorKind,
    message: String,
}

/// The kinds of [`ReadError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The topic does not exist (any more).
    UnknownTopic,
    /// The topic has no such partition.
    UnknownPartition,
    /// The offset is below the log start or above the end.
    OffsetOutOfRange {
        /// The partition's offsets when it was asked.
        offsets: PartitionOffsets,
    },
    /// The records were deleted while they were being read; ask again.
    Gone,
    /// The disk refused, or what it gave is damaged.
    Io,
}

impl ReadError {
    pub(crate) fn new(kind: ReadErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string() }
    }

    /// What went wrong, for callers that act on it.
    #[must_use]
    pub const fn kind(&self) -> ReadErrorKind {
        self.kind
    }

    /// What went wrong, for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

family! {
    /// Why a round of maintenance, a checkpoint or the closing did not succeed.
    MaintenanceError, MaintenanceErrorKind
}

/// The kinds of [`MaintenanceError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MaintenanceErrorKind {
    /// The log has failed and only answers reads.
    ReadOnly,
    /// The disk refused; the next round tries again.
    Io,
}

family! {
    /// Why nothing was written for a consumer group.
    GroupError, GroupErrorKind
}

/// The kinds of [`GroupError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupErrorKind {
    /// The view does not exist.
    UnknownView,
    /// The group does not exist in this view.
    UnknownGroup,
    /// A topic does not exist in this view (any more).
    UnknownTopic,
    /// A topic has no such partition.
    UnknownPartition,
    /// The name, the memory, an offset's metadata or all of it together is longer than the formats take.
    TooLarge,
    /// The memory for groups or the log's space is used up; deletions reopen them.
    Full,
    /// Too much is waiting for the disk; try again after [`Store::space_changed`](crate::Store::space_changed).
    Busy,
    /// The log has failed and only answers reads.
    ReadOnly,
}

family! {
    /// Why no records were deleted.
    DeleteRecordsError, DeleteRecordsErrorKind
}

/// The kinds of [`DeleteRecordsError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeleteRecordsErrorKind {
    /// The topic does not exist (any more).
    UnknownTopic,
    /// The topic has no such partition.
    UnknownPartition,
    /// The offset lies above the high watermark, or is negative.
    OffsetOutOfRange,
    /// The topic's `cleanup.policy` does not have `delete`.
    Policy,
    /// The log's space is used up, to the last reserve.
    Full,
    /// Too much is waiting for the disk; try again after [`Store::space_changed`](crate::Store::space_changed).
    Busy,
    /// The log has failed and only answers reads.
    ReadOnly,
}
