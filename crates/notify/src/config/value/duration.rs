//! Spans of time as Go writes them.

use std::time::Duration;

/// `duration => "0" | (number unit)+`, `number => digits ["." digits] | "." digits`, with the units `ns us ms s m h`.
///
/// A sign is accepted where Go accepts it, but a span less than zero is not. Digits below the nanosecond are cut.
pub(in crate::config) fn duration(value: &str) -> Result<Duration, String> {
    let reason = "is not a duration such as `30s`, `1m30s` or `250ms`";
    if value.starts_with('-') {
        return Err("is less than zero, or not a duration".into());
    }
    let mut rest = value.strip_prefix('+').unwrap_or(value);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(reason.into());
    }
    let mut nanos = 0_u64;
    while !rest.is_empty() {
        let (part, after) = leading_part(rest).ok_or(reason)?;
        nanos = nanos.checked_add(part).filter(|n| *n <= NANOS_MAX).ok_or("is longer than 292 years")?;
        rest = after;
    }
    Ok(Duration::from_nanos(nanos))
}

/// The first number with its unit in nanoseconds, saturated, and what follows it.
fn leading_part(text: &str) -> Option<(u64, &str)> {
    let (whole, after) = digits(text);
    let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // The longer unit first where one begins with the other.
    let units = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let (unit, after) = units.iter().find_map(|(name, unit)| Some((*unit, after.strip_prefix(name)?)))?;
    let mut nanos =
        whole.bytes().fold(0_u64, |n, b| n.saturating_mul(10).saturating_add(u64::from(b - b'0')));
    nanos = nanos.saturating_mul(unit);
    let mut scale = unit;
    for b in fraction.bytes() {
        // Each digit's worth is computed from the unit, so that nothing is lost before the nanosecond.
        scale /= 10;
        if scale == 0 {
            break;
        }
        nanos = nanos.saturating_add(scale * u64::from(b - b'0'));
    }
    Some((nanos, after))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(end)
}

/// Go's durations are signed numbers of nanoseconds.
const NANOS_MAX: u64 = i64::MAX.unsigned_abs();

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect_nanos: Option<u64>) {
        assert_eq!(duration(text).ok(), expect_nanos.map(Duration::from_nanos), "{text}");
    }

    #[test]
    fn durations_are_read_as_go_reads_them() {
        check("0", Some(0));
        check("0s", Some(0));
        check("30s", Some(30_000_000_000));
        check("+5s", Some(5_000_000_000));
        check("1m30s", Some(90_000_000_000));
        check("1h2m3.5s", Some(3_723_500_000_000));
        check("250ms", Some(250_000_000));
        check("1.5h", Some(5_400_000_000_000));
        check(".5s", Some(500_000_000));
        check("5.s", Some(5_000_000_000));
        check("100us", Some(100_000));
        check("100µs100μs", Some(200_000));
        check("1.9ns", Some(1));
        check("0.000000001s0.0000000019s", Some(2));
        check("2562047h47m16.854775807s", Some(9_223_372_036_854_775_807));
        check("2562047h47m16.854775808s", None);
    }

    #[test]
    fn what_is_not_a_duration_is_refused() {
        for text in [
            "",
            "3",
            "-5s",
            "s",
            ".s",
            ".",
            "1x",
            "1 s",
            "1s ",
            "1d",
            "30S",
            "1s1",
            "+",
            "+-1s",
            "9999999999h",
        ] {
            check(text, None);
        }
        check(&format!("{}s", "9".repeat(10_000)), None);
    }
}
