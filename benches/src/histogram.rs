//! Counts of durations in a fixed memory, with percentiles that are at most 1.6 % too high.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock;

/// Buckets of nanoseconds: exact below 128, then 64 for each power of two.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

/// The percentiles that are printed, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Percentiles {
    pub(crate) count: u64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, max: 0 }
    }

    pub(crate) fn record(&mut self, duration: Duration) {
        let value = clock::nanos(duration);
        if let Some(count) = self.counts.get_mut(bucket(value)) {
            *count += 1;
        }
        self.total += 1;
        self.max = self.max.max(value);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        Percentiles {
            count: self.total,
            p50: micros(self.quantile(500)),
            p99: micros(self.quantile(990)),
            p999: micros(self.quantile(999)),
            max: micros(self.max),
        }
    }

    /// The upper end of the bucket in which the given share (of a thousand) of all values is reached.
    fn quantile(&self, per_mille: u64) -> u64 {
        let wanted = (self.total * per_mille).div_ceil(1000);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && *count > 0 {
                return upper_end(index).min(self.max);
            }
        }
        self.max
    }
}

/// Powers of two from 2^7 to 2^63, 64 buckets each, after the 128 exact ones.
const BUCKETS: usize = 128 + 57 * 64;

fn bucket(value: u64) -> usize {
    let index = if value < 128 {
        value
    } else {
        let shift = u64::from(57 - value.leading_zeros());
        (value >> shift) + shift * 64
    };
    usize::try_from(index).unwrap_or(usize::MAX)
}

fn upper_end(index: usize) -> u64 {
    let index = u64::try_from(index).unwrap_or(u64::MAX);
    if index < 128 {
        return index;
    }
    let shift = index / 64 - 1;
    (((index % 64) + 65) << shift).wrapping_sub(1)
}

fn micros(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_near_its_end() {
        for value in
            (0..2000).chain((7..63).flat_map(|power| [(1_u64 << power) - 1, 1 << power, (1 << power) + 1]))
        {
            let index = bucket(value);
            assert!(index < BUCKETS);
            let end = upper_end(index);
            assert!(end >= value && end - value <= value / 64, "{value} ends at {end}");
            assert!(index <= bucket(value + 1));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_follow_the_sorted_values() {
        let mut histogram = Histogram::new();
        for value in 1..=1000 {
            histogram.record(Duration::from_micros(value));
        }
        let seen = histogram.percentiles();
        assert_eq!(seen.count, 1000);
        for (got, exact) in [(seen.p50, 500.0), (seen.p99, 990.0), (seen.p999, 999.0), (seen.max, 1000.0)] {
            assert!(got >= exact && got <= exact * 1.016, "{got} for {exact}");
        }
    }

    #[test]
    fn merging_is_recording_all() {
        let (mut one, mut other, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for value in [3, 700, 50_000] {
            one.record(Duration::from_nanos(value));
            both.record(Duration::from_nanos(value));
        }
        for value in [9, 1 << 40] {
            other.record(Duration::from_nanos(value));
            both.record(Duration::from_nanos(value));
        }
        one.merge(&other);
        assert_eq!(one.percentiles(), both.percentiles());
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        assert_eq!(Histogram::new().percentiles(), Percentiles::default());
    }
}
