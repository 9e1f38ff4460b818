//! Why a broker did not start or stop as asked.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use kolumn_topic_store::{CommitError, MaintenanceError, OpenError, TopicError};

use crate::settings::SettingsError;

/// Why a broker did not start.
#[derive(Debug)]
pub struct StartError {
    kind: StartErrorKind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kinds of [`StartError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartErrorKind {
    /// The settings cannot work.
    Settings,
    /// The data directory cannot be used: no permission, no space, or another broker has it.
    Storage,
    /// An address cannot be listened on.
    Listen,
}

impl StartError {
    /// What has to be corrected.
    #[must_use]
    pub fn kind(&self) -> StartErrorKind {
        self.kind
    }

    pub(crate) fn settings(error: SettingsError) -> Self {
        Self::new(StartErrorKind::Settings, "the settings cannot work", error)
    }

    pub(crate) fn directory(dir: &Path, error: io::Error) -> Self {
        Self::new(
            StartErrorKind::Storage,
            format!("the data directory `{}` cannot be used", dir.display()),
            error,
        )
    }

    pub(crate) fn open(dir: &Path, error: OpenError) -> Self {
        Self::new(StartErrorKind::Storage, format!("the log in `{}` cannot be opened", dir.display()), error)
    }

    pub(crate) fn random(error: io::Error) -> Self {
        Self::new(StartErrorKind::Storage, "the system gives no random numbers", error)
    }

    pub(crate) fn view(error: TopicError) -> Self {
        Self::new(StartErrorKind::Storage, "the view cannot be created", error)
    }

    pub(crate) fn commit(error: CommitError) -> Self {
        Self::new(StartErrorKind::Storage, "the view cannot be created", error)
    }

    pub(crate) fn task(error: tokio::task::JoinError) -> Self {
        Self::new(StartErrorKind::Storage, "opening the log was interrupted", error)
    }

    pub(crate) fn listen(address: SocketAddr, error: io::Error) -> Self {
        Self::new(StartErrorKind::Listen, format!("cannot listen on `{address}`"), error)
    }

    fn new(
        kind: StartErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { kind, message: message.into(), source: Some(source.into()) }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Why the store did not close properly at shutdown. What was acknowledged is durable all the same.
#[derive(Debug)]
pub struct ShutdownError {
    source: MaintenanceError,
}

impl ShutdownError {
    pub(crate) fn new(source: MaintenanceError) -> Self {
        Self { source }
    }
}

impl fmt::Display for ShutdownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the log was not closed properly")
    }
}

impl Error for ShutdownError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
