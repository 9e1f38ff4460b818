//! The state that is folded from the journal. Pure: no clock, no disk, no policy; `apply` decides nothing.
//!
//! The same type is used three times: prepared (speculative, under the append lock, without an index), applied (what
//! readers see) and the checkpoint's fold.

pub(crate) mod groups;
pub(crate) mod index;
pub(crate) mod partition;
pub(crate) mod producers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::TopicConfig;
use crate::entry::{BatchMeta, Entry, GroupOffsets, GroupRef};
use crate::ids::{PartitionIndex, TopicId, ViewId};
use crate::topic::{Topic, View, collision_key};

use groups::Groups;
use index::Thinning;
pub(crate) use index::{IndexLimits, Place};
use partition::Partition;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) views: BTreeMap<ViewId, ViewState>,
    pub(crate) topics: BTreeMap<TopicId, TopicState>,
    /// Producer ids below this have been given out, or may have been.
    pub(crate) next_producer_id: i64,
    /// `None`: this copy keeps no index.
    pub(crate) thinning: Option<Thinning>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ViewState {
    pub(crate) view: View,
    /// By collision key.
    pub(crate) names: BTreeMap<String, TopicId>,
    pub(crate) groups: Groups,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TopicState {
    pub(crate) topic: Arc<Topic>,
    pub(crate) partitions: Vec<Partition>,
}

impl State {
    /// An empty state; without limits it keeps no index.
    pub(crate) const fn new(index: Option<IndexLimits>) -> Self {
        let thinning = match index {
            Some(limits) => Some(Thinning::new(limits)),
            None => None,
        };
        Self { views: BTreeMap::new(), topics: BTreeMap::new(), next_producer_id: 0, thinning }
    }

    /// A copy for preparing: the same without the index.
    pub(crate) fn without_index(&self) -> Self {
        let mut copy = self.clone();
        copy.thinning = None;
        for partition in copy.topics.values_mut().flat_map(|topic| &mut topic.partitions) {
            partition.spans.clear();
            partition.spans.shrink_to_fit();
        }
        copy
    }

    /// Folds one entry in. Entries about a topic that has been deleted in the meantime change nothing.
    pub(crate) fn apply(&mut self, entry: &Entry, place: Option<Place>) {
        match entry {
            Entry::ViewCreated(view) => {
                self.views.entry(view.id).or_insert_with(|| ViewState::new(view.clone()));
            }
            Entry::TopicCreated(topic) => self.insert_topic(topic),
            Entry::TopicDeleted { topic } => self.remove_topic(*topic),
            Entry::Appended(meta) => self.append(meta, place),
            Entry::LogStart { topic, partition, offset } => {
                let Some(found) = self.partition_mut(*topic, *partition) else { return };
                let before = found.spans.len();
                found.advance_log_start(*offset);
                let removed = before.saturating_sub(found.spans.len());
                self.count_spans(|spans| spans.saturating_sub(removed));
            }
            Entry::ProducerIds { next } => self.next_producer_id = self.next_producer_id.max(*next),
            Entry::ProducersExpired { topic, partition, producers } => {
                let Some(found) = self.partition_mut(*topic, *partition) else { return };
                for id in producers {
                    found.producers.remove(id);
                }
            }
            Entry::Carried(meta) => {
                let Some(place) = place else { return };
                let Some(found) = self.partition_mut(meta.topic, meta.partition) else { return };
                if found.carry(meta, place) {
                    self.count_spans(|spans| spans + 1);
                }
            }
            Entry::PartitionsCreated { topic, count } => self.add_partitions(*topic, *count),
            Entry::TopicConfigured { topic, config } => self.configure(*topic, config),
            Entry::OffsetsCommitted(offsets) => self.commit_offsets(offsets),
            Entry::GroupStored { group, memory } => {
                self.in_groups(group, |groups| groups.store(&group.id, memory));
            }
            Entry::GroupDeleted { group } => self.in_groups(group, |groups| groups.delete(&group.id)),
            Entry::OffsetsDeleted { group, offsets } => {
                self.in_groups(group, |groups| groups.delete_offsets(&group.id, offsets));
            }
        }
    }

    pub(crate) fn topic(&self, topic: TopicId) -> Option<&TopicState> {
        self.topics.get(&topic)
    }

    pub(crate) fn topic_named(&self, view: ViewId, name: &str) -> Option<&TopicState> {
        let names = &self.views.get(&view)?.names;
        let key = if name.contains('.') { Cow::Owned(collision_key(name)) } else { Cow::Borrowed(name) };
        self.topic(*names.get(key.as_ref())?)
    }

    pub(crate) fn partition(&self, topic: TopicId, partition: PartitionIndex) -> Option<&Partition> {
        self.topic(topic)?.partition(partition)
    }

    pub(crate) fn groups(&self, view: ViewId) -> Option<&Groups> {
        self.views.get(&view).map(|known| &known.groups)
    }

    /// What the groups of all views cost in memory.
    pub(crate) fn groups_cost(&self) -> usize {
        self.views.values().map(|known| known.groups.cost()).fold(0, usize::saturating_add)
    }

    /// Checks what has to hold after every change.
    pub(crate) fn check(&self) {
        if let Some(thinning) = &self.thinning {
            let partitions = self.topics.values().flat_map(|topic| &topic.partitions);
            debug_assert_eq!(
                thinning.spans,
                partitions.map(|partition| partition.spans.len()).sum::<usize>(),
                "the number of spans is counted"
            );
        }
        for partition in self.topics.values().flat_map(|topic| &topic.partitions) {
            partition.check();
        }
        for view in self.views.values() {
            view.groups.check();
        }
    }

    fn insert_topic(&mut self, topic: &Arc<Topic>) {
        let Some(view) = self.views.get_mut(&topic.view) else { return };
        view.names.insert(collision_key(&topic.name), topic.id);
        let count = usize::try_from(topic.partitions).unwrap_or(0);
        let partitions = vec![Partition::default(); count];
        self.topics.insert(topic.id, TopicState { topic: Arc::clone(topic), partitions });
    }

    fn remove_topic(&mut self, topic: TopicId) {
        let Some(removed) = self.topics.remove(&topic) else { return };
        if let Some(view) = self.views.get_mut(&removed.topic.view) {
            view.names.remove(&collision_key(&removed.topic.name));
            view.groups.remove_topic(topic);
        }
        let spans: usize = removed.partitions.iter().map(|partition| partition.spans.len()).sum();
        self.count_spans(|count| count.saturating_sub(spans));
    }

    /// A topic never loses partitions.
    fn add_partitions(&mut self, topic: TopicId, count: i32) {
        let Some(found) = self.topics.get_mut(&topic).filter(|found| found.topic.partitions < count) else {
            return;
        };
        found.topic = Arc::new(Topic { partitions: count, ..Topic::clone(&found.topic) });
        found.partitions.resize_with(usize::try_from(count).unwrap_or(0), Partition::default);
    }

    fn configure(&mut self, topic: TopicId, config: &TopicConfig) {
        let Some(found) = self.topics.get_mut(&topic) else { return };
        found.topic = Arc::new(Topic { config: config.clone(), ..Topic::clone(&found.topic) });
    }

    fn commit_offsets(&mut self, GroupOffsets { group, offsets }: &GroupOffsets) {
        let Some(view) = self.views.get_mut(&group.view) else { return };
        let exists = |topic: &TopicState, partition| {
            topic.topic.view == group.view && topic.partition(partition).is_some()
        };
        let live = offsets
            .iter()
            .filter(|new| self.topics.get(&new.topic).is_some_and(|topic| exists(topic, new.partition)));
        view.groups.commit(&group.id, live);
    }

    fn in_groups(&mut self, group: &GroupRef, change: impl FnOnce(&mut Groups)) {
        if let Some(view) = self.views.get_mut(&group.view) {
            change(&mut view.groups);
        }
    }

    fn append(&mut self, meta: &BatchMeta, place: Option<Place>) {
        let Some(found) = self.partition_mut(meta.topic, meta.partition) else { return };
        found.append(meta, place);
        if place.is_some() {
            self.count_spans(|spans| spans + 1);
            self.thin_if_due();
        }
    }

    fn thin_if_due(&mut self) {
        let Some(thinning) = &mut self.thinning else { return };
        if thinning.is_due() {
            let indexes = self.topics.values_mut().flat_map(|topic| &mut topic.partitions);
            thinning.run(indexes.map(|partition| &mut partition.spans));
        }
    }

    fn count_spans(&mut self, change: impl FnOnce(usize) -> usize) {
        if let Some(thinning) = &mut self.thinning {
            thinning.spans = change(thinning.spans);
        }
    }

    fn partition_mut(&mut self, topic: TopicId, partition: PartitionIndex) -> Option<&mut Partition> {
        let index = usize::try_from(partition.value()).ok()?;
        self.topics.get_mut(&topic)?.partitions.get_mut(index)
    }
}

impl ViewState {
    pub(crate) fn new(view: View) -> Self {
        Self { view, names: BTreeMap::new(), groups: Groups::default() }
    }
}

impl TopicState {
    pub(crate) fn partition(&self, partition: PartitionIndex) -> Option<&Partition> {
        self.partitions.get(usize::try_from(partition.value()).ok()?)
    }
}
