//! Values in PostgreSQL's binary formats.

use bytes::{BufMut, BytesMut};
use datafusion::arrow::array::Array;

use super::super::refusal::{Refusal, state};
use super::super::types::oid;
use super::text::{self, ByteaOutput};
use super::{Value, value_at};

/// Writes a value as the type of this number, or an array of `element`.
pub(super) fn write(
    value: &Value<'_>,
    number: u32,
    element: Option<u32>,
    out: &mut BytesMut,
) -> Result<(), Refusal> {
    match value {
        Value::Bool(value) => out.put_u8(u8::from(*value)),
        Value::Integer(value) => integer(*value, number, out)?,
        Value::Float4(value) => out.put_f32(*value),
        Value::Float8(value) => out.put_f64(*value),
        Value::Decimal(text) => numeric(text, out)?,
        Value::Bytes(bytes) => out.put_slice(bytes),
        Value::Date(days) => {
            out.put_i32(i32::try_from(days.saturating_sub(DAYS_TO_2000)).unwrap_or(i32::MAX));
        }
        Value::Time(micros) => out.put_i64(*micros),
        // What the format cannot hold is its `infinity` and `-infinity`.
        Value::Timestamp(micros) | Value::TimestampZoned(micros, _) => {
            let since = micros - MICROS_TO_2000;
            let limit = if since < 0 { i64::MIN } else { i64::MAX };
            out.put_i64(i64::try_from(since).unwrap_or(limit));
        }
        Value::Interval { months, days, micros } => {
            out.put_i64(*micros);
            out.put_i32(*days);
            out.put_i32(*months);
        }
        Value::List(elements) => array(elements.as_ref(), element.unwrap_or(oid::TEXT), out)?,
        Value::Null | Value::Text(_) | Value::Struct(..) | Value::Other(_) => {
            text::write(value, ByteaOutput::Hex, out)?;
        }
    }
    Ok(())
}

fn integer(value: i64, number: u32, out: &mut BytesMut) -> Result<(), Refusal> {
    let unfit = |_| Refusal::error(state::INTERNAL, "an integer does not fit its type");
    match number {
        oid::INT2 => out.put_i16(i16::try_from(value).map_err(unfit)?),
        oid::INT4 => out.put_i32(i32::try_from(value).map_err(unfit)?),
        oid::OID => out.put_u32(u32::try_from(value).map_err(unfit)?),
        _ => out.put_i64(value),
    }
    Ok(())
}

/// `dimensions:i32 nulls:i32 type:u32 length:i32 first:i32 (length:i32 value)*`; an empty array has no dimension.
fn array(elements: &dyn Array, element: u32, out: &mut BytesMut) -> Result<(), Refusal> {
    let long = |_| Refusal::error(state::LIMIT_EXCEEDED, "an array is too long");
    out.put_i32(i32::from(!elements.is_empty()));
    out.put_i32(i32::from(elements.null_count() > 0));
    out.put_u32(element);
    if elements.is_empty() {
        return Ok(());
    }
    out.put_i32(i32::try_from(elements.len()).map_err(long)?);
    out.put_i32(1);
    for row in 0..elements.len() {
        match value_at(elements, row)? {
            Value::Null => out.put_i32(-1),
            value => {
                let mut bytes = BytesMut::new();
                write(&value, element, None, &mut bytes)?;
                out.put_i32(i32::try_from(bytes.len()).map_err(long)?);
                out.put_slice(&bytes);
            }
        }
    }
    Ok(())
}

/// `count:i16 weight:i16 sign:u16 scale:u16 digit:i16*count`, where digits are those of base 10000 and the first one is
/// multiplied by 10000 to the power of `weight`.
fn numeric(text: &str, out: &mut BytesMut) -> Result<(), Refusal> {
    let unfit = || Refusal::error(state::INTERNAL, "a number does not fit the format");
    let (sign, text) = text.strip_prefix('-').map_or((0_u16, text), |text| (0x4000, text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0');
    let scale = u16::try_from(fraction.len()).map_err(|_| unfit())?;
    let padding = (4 - whole.len() % 4) % 4;
    let padded =
        format!("{}{whole}{fraction}{}", "0".repeat(padding), "0".repeat((4 - fraction.len() % 4) % 4));
    let mut digits = Vec::new();
    for group in padded.as_bytes().chunks(4) {
        let group = std::str::from_utf8(group).ok().and_then(|group| group.parse::<i16>().ok());
        digits.push(group.ok_or_else(unfit)?);
    }
    let weight = i16::try_from((whole.len() + padding) / 4).map_err(|_| unfit())? - 1;
    let leading = digits.iter().take_while(|digit| **digit == 0).count();
    let used = digits.iter().rposition(|digit| *digit != 0).map_or(leading, |last| last + 1);
    let digits = digits.get(leading..used).unwrap_or_default();
    out.put_i16(i16::try_from(digits.len()).map_err(|_| unfit())?);
    let shift = i16::try_from(leading).map_err(|_| unfit())?;
    out.put_i16(if digits.is_empty() { 0 } else { weight - shift });
    out.put_u16(if digits.is_empty() { 0 } else { sign });
    out.put_u16(scale);
    for digit in digits {
        out.put_i16(*digit);
    }
    Ok(())
}

const DAYS_TO_2000: i64 = 10_957;
const MICROS_TO_2000: i128 = 946_684_800_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_numeric(text: &str, expect: &[i16]) {
        let mut out = BytesMut::new();
        numeric(text, &mut out).expect("fits");
        let expect: Vec<u8> = expect.iter().flat_map(|part| part.to_be_bytes()).collect();
        assert_eq!(&*out, &*expect, "{text}");
    }

    #[test]
    fn numbers_are_cut_at_the_decimal_point_into_digits_of_four() {
        check_numeric("0", &[0, 0, 0, 0]);
        check_numeric("0.00", &[0, 0, 0, 2]);
        check_numeric("1", &[1, 0, 0, 0, 1]);
        check_numeric("-12345.678", &[3, 1, 0x4000, 3, 1, 2345, 6780]);
        check_numeric("10000", &[1, 1, 0, 0, 1]);
        check_numeric("0.00001", &[1, -2, 0, 5, 1000]);
        check_numeric("18446744073709551615", &[5, 4, 0, 0, 1844, 6744, 737, 955, 1615]);
    }

    #[test]
    fn moments_count_from_2000_and_end_in_infinity() {
        for (micros, expect) in [
            (MICROS_TO_2000 + 1, 1),
            (i128::from(i64::MAX) * 1_000, i64::MAX),
            (i128::from(i64::MIN) * 1_000, i64::MIN),
        ] {
            let mut out = BytesMut::new();
            write(&Value::Timestamp(micros), oid::TIMESTAMP, None, &mut out).expect("fits");
            assert_eq!(&*out, &expect.to_be_bytes());
        }
    }
}
