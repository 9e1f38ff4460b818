//! Times for what happens now.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::event::Timestamp;

/// Times that neither repeat nor go back while the program runs, whatever the clock does.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    last: AtomicU64,
}

impl Stamps {
    pub(super) fn next(&self) -> Timestamp {
        let now = now().unix_nanos();
        let step = |last: u64| Some(now.max(last.saturating_add(1)));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        let last = last.unwrap_or_else(|last| last);
        Timestamp::from_unix_nanos(now.max(last.saturating_add(1)))
    }
}

#[expect(clippy::disallowed_methods, reason = "the shell of a server is where the clock is read")]
pub(super) fn now() -> Timestamp {
    SystemTime::now().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_forward_also_when_the_clock_does_not() {
        let stamps = Stamps::default();
        let first = stamps.next();
        assert!(stamps.next() > first);
        let far = now().unix_nanos() + 3_600_000_000_000;
        stamps.last.store(far, Ordering::Relaxed);
        let after = [stamps.next(), stamps.next()].map(Timestamp::unix_nanos);
        assert_eq!(after, [far + 1, far + 2]);
    }
}
