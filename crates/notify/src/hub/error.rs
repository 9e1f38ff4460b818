//! What goes wrong with a hub, and with one of its targets.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::{Arn, ConfigErrors, TargetSettings};
use crate::delivery::AddError;
use crate::queue::{OpenError, PutError};

/// What a hub could not do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// A file or folder could not be read or written.
    #[error("`{}`: {error}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The intents cannot be opened; most often, the folder is in use.
    #[error("the intents cannot be opened")]
    Intents(#[source] OpenError),
    /// The queue of a target, or its dead letters, cannot be opened.
    #[error("`{}` cannot be opened as a queue of `{target}`", path.display())]
    Queue {
        /// Whose.
        target: Arn,
        /// Its folder.
        path: PathBuf,
        /// Why.
        #[source]
        error: OpenError,
    },
    /// A file of rules is not what was written.
    #[error("`{}` has no rules that could be read: {reason}", path.display())]
    Rules {
        /// Which one.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A bucket's name is empty or longer than a file's name may be.
    #[error("`{bucket}` is no name of a bucket that could have rules")]
    BucketName {
        /// What was given.
        bucket: String,
    },
    /// There is such a target.
    #[error(transparent)]
    Exists(AddError),
    /// The queue of a target has no room for one more event.
    #[error("the queue of `{target}` is full")]
    Full {
        /// Whose.
        target: Arn,
    },
    /// The queue of a target has failed, and takes nothing until it is opened again.
    #[error("the queue of `{target}` has failed")]
    Failed {
        /// Whose.
        target: Arn,
    },
    /// The intent could not be written.
    #[error("the intent of an operation could not be written")]
    Begin(#[source] PutError),
    /// So many clients listen as may.
    #[error("{max} clients listen already")]
    TooManyListeners {
        /// How many may.
        max: usize,
    },
    /// The runtime ends.
    #[error("the runtime ends")]
    Runtime(#[source] tokio::task::JoinError),
}

impl HubError {
    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.into(), error }
    }
}

/// A target that is not as it was meant to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFault {
    target: String,
    reason: String,
}

impl TargetFault {
    pub(super) fn new(arn: &Arn, reason: &str) -> Self {
        Self { target: arn.to_string(), reason: reason.into() }
    }

    pub(super) fn refused(settings: &TargetSettings, errors: &ConfigErrors) -> Self {
        let target = format!("{}:{}", settings.kind().subsystem(), settings.id());
        Self { target, reason: errors.to_string() }
    }

    /// The target: its ARN, or as the configuration has it if it is no target yet.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// What is wrong, with key and variable; without secrets.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for TargetFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.target, self.reason)
    }
}
