//! How a send fails.

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

/// Why a batch, or the rest of it, was not delivered.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct SendError {
    kind: SendErrorKind,
    what: String,
    delivered: usize,
    retry_after: Option<Duration>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What is to be done about the first delivery that was not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a message is sent again or it is not")]
pub enum SendErrorKind {
    /// To send it again, later.
    Temporary,
    /// Never to send it again: it will not be taken.
    Permanent,
}

impl SendError {
    /// The deliveries cannot be sent now.
    #[must_use]
    pub fn temporary(what: impl Into<String>) -> Self {
        Self::new(SendErrorKind::Temporary, what.into())
    }

    /// The first delivery will never be taken.
    #[must_use]
    pub fn permanent(what: impl Into<String>) -> Self {
        Self::new(SendErrorKind::Permanent, what.into())
    }

    fn new(kind: SendErrorKind, what: String) -> Self {
        Self { kind, what, delivered: 0, retry_after: None, source: None }
    }

    /// With what it came from.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// After so many deliveries, from the front of the batch, were delivered.
    #[must_use]
    pub fn after(mut self, delivered: usize) -> Self {
        self.delivered = delivered;
        self
    }

    /// With the time that the other side asks to be left alone.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// What is to be done about the first delivery that was not delivered.
    #[must_use]
    pub fn kind(&self) -> SendErrorKind {
        self.kind
    }

    /// How many deliveries, from the front of the batch, were delivered.
    #[must_use]
    pub fn delivered(&self) -> usize {
        self.delivered
    }

    /// How long the other side asks to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// Why a target cannot be made from its configuration. It names what is wrong, but shows no secrets.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct BuildError {
    what: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl BuildError {
    /// It cannot be made for this reason.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }

    /// With what it came from.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// An error and what it came from, in one line: for logs, and as the reason of a dead letter.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        // Some errors repeat their cause in their own text.
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {cause_text}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_chain_has_each_cause_once() {
        let error = SendError::temporary("no connection to `localhost:1`")
            .caused_by(SendError::temporary("connect").caused_by(io::Error::other("refused")));
        assert_eq!(chain(&error), "no connection to `localhost:1`: connect: refused");
        let error = SendError::temporary("connect: refused").caused_by(io::Error::other("refused"));
        assert_eq!(chain(&error), "connect: refused");
    }

    #[test]
    fn an_error_says_how_far_it_got_and_what_is_to_be_done() {
        let error = SendError::permanent("too large").after(3).with_retry_after(Duration::from_secs(2));
        assert_eq!((error.kind(), error.delivered()), (SendErrorKind::Permanent, 3));
        assert_eq!(error.retry_after(), Some(Duration::from_secs(2)));
        assert_eq!(SendError::temporary("busy").kind(), SendErrorKind::Temporary);
    }
}
