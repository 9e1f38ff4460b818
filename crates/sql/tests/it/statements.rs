//! Statements and their exact answers.

use kolumn_sql::{QueryErrorKind, Session};

use crate::ask::{ask, check, runtime};
use crate::support::{Fixture, Row};

/// Topics with text, nulls, headers, JSON, odd names and several partitions.
fn shop() -> (Fixture, Session) {
    let fixture = Fixture::new();
    let orders = fixture.topic("orders", 2);
    fixture.append(
        &orders,
        0,
        &[
            Row::text(1_700_000_000_000, "apple", r#"{"n":3,"price":1.5,"to":{"city":"Bern"},"gift":true}"#),
            Row::text(1_700_000_001_000, "pear", r#"{"n":1,"price":2.25,"to":{"city":"Basel"}}"#),
        ],
    );
    let headers = vec![("trace", Some(&b"1"[..])), ("trace", Some(&b"2"[..])), ("empty", None)];
    fixture.append(
        &orders,
        1,
        &[
            Row { timestamp: -1, key: None, value: Some(b"not JSON"), headers },
            Row { timestamp: 1_700_000_002_500, key: Some(b"apple"), value: None, headers: Vec::new() },
            Row {
                timestamp: 1_700_000_003_000,
                key: Some(b"\xff\x00"),
                value: Some(b""),
                headers: Vec::new(),
            },
        ],
    );
    let fruits = fixture.topic("fruits", 1);
    fixture.append(
        &fruits,
        0,
        &[Row::text(1, "apple", "green"), Row::text(2, "pear", "yellow"), Row::text(3, "plum", "blue")],
    );
    fixture.topic("My_Topic", 1);
    let dotted = fixture.topic("orders.v1-eu", 1);
    fixture.append(&dotted, 0, &[Row::text(5, "k", "v")]);
    fixture.topic("empty", 3);
    let session = fixture.session();
    (fixture, session)
}

#[test]
fn rows_have_the_columns_of_the_topic() {
    let (_fixture, session) = shop();
    let told =
        runtime().block_on(ask(&session, "SELECT * FROM orders ORDER BY partition, \"offset\"")).unwrap();
    let columns: Vec<_> = told.columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    assert_eq!(
        columns[..5],
        ["partition Int32", "offset Int64", "timestamp Timestamp(ms)", "key Binary", "value Binary"]
    );
    assert!(columns[5].starts_with("headers List("), "{columns:?}");
    assert_eq!(told.rows.len(), 5);
    assert_eq!(
        told.rows[2],
        concat!(
            "1|0|NULL|NULL|6e6f74204a534f4e|",
            "[{key: trace, value: 31}, {key: trace, value: 32}, {key: empty, value: NULL}]"
        )
    );
    assert_eq!(told.rows[3], "1|1|2023-11-14T22:13:22.500|6170706c65|NULL|[]");
}

/// Statements and the rows that they answer with.
const STATEMENTS: &[(&str, &[&str])] = &[
    (
        "SELECT key, \"offset\" FROM orders WHERE partition = 0 AND \"offset\" + 1 > 1 ORDER BY partition, \"offset\"",
        &["70656172|1"],
    ),
    (
        "SELECT key, \"offset\" FROM orders WHERE \"offset\" + 1 > 2 ORDER BY partition, \"offset\" LIMIT 1",
        &["ff00|2"],
    ),
    ("SELECT count(*) FROM orders", &["5"]),
    ("SELECT count(*) FROM vast.\"kafka/kafka_topics\".orders", &["5"]),
    ("SELECT count(*) FROM kolumn.\"kafka/kafka_topics\".orders", &["5"]),
    ("SELECT count(*) FROM \"kafka/kafka_topics\".\"orders.v1-eu\"", &["1"]),
    ("SELECT count(*), min(\"offset\"), max(\"offset\") FROM \"empty\"", &["0|NULL|NULL"]),
    ("SELECT * FROM \"empty\" LIMIT 5", &[]),
    ("SELECT count(*), min(\"offset\"), max(\"offset\") FROM orders", &["5|0|2"]),
    ("SELECT count(timestamp), count(key), count(value) FROM orders", &["4|4|4"]),
    ("SELECT max(timestamp), min(timestamp) FROM orders", &["2023-11-14T22:13:23|2023-11-14T22:13:20"]),
    ("SELECT partition, count(*) FROM orders GROUP BY 1 ORDER BY 1", &["0|2", "1|3"]),
    ("SELECT partition, \"offset\" FROM orders WHERE key = 'apple' ORDER BY 1, 2", &["0|0", "1|1"]),
    ("SELECT \"offset\" FROM orders WHERE key IN ('pear', 'plum')", &["1"]),
    ("SELECT \"offset\" FROM orders WHERE key IS NULL", &["0"]),
    ("SELECT partition, \"offset\" FROM orders WHERE value IS NULL", &["1|1"]),
    ("SELECT \"offset\" FROM orders WHERE timestamp IS NULL", &["0"]),
    ("SELECT \"offset\" FROM orders WHERE timestamp = '2023-11-14T22:13:22.500'", &["1"]),
    ("SELECT count(*) FROM orders WHERE timestamp >= TIMESTAMP '2023-11-14 22:13:21'", &["3"]),
    ("SELECT count(*) FROM orders WHERE timestamp < now()", &["4"]),
    ("SELECT count(*) FROM orders WHERE key LIKE 'a%'", &["2"]),
    ("SELECT \"offset\" FROM orders WHERE value LIKE '%JSON%'", &["0"]),
    (
        "SELECT f.\"offset\", o.partition, o.\"offset\" FROM orders o JOIN fruits f ON o.key = f.key ORDER BY 1, 2, 3",
        &["0|0|0", "0|1|1", "1|0|1"],
    ),
    (
        "SELECT f.\"offset\", count(o.\"offset\") FROM fruits f LEFT JOIN orders o ON o.key = f.key GROUP BY 1 ORDER BY 1",
        &["0|2", "1|1", "2|0"],
    ),
    (
        "SELECT \"offset\", lag(\"offset\") OVER (ORDER BY \"offset\"), sum(\"offset\") OVER (ORDER BY \"offset\") \
             FROM fruits ORDER BY 1",
        &["0|NULL|0", "1|0|1", "2|1|3"],
    ),
    (
        "SELECT partition, \"offset\", row_number() OVER (PARTITION BY partition ORDER BY \"offset\" DESC) FROM orders \
             ORDER BY 1, 2",
        &["0|0|2", "0|1|1", "1|0|3", "1|1|2", "1|2|1"],
    ),
    (
        "SELECT json_get_int(value, 'n'), json_get_float(value, 'price'), json_get_str(value, 'to', 'city'), \
             json_get_bool(value, 'gift') FROM orders ORDER BY partition, \"offset\"",
        &[
            "3|1.5|Bern|true",
            "1|2.25|Basel|NULL",
            "NULL|NULL|NULL|NULL",
            "NULL|NULL|NULL|NULL",
            "NULL|NULL|NULL|NULL",
        ],
    ),
    (
        "SELECT h['key'], h['value'] FROM (SELECT unnest(headers) AS h FROM orders)",
        &["trace|31", "trace|32", "empty|NULL"],
    ),
    ("SELECT \"offset\" FROM orders ORDER BY \"offset\" DESC, partition LIMIT 2", &["2", "1"]),
    (
        "SELECT partition, \"offset\" FROM orders WHERE partition = 1 AND \"offset\" BETWEEN 1 AND 5",
        &["1|1", "1|2"],
    ),
    ("SELECT partition FROM orders WHERE \"offset\" IN (2, 7)", &["1"]),
    ("SELECT DISTINCT partition FROM orders ORDER BY 1", &["0", "1"]),
    ("SELECT count(*) FROM orders a, orders b WHERE a.\"offset\" = b.\"offset\"", &["9"]),
    ("WITH orders AS (SELECT 1 AS x) SELECT x FROM orders", &["1"]),
    ("SELECT x FROM (VALUES (1), (2)) AS t(x) ORDER BY x DESC", &["2", "1"]),
    (
        "DESCRIBE fruits",
        &[
            "partition|Int32|NO",
            "offset|Int64|NO",
            "timestamp|Timestamp(ms)|YES",
            "key|Binary|YES",
            "value|Binary|YES",
            "headers|List(non-null Struct(\"key\": non-null Utf8, \"value\": Binary))|NO",
        ],
    ),
    ("show schemas in vast", &["information_schema", "kafka/kafka_topics", "system"]),
    ("SHOW TABLES", &["My_Topic", "empty", "fruits", "orders", "orders.v1-eu"]),
    (
        "SELECT partition, \"offset\", row_number() OVER (ORDER BY partition DESC, \"offset\") FROM orders \
             ORDER BY partition, \"offset\"",
        &["0|0|4", "0|1|5", "1|0|1", "1|1|2", "1|2|3"],
    ),
    (
        "SELECT \"offset\", row_number() OVER (ORDER BY partition, \"offset\") FROM orders ORDER BY \"offset\", partition",
        &["0|1", "0|3", "1|2", "1|4", "2|5"],
    ),
];

#[test]
fn statements_have_exact_answers() {
    let (_fixture, session) = shop();
    for (text, expected) in STATEMENTS {
        check(&session, text, expected);
    }
}

#[test]
fn an_explained_statement_shows_what_the_scan_takes_over() {
    let (_fixture, session) = shop();
    let text = "EXPLAIN SELECT value FROM orders WHERE \"offset\" >= 1 AND key = 'apple' AND timestamp < '2024-01-01'";
    let told = runtime().block_on(ask(&session, text)).unwrap().rows.join("\n");
    assert!(told.contains("TopicScan: topic=orders, columns=[value]"), "{told}");
    assert!(told.contains("keys=1") && told.contains("timestamp<="), "{told}");
    assert!(!told.contains("FilterExec"), "{told}");
}

#[test]
fn what_would_write_is_refused() {
    let (_fixture, session) = shop();
    for text in [
        "INSERT INTO orders VALUES (1)",
        "DELETE FROM orders",
        "UPDATE orders SET key = NULL",
        "DROP TABLE orders",
        "CREATE TABLE x AS SELECT 1",
        "CREATE VIEW x AS SELECT 1",
        "COPY orders TO '/tmp/x.csv'",
        "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'",
        "EXPLAIN INSERT INTO orders SELECT * FROM orders",
        "EXPLAIN ANALYZE INSERT INTO orders SELECT * FROM orders",
    ] {
        let error = runtime().block_on(ask(&session, text)).expect_err(text);
        assert_eq!(error.kind(), QueryErrorKind::ReadOnly, "{text}: {error}");
    }
}

#[test]
fn what_does_not_exist_is_told_with_what_does() {
    let (_fixture, session) = shop();
    for (text, expected) in [
        ("SELECT * FROM nothing", "table `nothing` does not exist"),
        ("SELECT * FROM My_Topic", "\"My_Topic\""),
        ("SELECT * FROM \"nope/kafka_topics\".orders", "schema `nope/kafka_topics` does not exist"),
        ("SELECT * FROM nope.\"kafka/kafka_topics\".orders", "catalog `nope` does not exist"),
        ("SELECT valu FROM orders", "value"),
        ("SELECT nothing(1)", "nothing"),
    ] {
        let error = runtime().block_on(ask(&session, text)).expect_err(text);
        assert_eq!(error.kind(), QueryErrorKind::NotFound, "{text}: {error}");
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_null_in_a_condition_takes_no_row_wherever_it_is_applied() {
    let fixture = Fixture::new();
    let topic = fixture.topic("few", 2);
    let rows = [Row::text(1, "a", "1"), Row::text(2, "b", "2"), Row::text(3, "c", "3")];
    fixture.append(&topic, 0, &rows);
    fixture.append(&topic, 1, &rows);
    let session = fixture.session();
    for (condition, expected) in [
        ("\"offset\" NOT IN (NULL, 1)", "0"),
        ("NOT (\"offset\" IN (NULL, 1, 2))", "0"),
        ("\"offset\" IN (NULL, 1)", "2"),
        ("\"offset\" <> NULL", "0"),
        ("\"offset\" <> NULL OR partition = 1", "3"),
        ("NOT (partition <> NULL)", "0"),
        ("partition NOT IN (NULL, 0)", "0"),
        ("NOT (\"offset\" IN (NULL) OR \"offset\" NOT IN (NULL, 0))", "0"),
        ("key NOT IN (NULL, 'a')", "0"),
        ("\"timestamp\" BETWEEN NULL AND TIMESTAMP '2030-01-01'", "0"),
        ("\"timestamp\" NOT IN (NULL, TIMESTAMP '2030-01-01')", "0"),
        ("\"offset\" = 1 AND NULL", "0"),
        ("true", "6"),
        ("false", "0"),
    ] {
        check(&session, &format!("SELECT count(*) FROM few WHERE {condition}"), &[expected]);
    }
    check(
        &session,
        "SELECT count(*) FROM few a JOIN few b USING (\"offset\") WHERE a.\"offset\" NOT IN (NULL, 1)",
        &["0"],
    );
}

#[test]
fn lists_of_one_operand_are_taken_together_only_where_it_is_right() {
    let fixture = Fixture::new();
    let session = fixture.session();
    for (condition, expected) in [
        ("k NOT IN (1, 2) OR k NOT IN (3, 4)", "4"),
        ("NOT (k IN (1, 2) AND k IN (3, 4))", "4"),
        ("NOT ((k = 1 OR k = 2) AND (k = 3 OR k = 4))", "4"),
        ("NOT (k = 1 OR k = 2) OR NOT (k = 3 OR k = 4)", "4"),
        ("(k IN (1, 2) AND k IN (3, 4)) IS NULL", "1"),
        ("NOT (k IN (1, 2) AND k NOT IN (1, 2))", "4"),
        ("k IN (1, 2) AND k NOT IN (2, NULL)", "0"),
        ("k IN (1, j) AND k IN (2, 3)", "1"),
        ("k IN (1, 2, 3, 4) AND k NOT IN (1, j)", "2"),
        ("k::bigint NOT IN (1, 2) OR k::int NOT IN (3, 4)", "4"),
        ("k IN (1, 2) OR k IN (2, 3)", "3"),
        ("k NOT IN (1, 2) AND k NOT IN (2, 3)", "1"),
    ] {
        let text = format!(
            "SELECT count(*) FROM (VALUES (NULL, 1), (1, 1), (2, 5), (3, 3), (4, 1)) t(k, j) WHERE {condition}"
        );
        check(&session, &text, &[expected]);
    }
}

#[test]
fn rows_that_are_not_asked_for_do_not_fail_a_cast_to_text() {
    let fixture = Fixture::new();
    let topic = fixture.topic("mixed", 1);
    let odd = Row { timestamp: 3, key: Some(b"\xff\xfe"), value: Some(b"\xff"), headers: Vec::new() };
    fixture.append(&topic, 0, &[Row::text(1, "a", "1"), Row::text(2, "b", "2"), odd]);
    let session = fixture.session();
    for _ in 0..2 {
        // The second time the rows come from the cache.
        check(&session, "SELECT max(value) FROM mixed", &["ff"]);
        check(
            &session,
            "SELECT upper(CAST(key AS text)) FROM mixed WHERE \"offset\" < 2 ORDER BY \"offset\"",
            &["A", "B"],
        );
        check(&session, "SELECT TRY_CAST(key AS text) FROM mixed ORDER BY \"offset\"", &["a", "b", "NULL"]);
    }
    let error =
        runtime().block_on(ask(&session, "SELECT CAST(key AS text) FROM mixed")).expect_err("not UTF-8");
    assert!(error.to_string().contains("UTF-8"), "{error}");
}
