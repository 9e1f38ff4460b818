//! Who asks, and what may be read.

use std::fmt::Debug;
use std::sync::Arc;

/// On whose behalf a statement runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A principal of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// Whoever has not said who it is.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new("anonymous")
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// A table's full name, without the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a name has these two parts")]
pub struct TableName<'a> {
    /// The schema: `<bucket>/kafka_topics` or `system`.
    pub schema: &'a str,
    /// The table: a topic's name.
    pub table: &'a str,
}

/// Decides what a principal may read.
///
/// # Contract
/// Called while a statement is planned, for each table that it names or lists, on a thread of the runtime: it must not
/// block. A table that may not be read looks as if it did not exist.
pub trait Policy: Debug + Send + Sync {
    /// Whether the principal may read the table.
    fn may_read(&self, principal: &Principal, table: TableName<'_>) -> bool;
}

/// Everybody may read everything.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing in it")]
pub struct AllowAll;

impl Policy for AllowAll {
    fn may_read(&self, _principal: &Principal, _table: TableName<'_>) -> bool {
        true
    }
}
