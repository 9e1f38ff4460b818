//! How long to wait before the next attempt.

use std::time::Duration;

/// How long to wait between two attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackoffSettings {
    /// The longest wait after the first failure. Each further one doubles it.
    pub first: Duration,
    /// The longest wait after any number of failures.
    pub max: Duration,
}

impl BackoffSettings {
    /// From a fifth of a second to half a minute: what was a blink costs little, and what takes hours is not asked more than
    /// twice a minute.
    pub const DEFAULT: Self = Self { first: Duration::from_millis(200), max: Duration::from_secs(30) };

    /// Waits between these two.
    #[must_use]
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self { first, max }
    }
}

impl Default for BackoffSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The waits after failures in a row: exponential, with jitter, without an end.
///
/// A wait is at least half and at most the whole of its bound, so that targets which failed together do not come back
/// together. Which of them is chosen follows from the seed.
///
/// ```
/// use std::time::Duration;
/// use kolumn_notify::delivery::{Backoff, BackoffSettings};
///
/// let second = Duration::from_secs(1);
/// let mut backoff = Backoff::new(BackoffSettings::new(second, 10 * second), 7);
/// for bound in [1, 2, 4, 8, 10, 10] {
///     let wait = backoff.next_wait();
///     assert!(bound * second / 2 <= wait && wait <= bound * second);
/// }
/// backoff.reset();
/// assert!(backoff.next_wait() <= second);
/// ```
#[derive(Debug, Clone)]
pub struct Backoff {
    settings: BackoffSettings,
    failures: u32,
    seed: u64,
}

impl Backoff {
    /// No failure as yet.
    #[must_use]
    pub fn new(settings: BackoffSettings, seed: u64) -> Self {
        Self { settings, failures: 0, seed }
    }

    /// How long to wait after one more failure.
    pub fn next_wait(&mut self) -> Duration {
        let doubled =
            2_u32.checked_pow(self.failures).and_then(|factor| self.settings.first.checked_mul(factor));
        let bound = doubled.map_or(self.settings.max, |wait| wait.min(self.settings.max));
        self.failures = self.failures.saturating_add(1);
        let half = bound / 2;
        let spread = u64::try_from(bound.saturating_sub(half).as_nanos()).unwrap_or(u64::MAX);
        // The upper 64 bits of the product: a number below `spread`, or all of it.
        let part = (u128::from(self.chance()) * (u128::from(spread) + 1)) >> 64;
        half + Duration::from_nanos(u64::try_from(part).unwrap_or(spread))
    }

    /// After a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// How many failures there were since the last success.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// The next number of the seed's sequence (`SplitMix64`).
    fn chance(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_wait_is_between_half_and_the_whole_of_its_bound(
            seed: u64, first in 0..=5_000_u64, max in 0..=100_000_u64, failures in 0..70_u32
        ) {
            let [first, max] = [first, max].map(Duration::from_millis);
            let mut backoff = Backoff::new(BackoffSettings::new(first, max), seed);
            for _ in 0..failures {
                backoff.next_wait();
            }
            // The same without a bound on the factor.
            let mut bound = first;
            for _ in 0..failures {
                bound = (bound * 2).min(max);
            }
            let bound = bound.min(max);
            let wait = backoff.next_wait();
            prop_assert!(bound / 2 <= wait && wait <= bound, "{:?} of {:?}", wait, bound);
            prop_assert_eq!(backoff.failures(), failures + 1);
        }
    }

    #[test]
    fn waits_of_different_seeds_are_spread_over_the_whole_half() {
        let bound = Duration::from_secs(1);
        let waits = (0..1000).map(|seed| Backoff::new(BackoffSettings::new(bound, bound), seed).next_wait());
        let early = waits.clone().filter(|wait| *wait < Duration::from_millis(625)).count();
        let late = waits.filter(|wait| *wait > Duration::from_millis(875)).count();
        assert!((150..350).contains(&early) && (150..350).contains(&late), "{early} {late}");
    }

    #[test]
    fn failures_without_number_do_not_overflow() {
        let mut backoff = Backoff::new(BackoffSettings::DEFAULT, 1);
        backoff.failures = u32::MAX;
        assert!(backoff.next_wait() <= BackoffSettings::DEFAULT.max);
        assert_eq!(backoff.failures(), u32::MAX);
    }
}
