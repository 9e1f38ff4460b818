//! What an engine tells about itself, as typed events.

use std::fmt;

use crate::error::QueryError;

/// Receives the engine's events. Adapters turn them into log lines and metrics.
///
/// # Contract
/// Called on a thread of the runtime: an implementation returns quickly and does not panic.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Something happened. The default does nothing.
    fn event(&self, event: &Event<'_>) {
        let _ = event;
    }
}

/// An observer that listens to nothing.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing in it")]
pub struct Silent;

impl Observer for Silent {}

/// What happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A statement has failed through no fault of whoever sent it: an error of kind
    /// [`Internal`](crate::QueryErrorKind::Internal). They are told little of it; what is behind it is the error's source.
    #[non_exhaustive]
    Fault {
        /// The statement.
        sql: &'a str,
        /// Why.
        error: &'a QueryError,
    },
}
