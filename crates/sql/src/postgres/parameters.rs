//! The values that a client binds to parameters.

use bytes::{Buf, Bytes};
use datafusion::common::ScalarValue;

use super::frame::Format;
use super::refusal::{Refusal, state};
use super::types::{data_type_of, element_of, oid};

/// Reads a value of the type of this number.
pub(crate) fn read(number: u32, format: Format, bytes: Option<&Bytes>) -> Result<ScalarValue, Refusal> {
    let Some(bytes) = bytes else {
        return ScalarValue::try_from(&data_type_of(number)).map_err(|error| invalid(&error.to_string()));
    };
    match format {
        Format::Text => {
            let text = std::str::from_utf8(bytes)
                .map_err(|_| Refusal::error(state::NOT_UTF8, "invalid byte sequence for encoding UTF8"))?;
            from_text(number, text)
        }
        Format::Binary => {
            let mut rest = bytes.clone();
            let value = from_binary(number, &mut rest)?;
            if rest.has_remaining() { Err(unfit()) } else { Ok(value) }
        }
    }
}

fn from_text(number: u32, text: &str) -> Result<ScalarValue, Refusal> {
    let wrong = || invalid(&format!("invalid input for the type of the parameter: `{text}`"));
    match number {
        oid::BOOL => match text.trim().to_ascii_lowercase().as_str() {
            "t" | "true" | "1" | "on" | "yes" | "y" => Ok(ScalarValue::Boolean(Some(true))),
            "f" | "false" | "0" | "off" | "no" | "n" => Ok(ScalarValue::Boolean(Some(false))),
            _ => Err(wrong()),
        },
        oid::BYTEA => bytea(text).map(|bytes| ScalarValue::Binary(Some(bytes))).ok_or_else(wrong),
        oid::NUMERIC => decimal(text.trim()).ok_or_else(wrong),
        oid::INT2
        | oid::INT4
        | oid::INT8
        | oid::OID
        | oid::FLOAT4
        | oid::FLOAT8
        | oid::DATE
        | oid::TIME
        | oid::TIMESTAMP
        | oid::TIMESTAMPTZ => {
            let value = ScalarValue::try_from_string(text.trim().to_owned(), &data_type_of(number));
            value.ok().filter(|value| !value.is_null()).ok_or_else(wrong)
        }
        array => match element_of(array) {
            Some(element) => {
                let elements = elements(text).ok_or_else(wrong)?;
                let null = ScalarValue::try_from(&data_type_of(element)).map_err(|_| wrong())?;
                let read = |text: Option<String>| match text {
                    Some(text) => from_text(element, &text),
                    None => Ok(null.clone()),
                };
                let elements = elements.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
                list(&elements, element)
            }
            None => Ok(ScalarValue::Utf8(Some(text.to_owned()))),
        },
    }
}

fn from_binary(number: u32, bytes: &mut Bytes) -> Result<ScalarValue, Refusal> {
    let micros = |since: i64| Some(since.saturating_add(MICROS_TO_2000));
    Ok(match number {
        oid::BOOL => ScalarValue::Boolean(Some(bytes.try_get_u8().map_err(|_| unfit())? != 0)),
        oid::INT2 => ScalarValue::Int16(Some(bytes.try_get_i16().map_err(|_| unfit())?)),
        oid::INT4 => ScalarValue::Int32(Some(bytes.try_get_i32().map_err(|_| unfit())?)),
        oid::INT8 => ScalarValue::Int64(Some(bytes.try_get_i64().map_err(|_| unfit())?)),
        oid::OID => ScalarValue::UInt32(Some(bytes.try_get_u32().map_err(|_| unfit())?)),
        oid::FLOAT4 => ScalarValue::Float32(Some(bytes.try_get_f32().map_err(|_| unfit())?)),
        oid::FLOAT8 => ScalarValue::Float64(Some(bytes.try_get_f64().map_err(|_| unfit())?)),
        oid::BYTEA => ScalarValue::Binary(Some(bytes.split_off(0).to_vec())),
        oid::DATE => {
            let days = bytes.try_get_i32().map_err(|_| unfit())?;
            ScalarValue::Date32(Some(days.saturating_add(DAYS_TO_2000)))
        }
        oid::TIME => ScalarValue::Time64Microsecond(Some(bytes.try_get_i64().map_err(|_| unfit())?)),
        oid::TIMESTAMP => {
            ScalarValue::TimestampMicrosecond(micros(bytes.try_get_i64().map_err(|_| unfit())?), None)
        }
        oid::TIMESTAMPTZ => {
            let at = micros(bytes.try_get_i64().map_err(|_| unfit())?);
            ScalarValue::TimestampMicrosecond(at, Some("+00:00".into()))
        }
        oid::NUMERIC => decimal(&numeric(bytes)?).ok_or_else(unfit)?,
        oid::UUID => {
            let value = bytes.try_get_u128().map_err(|_| unfit())?;
            let digits = format!("{value:032x}");
            let mut text = String::with_capacity(36);
            for (index, digit) in digits.chars().enumerate() {
                if matches!(index, 8 | 12 | 16 | 20) {
                    text.push('-');
                }
                text.push(digit);
            }
            ScalarValue::Utf8(Some(text))
        }
        array => {
            if let Some(element) = element_of(array) {
                return binary_array(element, bytes);
            }
            // The first byte of `jsonb` is its version.
            if number == oid::JSONB && bytes.try_get_u8().map_err(|_| unfit())? != 1 {
                return Err(unfit());
            }
            let text = bytes.split_off(0);
            let text = std::str::from_utf8(&text).map_err(|_| unfit())?;
            ScalarValue::Utf8(Some(text.to_owned()))
        }
    })
}

fn binary_array(element: u32, bytes: &mut Bytes) -> Result<ScalarValue, Refusal> {
    let next = |bytes: &mut Bytes| bytes.try_get_i32().map_err(|_| unfit());
    let dimensions = next(bytes)?;
    let _nulls = next(bytes)?;
    let _element = next(bytes)?;
    let mut elements = Vec::new();
    if dimensions == 1 {
        let count = next(bytes)?;
        let _first = next(bytes)?;
        for _ in 0..count {
            let len = next(bytes)?;
            let value = match usize::try_from(len) {
                Ok(len) if len <= bytes.len() => Some(bytes.split_to(len)),
                _ if len == -1 => None,
                _ => return Err(unfit()),
            };
            elements.push(read(element, Format::Binary, value.as_ref())?);
        }
    } else if dimensions != 0 {
        return Err(Refusal::error(state::FEATURE_NOT_SUPPORTED, "arrays of several dimensions"));
    }
    list(&elements, element)
}

fn list(elements: &[ScalarValue], element: u32) -> Result<ScalarValue, Refusal> {
    let element = data_type_of(element);
    // Numbers come with the scale that they are written with; the elements of a list have one type.
    let elements = elements.iter().map(|value| value.cast_to(&element)).collect::<Result<Vec<_>, _>>();
    let elements = elements.map_err(|error| invalid(&error.to_string()))?;
    Ok(ScalarValue::List(ScalarValue::new_list_nullable(&elements, &element)))
}

/// Whether a text is bytes in PostgreSQL's hex form.
pub(crate) fn is_hex(text: &[u8]) -> bool {
    text.starts_with(b"\\x") && std::str::from_utf8(text).is_ok_and(|text| bytea(text).is_some())
}

/// `bytea` as text: `\x` and hexadecimal digits, or bytes of which some are `\ooo` and a backslash is two.
pub(crate) fn bytea(text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("\\x") {
        let mut bytes = Vec::with_capacity(digits.len() / 2);
        let mut digits = digits.chars();
        while let Some(first) = digits.next() {
            let byte = first.to_digit(16)? * 16 + digits.next()?.to_digit(16)?;
            bytes.push(u8::try_from(byte).ok()?);
        }
        return Some(bytes);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'\\' => bytes.push(b'\\'),
            first => {
                let digits = [first, rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?.to_owned();
                bytes.push(u8::from_str_radix(&digits, 8).ok()?);
            }
        }
    }
    Some(bytes)
}

/// A number of up to 38 digits, with the scale that it is written with.
fn decimal(text: &str) -> Option<ScalarValue> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.'));
    if !plain {
        return text.parse().ok().map(|value| ScalarValue::Float64(Some(value)));
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}");
    let scale = i8::try_from(fraction.len()).ok().filter(|scale| *scale <= 38)?;
    let value: i128 = digits.parse().ok()?;
    (value.unsigned_abs() < 10_u128.pow(38)).then_some(ScalarValue::Decimal128(Some(value), 38, scale))
}

/// PostgreSQL's binary `numeric` as text.
fn numeric(bytes: &mut Bytes) -> Result<String, Refusal> {
    let mut next = || bytes.try_get_i16().map_err(|_| unfit());
    let (count, weight, sign, scale) = (next()?, next()?, next()?, next()?);
    let sign = match sign {
        0 => "",
        0x4000 => "-",
        _ => return Ok("NaN".to_owned()),
    };
    if !(-20..=20).contains(&weight) || !(0..=38).contains(&scale) {
        return Err(unfit());
    }
    let (mut whole, mut fraction) = (String::new(), String::new());
    // Digits between the point and the first one that is written are zeros.
    (weight..-1).for_each(|_| fraction.push_str("0000"));
    for position in 0..count {
        let digit = format!("{:04}", next()?);
        if position <= weight { whole.push_str(&digit) } else { fraction.push_str(&digit) }
    }
    (count..=weight).for_each(|_| whole.push_str("0000"));
    let scale = usize::try_from(scale).map_err(|_| unfit())?;
    let fraction: String = fraction.chars().chain(std::iter::repeat('0')).take(scale).collect();
    let point = if scale == 0 { "" } else { "." };
    Ok(format!("{sign}0{whole}{point}{fraction}"))
}

/// The elements of `{a,"b c",NULL}`; arrays of arrays have none.
fn elements(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut elements = Vec::new();
    let mut characters = inner.chars().peekable();
    if characters.peek().is_none() {
        return Some(elements);
    }
    loop {
        let (mut element, mut quoted) = (String::new(), false);
        loop {
            match characters.next() {
                Some('"') => {
                    quoted = true;
                    loop {
                        match characters.next()? {
                            '"' => break,
                            '\\' => element.push(characters.next()?),
                            other => element.push(other),
                        }
                    }
                }
                Some('\\') => element.push(characters.next()?),
                Some('{' | '}') => return None,
                Some(',') => break,
                Some(other) => element.push(other),
                None => {
                    elements.push(finished(element, quoted));
                    return Some(elements);
                }
            }
        }
        elements.push(finished(element, quoted));
    }
}

fn finished(element: String, quoted: bool) -> Option<String> {
    if quoted {
        return Some(element);
    }
    let element = element.trim();
    (!element.eq_ignore_ascii_case("null")).then(|| element.to_owned())
}

fn invalid(text: &str) -> Refusal {
    Refusal::error(state::INVALID_TEXT, text)
}

fn unfit() -> Refusal {
    Refusal::error(state::INVALID_BINARY, "incorrect binary data format in a parameter")
}

const DAYS_TO_2000: i32 = 10_957;
const MICROS_TO_2000: i64 = 946_684_800_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(number: u32, format: Format, bytes: &'static [u8], expect: &ScalarValue) {
        let value = read(number, format, Some(&Bytes::from_static(bytes))).expect("a value");
        assert_eq!(&value, expect);
    }

    #[test]
    fn texts_are_read_by_type() {
        check(oid::INT4, Format::Text, b" 42", &ScalarValue::Int32(Some(42)));
        check(oid::BOOL, Format::Text, b"t", &ScalarValue::Boolean(Some(true)));
        check(oid::BYTEA, Format::Text, b"\\x6b31", &ScalarValue::Binary(Some(b"k1".to_vec())));
        check(oid::BYTEA, Format::Text, b"k\\\\\\001", &ScalarValue::Binary(Some(b"k\\\x01".to_vec())));
        check(oid::NUMERIC, Format::Text, b"-1.50", &ScalarValue::Decimal128(Some(-150), 38, 2));
        check(oid::UNKNOWN, Format::Text, b"x", &ScalarValue::Utf8(Some("x".into())));
        check(oid::DATE, Format::Text, b"2000-01-02", &ScalarValue::Date32(Some(10_958)));
        let micros = Some(1_700_000_000_500_000);
        let expect = ScalarValue::TimestampMicrosecond(micros, None);
        check(oid::TIMESTAMP, Format::Text, b"2023-11-14 22:13:20.5", &expect);
        let texts = [Some("a"), None, Some("b,\"c")].map(|text| ScalarValue::Utf8(text.map(str::to_owned)));
        check(
            oid::TEXT_ARRAY,
            Format::Text,
            b"{a,NULL,\"b,\\\"c\"}",
            &list(&texts, oid::TEXT).expect("texts"),
        );
    }

    #[test]
    fn bytes_are_read_by_type() {
        check(oid::INT8, Format::Binary, &[0, 0, 0, 0, 0, 0, 0, 7], &ScalarValue::Int64(Some(7)));
        let zone = Some("+00:00".into());
        let expect = ScalarValue::TimestampMicrosecond(Some(MICROS_TO_2000 + 1), zone);
        check(oid::TIMESTAMPTZ, Format::Binary, &[0, 0, 0, 0, 0, 0, 0, 1], &expect);
        let number = &[0, 3, 0, 1, 0x40, 0, 0, 3, 0, 1, 9, 41, 26, 124];
        check(oid::NUMERIC, Format::Binary, number, &ScalarValue::Decimal128(Some(-12_345_678), 38, 3));
        let small = &[0, 1, 255, 254, 0, 0, 0, 5, 3, 232];
        check(oid::NUMERIC, Format::Binary, small, &ScalarValue::Decimal128(Some(1), 38, 5));
        let array = b"\0\0\0\x01\0\0\0\0\0\0\0\x19\0\0\0\x01\0\0\0\x01\0\0\0\x02ab";
        check(
            oid::TEXT_ARRAY,
            Format::Binary,
            array,
            &list(&[ScalarValue::from("ab")], oid::TEXT).expect("texts"),
        );
        let uuid = ScalarValue::from("01020304-0506-0708-090a-0b0c0d0e0f10");
        check(oid::UUID, Format::Binary, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], &uuid);
    }

    #[test]
    fn what_is_not_of_its_type_is_refused() {
        for (number, format, bytes) in [
            (oid::INT4, Format::Text, &b"x"[..]),
            (oid::INT4, Format::Binary, b"\0\0\0"),
            (oid::INT4, Format::Binary, b"\0\0\0\0\0"),
            (oid::BOOL, Format::Text, b"maybe"),
            (oid::BYTEA, Format::Text, b"\\x6"),
            (oid::BYTEA, Format::Text, b"\\9"),
            (oid::TEXT, Format::Text, b"\xff"),
            (oid::TIMESTAMP, Format::Text, b"yesterday at noon"),
            (oid::TEXT_ARRAY, Format::Text, b"{{a}}"),
            (oid::TEXT_ARRAY, Format::Binary, b"\0\0\0\x01\0\0\0\0\0\0\0\x19\x7f\xff\xff\xff\0\0\0\x01"),
            (oid::NUMERIC, Format::Binary, b"\x7f\xff\0\0\0\0\0\0"),
            (oid::JSONB, Format::Binary, b"\x02{}"),
        ] {
            let refused = read(number, format, Some(&Bytes::copy_from_slice(bytes)));
            assert!(refused.is_err(), "{number} {bytes:?} gave {refused:?}");
        }
    }
}
