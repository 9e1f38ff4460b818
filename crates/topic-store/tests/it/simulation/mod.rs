//! One simulated run of a store against a model of what was submitted and acknowledged.

mod changes;
mod history;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::sim::SimDisk;
use kolumn_journal::{Disk, Mutant, Stepper};
use kolumn_kafka_wire::records::Batch;
use kolumn_topic_store::{
    AppendErrorKind, Appended, Commit, Durability, Event, Observer, Offset, PartitionIndex, ProducerId,
    Settings, Store, Timestamp, Topic, TopicId, View,
};
use parking_lot::Mutex;

use crate::support::*;

use history::{Change, History, given};

#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOptions {
    pub(crate) mutant: Mutant,
    /// Bytes that the disk takes.
    pub(crate) capacity: Option<u64>,
    pub(crate) durability: Durability,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { mutant: Mutant::None, capacity: None, durability: Durability::Sync }
    }
}

pub(crate) struct Run {
    rng: u64,
    options: RunOptions,
    disk: SimDisk,
    retained: Arc<Retained>,
    now: Timestamp,
    topics: BTreeMap<TopicId, TopicModel>,
    history: History,
    producer_ids: BTreeSet<ProducerId>,
    next_name: u32,
}

struct TopicModel {
    topic: Arc<Topic>,
    created: Option<Commit<Arc<Topic>>>,
    deletion: Deletion,
    partitions: Vec<PartitionModel>,
}

enum Deletion {
    No,
    Pending(Commit<()>),
    Durable,
}

#[derive(Default)]
struct PartitionModel {
    /// Every batch that is or may be in the log, by base offset.
    batches: BTreeMap<i64, Submitted>,
    pending: Vec<(i64, Commit<Appended>)>,
    next_sequence: BTreeMap<i64, i32>,
    deletions: Vec<Commit<Offset>>,
    /// Where the log starts at least: what deletions of records have answered.
    start_min: i64,
}

struct Submitted {
    sent: Bytes,
    acknowledged: bool,
    producer: Option<(i64, i32)>,
}

/// The furthest log start that retention or a deletion of records decided on, by partition.
#[derive(Debug, Default)]
struct Retained {
    starts: Mutex<BTreeMap<(TopicId, PartitionIndex), i64>>,
    seen: Mutex<BTreeSet<String>>,
}

impl Observer for Retained {
    fn event(&self, event: &Event<'_>) {
        let name = format!("{event:?}").split([' ', '(', '{']).next().unwrap_or_default().to_owned();
        self.seen.lock().insert(name);
        if let Event::Retained { topic, partition, log_start, .. }
        | Event::RecordsDeleted { topic, partition, log_start, .. } = event
        {
            let mut starts = self.starts.lock();
            let start = starts.entry((*topic, *partition)).or_insert(0);
            *start = (*start).max(log_start.value());
        }
    }
}

impl Run {
    pub(crate) fn new(seed: u64, options: RunOptions) -> Self {
        let disk = SimDisk::new(seed);
        if let Some(capacity) = options.capacity {
            disk.set_capacity(capacity);
        }
        Self {
            rng: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            options,
            disk,
            retained: Arc::default(),
            now: NOW,
            topics: BTreeMap::new(),
            history: History::default(),
            producer_ids: BTreeSet::new(),
            next_name: 0,
        }
    }

    /// So many lives, each ended by a power cut. Gives the offsets found at the end, and the kinds of events seen
    /// and of changes that have lasted.
    pub(crate) fn go(mut self, lives: usize) -> (Vec<(String, i64, i64)>, BTreeSet<String>) {
        for _ in 0..lives {
            self.live();
            self.disk.crash();
        }
        let (store, mut stepper) = self.open();
        self.verify(&store, &mut stepper);
        let mut digest = Vec::new();
        for model in self.topics.values() {
            for (index, _) in (0..).zip(&model.partitions) {
                let offsets = store.offsets(model.topic.id, PartitionIndex::new(index)).expect("known");
                digest.push((
                    model.topic.name.to_string(),
                    offsets.log_start.value(),
                    offsets.high_watermark.value(),
                ));
            }
        }
        let mut seen = self.retained.seen.lock().clone();
        seen.extend(self.history.kinds());
        (digest, seen)
    }

    fn settings(&self) -> Settings {
        Settings {
            tail_len_max: 16 << 10,
            index_len_max: 0,
            batch_len_max: 8 << 10,
            file_len: 64 << 10,
            queue_len_max: 256 << 10,
            size_limit: Some(16 * (64 << 10)),
            checkpoint_distance: 96 << 10,
            carry_len_max: 32 << 10,
            retention_interval_ms: 0,
            producer_expiration_ms: i64::MAX,
            durability: self.options.durability,
            mutant: self.options.mutant,
            ..Settings::default()
        }
    }

    fn open(&mut self) -> (Store, Stepper) {
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        let observer: Arc<dyn Observer> = Arc::clone(&self.retained) as Arc<dyn Observer>;
        Store::open_stepped(disk, self.settings(), 3, observer, self.now).expect("what was synced opens")
    }

    fn live(&mut self) {
        let calls = 20 + self.random(400);
        // One cut in four hits the opening.
        let early = self.random(4) == 0;
        if early {
            let calls = 1 + self.random(30);
            self.disk.cut_power_after(calls);
            let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
            let observer: Arc<dyn Observer> = Arc::clone(&self.retained) as Arc<dyn Observer>;
            if let Ok((store, mut stepper)) =
                Store::open_stepped(disk, self.settings(), 3, observer, self.now)
                && !self.disk.is_off()
            {
                self.verify_history(&store);
                self.work(&store, &mut stepper);
            }
            return;
        }
        let (store, mut stepper) = self.open();
        self.verify(&store, &mut stepper);
        self.disk.cut_power_after(calls);
        self.work(&store, &mut stepper);
    }

    /// Random work until the power goes.
    fn work(&mut self, store: &Store, stepper: &mut Stepper) {
        let Ok(mut view) = store.ensure_view("kafka", self.now) else { return };
        while stepper.step() {}
        let Some(Ok(view)) = view.try_take() else { return };
        for _ in 0..2000 {
            if self.disk.is_off() {
                break;
            }
            match self.random(100) {
                0..=2 => self.create(store, &view),
                3 if self.topics.len() > 3 => self.delete(store, &view),
                4..=50 => self.append(store),
                51..=54 => self.repeat(store),
                55 => self.take_producer_id(store, stepper),
                56..=62 => {
                    self.now = Timestamp::new(self.now.value() + 1000);
                    let outcome = store.maintain(self.now);
                    assert!(outcome.is_ok() || self.disk.is_off(), "{outcome:?}");
                }
                63 => stepper.idle(),
                64..=71 => self.change_group(store, &view),
                72 => self.create_partitions(store, &view),
                73 => self.configure(store, &view),
                74 => self.delete_records(store),
                _ => drop(stepper.step()),
            }
            self.collect();
        }
    }

    fn create(&mut self, store: &Store, view: &View) {
        if self.topics.len() > 6 {
            return;
        }
        self.next_name += 1;
        let name = format!("t{}", self.next_name);
        let new = new_topic(&name, 2, self.pick_config());
        let config = given(&new.config);
        let Ok(topic) = store.create_topic(view.id, new.clone(), true, self.now) else { return };
        drop(topic);
        let Ok(created) = store.create_topic(view.id, new, false, self.now) else { return };
        let topic = created.peek().expect("prepared").clone();
        let partitions = vec![PartitionModel::default(), PartitionModel::default()];
        let model =
            TopicModel { topic: topic.clone(), created: Some(created), deletion: Deletion::No, partitions };
        self.topics.insert(topic.id, model);
        self.history.push(Change::TopicCreated { topic: topic.id, partitions: 2, config }, None);
    }

    fn delete(&mut self, store: &Store, view: &View) {
        let pick = usize::try_from(self.random(self.topics.len() as u64)).expect("small");
        let Some(model) = self.topics.values_mut().nth(pick) else { return };
        if matches!(model.deletion, Deletion::No)
            && let Ok(commit) = store.delete_topic(view.id, model.topic.id)
        {
            model.deletion = Deletion::Pending(commit);
            self.history.push(Change::TopicDeleted { topic: model.topic.id }, None);
        }
    }

    fn pick_partition(&mut self) -> Option<(TopicId, PartitionIndex)> {
        let live = self.topics.values().filter(|model| matches!(model.deletion, Deletion::No));
        let live: Vec<_> = live.map(|model| (model.topic.id, model.partitions.len())).collect();
        if live.is_empty() {
            return None;
        }
        let pick = usize::try_from(self.random(live.len() as u64)).expect("small");
        let (topic, partitions) = live[pick];
        let index = i32::try_from(self.random(partitions as u64)).expect("small");
        Some((topic, PartitionIndex::new(index)))
    }

    fn append(&mut self, store: &Store) {
        let Some((topic, partition)) = self.pick_partition() else { return };
        let count = 1 + usize::try_from(self.random(3)).expect("small");
        let producer = i64::try_from(self.random(4)).expect("small") - 1;
        let now = self.now;
        let filler = usize::try_from(self.random(2000)).expect("small");
        let model = self.model(topic, partition);
        let sequence = model.next_sequence.get(&producer).copied().unwrap_or(0);
        let values: Vec<_> = (0..count).map(|n| vec![u8::try_from(n).expect("small"); filler]).collect();
        let sent = build(producer, sequence, now, &values);
        let commit = match store.append(topic, partition, sent.clone(), now) {
            Ok(commit) => commit,
            Err(error) => {
                let is_expected = matches!(
                    error.kind(),
                    AppendErrorKind::UnknownTopic
                        | AppendErrorKind::UnknownPartition
                        | AppendErrorKind::Full
                        | AppendErrorKind::Busy
                        | AppendErrorKind::ReadOnly
                );
                assert!(is_expected, "{error}");
                return;
            }
        };
        let offset = commit.peek().expect("prepared").base_offset.value();
        let producer = (producer >= 0).then_some((producer, sequence));
        if let Some((id, _)) = producer {
            model.next_sequence.insert(id, sequence + i32::try_from(count).expect("small"));
        }
        let known = model.batches.insert(offset, Submitted { sent, acknowledged: false, producer });
        assert!(known.is_none(), "offset {offset} was given twice");
        model.pending.push((offset, commit));
    }

    /// Sends the newest batch of a producer again: it has to get the same offset.
    fn repeat(&mut self, store: &Store) {
        let Some((topic, partition)) = self.pick_partition() else { return };
        let now = self.now;
        let model = self.model(topic, partition);
        let Some((offset, known)) = model.batches.iter().rev().find(|(_, known)| known.producer.is_some())
        else {
            return;
        };
        let (offset, sent) = (*offset, known.sent.clone());
        if let Ok(commit) = store.append(topic, partition, sent, now) {
            assert_eq!(commit.peek().expect("prepared").base_offset.value(), offset, "a repeated batch");
            model.pending.push((offset, commit));
        }
    }

    fn take_producer_id(&mut self, store: &Store, stepper: &mut Stepper) {
        let Ok(mut commit) = store.init_producer_id() else { return };
        while stepper.step() {}
        if let Some(Ok((id, _))) = commit.try_take() {
            let is_new = self.producer_ids.insert(id);
            assert!(is_new || self.options.durability == Durability::Os, "producer id {id} was given twice");
        }
    }

    /// Notes what has been acknowledged. Nothing that was admitted fails while there is power.
    fn collect(&mut self) {
        let is_off = self.disk.is_off();
        let acknowledged = |ok: bool| assert!(ok || is_off, "an admitted entry failed without a cut");
        self.history.collect(is_off);
        for model in self.topics.values_mut() {
            if let Some(outcome) = model.created.as_mut().and_then(Commit::try_take) {
                acknowledged(outcome.is_ok());
                if outcome.is_ok() {
                    model.created = None;
                }
            }
            if let Deletion::Pending(commit) = &mut model.deletion
                && let Some(outcome) = commit.try_take()
            {
                acknowledged(outcome.is_ok());
                if outcome.is_ok() {
                    model.deletion = Deletion::Durable;
                }
            }
            for partition in &mut model.partitions {
                let start_min = &mut partition.start_min;
                partition.deletions.retain_mut(|commit| match commit.try_take() {
                    None => true,
                    Some(outcome) => {
                        acknowledged(outcome.is_ok());
                        *start_min = outcome.map_or(*start_min, |start| start.value().max(*start_min));
                        false
                    }
                });
                let batches = &mut partition.batches;
                partition.pending.retain_mut(|(offset, commit)| match commit.try_take() {
                    None => true,
                    Some(outcome) => {
                        acknowledged(outcome.is_ok());
                        if let (Ok(_), Some(known)) = (outcome, batches.get_mut(offset)) {
                            known.acknowledged = true;
                        }
                        false
                    }
                });
            }
        }
    }

    /// After a restart: the store against the model; then the model takes over what the store has.
    fn verify(&mut self, store: &Store, stepper: &mut Stepper) {
        let durability = self.options.durability;
        self.topics.retain(|id, model| {
            let exists = store.offsets(*id, P0).is_ok();
            let name = &model.topic.name;
            match (&model.created, &model.deletion) {
                // Answered before it was synced: a power cut may undo it.
                _ if durability == Durability::Os => {}
                (_, Deletion::Durable) => assert!(!exists, "{name} was deleted and is there"),
                (None, Deletion::No) => assert!(exists, "{name} was created and is gone"),
                _ => {}
            }
            (model.created, model.deletion) = (None, Deletion::No);
            exists
        });
        self.verify_history(store);
        let starts = self.retained.starts.lock().clone();
        let now = self.now;
        for (id, model) in &mut self.topics {
            // Those whose creation did not become durable are not there.
            while store.offsets(*id, PartitionIndex::new(count_of(&model.partitions) - 1)).is_err() {
                let lost = model.partitions.pop().expect("there is always one");
                let had_records = lost.batches.values().any(|known| known.acknowledged);
                assert!(durability == Durability::Os || !had_records, "a partition is lost");
            }
            for (index, partition) in (0..).map(PartitionIndex::new).zip(&mut model.partitions) {
                let start_max = starts.get(&(*id, index)).copied().unwrap_or(0);
                if durability == Durability::Os {
                    partition.batches.values_mut().for_each(|known| known.acknowledged = false);
                    partition.start_min = 0;
                }
                verify_partition(store, *id, index, partition, start_max);
                probe_windows(store, *id, index, partition, now);
            }
        }
        while stepper.step() {}
        self.collect();
    }

    fn model(&mut self, topic: TopicId, partition: PartitionIndex) -> &mut PartitionModel {
        let index = usize::try_from(partition.value()).expect("small");
        &mut self.topics.get_mut(&topic).expect("known").partitions[index]
    }

    fn random(&mut self, below: u64) -> u64 {
        self.rng ^= self.rng << 13;
        self.rng ^= self.rng >> 7;
        self.rng ^= self.rng << 17;
        self.rng % below
    }
}

fn count_of(partitions: &[PartitionModel]) -> i32 {
    i32::try_from(partitions.len()).expect("small")
}

fn verify_partition(
    store: &Store,
    id: TopicId,
    index: PartitionIndex,
    model: &mut PartitionModel,
    start_max: i64,
) {
    let offsets = store.offsets(id, index).expect("known");
    let (start, end) = (offsets.log_start.value(), offsets.high_watermark.value());
    assert!(start <= start_max, "the log starts at {start}, it was moved to {start_max}");
    assert!(start >= model.start_min, "records before {} were deleted, {start} is back", model.start_min);
    let mut expected = start;
    for bytes in read_all(store, id, index, 5000) {
        let (batch, _) = Batch::parse(&bytes).expect("a batch");
        let base = batch.base_offset();
        let reaches_below = expected == start && base < start && batch.next_offset() > start;
        assert!(base == expected || reaches_below, "offsets go on without gaps: {base}, {expected}");
        assert_eq!(batch.crc(), batch.computed_crc());
        let known = model.batches.get_mut(&base).expect("what is stored was submitted");
        assert_stored(&bytes, &known.sent, base);
        known.acknowledged = true;
        expected = batch.next_offset();
    }
    assert_eq!(expected, end);
    let lost = model.batches.range(end..).find(|(_, known)| known.acknowledged);
    assert!(lost.is_none(), "offset {:?} was acknowledged and is lost", lost.map(|(offset, _)| offset));
    model.batches.split_off(&end);
    model.pending.clear();
    model.deletions.clear();
    model.next_sequence.clear();
    for known in model.batches.values() {
        if let Some((id, sequence)) = known.producer {
            let (batch, _) = Batch::parse(&known.sent).expect("a batch");
            model.next_sequence.insert(id, sequence + batch.record_count());
        }
    }
}

/// The last five batches of each producer are known, and only the next sequence is accepted.
fn probe_windows(
    store: &Store,
    id: TopicId,
    index: PartitionIndex,
    model: &mut PartitionModel,
    now: Timestamp,
) {
    for (producer, next) in model.next_sequence.clone() {
        let of_it = |known: &&Submitted| known.producer.is_some_and(|(id, _)| id == producer);
        let window: Vec<_> = model.batches.iter().rev().filter(|(_, known)| of_it(known)).take(5).collect();
        for (offset, known) in window {
            let repeated = store.append(id, index, known.sent.clone(), now).expect("known to the window");
            // Looked at first: what is not a repetition waits for a step that nobody takes.
            let prepared = repeated.peek().expect("not taken").base_offset.value();
            assert_eq!(prepared, *offset, "producer {producer} repeats");
            repeated.wait().expect("durable");
        }
        let gap = build(producer, next + 1, now, &[vec![1]]);
        let error = store.append(id, index, gap, now).expect_err("a gap");
        assert_eq!(error.kind(), AppendErrorKind::OutOfOrderSequence);
    }
}

fn build(producer: i64, sequence: i32, now: Timestamp, values: &[Vec<u8>]) -> Bytes {
    let mut builder = kolumn_kafka_wire::records::BatchBuilder::new();
    if producer >= 0 {
        builder = builder.with_producer(producer, 0, sequence);
    }
    for value in values {
        builder.append(Some(b"k"), Some(value), [], now.value()).expect("fits");
    }
    builder.build().expect("fits")
}
