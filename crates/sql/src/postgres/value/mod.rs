//! One value of a column of Arrow, and how PostgreSQL writes it.

mod binary;
mod calendar;
mod json;
mod text;

use bytes::BytesMut;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StructArray, make_array};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DecimalType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::frame::Format;
use super::refusal::Refusal;
use super::types::{element_of, oid};

pub(crate) use text::ByteaOutput;

/// A value; moments count microseconds, more of them than 64 bits can hold where the column counts seconds.
#[derive(Debug)]
enum Value<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Float4(f32),
    Float8(f64),
    Decimal(String),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// Days since 1970.
    Date(i64),
    Time(i64),
    Timestamp(i128),
    /// A moment and its zone's distance from UTC in seconds.
    TimestampZoned(i128, i64),
    Interval {
        months: i32,
        days: i32,
        micros: i64,
    },
    List(ArrayRef),
    Struct(&'a StructArray, usize),
    /// What PostgreSQL knows nothing like.
    Other(String),
}

/// Writes the value of a row as the type of this number; returns whether there is one, or it is null.
pub(crate) fn write(
    array: &dyn Array,
    row: usize,
    number: u32,
    format: Format,
    bytea: ByteaOutput,
    out: &mut BytesMut,
) -> Result<bool, Refusal> {
    let value = value_at(array, row)?;
    if matches!(value, Value::Null) {
        return Ok(false);
    }
    match (number, format) {
        (oid::JSON, _) => json::write(&value, out)?,
        (_, Format::Text) => text::write(&value, bytea, out)?,
        (_, Format::Binary) => binary::write(&value, number, element_of(number), out)?,
    }
    Ok(true)
}

fn value_at(array: &dyn Array, row: usize) -> Result<Value<'_>, Refusal> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    let value = match array.data_type() {
        DataType::Boolean => array.as_boolean_opt().map(|array| Value::Bool(array.value(row))),
        DataType::Int8 => integer::<Int8Type>(array, row),
        DataType::Int16 => integer::<Int16Type>(array, row),
        DataType::Int32 => integer::<Int32Type>(array, row),
        DataType::Int64 => integer::<Int64Type>(array, row),
        DataType::UInt8 => integer::<UInt8Type>(array, row),
        DataType::UInt16 => integer::<UInt16Type>(array, row),
        DataType::UInt32 => integer::<UInt32Type>(array, row),
        DataType::UInt64 => native::<UInt64Type>(array, row).map(|value| Value::Decimal(value.to_string())),
        DataType::Float16 => native::<Float16Type>(array, row).map(|value| Value::Float4(value.to_f32())),
        DataType::Float32 => native::<Float32Type>(array, row).map(Value::Float4),
        DataType::Float64 => native::<Float64Type>(array, row).map(Value::Float8),
        DataType::Decimal32(..) => decimal::<Decimal32Type>(array, row),
        DataType::Decimal64(..) => decimal::<Decimal64Type>(array, row),
        DataType::Decimal128(..) => decimal::<Decimal128Type>(array, row),
        DataType::Decimal256(..) => decimal::<Decimal256Type>(array, row),
        DataType::Utf8 => array.as_string_opt::<i32>().map(|array| Value::Text(array.value(row))),
        DataType::LargeUtf8 => array.as_string_opt::<i64>().map(|array| Value::Text(array.value(row))),
        DataType::Utf8View => array.as_string_view_opt().map(|array| Value::Text(array.value(row))),
        DataType::Binary => array.as_binary_opt::<i32>().map(|array| Value::Bytes(array.value(row))),
        DataType::LargeBinary => array.as_binary_opt::<i64>().map(|array| Value::Bytes(array.value(row))),
        DataType::BinaryView => array.as_binary_view_opt().map(|array| Value::Bytes(array.value(row))),
        DataType::FixedSizeBinary(_) => {
            array.as_fixed_size_binary_opt().map(|array| Value::Bytes(array.value(row)))
        }
        DataType::Dictionary(..) => {
            if let Some(dictionary) = array.as_any_dictionary_opt() {
                let key = dictionary.normalized_keys().get(row).copied().unwrap_or_default();
                return value_at(dictionary.values().as_ref(), key);
            }
            None
        }
        _ => return moment_or_nested(array, row),
    };
    Ok(value.unwrap_or(Value::Null))
}

fn moment_or_nested(array: &dyn Array, row: usize) -> Result<Value<'_>, Refusal> {
    let value = match array.data_type() {
        DataType::Date32 => native::<Date32Type>(array, row).map(|days| Value::Date(days.into())),
        DataType::Date64 => {
            native::<Date64Type>(array, row).map(|millis| Value::Date(millis.div_euclid(DAY_MILLIS)))
        }
        DataType::Time32(TimeUnit::Second) => {
            native::<Time32SecondType>(array, row).map(|value| Value::Time(i64::from(value) * 1_000_000))
        }
        DataType::Time32(_) => {
            native::<Time32MillisecondType>(array, row).map(|value| Value::Time(i64::from(value) * 1_000))
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            native::<Time64NanosecondType>(array, row).map(|value| Value::Time(value / 1_000))
        }
        DataType::Time64(_) => native::<Time64MicrosecondType>(array, row).map(Value::Time),
        DataType::Timestamp(unit, zone) => match (micros(*unit, array, row), zone) {
            (Some(micros), None) => Some(Value::Timestamp(micros)),
            (Some(micros), Some(zone)) => {
                Some(Value::TimestampZoned(micros, distance(zone, array, row).unwrap_or_default()))
            }
            (None, _) => None,
        },
        DataType::Duration(unit) => {
            let micros = duration_micros(*unit, array, row);
            micros.map(|micros| Value::Interval { months: 0, days: 0, micros })
        }
        DataType::Interval(unit) => interval(*unit, array, row),
        DataType::List(_) => array.as_list_opt::<i32>().map(|array| Value::List(array.value(row))),
        DataType::LargeList(_) => array.as_list_opt::<i64>().map(|array| Value::List(array.value(row))),
        DataType::FixedSizeList(..) => {
            array.as_fixed_size_list_opt().map(|array| Value::List(array.value(row)))
        }
        DataType::Map(..) => array.as_map_opt().map(|array| {
            let entries = array.value(row);
            Value::List(make_array(entries.into()))
        }),
        DataType::Struct(_) => array.as_struct_opt().map(|array| Value::Struct(array, row)),
        DataType::Null => Some(Value::Null),
        _ => {
            let formatter = ArrayFormatter::try_new(array, &FormatOptions::default())?;
            return Ok(Value::Other(formatter.value(row).try_to_string()?));
        }
    };
    Ok(value.unwrap_or(Value::Null))
}

fn native<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> Option<T::Native> {
    array.as_primitive_opt::<T>().map(|array| array.value(row))
}

fn integer<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &dyn Array, row: usize) -> Option<Value<'_>> {
    native::<T>(array, row).map(|value| Value::Integer(value.into()))
}

fn decimal<T: DecimalType>(array: &dyn Array, row: usize) -> Option<Value<'_>> {
    array.as_primitive_opt::<T>().map(|array| Value::Decimal(array.value_as_string(row)))
}

fn micros(unit: TimeUnit, array: &dyn Array, row: usize) -> Option<i128> {
    match unit {
        TimeUnit::Second => native::<TimestampSecondType>(array, row).map(|at| i128::from(at) * 1_000_000),
        TimeUnit::Millisecond => {
            native::<TimestampMillisecondType>(array, row).map(|at| i128::from(at) * 1_000)
        }
        TimeUnit::Microsecond => native::<TimestampMicrosecondType>(array, row).map(i128::from),
        TimeUnit::Nanosecond => {
            native::<TimestampNanosecondType>(array, row).map(|at| i128::from(at).div_euclid(1_000))
        }
    }
}

fn duration_micros(unit: TimeUnit, array: &dyn Array, row: usize) -> Option<i64> {
    match unit {
        TimeUnit::Second => {
            native::<DurationSecondType>(array, row).map(|time| time.saturating_mul(1_000_000))
        }
        TimeUnit::Millisecond => {
            native::<DurationMillisecondType>(array, row).map(|time| time.saturating_mul(1_000))
        }
        TimeUnit::Microsecond => native::<DurationMicrosecondType>(array, row),
        TimeUnit::Nanosecond => native::<DurationNanosecondType>(array, row).map(|time| time / 1_000),
    }
}

fn interval(unit: IntervalUnit, array: &dyn Array, row: usize) -> Option<Value<'_>> {
    match unit {
        IntervalUnit::YearMonth => native::<IntervalYearMonthType>(array, row)
            .map(|months| Value::Interval { months, days: 0, micros: 0 }),
        IntervalUnit::DayTime => native::<IntervalDayTimeType>(array, row).map(|value| Value::Interval {
            months: 0,
            days: value.days,
            micros: i64::from(value.milliseconds) * 1_000,
        }),
        IntervalUnit::MonthDayNano => native::<IntervalMonthDayNanoType>(array, row).map(|value| {
            Value::Interval { months: value.months, days: value.days, micros: value.nanoseconds / 1_000 }
        }),
    }
}

/// How far a zone was from UTC at the moment of this row, in seconds.
fn distance(zone: &str, array: &dyn Array, row: usize) -> Option<i64> {
    if matches!(zone, "UTC" | "Z" | "+00:00" | "+00") {
        return Some(0);
    }
    let text = offset_text(array, row).ok()?;
    let (sign, rest) = text.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let seconds = hours.parse::<i64>().ok()? * 3_600 + minutes.parse::<i64>().ok()? * 60;
    Some(if sign == "-" { -seconds } else { seconds })
}

/// Arrow knows the zones; it is asked for the distance alone.
fn offset_text(array: &dyn Array, row: usize) -> Result<String, ArrowError> {
    let options = FormatOptions::new().with_timestamp_tz_format(Some("%:z"));
    ArrayFormatter::try_new(array, &options)?.value(row).try_to_string()
}

const DAY_MILLIS: i64 = 86_400_000;
