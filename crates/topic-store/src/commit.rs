//! Waiting for durability: the future that callers hold, and the list of those who wait.
//!
//! A commit that nobody has asked for yet costs nothing but its number: it is compared with the number up to which
//! everything is durable. Only who asks too early is put on the list.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::{Condvar, Mutex};

use crate::error::CommitError;

/// A write on its way to the disk. Resolves when it is durable and visible; needs no particular runtime.
///
/// Dropping it changes nothing: the write goes on.
#[derive(Debug)]
#[must_use = "a write is acknowledged by awaiting it"]
pub struct Commit<T> {
    value: Option<T>,
    durable: Option<Durable>,
}

/// What a commit waits for.
#[derive(Debug)]
struct Durable {
    shared: Arc<Shared>,
    sequence: u64,
    /// Its place in the list, once it has one.
    ticket: Option<u64>,
}

impl<T> Commit<T> {
    pub(crate) fn ready(value: T) -> Self {
        Self { value: Some(value), durable: None }
    }

    /// What will be the outcome if the log does not fail; `None` after it was taken.
    #[must_use]
    pub const fn peek(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// The outcome without waiting: `None` while it is under way. Once it gave an outcome it gives no second one.
    pub fn try_take(&mut self) -> Option<Result<T, CommitError>> {
        let outcome = match &self.durable {
            None => Ok(()),
            Some(durable) => durable.shared.outcome(durable.sequence)?,
        };
        Some(self.settle(outcome))
    }

    /// Blocks until the outcome is there; for callers without a runtime, whose threads it would stop: await it there.
    ///
    /// # Errors
    /// If the log failed first.
    pub fn wait(mut self) -> Result<T, CommitError> {
        let outcome = self.durable.as_ref().map_or(Ok(()), |durable| durable.shared.wait(durable.sequence));
        self.settle(outcome)
    }

    fn settle(&mut self, outcome: Result<(), CommitError>) -> Result<T, CommitError> {
        self.durable = None;
        let value = self.value.take();
        outcome.and_then(|()| value.ok_or_else(|| CommitError::new("asked twice")))
    }
}

impl<T: Unpin> Future for Commit<T> {
    type Output = Result<T, CommitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.durable {
            None => Ok(()),
            Some(Durable { shared, sequence, ticket }) => {
                std::task::ready!(shared.poll(*sequence, ticket, context.waker()))
            }
        };
        Poll::Ready(self.settle(outcome))
    }
}

/// The store's side: tells those who wait. Dropped, it tells them that nothing more becomes durable.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Sequences below this are durable. Changed under the lock only.
    durable: AtomicU64,
    list: Mutex<List>,
    /// Wakes threads that block.
    news: Condvar,
}

/// INVARIANT: `waiters` ascend by sequence and ticket; none of them is durable, and there are none after a failure.
#[derive(Debug, Default)]
struct List {
    failed: Option<CommitError>,
    waiters: VecDeque<Waiter>,
    next_ticket: u64,
}

#[derive(Debug)]
struct Waiter {
    sequence: u64,
    ticket: u64,
    waker: Waker,
}

impl Waiting {
    /// A commit of `value` that resolves once `sequence` is durable.
    pub(crate) fn commit<T>(&self, sequence: u64, value: T) -> Commit<T> {
        let durable = Durable { shared: Arc::clone(&self.shared), sequence, ticket: None };
        Commit { value: Some(value), durable: Some(durable) }
    }

    /// Everything below `sequence` is durable and visible, unless there was a failure before.
    pub(crate) fn resolve_below(&self, sequence: u64) {
        {
            let list = self.shared.list.lock();
            if list.failed.is_some() {
                return;
            }
            self.shared.durable.fetch_max(sequence, Ordering::Release);
        }
        self.shared.wake_below(sequence);
    }

    /// Nothing more becomes durable.
    pub(crate) fn fail(&self, error: &CommitError) {
        self.shared.list.lock().failed.get_or_insert_with(|| error.clone());
        self.shared.wake_below(u64::MAX);
    }

    pub(crate) fn is_durable(&self, sequence: u64) -> bool {
        self.shared.is_durable(sequence)
    }

    pub(crate) fn failure(&self) -> Option<CommitError> {
        self.shared.list.lock().failed.clone()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.fail(&CommitError::new("the store was closed"));
    }
}

impl Shared {
    fn is_durable(&self, sequence: u64) -> bool {
        sequence < self.durable.load(Ordering::Acquire)
    }

    /// What became of a write; `None` while it is under way.
    fn outcome(&self, sequence: u64) -> Option<Result<(), CommitError>> {
        if self.is_durable(sequence) {
            return Some(Ok(()));
        }
        self.outcome_in(&self.list.lock(), sequence)
    }

    /// The same for who has the lock, so that nothing changes before it is on the list.
    fn outcome_in(&self, list: &List, sequence: u64) -> Option<Result<(), CommitError>> {
        if self.is_durable(sequence) { Some(Ok(())) } else { list.failed.clone().map(Err) }
    }

    fn poll(&self, sequence: u64, ticket: &mut Option<u64>, waker: &Waker) -> Poll<Result<(), CommitError>> {
        if self.is_durable(sequence) {
            return Poll::Ready(Ok(()));
        }
        let mut list = self.list.lock();
        if let Some(outcome) = self.outcome_in(&list, sequence) {
            return Poll::Ready(outcome);
        }
        list.put(sequence, ticket, waker);
        Poll::Pending
    }

    fn wait(&self, sequence: u64) -> Result<(), CommitError> {
        let mut list = self.list.lock();
        loop {
            if let Some(outcome) = self.outcome_in(&list, sequence) {
                return outcome;
            }
            self.news.wait(&mut list);
        }
    }

    /// Wakes without the lock, because who is woken may ask at once.
    fn wake_below(&self, sequence: u64) {
        while let Some(waker) = self.next_below(sequence) {
            waker.wake();
        }
        self.news.notify_all();
    }

    fn next_below(&self, sequence: u64) -> Option<Waker> {
        let mut list = self.list.lock();
        list.waiters.pop_front_if(|waiter| waiter.sequence < sequence).map(|waiter| waiter.waker)
    }
}

impl List {
    /// Puts a waiter in its place, or only its waker anew where it has one.
    fn put(&mut self, sequence: u64, ticket: &mut Option<u64>, waker: &Waker) {
        let place = (sequence, *ticket.get_or_insert(self.next_ticket));
        self.next_ticket = self.next_ticket.max(place.1.saturating_add(1));
        match self.waiters.binary_search_by_key(&place, |waiter| (waiter.sequence, waiter.ticket)) {
            Ok(at) => {
                if let Some(waiter) = self.waiters.get_mut(at) {
                    waiter.waker.clone_from(waker);
                }
            }
            Err(at) => {
                let (sequence, ticket) = place;
                self.waiters.insert(at, Waiter { sequence, ticket, waker: waker.clone() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Counter {
        fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn poll<T: Unpin>(commit: &mut Commit<T>, waker: &Waker) -> Poll<Result<T, CommitError>> {
        Pin::new(commit).poll(&mut Context::from_waker(waker))
    }

    #[test]
    fn a_commit_resolves_when_its_sequence_is_durable_and_not_before() {
        let waiting = Waiting::default();
        let mut first = waiting.commit(3, "a");
        let mut second = waiting.commit(4, "b");
        waiting.resolve_below(4);
        assert_eq!(first.try_take().expect("durable").expect("no failure"), "a");
        assert!(second.try_take().is_none());
        assert!(waiting.commit(3, "late").try_take().is_some());
        waiting.fail(&CommitError::new("disk"));
        assert!(second.try_take().expect("failed").is_err());
        assert!(second.try_take().expect("failed").is_err(), "not the value after all");
        assert!(waiting.commit(9, "after").try_take().expect("failed").is_err());
    }

    #[test]
    fn who_waits_is_woken_once_by_its_own_sequence_through_its_last_waker() {
        let waiting = Waiting::default();
        let counters: Vec<Arc<Counter>> = (0..20).map(|_| Arc::default()).collect();
        let sequence_of = |n: usize| u64::try_from(n * 7 % 5).expect("small");
        let mut commits: Vec<_> = (0..20).map(|n| waiting.commit(sequence_of(n), n)).collect();
        for (commit, counter) in commits.iter_mut().zip(&counters) {
            assert!(poll(commit, Waker::noop()).is_pending());
            assert!(poll(commit, &Arc::clone(counter).into()).is_pending());
        }
        for durable in 0..=5 {
            waiting.resolve_below(durable);
            for (n, counter) in counters.iter().enumerate() {
                assert_eq!(counter.count(), usize::from(sequence_of(n) < durable), "{n} at {durable}");
            }
        }
        for (n, commit) in commits.iter_mut().enumerate() {
            assert!(matches!(poll(commit, Waker::noop()), Poll::Ready(Ok(value)) if value == n));
        }
    }

    #[test]
    fn a_failure_reaches_whoever_waits_and_nothing_is_durable_after_it() {
        let waiting = Waiting::default();
        let counter = Arc::<Counter>::default();
        let (mut polled, mut unasked) = (waiting.commit(3, ()), waiting.commit(4, ()));
        assert!(poll(&mut polled, &Arc::clone(&counter).into()).is_pending());
        waiting.fail(&CommitError::new("disk"));
        waiting.resolve_below(9);
        assert_eq!(counter.count(), 1);
        assert!(matches!(poll(&mut polled, Waker::noop()), Poll::Ready(Err(_))));
        assert!(unasked.try_take().expect("failed").is_err());
    }

    #[test]
    fn threads_that_block_go_on_when_their_write_is_durable_or_never_will_be() {
        let waiting = Waiting::default();
        let (durable, lost) = (waiting.commit(0, "a"), waiting.commit(1, "b"));
        let threads = [durable, lost].map(|commit| std::thread::spawn(move || commit.wait().ok()));
        waiting.resolve_below(1);
        drop(waiting);
        let outcomes = threads.map(|thread| thread.join().expect("no panic"));
        assert_eq!(outcomes, [Some("a"), None]);
    }
}
