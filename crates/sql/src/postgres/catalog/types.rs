//! The types of PostgreSQL as the catalog lists them.

use super::super::types::{element_of, len_of, oid};

/// A type.
pub(super) struct Type {
    pub(super) oid: u32,
    pub(super) name: &'static str,
    /// The letter of its category.
    pub(super) category: &'static str,
    /// Its elements' type if it is an array, else 0.
    pub(super) element: u32,
    /// The type of arrays of it, or 0.
    pub(super) array: u32,
    pub(super) len: i16,
}

/// All types: those that have a name of their own, and the arrays of them.
pub(super) fn types() -> impl Iterator<Item = Type> {
    NAMES.iter().map(|(number, name, _, category)| {
        let array = NAMES
            .iter()
            .find(|(array, ..)| *array != oid::VARCHAR_ARRAY && element_of(*array) == Some(*number));
        Type {
            oid: *number,
            name,
            category,
            element: element_of(*number).unwrap_or(0),
            array: array.map_or(0, |(number, ..)| *number),
            len: len_of(*number),
        }
    })
}

/// The name of a type in SQL.
pub(super) fn title(number: u32) -> &'static str {
    NAMES.iter().find(|(of, ..)| *of == number).map_or("???", |(_, _, title, _)| title)
}

/// The type of this name, be it the short one or that of SQL.
pub(super) fn by_name(name: &str) -> Option<u32> {
    let name = name.trim().trim_start_matches("pg_catalog.");
    NAMES.iter().find(|(_, short, title, _)| *short == name || *title == name).map(|(number, ..)| *number)
}

const NAMES: &[(u32, &str, &str, &str)] = &[
    (oid::BOOL, "bool", "boolean", "B"),
    (oid::BYTEA, "bytea", "bytea", "U"),
    (oid::CHAR, "char", "\"char\"", "Z"),
    (oid::NAME, "name", "name", "S"),
    (oid::INT8, "int8", "bigint", "N"),
    (oid::INT2, "int2", "smallint", "N"),
    (oid::INT4, "int4", "integer", "N"),
    (oid::REGPROC, "regproc", "regproc", "N"),
    (oid::TEXT, "text", "text", "S"),
    (oid::OID, "oid", "oid", "N"),
    (oid::JSON, "json", "json", "U"),
    (oid::FLOAT4, "float4", "real", "N"),
    (oid::FLOAT8, "float8", "double precision", "N"),
    (oid::UNKNOWN, "unknown", "unknown", "X"),
    (oid::BOOL_ARRAY, "_bool", "boolean[]", "A"),
    (oid::BYTEA_ARRAY, "_bytea", "bytea[]", "A"),
    (oid::INT2_ARRAY, "_int2", "smallint[]", "A"),
    (oid::INT4_ARRAY, "_int4", "integer[]", "A"),
    (oid::TEXT_ARRAY, "_text", "text[]", "A"),
    (oid::VARCHAR_ARRAY, "_varchar", "character varying[]", "A"),
    (oid::INT8_ARRAY, "_int8", "bigint[]", "A"),
    (oid::FLOAT4_ARRAY, "_float4", "real[]", "A"),
    (oid::FLOAT8_ARRAY, "_float8", "double precision[]", "A"),
    (oid::OID_ARRAY, "_oid", "oid[]", "A"),
    (oid::BPCHAR, "bpchar", "character", "S"),
    (oid::VARCHAR, "varchar", "character varying", "S"),
    (oid::DATE, "date", "date", "D"),
    (oid::TIME, "time", "time without time zone", "D"),
    (oid::TIMESTAMP, "timestamp", "timestamp without time zone", "D"),
    (oid::TIMESTAMP_ARRAY, "_timestamp", "timestamp without time zone[]", "A"),
    (oid::DATE_ARRAY, "_date", "date[]", "A"),
    (oid::TIMESTAMPTZ, "timestamptz", "timestamp with time zone", "D"),
    (oid::TIMESTAMPTZ_ARRAY, "_timestamptz", "timestamp with time zone[]", "A"),
    (oid::INTERVAL, "interval", "interval", "T"),
    (oid::NUMERIC_ARRAY, "_numeric", "numeric[]", "A"),
    (oid::NUMERIC, "numeric", "numeric", "N"),
    (oid::REGCLASS, "regclass", "regclass", "N"),
    (oid::UUID, "uuid", "uuid", "U"),
    (oid::JSONB, "jsonb", "jsonb", "U"),
];
