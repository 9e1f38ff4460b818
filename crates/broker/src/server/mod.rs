//! The shell around the engine: sockets, tasks, clocks. The only place of this crate that reads the time of day.
//!
//! ```text
//! listener task --accept--> connection task (one each) --spawn_blocking--> reads that touch the disk
//! maintenance task --spawn_blocking--> Store::maintain, every interval
//! ```

mod connection;
mod listener;
mod maintenance;

use std::time::{SystemTime, UNIX_EPOCH};

use kolumn_topic_store::Timestamp;

pub(crate) use self::listener::{Listener, accept};
pub(crate) use self::maintenance::maintain;

/// The time of day.
#[expect(clippy::disallowed_methods, reason = "the shell is where the clock is read")]
pub(crate) fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::new(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// How many connections the limit of open files allows, when the log has what it needs.
pub(crate) fn connections_allowed() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    limit.saturating_sub(FILES_OF_THE_LOG.min(limit / 2)).max(1)
}

/// Descriptors that connections must leave: files of the log that are open or read, and the process's own.
const FILES_OF_THE_LOG: usize = 1024;
