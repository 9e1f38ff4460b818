//! Waiting for durability: the future that callers hold, and the list of those who wait.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::error::CommitError;

/// A write on its way to the disk. Resolves when it is durable and visible; needs no particular runtime.
///
/// Dropping it changes nothing: the write goes on.
#[derive(Debug)]
#[must_use = "a write is acknowledged by awaiting it"]
pub struct Commit<T> {
    value: Option<T>,
    durable: Option<oneshot::Receiver<Result<(), CommitError>>>,
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
        let outcome = match &mut self.durable {
            None => Ok(()),
            Some(receiver) => match receiver.try_recv() {
                Ok(outcome) => outcome,
                Err(oneshot::error::TryRecvError::Empty) => return None,
                Err(oneshot::error::TryRecvError::Closed) => Err(CommitError::new("the store was closed")),
            },
        };
        self.durable = None;
        Some(outcome.and_then(|()| self.value.take().ok_or_else(|| CommitError::new("asked twice"))))
    }

    /// Blocks until the outcome is there; for callers without a runtime.
    ///
    /// # Errors
    /// If the log failed first.
    ///
    /// # Panics
    /// When called inside an asynchronous runtime; await it there.
    pub fn wait(mut self) -> Result<T, CommitError> {
        if let Some(receiver) = self.durable.take() {
            receiver.blocking_recv().unwrap_or_else(|_| Err(CommitError::new("the store was closed")))?;
        }
        self.value.take().ok_or_else(|| CommitError::new("asked twice"))
    }
}

impl<T: Unpin> Future for Commit<T> {
    type Output = Result<T, CommitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(receiver) = &mut self.durable {
            match Pin::new(receiver).poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Ok(()))) => self.durable = None,
                Poll::Ready(Ok(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(Err(_)) => return Poll::Ready(Err(CommitError::new("the store was closed"))),
            }
        }
        Poll::Ready(self.value.take().ok_or_else(|| CommitError::new("asked twice")))
    }
}

/// Those who wait, by the sequence of the entry that they wait for.
///
/// INVARIANT: every waiter's sequence is at or above `durable`.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Sequences below this are durable.
    durable: u64,
    failed: Option<CommitError>,
    waiters: BTreeMap<u64, Vec<oneshot::Sender<Result<(), CommitError>>>>,
}

impl Waiting {
    /// A commit of `value` that resolves once `sequence` is durable.
    pub(crate) fn commit<T>(&self, sequence: u64, value: T) -> Commit<T> {
        let mut inner = self.inner.lock();
        if sequence < inner.durable {
            return Commit::ready(value);
        }
        let (sender, receiver) = oneshot::channel();
        match &inner.failed {
            Some(error) => drop(sender.send(Err(error.clone()))),
            None => inner.waiters.entry(sequence).or_default().push(sender),
        }
        Commit { value: Some(value), durable: Some(receiver) }
    }

    /// Everything below `sequence` is durable and visible.
    pub(crate) fn resolve_below(&self, sequence: u64) {
        let mut resolved = {
            let mut inner = self.inner.lock();
            inner.durable = inner.durable.max(sequence);
            let rest = inner.waiters.split_off(&sequence);
            std::mem::replace(&mut inner.waiters, rest)
        };
        while let Some((_, senders)) = resolved.pop_first() {
            for sender in senders {
                // Nobody waits any more: the write went on without them.
                let _ = sender.send(Ok(()));
            }
        }
    }

    /// Nothing more becomes durable.
    pub(crate) fn fail(&self, error: &CommitError) {
        let failed = {
            let mut inner = self.inner.lock();
            inner.failed.get_or_insert_with(|| error.clone());
            std::mem::take(&mut inner.waiters)
        };
        for sender in failed.into_values().flatten() {
            let _ = sender.send(Err(error.clone()));
        }
    }

    pub(crate) fn is_durable(&self, sequence: u64) -> bool {
        sequence < self.inner.lock().durable
    }

    pub(crate) fn failure(&self) -> Option<CommitError> {
        self.inner.lock().failed.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(waiting.commit(9, "after").try_take().expect("failed").is_err());
    }
}
