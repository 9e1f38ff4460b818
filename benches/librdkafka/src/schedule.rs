//! When the records of a fixed rate are meant to be sent.

use std::time::Duration;

/// The intended times lie on a grid of at most [`TICKS_PER_S`] points a second; faster rates have several records due at
/// once. So a sender wakes no more often than it can sleep exactly.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    rate: u32,
    ticks_per_s: u32,
}

impl Schedule {
    /// The schedule of `rate` records a second.
    pub(crate) fn new(rate: u32) -> Self {
        let rate = rate.max(1);
        Self { rate, ticks_per_s: rate.min(TICKS_PER_S) }
    }

    /// When this tick is, from the start.
    pub(crate) fn at(self, tick: u64) -> Duration {
        let nanos = u128::from(tick) * 1_000_000_000 / u128::from(self.ticks_per_s);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many records are due at this tick.
    pub(crate) fn due(self, tick: u64) -> u64 {
        self.before(tick + 1) - self.before(tick)
    }

    fn before(self, tick: u64) -> u64 {
        tick * u64::from(self.rate) / u64::from(self.ticks_per_s)
    }
}

const TICKS_PER_S: u32 = 4_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rate: u32) {
        let schedule = Schedule::new(rate);
        let ticks = 0..3 * u64::from(rate.min(TICKS_PER_S));
        assert!(
            schedule.at(ticks.end - 1) < Duration::from_secs(3)
                && schedule.at(ticks.end) == Duration::from_secs(3)
        );
        let sent: u64 = ticks.clone().map(|tick| schedule.due(tick)).sum();
        assert_eq!(sent, u64::from(rate) * 3);
        let (least, most) = (rate / rate.min(TICKS_PER_S), rate.div_ceil(rate.min(TICKS_PER_S)));
        for tick in ticks {
            assert!((u64::from(least)..=u64::from(most)).contains(&schedule.due(tick)));
        }
    }

    #[test]
    fn every_second_has_as_many_records_as_the_rate_says_and_they_are_spread_evenly() {
        for rate in [1, 7, 1_000, 4_000, 4_001, 10_000, 333_333, 1_000_000] {
            check(rate);
        }
    }

    #[test]
    fn a_slow_rate_has_one_record_a_tick() {
        let schedule = Schedule::new(1_000);
        assert_eq!(schedule.at(3), Duration::from_millis(3));
        assert_eq!(schedule.due(3), 1);
    }
}
