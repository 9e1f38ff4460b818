//! Times of different units and zones are compared exactly.

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::{ParamValues, ScalarValue};
use futures::TryStreamExt;
use kolumn_sql::{QueryError, Session};
use kolumn_topic_store::TopicConfig;
use proptest::prelude::*;

use crate::ask::{ask, check, read, runtime};
use crate::support::{Fixture, Row};

/// A topic `times` with these timestamps, in their order.
fn times(timestamps: &[i64]) -> (Fixture, Session) {
    let fixture = Fixture::new();
    let far = [("message.timestamp.after.max.ms", "200000000000000")];
    let topic = fixture.topic_with("times", 1, TopicConfig::parse(far).expect("a configuration"));
    let rows: Vec<_> = timestamps.iter().map(|timestamp| Row::text(*timestamp, "k", "v")).collect();
    fixture.append(&topic, 0, &rows);
    let session = fixture.session();
    (fixture, session)
}

/// Milliseconds of 2023-11-14 00:00:00.
const MIDNIGHT: i64 = 1_699_920_000_000;

#[test]
fn literals_finer_than_a_millisecond_lie_between_two_milliseconds() {
    let (_fixture, session) = times(&[MIDNIGHT - 1, MIDNIGHT, MIDNIGHT + 1, -1]);
    let runtime = runtime();
    for literal in [
        "'2023-11-14 00:00:00.0005'",
        "TIMESTAMP '2023-11-14 00:00:00.0005'",
        "TIMESTAMP '2023-11-14T00:00:00.000500'::timestamp(6)",
        "'2023-11-14 00:00:00.0005'::timestamp(9)",
        "TIMESTAMP WITH TIME ZONE '2023-11-14 02:00:00.0005+02:00'",
        "to_timestamp('2023-11-14 00:00:00.0005')",
        "to_timestamp_micros(1699920000000500)",
        "arrow_cast(1699920000000500, 'Timestamp(Microsecond, None)')",
        "(SELECT TIMESTAMP '2023-11-14 00:00:00.0005')",
        "(TIMESTAMP '2023-11-14 00:00:00.0003' + INTERVAL '200 microseconds')",
    ] {
        for column in ["timestamp", "timestamp::timestamp(6)", "CAST(timestamp AS timestamp(9))"] {
            if column != "timestamp" && !literal.starts_with('\'') {
                continue; // what is cast does not depend on how the literal is written
            }
            for (condition, expected) in [
                (format!("{column} < {literal}"), "01"),
                (format!("{column} <= {literal}"), "01"),
                (format!("{column} > {literal}"), "2"),
                (format!("{literal} <= {column}"), "2"),
                (format!("{column} = {literal}"), ""),
                (format!("{column} <> {literal}"), "012"),
                (format!("{column} IN ({literal})"), ""),
                (format!("{column} NOT IN (TIMESTAMP '2023-11-14 00:00:00', {literal})"), "02"),
                (format!("{column} IS DISTINCT FROM {literal}"), "0123"),
                (format!("{column} IS NOT DISTINCT FROM {literal}"), ""),
                (format!("{column} BETWEEN {literal} AND {literal}"), ""),
                (format!("{column} BETWEEN TIMESTAMP '2023-11-14 00:00:00' AND {literal}"), "1"),
                (format!("{column} NOT BETWEEN {literal} AND '2023-11-14 00:00:00.001'"), "01"),
                (format!("({column} = {literal}) IS NULL"), "3"),
                (format!("CASE {column} WHEN {literal} THEN false ELSE true END"), "0123"),
            ] {
                let text = format!(
                    "SELECT string_agg(offset::varchar, '' ORDER BY offset) FROM times WHERE {condition}"
                );
                let expected = if expected.is_empty() { "NULL" } else { expected };
                let told = runtime.block_on(ask(&session, &text));
                assert_eq!(told.unwrap_or_else(|error| panic!("{text}: {error}")).rows, [expected], "{text}");
            }
        }
    }
}

#[test]
fn columns_of_different_units_are_compared_exactly() {
    let (_fixture, session) = times(&[MIDNIGHT, MIDNIGHT + 1]);
    let finer =
        "(VALUES (TIMESTAMP '2023-11-14 00:00:00.0005'), (TIMESTAMP '2023-11-14 00:00:00.001')) AS f(at)";
    for (text, expected) in [
        (format!("SELECT offset, at FROM times, {finer} WHERE timestamp = at"), vec!["1|2023-11-14T00:00:00.001"]),
        (format!("SELECT offset FROM times JOIN {finer} ON timestamp = at"), vec!["1"]),
        (format!("SELECT offset FROM times WHERE timestamp IN (SELECT at FROM {finer})"), vec!["1"]),
        (format!("SELECT offset, count(*) FROM times, {finer} WHERE timestamp < at GROUP BY 1"), vec!["0|2"]),
        (
            format!("SELECT count(*) FROM (SELECT timestamp AS t FROM times UNION ALL SELECT at FROM {finer}) WHERE t < TIMESTAMP '2023-11-14 00:00:00.0007'"),
            vec!["2"],
        ),
        (
            format!("SELECT offset FROM times, {finer} WHERE coalesce(timestamp, at) < at AND nullif(timestamp, at) < at"),
            vec!["0", "0"],
        ),
        (
            "WITH b AS (SELECT TIMESTAMP '2023-11-14 00:00:00.0005' AS t) SELECT offset FROM times, b WHERE timestamp < t".into(),
            vec!["0"],
        ),
    ] {
        check(&session, &text, &expected);
    }
}

#[test]
fn a_time_in_a_zone_is_compared_as_the_moment_that_it_is() {
    let (_fixture, session) = times(&[MIDNIGHT, MIDNIGHT + 1]);
    runtime().block_on(session.execute("SET TIME ZONE 'Asia/Tokyo'")).unwrap();
    check(
        &session,
        "SELECT offset FROM times WHERE timestamp < TIMESTAMPTZ '2023-11-14 09:00:00.0005'",
        &["0"],
    );
    check(
        &session,
        "SELECT offset FROM times WHERE timestamp = TIMESTAMPTZ '2023-11-14 00:00:00+00'",
        &["0"],
    );
    let zones = "(VALUES (TIMESTAMPTZ '2023-11-14 09:00:00')) AS z(at)";
    check(&session, &format!("SELECT offset FROM times, {zones} WHERE timestamp = at"), &["0"]);
    // what a statement casts is shown, and compared, as what clocks show
    let cast = "timestamp::timestamptz";
    check(&session, &format!("SELECT {cast} FROM times LIMIT 1"), &["2023-11-14T00:00:00+09:00"]);
    let same = format!("SELECT offset FROM times WHERE {cast} = TIMESTAMPTZ '2023-11-14 00:00:00+09'");
    check(&session, &same, &["0"]);
}

#[test]
fn times_beyond_the_nanoseconds_are_compared_with_literals() {
    // the year 5138
    let (_fixture, session) = times(&[100_000_000_000_000, MIDNIGHT]);
    for condition in
        ["timestamp > '2023-11-14 00:00:00.0005'", "timestamp::timestamp(9) > '2023-11-14 00:00:00.0005'"]
    {
        check(&session, &format!("SELECT offset FROM times WHERE {condition}"), &["0"]);
    }
}

#[test]
fn parameters_keep_their_unit() {
    let (_fixture, session) = times(&[MIDNIGHT, MIDNIGHT + 1]);
    let micros = ScalarValue::TimestampMicrosecond(Some(MIDNIGHT * 1_000 + 500), None);
    for (operator, expected) in [("<", "0"), ("<=", "0"), (">", "1"), (">=", "1")] {
        let text = format!("SELECT offset FROM times WHERE timestamp {operator} $1");
        let values = ParamValues::from(vec![micros.clone()]);
        let told = runtime().block_on(async { read(session.execute_with(&text, Some(values)).await?).await });
        assert_eq!(told.unwrap().rows, [expected], "{text}");
    }
}

/// A time as SQL, with the nanoseconds that it is.
#[derive(Clone, Debug)]
struct Literal {
    text: String,
    nanos: i128,
}

/// Nanoseconds around the rows, in any unit and of any spelling.
fn literal() -> impl Strategy<Value = Literal> {
    let unit = prop::sample::select(vec![1_000_000_000_i64, 1_000_000, 1_000, 1]);
    // mostly beside a row
    let near = prop_oneof![1 => -4_000..4_000_i64, 4 => (-40..40_i64).prop_map(|at| at * 97)];
    let beside = prop::sample::select(vec![-1_000_000_i64, -1_000, -1, 0, 1, 1_000, 500_000]);
    (near, beside, unit, 0..6_usize).prop_map(|(near, beside, unit, spelling)| {
        let near = near * 1_000_000 + beside;
        let nanos = (MIDNIGHT * 1_000_000 + near).div_euclid(unit) * unit;
        let name = match unit {
            1 => "Nanosecond",
            1_000 => "Microsecond",
            1_000_000 => "Millisecond",
            _ => "Second",
        };
        let (seconds, rest) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        let second = seconds - MIDNIGHT / 1_000;
        let (day, second) = (if second < 0 { "2023-11-13" } else { "2023-11-14" }, second.rem_euclid(86_400));
        let clock = format!("{:02}:{:02}:{:02}.{rest:09}", second / 3_600, second / 60 % 60, second % 60);
        let text = match spelling {
            0 => format!("TIMESTAMP '{day} {clock}'"),
            1 => format!("'{day}T{clock}'"),
            2 => format!("TIMESTAMP WITH TIME ZONE '{day} {clock}+00:00'"),
            3 => format!("to_timestamp_nanos({nanos})"),
            4 => format!("to_timestamp('{day}T{clock}Z')"),
            _ => format!("arrow_cast({}, 'Timestamp({name}, None)')", nanos / unit),
        };
        Literal { text, nanos: i128::from(nanos) }
    })
}

/// What SQL's comparison says of a row, exactly.
fn compare(operator: &str, row: Option<i128>, literal: i128) -> Option<bool> {
    match operator {
        "IS DISTINCT FROM" => return Some(row != Some(literal)),
        "IS NOT DISTINCT FROM" => return Some(row == Some(literal)),
        _ => {}
    }
    row.map(|row| match operator {
        "=" => row == literal,
        "<>" => row != literal,
        "<" => row < literal,
        "<=" => row <= literal,
        ">" => row > literal,
        _ => row >= literal,
    })
}

const OPERATORS: [(&str, &str); 8] = [
    ("=", "="),
    ("<>", "<>"),
    ("<", ">"),
    ("<=", ">="),
    (">", "<"),
    (">=", "<="),
    ("IS DISTINCT FROM", "IS DISTINCT FROM"),
    ("IS NOT DISTINCT FROM", "IS NOT DISTINCT FROM"),
];

async fn batches(session: &Session, text: &str) -> Result<Vec<RecordBatch>, QueryError> {
    session.execute(text).await?.rows.try_collect().await.map_err(QueryError::from)
}

/// Rows that a filter keeps, by their offsets; and what the same condition says of each row where it is selected.
async fn answers(session: &Session, condition: &str) -> (Vec<i64>, Vec<Option<bool>>) {
    let kept = format!("SELECT offset FROM times WHERE {condition} ORDER BY offset");
    let kept = batches(session, &kept).await.unwrap_or_else(|error| panic!("{kept}: {error}"));
    let kept = kept.iter().flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values().to_vec());
    let said = format!("SELECT {condition} FROM times ORDER BY offset");
    let said = batches(session, &said).await.unwrap_or_else(|error| panic!("{said}: {error}"));
    let said = said.iter().flat_map(|rows| rows.column(0).as_boolean().iter().collect::<Vec<_>>());
    (kept.collect(), said.collect())
}

#[test]
fn any_comparison_of_times_is_that_of_exact_numbers() {
    let rows: Vec<i64> =
        (-40..40).map(|at| MIDNIGHT + at * 97).chain([MIDNIGHT - 1, -1, MIDNIGHT + 1]).collect();
    let exact: Vec<_> = rows.iter().map(|ms| (*ms >= 0).then(|| i128::from(*ms) * 1_000_000)).collect();
    let (_fixture, session) = times(&rows);
    let runtime = runtime();
    let column =
        prop::sample::select(vec!["timestamp", "timestamp::timestamp(6)", "CAST(timestamp AS timestamp(9))"]);
    let strategy = (column, prop::sample::select(OPERATORS.to_vec()), any::<bool>(), literal(), literal());
    let config = ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    let told = proptest::test_runner::TestRunner::new(config).run(
        &strategy,
        |(column, (operator, swapped), on_the_left, literal, other)| {
            let single: Vec<_> = exact.iter().map(|row| compare(operator, *row, literal.nanos)).collect();
            let single_text = if on_the_left {
                format!("{} {swapped} {column}", literal.text)
            } else {
                format!("{column} {operator} {}", literal.text)
            };
            let between: Vec<_> =
                exact.iter().map(|row| row.map(|row| literal.nanos <= row && row <= other.nanos)).collect();
            let between_text = format!("{column} BETWEEN {} AND {}", literal.text, other.text);
            let listed: Vec<_> =
                exact.iter().map(|row| row.map(|row| row != literal.nanos && row != other.nanos)).collect();
            let listed_text = format!("{column} NOT IN ({}, {})", literal.text, other.text);
            for (text, expected) in [(single_text, single), (between_text, between), (listed_text, listed)] {
                let (kept, said) = runtime.block_on(answers(&session, &text));
                prop_assert_eq!(&said, &expected, "{}", text);
                let rows = (0_i64..).zip(&expected).filter(|(_, said)| **said == Some(true));
                prop_assert_eq!(kept, rows.map(|(offset, _)| offset).collect::<Vec<_>>(), "{}", text);
            }
            Ok(())
        },
    );
    told.unwrap();
}
