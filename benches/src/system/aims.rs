//! What is aimed at, and whether the run has reached it.

use super::case::Case;
use super::side::Side;
use super::spread::Spread;
use super::stage::Row;
use super::summary::{
    Round, Summary, cpu_per_gb, cpu_to_floor, cpu_us_per_record, float, share_of_null, syncs_per_s,
};

/// A figure that is aimed at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Aim {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    pub(super) asked: Asked,
    pub(super) seen: Option<Spread>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Asked {
    AtLeast(f64),
    AtMost(f64),
}

impl Aim {
    /// Whether the median meets it; `None` where it is not known.
    pub(super) fn is_met(&self) -> Option<bool> {
        let median = self.seen?.median;
        Some(match self.asked {
            Asked::AtLeast(least) => median >= least,
            Asked::AtMost(most) => median <= most,
        })
    }
}

/// All aims with what was seen.
pub(super) fn aims(summary: &Summary) -> Vec<Aim> {
    let aims = RATES.iter().chain(COSTS).chain(LATENCIES).chain(FETCHES).chain(PARTITIONS);
    aims.map(|(title, unit, asked, figure)| Aim { title, unit, asked: *asked, seen: summary.of(figure) })
        .collect()
}

type Figure = (&'static str, &'static str, Asked, fn(&Round) -> Option<f64>);

const RATES: &[Figure] = &[
    ("W1 synced, rate to Kafka's, which does not sync", "", Asked::AtLeast(1.5), |round| {
        rates(round, Case::W1, Side::Sync, Side::Kafka)
    }),
    ("W1 synced, rate to Kafka's with a flush for each message", "", Asked::AtLeast(50.0), |round| {
        rates(round, Case::W1, Side::Sync, Side::KafkaFlush)
    }),
    ("W1 unsynced, rate to the slower of null and a bare aligned writer", "", Asked::AtLeast(0.9), |round| {
        let gb_per_s = |side| Some(round.row(Case::W1, "", side)?.seen.outcome.gb_per_s);
        let writer = round.calibration(|row| row.write_and_sync.gb_per_s)?;
        Some(gb_per_s(Side::Os)? / gb_per_s(Side::Null)?.min(writer))
    }),
    ("W1 unsynced, rate to Tansu's", "", Asked::AtLeast(5.0), |round| {
        rates(round, Case::W1, Side::Os, Side::Tansu)
    }),
    ("W2 synced, rate to null's", "", Asked::AtLeast(0.9), |round| {
        share_of_null(round, Case::W2, "", Side::Sync)
    }),
    ("W2 unsynced, rate to null's", "", Asked::AtLeast(0.9), |round| {
        share_of_null(round, Case::W2, "", Side::Os)
    }),
];

const COSTS: &[Figure] = &[
    ("W1 synced, CPU a GB to floor's", "", Asked::AtMost(1.3), |round| {
        cpu_to_floor(round, Case::W1, "", Side::Sync)
    }),
    ("W1 synced, CPU a GB to Kafka's", "", Asked::AtMost(0.333), |round| {
        rows(round, Case::W1, Side::Sync, Side::Kafka, cpu_per_gb)
    }),
    ("W1 synced, memory at most to Kafka's", "", Asked::AtMost(0.1), |round| {
        rows(round, Case::W1, Side::Sync, Side::Kafka, |row| float(row.used.resident_max))
    }),
];

const LATENCIES: &[Figure] = &[
    ("end to end at 1,000/s unsynced, p50", "ms", Asked::AtMost(0.25), |round| {
        Some(round.row(Case::W7, "", Side::Os)?.seen.outcome.latency_us.p50 / 1e3)
    }),
    ("end to end at 1,000/s synced, p50", "ms", Asked::AtMost(0.45), |round| {
        Some(round.row(Case::W7, "", Side::Sync)?.seen.outcome.latency_us.p50 / 1e3)
    }),
    ("end to end at 1,000/s unsynced, p99 to Kafka's", "", Asked::AtMost(1.0), |round| {
        rows(round, Case::W7, Side::Os, Side::Kafka, |row| row.seen.outcome.latency_us.p99)
    }),
    ("end to end at 1,000/s synced, p99 to Kafka's, which does not sync", "", Asked::AtMost(1.0), |round| {
        rows(round, Case::W7, Side::Sync, Side::Kafka, |row| row.seen.outcome.latency_us.p99)
    }),
];

const FETCHES: &[Figure] = &[
    ("fetch raw from memory", "GB/s", Asked::AtLeast(4.0), |round| {
        Some(round.row(Case::FetchRaw, "", Side::Sync)?.seen.outcome.gb_per_s)
    }),
    ("fetch by librdkafka, rate to that from null", "", Asked::AtLeast(0.95), |round| {
        share_of_null(round, Case::Fetch, "", Side::Sync)
    }),
];

const PARTITIONS: &[Figure] = &[
    ("W5 raw synced, CPU a record with 1,000 partitions to that with 1", "", Asked::AtMost(1.1), |round| {
        cases(round, Case::W5Rawx1000, cpu_us_per_record)
    }),
    ("W5 raw synced, CPU a record with 16,000 partitions to that with 1", "", Asked::AtMost(1.1), |round| {
        cases(round, Case::W5Rawx16000, cpu_us_per_record)
    }),
    (
        "W5 raw synced, syncs a second with 1,000 partitions to those with 1",
        "",
        Asked::AtMost(1.1),
        |round| cases(round, Case::W5Rawx1000, syncs_per_s),
    ),
    (
        "W5 raw synced, syncs a second with 16,000 partitions to those with 1",
        "",
        Asked::AtMost(1.1),
        |round| cases(round, Case::W5Rawx16000, syncs_per_s),
    ),
    ("start on 1,000 topics", "ms", Asked::AtMost(2_000.0), |round| {
        let numbers = &round.measured.get(&(Case::W13, Side::Sync))?.numbers;
        Some(numbers.iter().find(|number| number.name == "start on 1,000 topics")?.value)
    }),
];

fn rates(round: &Round, case: Case, side: Side, other: Side) -> Option<f64> {
    Some(round.rate(case, side)? / round.rate(case, other)?)
}

fn rows(round: &Round, case: Case, side: Side, other: Side, figure: fn(&Row) -> f64) -> Option<f64> {
    Some(figure(round.row(case, "", side)?) / figure(round.row(case, "", other)?))
}

/// A case of many partitions to the one with a single partition: of the blaster, because what librdkafka sends depends on them.
fn cases(round: &Round, case: Case, figure: fn(&Row) -> f64) -> Option<f64> {
    let of = |case| Some(figure(round.row(case, "", Side::Sync)?));
    Some(of(case)? / of(Case::W5Rawx1)?)
}

#[cfg(test)]
mod tests {
    use super::super::samples::lines;
    use super::*;

    #[test]
    fn aims_are_ratios_of_one_round_and_what_was_not_measured_is_not_known() {
        let aims = aims(&Summary::new(&lines(&[4.0, 4.1])));
        // Rates, then costs, then latencies, of what the samples have.
        let expected = [2.0, 100.0, 1.6 / 2.0, 6.4, 0.5, 0.8, 1.25, 1.0 / 6.0, 1.0, 0.2, 0.4, 0.1, 0.2];
        for (aim, expect) in aims.iter().zip(expected) {
            let seen = aim.seen.unwrap().median;
            assert!((seen - expect).abs() < 1e-9, "{}: {seen} for {expect}", aim.title);
        }
        assert_eq!(aims.len(), 20);
        assert!(aims[expected.len()..].iter().all(|aim| aim.seen.is_none() && aim.is_met().is_none()));
        let met: Vec<_> = aims.iter().map(Aim::is_met).take(6).collect();
        assert_eq!(met, [Some(true), Some(true), Some(false), Some(true), Some(false), Some(false)]);
    }
}
