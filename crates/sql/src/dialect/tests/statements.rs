//! Listings, orders, refusals and errors.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{SCHEMA, block_on, check, check_refused, execute, state};
use crate::dialect::depth::{DEPTH_MAX, LOGIC_MAX};
use crate::dialect::{Order, Scope, parse, understand};
use crate::error::{QueryError, QueryErrorKind};

#[test]
fn listings_have_one_column_in_order() {
    let state = state();
    for (text, name) in [
        ("show schemas in vast", "Schema"),
        ("show tables in vast.\"kafka/kafka_topics\"", "Table"),
        ("SHOW CATALOGS", "Catalog"),
        ("SHOW DATABASES", "Database"),
    ] {
        let (names, _) = block_on(execute(&state, text)).expect("lists");
        assert_eq!(names, [name], "{text}");
    }
    check(&[
        ("show schemas in vast", &["b'ucket", "information_schema", "kafka/kafka_topics"]),
        ("SHOW SCHEMAS", &["b'ucket", "information_schema", "kafka/kafka_topics"]),
        ("SHOW SCHEMAS FROM vast LIKE '%/%'", &["kafka/kafka_topics"]),
        ("SHOW SCHEMAS LIKE 'b''u%'", &["b'ucket"]),
        ("SHOW TABLES", &["My_Topic", "events"]),
        ("show tables in vast.\"kafka/kafka_topics\"", &["My_Topic", "events"]),
        ("show tables in \"kafka/kafka_topics\" like 'e%'", &["events"]),
        ("show tables in \"b'ucket\"", &[]),
        ("SHOW TABLES IN vast.information_schema LIKE 'schem%'", &["schemata"]),
        ("SHOW TABLES WHERE \"Table\" <> 'events'", &["My_Topic"]),
        ("SHOW CATALOGS", &["kolumn", "vast"]),
        ("SHOW DATABASES LIKE 'v%'", &["vast"]),
        ("DESCRIBE events", &["offset|Int64|NO", "key|Binary|YES", "value|Binary|YES"]),
        ("SHOW COLUMNS FROM \"My_Topic\"", &["offset|Int64|NO", "key|Binary|YES", "value|Binary|YES"]),
        (
            "desc vast.\"kafka/kafka_topics\".events",
            &["offset|Int64|NO", "key|Binary|YES", "value|Binary|YES"],
        ),
        ("SHOW TIME ZONE", &["UTC"]),
        ("SHOW ALL", &["TimeZone|UTC"]),
    ]);
}

#[test]
fn a_listing_of_a_place_that_does_not_exist_is_refused() {
    use QueryErrorKind::NotFound;
    check_refused(&[
        ("SHOW SCHEMAS IN nope", NotFound, "catalog `nope` does not exist"),
        ("SHOW TABLES IN nope", NotFound, "schema `nope` does not exist"),
        ("SHOW TABLES FROM vast.\"Nope\" LIKE 'x'", NotFound, "schema `Nope` does not exist"),
        ("SHOW TABLES FROM nope.\"kafka/kafka_topics\"", NotFound, "catalog `nope` does not exist"),
        ("SHOW COLUMNS FROM nope", NotFound, "table `kolumn.kafka/kafka_topics.nope` does not exist"),
    ]);
}

#[test]
fn functions_are_listed_with_what_they_take() {
    for (text, expected) in [
        ("SHOW FUNCTIONS LIKE 'starts_with'", "starts_with|Boolean|[str, substr]|[String, String]"),
        ("SHOW FUNCTIONS LIKE 'json_get_int'", "json_get_int|Int64"),
    ] {
        let (_, rows) = block_on(execute(&state(), text)).expect("lists");
        assert!(rows.iter().any(|row| row.starts_with(expected)), "{text}: {rows:?}");
    }
}

#[test]
fn errors_say_what_to_write_instead() {
    use QueryErrorKind as Kind;
    check_refused(&[
        ("SELECT key FROM", Kind::Syntax, "found the end of the text"),
        ("SELECT 1\n  FROM events WHERE )", Kind::Syntax, "line 2, column 21"),
        ("SELECT 'open", Kind::Syntax, "line 1, column 8"),
        ("SELECT key offset FROM events", Kind::Syntax, "write \"offset\" in double quotes"),
        ("SELECT * FROM nope", Kind::NotFound, "table `kolumn.kafka/kafka_topics.nope` does not exist"),
        ("SELECT * FROM My_Topic", Kind::NotFound, "write \"My_Topic\" in double quotes"),
        ("SELECT kee FROM events", Kind::NotFound, "column `kee` does not exist: did you mean `key`?"),
        ("SELECT nope FROM events", Kind::NotFound, "column `nope` does not exist"),
        ("SELECT \"Key\" FROM events", Kind::NotFound, "write \"key\" in double quotes"),
        (
            "SELECT lowr(key) FROM events",
            Kind::NotFound,
            "function `lowr` does not exist: did you mean `lower`?",
        ),
        ("SELECT * FROM nope.x.y", Kind::NotFound, "nope"),
        ("SELECT 1 / 0", Kind::Data, "ivi"),
        ("SELECT CAST('x' AS int)", Kind::Data, "x"),
        ("SHOW SCHEMAS IN a.b", Kind::Syntax, "`a.b`"),
        ("SELECT EXISTS (SELECT 1 FROM events)", Kind::Unsupported, "`EXISTS (SELECT …)` as a value"),
        (
            "SELECT CASE WHEN EXISTS (SELECT 1) THEN 1 END",
            Kind::Unsupported,
            "`EXISTS (SELECT …)` as a value",
        ),
        ("SELECT 1 IN (SELECT offset FROM events)", Kind::Unsupported, "`IN (SELECT …)` as a value"),
        ("SELECT 1 = ANY (SELECT offset FROM events)", Kind::Unsupported, "`IN (SELECT …)` as a value"),
        ("SELECT 1 > ALL (SELECT offset FROM events)", Kind::Unsupported, "`ALL` of a subquery as a value"),
        ("SELECT 1 ORDER BY EXISTS (SELECT 1)", Kind::Unsupported, "in this place; use it in `WHERE`"),
        ("SELECT 1 DIV 2", Kind::Syntax, "the operator is not known at line 1, column 10"),
        (
            "SELECT (SELECT f.key FROM events f WHERE f.offset < e.offset LIMIT 1) FROM events e",
            Kind::Unsupported,
            "use a join",
        ),
    ]);
}

#[test]
fn what_writes_is_refused_by_name() {
    for (text, name) in [
        ("INSERT INTO events VALUES (1)", "INSERT"),
        ("UPDATE events SET key = 'a'", "UPDATE"),
        ("DELETE FROM events", "DELETE"),
        ("MERGE INTO events USING x ON true WHEN MATCHED THEN DELETE", "MERGE"),
        ("TRUNCATE TABLE events", "TRUNCATE"),
        ("CREATE TABLE t (a int)", "CREATE TABLE"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "CREATE VIEW"),
        ("CREATE TABLE t AS SELECT 1", "CREATE TABLE"),
        ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'", "CREATE EXTERNAL TABLE"),
        ("CREATE SCHEMA s", "CREATE SCHEMA"),
        ("CREATE DATABASE d", "CREATE DATABASE"),
        ("CREATE FUNCTION f() RETURNS INT RETURN 1", "CREATE FUNCTION"),
        ("DROP TABLE events", "DROP TABLE"),
        ("ALTER TABLE events ADD COLUMN a int", "ALTER TABLE"),
        ("COPY events TO '/tmp/x.csv'", "COPY"),
        ("COPY (SELECT 1) TO 'x.csv'", "COPY"),
        ("GRANT SELECT ON events TO a", "GRANT"),
        ("REVOKE SELECT ON events FROM a", "REVOKE"),
        ("EXPLAIN DELETE FROM events", "DELETE"),
        ("EXPLAIN ANALYZE INSERT INTO events VALUES (1)", "INSERT"),
        ("WITH x AS (DELETE FROM events) SELECT 1", "DELETE"),
        ("WITH x AS (SELECT 1) INSERT INTO events SELECT 1", "INSERT"),
        ("SELECT * INTO t FROM events", "SELECT INTO"),
        ("SELECT * FROM (SELECT * INTO t FROM events) x", "SELECT INTO"),
        ("VACUUM", "VACUUM"),
        ("COMMENT ON TABLE events IS 'x'", "COMMENT"),
    ] {
        check_not_understood(text, QueryErrorKind::ReadOnly, &format!("`{name}`"));
    }
}

#[test]
fn what_is_not_built_is_refused_as_such() {
    for (text, part) in [
        ("PREPARE p AS SELECT 1", "PREPARE"),
        ("EXECUTE p", "EXECUTE"),
        ("DECLARE c CURSOR FOR SELECT 1", "`DECLARE` is not supported: there are no cursors"),
        ("SET datafusion.execution.batch_size = 1", "`datafusion.execution.batch_size`"),
        ("SET datafusion.catalog.information_schema = false", "cannot be set"),
        ("USE vast", "USE"),
        ("LISTEN x", "LISTEN"),
        ("SHOW VARIABLES", "SHOW VARIABLES"),
        ("EXPLAIN SET x = 1", "x"),
        ("SELECT 1 EXCEPT ALL SELECT 1", "`EXCEPT ALL`"),
        ("SELECT * FROM (SELECT 1 UNION ALL (SELECT 2 INTERSECT ALL SELECT 2)) t", "`INTERSECT ALL`"),
        ("SELECT * FROM events PIVOT (count(key) FOR offset IN (1, 2))", "`PIVOT`"),
        ("SELECT * FROM events UNPIVOT (a FOR b IN (key, value))", "`UNPIVOT`"),
    ] {
        check_not_understood(text, QueryErrorKind::Unsupported, part);
    }
    check_not_understood("SET TIME ZONE INTERVAL '1' HOUR", QueryErrorKind::Syntax, "time zone");
}

#[track_caller]
fn check_not_understood(text: &str, kind: QueryErrorKind, part: &str) {
    match understood(text) {
        Err(error) => {
            assert_eq!(error.kind(), kind, "{text}: {error}");
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
        Ok(order) => panic!("{text} is {order:?}"),
    }
}

fn understood(text: &str) -> Result<Order, QueryError> {
    let statement = parse(text)?.pop().expect("a statement");
    understand(statement, Scope { catalog: "kolumn", schema: SCHEMA, ..Scope::default() })
}

#[test]
fn the_time_zone_is_set_in_every_spelling() {
    for (text, expected) in [
        ("SET TIME ZONE 'Europe/Paris'", Some("Europe/Paris")),
        ("SET TIME ZONE UTC", Some("UTC")),
        ("SET TIME ZONE 2", Some("+02:00")),
        ("SET TIME ZONE -5", Some("-05:00")),
        ("SET TIME ZONE LOCAL", None),
        ("SET TIMEZONE TO 'UTC'", Some("UTC")),
        ("SET timezone = '+01:00'", Some("+01:00")),
        ("SET datafusion.execution.time_zone = 'Asia/Tokyo'", Some("Asia/Tokyo")),
        ("SET SESSION TIME ZONE DEFAULT", None),
        ("RESET timezone", None),
        ("RESET ALL", None),
    ] {
        match understood(text) {
            Ok(Order::Set { name, value }) => {
                assert_eq!(name, "datafusion.execution.time_zone", "{text}");
                assert_eq!(value.as_deref(), expected, "{text}");
            }
            other => panic!("{text} is {other:?}"),
        }
    }
}

#[test]
fn what_clients_send_by_themselves_has_no_effect() {
    for text in [
        "BEGIN",
        "BEGIN READ ONLY",
        "START TRANSACTION",
        "COMMIT",
        "END",
        "ROLLBACK",
        "DISCARD ALL",
        "DEALLOCATE ALL",
        "UNLISTEN *",
        "CLOSE ALL",
        "SET extra_float_digits = 3",
        "SET application_name = 'psql'",
        "SET client_encoding TO 'UTF8'",
        "SET search_path TO a, b",
        "SET DateStyle = 'ISO'",
        "SET statement_timeout = 0",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET NAMES 'utf8'",
        "RESET search_path",
    ] {
        let understood = understood(text);
        assert!(matches!(understood, Ok(Order::Nothing)), "{text} is {understood:?}");
    }
}

#[test]
fn several_statements_are_cut_at_semicolons() {
    let statements = parse(";SELECT 1; SELECT ';' ;; -- end\n").expect("parses");
    let texts: Vec<String> = statements.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["SELECT 1", "SELECT ';'"]);
    assert!(parse(" -- nothing").expect("parses").is_empty());
}

#[test]
fn a_statement_as_deep_as_allowed_runs_and_a_deeper_one_is_refused() {
    let joins = |count: usize| {
        (0..count)
            .map(|at| format!(" JOIN events t{at} ON events.offset = t{at}.offset"))
            .collect::<Vec<_>>()
            .concat()
    };
    let deepest = [
        format!("SELECT offset FROM events WHERE offset = 0{}", " OR offset = 1".repeat(LOGIC_MAX)),
        format!("SELECT offset{} FROM events", " + 1".repeat(DEPTH_MAX)),
        format!("SELECT 1{}", " UNION SELECT 1".repeat(DEPTH_MAX / 2)),
        format!("SELECT 1{}", " EXCEPT SELECT 1".repeat(DEPTH_MAX / 2)),
        format!("SELECT count(*) FROM events WHERE 1 = 0{}", " AND 1 = 1".repeat(LOGIC_MAX)),
        format!("SELECT {}'A'{}", "lower(".repeat(DEPTH_MAX / 4), ")".repeat(DEPTH_MAX / 4)),
        format!("SELECT {} 1 {}", "CASE WHEN true THEN ".repeat(DEPTH_MAX / 4), "END ".repeat(DEPTH_MAX / 4)),
        format!(
            "SELECT 1 FROM {}events{}",
            "(SELECT * FROM ".repeat(DEPTH_MAX / 8 - 1),
            ")".repeat(DEPTH_MAX / 8 - 1)
        ),
        format!("SELECT 1 FROM events{} LIMIT 1", joins(DEPTH_MAX / 2 - 1)),
    ];
    let logic = " OR 1 = 1".repeat(LOGIC_MAX);
    let state = state();
    check_not_understood(
        &format!("DELETE FROM events WHERE false{logic}"),
        QueryErrorKind::ReadOnly,
        "DELETE",
    );
    block_on(execute(&state, &format!("SHOW TABLES WHERE false{logic}"))).expect("lists");
    for text in &deepest {
        block_on(execute(&state, text)).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    for text in [
        format!("SELECT offset FROM events WHERE offset = 0{}", " OR offset = 1".repeat(LOGIC_MAX + 1)),
        format!("SELECT 1{}", " + 1".repeat(300_000)),
        format!("SELECT 1{}", " BETWEEN 1 AND 2".repeat(10_000)),
        format!("{}SELECT 1", "EXPLAIN ".repeat(10_000)),
        format!("SELECT 1{}", " UNION SELECT 1, 2".repeat(10_000)),
        format!("SELECT 1 FROM a{}", ", a".repeat(10_000)),
        format!("SELECT 1 FROM a{}", joins(10_000)),
        format!("SELECT {}1", "(".repeat(10_000)),
        format!("SELECT {}1", "CASE WHEN true AND true THEN ".repeat(10_000)),
        format!("SELECT a{}", "[1]".repeat(10_000)),
        format!("SELECT CAST(1 AS {}", "ARRAY(".repeat(10_000)),
        format!("SELECT CAST(1 AS {}", "ARRAY<".repeat(10_000)),
    ] {
        let error = parse(&text).expect_err("is refused");
        assert_eq!(error.kind(), QueryErrorKind::Unsupported, "{error}");
    }
    let list = vec!["'a'"; 20_000].join(", ");
    parse(&format!("SELECT 1 FROM events WHERE key IN ({list})")).expect("a long list is not deep");
    let columns = vec!["CASE WHEN key = 'a' THEN 1 + 1 END"; 1000].join(", ");
    parse(&format!("SELECT {columns} FROM events")).expect("many columns are not deep");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_breaks_the_parser_or_what_comes_after_it(words in vec(select(WORDS), 0..24), other in ".{0,12}") {
        let text = format!("{} {other}", words.join(" "));
        for statement in parse(&text).unwrap_or_default() {
            if let Ok(Order::Query(statement)) = understand(statement, Scope { catalog: "kolumn", schema: SCHEMA, ..Scope::default() }) {
                let text = statement.to_string();
                prop_assert!(parse(&text).is_ok(), "{text}");
            }
        }
    }
}

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "offset",
    "OFFSET",
    "events",
    "key",
    "value",
    "'a'",
    "1",
    "(",
    ")",
    ",",
    ";",
    "*",
    "=",
    "<",
    "->>",
    "?",
    "||",
    "AND",
    "OR",
    "NOT",
    "IN",
    "LIKE",
    "BETWEEN",
    "SHOW",
    "SCHEMAS",
    "TABLES",
    "COLUMNS",
    "CATALOGS",
    "SET",
    "TIME",
    "ZONE",
    "EXPLAIN",
    "ANALYZE",
    "INSERT",
    "INTO",
    "DELETE",
    "WITH",
    "AS",
    "substring",
    "position",
    "FOR",
    "$1",
    "CASE",
    "WHEN",
    "THEN",
    "END",
    "ORDER",
    "BY",
    "LIMIT",
    "JOIN",
    "ON",
    "UNION",
    "\"",
    "'",
    "--",
    "/*",
    ".",
    "::",
    "int",
    "RESET",
    "ALL",
    "CREATE",
    "TABLE",
    "COPY",
    "TO",
    "BEGIN",
    "vast.",
    "\"kafka/kafka_topics\"",
];
