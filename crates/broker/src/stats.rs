//! Counters of a running broker.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What a broker holds and has done, at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Open connections, which is also the number of tasks that serve them.
    pub connections: usize,
    /// Connections accepted since start.
    pub connections_accepted: u64,
    /// Connections refused since start because there were too many.
    pub connections_refused: u64,
    /// Bytes of requests that are arriving or being answered.
    pub in_flight_len: usize,
    /// Fetches that wait for records.
    pub long_polls: usize,
    /// Requests taken up since start.
    pub requests: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicUsize,
    pub(crate) connections_accepted: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
    pub(crate) long_polls: AtomicUsize,
    pub(crate) requests: AtomicU64,
}

impl Counters {
    pub(crate) fn stats(&self, in_flight_len: usize) -> Stats {
        Stats {
            connections: self.connections.load(Ordering::Relaxed),
            connections_accepted: self.connections_accepted.load(Ordering::Relaxed),
            connections_refused: self.connections_refused.load(Ordering::Relaxed),
            in_flight_len,
            long_polls: self.long_polls.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
        }
    }
}

/// Counts itself for as long as it lives, whatever way its owner ends.
#[derive(Debug)]
pub(crate) struct Counted<'c>(&'c AtomicUsize);

impl<'c> Counted<'c> {
    pub(crate) fn new(counter: &'c AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
