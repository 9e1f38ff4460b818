//! Offsets that nobody came back for.
//!
//! An empty group keeps its offsets for the time of retention, counted from when it became empty or, if that was later,
//! from their commit; offsets of consumers without a group from their commit alone. A group whose members are there keeps
//! them for as long, but for those of topics that it no longer subscribes to. What expires is decided here, and written as
//! a deletion.

use std::sync::Arc;
use std::time::Duration;

use kolumn_topic_store::{CommittedOffset, PartitionIndex, Timestamp, TopicId};
use tokio::time::MissedTickBehavior;

use super::entry::Entry;
use super::{Coordinator, Reach, memory};
use crate::context::{Phase, reached};
use crate::group::GroupState;
use crate::server::wall_clock;

/// Looks for what has expired from time to time, until the broker drains.
pub(crate) async fn run_expiry(coordinator: Arc<Coordinator>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut phase = coordinator.phase();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = reached(&mut phase, Phase::Draining) => return,
        }
        let coordinator = Arc::clone(&coordinator);
        // A round that panicked has nothing to say; the next one comes.
        let _ = tokio::task::spawn_blocking(move || coordinator.expire(wall_clock())).await;
    }
}

impl Coordinator {
    /// Deletes what has expired; what the store refuses now is found again.
    pub(super) fn expire(self: &Arc<Self>, now: Timestamp) {
        for group in self.store.groups(self.view) {
            if *self.phase.borrow() != Phase::Running {
                return;
            }
            let offsets = self.store.committed_offsets(self.view, &group);
            // Most groups have nothing that is old, and are left alone.
            if offsets.is_empty() || offsets.iter().any(|(.., offset)| self.is_old(offset.committed, now)) {
                let _ = self.visit(&group, Reach::Known, |entry, _| {
                    (self.expire_group(&group, entry, now), Vec::new())
                });
            }
        }
    }

    fn expire_group(&self, group: &str, entry: &mut Entry, now: Timestamp) {
        let offsets = self.store.committed_offsets(self.view, group);
        let is_old = |offset: &CommittedOffset| self.is_old(offset.committed, now);
        let expired: Vec<_> = match entry.group.state() {
            GroupState::Empty if entry.is_idle() => {
                if !self.was_left_long_ago(group, now) {
                    // The time of those without offsets is over when they are left.
                    if offsets.is_empty() {
                        let _ = self.delete_empty(group, entry);
                    }
                    return;
                }
                if offsets.iter().all(|(.., offset)| is_old(offset)) {
                    let _ = self.delete_empty(group, entry);
                    return;
                }
                old(&offsets, is_old).collect()
            }
            GroupState::Stable => {
                let Some(subscribed) = entry.group.subscribed_topics() else { return };
                let is_subscribed = |topic: TopicId| {
                    let topic = self.store.topic_by_id(self.view, topic);
                    topic.is_some_and(|topic| subscribed.contains(&*topic.name))
                };
                old(&offsets, is_old).filter(|(topic, _)| !is_subscribed(*topic)).collect()
            }
            _ => return,
        };
        if !expired.is_empty() {
            let _ = self.store.delete_offsets(self.view, group, &expired);
        }
    }

    /// Whether an empty group has been so for as long as offsets are kept; a group that never had members is.
    fn was_left_long_ago(&self, group: &str, now: Timestamp) -> bool {
        let sealed = self.store.group_memory(self.view, group).unwrap_or_default();
        memory::open(&sealed).is_none_or(|(left, _)| self.is_old(left, now))
    }

    fn is_old(&self, since: Timestamp, now: Timestamp) -> bool {
        let retention = i64::try_from(self.limits.offsets_retention.as_millis()).unwrap_or(i64::MAX);
        since.value().saturating_add(retention) <= now.value()
    }
}

fn old(
    offsets: &[(TopicId, PartitionIndex, CommittedOffset)],
    is_old: impl Fn(&CommittedOffset) -> bool,
) -> impl Iterator<Item = (TopicId, PartitionIndex)> {
    offsets
        .iter()
        .filter(move |(.., offset)| is_old(offset))
        .map(|(topic, partition, _)| (*topic, *partition))
}

/// How often is looked for what has expired.
const INTERVAL: Duration = Duration::from_mins(10);
