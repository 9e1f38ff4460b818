//! Delivery reports: what became of each record that was handed to a producer.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, DeliveryResult, Message as _};
use rdkafka::producer::ProducerContext;

use crate::clock;
use crate::histogram::Histogram;
use crate::outcome::Counts;

/// Counts the reports of one producer. Records carry their time of sending as nanoseconds since `epoch`.
#[derive(Debug)]
pub(crate) struct Reports {
    epoch: Instant,
    seen: Mutex<Seen>,
}

/// What a producer's reports said.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    measured_from: Instant,
    pub(crate) counts: Counts,
    pub(crate) latency: Histogram,
    /// The last acknowledgement.
    pub(crate) last: Instant,
    /// The offset after the last one of each partition that has one.
    next_offsets: Vec<i64>,
    /// The first error, of a record or of the client.
    pub(crate) fault: Option<String>,
}

impl Reports {
    pub(crate) fn new(epoch: Instant, partitions: u16) -> Self {
        Self { epoch, seen: Mutex::new(Seen::new(epoch, partitions)) }
    }

    /// Measures what is reported from now on, after the warm-up.
    pub(crate) fn begin(&self, start: Instant, warm_up: Duration) {
        let mut seen = self.seen();
        seen.measured_from = start + warm_up;
        seen.last = start;
    }

    /// What a record is given that was, or should have been, sent then.
    pub(crate) fn since_epoch(&self, sent: Instant) -> u64 {
        clock::nanos(sent.saturating_duration_since(self.epoch))
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    pub(crate) fn new(start: Instant, partitions: u16) -> Self {
        Self {
            measured_from: start,
            counts: Counts::default(),
            latency: Histogram::new(),
            last: start,
            next_offsets: vec![0; usize::from(partitions)],
            fault: None,
        }
    }

    fn acknowledged(&mut self, now: Instant, waited: Duration, message: &BorrowedMessage<'_>) {
        let measured = now >= self.measured_from;
        if measured {
            self.latency.record(waited);
        }
        self.counts.record(message.payload_len(), measured);
        self.last = now;
        let partition = usize::try_from(message.partition()).ok();
        if let Some(next) = partition.and_then(|partition| self.next_offsets.get_mut(partition)) {
            // Without acknowledgements there are no offsets; -1 leaves this as it is.
            *next = (*next).max(message.offset() + 1);
        }
    }

    /// The seconds that were measured.
    pub(crate) fn measured(&self) -> Duration {
        self.last.saturating_duration_since(self.measured_from)
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.counts.add(other.counts);
        self.latency.merge(&other.latency);
        self.last = self.last.max(other.last);
        self.measured_from = other.measured_from;
        for (next, more) in self.next_offsets.iter_mut().zip(&other.next_offsets) {
            *next = (*next).max(*more);
        }
        self.fault = self.fault.take().or_else(|| other.fault.clone());
    }

    pub(crate) fn next_offsets(&self) -> BTreeMap<i32, i64> {
        (0..).zip(&self.next_offsets).filter(|(_, next)| **next > 0).map(|(at, next)| (at, *next)).collect()
    }
}

impl ClientContext for Reports {
    /// The library tries again by itself; its first error is told if records are lost.
    fn error(&self, error: KafkaError, reason: &str) {
        self.seen().fault.get_or_insert_with(|| format!("{error}: {reason}"));
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: usize) {
        let now = clock::now();
        let sent = Duration::from_nanos(u64::try_from(sent).unwrap_or_default());
        let waited = now.saturating_duration_since(self.epoch).saturating_sub(sent);
        match result {
            Ok(message) => self.seen().acknowledged(now, waited, message),
            Err((error, _)) => {
                self.seen().fault.get_or_insert_with(|| error.to_string());
            }
        }
    }
}
