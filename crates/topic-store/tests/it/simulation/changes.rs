//! What a run does to topics and groups besides appending.

use std::collections::BTreeSet;

use kolumn_topic_store::{Durability, GroupErrorKind, Offset, Store, TopicConfig, TopicErrorKind, View};

use super::history::{Answer, Change, commit_of, given, memory_of};
use super::{PartitionModel, Run};

impl Run {
    pub(super) fn pick_config(&mut self) -> &'static [(&'static str, &'static str)] {
        match self.random(3) {
            0 => &[("retention.bytes", "20000")],
            1 => &[("retention.ms", "20000")],
            _ => &[("retention.ms", "-1"), ("retention.bytes", "100000")],
        }
    }

    pub(super) fn create_partitions(&mut self, store: &Store, view: &View) {
        let Some((topic, _)) = self.pick_partition() else { return };
        let partitions = &mut self.topics.get_mut(&topic).expect("known").partitions;
        let count = partitions.len() + 1;
        let total = i32::try_from(count).expect("small");
        if count > 4 {
            return;
        }
        match store.create_partitions(view.id, topic, total, false) {
            Ok(commit) => {
                partitions.resize_with(count, PartitionModel::default);
                let change = Change::Partitions { topic, count: total };
                self.history.push(change, Some(Answer::Topic(commit)));
            }
            Err(error) => check_topic_refusal(error.kind()),
        }
    }

    pub(super) fn configure(&mut self, store: &Store, view: &View) {
        let Some((topic, _)) = self.pick_partition() else { return };
        let pairs = self.pick_config().iter().copied();
        let config = TopicConfig::parse(pairs).expect("legal");
        match store.configure_topic(view.id, topic, &mut |_| Ok(config.clone()), false) {
            Ok(commit) => {
                let change = Change::Configured { topic, config: given(&config) };
                self.history.push(change, Some(Answer::Topic(commit)));
            }
            Err(error) => check_topic_refusal(error.kind()),
        }
    }

    pub(super) fn delete_records(&mut self, store: &Store) {
        let Some((topic, partition)) = self.pick_partition() else { return };
        // The creation of the partition may still be under way.
        let Ok(offsets) = store.offsets(topic, partition) else { return };
        let end = u64::try_from(offsets.high_watermark.value()).expect("not negative");
        let before = i64::try_from(self.random(end + 1)).expect("small");
        if let Ok(commit) = store.delete_records(topic, partition, Some(Offset::new(before))) {
            assert!(commit.peek().is_some_and(|start| start.value() >= before));
            self.model(topic, partition).deletions.push(commit);
        }
    }

    pub(super) fn change_group(&mut self, store: &Store, view: &View) {
        let group = format!("g{}", self.random(3));
        let (pick, seed) = (self.random(10), self.random(1000));
        let (outcome, change) = match pick {
            0 => (store.delete_group(view.id, &group), Change::GroupDeleted { group }),
            1 => {
                let memory = memory_of(seed);
                let outcome = store.put_group(view.id, &group, memory.clone());
                (outcome, Change::Stored { group, memory: memory.to_vec() })
            }
            2 => {
                let Some((topic, partition)) = self.pick_partition() else { return };
                let outcome = store.delete_offsets(view.id, &group, &[(topic, partition)]);
                (outcome, Change::OffsetsDeleted { group, places: vec![(topic, partition.value())] })
            }
            _ => {
                let picked: BTreeSet<_> = (0..=seed % 3).filter_map(|_| self.pick_partition()).collect();
                let offsets: Vec<_> = picked
                    .into_iter()
                    .map(|(topic, partition)| (topic, partition.value()))
                    .map(|(topic, index)| (topic, index, self.history.next_offset(&group, topic, index)))
                    .collect();
                let commits = offsets.iter().map(|(topic, index, at)| commit_of(*topic, *index, *at));
                let outcome = store.commit_offsets(view.id, &group, commits.collect());
                (outcome, Change::Committed { group, offsets })
            }
        };
        match outcome {
            // Nothing is written for it, so that it says nothing of what came before it.
            Ok(_) if matches!(&change, Change::Committed { offsets, .. } if offsets.is_empty()) => {}
            Ok(commit) => self.history.push(change, Some(Answer::Done(commit))),
            Err(error) => assert!(
                matches!(
                    error.kind(),
                    GroupErrorKind::UnknownGroup
                        | GroupErrorKind::Full
                        | GroupErrorKind::Busy
                        | GroupErrorKind::ReadOnly
                ),
                "{error}"
            ),
        }
    }

    pub(super) fn verify_history(&mut self, store: &Store) {
        let view = store.view("kafka").map(|view| view.id);
        self.history.verify(store, view, self.options.durability == Durability::Os);
    }
}

fn check_topic_refusal(kind: TopicErrorKind) {
    assert!(
        matches!(kind, TopicErrorKind::Full | TopicErrorKind::Busy | TopicErrorKind::ReadOnly),
        "{kind:?}"
    );
}
