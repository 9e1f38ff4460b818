//! What a load saw, as it is printed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::histogram::Percentiles;

/// The fields of the blaster's outcome, and what only a client library knows.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Outcome {
    /// `produce`, `consume` or `end-to-end`.
    pub(crate) mode: &'static str,
    /// What was measured, without the warm-up.
    pub(crate) seconds: f64,
    /// Always 0: the library does not tell.
    pub(crate) requests: u64,
    pub(crate) records: u64,
    /// Bytes of values.
    pub(crate) bytes: u64,
    /// The same with the warm-up.
    pub(crate) bytes_total: u64,
    pub(crate) records_total: u64,
    pub(crate) gb_per_s: f64,
    pub(crate) records_per_s: f64,
    /// Produce: from the intended time of sending (at a rate) or handing over to the delivery report. End to end: from the
    /// intended time of sending to the receipt.
    pub(crate) latency_us: Percentiles,
    /// End to end: from the intended time of sending to the delivery report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acknowledgement_us: Option<Percentiles>,
    /// CPU time of this process, all in all.
    pub(crate) client_cpu_s: f64,
    /// Records that were refused, or not acknowledged, or not received.
    pub(crate) errors: u64,
    /// Offsets that did not follow their predecessor.
    pub(crate) gaps: u64,
    /// Consume: the first offset that was read of each partition.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) first_offsets: BTreeMap<i32, i64>,
    /// The offset after the last one of each partition: of acknowledged records, or of those read.
    pub(crate) next_offsets: BTreeMap<i32, i64>,
    /// What was wrong, for standard error.
    #[serde(skip)]
    pub(crate) faults: Vec<String>,
}

impl Outcome {
    /// The part that all loads have.
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits than an f64 has")]
    pub(crate) fn new(mode: &'static str, measured: Duration, counts: Counts) -> Self {
        let seconds = measured.as_secs_f64().max(1e-9);
        Self {
            mode,
            seconds,
            records: counts.records,
            bytes: counts.bytes,
            bytes_total: counts.bytes_total,
            records_total: counts.records_total,
            gb_per_s: counts.bytes as f64 / seconds / 1e9,
            records_per_s: counts.records as f64 / seconds,
            client_cpu_s: cpu().as_secs_f64(),
            ..Self::default()
        }
    }
}

/// What was measured, and what there was in all.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) bytes_total: u64,
    pub(crate) records_total: u64,
}

impl Counts {
    /// Counts a record with so many bytes of value.
    pub(crate) fn record(&mut self, len: usize, measured: bool) {
        let len = u64::try_from(len).unwrap_or_default();
        self.bytes_total += len;
        self.records_total += 1;
        if measured {
            self.bytes += len;
            self.records += 1;
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.bytes_total += other.bytes_total;
        self.records_total += other.records_total;
    }
}

/// CPU time that this process has used.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), nanos)
}
