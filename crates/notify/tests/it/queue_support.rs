//! What the tests of queues have in common: small ones on a simulated disk, messages that know their number, and
//! futures that are polled by hand.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use kolumn_journal::Disk;
use kolumn_journal::sim::SimDisk;
use kolumn_notify::event::{EventName, Timestamp};
use kolumn_notify::queue::{Batch, Message, Most, Queue, QueueOptions, QueueStepper};

/// Options for queues that roll and fill quickly.
pub(crate) fn small(seed: u64) -> QueueOptions {
    let mut options = QueueOptions::default();
    options.seed = seed;
    options.message_len_max = 8 << 10;
    options.file_len = 64 << 10;
    options.window_len = 16 << 10;
    options.checkpoint_distance = 64 << 10;
    options
}

/// The message with this number: what it holds follows from it.
pub(crate) fn message(id: u64, key: u64, len: usize) -> Message {
    let mut value = id.to_le_bytes().to_vec();
    value.resize(8 + len, b'x');
    Message::new(
        EventName::ObjectCreatedPut,
        format!("bucket/{key}"),
        value,
        Timestamp::from_unix_nanos(1 + id),
    )
}

pub(crate) fn id_of(message: &Message) -> u64 {
    u64::from_le_bytes(message.value[..8].try_into().unwrap())
}

pub(crate) fn ids(batch: &Batch) -> Vec<u64> {
    batch.deliveries().iter().map(|delivery| id_of(&delivery.message)).collect()
}

pub(crate) fn disk(sim: &SimDisk) -> Arc<dyn Disk> {
    Arc::new(sim.clone())
}

/// Polls once.
pub(crate) fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// What is there to be taken now.
pub(crate) fn take_now(queue: &Queue, most: usize) -> Option<Batch> {
    poll(pin!(queue.take(Most::new(most, usize::MAX)))).flatten()
}

/// Takes everything, one batch after the other, and gives it for delivered.
pub(crate) fn drain(queue: &Queue, stepper: &mut QueueStepper) -> Vec<u64> {
    let mut all = Vec::new();
    loop {
        stepper.settle();
        let Some(batch) = take_now(queue, 7) else { return all };
        all.extend(ids(&batch));
        queue.done(batch);
    }
}

/// Numbers that follow from a seed.
#[derive(Debug)]
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }
}

/// How many seeds a test runs: its share of `KOLUMN_SEEDS`, 200 if that is not set.
pub(crate) fn seeds(share_percent: u64) -> u64 {
    let all = std::env::var("KOLUMN_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(200u64);
    (all * share_percent / 100).max(1)
}
