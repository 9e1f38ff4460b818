//! Values as text, in PostgreSQL's spelling.

use std::fmt::Write as _;

use bytes::{BufMut, BytesMut};

use super::super::refusal::{Refusal, state};
use super::calendar::civil;
use super::{Value, json, value_at};

/// How bytes are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ByteaOutput {
    /// `\x` and hexadecimal digits.
    #[default]
    Hex,
    /// Printable ASCII as it is, other bytes as `\ooo`.
    Escape,
}

pub(super) fn write(value: &Value<'_>, output: ByteaOutput, out: &mut BytesMut) -> Result<(), Refusal> {
    match value {
        Value::Null => {}
        Value::Bool(value) => out.put_u8(if *value { b't' } else { b'f' }),
        Value::Integer(value) => put(out, format_args!("{value}")),
        Value::Float4(value) => float(f64::from(*value), value.to_string(), format!("{value:e}"), out),
        Value::Float8(value) => float(*value, value.to_string(), format!("{value:e}"), out),
        Value::Decimal(text) | Value::Other(text) => out.put_slice(text.as_bytes()),
        Value::Text(text) => out.put_slice(text.as_bytes()),
        Value::Bytes(bytes) => put_bytes(bytes, output, out),
        Value::Date(days) => date(*days, "", out),
        Value::Time(micros) => time(*micros, out),
        Value::Timestamp(micros) => timestamp(*micros, None, out),
        Value::TimestampZoned(micros, distance) => timestamp(*micros, Some(*distance), out),
        Value::Interval { months, days, micros } => interval(*months, *days, *micros, out),
        Value::Struct(..) => json::write(value, out)?,
        Value::List(elements) => {
            out.put_u8(b'{');
            for row in 0..elements.len() {
                if row > 0 {
                    out.put_u8(b',');
                }
                match value_at(elements.as_ref(), row)? {
                    Value::Null => out.put_slice(b"NULL"),
                    element => {
                        let mut text = BytesMut::new();
                        write(&element, output, &mut text)?;
                        quote_element(&text, out);
                    }
                }
            }
            out.put_u8(b'}');
        }
    }
    if out.len() > LEN_MAX {
        return Err(Refusal::error(state::LIMIT_EXCEEDED, "a row is longer than a gigabyte"));
    }
    Ok(())
}

/// An element of an array is quoted where it could be mistaken for something else.
fn quote_element(text: &[u8], out: &mut BytesMut) {
    let special = |byte: &u8| matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\') || byte.is_ascii_whitespace();
    if !text.is_empty() && !text.iter().any(special) && !text.eq_ignore_ascii_case(b"null") {
        return out.put_slice(text);
    }
    out.put_u8(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(*byte);
    }
    out.put_u8(b'"');
}

fn float(value: f64, plain: String, scientific: String, out: &mut BytesMut) {
    let text = if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else if value == 0.0 || (1e-4..1e15).contains(&value.abs()) {
        plain
    } else {
        match scientific.split_once('e') {
            Some((mantissa, exponent)) => match exponent.strip_prefix('-') {
                Some(digits) => format!("{mantissa}e-{digits:0>2}"),
                None => format!("{mantissa}e+{exponent:0>2}"),
            },
            None => scientific,
        }
    };
    out.put_slice(text.as_bytes());
}

fn put_bytes(bytes: &[u8], output: ByteaOutput, out: &mut BytesMut) {
    match output {
        ByteaOutput::Hex => {
            out.put_slice(b"\\x");
            hex(bytes, out);
        }
        ByteaOutput::Escape => {
            for byte in bytes {
                match byte {
                    b'\\' => out.put_slice(b"\\\\"),
                    0x20..=0x7e => out.put_u8(*byte),
                    _ => put(out, format_args!("\\{byte:03o}")),
                }
            }
        }
    }
}

pub(super) fn hex(bytes: &[u8], out: &mut BytesMut) {
    out.reserve(bytes.len().saturating_mul(2));
    for byte in bytes {
        for half in [byte >> 4, byte & 15] {
            out.put_u8(half + if half < 10 { b'0' } else { b'a' - 10 });
        }
    }
}

fn date(days: i64, after: &str, out: &mut BytesMut) {
    let (year, month, day) = civil(days);
    let (shown, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    put(out, format_args!("{shown:04}-{month:02}-{day:02}{after}{era}"));
}

fn time(micros: i64, out: &mut BytesMut) {
    let mut text = String::new();
    clock(micros, &mut text);
    out.put_slice(text.as_bytes());
}

/// `hh:mm:ss` with as much of a fraction as there is.
fn clock(micros: i64, text: &mut String) {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let _ = write!(text, "{hours:02}:{minutes:02}:{seconds:02}");
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        let _ = write!(text, ".{}", digits.trim_end_matches('0'));
    }
}

fn timestamp(micros: i128, distance: Option<i64>, out: &mut BytesMut) {
    let local = micros + i128::from(distance.unwrap_or_default()) * 1_000_000;
    // Milliseconds of 64 bits are fewer than 2^38 days.
    let days = i64::try_from(local.div_euclid(DAY_MICROS)).unwrap_or_default();
    let mut rest = String::from(" ");
    clock(i64::try_from(local.rem_euclid(DAY_MICROS)).unwrap_or_default(), &mut rest);
    if let Some(distance) = distance {
        let minutes = distance.abs() / 60;
        let sign = if distance < 0 { '-' } else { '+' };
        let _ = write!(rest, "{sign}{:02}", minutes / 60);
        if minutes % 60 != 0 {
            let _ = write!(rest, ":{:02}", minutes % 60);
        }
    }
    date(days, &rest, out);
}

fn interval(months: i32, days: i32, micros: i64, out: &mut BytesMut) {
    let mut parts = Vec::new();
    let (years, months) = (months / 12, months % 12);
    for (count, one, many) in [(years, "year", "years"), (months, "mon", "mons"), (days, "day", "days")] {
        if count != 0 {
            parts.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    }
    if micros != 0 || parts.is_empty() {
        let mut text = String::from(if micros < 0 { "-" } else { "" });
        clock(micros.saturating_abs(), &mut text);
        parts.push(text);
    }
    out.put_slice(parts.join(" ").as_bytes());
}

/// Writing into a buffer that grows cannot fail.
fn put(out: &mut BytesMut, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

/// As in PostgreSQL.
const LEN_MAX: usize = 1 << 30;
const DAY_MICROS: i128 = 86_400_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &Value<'_>, expect: &str) {
        let mut out = BytesMut::new();
        write(value, ByteaOutput::Hex, &mut out).expect("fits");
        assert_eq!(std::str::from_utf8(&out).expect("text"), expect);
    }

    #[test]
    fn values_are_spelled_as_postgresql_spells_them() {
        check(&Value::Bool(true), "t");
        check(&Value::Float8(0.1), "0.1");
        check(&Value::Float8(1.0), "1");
        check(&Value::Float4(0.1), "0.1");
        check(&Value::Float8(1e20), "1e+20");
        check(&Value::Float8(-1.5e-7), "-1.5e-07");
        check(&Value::Float8(f64::NAN), "NaN");
        check(&Value::Float8(f64::NEG_INFINITY), "-Infinity");
        check(&Value::Bytes(b"k1\xff"), "\\x6b31ff");
        check(&Value::Date(19_675), "2023-11-14");
        check(&Value::Date(-719_529), "0002-12-31 BC");
        check(&Value::Time(3_723_000_001), "01:02:03.000001");
        check(&Value::Timestamp(1_700_000_000_500_000), "2023-11-14 22:13:20.5");
        check(&Value::Timestamp(-1), "1969-12-31 23:59:59.999999");
        check(&Value::TimestampZoned(1_700_000_000_000_000, 0), "2023-11-14 22:13:20+00");
        check(&Value::TimestampZoned(1_700_000_000_000_000, 19_800), "2023-11-15 03:43:20+05:30");
        check(&Value::TimestampZoned(1_700_000_000_000_000, -3_600), "2023-11-14 21:13:20-01");
        check(&Value::Timestamp(i128::from(i64::MAX) * 1_000), "292278994-08-17 07:12:55.807");
        check(
            &Value::Interval { months: 14, days: -3, micros: 3_723_500_000 },
            "1 year 2 mons -3 days 01:02:03.5",
        );
        check(&Value::Interval { months: 0, days: 0, micros: 0 }, "00:00:00");
    }

    #[test]
    fn bytes_can_be_escaped() {
        let mut out = BytesMut::new();
        write(&Value::Bytes(b"a\\\n\xff"), ByteaOutput::Escape, &mut out).expect("fits");
        assert_eq!(&*out, b"a\\\\\\012\\377");
    }

    #[test]
    fn elements_are_quoted_where_they_must_be() {
        for (element, expect) in
            [("a", "a"), ("", "\"\""), ("null", "\"null\""), ("a,b", "\"a,b\""), ("\"\\", "\"\\\"\\\\\"")]
        {
            let mut out = BytesMut::new();
            quote_element(element.as_bytes(), &mut out);
            assert_eq!(&*out, expect.as_bytes());
        }
    }
}
