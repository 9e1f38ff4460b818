//! The broker-wide bound on bytes of requests that are arriving or being answered.
//!
//! A connection takes from the budget what has arrived, not what was declared. Three rules keep slow or greedy peers
//! from starving the others:
//!
//! ```text
//!  held by one connection     rule
//!  ----------------------     --------------------------------------------------------------
//!  up to FLOOR_LEN            always granted: small requests never wait for big ones
//!  small frames               may use the whole budget, big ones leave a reserve to them
//!  beyond the budget          one connection at a time may finish its frame (the overdraft);
//!                             if it does not in time while others wait, it is evicted
//! ```
//! The third one is what makes progress certain when every byte of the budget is held by frames that are incomplete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The shared budget.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    overdraft_timeout: Duration,
    state: Mutex<State>,
    freed: Notify,
}

/// INVARIANT: `used` is the sum of what all leases hold, except the one with the overdraft, so that its frame takes
/// nothing from the others.
#[derive(Debug, Default)]
struct State {
    used: usize,
    overdraft: Option<Overdraft>,
    next_lease: u64,
}

#[derive(Debug)]
struct Overdraft {
    lease: u64,
    held: usize,
    since: Instant,
    evicted: Arc<Eviction>,
}

#[derive(Debug, Default)]
struct Eviction {
    happened: AtomicBool,
    wake: Notify,
}

/// What one connection holds of the budget; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    budget: Arc<Budget>,
    id: u64,
    held: usize,
    eviction: Arc<Eviction>,
}

impl Budget {
    pub(crate) fn new(limit: usize, overdraft_timeout: Duration) -> Arc<Self> {
        Arc::new(Self { limit, overdraft_timeout, state: Mutex::new(State::default()), freed: Notify::new() })
    }

    pub(crate) fn used(&self) -> usize {
        let state = self.state.lock();
        state.used + state.overdraft.as_ref().map_or(0, |overdraft| overdraft.held)
    }

    pub(crate) fn lease(self: &Arc<Self>) -> Lease {
        let mut state = self.state.lock();
        state.next_lease += 1;
        Lease { budget: Arc::clone(self), id: state.next_lease, held: 0, eviction: Arc::default() }
    }
}

impl Lease {
    /// Tries to hold `len` bytes in total. `small` says that the frame that grows is a small one.
    pub(crate) fn try_hold(&mut self, len: usize, small: bool, now: Instant) -> bool {
        let budget = &*self.budget;
        let mut state = budget.state.lock();
        if let Some(overdraft) = state.overdraft_of(self.id) {
            overdraft.held = len;
            self.held = len;
            return true;
        }
        let used = state.used.saturating_sub(self.held).saturating_add(len);
        let reserve = if small { 0 } else { budget.limit / RESERVE_SHARE };
        if len <= self.held.max(FLOOR_LEN) || used <= budget.limit - reserve {
            state.used = used;
        } else if state.end_overdraft(budget.overdraft_timeout, now) {
            state.used -= self.held;
            let evicted = Arc::clone(&self.eviction);
            state.overdraft = Some(Overdraft { lease: self.id, held: len, since: now, evicted });
        } else {
            return false;
        }
        self.held = len;
        true
    }

    /// Holds `len` bytes from now on; never more than before. `completed` says that no frame is half received.
    pub(crate) fn shrink(&mut self, len: usize, completed: bool) {
        let mut state = self.budget.state.lock();
        let before = self.held;
        self.held = before.min(len);
        let mut freed = self.held < before;
        match state.overdraft_of(self.id) {
            None => state.used -= before - self.held,
            Some(overdraft) if !completed => overdraft.held = self.held,
            Some(_) => {
                state.overdraft = None;
                state.used += self.held;
                freed = true;
            }
        }
        drop(state);
        if freed {
            self.budget.freed.notify_waiters();
        }
    }

    /// Resolves when something was given back, or it is time to ask again.
    pub(crate) async fn freed(&self) {
        let freed = self.budget.freed.notified();
        // Asking again is what evicts an overdraft that does not end.
        let _ = tokio::time::timeout(RETRY_INTERVAL, freed).await;
    }

    /// Resolves when this connection has to end so that others can go on.
    pub(crate) async fn evicted(&self) {
        loop {
            let woken = self.eviction.wake.notified();
            if self.eviction.happened.load(Ordering::Acquire) {
                return;
            }
            woken.await;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shrink(0, true);
    }
}

impl State {
    fn overdraft_of(&mut self, lease: u64) -> Option<&mut Overdraft> {
        self.overdraft.as_mut().filter(|overdraft| overdraft.lease == lease)
    }

    /// Makes the overdraft free, if nobody has it or whoever has it had it for too long.
    fn end_overdraft(&mut self, timeout: Duration, now: Instant) -> bool {
        let ended =
            self.overdraft.take_if(|overdraft| now.saturating_duration_since(overdraft.since) >= timeout);
        if let Some(overdraft) = ended {
            self.used += overdraft.held;
            overdraft.evicted.happened.store(true, Ordering::Release);
            overdraft.evicted.wake.notify_one();
        }
        self.overdraft.is_none()
    }
}

/// What every connection may hold, whatever the others do.
pub(crate) const FLOOR_LEN: usize = 4 << 10;
/// How often a connection that waits asks again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// One part in this many is left to small frames.
const RESERVE_SHARE: usize = 8;
/// Longest frame that counts as small.
pub(crate) const SMALL_FRAME_LEN_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn big(lease: &mut Lease, len: usize, now: Instant) -> bool {
        lease.try_hold(len, false, now)
    }

    fn start() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    #[test]
    fn small_frames_find_the_reserve_that_big_ones_left() {
        let budget = Budget::new(80 << 10, Duration::from_secs(5));
        let (mut greedy, mut other, mut small) = (budget.lease(), budget.lease(), budget.lease());
        let now = start();
        assert!(big(&mut greedy, 70 << 10, now));
        assert!(big(&mut other, 20 << 10, now), "the first one beyond the budget has the overdraft");
        assert!(!big(&mut greedy, 75 << 10, now));
        assert!(small.try_hold(FLOOR_LEN, true, now));
        assert!(small.try_hold(10 << 10, true, now));
        drop(small);
        drop(greedy);
        drop(other);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn an_overdraft_that_does_not_end_is_evicted_for_the_next_one() {
        let budget = Budget::new(16 << 10, Duration::from_secs(5));
        let (mut slow, mut next) = (budget.lease(), budget.lease());
        let now = start();
        assert!(big(&mut slow, 32 << 10, now));
        assert!(!big(&mut next, 20 << 10, now + Duration::from_secs(4)));
        assert!(!slow.eviction.happened.load(Ordering::Acquire));
        assert!(big(&mut next, 20 << 10, now + Duration::from_secs(5)));
        assert!(slow.eviction.happened.load(Ordering::Acquire));
    }

    #[test]
    fn everything_is_given_back() {
        let budget = Budget::new(1 << 20, Duration::from_secs(5));
        let mut lease = budget.lease();
        assert!(big(&mut lease, 1000, start()));
        lease.shrink(400, false);
        assert_eq!(budget.used(), 400);
        drop(lease);
        assert_eq!(budget.used(), 0);
    }
}
