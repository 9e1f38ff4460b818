//! The only place of the benchmark that reads clocks or sleeps.

use std::num::NonZeroU64;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since 1970, as record timestamps count.
#[expect(clippy::disallowed_methods, reason = "records carry the time of their making")]
pub(crate) fn unix_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Sleeps; never spins, because a spinning client steals the core that the broker needs.
#[expect(clippy::disallowed_methods, reason = "a fixed rate is kept by sleeping on a thread of its own")]
pub(crate) fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// Sleeps until `deadline`, at once back if that has passed.
pub(crate) fn sleep_until(deadline: Instant) {
    let left = deadline.saturating_duration_since(now());
    if !left.is_zero() {
        sleep(left);
    }
}

/// Asks the kernel to wake this thread when it asked to, not up to 50 µs later.
///
/// A refusal only makes the sleeps coarser, for all sides alike, so it is ignored.
pub(crate) fn sharpen_sleep() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// CPU time that this thread has used.
pub(crate) fn thread_cpu() -> Duration {
    duration(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))
}

fn duration(time: rustix::time::Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}

/// Nanoseconds of `duration`, saturating after five centuries.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
