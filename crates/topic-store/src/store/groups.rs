//! What is kept for consumer groups: a memory for their coordinator, and committed offsets.

use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::Class;

use crate::commit::Commit;
use crate::entry::{Entry, GroupOffsets, GroupRef};
use crate::error::{GroupError, GroupErrorKind as Kind};
use crate::group::{CommittedOffset, OffsetCommit};
use crate::ids::{PartitionIndex, TopicId, ViewId};
use crate::state::State;
use crate::state::groups::Groups;

use super::{Prepared, Refusal, Store};

impl Store {
    /// Commits offsets of a group: all of them or, if one is refused, none. A group that is unknown begins with it.
    ///
    /// Order of calls is order of effects: of two commits for a partition the later one stays. Without offsets nothing is
    /// written.
    ///
    /// # Errors
    /// If the view, a topic or a partition does not exist (any more), a name or text is too long, or the memory for
    /// groups full; if the log is full, busy or has failed.
    pub fn commit_offsets(
        &self,
        view: ViewId,
        group: &str,
        mut offsets: Vec<OffsetCommit>,
    ) -> Result<Commit<()>, GroupError> {
        let group = named(view, group)?;
        for new in &mut offsets {
            if new.committed.metadata.len() > TEXT_LEN_MAX {
                let text = format!("the metadata of an offset has at most {TEXT_LEN_MAX} bytes");
                return Err(GroupError::new(Kind::TooLarge, text));
            }
            // A negative epoch is how the formats say that there is none.
            new.committed.leader_epoch = new.committed.leader_epoch.filter(|epoch| epoch.value() >= 0);
        }
        let mut prepared = self.inner.prepared.lock();
        let groups = groups_of(&prepared.state, view)?;
        for new in &offsets {
            judge_place(&prepared.state, view, new.topic, new.partition)?;
        }
        if offsets.is_empty() {
            return Ok(Commit::ready(()));
        }
        let growth = groups.growth_by_offsets(&group.id, &offsets);
        self.judge_growth(&prepared, growth)?;
        let entry = Entry::OffsetsCommitted(GroupOffsets { group, offsets });
        self.inner.write(&mut prepared, &entry, Class::Data)?;
        Ok(self.inner.commit(&prepared, false, ()))
    }

    /// Replaces what the group's coordinator has to remember. The store does not look into it, but keeps a handle on it.
    ///
    /// An empty memory is none: a group that has no offsets either is no longer there.
    ///
    /// # Errors
    /// If the view does not exist, the name or the memory is too long, or the memory for groups full; if the log is full,
    /// busy or has failed.
    pub fn put_group(&self, view: ViewId, group: &str, memory: Bytes) -> Result<Commit<()>, GroupError> {
        let group = named(view, group)?;
        let mut prepared = self.inner.prepared.lock();
        let groups = groups_of(&prepared.state, view)?;
        if memory.is_empty() && groups.get(&group.id).is_none() {
            return Ok(self.inner.commit(&prepared, false, ()));
        }
        let growth = groups.growth_by_memory(&group.id, &memory);
        self.judge_growth(&prepared, growth)?;
        self.inner.write(&mut prepared, &Entry::GroupStored { group, memory }, Class::Data)?;
        Ok(self.inner.commit(&prepared, false, ()))
    }

    /// Deletes a group with its memory and its offsets, in one.
    ///
    /// # Errors
    /// If the view or the group does not exist, or the log is busy or has failed.
    pub fn delete_group(&self, view: ViewId, group: &str) -> Result<Commit<()>, GroupError> {
        let group = named(view, group)?;
        let mut prepared = self.inner.prepared.lock();
        if groups_of(&prepared.state, view)?.get(&group.id).is_none() {
            return Err(unknown_group());
        }
        self.inner.write(&mut prepared, &Entry::GroupDeleted { group }, Class::Reclaim)?;
        Ok(self.inner.commit(&prepared, false, ()))
    }

    /// Deletes committed offsets of a group: because somebody asks for it, or because they have expired. What has not
    /// been committed is not missed. A group of which nothing is left is no longer there. Many are deleted in several steps,
    /// of which some may have been taken when another is refused.
    ///
    /// # Errors
    /// If the view or the group does not exist, or the log is busy or has failed.
    pub fn delete_offsets(
        &self,
        view: ViewId,
        group: &str,
        offsets: &[(TopicId, PartitionIndex)],
    ) -> Result<Commit<()>, GroupError> {
        let group = named(view, group)?;
        let mut prepared = self.inner.prepared.lock();
        let known = groups_of(&prepared.state, view)?.get(&group.id).ok_or_else(unknown_group)?;
        let is_known = |place: &&(TopicId, PartitionIndex)| known.offsets.contains_key(place);
        let offsets: Vec<_> = offsets.iter().filter(is_known).copied().collect();
        for some in offsets.chunks(DELETED_PER_ENTRY) {
            let entry = Entry::OffsetsDeleted { group: group.clone(), offsets: some.to_vec() };
            self.inner.write(&mut prepared, &entry, Class::Reclaim)?;
        }
        Ok(self.inner.commit(&prepared, false, ()))
    }

    /// The names of all groups of a view, sorted. As all that is read of groups: what is durable.
    #[must_use]
    pub fn groups(&self, view: ViewId) -> Vec<Arc<str>> {
        let applied = self.inner.core.applied.read();
        let groups = applied.groups(view).into_iter().flat_map(Groups::iter);
        groups.map(|(id, _)| Arc::clone(id)).collect()
    }

    /// What a group's coordinator has to remember; empty if the group has offsets only.
    #[must_use]
    pub fn group_memory(&self, view: ViewId, group: &str) -> Option<Bytes> {
        let applied = self.inner.core.applied.read();
        Some(applied.groups(view)?.get(group)?.memory.clone())
    }

    /// What a group has committed for a partition.
    #[must_use]
    pub fn committed_offset(
        &self,
        view: ViewId,
        group: &str,
        topic: TopicId,
        partition: PartitionIndex,
    ) -> Option<CommittedOffset> {
        let applied = self.inner.core.applied.read();
        applied.groups(view)?.get(group)?.offsets.get(&(topic, partition)).cloned()
    }

    /// Everything that a group has committed, sorted by topic and partition.
    #[must_use]
    pub fn committed_offsets(
        &self,
        view: ViewId,
        group: &str,
    ) -> Vec<(TopicId, PartitionIndex, CommittedOffset)> {
        let applied = self.inner.core.applied.read();
        let found = applied.groups(view).and_then(|groups| groups.get(group));
        let offsets = found.into_iter().flat_map(|group| &group.offsets);
        offsets.map(|((topic, partition), committed)| (*topic, *partition, committed.clone())).collect()
    }

    fn judge_growth(&self, prepared: &Prepared, growth: usize) -> Result<(), GroupError> {
        let max = self.inner.settings.groups_len_max;
        // What does not grow is taken also where a smaller limit was set since.
        if growth > 0 && prepared.state.groups_cost().saturating_add(growth) > max {
            let text = format!("all groups together can take {max} bytes of memory");
            return Err(GroupError::new(Kind::Full, text));
        }
        Ok(())
    }
}

impl From<Refusal> for GroupError {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::Full { .. } => Kind::Full,
            Refusal::TooLarge => Kind::TooLarge,
            Refusal::Busy => Kind::Busy,
            Refusal::ReadOnly => Kind::ReadOnly,
        };
        Self::new(kind, refusal.text())
    }
}

fn named(view: ViewId, group: &str) -> Result<GroupRef, GroupError> {
    if group.len() > TEXT_LEN_MAX {
        let text = format!("the name of a group has at most {TEXT_LEN_MAX} bytes, not {}", group.len());
        return Err(GroupError::new(Kind::TooLarge, text));
    }
    Ok(GroupRef { view, id: group.into() })
}

fn groups_of(state: &State, view: ViewId) -> Result<&Groups, GroupError> {
    state.groups(view).ok_or_else(|| GroupError::new(Kind::UnknownView, "there is no such view"))
}

fn judge_place(
    state: &State,
    view: ViewId,
    topic: TopicId,
    partition: PartitionIndex,
) -> Result<(), GroupError> {
    let found = state.topic(topic).filter(|found| found.topic.view == view);
    let found = found.ok_or_else(|| GroupError::new(Kind::UnknownTopic, "there is no such topic"))?;
    if found.partition(partition).is_none() {
        let text = format!("topic `{}` has no partition {partition}", found.topic.name);
        return Err(GroupError::new(Kind::UnknownPartition, text));
    }
    Ok(())
}

fn unknown_group() -> GroupError {
    GroupError::new(Kind::UnknownGroup, "there is no such group")
}

/// So that an entry is shorter than the shortest limit for one.
const DELETED_PER_ENTRY: usize = 512;
/// What Kafka's strings can have, and less than ours.
const TEXT_LEN_MAX: usize = 32_767;
