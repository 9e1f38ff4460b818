//! That no statement takes more memory or time than it may, whatever it computes.

use std::time::Duration;

use datafusion::arrow::array::Array;
use datafusion::common::{ParamValues, ScalarValue};
use futures::StreamExt;
use kolumn_kafka_wire::records::Compression;
use kolumn_sql::{Engine, Principal, QueryErrorKind, Session, Settings};
use kolumn_topic_store::TopicConfig;

use crate::ask::{ask, check, runtime};
use crate::support::{Fixture, Row};

/// A topic `t` of so many values of so many bytes.
fn filled(rows: usize, len: usize) -> Fixture {
    let fixture = Fixture::new();
    let config = TopicConfig::parse([("max.message.bytes", "8388608")]).unwrap();
    let topic = fixture.topic_with("t", 1, config);
    let value = "a".repeat(len);
    for _ in 0..rows {
        fixture.append(&topic, 0, &[Row::text(0, "k", &value)]);
    }
    fixture
}

fn small(fixture: &Fixture) -> Engine {
    let spill_dir = Some(fixture.directory.path().join("spill"));
    let settings = Settings { memory_len_max: 8 << 20, parallelism: 1, spill_dir, ..Settings::default() };
    fixture.engine(|builder| builder.settings(settings))
}

#[track_caller]
fn refused(session: &Session, text: &str, name: &str) {
    let shown = text.get(..120).unwrap_or(text);
    let error = match runtime().block_on(ask(session, text)) {
        Ok(told) => panic!("{shown} has an answer: {:.200?}", told.rows),
        Err(error) => error,
    };
    assert_eq!(error.kind(), QueryErrorKind::ResourcesExhausted, "{shown}: {error}");
    assert!(error.to_string().contains(name), "{shown}: {error}");
}

/// `WITH t0 …, t1 AS (SELECT <from v> AS v FROM t0), …`, so many times.
fn chain(times: usize, first: &str, step: &str, last: &str) -> String {
    let steps = (1..=times).map(|level| format!(", t{level} AS (SELECT {step} AS v FROM t{})", level - 1));
    format!("WITH t0 AS ({first}){} SELECT {last} FROM t{times}", steps.collect::<String>())
}

#[test]
fn a_function_that_would_make_too_much_is_refused() {
    let fixture = filled(20, 10_000);
    let engine = small(&fixture);
    let session = engine.session(Principal::anonymous());
    let long = "y".repeat(10_000);
    let text = "SELECT CAST(value AS TEXT) AS v FROM t";
    for (statement, name) in [
        (format!("SELECT replace(value, 'a', '{long}') FROM t"), "`replace`"),
        (format!("SELECT regexp_replace(value, '.', '{long}', 'g') FROM t"), "`regexp_replace`"),
        (format!("SELECT length(replace(replace('{long}', 'y', '{long}'), 'y', '{long}'))"), "`replace`"),
        (
            format!("SELECT array_to_string(string_to_array(value, NULL), '{long}') FROM t"),
            "`array_to_string`",
        ),
        (format!("SELECT to_char(timestamp, '{}') FROM t", "%c".repeat(50_000)), "`to_char`"),
        (chain(24, text, "v || v", "v"), "`||`"),
        (chain(24, text, "concat(v, v)", "octet_length(v)"), "`concat`"),
        (chain(24, text, "concat_ws('-', v, v)", "v"), "`concat_ws`"),
        (chain(24, text, "[v, v]", "v"), "`make_array`"),
        (chain(24, "SELECT [value] AS v FROM t", "v || v", "v"), "`array_concat`"),
        (chain(24, "SELECT [value] AS v FROM t", "array_concat(v, v)", "array_length(v)"), "`array_concat`"),
        (chain(24, text, "overlay(v PLACING v FROM 1 FOR 0)", "v"), "`overlay`"),
        (
            chain(14, text, "translate(v || 'a', 'a', '😀😀')", "regexp_replace(v, '', v, 'g')"),
            "`regexp_replace`",
        ),
        (chain(24, "SELECT 'a' AS v", "v || v || v", "length(v)"), ""),
        (
            "WITH RECURSIVE r AS (SELECT 'a' AS v UNION ALL SELECT v || v FROM r) SELECT length(v) FROM r"
                .to_owned(),
            "`memory_len_max`",
        ),
        (chain(60, text, "struct(v, v)", "v"), "parts"),
        ("SELECT CAST(NULL AS INT[100000000]) FROM t".to_owned(), "parts"),
        (
            "EXPLAIN SELECT * FROM generate_series(1, array_length(CAST(NULL AS INT[1000][1000][1000])))"
                .to_owned(),
            "parts",
        ),
        ("SELECT arrow_cast(NULL, 'FixedSizeBinary(100000000)') FROM t".to_owned(), "parts"),
    ] {
        refused(&session, &statement, name);
    }
    // a constant that is needed as such and cannot be made
    let text = format!("SELECT * FROM generate_series(1, length(replace('{long}', 'y', '{long}')))");
    assert!(runtime().block_on(ask(&session, &text)).is_err());
    check(&session, "SELECT count(*), max(length(replace(value, 'a', 'bb'))) FROM t", &["20|20000"]);
    assert_eq!(engine.memory().reserved, 0);
}

#[test]
fn many_constants_and_many_results_are_refused_together() {
    let fixture = filled(20, 100_000);
    let engine = small(&fixture);
    let session = engine.session(Principal::anonymous());
    // each of a megabyte, which one call may make
    let constant = |n: usize| {
        format!("length(concat(replace('{}', 'y', '{}'), {n}))", "y".repeat(1_000), "z".repeat(1_000))
    };
    let all = |count: usize| (0..count).map(constant).collect::<Vec<_>>().join(" + ");
    check(&session, &format!("SELECT {}", all(4)), &["4000004"]);
    refused(&session, &format!("SELECT {}", all(40)), "constants");
    // a window over all rows keeps them, and takes them from no pool
    let text = "SELECT max(length(f)) FROM (SELECT first_value(v) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND \
                UNBOUNDED FOLLOWING) AS f FROM (SELECT replace(value, 'a', 'bcdefghi') AS v FROM t LIMIT 1000))";
    check(&session, text, &["800000"]);
    let longer = filled(200, 100_000);
    refused(&small(&longer).session(Principal::anonymous()), text, "the results of functions");
}

#[test]
fn concatenation_is_null_where_a_side_is_and_keeps_its_name() {
    let fixture = Fixture::new();
    let topic = fixture.topic("t", 1);
    fixture.append(
        &topic,
        0,
        &[Row::text(0, "k", "v"), Row { key: Some(b"\xff"), value: None, ..Row::default() }],
    );
    let session = fixture.session();
    check(&session, "SELECT 'a' || value || 1 FROM t", &["av1", "NULL"]);
    check(&session, "SELECT key || 'x' FROM t", &["kx", "NULL"]);
    check(
        &session,
        "SELECT arrow_typeof(key || key), arrow_typeof(key || 'x') FROM t LIMIT 1",
        &["Binary|Utf8"],
    );
    check(&session, "SELECT key || value || key FROM t LIMIT 1", &["6b766b"]);
    check(&session, "SELECT [1] || [2], [1] || 2, 1 || [2]", &["[1, 2]|[1, 2]|[1, 2]"]);
    check(&session, "SELECT 'a' || NULL, NULL || 'a', 'a' || ''", &["NULL|NULL|a"]);
    let runtime = runtime();
    let told = runtime.block_on(ask(&session, "SELECT key || 'x', 1 || 'b' FROM t")).unwrap();
    assert_eq!(told.columns[0], ("t.key || Utf8(\"x\")".to_owned(), "Utf8".to_owned()));
    runtime.block_on(async {
        let prepared = session.prepare("SELECT count(*) FROM t WHERE key || $1 = 'kx'").await.unwrap();
        assert_eq!(prepared.parameters[0].as_ref().unwrap().to_string(), "Utf8");
        let values = vec![ScalarValue::Utf8(Some("x".into())).into()];
        let answer = session.execute_with(&prepared.sql, Some(ParamValues::List(values))).await.unwrap();
        assert_eq!(crate::ask::read(answer).await.unwrap().rows, ["1"]);
    });
}

/// What takes some seconds to plan in a build for tests.
fn slow_to_plan() -> String {
    let columns: Vec<_> = (0..3_000).map(|column| format!("\"offset\" + {column} AS c{column}")).collect();
    format!("SELECT {} FROM t", columns.join(", "))
}

#[test]
fn planning_ends_for_its_caller_at_the_timeout_and_keeps_its_place_until_it_has_ended() {
    let fixture = filled(1, 10);
    let settings =
        Settings { statement_timeout: Duration::from_millis(100), statements_max: 1, ..Settings::default() };
    let session = fixture.engine(|builder| builder.settings(settings)).session(Principal::anonymous());
    // On one thread: what blocks it would keep the timeout from firing.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for prepares in [false, true] {
            let text = slow_to_plan();
            let kind = if prepares {
                session.prepare(&text).await.unwrap_err().kind()
            } else {
                session.execute(&text).await.unwrap_err().kind()
            };
            assert_eq!(kind, QueryErrorKind::Timeout);
            // The thread that plans has the one place.
            let next = session.execute("SELECT 1").await;
            assert_eq!(next.unwrap_err().kind(), QueryErrorKind::ResourcesExhausted);
            while session.execute("SELECT 1").await.is_err() {}
        }
        assert_eq!(ask(&session, "SELECT count(*) FROM t").await.unwrap().rows, ["1"]);
    });
}

#[test]
fn batches_of_long_rows_have_few_of_them() {
    let fixture = filled(24, 1 << 20);
    let settings = Settings { memory_len_max: 64 << 20, ..Settings::default() };
    let session = fixture.engine(|builder| builder.settings(settings)).session(Principal::anonymous());
    runtime().block_on(async {
        for (text, rows) in [
            ("SELECT a.value FROM t a, t b", 24 * 24),
            ("SELECT a.value, upper(a.value) AS u FROM t a JOIN t b ON a.key = b.key", 24 * 24),
            (
                "SELECT CASE WHEN \"offset\" > 3 THEN value ELSE key END AS v FROM t, generate_series(1, 20) AS s(n)",
                24 * 20,
            ),
        ] {
            let mut answer = session.execute(text).await.unwrap();
            let mut seen = 0;
            while let Some(batch) = answer.rows.next().await {
                let batch = batch.unwrap_or_else(|error| panic!("{text}: {error}"));
                let len =
                    batch.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap());
                let len: usize = len.sum();
                assert!(len <= 40 << 20, "{text}: {len} bytes in {} rows", batch.num_rows());
                seen += batch.num_rows();
            }
            assert_eq!(seen, rows, "{text}");
        }
    });
}

#[test]
fn an_error_about_memory_names_the_setting() {
    let fixture = Fixture::new();
    let topic = fixture.topic("t", 1);
    let value = "x".repeat(1_000);
    for batch in 0..20 {
        let keys: Vec<_> = (0..1_000).map(|row| format!("{batch}-{row}")).collect();
        let rows: Vec<_> = keys.iter().map(|key| Row::text(0, key, &value)).collect();
        fixture.append_as(&topic, 0, &rows, Compression::None);
    }
    let settings = Settings { memory_len_max: 8 << 20, parallelism: 1, ..Settings::default() };
    let session = fixture.engine(|builder| builder.settings(settings)).session(Principal::anonymous());
    refused(&session, "SELECT * FROM t ORDER BY value, key", "`memory_len_max`");
    refused(&session, "SELECT * FROM t ORDER BY value, key", "`spill_dir`");
    refused(&session, "SELECT key, array_agg(value) FROM t GROUP BY key", "`memory_len_max`");
    let spill_dir = Some(fixture.directory.path().join("spill"));
    let settings = Settings { spill_dir, spill_len_max: 1 << 20, ..session.engine().settings().clone() };
    let session = fixture.engine(|builder| builder.settings(settings)).session(Principal::anonymous());
    refused(&session, "SELECT * FROM t ORDER BY value, key", "`spill_len_max`");
}

#[test]
fn patterns_of_a_column_are_compiled_by_a_function() {
    let fixture = Fixture::new();
    let topic = fixture.topic("t", 1);
    fixture.append(&topic, 0, &[Row::text(0, "^A", "ab"), Row::text(0, "b$", "ab"), Row::text(0, "", "ab")]);
    let session = fixture.session();
    let text = "SELECT value ~ key, value ~* key, value !~ key, value !~* key FROM t";
    check(&session, text, &["false|true|true|false", "true|true|false|false", "true|true|false|false"]);
    let plan = runtime().block_on(ask(&session, &format!("EXPLAIN {text}"))).unwrap().rows.join("\n");
    assert!(plan.contains("regexp_like("), "{plan}");
}
