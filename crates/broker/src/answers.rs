//! The broker-wide bound on bytes of answers that wait for their peers.
//!
//! Answers hold no records, so that almost all are small. Some are not: all offsets of a large group, all settings of
//! thousands of topics. A peer that asks for one and does not read it keeps it in memory. What one connection holds
//! beyond [`FLOOR_LEN`] is counted, and a connection whose next answer does not fit the bound any more has to end: to
//! wait would keep the answer, and who reads its answers can ask again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The shared bound.
#[derive(Debug)]
pub(crate) struct Answers {
    limit: usize,
    used: AtomicUsize,
}

/// What one connection holds; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    answers: Arc<Answers>,
    counted: usize,
}

impl Answers {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    pub(crate) fn held(self: &Arc<Self>) -> Held {
        Held { answers: Arc::clone(self), counted: 0 }
    }
}

impl Held {
    /// Holds `len` bytes in total, at least as many as before. `false`: that is more than all connections may hold
    /// together, and nothing has changed.
    pub(crate) fn grow(&mut self, len: usize) -> bool {
        let more = len.saturating_sub(FLOOR_LEN).saturating_sub(self.counted);
        if more == 0 {
            return true;
        }
        let before = self.answers.used.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) > self.answers.limit {
            self.answers.used.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.counted += more;
        true
    }

    /// Holds `len` bytes from now on, if that is less than before.
    pub(crate) fn shrink(&mut self, len: usize) {
        let counted = self.counted.min(len.saturating_sub(FLOOR_LEN));
        self.answers.used.fetch_sub(self.counted - counted, Ordering::Relaxed);
        self.counted = counted;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

/// What every connection may hold uncounted.
const FLOOR_LEN: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_floor_counts_until_it_is_given_back() {
        let answers = Answers::new(100);
        let (mut one, mut two) = (answers.held(), answers.held());
        assert!(one.grow(FLOOR_LEN + 60) && one.grow(FLOOR_LEN + 60));
        assert!(two.grow(FLOOR_LEN), "small answers always fit");
        assert!(!two.grow(FLOOR_LEN + 41));
        assert!(two.grow(FLOOR_LEN + 40));
        one.shrink(FLOOR_LEN + 10);
        assert!(two.grow(FLOOR_LEN + 90));
        assert_eq!(answers.used.load(Ordering::Relaxed), 100);
        drop(one);
        drop(two);
        assert_eq!(answers.used.load(Ordering::Relaxed), 0);
    }
}
