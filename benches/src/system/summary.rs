//! The arithmetic: ratios inside each round, medians over the rounds, and whether the run counts.

use super::round::{Load, Round, Sample, Side};
use crate::calibrate::Calibration;

/// Median and range of what the rounds gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` of nothing.
    pub(crate) fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Self { median: f64::midpoint(lower, upper), min, max })
    }
}

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
    /// Printed beside the others, to explain them.
    Nothing,
}

impl Aim {
    /// Whether the median meets it; `None` where nothing is asked or known.
    pub(super) fn is_met(&self) -> Option<bool> {
        let median = self.seen?.median;
        match self.asked {
            Asked::AtLeast(least) => Some(median >= least),
            Asked::AtMost(most) => Some(median <= most),
            Asked::Nothing => None,
        }
    }
}

/// What a run says.
#[derive(Debug)]
pub(super) struct Summary {
    /// Which rounds count, by their index.
    pub(super) counted: Vec<usize>,
    pub(super) left_out: Vec<usize>,
    /// The null broker's rate in W1 against the loopback stream.
    pub(super) null_to_stream: Option<Spread>,
    pub(super) aims: Vec<Aim>,
}

/// A null broker below this share of the loopback stream makes the run void.
const NULL_TO_STREAM_MIN: f64 = 0.6;

/// How far a round's calibration may be from the median of all.
const CALIBRATION_DRIFT_MAX: f64 = 0.25;

impl Summary {
    pub(super) fn new(rounds: &[Round]) -> Self {
        let (counted, left_out) = partition(rounds);
        let of = |figure: &dyn Fn(&Round) -> Option<f64>| {
            Spread::new(counted.iter().filter_map(|index| rounds.get(*index)).filter_map(figure))
        };
        let aims = FIGURES
            .iter()
            .map(|(title, unit, asked, figure)| Aim { title, unit, asked: *asked, seen: of(figure) })
            .collect();
        let null_to_stream =
            of(&|round| Some(rate(&round.null, Load::W1)? / round.calibration.loopback.gb_per_s));
        Self { counted, left_out, null_to_stream, aims }
    }

    /// A run is void with a slow null broker, or if half of its rounds do not count.
    pub(super) fn is_void(&self) -> bool {
        let slow = self.null_to_stream.is_none_or(|spread| spread.median < NULL_TO_STREAM_MIN);
        slow || self.counted.len() <= self.left_out.len()
    }
}

type Figure = fn(&Round) -> Option<f64>;

const FIGURES: [(&str, &str, Asked, Figure); 9] = [
    ("W1 synced, rate to the null broker's", "", Asked::AtLeast(0.45), |round| {
        Some(rate(&round.broker, Load::W1)? / rate(&round.null, Load::W1)?)
    }),
    ("W1 synced, CPU a GB to aligned write + sync", "", Asked::AtMost(1.5), |round| {
        Some(cpu_per_gb(round.broker.sample(Load::W1)?) / round.calibration.write_and_sync.cpu_s_per_gb)
    }),
    ("W1 synced, CPU a GB to receive + aligned write + sync", "", Asked::Nothing, |round| {
        Some(
            cpu_per_gb(round.broker.sample(Load::W1)?)
                / round.calibration.receive_write_and_sync.cpu_s_per_gb,
        )
    }),
    ("fetch from memory, rate to the null drain", "", Asked::AtLeast(0.6), |round| {
        Some(rate(&round.broker, Load::FetchHot)? / rate(&round.null, Load::FetchHot)?)
    }),
    ("fetch of W1's log, rate to the null drain", "", Asked::Nothing, |round| {
        Some(rate(&round.broker, Load::FetchCold)? / rate(&round.null, Load::FetchHot)?)
    }),
    ("acknowledgement p99 at 1,000/s to a sync's p99", "", Asked::AtMost(4.0), |round| {
        Some(round.broker.sample(Load::Latency)?.outcome.latency_us.p99 / round.calibration.sync_us.p99)
    }),
    ("memory after start", "MB", Asked::AtMost(30.0), |round| {
        Some(megabytes(round.broker.resident_at_start))
    }),
    ("memory at most during W1", "MB", Asked::AtMost(100.0), |round| {
        Some(megabytes(round.broker.sample(Load::W1)?.resident_max))
    }),
    ("from start to listening", "ms", Asked::AtMost(100.0), |round| Some(round.broker.listening_after_ms)),
];

fn rate(side: &Side, load: Load) -> Option<f64> {
    side.sample(load).map(|sample| sample.outcome.gb_per_s)
}

/// CPU seconds of the broker for each gigabyte, warm-up included on both sides of the fraction.
pub(super) fn cpu_per_gb(sample: &Sample) -> f64 {
    sample.cpu_s / (float(sample.outcome.bytes_total) / 1e9)
}

/// CPU microseconds of the broker for each record.
pub(super) fn cpu_us_per_record(sample: &Sample) -> f64 {
    sample.cpu_s * 1e6 / float(sample.outcome.records_total)
}

/// Bytes written to the disk for each byte of batches.
pub(super) fn written_per_byte(sample: &Sample) -> f64 {
    float(sample.written) / float(sample.outcome.bytes_total)
}

pub(super) fn megabytes(bytes: u64) -> f64 {
    float(bytes) / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "a ratio needs no more digits than an f64 has")]
fn float(value: u64) -> f64 {
    value as f64
}

/// The rounds whose calibration is near the median, and the others.
fn partition(rounds: &[Round]) -> (Vec<usize>, Vec<usize>) {
    let figures: [fn(&Calibration) -> f64; 2] = [|row| row.loopback.gb_per_s, |row| row.memory_copy_gb_per_s];
    let near = |round: &Round| {
        figures.iter().all(|figure| {
            let median = Spread::new(rounds.iter().map(|round| figure(&round.calibration)));
            median.is_some_and(|spread| {
                (figure(&round.calibration) / spread.median - 1.0).abs() <= CALIBRATION_DRIFT_MAX
            })
        })
    };
    let (counted, left_out): (Vec<_>, Vec<_>) = rounds.iter().enumerate().partition(|(_, round)| near(round));
    let index = |of: Vec<(usize, &Round)>| of.into_iter().map(|(index, _)| index).collect();
    (index(counted), index(left_out))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::blaster::Outcome;
    use crate::calibrate::Transfer;
    use crate::histogram::Percentiles;

    /// A round in which the broker has half the null broker's rate.
    pub(in crate::system) fn round(stream: f64) -> Round {
        let transfer = |gb_per_s, cpu_s_per_gb| Transfer { gb_per_s, cpu_s_per_gb };
        let calibration = Calibration {
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
        };
        Round { calibration, null: side(3.0), broker: side(1.5) }
    }

    fn side(gb_per_s: f64) -> Side {
        let sample = Sample {
            outcome: Outcome {
                mode: "produce".into(),
                seconds: 1.0,
                requests: 1,
                records: 1_000_000,
                bytes: 1_000_000_000,
                bytes_total: 2_000_000_000,
                records_total: 2_000_000,
                gb_per_s,
                records_per_s: 1e6,
                latency_us: Percentiles { p99: 500.0, ..Percentiles::default() },
            },
            cpu_s: 0.5,
            resident_max: 90_000_000,
            written: 2_200_000_000,
        };
        Side {
            listening_after_ms: 5.0,
            resident_at_start: 10_000_000,
            samples: Load::ALL.map(|load| (load, sample.clone())).to_vec(),
            stopped_well: true,
        }
    }

    #[test]
    fn a_spread_is_median_and_range() {
        assert_eq!(Spread::new([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::new([4.0, 1.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(Spread::new([f64::NAN]), None);
    }

    #[test]
    fn ratios_are_taken_inside_each_round() {
        let summary = Summary::new(&[round(4.0), round(4.1)]);
        let medians: Vec<f64> =
            summary.aims.iter().filter_map(|aim| aim.seen).map(|seen| seen.median).collect();
        let expected = [0.5, 2.5, 0.25 / 0.3, 0.5, 0.5, 2.5, 10.0, 90.0, 5.0];
        for (got, wanted) in medians.iter().zip(expected) {
            assert!((got - wanted).abs() < 1e-9, "{medians:?}");
        }
        let met: Vec<_> = summary.aims.iter().map(Aim::is_met).collect();
        assert_eq!(met[..4], [Some(true), Some(false), None, Some(false)]);
        assert!(!summary.is_void());
    }

    #[test]
    fn a_slow_null_broker_makes_the_run_void() {
        assert!(Summary::new(&[round(5.1)]).is_void());
        assert!(Summary::new(&[]).is_void());
    }

    #[test]
    fn a_round_of_another_machine_speed_is_left_out() {
        let summary = Summary::new(&[round(4.0), round(2.0), round(4.2)]);
        assert_eq!((summary.counted, summary.left_out), (vec![0, 2], vec![1]));
    }

    #[test]
    fn costs_count_the_warm_up_on_both_sides() {
        let round = round(4.0);
        let sample = round.broker.sample(Load::W1).unwrap();
        assert!((cpu_per_gb(sample) - 0.25).abs() < 1e-9);
        assert!((cpu_us_per_record(sample) - 0.25).abs() < 1e-9);
        assert!((written_per_byte(sample) - 1.1).abs() < 1e-9);
    }
}
