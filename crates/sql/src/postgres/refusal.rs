//! Errors as PostgreSQL writes them: with a SQLSTATE.

use datafusion::arrow::error::ArrowError;

use crate::error::{QueryError, QueryErrorKind};

/// An error for the client.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// Whether it ends the session.
    pub(crate) fatal: bool,
    /// Whether it answers a `Query` or `Sync` that cannot be read: the client waits for `ReadyForQuery`.
    pub(crate) awaits_ready: bool,
    /// The SQLSTATE.
    pub(crate) state: &'static str,
    pub(crate) message: String,
}

/// The SQLSTATEs that we use, by PostgreSQL's names for them.
pub(crate) mod state {
    pub(crate) const PROTOCOL: &str = "08P01";
    pub(crate) const FEATURE_NOT_SUPPORTED: &str = "0A000";
    pub(crate) const DATA: &str = "22000";
    pub(crate) const NOT_UTF8: &str = "22021";
    pub(crate) const INVALID_PARAMETER_VALUE: &str = "22023";
    pub(crate) const INVALID_TEXT: &str = "22P02";
    pub(crate) const INVALID_BINARY: &str = "22P03";
    pub(crate) const READ_ONLY: &str = "25006";
    pub(crate) const TRANSACTION_FAILED: &str = "25P02";
    pub(crate) const STATEMENT_NAME: &str = "26000";
    pub(crate) const PORTAL_NAME: &str = "34000";
    pub(crate) const SYNTAX: &str = "42601";
    pub(crate) const COLUMN_MISSING: &str = "42703";
    pub(crate) const FUNCTION_MISSING: &str = "42883";
    pub(crate) const TABLE_MISSING: &str = "42P01";
    pub(crate) const STATEMENT_DUPLICATE: &str = "42P05";
    pub(crate) const RESOURCES: &str = "53000";
    pub(crate) const TOO_MANY_CONNECTIONS: &str = "53300";
    pub(crate) const LIMIT_EXCEEDED: &str = "54000";
    pub(crate) const CANCELED: &str = "57014";
    pub(crate) const SHUTDOWN: &str = "57P01";
    pub(crate) const IDLE: &str = "57P05";
    pub(crate) const INTERNAL: &str = "XX000";
}

impl Refusal {
    /// An error after which the session goes on.
    pub(crate) fn error(state: &'static str, message: impl Into<String>) -> Self {
        Self { fatal: false, awaits_ready: false, state, message: message.into() }
    }

    /// An error that ends the session.
    pub(crate) fn fatal(state: &'static str, message: impl Into<String>) -> Self {
        Self { fatal: true, awaits_ready: false, state, message: message.into() }
    }

    /// How bad it is, in PostgreSQL's words.
    pub(crate) const fn severity(&self) -> &'static str {
        if self.fatal { "FATAL" } else { "ERROR" }
    }
}

impl From<QueryError> for Refusal {
    fn from(error: QueryError) -> Self {
        let state = match error.kind() {
            QueryErrorKind::Syntax => state::SYNTAX,
            QueryErrorKind::NotFound => missing(&error.to_string()),
            QueryErrorKind::ReadOnly => state::READ_ONLY,
            QueryErrorKind::Unsupported => state::FEATURE_NOT_SUPPORTED,
            QueryErrorKind::Data => state::DATA,
            QueryErrorKind::ResourcesExhausted => state::RESOURCES,
            QueryErrorKind::Timeout => state::CANCELED,
            QueryErrorKind::Internal => state::INTERNAL,
        };
        Self::error(state, error.to_string())
    }
}

impl From<ArrowError> for Refusal {
    fn from(error: ArrowError) -> Self {
        Self::error(state::DATA, error.to_string())
    }
}

/// Whether it is a column, a function or a table that does not exist: drivers look at this.
fn missing(text: &str) -> &'static str {
    if text.starts_with("column") {
        state::COLUMN_MISSING
    } else if text.starts_with("function") {
        state::FUNCTION_MISSING
    } else {
        state::TABLE_MISSING
    }
}
