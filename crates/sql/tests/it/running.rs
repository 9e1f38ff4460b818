//! Statements while everything else goes on: snapshots, limits, cancellation, spilling, sessions.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use datafusion::common::{ParamValues, ScalarValue};
use futures::StreamExt;
use kolumn_sql::{
    Event, Observer, Policy, Principal, QueryError, QueryErrorKind, Session, Settings, TableName,
};
use kolumn_topic_store::Topic;

use crate::ask::{ask, check, read, runtime};
use crate::support::{Fixture, Row};

/// Rows that take some time to join with each other.
fn many(fixture: &Fixture, rows: usize) -> Arc<Topic> {
    let topic = fixture.topic("many", 1);
    let value = "x".repeat(100);
    let keys: Vec<_> = (0..rows).map(|row| format!("{:08}", row.wrapping_mul(7_919) % rows)).collect();
    for (batch, keys) in (0_i64..).zip(keys.chunks(1_000)) {
        let rows: Vec<_> = keys.iter().map(|key| Row::text(batch, key, &value)).collect();
        fixture.append(&topic, 0, &rows);
    }
    topic
}

fn error_of(session: &Session, text: &str) -> QueryError {
    runtime().block_on(ask(session, text)).expect_err(text)
}

fn kind_of(session: &Session, text: &str) -> QueryErrorKind {
    error_of(session, text).kind()
}

#[test]
fn what_is_acknowledged_is_in_the_next_answer() {
    let fixture = Fixture::new();
    let topic = fixture.topic("fresh", 2);
    let session = fixture.session();
    let runtime = runtime();
    let told = |text: &str| runtime.block_on(ask(&session, text)).unwrap().rows;
    for round in 0..60_i64 {
        let key = format!("key {round}");
        fixture.append(&topic, i32::from(round % 2 == 1), &[Row::text(round, &key, "value")]);
        let other = fixture.topic(&format!("other-{round}"), 1);
        assert_eq!(told("SELECT count(*) FROM fresh"), [format!("{}", round + 1)]);
        assert_eq!(told("SELECT max(\"offset\") FROM fresh"), [format!("{}", round / 2)]);
        let text = format!("SELECT partition, \"offset\" FROM fresh WHERE key = '{key}'");
        assert_eq!(told(&text), [format!("{}|{}", round % 2, round / 2)]);
        if round % 3 == 0 {
            fixture.store.delete_topic(fixture.view.id, other.id).unwrap().wait().unwrap();
        }
    }
}

#[test]
fn all_tables_of_a_statement_are_of_one_moment() {
    let fixture = Fixture::new();
    let topics = [fixture.topic("first", 1), fixture.topic("second", 1)];
    let session = fixture.session();
    let runtime = runtime();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // `first` is always as long as `second`, or one row longer.
            while !stop.load(Ordering::Relaxed) {
                for topic in &topics {
                    fixture.append(topic, 0, &[Row::text(0, "k", "v")]);
                }
            }
        });
        let text = "SELECT (SELECT count(*) FROM first) - (SELECT count(*) FROM second) AS a, \
                    (SELECT count(value) FROM first) - (SELECT count(*) FROM first) AS b, \
                    (SELECT count(*) FROM first a JOIN first b ON a.\"offset\" = b.\"offset\") - (SELECT count(*) FROM first) AS c";
        let told: Vec<_> = (0..30).map(|_| runtime.block_on(ask(&session, text))).collect();
        stop.store(true, Ordering::Relaxed);
        for told in told {
            let rows = told.unwrap().rows;
            assert!(rows == ["0|0|0"] || rows == ["1|0|0"], "{rows:?}");
        }
    });
}

#[derive(Debug)]
struct OnlyFirst;

impl Policy for OnlyFirst {
    fn may_read(&self, principal: &Principal, table: TableName<'_>) -> bool {
        principal.name() == "root" || (table.schema == "kafka/kafka_topics" && table.table == "first")
    }
}

#[test]
fn what_may_not_be_read_looks_as_if_it_did_not_exist() {
    let fixture = Fixture::new();
    fixture.topic("first", 1);
    fixture.topic("second", 1);
    let engine = fixture.engine(|builder| builder.policy(Arc::new(OnlyFirst)));
    let (guest, root) = (engine.session(Principal::anonymous()), engine.session(Principal::new("root")));
    check(&guest, "SELECT count(*) FROM first", &["0"]);
    check(&guest, "SHOW TABLES", &["first"]);
    check(&guest, "SELECT DISTINCT table_name FROM information_schema.columns", &["first"]);
    check(&root, "SHOW TABLES", &["first", "second"]);
    check(&root, "SELECT count(*) FROM second", &["0"]);
    let (hidden, missing) =
        (error_of(&guest, "SELECT * FROM second"), error_of(&guest, "SELECT * FROM absent"));
    assert_eq!(hidden.kind(), QueryErrorKind::NotFound);
    assert_eq!(hidden.to_string().replace("second", "absent"), missing.to_string());
    assert_eq!(kind_of(&guest, "SELECT * FROM first JOIN second ON true"), QueryErrorKind::NotFound);
    assert_eq!(kind_of(&guest, "SELECT * FROM system.groups"), QueryErrorKind::NotFound);
}

/// A statement that would run for very long.
const ENDLESS: &str =
    "SELECT count(*) FROM many a, many b, many c WHERE a.value < b.value OR b.key < c.key OR a.key < c.key";

#[test]
fn a_statement_ends_at_its_timeout() {
    let fixture = Fixture::new();
    many(&fixture, 20_000);
    let settings = Settings { statement_timeout: Duration::from_millis(300), ..Settings::default() };
    let session = fixture.engine(|builder| builder.settings(settings)).session(Principal::anonymous());
    assert_eq!(kind_of(&session, ENDLESS), QueryErrorKind::Timeout);
}

#[test]
fn a_dropped_answer_gives_its_place_and_memory_back() {
    let fixture = Fixture::new();
    many(&fixture, 20_000);
    let settings = Settings { statements_max: 1, ..Settings::default() };
    let engine = fixture.engine(|builder| builder.settings(settings));
    let session = engine.session(Principal::anonymous());
    runtime().block_on(async {
        let mut answer = session.execute(ENDLESS).await.unwrap();
        let begun = tokio::time::timeout(Duration::from_millis(200), answer.rows.next()).await;
        assert!(begun.is_err(), "a row of {ENDLESS} came");
        // There is one place, and it is taken.
        let waits = tokio::time::timeout(Duration::from_millis(100), ask(&session, "SELECT 1")).await;
        assert!(waits.is_err());
        drop(answer);
        assert_eq!(ask(&session, "SELECT 1").await.unwrap().rows, ["1"]);
        // Tasks that were cancelled let go when they are next polled.
        while engine.memory().reserved > 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn an_answer_that_was_read_to_its_end_gives_its_place_back() {
    let fixture = Fixture::new();
    let settings = Settings { statements_max: 1, ..Settings::default() };
    let session = fixture.engine(|builder| builder.settings(settings)).session(Principal::anonymous());
    runtime().block_on(async {
        let mut answer = session.execute("SELECT 1").await.unwrap();
        while answer.rows.next().await.is_some() {}
        assert_eq!(ask(&session, "SELECT 2").await.unwrap().rows, ["2"]);
        drop(answer);
    });
}

#[test]
fn a_sort_larger_than_the_memory_spills_and_is_exact() {
    let fixture = Fixture::new();
    many(&fixture, 300_000);
    let spill = fixture.directory.path().join("spill");
    std::fs::create_dir_all(spill.join("datafusion-old")).unwrap();
    std::fs::write(spill.join("datafusion-old").join("left"), b"over").unwrap();
    std::fs::write(spill.join("mine"), b"stays").unwrap();
    let memory_len_max = 32 << 20;
    let settings =
        Settings { memory_len_max, spill_dir: Some(spill.clone()), parallelism: 1, ..Settings::default() };
    let engine = fixture.engine(|builder| builder.settings(settings));
    assert!(!spill.join("datafusion-old").exists() && spill.join("mine").exists());
    let session = engine.session(Principal::anonymous());
    let text = "SELECT count(*), sum(wrong) FROM (SELECT CASE WHEN key < lag(key) OVER (ORDER BY CAST(key AS TEXT), value) \
                THEN 1 ELSE 0 END AS wrong FROM many)";
    check(&session, text, &["300000|0"]);
    let told = runtime()
        .block_on(ask(&session, "EXPLAIN ANALYZE SELECT key, value FROM many ORDER BY key"))
        .unwrap();
    let plan = told.rows.join("\n");
    assert!(plan.contains("spill_count=") && !plan.contains("spill_count=0,"), "{plan}");
    // The first statement has decoded them.
    assert!(plan.contains("rows_cached=300"), "{plan}");
    assert!(engine.memory().reserved_max <= memory_len_max, "{:?}", engine.memory());
}

#[test]
fn sorts_groups_and_joins_in_parallel_share_a_small_memory() {
    let fixture = Fixture::new();
    many(&fixture, 300_000);
    let spill = fixture.directory.path().join("spill");
    let memory_len_max = 32 << 20;
    let settings =
        Settings { memory_len_max, spill_dir: Some(spill.clone()), parallelism: 2, ..Settings::default() };
    let engine = fixture.engine(|builder| builder.settings(settings));
    let session = engine.session(Principal::anonymous());
    let plan = runtime().block_on(ask(&session, "EXPLAIN SELECT key, value FROM many ORDER BY value, key"));
    assert!(plan.unwrap().rows.join("\n").contains("SortPreservingMergeExec"), "the sort is in one piece");
    let ascending = |order: &str| {
        let window = format!("(ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)");
        format!(
            "SELECT count(*), max(n), sum(wrong) FROM (SELECT row_number() OVER {window} AS n, \
             CASE WHEN key <= lag(key) OVER {window} THEN 1 ELSE 0 END AS wrong FROM many)"
        )
    };
    for order in ["key", "value, key", "value || key"] {
        check(&session, &ascending(order), &["300000|300000|0"]);
    }
    let groups = "SELECT count(*), sum(n), min(len), max(len) FROM \
                  (SELECT key, value, count(*) AS n, max(octet_length(value)) AS len FROM many GROUP BY key, value)";
    check(&session, groups, &["300000|300000|100|100"]);
    let join = "SELECT count(*), sum(a.\"offset\" - b.\"offset\"), max(octet_length(b.value)) FROM many a JOIN many b \
                ON a.key = b.key AND a.value = b.value";
    assert!(engine.memory().reserved_max <= memory_len_max, "{:?}", engine.memory());
    assert_eq!(engine.memory().reserved, 0);
    for parallelism in [1, 2] {
        let settings = Settings { parallelism, ..engine.settings().clone() };
        let engine = fixture.engine(|builder| builder.settings(settings));
        check(&engine.session(Principal::anonymous()), join, &["300000|0|100"]);
        assert!(engine.memory().reserved_max <= memory_len_max, "{:?}", engine.memory());
    }
}

#[test]
fn without_a_folder_what_would_spill_fails() {
    let fixture = Fixture::new();
    many(&fixture, 50_000);
    let settings = Settings { memory_len_max: 8 << 20, parallelism: 1, ..Settings::default() };
    let session = fixture.engine(|builder| builder.settings(settings)).session(Principal::anonymous());
    assert_eq!(
        kind_of(&session, "SELECT * FROM many ORDER BY key, value"),
        QueryErrorKind::ResourcesExhausted
    );
    check(&session, "SELECT count(*) FROM many", &["50000"]);
}

#[test]
fn a_session_keeps_its_time_zone() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.session(), fixture.session());
    let text = "SELECT CAST(to_timestamp(0) AS TIMESTAMP WITH TIME ZONE)";
    check(&one, "SET TIME ZONE 'Asia/Tokyo'", &[]);
    let told = |session: &Session| {
        let told = runtime().block_on(ask(session, text)).unwrap();
        format!("{} {}", told.columns[0].1, told.rows[0])
    };
    assert!(told(&one).contains("Asia/Tokyo") && told(&one).contains("+09:00"), "{}", told(&one));
    assert!(!told(&other).contains("Asia/Tokyo"), "{}", told(&other));
    assert_eq!(kind_of(&one, "SET TIME ZONE 'Nowhere/Land'"), QueryErrorKind::Syntax);
    assert_eq!(kind_of(&one, "SET datafusion.execution.batch_size = 1"), QueryErrorKind::Unsupported);
}

#[test]
fn a_prepared_statement_has_parameters_and_sees_what_came_later() {
    let fixture = Fixture::new();
    let topic = fixture.topic("events", 1);
    let session = fixture.session();
    let runtime = runtime();
    runtime.block_on(async {
        let text = "SELECT \"offset\", value FROM events WHERE key = $1 AND \"offset\" >= $2 ORDER BY 1";
        let prepared = session.prepare(text).await.unwrap();
        assert_eq!(prepared.parameters.len(), 2);
        assert_eq!(prepared.parameters[1].as_ref().map(ToString::to_string).as_deref(), Some("Int64"));
        for round in 0..3_i64 {
            let append = || fixture.append(&topic, 0, &[Row::text(0, "a", "x"), Row::text(0, "b", "y")]);
            tokio::task::block_in_place(append);
            let values = vec![ScalarValue::Utf8(Some("b".into())).into(), ScalarValue::Int64(Some(2)).into()];
            let answer = session.execute_with(&prepared.sql, Some(ParamValues::List(values))).await.unwrap();
            assert_eq!(answer.schema, prepared.schema);
            assert_eq!(read(answer).await.unwrap().rows.len(), usize::try_from(round).unwrap());
        }
        let count = session.prepare("SELECT count(*) AS n FROM events").await.unwrap();
        assert_eq!(count.schema, session.execute(&count.sql).await.unwrap().schema);
        assert_eq!(session.prepare("SET TIME ZONE 'UTC'").await.unwrap().schema.fields().len(), 0);
        assert_eq!(
            session.prepare("SELECT * FROM absent").await.unwrap_err().kind(),
            QueryErrorKind::NotFound
        );
    });
}

#[test]
fn errors_have_the_kind_that_tells_what_to_do() {
    let fixture = Fixture::new();
    let topic = fixture.topic("events", 1);
    fixture.append(&topic, 0, &[Row::text(0, "0", "x")]);
    let settings = Settings { statement_len_max: 200, ..Settings::default() };
    let session = fixture.engine(|builder| builder.settings(settings)).session(Principal::anonymous());
    for (text, kind) in [
        ("", QueryErrorKind::Syntax),
        ("SELEC 1", QueryErrorKind::Syntax),
        ("SELECT 1; SELECT 2", QueryErrorKind::Syntax),
        ("SELECT count(*) FROM events GROUP BY nothing", QueryErrorKind::NotFound),
        ("SELECT 1 / (\"offset\" - \"offset\") FROM events", QueryErrorKind::Data),
        ("SELECT CAST('x' || CAST(partition AS TEXT) AS INT) FROM events", QueryErrorKind::Data),
        ("SELECT row_number() OVER (ORDER BY key) FROM events", QueryErrorKind::Unsupported),
        (&format!("SELECT '{}'", "x".repeat(200)), QueryErrorKind::ResourcesExhausted),
    ] {
        let error = error_of(&session, text);
        assert_eq!(error.kind(), kind, "{text}: {error}");
        assert!(!error.to_string().contains("DataFusion"), "{error}");
    }
}

#[test]
fn settings_that_cannot_work_are_refused_by_name() {
    let fixture = Fixture::new();
    for (name, settings) in [
        ("parallelism", Settings { parallelism: 0, ..Settings::default() }),
        ("statements_max", Settings { statements_max: 0, ..Settings::default() }),
        ("rows_max", Settings { rows_max: 0, ..Settings::default() }),
        ("statement_timeout", Settings { statement_timeout: Duration::ZERO, ..Settings::default() }),
        ("memory_len_max", Settings { memory_len_max: (8 << 20) - 1, ..Settings::default() }),
    ] {
        let built = kolumn_sql::Engine::builder(fixture.store.clone()).settings(settings).build();
        assert!(built.unwrap_err().to_string().contains(name));
    }
}

/// Keeps the faults that it is told of.
#[derive(Debug, Default)]
struct Faults(parking_lot::Mutex<Vec<(String, String)>>);

impl Observer for Faults {
    fn event(&self, event: &Event<'_>) {
        if let Event::Fault { sql, error, .. } = event {
            let cause = error.source().map(ToString::to_string).unwrap_or_default();
            self.0.lock().push(((*sql).to_owned(), cause));
        }
    }
}

#[test]
fn a_fault_is_told_to_the_observer_with_its_cause() {
    let fixture = Fixture::new();
    many(&fixture, 100_000);
    let spill = fixture.directory.path().join("spill");
    let faults = Arc::new(Faults::default());
    let settings = Settings {
        memory_len_max: 8 << 20,
        spill_dir: Some(spill.clone()),
        parallelism: 1,
        ..Settings::default()
    };
    let engine = fixture.engine(|builder| builder.settings(settings).observer(Arc::clone(&faults) as _));
    let session = engine.session(Principal::anonymous());
    assert_eq!(kind_of(&session, "SELECT * FROM nowhere"), QueryErrorKind::NotFound);
    assert!(faults.0.lock().is_empty());
    // what would spill finds no folder
    std::fs::remove_dir_all(&spill).unwrap();
    std::fs::write(&spill, b"in its place").unwrap();
    let text = "SELECT key, value FROM many ORDER BY value, key";
    assert_eq!(kind_of(&session, text), QueryErrorKind::Internal);
    let told = faults.0.lock().clone();
    assert!(matches!(told.as_slice(), [(sql, cause)] if sql == text && !cause.is_empty()), "{told:?}");
}
