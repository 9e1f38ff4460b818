//! What the simulation changed in topics and groups, as a dull list: after a power cut the store has to stand where some
//! prefix of it leads, and that prefix has to hold everything that was acknowledged.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kolumn_topic_store::{
    Commit, CommittedOffset, Offset, OffsetCommit, PartitionIndex, Store, Timestamp, Topic, TopicConfig,
    TopicId, ViewId,
};

#[derive(Clone, Debug)]
pub(crate) enum Change {
    TopicCreated { topic: TopicId, partitions: i32, config: Config },
    TopicDeleted { topic: TopicId },
    Partitions { topic: TopicId, count: i32 },
    Configured { topic: TopicId, config: Config },
    Committed { group: String, offsets: Vec<(TopicId, i32, i64)> },
    Stored { group: String, memory: Vec<u8> },
    GroupDeleted { group: String },
    OffsetsDeleted { group: String, places: Vec<(TopicId, i32)> },
}

pub(crate) type Config = Vec<(String, String)>;

/// By topic and partition.
type Offsets = BTreeMap<(TopicId, i32), i64>;

/// What a prefix leads to.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    /// Partitions and settings.
    topics: BTreeMap<TopicId, (i32, Config)>,
    /// Memories and offsets.
    groups: BTreeMap<String, (Vec<u8>, Offsets)>,
}

#[derive(Default)]
pub(crate) struct History {
    changes: Vec<Change>,
    /// How many of them are known to be durable.
    durable: usize,
    /// How many there were with this one, and what it waits for.
    pending: Vec<(usize, Answer)>,
}

pub(crate) enum Answer {
    Done(Commit<()>),
    Topic(Commit<Arc<Topic>>),
}

impl Answer {
    fn try_take(&mut self) -> Option<bool> {
        match self {
            Self::Done(commit) => commit.try_take().map(|outcome| outcome.is_ok()),
            Self::Topic(commit) => commit.try_take().map(|outcome| outcome.is_ok()),
        }
    }
}

impl History {
    /// Notes a change; without an answer it waits for whatever comes after it.
    pub(crate) fn push(&mut self, change: Change, answer: Option<Answer>) {
        self.changes.push(change);
        let count = self.changes.len();
        self.pending.extend(answer.map(|answer| (count, answer)));
    }

    /// Notes what has been acknowledged; `is_off` excuses failures.
    pub(crate) fn collect(&mut self, is_off: bool) {
        let durable = &mut self.durable;
        self.pending.retain_mut(|(count, answer)| match answer.try_take() {
            None => true,
            Some(is_ok) => {
                assert!(is_ok || is_off, "an admitted change failed without a cut");
                if is_ok {
                    *durable = (*durable).max(*count);
                }
                false
            }
        });
    }

    /// Where everything that was ever submitted leads.
    fn newest(&self) -> Seen {
        let mut seen = Seen::default();
        self.changes.iter().for_each(|change| seen.apply(change));
        seen
    }

    /// The offset that a group would commit next, so that none goes back.
    pub(crate) fn next_offset(&self, group: &str, topic: TopicId, partition: i32) -> i64 {
        let newest = self.newest();
        newest.groups.get(group).and_then(|found| found.1.get(&(topic, partition))).map_or(0, |last| last + 1)
    }

    /// After a restart: finds the prefix where the store stands, and forgets what is not in it.
    pub(crate) fn verify(&mut self, store: &Store, view: Option<ViewId>, loses_answers: bool) {
        self.pending.clear();
        let found = Seen::of(store, view);
        let least = if loses_answers { 0 } else { self.durable };
        let mut seen = Seen::default();
        let mut fits = None;
        for count in 0..=self.changes.len() {
            if count >= least && seen == found {
                fits = Some(count);
            }
            if let Some(change) = self.changes.get(count) {
                seen.apply(change);
            }
        }
        let Some(count) = fits else {
            let mut acknowledged = Seen::default();
            self.changes.iter().take(least).for_each(|change| acknowledged.apply(change));
            panic!("no prefix leads to\n{found:?}\nacknowledged was\n{acknowledged:?}");
        };
        self.changes.truncate(count);
        self.durable = count;
    }

    /// Which kinds of changes are left.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = String> {
        let names = self.changes.iter().map(|change| format!("{change:?}"));
        names.map(|name| name.split(' ').next().unwrap_or_default().to_owned())
    }
}

impl Seen {
    fn of(store: &Store, view: Option<ViewId>) -> Self {
        let mut seen = Self::default();
        let Some(view) = view else { return seen };
        for topic in store.topics(view) {
            seen.topics.insert(topic.id, (topic.partitions, given(&topic.config)));
        }
        for group in store.groups(view) {
            let memory = store.group_memory(view, &group).expect("it is listed").to_vec();
            let mut offsets = BTreeMap::new();
            for (topic, partition, committed) in store.committed_offsets(view, &group) {
                let offset = committed.offset.value();
                assert_eq!(committed, committed_at(offset), "what belongs to the offset comes with it");
                offsets.insert((topic, partition.value()), offset);
            }
            seen.groups.insert(group.to_string(), (memory, offsets));
        }
        seen
    }

    fn apply(&mut self, change: &Change) {
        match change.clone() {
            Change::TopicCreated { topic, partitions, config } => {
                self.topics.insert(topic, (partitions, config));
            }
            Change::TopicDeleted { topic } => {
                self.topics.remove(&topic);
                for (_, offsets) in self.groups.values_mut() {
                    offsets.retain(|place, _| place.0 != topic);
                }
            }
            Change::Partitions { topic, count } => self.topics.get_mut(&topic).expect("known").0 = count,
            Change::Configured { topic, config } => self.topics.get_mut(&topic).expect("known").1 = config,
            Change::Committed { group, offsets } => {
                let known = &mut self.groups.entry(group).or_default().1;
                known.extend(offsets.into_iter().map(|(topic, partition, at)| ((topic, partition), at)));
            }
            Change::Stored { group, memory } => self.groups.entry(group).or_default().0 = memory,
            Change::GroupDeleted { group } => drop(self.groups.remove(&group)),
            Change::OffsetsDeleted { group, places } => {
                if let Some((_, offsets)) = self.groups.get_mut(&group) {
                    offsets.retain(|place, _| !places.contains(place));
                }
            }
        }
        self.groups.retain(|_, (memory, offsets)| !memory.is_empty() || !offsets.is_empty());
    }
}

pub(crate) fn given(config: &TopicConfig) -> Config {
    config.given().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// What the simulation commits with an offset follows from the offset.
fn committed_at(offset: i64) -> CommittedOffset {
    CommittedOffset {
        offset: Offset::new(offset),
        leader_epoch: None,
        metadata: "m".repeat(usize::try_from(offset % 40).expect("small")).into(),
        committed: Timestamp::new(offset * 3),
    }
}

pub(crate) fn commit_of(topic: TopicId, partition: i32, offset: i64) -> OffsetCommit {
    let partition = PartitionIndex::new(partition);
    OffsetCommit { topic, partition, committed: committed_at(offset) }
}

pub(crate) fn memory_of(seed: u64) -> Bytes {
    vec![u8::try_from(seed % 251).expect("small"); usize::try_from(seed % 700).expect("small")].into()
}
