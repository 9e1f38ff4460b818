//! Points in time, and their text in records.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use super::json::push_digits;

/// A point in time: nanoseconds since the start of 1970 in UTC, until the year 2554.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The time so many nanoseconds after the start of 1970.
    #[must_use]
    pub const fn from_unix_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start of 1970.
    #[must_use]
    pub const fn unix_nanos(self) -> u64 {
        self.0
    }

    /// Appends the time as `2025-02-06T01:04:31.998Z`, with so many digits after the point; what follows is cut off.
    pub(super) fn push_text(self, digits: Fraction, out: &mut Vec<u8>) {
        let seconds = self.0 / NANOS;
        let (year, month, day) = civil(seconds / DAY_SECONDS);
        let of_day = seconds % DAY_SECONDS;
        let fields = [
            (year, 4, b'-'),
            (month, 2, b'-'),
            (day, 2, b'T'),
            (of_day / 3600, 2, b':'),
            (of_day / 60 % 60, 2, b':'),
            (of_day % 60, 2, b'.'),
        ];
        for (value, width, end) in fields {
            push_digits(out, value, width);
            out.push(end);
        }
        let nanos = self.0 % NANOS;
        match digits {
            Fraction::Millis => push_digits(out, nanos / 1_000_000, 3),
            Fraction::Micros => push_digits(out, nanos / 1_000, 6),
        }
        out.push(b'Z');
    }
}

impl From<SystemTime> for Timestamp {
    /// Times before 1970 become its start, times after the year 2554 the last one that can be told.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Timestamp {
    /// Writes the time with three digits after the point, as records have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(24);
        self.push_text(Fraction::Millis, &mut text);
        f.pad(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTime;

    /// `year "-" month "-" day "T" hour ":" minute ":" second [ "." 1*9digit ] "Z"`
    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        parse(text.as_bytes()).map(Self).ok_or(InvalidTime)
    }
}

/// A text that is not a time in UTC between 1970 and 2554, such as `2025-02-06T01:04:31.998Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a time such as `2025-02-06T01:04:31.998Z`")]
#[non_exhaustive]
pub struct InvalidTime;

/// How exactly a time is written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fraction {
    /// Three digits.
    Millis,
    /// Six digits.
    Micros,
}

/// Year, month and day of a day since the start of 1970.
///
/// Years are counted from March on, so that the leap day is the last of its year, and in eras of 400 years, each of
/// which has as many days as any other.
fn civil(days: u64) -> (u64, u64, u64) {
    let since_era_zero = days + DAYS_TO_1970;
    let era = since_era_zero / ERA_DAYS;
    let of_era = since_era_zero % ERA_DAYS;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The inverse of [`civil`]; `None` for what is no day, or a day before 1970.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year_from_march = year.checked_sub(u64::from(month <= 2))?;
    let of_era = year_from_march % 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year_from_march / 400 * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    let days = days.checked_sub(DAYS_TO_1970)?;
    (civil(days) == (year, month, day)).then_some(days)
}

/// Nanoseconds since 1970 of a text; see [`Timestamp::from_str`].
fn parse(text: &[u8]) -> Option<u64> {
    let (year, rest) = number(text, 4, b'-')?;
    let (month, rest) = number(rest, 2, b'-')?;
    let (day, rest) = number(rest, 2, b'T')?;
    let (hour, rest) = number(rest, 2, b':')?;
    let (minute, rest) = number(rest, 2, b':')?;
    let rest = rest.strip_suffix(b"Z")?;
    let (second, fraction) = rest.split_at_checked(2)?;
    let second = decimal(second)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let nanos = match fraction.strip_prefix(b".") {
        Some(digits) if (1..=9).contains(&digits.len()) => {
            let missing = u32::try_from(9 - digits.len()).ok()?;
            decimal(digits)? * 10_u64.pow(missing)
        }
        None if fraction.is_empty() => 0,
        _ => return None,
    };
    let seconds = days(year, month, day)? * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    seconds.checked_mul(NANOS)?.checked_add(nanos)
}

/// A number of so many digits and the byte after it.
fn number(text: &[u8], width: usize, end: u8) -> Option<(u64, &[u8])> {
    let (digits, rest) = text.split_at_checked(width)?;
    Some((decimal(digits)?, rest.strip_prefix(&[end])?))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    digits
        .iter()
        .try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0')))
}

const NANOS: u64 = 1_000_000_000;
const DAY_SECONDS: u64 = 86_400;
/// Days of 400 years.
const ERA_DAYS: u64 = 146_097;
/// Days from the first of March of the year 0 to the start of 1970.
const DAYS_TO_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same by counting years and months one after the other.
    fn naive_civil(mut days: u64) -> (u64, u64, u64) {
        let leap =
            |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        let mut year = 1970;
        while days >= 365 + u64::from(leap(year)) {
            days -= 365 + u64::from(leap(year));
            year += 1;
        }
        for month in 1..=12 {
            let of_month = match month {
                2 => 28 + u64::from(leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            if days < of_month {
                return (year, month, days + 1);
            }
            days -= of_month;
        }
        unreachable!("a year has twelve months")
    }

    #[test]
    fn every_day_until_2554_has_the_date_that_counting_gives() {
        for day in 0..u64::MAX / NANOS / DAY_SECONDS {
            // Each day near a turn of a month, and each seventeenth of the others.
            let date = civil(day);
            assert_eq!(days(date.0, date.1, date.2), Some(day));
            if day % 17 == 0 || date.2 > 27 || date.2 == 1 {
                assert_eq!(date, naive_civil(day), "day {day}");
            }
        }
    }

    #[track_caller]
    fn check(text: &str, nanos: Option<u64>) {
        assert_eq!(text.parse().ok(), nanos.map(Timestamp), "{text}");
    }

    #[test]
    fn texts_of_times_are_read_and_others_refused() {
        check("1970-01-01T00:00:00Z", Some(0));
        check("2025-02-06T01:04:31.998Z", Some(1_738_803_871_998_000_000));
        check("2025-02-06T01:04:31.998000001Z", Some(1_738_803_871_998_000_001));
        check("2024-02-29T23:59:59.5Z", Some(1_709_251_199_500_000_000));
        for wrong in [
            "",
            "1969-12-31T23:59:59Z",
            "2023-02-29T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-00-01T00:00:00Z",
            "2025-01-32T00:00:00Z",
            "2025-01-00T00:00:00Z",
            "2025-01-01T24:00:00Z",
            "2025-01-01T00:60:00Z",
            "2025-01-01T00:00:60Z",
            "2025-01-01T00:00:00",
            "2025-01-01T00:00:00.Z",
            "2025-01-01T00:00:00.0000000000Z",
            "2025-01-01 00:00:00Z",
            "2025-01-01T00:00:00+00:00",
            "9999-01-01T00:00:00Z",
            "+025-01-01T00:00:00Z",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn times_outside_the_range_are_clamped() {
        let before = UNIX_EPOCH - std::time::Duration::from_secs(1);
        assert_eq!(Timestamp::from(before).unix_nanos(), 0);
        let after = UNIX_EPOCH + std::time::Duration::from_secs(u64::MAX / NANOS + 1);
        assert_eq!(Timestamp::from(after).unix_nanos(), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_time_is_read_back_as_it_was_written(nanos: u64) {
            let time = Timestamp(nanos);
            prop_assert_eq!(time.to_string().parse::<Timestamp>(), Ok(Timestamp(nanos / 1_000_000 * 1_000_000)));
            let mut micros = Vec::new();
            time.push_text(Fraction::Micros, &mut micros);
            let micros = String::from_utf8(micros).unwrap();
            prop_assert_eq!(micros.len(), 27);
            prop_assert_eq!(micros.parse::<Timestamp>(), Ok(Timestamp(nanos / 1_000 * 1_000)));
        }
    }
}
