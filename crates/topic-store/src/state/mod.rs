//! The state that is folded from the journal. Pure: no clock, no disk, no policy; `apply` decides nothing.
//!
//! The same type is used three times: prepared (speculative, under the append lock, without an index), applied (what
//! readers see) and the checkpoint's fold.

pub(crate) mod index;
pub(crate) mod partition;
pub(crate) mod producers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::entry::{BatchMeta, Entry};
use crate::ids::{PartitionIndex, TopicId, ViewId};
use crate::topic::{Topic, View, collision_key};

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
                let state = ViewState { view: view.clone(), names: BTreeMap::new() };
                self.views.entry(view.id).or_insert(state);
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
        }
        let spans: usize = removed.partitions.iter().map(|partition| partition.spans.len()).sum();
        self.count_spans(|count| count.saturating_sub(spans));
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

impl TopicState {
    pub(crate) fn partition(&self, partition: PartitionIndex) -> Option<&Partition> {
        self.partitions.get(usize::try_from(partition.value()).ok()?)
    }
}
