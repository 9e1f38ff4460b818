//! Errors, one per family of operations; kinds tell the caller what to do.

use std::fmt;
use std::io;

use crate::position::Position;

/// Why a log did not open.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct OpenError {
    kind: OpenErrorKind,
    message: String,
    #[source]
    source: Option<io::Error>,
}

/// What kept a log from opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// The options contradict each other.
    InvalidOptions,
    /// Another process, or another opening in this one, has the log.
    Locked,
    /// A file says that it belongs to another log than the one expected.
    WrongLog,
    /// A file was written by a newer version.
    UnknownVersion,
    /// Something that was durable is gone or altered. The position is where the log is broken.
    Damaged(Position),
    /// There is no room for what opening has to write.
    Full,
    /// The disk failed.
    Io,
}

impl OpenError {
    pub(crate) fn new(kind: OpenErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn damaged(at: u64, why: impl fmt::Display) -> Self {
        let at = Position::new(at);
        Self::new(OpenErrorKind::Damaged(at), format!("the log is damaged at position {at}: {why}"))
    }

    pub(crate) fn io(doing: impl Into<String>, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenErrorKind::Full,
            _ => OpenErrorKind::Io,
        };
        Self { kind, message: doing.into(), source: Some(source) }
    }

    /// What kept the log from opening.
    #[must_use]
    pub fn kind(&self) -> OpenErrorKind {
        self.kind
    }
}

/// Why an append was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", match .kind {
    AdmitErrorKind::Full => "the log is full",
    AdmitErrorKind::Busy => "too much is waiting to be written",
    AdmitErrorKind::TooLarge => "the entry is longer than the log takes",
    AdmitErrorKind::ReadOnly => "the log is read-only",
})]
pub struct AdmitError {
    kind: AdmitErrorKind,
}

/// What to do about an append that was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdmitErrorKind {
    /// No room until files are freed; [`Consumer::room`](crate::Consumer::room) tells when to try again.
    Full,
    /// Room as soon as the writer has caught up; [`Consumer::room`](crate::Consumer::room) tells when to try again.
    Busy,
    /// The entry can never be appended.
    TooLarge,
    /// Nothing can be appended any more.
    ReadOnly,
}

impl AdmitError {
    pub(crate) const fn new(kind: AdmitErrorKind) -> Self {
        Self { kind }
    }

    /// What to do about it.
    #[must_use]
    pub const fn kind(&self) -> AdmitErrorKind {
        self.kind
    }
}

/// Why an admitted entry was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", match .kind {
    AppendErrorKind::ReadOnly => "the log is read-only",
    AppendErrorKind::TooLong => "the entry is longer than was admitted, or its head is longer than 256 bytes",
})]
pub struct AppendError {
    kind: AppendErrorKind,
}

/// What is wrong with an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AppendErrorKind {
    /// The log failed or was closed after the entry had been admitted.
    ReadOnly,
    /// The caller gave more than it had asked for.
    TooLong,
}

impl AppendError {
    pub(crate) const fn new(kind: AppendErrorKind) -> Self {
        Self { kind }
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> AppendErrorKind {
        self.kind
    }
}

/// Why bytes of the log could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ReadError {
    kind: ReadErrorKind,
    message: String,
    #[source]
    source: Option<io::Error>,
}

/// What kept bytes from being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The file with this position was freed.
    Freed,
    /// Nothing durable lies there, or the range leaves its file.
    OutOfRange,
    /// The bytes are not those that were written.
    Damaged,
    /// The disk failed.
    Io,
}

impl ReadError {
    pub(crate) fn new(kind: ReadErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn io(position: u64, source: io::Error) -> Self {
        let message = format!("reading the log at position {position} failed");
        Self { kind: ReadErrorKind::Io, message, source: Some(source) }
    }

    /// What kept the bytes from being read.
    #[must_use]
    pub fn kind(&self) -> ReadErrorKind {
        self.kind
    }
}

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError<E> {
    /// The log could not be read.
    #[error("replaying the log failed")]
    Read(#[source] ReadError),
    /// The caller's function refused an entry.
    #[error("an entry of the log was refused")]
    Stopped(E),
}

/// Why a checkpoint was not written.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CheckpointError {
    kind: CheckpointErrorKind,
    message: String,
    #[source]
    source: Option<io::Error>,
}

/// What kept a checkpoint from being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckpointErrorKind {
    /// The position is not a durable group's end, or lies before the newest checkpoint.
    InvalidPosition,
    /// The log failed earlier.
    ReadOnly,
    /// The disk is full.
    Full,
    /// The disk failed.
    Io,
}

impl CheckpointError {
    pub(crate) fn new(kind: CheckpointErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn io(source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => CheckpointErrorKind::Full,
            _ => CheckpointErrorKind::Io,
        };
        Self { kind, message: "writing a checkpoint failed".to_owned(), source: Some(source) }
    }

    /// What kept the checkpoint from being written.
    #[must_use]
    pub fn kind(&self) -> CheckpointErrorKind {
        self.kind
    }
}

/// Why a file was not freed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct FreeError {
    kind: FreeErrorKind,
    message: String,
    #[source]
    source: Option<io::Error>,
}

/// What kept a file from being freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FreeErrorKind {
    /// No file has this base.
    UnknownFile,
    /// The file is being written, or holds entries that no durable checkpoint covers.
    InUse,
    /// The log failed earlier.
    ReadOnly,
    /// The disk failed. The file is gone from the log all the same.
    Io,
}

impl FreeError {
    pub(crate) fn new(kind: FreeErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn io(source: io::Error) -> Self {
        Self {
            kind: FreeErrorKind::Io,
            message: "giving a file back failed".to_owned(),
            source: Some(source),
        }
    }

    /// What kept the file from being freed.
    #[must_use]
    pub fn kind(&self) -> FreeErrorKind {
        self.kind
    }
}

/// Why the log turned read-only. Nothing can be appended until it is opened again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// What the writer was doing.
    pub doing: &'static str,
    /// Where the log ends: nothing at or after this position was committed.
    pub position: Position,
    /// The class of the disk's error.
    pub kind: io::ErrorKind,
    /// The disk's words.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at position {} failed, the log is read-only: {}",
            self.doing, self.position, self.message
        )
    }
}

impl std::error::Error for Failure {}
