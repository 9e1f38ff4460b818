//! When groups want to be looked at: one queue and one task for all of them.
//!
//! A group is in the queue once, at a time not later than its deadline. A deadline that moves away, as it does with each
//! heartbeat, leaves the queue as it is: the group is then looked at too early, and queued again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Coordinator;
use crate::context::{Phase, reached};

#[derive(Debug, Default)]
pub(super) struct Timers {
    queue: Mutex<BTreeSet<(Instant, Arc<str>)>>,
    /// There is a new first one.
    changed: Notify,
}

impl Timers {
    pub(super) fn set(&self, at: Instant, group: &Arc<str>) {
        let mut queue = self.queue.lock();
        let is_first = queue.first().is_none_or(|(first, _)| at < *first);
        queue.insert((at, Arc::clone(group)));
        drop(queue);
        if is_first {
            self.changed.notify_one();
        }
    }

    pub(super) fn cancel(&self, at: Instant, group: &Arc<str>) {
        self.queue.lock().remove(&(at, Arc::clone(group)));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.queue.lock().len()
    }

    pub(super) fn first(&self) -> Option<Instant> {
        self.queue.lock().first().map(|(at, _)| *at)
    }

    /// Takes a group out whose time has come.
    fn take_due(&self, now: Instant) -> Option<(Instant, Arc<str>)> {
        let mut queue = self.queue.lock();
        if queue.first()?.0 > now { None } else { queue.pop_first() }
    }
}

/// Looks at groups when their time comes, until the broker drains.
pub(crate) async fn run_timers(coordinator: Arc<Coordinator>) {
    let mut phase = coordinator.phase();
    loop {
        let first = coordinator.timers.first();
        tokio::select! {
            () = sleep_until(first) => {}
            () = coordinator.timers.changed.notified() => continue,
            () = reached(&mut phase, Phase::Draining) => return,
        }
        let now = tokio::time::Instant::now().into_std();
        while let Some((at, group)) = coordinator.timers.take_due(now) {
            coordinator.handle_timeout(&group, at);
            // Many at once must not keep the runtime's thread from others.
            tokio::task::yield_now().await;
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
