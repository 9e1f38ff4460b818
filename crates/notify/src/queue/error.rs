//! Errors of queues, dead letters and intents: a kind says what to do.

use std::fmt;

/// Why a queue, the dead letters or the intents did not open.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct OpenError {
    kind: OpenErrorKind,
    message: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What kept it from opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// The options contradict each other.
    Options,
    /// Another process, or this one, has it open.
    Locked,
    /// What was durable is gone or altered.
    Damaged,
    /// It was written by a newer version.
    Newer,
    /// The disk is full or fails: to be tried again.
    Disk,
}

impl OpenError {
    pub(crate) fn new(kind: OpenErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), source: None }
    }

    /// What kept it from opening.
    #[must_use]
    pub const fn kind(&self) -> OpenErrorKind {
        self.kind
    }

    fn because(
        kind: OpenErrorKind,
        message: &str,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self { kind, message: message.to_owned(), source: Some(Box::new(source)) }
    }

    pub(crate) fn replay<E: fmt::Display>(error: kolumn_journal::ReplayError<E>) -> Self {
        match error {
            kolumn_journal::ReplayError::Read(error) => {
                let kind = match error.kind() {
                    kolumn_journal::ReadErrorKind::Damaged => OpenErrorKind::Damaged,
                    _ => OpenErrorKind::Disk,
                };
                Self::because(kind, "reading the journal failed", error)
            }
            kolumn_journal::ReplayError::Stopped(error) => Self::new(OpenErrorKind::Damaged, error),
            other => Self::new(OpenErrorKind::Damaged, other),
        }
    }
}

impl From<kolumn_journal::OpenError> for OpenError {
    fn from(error: kolumn_journal::OpenError) -> Self {
        use kolumn_journal::OpenErrorKind as Theirs;
        let kind = match error.kind() {
            Theirs::InvalidOptions => OpenErrorKind::Options,
            Theirs::Locked => OpenErrorKind::Locked,
            Theirs::Damaged(_) | Theirs::WrongLog => OpenErrorKind::Damaged,
            Theirs::UnknownVersion => OpenErrorKind::Newer,
            _ => OpenErrorKind::Disk,
        };
        Self::because(kind, "opening the journal failed", error)
    }
}

/// Why something was not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PutError {
    kind: PutErrorKind,
    message: String,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PutErrorKind {
    /// A limit, or the disk, is full: there is room again when messages were delivered.
    Full,
    /// It is too long, now and for ever.
    TooLarge,
    /// It was closed; nothing was written.
    Closed,
    /// The disk has failed: it has to be opened again. Whether it was written is not known.
    Failed,
}

impl PutError {
    pub(crate) fn new(kind: PutErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string() }
    }

    pub(crate) fn failed() -> Self {
        Self::new(PutErrorKind::Failed, "the journal has failed and is read-only")
    }

    pub(crate) fn closed() -> Self {
        Self::new(PutErrorKind::Closed, "it was closed")
    }

    /// What to do about it.
    #[must_use]
    pub const fn kind(&self) -> PutErrorKind {
        self.kind
    }
}

/// Why a message was not set aside. It stays in its batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetAsideError {
    /// The queue was opened without dead letters.
    #[error("the queue has no dead letters to set a message aside in")]
    NoDeadLetters,
    /// There is no such message in the batch.
    #[error("message {0} is not in the batch")]
    NotInBatch(u64),
    /// The dead letters did not take it.
    #[error("the dead letters did not take the message")]
    Refused(#[source] PutError),
}

/// Why dead letters were not read, replayed or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LetterError {
    /// There is no letter with this number, or none any more.
    #[error("there is no dead letter {0}")]
    Unknown(u64),
    /// It could not be read.
    #[error("reading dead letter {0} failed")]
    Read(u64, #[source] kolumn_journal::ReadError),
    /// It was read, and is no letter.
    #[error("dead letter {0} is damaged: {1}")]
    Damaged(u64, String),
    /// It was not written that it is removed, or the message was not put again.
    #[error("changing the dead letters failed")]
    Put(#[from] PutError),
}
