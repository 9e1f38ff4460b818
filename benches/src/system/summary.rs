//! The arithmetic: figures inside each round, and whether the run counts.

use std::collections::BTreeMap;

use super::case::Case;
use super::results::{Line, Outcome};
use super::side::{Class, Side};
use super::spread::Spread;
use super::stage::{Measured, Row};
use crate::calibrate::Calibration;

/// What was measured in one round.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) calibrations: Vec<Calibration>,
    pub(super) measured: BTreeMap<(Case, Side), Measured>,
    pub(super) failed: BTreeMap<(Case, Side), String>,
}

impl Round {
    /// The row of a case, the empty name being all of it.
    pub(super) fn row(&self, case: Case, name: &str, side: Side) -> Option<&Row> {
        self.measured.get(&(case, side))?.row(name)
    }

    /// Records a second of a case that is one load.
    pub(super) fn rate(&self, case: Case, side: Side) -> Option<f64> {
        Some(self.row(case, "", side)?.seen.outcome.records_per_s)
    }

    pub(super) fn calibration(&self, figure: impl Fn(&Calibration) -> f64) -> Option<f64> {
        Some(Spread::new(self.calibrations.iter().map(figure))?.median)
    }
}

/// What a run says.
#[derive(Debug)]
pub(super) struct Summary {
    rounds: BTreeMap<u32, Round>,
    /// Their calibration is too far from the median.
    pub(super) left_out: Vec<u32>,
}

impl Summary {
    pub(super) fn new(lines: &[Line]) -> Self {
        let mut rounds: BTreeMap<u32, Round> = BTreeMap::new();
        for line in lines {
            match line {
                Line::Identity(_) => {}
                Line::Calibrated { round, calibration } => {
                    rounds.entry(*round).or_default().calibrations.push(calibration.clone());
                }
                Line::Tried(trial) => {
                    let round = rounds.entry(trial.round).or_default();
                    let key = (trial.case, trial.side);
                    match &trial.outcome {
                        Outcome::Measured(measured) => {
                            round.failed.remove(&key);
                            round.measured.insert(key, measured.clone());
                        }
                        Outcome::Failed(why) => {
                            round.failed.insert(key, why.clone());
                        }
                    }
                }
            }
        }
        let left_out = unlike_the_others(&rounds);
        Self { rounds, left_out }
    }

    /// All rounds, whether they count or not.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &Round)> {
        self.rounds.iter().map(|(number, round)| (*number, round))
    }

    /// The rounds that count.
    pub(super) fn counted(&self) -> impl Iterator<Item = &Round> {
        self.all().filter(|(number, _)| !self.left_out.contains(number)).map(|(_, round)| round)
    }

    /// Median and range over the rounds that count.
    pub(super) fn of(&self, figure: impl Fn(&Round) -> Option<f64>) -> Option<Spread> {
        Spread::new(self.counted().filter_map(figure))
    }

    /// The null broker's raw rate in W1 against the loopback stream; `None` where it was not measured.
    pub(super) fn null_to_stream(&self) -> Option<Spread> {
        self.of(|round| {
            let null = round.row(Case::W1Raw, "", Side::Null)?.seen.outcome.gb_per_s;
            Some(null / round.calibration(|row| row.loopback.gb_per_s)?)
        })
    }

    /// A run is void with a slow null broker, or if half of its rounds do not count.
    pub(super) fn is_void(&self) -> bool {
        let slow = self.null_to_stream().is_some_and(|spread| spread.median < NULL_TO_STREAM_MIN);
        slow || self.counted().count() <= self.left_out.len()
    }

    /// What is wrong with what the product did: wrong answers, or none.
    pub(super) fn faults_of_ours(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (number, round) in self.all() {
            let told = |case: Case, side: Side, fault: &str| {
                format!("{} on {} in round {number}: {fault}", case.name(), side.name())
            };
            for ((case, side), measured) in round.measured.iter().filter(|((_, side), _)| side.is_ours()) {
                faults.extend(measured.faults().iter().map(|fault| told(*case, *side, fault)));
            }
            for ((case, side), why) in round.failed.iter().filter(|((_, side), _)| side.is_ours()) {
                faults.push(told(*case, *side, why));
            }
        }
        faults
    }

    /// The cases and names of rows that were measured, in the order of the cases.
    pub(super) fn rows(&self) -> Vec<(Case, String)> {
        let mut rows: Vec<(Case, String)> = Vec::new();
        for case in Case::ALL {
            for ((_, _), measured) in
                self.counted().flat_map(|round| round.measured.iter().filter(|((of, _), _)| *of == case))
            {
                for row in &measured.rows {
                    let key = (case, row.name.clone());
                    if !rows.contains(&key) {
                        rows.push(key);
                    }
                }
            }
        }
        rows
    }
}

/// A null broker below this share of the loopback stream makes the run void.
pub(super) const NULL_TO_STREAM_MIN: f64 = 0.6;

/// How far a round's calibration may be from the median of all.
const CALIBRATION_DRIFT_MAX: f64 = 0.25;

/// The rounds in which the machine was faster or slower than usual at any time that it was looked at.
fn unlike_the_others(rounds: &BTreeMap<u32, Round>) -> Vec<u32> {
    let figures: [fn(&Calibration) -> f64; 2] = [|row| row.loopback.gb_per_s, |row| row.memory_copy_gb_per_s];
    let medians =
        figures.map(|figure| Spread::new(rounds.values().filter_map(|round| round.calibration(figure))));
    let near = |calibration: &Calibration| {
        figures.iter().zip(medians).all(|(figure, median)| {
            median.is_some_and(|spread| {
                (figure(calibration) / spread.median - 1.0).abs() <= CALIBRATION_DRIFT_MAX
            })
        })
    };
    let odd = rounds.iter().filter(|(_, round)| !round.calibrations.iter().all(near));
    odd.map(|(number, _)| *number).collect()
}

/// CPU seconds of the server for each gigabyte, warm-up included on both sides of the fraction.
pub(super) fn cpu_per_gb(row: &Row) -> f64 {
    row.used.cpu_s / gigabytes(row)
}

/// CPU seconds of the client for each gigabyte.
pub(super) fn client_cpu_per_gb(row: &Row) -> f64 {
    if row.seen.client_cpu_s > 0.0 { row.seen.client_cpu_s / gigabytes(row) } else { f64::NAN }
}

/// CPU microseconds of the server for each record.
pub(super) fn cpu_us_per_record(row: &Row) -> f64 {
    row.used.cpu_s * 1e6 / float(row.seen.outcome.records_total)
}

/// Bytes written to the disk for each byte of batches.
pub(super) fn written_per_byte(row: &Row) -> f64 {
    float(row.used.written) / float(row.seen.outcome.bytes_total)
}

/// Flushes of the disk in a second.
pub(super) fn syncs_per_s(row: &Row) -> f64 {
    row.used.syncs.map_or(f64::NAN, |syncs| float(syncs) / row.used.wall_s)
}

/// A rate to that of the null broker, in the same case of the same round.
pub(super) fn share_of_null(round: &Round, case: Case, name: &str, side: Side) -> Option<f64> {
    if side == Side::Null {
        return None;
    }
    let rate = |side| Some(round.row(case, name, side)?.seen.outcome.records_per_s);
    Some(rate(side)? / rate(Side::Null)?)
}

/// The CPU of a gigabyte to that of the floor of the same class, in the same case of the same round.
pub(super) fn cpu_to_floor(round: &Round, case: Case, name: &str, side: Side) -> Option<f64> {
    if side.class() == Class::Limit || side.is_floor() {
        return None;
    }
    let cpu = |side| Some(cpu_per_gb(round.row(case, name, side)?));
    let same_class = if side.class() == Class::Durable { Side::Floor } else { Side::FloorOs };
    let floor = cpu(same_class).or_else(|| cpu(Side::Floor))?;
    Some(cpu(side)? / floor)
}

pub(super) fn megabytes(bytes: u64) -> f64 {
    float(bytes) / 1e6
}

fn gigabytes(row: &Row) -> f64 {
    float(row.seen.outcome.bytes_total) / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "a ratio needs no more digits than an f64 has")]
pub(super) fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, Sample, lines};
    use super::*;

    #[test]
    fn ratios_are_taken_inside_each_round() {
        let summary = Summary::new(&lines(&[4.0, 4.1]));
        let seen = summary.of(|round| share_of_null(round, Case::W1, "", Side::Sync)).unwrap();
        assert!((seen.median - 0.5).abs() < 1e-9, "{seen:?}");
        let seen = summary.of(|round| cpu_to_floor(round, Case::W1, "", Side::Sync)).unwrap();
        assert!((seen.median - 1.25).abs() < 1e-9, "{seen:?}");
        assert!(!summary.is_void());
    }

    #[test]
    fn a_slow_null_broker_or_no_round_makes_the_run_void() {
        assert!(Summary::new(&lines(&[5.1])).is_void(), "3 of 5.1 GB/s are less than 0.6");
        assert!(Summary::new(&[]).is_void());
    }

    #[test]
    fn a_round_of_another_machine_speed_is_left_out() {
        let summary = Summary::new(&lines(&[4.0, 2.0, 4.2]));
        assert_eq!((summary.left_out.clone(), summary.counted().count()), (vec![2], 2));
    }

    #[test]
    fn a_round_that_was_taken_up_on_a_slower_machine_is_left_out() {
        let mut lines = lines(&[4.0, 4.1, 4.2]);
        lines.push(Line::Calibrated { round: 3, calibration: samples::calibration(2.0) });
        assert_eq!(Summary::new(&lines).left_out, [3]);
    }

    #[test]
    fn what_failed_and_was_tried_again_has_not_failed() {
        let mut lines = lines(&[4.0]);
        let well = samples::trial(1, Case::W2, Side::Os, Sample::default());
        let failed = samples::failed(1, Case::W2, Side::Os);
        lines.extend([failed.clone(), well]);
        assert!(Summary::new(&lines).faults_of_ours().is_empty());
        lines.push(failed);
        assert_eq!(Summary::new(&lines).faults_of_ours().len(), 1);
    }

    #[test]
    fn costs_count_the_warm_up_on_both_sides() {
        let row = samples::row(Sample { gb_per_s: 1.0, cpu_s: 0.5, ..Sample::default() });
        assert!((cpu_per_gb(&row) - 0.25).abs() < 1e-9);
        assert!((cpu_us_per_record(&row) - 0.25).abs() < 1e-9);
        assert!((written_per_byte(&row) - 1.1).abs() < 1e-9);
        assert!((syncs_per_s(&row) - 500.0).abs() < 1e-9);
        assert!(client_cpu_per_gb(&row).is_nan());
    }
}
