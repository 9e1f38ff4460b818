//! Which of PostgreSQL's types a column of Arrow is shown as.

use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};

use super::reply::Column;

/// The numbers of PostgreSQL's types that we use.
pub(crate) mod oid {
    pub(crate) const BOOL: u32 = 16;
    pub(crate) const BYTEA: u32 = 17;
    pub(crate) const CHAR: u32 = 18;
    pub(crate) const NAME: u32 = 19;
    pub(crate) const INT8: u32 = 20;
    pub(crate) const INT2: u32 = 21;
    pub(crate) const INT4: u32 = 23;
    pub(crate) const REGPROC: u32 = 24;
    pub(crate) const TEXT: u32 = 25;
    pub(crate) const OID: u32 = 26;
    pub(crate) const JSON: u32 = 114;
    pub(crate) const FLOAT4: u32 = 700;
    pub(crate) const FLOAT8: u32 = 701;
    pub(crate) const UNKNOWN: u32 = 705;
    pub(crate) const BOOL_ARRAY: u32 = 1000;
    pub(crate) const BYTEA_ARRAY: u32 = 1001;
    pub(crate) const INT2_ARRAY: u32 = 1005;
    pub(crate) const INT4_ARRAY: u32 = 1007;
    pub(crate) const TEXT_ARRAY: u32 = 1009;
    pub(crate) const VARCHAR_ARRAY: u32 = 1015;
    pub(crate) const INT8_ARRAY: u32 = 1016;
    pub(crate) const FLOAT4_ARRAY: u32 = 1021;
    pub(crate) const FLOAT8_ARRAY: u32 = 1022;
    pub(crate) const OID_ARRAY: u32 = 1028;
    pub(crate) const BPCHAR: u32 = 1042;
    pub(crate) const VARCHAR: u32 = 1043;
    pub(crate) const DATE: u32 = 1082;
    pub(crate) const TIME: u32 = 1083;
    pub(crate) const TIMESTAMP: u32 = 1114;
    pub(crate) const TIMESTAMP_ARRAY: u32 = 1115;
    pub(crate) const DATE_ARRAY: u32 = 1182;
    pub(crate) const TIMESTAMPTZ: u32 = 1184;
    pub(crate) const TIMESTAMPTZ_ARRAY: u32 = 1185;
    pub(crate) const INTERVAL: u32 = 1186;
    pub(crate) const NUMERIC_ARRAY: u32 = 1231;
    pub(crate) const NUMERIC: u32 = 1700;
    pub(crate) const REGCLASS: u32 = 2205;
    pub(crate) const UUID: u32 = 2950;
    pub(crate) const JSONB: u32 = 3802;
}

/// The columns of an answer as PostgreSQL describes them.
pub(crate) fn columns(schema: &Schema) -> Vec<Column> {
    schema.fields().iter().map(|field| column(field)).collect()
}

fn column(field: &Field) -> Column {
    let oid = oid_of(field.data_type());
    Column { name: field.name().clone(), oid, len: len_of(oid) }
}

/// The type that a column of Arrow is shown as. What PostgreSQL has nothing like is shown as text, and what has parts with
/// names as JSON.
pub(crate) fn oid_of(data_type: &DataType) -> u32 {
    match data_type {
        DataType::Boolean => oid::BOOL,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => oid::INT2,
        DataType::Int32 | DataType::UInt16 => oid::INT4,
        // The tables of the catalog have these for their numbers of objects, and nothing else has them.
        DataType::UInt32 => oid::OID,
        DataType::Int64 => oid::INT8,
        DataType::Float16 | DataType::Float32 => oid::FLOAT4,
        DataType::Float64 => oid::FLOAT8,
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => oid::NUMERIC,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            oid::BYTEA
        }
        DataType::Date32 | DataType::Date64 => oid::DATE,
        DataType::Time32(_) | DataType::Time64(_) => oid::TIME,
        DataType::Timestamp(_, None) => oid::TIMESTAMP,
        DataType::Timestamp(_, Some(_)) => oid::TIMESTAMPTZ,
        DataType::Interval(_) | DataType::Duration(_) => oid::INTERVAL,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => array_of(oid_of(field.data_type())),
        DataType::Struct(_) | DataType::Map(..) => oid::JSON,
        DataType::Dictionary(_, values) => oid_of(values),
        DataType::RunEndEncoded(_, values) => oid_of(values.data_type()),
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Union(..) => {
            oid::TEXT
        }
    }
}

/// The type of Arrow that a parameter of one of PostgreSQL's types becomes.
pub(crate) fn data_type_of(number: u32) -> DataType {
    match number {
        oid::BOOL => DataType::Boolean,
        oid::BYTEA => DataType::Binary,
        oid::INT2 => DataType::Int16,
        oid::INT4 => DataType::Int32,
        oid::INT8 => DataType::Int64,
        oid::OID | oid::REGCLASS | oid::REGPROC => DataType::UInt32,
        oid::FLOAT4 => DataType::Float32,
        oid::FLOAT8 => DataType::Float64,
        oid::NUMERIC => DataType::Decimal128(38, 10),
        oid::DATE => DataType::Date32,
        oid::TIME => DataType::Time64(TimeUnit::Microsecond),
        oid::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        oid::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
        array => element_of(array).map_or(DataType::Utf8, |element| {
            DataType::List(std::sync::Arc::new(Field::new_list_field(data_type_of(element), true)))
        }),
    }
}

/// The type of an array's elements, if it is an array.
pub(crate) fn element_of(array: u32) -> Option<u32> {
    if array == oid::VARCHAR_ARRAY {
        return Some(oid::VARCHAR);
    }
    ARRAYS.iter().find(|(_, of)| *of == array).map(|(element, _)| *element)
}

/// An array of these; of what has no array we show JSON.
pub(crate) fn array_of(element: u32) -> u32 {
    ARRAYS.iter().find(|(of, _)| *of == element).map_or(oid::JSON, |(_, array)| *array)
}

/// The length of a type's values, -1 if they differ.
pub(crate) const fn len_of(number: u32) -> i16 {
    match number {
        oid::BOOL | oid::CHAR => 1,
        oid::INT2 => 2,
        oid::INT4 | oid::OID | oid::FLOAT4 | oid::DATE | oid::REGCLASS | oid::REGPROC => 4,
        oid::INT8 | oid::FLOAT8 | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ => 8,
        oid::INTERVAL | oid::UUID => 16,
        oid::NAME => 64,
        _ => -1,
    }
}

const ARRAYS: &[(u32, u32)] = &[
    (oid::BOOL, oid::BOOL_ARRAY),
    (oid::BYTEA, oid::BYTEA_ARRAY),
    (oid::INT2, oid::INT2_ARRAY),
    (oid::INT4, oid::INT4_ARRAY),
    (oid::INT8, oid::INT8_ARRAY),
    (oid::TEXT, oid::TEXT_ARRAY),
    (oid::FLOAT4, oid::FLOAT4_ARRAY),
    (oid::FLOAT8, oid::FLOAT8_ARRAY),
    (oid::OID, oid::OID_ARRAY),
    (oid::DATE, oid::DATE_ARRAY),
    (oid::TIMESTAMP, oid::TIMESTAMP_ARRAY),
    (oid::TIMESTAMPTZ, oid::TIMESTAMPTZ_ARRAY),
    (oid::NUMERIC, oid::NUMERIC_ARRAY),
];
