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
        ("show tables in vast.\"kafka/kafka_topics\"", "Table", &["My_Topic", "events", "orders.v1"]),
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
