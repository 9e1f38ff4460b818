//! What is not read: rows that a query does not need are not decoded, and most not even walked.

use std::sync::Arc;

use kolumn_sql::{ScanTotals, Session};
use kolumn_topic_store::Topic;

use datafusion::arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use proptest::prelude::*;

use crate::ask::{ask, runtime, texts};
use crate::support::{Fixture, Row};

/// Rows in each partition of `numbers`: batches of 100, with key `k<offset mod 50>`, a value and ascending timestamps.
const ROWS: i64 = 2_000;

fn numbers(partitions: i32) -> (Fixture, Session) {
    let fixture = Fixture::new();
    let topic = fixture.topic("numbers", partitions);
    for partition in 0..partitions {
        fill(&fixture, &topic, partition, ROWS);
    }
    let session = fixture.session();
    (fixture, session)
}

fn fill(fixture: &Fixture, topic: &Arc<Topic>, partition: i32, rows: i64) {
    let texts: Vec<_> =
        (0..rows).map(|offset| (format!("k{}", offset % 50), format!("value {offset}"))).collect();
    for (batch, texts) in (0_i64..).zip(texts.chunks(100)) {
        let rows =
            (0_i64..).zip(texts).map(|(at, (key, value))| Row::text(1_000 + batch * 100 + at, key, value));
        fixture.append(topic, partition, &rows.collect::<Vec<_>>());
    }
}

#[track_caller]
fn check(session: &Session, text: &str, expected: &[&str], scans: impl FnOnce(ScanTotals)) {
    let told = runtime().block_on(ask(session, text)).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    assert_eq!(told.rows, expected, "{text}");
    scans(told.scans);
}

/// Nothing was read at all.
fn untouched(scans: ScanTotals) {
    assert_eq!(scans, ScanTotals::default());
}

#[test]
fn counts_and_bounds_of_offsets_are_answered_without_reading() {
    let (_fixture, session) = numbers(3);
    for (text, expected) in [
        ("SELECT count(*) FROM numbers", "6000"),
        ("SELECT min(\"offset\"), max(\"offset\"), count(*) FROM numbers", "0|1999|6000"),
        ("SELECT count(*) FROM numbers WHERE \"offset\" >= 1500", "1500"),
        ("SELECT count(*), max(\"offset\") FROM numbers WHERE partition = 1 AND \"offset\" < 10", "10|9"),
        ("SELECT max(partition), min(partition) FROM numbers WHERE partition <> 2", "1|0"),
        ("SELECT max(timestamp) FROM numbers", "1970-01-01T00:00:02.999"),
        ("SELECT count(*) FROM numbers WHERE \"offset\" = 3 OR \"offset\" BETWEEN 7 AND 8", "9"),
    ] {
        check(&session, text, &[expected], untouched);
    }
}

#[test]
fn one_offset_walks_one_batch_and_decodes_one_row() {
    let (_fixture, session) = numbers(2);
    let text = "SELECT \"offset\", key FROM numbers WHERE partition = 1 AND \"offset\" = 1234";
    check(&session, text, &["1234|6b3334"], |scans| {
        assert_eq!(scans.rows_decoded, 1);
        assert_eq!(scans.batches, 1);
        assert!(scans.rows_walked <= 100, "{scans:?}");
    });
}

#[test]
fn a_filter_by_key_decodes_only_its_rows() {
    let (_fixture, session) = numbers(2);
    let text = "SELECT count(*), max(value) FROM numbers WHERE key = 'k7' AND \"offset\" < 1000";
    check(&session, text, &["40|76616c756520393537"], |scans| {
        assert_eq!(scans.rows_decoded, 40);
        assert_eq!(scans.rows_walked, 2_000);
    });
}

#[test]
fn a_filter_by_time_skips_batches() {
    let (_fixture, session) = numbers(1);
    let text = "SELECT count(value) FROM numbers WHERE timestamp >= '1970-01-01T00:00:02.950'";
    check(&session, text, &["50"], |scans| {
        assert_eq!(scans.rows_decoded, 50);
        assert_eq!(scans.batches, 1);
    });
}

#[test]
fn the_last_rows_decode_just_these() {
    let (_fixture, session) = numbers(1);
    let text = "SELECT \"offset\" FROM (SELECT \"offset\", value FROM numbers ORDER BY \"offset\" DESC LIMIT 100) ORDER BY 1 LIMIT 1";
    check(&session, text, &["1900"], |_| {});
    let text = "SELECT \"offset\", value FROM numbers ORDER BY \"offset\" DESC LIMIT 100";
    let told = runtime().block_on(ask(&session, text)).unwrap();
    assert_eq!(told.rows.len(), 100);
    assert!(told.rows[0].starts_with("1999|") && told.rows[99].starts_with("1900|"), "{:?}", told.rows);
    assert_eq!(told.scans.rows_decoded, 100);
}

#[test]
fn the_last_rows_of_several_partitions_decode_as_many_of_each() {
    let (_fixture, session) = numbers(3);
    for text in [
        "SELECT partition, \"offset\", value FROM numbers ORDER BY \"offset\" DESC LIMIT 30",
        "SELECT partition, \"offset\", value FROM numbers ORDER BY partition DESC, \"offset\" DESC LIMIT 30",
        "SELECT partition, \"offset\", value FROM numbers ORDER BY partition, \"offset\" DESC LIMIT 30",
        "SELECT partition, \"offset\", value FROM numbers ORDER BY partition, \"offset\" LIMIT 30",
    ] {
        let told = runtime().block_on(ask(&session, text)).unwrap();
        assert_eq!(told.rows.len(), 30, "{text}");
        assert!(told.scans.rows_decoded <= 90, "{text}: {:?}", told.scans);
    }
}

#[test]
fn a_limit_decodes_no_more() {
    let (_fixture, session) = numbers(2);
    let told = runtime().block_on(ask(&session, "SELECT * FROM numbers LIMIT 7")).unwrap();
    assert_eq!(told.rows.len(), 7);
    assert!(told.scans.rows_decoded <= 14, "{:?}", told.scans);
}

/// A table whose rows differ from batch to batch: keys and values that are null, times that go back or are missing.
fn odd() -> (Fixture, Session, SessionContext) {
    let fixture = Fixture::new();
    let topic = fixture.topic("odd", 3);
    for partition in 0..3 {
        for batch in 0..i64::from(partition) * 4 + 3 {
            let texts: Vec<_> = (0..7).map(|row| format!("k{}", (row * 5 + batch) % 6)).collect();
            let rows = (0_i64..).zip(&texts).map(|(row, text)| Row {
                timestamp: if (row + batch) % 5 == 0 { -1 } else { 100 + (row * 37 + batch * 11) % 60 },
                key: (row % 4 != 1).then_some(text.as_bytes()),
                value: (row % 3 != 2).then_some(text.as_bytes()),
                headers: Vec::new(),
            });
            fixture.append(&topic, partition, &rows.collect::<Vec<_>>());
        }
    }
    let session = fixture.session();
    let batches: Vec<RecordBatch> = runtime().block_on(async {
        let answer =
            session.execute("SELECT partition, \"offset\", timestamp, key, value FROM odd").await.unwrap();
        answer.rows.try_collect().await.unwrap()
    });
    // It does nothing but give types: what is optimised could be wrong in both in the same way.
    let state = SessionStateBuilder::new().with_default_features().with_optimizer_rules(Vec::new()).build();
    let twin = SessionContext::new_with_state(state);
    let table = MemTable::try_new(batches[0].schema(), vec![batches]).unwrap();
    twin.register_table("odd", Arc::new(table)).unwrap();
    (fixture, session, twin)
}

/// Whether a column is in a list, in which nulls may be, and the column itself.
fn list(
    column: &'static str,
    values: i64,
    written: impl Fn(i64) -> String + 'static,
) -> impl Strategy<Value = String> {
    let items = prop::collection::vec(prop::option::weighted(0.9, 0..values + 1), 1..6);
    (items, any::<bool>()).prop_map(move |(items, negated)| {
        let items = items.into_iter().map(|value| match value {
            Some(value) if value == values => column.to_owned(),
            Some(value) => written(value),
            None => "NULL".to_owned(),
        });
        let items: Vec<_> = items.collect();
        format!("{column} {}IN ({})", if negated { "NOT " } else { "" }, items.join(", "))
    })
}

/// A condition that means the same to both.
fn condition() -> impl Strategy<Value = String> {
    let operator = || prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
    let time = |ms: i64| format!("TIMESTAMP '1970-01-01 00:00:00.{ms:03}'");
    let key = |key: i64| format!("x'6b3{key}'");
    let leaf = prop_oneof![
        (operator(), -1..4_i64).prop_map(|(operator, value)| format!("partition {operator} {value}")),
        (operator(), -2..90_i64).prop_map(|(operator, value)| format!("\"offset\" {operator} {value}")),
        (operator(), 90..170_i64)
            .prop_map(move |(operator, value)| format!("timestamp {operator} {}", time(value))),
        (operator(), 0..7_i64).prop_map(move |(operator, value)| format!("key {operator} {}", key(value))),
        list("\"offset\"", 90, |value| value.to_string()),
        list("key", 7, key),
        list("key", 7, key),
        list("timestamp", 90, move |value| time(value + 90)),
        operator().prop_map(|operator| format!("\"offset\" {operator} NULL")),
        (0..90_i64, 0..90_i64).prop_map(|(low, high)| format!("\"offset\" BETWEEN {low} AND {high}")),
        prop::sample::select(vec!["key", "value", "timestamp"])
            .prop_map(|column| format!("{column} IS NOT NULL")),
        prop::sample::select(vec!["key", "value", "timestamp"])
            .prop_map(|column| format!("{column} IS NULL")),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one} AND {two})")),
            (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one} OR {two})")),
            inner.prop_map(|one| format!("NOT ({one})")),
        ]
    })
}

#[test]
fn any_statement_has_the_answer_of_a_twin_that_pushes_nothing_down() {
    let (_fixture, session, twin) = odd();
    let runtime = runtime();
    let order = prop::sample::select(vec![
        "partition, \"offset\"",
        "partition DESC, \"offset\"",
        "partition, \"offset\" DESC",
        "\"offset\" DESC, partition",
        "\"offset\", partition DESC",
        "timestamp, partition, \"offset\"",
    ]);
    let limit = prop::option::of(1..12_usize);
    let statement = (condition(), order, limit, any::<bool>());
    let config = ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() };
    let told = proptest::test_runner::TestRunner::new(config).run(&statement, |(condition, order, limit, count)| {
        let limit = limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        let text = if count {
            format!("SELECT count(*), min(\"offset\"), max(\"offset\"), max(timestamp), count(key) FROM odd WHERE {condition}")
        } else {
            format!("SELECT * FROM (SELECT partition, \"offset\", timestamp, key, value FROM odd) WHERE {condition} ORDER BY {order}{limit}")
        };
        let ours = runtime.block_on(ask(&session, &text)).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let theirs = runtime.block_on(async { twin.sql(&text).await?.collect().await });
        let theirs = texts(&theirs.unwrap_or_else(|error| panic!("{text}: {error}")));
        prop_assert_eq!(ours.rows, theirs, "{}", text);
        Ok(())
    });
    told.unwrap();
}

#[test]
fn lists_of_one_operand_have_their_answers_where_nulls_count() {
    let (_fixture, session, twin) = odd();
    let runtime = runtime();
    let key = |key: i64| format!("x'6b3{key}'");
    let operand =
        prop::sample::select(vec!["key", "value", "CASE WHEN partition = 1 THEN key ELSE value END"]);
    let item = prop_oneof![
        6 => (0..6_i64).prop_map(key),
        1 => Just("NULL".to_owned()),
        1 => prop::sample::select(vec!["key", "value"]).prop_map(str::to_owned),
    ];
    // An operand stands in the place of `?` in all of them.
    let leaf = prop_oneof![
        (prop::collection::vec(item, 1..5), prop::sample::select(vec!["IN", "NOT IN"]))
            .prop_map(|(items, is_in)| format!("? {is_in} ({})", items.join(", "))),
        (0..6_i64, prop::sample::select(vec!["=", "<>"]))
            .prop_map(move |(item, is)| format!("? {is} {}", key(item))),
        Just("partition = 0".to_owned()),
    ];
    let condition = leaf.prop_recursive(4, 10, 2, |inner| {
        prop_oneof![
            3 => (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one} AND {two})")),
            3 => (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one} OR {two})")),
            1 => inner.prop_map(|one| format!("NOT ({one})")),
        ]
    });
    let config = ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() };
    let told =
        proptest::test_runner::TestRunner::new(config).run(&(condition, operand), |(condition, operand)| {
            let condition = condition.replace('?', operand);
            for text in [
                format!("SELECT partition, \"offset\", {condition} FROM odd ORDER BY 1, 2"),
                format!("SELECT partition, \"offset\" FROM odd WHERE {condition} ORDER BY 1, 2"),
                format!("SELECT count({condition}), count(*) FILTER (WHERE {condition}) FROM odd"),
            ] {
                let ours = runtime
                    .block_on(ask(&session, &text))
                    .unwrap_or_else(|error| panic!("{text}: {error:?}"));
                let theirs = runtime.block_on(async { twin.sql(&text).await?.collect().await });
                let theirs = texts(&theirs.unwrap_or_else(|error| panic!("{text}: {error}")));
                prop_assert_eq!(ours.rows, theirs, "{}", text);
            }
            Ok(())
        });
    told.unwrap();
}
