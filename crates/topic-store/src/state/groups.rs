//! The groups of a view: what their coordinators remember, what they have committed, and what all of it costs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::group::{CommittedOffset, OffsetCommit};
use crate::ids::{PartitionIndex, TopicId};

/// INVARIANT: no group is empty; `by_topic` names exactly the groups that have offsets of a topic; `cost` is the sum of
/// what the groups cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Groups {
    by_id: BTreeMap<Arc<str>, GroupState>,
    /// So that the end of a topic does not take a walk through all groups.
    by_topic: BTreeMap<TopicId, BTreeSet<Arc<str>>>,
    cost: usize,
}

/// One group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GroupState {
    /// Empty: the group has offsets only.
    pub(crate) memory: Bytes,
    pub(crate) offsets: BTreeMap<(TopicId, PartitionIndex), CommittedOffset>,
}

impl Groups {
    pub(crate) fn get(&self, id: &str) -> Option<&GroupState> {
        self.by_id.get(id)
    }

    /// All of them, sorted by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &GroupState)> {
        self.by_id.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Bytes of memory that they take, about.
    pub(crate) const fn cost(&self) -> usize {
        self.cost
    }

    /// By how much these offsets would let the cost grow.
    pub(crate) fn growth_by_offsets(&self, id: &str, offsets: &[OffsetCommit]) -> usize {
        let known = self.by_id.get(id);
        let before = known.map_or(0, |group| {
            let replaced = offsets.iter().filter_map(|new| group.offsets.get(&key_of(new)));
            replaced.map(cost_of_offset).sum::<usize>()
        });
        let after = offsets.iter().map(|new| cost_of_offset(&new.committed)).sum::<usize>();
        let group = if known.is_none() { cost_of_group(id) } else { 0 };
        after.saturating_add(group).saturating_sub(before)
    }

    /// By how much this memory would let the cost grow.
    pub(crate) fn growth_by_memory(&self, id: &str, memory: &Bytes) -> usize {
        match self.by_id.get(id) {
            Some(group) => memory.len().saturating_sub(group.memory.len()),
            None => memory.len().saturating_add(cost_of_group(id)),
        }
    }

    /// Takes committed offsets in; without any the group is not made.
    pub(crate) fn commit<'o>(&mut self, id: &Arc<str>, offsets: impl Iterator<Item = &'o OffsetCommit>) {
        let mut offsets = offsets.peekable();
        if offsets.peek().is_none() {
            return;
        }
        let id = self.ensure(id);
        let Some(group) = self.by_id.get_mut(&id) else { return };
        for new in offsets {
            self.cost = self.cost.saturating_add(cost_of_offset(&new.committed));
            match group.offsets.insert(key_of(new), new.committed.clone()) {
                Some(old) => self.cost = self.cost.saturating_sub(cost_of_offset(&old)),
                None => {
                    self.by_topic.entry(new.topic).or_default().insert(Arc::clone(&id));
                }
            }
        }
    }

    /// Replaces a memory. A group of which nothing is left then disappears.
    pub(crate) fn store(&mut self, id: &Arc<str>, memory: &Bytes) {
        let id = self.ensure(id);
        let Some(group) = self.by_id.get_mut(&id) else { return };
        let old = std::mem::replace(&mut group.memory, memory.clone());
        self.cost = self.cost.saturating_add(memory.len()).saturating_sub(old.len());
        self.remove_if_empty(&id);
    }

    pub(crate) fn delete(&mut self, id: &str) {
        let Some(removed) = self.by_id.remove(id) else { return };
        let offsets = removed.offsets.values().map(cost_of_offset).sum::<usize>();
        let cost = cost_of_group(id).saturating_add(removed.memory.len()).saturating_add(offsets);
        self.cost = self.cost.saturating_sub(cost);
        let mut topics: Vec<_> = removed.offsets.keys().map(|(topic, _)| *topic).collect();
        topics.dedup();
        for topic in topics {
            self.forget(topic, id);
        }
    }

    /// Takes committed offsets away. A group of which nothing is left then disappears.
    pub(crate) fn delete_offsets(&mut self, id: &str, offsets: &[(TopicId, PartitionIndex)]) {
        let Some(group) = self.by_id.get_mut(id) else { return };
        let mut emptied = Vec::new();
        for key in offsets {
            let Some(old) = group.offsets.remove(key) else { continue };
            self.cost = self.cost.saturating_sub(cost_of_offset(&old));
            if partitions_of(&group.offsets, key.0).next().is_none() {
                emptied.push(key.0);
            }
        }
        for topic in emptied {
            self.forget(topic, id);
        }
        self.remove_if_empty(id);
    }

    /// Takes away all offsets of a topic.
    pub(crate) fn remove_topic(&mut self, topic: TopicId) {
        for id in self.by_topic.remove(&topic).unwrap_or_default() {
            let Some(group) = self.by_id.get_mut(&id) else { continue };
            let gone: Vec<_> = partitions_of(&group.offsets, topic).collect();
            for partition in gone {
                if let Some(old) = group.offsets.remove(&(topic, partition)) {
                    self.cost = self.cost.saturating_sub(cost_of_offset(&old));
                }
            }
            self.remove_if_empty(&id);
        }
    }

    pub(crate) fn check(&self) {
        let mut cost = 0;
        for (id, group) in &self.by_id {
            debug_assert!(!group.is_empty(), "a group has a memory or offsets");
            cost += cost_of_group(id) + group.memory.len();
            cost += group.offsets.values().map(cost_of_offset).sum::<usize>();
            debug_assert!(
                group.offsets.keys().all(|(topic, _)| self.is_indexed(*topic, id)),
                "the topics of `{id}` name it"
            );
        }
        debug_assert_eq!(self.cost, cost, "costs are counted");
        for (topic, ids) in &self.by_topic {
            debug_assert!(!ids.is_empty(), "a topic without groups is not in the index");
            let offsets = |id: &Arc<str>| self.get(id).map(|group| &group.offsets);
            debug_assert!(
                ids.iter().filter_map(offsets).all(|found| partitions_of(found, *topic).next().is_some()),
                "every group that a topic names has offsets of it"
            );
        }
    }

    fn is_indexed(&self, topic: TopicId, id: &str) -> bool {
        self.by_topic.get(&topic).is_some_and(|ids| ids.contains(id))
    }

    /// The group's own copy of its id, made with it if there is none.
    fn ensure(&mut self, id: &Arc<str>) -> Arc<str> {
        if let Some((known, _)) = self.by_id.get_key_value(id) {
            return Arc::clone(known);
        }
        self.cost = self.cost.saturating_add(cost_of_group(id));
        self.by_id.insert(Arc::clone(id), GroupState::default());
        Arc::clone(id)
    }

    fn remove_if_empty(&mut self, id: &str) {
        if self.by_id.get(id).is_some_and(GroupState::is_empty) {
            self.by_id.remove(id);
            self.cost = self.cost.saturating_sub(cost_of_group(id));
        }
    }

    fn forget(&mut self, topic: TopicId, id: &str) {
        if let Some(ids) = self.by_topic.get_mut(&topic) {
            ids.remove(id);
            if ids.is_empty() {
                self.by_topic.remove(&topic);
            }
        }
    }
}

impl GroupState {
    fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.offsets.is_empty()
    }
}

const fn key_of(commit: &OffsetCommit) -> (TopicId, PartitionIndex) {
    (commit.topic, commit.partition)
}

fn partitions_of(
    offsets: &BTreeMap<(TopicId, PartitionIndex), CommittedOffset>,
    topic: TopicId,
) -> impl Iterator<Item = PartitionIndex> {
    let (first, last) = (PartitionIndex::new(i32::MIN), PartitionIndex::new(i32::MAX));
    offsets.range((topic, first)..=(topic, last)).map(|((_, partition), _)| *partition)
}

fn cost_of_group(id: &str) -> usize {
    id.len().saturating_add(GROUP_COST)
}

fn cost_of_offset(committed: &CommittedOffset) -> usize {
    committed.metadata.len().saturating_add(OFFSET_COST)
}

/// What a group takes besides its id, its memory and its offsets.
const GROUP_COST: usize = 128;
/// What an offset takes besides its metadata.
const OFFSET_COST: usize = 128;
