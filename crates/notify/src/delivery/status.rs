//! Counters of a target, and what is wrong with it.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::config::Arn;
use crate::event::Timestamp;
use crate::queue::QueueStats;

/// How a target is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetStatus {
    /// The target.
    pub arn: Arn,
    /// Events that wait or are under way.
    pub queued: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// How long ago the oldest of them happened.
    pub oldest_age: Option<Duration>,
    /// Events delivered since the start.
    pub sent: u64,
    /// Events that went to the dead letters since the start, because the target will never take them.
    pub failed: u64,
    /// Events dropped since the start, because the queue was full.
    pub dropped: u64,
    /// Events that the queue could not read back since the start.
    pub damaged: u64,
    /// Events that the queue did not take since the start.
    pub refused: u64,
    /// Sends that were tried again since the start.
    pub retries: u64,
    /// Whether the queue's disk has failed: it takes no event until it is opened again.
    pub queue_failed: bool,
    /// Why the last send failed, if none went well since.
    pub trouble: Option<Trouble>,
}

/// What is wrong with a target.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trouble {
    /// Why the last send failed; it has no secrets.
    pub reason: String,
    /// How many sends failed in a row.
    pub failures: u32,
}

/// What a worker counts.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) sent: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) retries: AtomicU64,
    trouble: Mutex<Option<Trouble>>,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn set_trouble(&self, trouble: Option<Trouble>) {
        *self.trouble.lock() = trouble;
    }

    pub(super) fn status(&self, arn: &Arn, queue: &QueueStats, now: Timestamp) -> TargetStatus {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let age =
            |oldest: Timestamp| Duration::from_nanos(now.unix_nanos().saturating_sub(oldest.unix_nanos()));
        TargetStatus {
            arn: arn.clone(),
            queued: queue.queued,
            queued_bytes: queue.bytes,
            oldest_age: queue.oldest.map(age),
            sent: read(&self.sent),
            failed: queue.set_aside,
            dropped: queue.dropped,
            damaged: queue.damaged,
            refused: read(&self.refused),
            retries: read(&self.retries),
            queue_failed: queue.failed,
            trouble: self.trouble.lock().clone(),
        }
    }
}

/// Appends the counters of targets in the text format of Prometheus, version 0.0.4.
pub fn write_metrics(targets: &[TargetStatus], out: &mut String) {
    for metric in METRICS {
        let Metric { name, kind, help, .. } = metric;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}");
        for target in targets {
            // An ARN has neither quotes, backslashes nor ends of lines, so it needs no escapes.
            let _ = write!(out, "{PREFIX}{name}{{target=\"{}\"}} ", target.arn);
            let _ = match (metric.value)(target) {
                Value::Count(count) => writeln!(out, "{count}"),
                Value::Seconds(time) => writeln!(out, "{}.{:03}", time.as_secs(), time.subsec_millis()),
            };
        }
    }
}

struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&TargetStatus) -> Value,
}

enum Value {
    Count(u64),
    Seconds(Duration),
}

const PREFIX: &str = "kolumn_notify_target_";

const METRICS: &[Metric] = &[
    Metric {
        name: "queued_events",
        kind: "gauge",
        help: "Events that wait or are under way.",
        value: |target| Value::Count(target.queued),
    },
    Metric {
        name: "queued_bytes",
        kind: "gauge",
        help: "Bytes of the events that wait or are under way.",
        value: |target| Value::Count(target.queued_bytes),
    },
    Metric {
        name: "oldest_age_seconds",
        kind: "gauge",
        help: "Time since the oldest event that waits happened; 0 if none waits.",
        value: |target| Value::Seconds(target.oldest_age.unwrap_or_default()),
    },
    Metric {
        name: "queue_failed",
        kind: "gauge",
        help: "1 if the queue's disk has failed and the queue takes no event, else 0.",
        value: |target| Value::Count(target.queue_failed.into()),
    },
    Metric {
        name: "failures_in_a_row",
        kind: "gauge",
        help: "Sends that failed since the last that went well.",
        value: |target| Value::Count(target.trouble.as_ref().map_or(0, |trouble| trouble.failures.into())),
    },
    Metric {
        name: "sent_events_total",
        kind: "counter",
        help: "Events delivered.",
        value: |target| Value::Count(target.sent),
    },
    Metric {
        name: "failed_events_total",
        kind: "counter",
        help: "Events that went to the dead letters because the target will never take them.",
        value: |target| Value::Count(target.failed),
    },
    Metric {
        name: "dropped_events_total",
        kind: "counter",
        help: "Events dropped because the queue was full.",
        value: |target| Value::Count(target.dropped),
    },
    Metric {
        name: "damaged_events_total",
        kind: "counter",
        help: "Events that the queue could not read back.",
        value: |target| Value::Count(target.damaged),
    },
    Metric {
        name: "refused_events_total",
        kind: "counter",
        help: "Events that the queue did not take.",
        value: |target| Value::Count(target.refused),
    },
    Metric {
        name: "retries_total",
        kind: "counter",
        help: "Sends that were tried again.",
        value: |target| Value::Count(target.retries),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> TargetStatus {
        let counters = Counters::default();
        Counters::add(&counters.sent, 7);
        Counters::add(&counters.retries, 2);
        counters.set_trouble(Some(Trouble { reason: "no answer".into(), failures: 3 }));
        let queue = QueueStats {
            queued: 5,
            bytes: 500,
            oldest: Some(Timestamp::from_unix_nanos(1_000_000_000)),
            ..QueueStats::default()
        };
        let arn = "arn:minio:sqs::primary:kafka".parse().unwrap();
        counters.status(&arn, &queue, Timestamp::from_unix_nanos(3_250_000_000))
    }

    #[test]
    fn each_counter_is_a_metric_with_the_target_as_its_label() {
        let mut text = String::new();
        write_metrics(&[status()], &mut text);
        for line in [
            "# TYPE kolumn_notify_target_queued_events gauge",
            "kolumn_notify_target_queued_events{target=\"arn:minio:sqs::primary:kafka\"} 5",
            "kolumn_notify_target_queued_bytes{target=\"arn:minio:sqs::primary:kafka\"} 500",
            "kolumn_notify_target_oldest_age_seconds{target=\"arn:minio:sqs::primary:kafka\"} 2.250",
            "kolumn_notify_target_failures_in_a_row{target=\"arn:minio:sqs::primary:kafka\"} 3",
            "kolumn_notify_target_sent_events_total{target=\"arn:minio:sqs::primary:kafka\"} 7",
            "kolumn_notify_target_retries_total{target=\"arn:minio:sqs::primary:kafka\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert_eq!(text.lines().count(), METRICS.len() * 3);
    }

    #[test]
    fn an_age_is_never_negative() {
        let queue = QueueStats { oldest: Some(Timestamp::from_unix_nanos(9)), ..QueueStats::default() };
        let arn = "arn:minio:sqs::_:nsq".parse().unwrap();
        let status = Counters::default().status(&arn, &queue, Timestamp::from_unix_nanos(3));
        assert_eq!(status.oldest_age, Some(Duration::ZERO));
        assert_eq!(status.trouble, None);
    }
}
