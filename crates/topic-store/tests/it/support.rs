//! Batches, settings and stores for the tests.

use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::Stepper;
use kolumn_journal::sim::SimDisk;
use kolumn_kafka_wire::records::{Batch, BatchBuilder};
use kolumn_topic_store::{
    Appended, Commit, Event, NewTopic, Observer, Offset, PartitionIndex, Read, ReadRequest, Settings, Silent,
    Store, Timestamp, Topic, TopicConfig, TopicId, View,
};
use parking_lot::Mutex;

pub(crate) const NOW: Timestamp = Timestamp::new(1_700_000_000_000);
pub(crate) const P0: PartitionIndex = PartitionIndex::new(0);

/// Small lengths, so that little data meets every limit.
pub(crate) fn small_settings() -> Settings {
    Settings {
        tail_len_max: 64 << 10,
        batch_len_max: 32 << 10,
        file_len: 128 << 10,
        queue_len_max: 1 << 20,
        size_limit: Some(64 << 20),
        checkpoint_distance: 128 << 10,
        retention_interval_ms: 0,
        ..Settings::default()
    }
}

pub(crate) fn silent() -> Arc<dyn Observer> {
    Arc::new(Silent::new())
}

/// Remembers the names of events.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) events: Mutex<Vec<String>>,
}

impl Observer for Recorder {
    fn event(&self, event: &Event<'_>) {
        self.events.lock().push(format!("{event:?}"));
    }
}

impl Recorder {
    pub(crate) fn count(&self, name: &str) -> usize {
        self.events.lock().iter().filter(|event| event.starts_with(name)).count()
    }
}

/// A batch of records with these values, one millisecond apart from `time` on.
pub(crate) fn batch_at(time: i64, values: &[&[u8]]) -> Bytes {
    let mut builder = BatchBuilder::new();
    for (value, index) in values.iter().zip(0_i64..) {
        builder.append(Some(b"key"), Some(value), [], time + index).expect("fits");
    }
    builder.build().expect("fits")
}

pub(crate) fn batch(values: &[&[u8]]) -> Bytes {
    batch_at(NOW.value(), values)
}

/// A batch of one large record.
pub(crate) fn large(byte: u8, len: usize) -> Bytes {
    batch(&[&vec![byte; len]])
}

/// A batch of `count` records of an idempotent producer.
pub(crate) fn batch_of(producer: i64, epoch: i16, sequence: i32, count: usize) -> Bytes {
    let mut builder = BatchBuilder::new().with_producer(producer, epoch, sequence);
    for index in 0..count {
        let value = format!("{producer}/{epoch}/{sequence}+{index}");
        builder.append(Some(b"key"), Some(value.as_bytes()), [], NOW.value()).expect("fits");
    }
    builder.build().expect("fits")
}

pub(crate) fn open_at(path: &std::path::Path, settings: Settings) -> Store {
    let (disk, _) = kolumn_journal::probe(path).expect("the directory is there");
    Store::open(disk, settings, 7, silent(), NOW).expect("opens")
}

pub(crate) fn new_topic(name: &str, partitions: i32, pairs: &[(&str, &str)]) -> NewTopic {
    let config = TopicConfig::parse(pairs.iter().copied()).expect("legal");
    NewTopic { name: name.into(), partitions, config }
}

pub(crate) fn make_topic(
    store: &Store,
    name: &str,
    partitions: i32,
    pairs: &[(&str, &str)],
) -> (View, Arc<Topic>) {
    let view = store.ensure_view("kafka", NOW).expect("admitted").wait().expect("durable");
    let new = new_topic(name, partitions, pairs);
    let topic = store.create_topic(view.id, new, false, NOW).expect("admitted").wait().expect("durable");
    (view, topic)
}

pub(crate) fn append(store: &Store, topic: TopicId, partition: PartitionIndex, batch: &Bytes) -> Appended {
    store.append(topic, partition, batch.clone(), NOW).expect("accepted").wait().expect("durable")
}

pub(crate) fn request(topic: TopicId, partition: PartitionIndex, offset: i64, max_len: usize) -> ReadRequest {
    ReadRequest { topic, partition, offset: Offset::new(offset), max_len, at_least_one_batch: true }
}

/// The bytes of an answer's batches.
pub(crate) fn bytes_of(read: &Read) -> Vec<Bytes> {
    read.slices.iter().map(|slice| slice.read(0..slice.len()).expect("readable")).collect()
}

/// All batches of a partition, read in steps of `step` bytes.
pub(crate) fn read_all(store: &Store, topic: TopicId, partition: PartitionIndex, step: usize) -> Vec<Bytes> {
    let mut offset = store.offsets(topic, partition).expect("known").log_start.value();
    let mut batches = Vec::new();
    loop {
        let read = store.read(request(topic, partition, offset, step)).expect("in range");
        if read.slices.is_empty() {
            assert_eq!(offset, read.offsets.high_watermark.value(), "reading ends at the high watermark");
            return batches;
        }
        for bytes in bytes_of(&read) {
            let (batch, rest) = Batch::parse(&bytes).expect("a batch");
            assert!(rest.is_empty(), "a slice is one batch");
            assert!(batch.last_offset() >= offset, "batches go on");
            let end = read.offsets.high_watermark.value();
            assert!(batch.next_offset() <= end, "nothing lies above the high watermark that is named");
            offset = batch.next_offset();
            batches.push(bytes);
        }
    }
}

/// The batch as it is stored: everything but offset and epoch is what the producer sent.
#[track_caller]
pub(crate) fn assert_stored(stored: &[u8], sent: &[u8], base_offset: i64) {
    let (batch, _) = Batch::parse(stored).expect("a batch");
    assert_eq!(batch.base_offset(), base_offset);
    assert_eq!(stored[8..12], sent[8..12]);
    assert_eq!(stored[16..], sent[16..]);
}

/// A store on a simulated disk that writes when it is told to.
pub(crate) struct Stepped {
    pub(crate) disk: SimDisk,
    pub(crate) store: Store,
    pub(crate) stepper: Stepper,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) now: Timestamp,
}

impl Stepped {
    pub(crate) fn open(settings: Settings) -> Self {
        Self::open_on(SimDisk::new(1), settings, NOW)
    }

    pub(crate) fn open_on(disk: SimDisk, settings: Settings, now: Timestamp) -> Self {
        let recorder = Arc::new(Recorder::default());
        let observer: Arc<dyn Observer> = Arc::<Recorder>::clone(&recorder);
        let (store, stepper) =
            Store::open_stepped(Arc::new(disk.clone()), settings, 7, observer, now).expect("opens");
        Self { disk, store, stepper, recorder, now }
    }

    /// Ends without a goodbye and opens again.
    pub(crate) fn reopen(self, settings: Settings) -> Self {
        let Self { disk, store, stepper, now, .. } = self;
        drop((store, stepper));
        disk.crash();
        Self::open_on(disk, settings, now)
    }

    pub(crate) fn settle(&mut self) {
        while self.stepper.step() {}
    }

    pub(crate) fn done<T>(&mut self, mut commit: Commit<T>) -> T {
        self.settle();
        commit.try_take().expect("settled").expect("durable")
    }

    pub(crate) fn topic(&mut self, name: &str, pairs: &[(&str, &str)]) -> (View, Arc<Topic>) {
        let view = self.store.ensure_view("kafka", self.now).expect("admitted");
        let view = self.done(view);
        let new = new_topic(name, 2, pairs);
        let topic = self.store.create_topic(view.id, new, false, self.now).expect("admitted");
        (view, self.done(topic))
    }

    pub(crate) fn append(&mut self, topic: TopicId, batch: &Bytes) -> Appended {
        let commit = self.store.append(topic, P0, batch.clone(), self.now).expect("accepted");
        self.done(commit)
    }

    /// Rounds of upkeep until what they decide has taken effect.
    pub(crate) fn maintain(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.store.maintain(self.now).expect("maintained");
            self.settle();
        }
    }

    pub(crate) fn later(&mut self, ms: i64) {
        self.now = Timestamp::new(self.now.value() + ms);
    }
}
