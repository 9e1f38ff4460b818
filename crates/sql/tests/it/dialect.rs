//! What is understood beyond DataFusion's SQL, over topics.

use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use kolumn_sql::{QueryError, QueryErrorKind, Session};

use crate::ask::runtime;
use crate::support::{Fixture, Row};

/// A session over the topic `events` and two more.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let events = fixture.topic("events", 1);
    let row = |key: Option<&'static [u8]>, value: Option<&'static [u8]>| Row { key, value, ..Row::default() };
    fixture.append(
        &events,
        0,
        &[
            row(Some(b"a"), Some(br#"{"n":1,"s":"x"}"#)),
            row(Some(b"b"), Some(b"not JSON")),
            row(None, None),
            row(Some(b"c"), Some(b"\xff")),
        ],
    );
    fixture.topic("My_Topic", 1);
    fixture.topic("orders.v1", 2);
    fixture.topic("a.b.c", 1);
    fixture
}

async fn rows(session: &Session, text: &str) -> Result<(Vec<String>, Vec<String>), QueryError> {
    let answer = session.execute(text).await?;
    let names = answer.schema.fields().iter().map(|field| field.name().clone()).collect();
    let batches: Vec<_> = answer.rows.try_collect().await.map_err(QueryError::from)?;
    let options = FormatOptions::default().with_null("null");
    let mut rows = Vec::new();
    for batch in &batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| {
                ArrayFormatter::try_new(column.as_ref(), &options).expect("a column that can be shown")
            })
            .collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
            rows.push(cells.join("|"));
        }
    }
    Ok((names, rows))
}

#[track_caller]
fn check(session: &Session, cases: &[(&str, &[&str])]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for (text, expected) in cases {
        match runtime.block_on(rows(session, text)) {
            Ok((_, rows)) => assert_eq!(rows, *expected, "{text}"),
            Err(error) => panic!("{text}: {error}"),
        }
    }
}

#[test]
fn schemas_and_tables_are_listed_in_one_column() {
    let fixture = fixture();
    let session = fixture.session();
    for (text, name, expected) in [
        ("show schemas in vast", "Schema", &["information_schema", "kafka/kafka_topics", "system"][..]),
        ("SHOW SCHEMAS LIKE '%/%'", "Schema", &["kafka/kafka_topics"]),
        (
            "show tables in vast.\"kafka/kafka_topics\"",
            "Table",
            &["My_Topic", "a.b.c", "events", "orders.v1"],
        ),
        ("SHOW TABLES LIKE 'e%'", "Table", &["events"]),
        ("SHOW CATALOGS", "Catalog", &["kolumn", "vast"]),
    ] {
        let (names, rows) = runtime().block_on(rows(&session, text)).expect("lists");
        assert_eq!(names, [name], "{text}");
        assert_eq!(rows, expected, "{text}");
    }
}

#[test]
fn what_does_not_exist_or_writes_is_refused_with_a_hint() {
    use QueryErrorKind as Kind;
    let fixture = fixture();
    let session = fixture.session();
    for (text, kind, part) in [
        ("SHOW SCHEMAS IN nope", Kind::NotFound, "catalog `nope`"),
        ("SHOW TABLES IN vast.nope", Kind::NotFound, "schema `nope`"),
        ("SELECT * FROM nope", Kind::NotFound, "nope"),
        ("SELECT * FROM My_Topic", Kind::NotFound, "\"My_Topic\""),
        ("SELECT * FROM orders.v1", Kind::NotFound, "double quotes: \"orders.v1\""),
        ("SELECT * FROM ORDERS.V1 o", Kind::NotFound, "double quotes: \"orders.v1\""),
        ("SELECT * FROM orders.v2", Kind::NotFound, "schema `orders` does not exist"),
        ("SELECT * FROM a.b.c", Kind::NotFound, "double quotes: \"a.b.c\""),
        ("SELECT * FROM orders-eu WHERE key = 'a'", Kind::Syntax, "double quotes: \"orders-eu\""),
        (
            "SELECT count(*) FROM kafka.orders-2024.v1",
            Kind::Syntax,
            "double quotes: \"kafka.orders-2024.v1\"",
        ),
        ("SHOW datafusion.execution.batch_size", Kind::Unsupported, "`datafusion.execution.batch_size`"),
        ("SELECT * FROM information_schema.df_settings", Kind::NotFound, "df_settings"),
        ("SELECT * FROM vast.information_schema.\"DF_Settings\"", Kind::NotFound, "DF_Settings"),
        ("SELECT kee FROM events", Kind::NotFound, "did you mean `key`?"),
        ("SELECT key offset FROM events", Kind::Syntax, "write \"offset\" in double quotes"),
        ("SELECT key FROM events WHERE )", Kind::Syntax, "line 1, column 30"),
        ("DROP TABLE events", Kind::ReadOnly, "`DROP TABLE`"),
        ("INSERT INTO events VALUES (1)", Kind::ReadOnly, "`INSERT`"),
        ("EXPLAIN DELETE FROM events", Kind::ReadOnly, "`DELETE`"),
        ("SELECT * FROM events TABLESAMPLE BERNOULLI (1)", Kind::Unsupported, "`TABLESAMPLE`"),
        (
            "SELECT * FROM (SELECT * FROM events) e TABLESAMPLE BERNOULLI (1)",
            Kind::Unsupported,
            "`TABLESAMPLE`",
        ),
        ("SELECT 1 WHERE 1 IN (SELECT offset FROM events FOR UPDATE)", Kind::Unsupported, "`FOR UPDATE`"),
        ("SELECT * FROM events PREWHERE offset = 1", Kind::Unsupported, "`PREWHERE`"),
        ("SELECT * FROM events FORMAT JSON", Kind::Unsupported, "`FORMAT`"),
        ("PREPARE p AS SELECT 1", Kind::Unsupported, "PREPARE"),
        ("SET datafusion.execution.batch_size = 1", Kind::Unsupported, "batch_size"),
    ] {
        let error = runtime().block_on(rows(&session, text)).expect_err(text);
        assert_eq!(error.kind(), kind, "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn keys_and_values_are_used_as_text_and_as_json() {
    let fixture = fixture();
    check(
        &fixture.session(),
        &[
            ("SELECT offset FROM events WHERE key = 'a'", &["0"]),
            ("SELECT offset FROM events WHERE key IN ('a', 'c') ORDER BY offset", &["0", "3"]),
            ("SELECT offset FROM events WHERE value LIKE '%JSON'", &["1"]),
            (
                "SELECT upper(value) FROM events ORDER BY offset",
                &["{\"N\":1,\"S\":\"X\"}", "NOT JSON", "null", "null"],
            ),
            ("SELECT json_get(value, 's') FROM events ORDER BY offset", &["x", "null", "null", "null"]),
            ("SELECT json_get_int(value, 'n') FROM events ORDER BY offset", &["1", "null", "null", "null"]),
            ("SELECT offset FROM events WHERE value->>'s' = 'x'", &["0"]),
            ("SELECT offset FROM events WHERE json_get(value, 'n') >= 1", &["0"]),
            ("SELECT coalesce(key, 'none') FROM events ORDER BY offset", &["a", "b", "none", "c"]),
            ("SELECT max(offset) FROM events", &["3"]),
            // a name that stands for something else inside
            (
                "SELECT json_get_str(s, 'A') FROM (SELECT upper(s) AS s FROM (VALUES ('{\"a\":\"b\"}')) AS v(s))",
                &["B"],
            ),
            (
                "SELECT json_get_str(value, 'S') FROM (SELECT upper(value) AS value FROM events WHERE offset = 0)",
                &["X"],
            ),
        ],
    );
}

#[test]
fn a_statement_as_deep_as_allowed_runs_on_a_thread_of_the_runtime() {
    let chain = format!("SELECT offset FROM events WHERE offset = 0{}", " OR offset = 1".repeat(200));
    let sum = format!("SELECT offset{} FROM events WHERE offset = 0", " + 1".repeat(60));
    let calls = format!("SELECT {}'A'{}", "lower(".repeat(14), ")".repeat(14));
    let nested = format!("SELECT count(*) FROM {}events{}", "(SELECT * FROM ".repeat(6), ")".repeat(6));
    let fixture = fixture();
    let session = fixture.session();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let cases = [(chain, vec!["0", "1"]), (sum, vec!["60"]), (calls, vec!["a"]), (nested, vec!["4"])];
    // the threads of a runtime have the smallest stacks that statements meet
    let answers = runtime.block_on(runtime.spawn(async move {
        let mut answers = Vec::new();
        for (text, expected) in cases {
            answers.push((rows(&session, &text).await.expect("runs").1, expected));
        }
        answers
    }));
    for (answer, expected) in answers.expect("does not panic") {
        assert_eq!(answer, expected);
    }
}

#[test]
fn columns_of_an_answer_may_have_the_same_name() {
    let fixture = fixture();
    let session = fixture.session();
    let a = "SELECT key, value FROM events WHERE offset = 0";
    for (text, names, expected) in [
        ("SELECT key, key FROM events WHERE offset = 0", "key key", "61|61"),
        ("SELECT key, events.key, \"key\" FROM events WHERE offset = 0", "key key key", "61|61|61"),
        ("SELECT key, key::text FROM events WHERE offset = 0", "key events.key", "61|a"),
        (
            "SELECT *, offset FROM events WHERE offset = 2",
            "partition offset timestamp key value headers offset",
            "",
        ),
        ("SELECT 1, 1, 2 AS a, 3 AS a", "Int64(1) Int64(1) a a", "1|1|2|3"),
        ("SELECT key, upper(key) AS key FROM events WHERE offset = 1", "key key", "62|B"),
        ("SELECT count(*), count(*) FROM events", "count(*) count(*)", "4|4"),
        (
            "SELECT UPPER(key), upper( key ) FROM events WHERE offset = 0",
            "upper(events.key) upper(events.key)",
            "A|A",
        ),
        (
            "SELECT DISTINCT key, key FROM events WHERE offset < 2 ORDER BY key DESC LIMIT 1",
            "key key",
            "62|62",
        ),
        (
            "SELECT key, key, count(*) FROM events GROUP BY key HAVING key = 'a'",
            "key key count(*)",
            "61|61|1",
        ),
        ("SELECT offset, offset FROM events ORDER BY timestamp, offset DESC LIMIT 1", "offset offset", "3|3"),
        ("SELECT 1 AS x, 2 AS x UNION ALL SELECT 3 AS y, 3 AS y ORDER BY 1 DESC LIMIT 1", "x x", "3|3"),
        ("WITH t AS (SELECT 1 AS x) SELECT x, x FROM t", "x x", "1|1"),
        ("SELECT events.key, key FROM events WHERE offset = 0 GROUP BY 1, 2 ORDER BY 2", "key key", "61|61"),
        (
            "SELECT *, key, \"offset\" FROM (SELECT key, offset FROM events) ORDER BY key, offset LIMIT 1",
            "key offset key offset",
            "61|0|61|0",
        ),
        (
            "SELECT a.key, b.key FROM events a JOIN events b ON a.key = b.key WHERE a.offset = 0",
            "key key",
            "61|61",
        ),
    ] {
        let answer =
            runtime().block_on(rows(&session, text)).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(answer.0.join(" "), names, "{text}");
        assert!(expected.is_empty() || answer.1 == [expected], "{text}: {:?}", answer.1);
        let prepared = runtime().block_on(session.prepare(text)).expect("is planned");
        let prepared: Vec<_> = prepared.schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(prepared.join(" "), names, "{text}");
    }
    let joined = format!("SELECT * FROM ({a}) AS a JOIN ({a}) AS b ON a.key = b.key");
    let (names, rows) = runtime().block_on(rows(&session, &joined)).expect("joins");
    assert_eq!((names.join(" ").as_str(), rows.len()), ("key value key value", 1));
}

#[test]
fn each_catalog_tells_of_itself_and_nothing_of_the_engine() {
    let fixture = fixture();
    let session = fixture.session();
    check(
        &session,
        &[
            ("SELECT count(*) FROM information_schema.tables WHERE table_name = 'events'", &["1"]),
            ("SELECT DISTINCT table_catalog FROM information_schema.columns", &["kolumn"]),
            ("SELECT DISTINCT catalog_name FROM vast.information_schema.schemata", &["vast"]),
            (
                "SELECT t.table_catalog FROM vast.information_schema.tables t WHERE t.table_name = 'events'",
                &["vast"],
            ),
            ("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'df%'", &[]),
            ("SHOW TABLES IN information_schema LIKE 'df%'", &[]),
            ("SHOW CATALOGS", &["kolumn", "vast"]),
            ("SHOW CATALOGS LIKE 'v%'", &["vast"]),
            ("SHOW TIME ZONE", &["UTC"]),
            ("SET TIME ZONE 'Asia/Tokyo'", &[]),
            ("SHOW timezone", &["Asia/Tokyo"]),
            ("SHOW ALL", &["TimeZone|Asia/Tokyo"]),
            (
                "SELECT routine_name FROM information_schema.routines WHERE routine_name = 'json_get_json' LIMIT 1",
                &["json_get_json"],
            ),
        ],
    );
    let (names, functions) =
        runtime().block_on(rows(&session, "SHOW FUNCTIONS LIKE 'generate_series'")).expect("lists");
    assert!(names.contains(&"function_name".to_owned()) && !functions.is_empty(), "{names:?} {functions:?}");
}

/// Each function of JSON with what it says of an object as text, of the same as bytes, of text that is no JSON, of bytes that
/// are no text, of half an object and of null.
#[test]
fn functions_of_json_take_whatever_a_value_holds() {
    let json = r#"{"n":1,"s":"x","f":1.5,"b":true,"a":[10,"y",null],"o":{"k":2},"z":null}"#;
    let fixture = Fixture::new();
    let topic = fixture.topic("values", 1);
    let texts: [Option<&[u8]>; 5] =
        [Some(json.as_bytes()), Some(b"not JSON"), Some(b"\xff{}"), Some(&json.as_bytes()[..20]), None];
    let rows = texts.map(|value| Row { value, ..Row::default() });
    fixture.append(&topic, 0, &rows);
    let session = fixture.session();
    for (call, whole, half) in [
        ("json_get(value, 's')", "x", "x"),
        ("json_get(value, 'o', 'k')", "2", "null"),
        ("json_get_str(value, 's')", "x", "x"),
        ("json_get_str(value, 'n')", "null", "null"),
        ("json_get_int(value, 'n')", "1", "1"),
        ("json_get_float(value, 'f')", "1.5", "1.0"),
        ("json_get_bool(value, 'b')", "true", "null"),
        ("json_get_json(value, 's')", "\"x\"", "\"x\""),
        ("json_get_json(value, 'o')", "{\"k\":2}", "null"),
        ("json_get_json(value, 'a', -2)", "\"y\"", "null"),
        ("json_get_array(value, 'a')", "[10, \"y\", null]", "null"),
        ("json_as_text(value, 'a', 1)", "y", "null"),
        ("json_as_text(value, 'z')", "null", "null"),
        ("json_length(value, 'a')", "3", "null"),
        ("json_length(value)", "7", "null"),
        ("json_object_keys(value)", "[n, s, f, b, a, o, z]", "null"),
        ("json_contains(value, 's')", "true", "true"),
        ("json_contains(value, 'z')", "true", "false"),
        ("value -> 'o'", "{\"k\":2}", "null"),
        ("value ->> 's'", "x", "x"),
        ("value ? 's'", "true", "true"),
    ] {
        let none = if call.contains("contains") || call.contains('?') { "false" } else { "null" };
        let wanted = [whole, none, none, half, none];
        // as a column, as text, folded from a literal, in a condition, and as the key of groups
        let text = format!("SELECT {call} FROM values ORDER BY offset");
        let told =
            runtime().block_on(self::rows(&session, &text)).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(told.1, wanted, "{text}");
        let text = format!(
            "SELECT {call} FROM (SELECT offset, TRY_CAST(value AS text) AS value FROM values) ORDER BY offset"
        );
        let told =
            runtime().block_on(self::rows(&session, &text)).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(told.1, wanted, "{text}");
        let text = format!("SELECT {}", call.replace("value", &format!("'{json}'")));
        let told =
            runtime().block_on(self::rows(&session, &text)).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(told.1, [whole], "{text}");
        let text = format!("SELECT count(*) FROM values WHERE ({call}) IS NULL GROUP BY {call}");
        let told =
            runtime().block_on(self::rows(&session, &text)).unwrap_or_else(|error| panic!("{text}: {error}"));
        let nulls = wanted.iter().filter(|said| **said == "null").count();
        assert_eq!(told.1, if nulls == 0 { vec![] } else { vec![nulls.to_string()] }, "{text}");
    }
}
