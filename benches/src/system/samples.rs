//! Results made up for the tests.

use super::case::Case;
use super::results::{Line, Outcome, Trial};
use super::side::Side;
use super::stage::{Measured, Row, Used};
use super::verify::Verified;
use crate::blaster;
use crate::calibrate::{Calibration, Transfer};
use crate::histogram::Percentiles;

/// What tests choose of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) gb_per_s: f64,
    pub(super) cpu_s: f64,
    pub(super) p50_us: f64,
}

impl Default for Sample {
    fn default() -> Self {
        Self { gb_per_s: 1.0, cpu_s: 1.0, p50_us: 300.0 }
    }
}

/// Two gigabytes in a second and a warm-up that is as long.
pub(super) fn row(sample: Sample) -> Row {
    let Sample { gb_per_s, cpu_s, p50_us } = sample;
    let outcome = blaster::Outcome {
        mode: "produce".into(),
        seconds: 1.0,
        requests: 1,
        records: 1_000_000,
        bytes: 1_000_000_000,
        bytes_total: 2_000_000_000,
        records_total: 2_000_000,
        gb_per_s,
        records_per_s: gb_per_s * 1e6,
        latency_us: Percentiles {
            count: 1,
            p50: p50_us,
            p99: p50_us * 2.0,
            p999: p50_us * 4.0,
            max: p50_us * 10.0,
        },
    };
    let used =
        Used { wall_s: 2.0, cpu_s, resident_max: 90_000_000, written: 2_200_000_000, syncs: Some(1_000) };
    Row { name: String::new(), seen: outcome.into(), used }
}

pub(super) fn trial(round: u32, case: Case, side: Side, sample: Sample) -> Line {
    let mut measured = Measured { rows: vec![row(sample)], stopped_well: true, ..Measured::default() };
    measured.settings.push(("retention.bytes".into(), "4294967296".into()));
    if side != Side::Null {
        measured.verified.push(Verified {
            acknowledged: Some(2_000_000),
            end: 2_000_000,
            start_before: 0,
            start_after: 0,
            read: 2_000_000,
            gaps: 0,
            is_complete: true,
        });
    }
    Line::Tried(Box::new(Trial { round, case, side, outcome: Outcome::Measured(measured) }))
}

pub(super) fn failed(round: u32, case: Case, side: Side) -> Line {
    Line::Tried(Box::new(Trial { round, case, side, outcome: Outcome::Failed("it has ended".into()) }))
}

pub(super) fn calibration(stream: f64) -> Calibration {
    let transfer = |gb_per_s, cpu_s_per_gb| Transfer { gb_per_s, cpu_s_per_gb };
    Calibration {
        memory_copy_gb_per_s: 20.0,
        loopback: transfer(stream, 0.2),
        ping_pong_us: Percentiles::default(),
        sync_us: Percentiles { p99: 200.0, ..Percentiles::default() },
        sync_paced_us: Percentiles::default(),
        fresh_append: transfer(0.4, 2.0),
        write_and_sync: transfer(2.0, 0.1),
        fresh_write_and_sync: transfer(1.8, 0.12),
        receive_write_and_sync: transfer(1.5, 0.3),
        direct: true,
    }
}

/// A round for each loopback stream: W1, W2 and W7 on all sides that make sense, W1 raw on the null broker.
pub(super) fn lines(streams: &[f64]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (round, stream) in (1..).zip(streams) {
        lines.push(Line::Calibrated { round, calibration: calibration(*stream) });
        lines.push(trial(round, Case::W1Raw, Side::Null, Sample { gb_per_s: 3.0, ..Sample::default() }));
        for (side, gb_per_s, cpu_s, p50_us) in [
            (Side::Sync, 1.0, 1.0, 400.0),
            (Side::KafkaFlush, 0.01, 40.0, 3_000.0),
            (Side::Floor, 1.2, 0.8, 300.0),
            (Side::Os, 1.6, 0.9, 200.0),
            (Side::Kafka, 0.5, 6.0, 2_000.0),
            (Side::Tansu, 0.25, 8.0, 390_000.0),
            (Side::Null, 2.0, 0.2, 100.0),
        ] {
            let sample = Sample { gb_per_s, cpu_s, p50_us };
            let cases = [Case::W1, Case::W2, Case::W7];
            for case in cases.into_iter().filter(|case| case.makes_no_sense(side).is_none()) {
                lines.push(trial(round, case, side, sample));
            }
        }
    }
    lines
}
