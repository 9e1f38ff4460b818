//! Text, bytes, JSON and `offset` in expressions.

use std::ops::ControlFlow;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::execution::FunctionRegistry;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, Value, VisitMut, VisitorMut};

use super::{block_on, check, execute, plan, state};
use crate::dialect::parse;

#[test]
fn bytes_compare_with_text_as_its_utf8() {
    check(&[
        ("SELECT \"offset\" FROM events WHERE key = 'a'", &["0", "4"]),
        ("SELECT \"offset\" FROM events WHERE 'a' = key", &["0", "4"]),
        ("SELECT \"offset\" FROM events WHERE key <> 'a'", &["1", "3"]),
        ("SELECT \"offset\" FROM events WHERE key > 'a' AND key <= 'b'", &["1"]),
        ("SELECT \"offset\" FROM events WHERE key IS DISTINCT FROM 'a'", &["1", "2", "3"]),
        ("SELECT \"offset\" FROM events WHERE key IS NOT DISTINCT FROM 'a'", &["0", "4"]),
        ("SELECT \"offset\" FROM events WHERE key IN ('b', 'c')", &["1", "3"]),
        ("SELECT \"offset\" FROM events WHERE key NOT IN ('b', 'c')", &["0", "4"]),
        ("SELECT \"offset\" FROM events WHERE key BETWEEN 'b' AND 'c'", &["1", "3"]),
        ("SELECT \"offset\" FROM events WHERE key = lower('A')", &["0", "4"]),
        ("SELECT \"offset\" FROM events WHERE key = arrow_cast('a', 'Utf8View')", &["0", "4"]),
        ("SELECT \"offset\" FROM events WHERE key = NULL", &[]),
        ("SELECT \"offset\" FROM events WHERE key = x'61'", &["0", "4"]),
        ("SELECT \"offset\" FROM events WHERE key IN (SELECT 'b')", &["1"]),
        (
            "SELECT \"offset\" FROM events e WHERE EXISTS (SELECT 1 FROM events f WHERE f.key = 'b' AND f.\"offset\" = e.\"offset\")",
            &["1"],
        ),
        ("SELECT e.\"offset\" FROM events e JOIN (SELECT 'b' AS k) k ON e.key = k.k", &["1"]),
        ("SELECT count(*) FROM events GROUP BY key HAVING key = 'a'", &["2"]),
        ("SELECT CASE key WHEN 'a' THEN 1 ELSE 0 END FROM events", &["1", "0", "0", "0", "1"]),
        ("SELECT count(*) FILTER (WHERE key = 'a') FROM events", &["2"]),
        ("SELECT sum(CASE WHEN key = 'a' THEN 1 END) OVER () FROM events LIMIT 1", &["2"]),
    ]);
}

#[test]
fn a_comparison_with_text_leaves_the_column_as_it_is() {
    let state = state();
    for condition in [
        "key = 'a'",
        "'a' < key",
        "key IN ('a', 'b', 'c', 'd')",
        "key BETWEEN 'a' AND 'c'",
        "key = arrow_cast('a', 'Utf8View')",
        "key IN (arrow_cast('a', 'Utf8View'), 'b')",
        "key BETWEEN arrow_cast('a', 'LargeUtf8') AND 'c'",
        "key = concat('a', 'b')",
    ] {
        let plan =
            block_on(plan(&state, &format!("SELECT offset FROM events WHERE {condition}"))).expect("plans");
        let plan = state.optimize(&plan).expect("optimises").to_string();
        assert!(plan.contains("Binary(") && !plan.contains("CAST"), "{condition}: {plan}");
    }
}

#[test]
fn bytes_are_text_where_text_is_wanted_and_null_if_not_utf8() {
    check(&[
        ("SELECT \"offset\" FROM events WHERE value LIKE '%JSON'", &["1"]),
        ("SELECT \"offset\" FROM events WHERE value NOT LIKE '%JSON'", &["0", "4"]),
        ("SELECT \"offset\" FROM events WHERE value ILIKE 'NOT%'", &["1"]),
        ("SELECT \"offset\" FROM events WHERE value SIMILAR TO 'not.*'", &["1"]),
        ("SELECT \"offset\" FROM events WHERE value ~ '^n.t'", &["1"]),
        ("SELECT \"offset\" FROM events WHERE value !~* 'NOT'", &["0", "4"]),
        (
            "SELECT value ~ 'J', 'x' !~ key FROM events",
            &["false|true", "true|true", "null|null", "null|true", "false|true"],
        ),
        ("SELECT upper(key) FROM events", &["A", "B", "null", "C", "A"]),
        ("SELECT upper(value) FROM events WHERE \"offset\" IN (1, 3)", &["NOT JSON", "null"]),
        ("SELECT key || '!' FROM events", &["a!", "b!", "null", "c!", "a!"]),
        ("SELECT '!' || value FROM events WHERE \"offset\" = 3", &["null"]),
        ("SELECT key || key FROM events WHERE \"offset\" = 0", &["6161"]),
        ("SELECT starts_with(value, 'not') FROM events", &["false", "true", "null", "null", "false"]),
        ("SELECT substring(value, 1, 3) FROM events WHERE \"offset\" = 1", &["not"]),
        ("SELECT substr(value, 5) FROM events WHERE \"offset\" = 1", &["JSON"]),
        ("SELECT substring(value FROM 5 FOR 2) FROM events WHERE \"offset\" = 1", &["JS"]),
        ("SELECT position('JSON' IN value) FROM events WHERE \"offset\" = 1", &["5"]),
        ("SELECT overlay(value placing 'is' from 1 for 3) FROM events WHERE \"offset\" = 1", &["is JSON"]),
        (
            "SELECT trim(value), trim(both 'n' from value) FROM events WHERE \"offset\" = 1",
            &["not JSON|ot JSON"],
        ),
        (
            "SELECT length(value), char_length(value), octet_length(value), octet_length('é') FROM events WHERE \"offset\" = 1",
            &["8|8|8|2"],
        ),
        ("SELECT length(value), octet_length(value) FROM events WHERE \"offset\" = 3", &["null|2"]),
        ("SELECT concat(key, '-', \"offset\") FROM events WHERE \"offset\" = 1", &["b-1"]),
        ("SELECT regexp_replace(value, 'J.*', 'x') FROM events WHERE \"offset\" = 1", &["not x"]),
        ("SELECT regexp_like(value, 'J') FROM events WHERE \"offset\" = 1", &["true"]),
        ("SELECT split_part(value, ' ', 2) FROM events WHERE \"offset\" = 1", &["JSON"]),
        ("SELECT coalesce(key, 'none') FROM events", &["a", "b", "none", "c", "a"]),
        ("SELECT coalesce(key, value) FROM events WHERE \"offset\" = 3", &["63"]),
        (
            "SELECT coalesce(value, 'none') FROM events WHERE \"offset\" >= 2",
            &["none", "none", "{\"n\":9007199254740993,\"s\":\"Hello\",\"f\":7,\"b\":\"yes\"}"],
        ),
        ("SELECT nullif(key, 'a') FROM events", &["null", "b", "null", "c", "null"]),
        ("SELECT CASE WHEN key IS NULL THEN 'none' ELSE key END FROM events", &["a", "b", "none", "c", "a"]),
        (
            "SELECT CASE WHEN key IS NOT NULL THEN key ELSE 'none' END FROM events",
            &["a", "b", "none", "c", "a"],
        ),
        ("SELECT TRY_CAST(value AS varchar) FROM events WHERE \"offset\" IN (1, 3)", &["not JSON", "null"]),
        ("SELECT upper(max(key)) FROM events", &["C"]),
        (
            "SELECT lower(upper(key)) AS k, count(*) FROM events GROUP BY 1 ORDER BY k",
            &["a|2", "b|1", "c|1", "null|1"],
        ),
        (
            "SELECT (SELECT max(upper(f.key)) FROM events f WHERE f.\"offset\" = e.\"offset\") FROM events e",
            &["A", "B", "null", "C", "A"],
        ),
    ]);
}

#[test]
fn like_takes_any_escape_character() {
    check(&[
        ("SELECT 'a%' LIKE 'a!%' ESCAPE '!', 'ab' LIKE 'a!%' ESCAPE '!'", &["true|false"]),
        ("SELECT 'a!' LIKE 'a!!' ESCAPE '!', 'a!b' LIKE 'a!!_' ESCAPE '!'", &["true|true"]),
        (r"SELECT 'a\b' LIKE 'a\b' ESCAPE '!', 'ab' LIKE 'a\b' ESCAPE '!'", &["true|false"]),
        (r"SELECT 'a\\b' LIKE 'a\\b' ESCAPE '', 'a%' LIKE 'a\%' ESCAPE ''", &["true|false"]),
        (r"SELECT 'a_' LIKE 'a\_' ESCAPE '\', 'ab' NOT LIKE 'a\_' ESCAPE '\'", &["true|true"]),
        (
            "SELECT 'A%' ILIKE concat('a', '!%') ESCAPE '!', 'ab' ILIKE concat('a', '!%') ESCAPE '!'",
            &["true|false"],
        ),
        (r"SELECT 'a!\' LIKE concat('a!!', '\') ESCAPE '!'", &["true"]),
        ("SELECT \"offset\" FROM events WHERE value NOT LIKE '!%%' ESCAPE '!' AND value LIKE 'not%'", &["1"]),
    ]);
}

#[test]
fn operators_bind_as_closely_as_in_postgresql() {
    for (text, expected) in [
        ("a IS DISTINCT FROM b AND c", "(a IS DISTINCT FROM b) AND c"),
        ("a IS NOT DISTINCT FROM b OR c", "(a IS NOT DISTINCT FROM b) OR c"),
        ("NOT a IS DISTINCT FROM b = c", "NOT (a IS DISTINCT FROM (b = c))"),
        ("a = b IS DISTINCT FROM c || d", "(a = b) IS DISTINCT FROM (c || d)"),
        ("a IS DISTINCT FROM b IS NULL", "(a IS DISTINCT FROM b) IS NULL"),
        ("a IS NOT NULL AND b IS TRUE OR c", "((a IS NOT NULL) AND (b IS TRUE)) OR c"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("a IS NORMALIZED AND b", "(a IS NORMALIZED) AND b"),
        ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
        ("a BETWEEN b + 1 AND c = d", "(a BETWEEN (b + 1) AND c) = d"),
        ("a = b BETWEEN c AND d", "a = (b BETWEEN c AND d)"),
        ("a LIKE b = c", "(a LIKE b) = c"),
        ("a = b NOT LIKE c ESCAPE '!' OR d", "(a = (b NOT LIKE c ESCAPE '!')) OR d"),
        ("a ILIKE b || c AND d", "(a ILIKE (b || c)) AND d"),
        ("a SIMILAR TO b AND c", "(a SIMILAR TO b) AND c"),
        ("a = b IN (c)", "a = (b IN (c))"),
        ("a NOT IN (b) = c", "(a NOT IN (b)) = c"),
        ("NOT a = b AND c", "(NOT (a = b)) AND c"),
        ("NOT a IS NULL OR b", "(NOT (a IS NULL)) OR b"),
        ("NOT a LIKE b", "NOT (a LIKE b)"),
        ("a OR b AND c", "a OR (b AND c)"),
        ("a = b ~ c", "a = (b ~ c)"),
        ("a OPERATOR(x.~) b = c", "(a OPERATOR(x.~) b) = c"),
        ("a || b + c", "a || (b + c)"),
        ("a + b || c * d = e", "((a + b) || (c * d)) = e"),
        ("a -> b = c", "(a -> b) = c"),
        ("a | b & c", "(a | b) & c"),
        ("a & b + c << d", "(a & (b + c)) << d"),
        ("a - b - c", "(a - b) - c"),
        ("- a ^ b", "(- a) ^ b"),
        ("- a::int", "- (a::int)"),
        ("- a * b", "(- a) * b"),
        ("a * b % c / d", "((a * b) % c) / d"),
        ("a + b AT TIME ZONE c", "a + (b AT TIME ZONE c)"),
        ("a AT TIME ZONE b || c", "(a AT TIME ZONE b) || c"),
        ("a COLLATE b || c", "(a COLLATE b) || c"),
        ("a::int AT TIME ZONE b", "(a::int) AT TIME ZONE b"),
    ] {
        assert_eq!(tree(text), tree(expected), "{text}");
    }
    check(&[
        ("SELECT true IS DISTINCT FROM true AND false", &["false"]),
        ("SELECT offset FROM events WHERE offset IS NOT DISTINCT FROM 1 AND key = 'b'", &["1"]),
        ("SELECT 1 + 2 || '3', 1 | 2 & 4, 'a' LIKE 'a' = true", &["33|0|true"]),
    ]);
}

#[test]
fn comparisons_with_any_and_all_tell_the_rows_of_one_table_apart() {
    check(&[
        (
            "SELECT offset FROM events WHERE offset = ANY (SELECT offset FROM events WHERE key = 'a')",
            &["0", "4"],
        ),
        (
            "SELECT offset FROM events WHERE offset <> ALL (SELECT offset FROM events WHERE offset > 0)",
            &["0"],
        ),
        ("SELECT offset FROM events WHERE offset > ANY (SELECT offset FROM events WHERE offset > 2)", &["4"]),
        ("SELECT offset FROM events WHERE offset >= ALL (SELECT offset FROM events)", &["4"]),
        ("SELECT offset FROM events WHERE offset > ALL (SELECT 1 UNION ALL SELECT 2)", &["3", "4"]),
        (
            "SELECT offset FROM events WHERE offset > ALL (SELECT * FROM (SELECT offset FROM events WHERE offset < 3) t)",
            &["3", "4"],
        ),
        (
            "SELECT offset FROM events WHERE offset < ANY (SELECT offset FROM events ORDER BY offset LIMIT 2)",
            &["0"],
        ),
        (
            "SELECT offset FROM events WHERE NOT offset < SOME (SELECT offset FROM events WHERE offset < 4)",
            &["3", "4"],
        ),
        (
            "SELECT offset FROM events e WHERE offset > ALL (SELECT offset FROM events f WHERE f.key = e.key AND f.offset <> e.offset)",
            &["1", "2", "3", "4"],
        ),
    ]);
}

/// An expression as it is parsed, with parentheses around all that has operands.
fn tree(text: &str) -> String {
    struct Parentheses;

    impl VisitorMut for Parentheses {
        type Break = ();

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            let taken = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = match taken {
                Expr::Identifier(_) | Expr::Value(_) => taken,
                // those that are written
                Expr::Nested(inner) => *inner,
                taken => Expr::Nested(Box::new(taken)),
            };
            ControlFlow::Continue(())
        }
    }

    let mut statements = parse(&format!("SELECT {text}")).unwrap_or_else(|error| panic!("{text}: {error}"));
    let Some(Statement::Statement(mut statement)) = statements.pop() else {
        panic!("{text} is no statement")
    };
    assert!(statement.visit(&mut Parentheses).is_continue(), "nothing breaks off");
    statement.to_string()
}

#[test]
fn json_of_text_and_bytes_is_null_where_it_is_not_there() {
    check(&[
        ("SELECT json_get(value, 's') FROM events", &["x", "null", "null", "null", "Hello"]),
        ("SELECT json_get('{\"s\":\"x\"}', 's')", &["x"]),
        ("SELECT json_get_str(value, 's') FROM events", &["x", "null", "null", "null", "Hello"]),
        ("SELECT json_get_int(value, 'n') FROM events", &["1", "null", "null", "null", "9007199254740993"]),
        ("SELECT json_get_float(value, 'f') FROM events", &["1.5", "null", "null", "null", "7.0"]),
        ("SELECT json_get_bool(value, 'b') FROM events", &["true", "null", "null", "null", "null"]),
        ("SELECT json_get_json(value, 'o') FROM events WHERE offset = 0", &["{\"k\":[10,20]}"]),
        ("SELECT json_as_text(value, 'o', 'k', 1) FROM events WHERE offset = 0", &["20"]),
        ("SELECT json_length(value, 'o', 'k') FROM events WHERE offset < 2", &["2", "null"]),
        ("SELECT json_contains(value, 's') FROM events", &["true", "false", "false", "false", "true"]),
        (
            "SELECT json_get(value, 'z'), json_get(value, 'o'), json_get(value, 'b') FROM events WHERE offset = 0",
            &["null|{\"k\":[10,20]}|true"],
        ),
        ("SELECT value->'s' FROM events", &["x", "null", "null", "null", "Hello"]),
        ("SELECT value->>'s' FROM events", &["x", "null", "null", "null", "Hello"]),
        ("SELECT value->'o'->'k'->>1 FROM events WHERE offset = 0", &["20"]),
        ("SELECT json_get(json_get(value, 'o'), 'k') FROM events WHERE offset = 0", &["[10,20]"]),
        ("SELECT value->'e'->>'k' FROM events WHERE offset = 0", &["null"]),
        ("SELECT json_get(value->'o'->'k', 0), json_get('[7]', 0) FROM events WHERE offset = 0", &["10|7"]),
        ("SELECT json_get_int('{\"0\":5}', 0), json_get_int('{\"0\":5}', '0')", &["null|5"]),
        ("SELECT value ? 's' FROM events WHERE offset < 2", &["true", "false"]),
        ("SELECT offset FROM events WHERE value->>'s' = 'x'", &["0"]),
        ("SELECT offset FROM events WHERE value->>'s' IN ('x', 'y') AND value->'n' < 2", &["0"]),
        ("SELECT offset FROM events WHERE key || '!' = 'b!'", &["1"]),
        ("SELECT offset FROM events WHERE json_get(value, 's') = 'Hello'", &["4"]),
        ("SELECT offset FROM events WHERE json_get(value, 'n') = 9007199254740993", &["4"]),
        ("SELECT offset FROM events WHERE json_get(value, 'n') = 9007199254740992", &[]),
        ("SELECT offset FROM events WHERE json_get(value, 'f') > 1", &["0", "4"]),
        ("SELECT json_get('{\"n\":-1.5e3}', 'n') < -1499, json_get('{\"n\":1e30}', 'n') > 1", &["true|true"]),
        ("SELECT offset FROM events WHERE json_get(value, 'f') > 1.5", &["4"]),
        ("SELECT offset FROM events WHERE json_get(value, 'f') BETWEEN 1 AND 2", &["0"]),
        ("SELECT offset FROM events WHERE json_get(value, 'n') IN (1, 2)", &["0"]),
        ("SELECT offset FROM events WHERE json_get(value, 'n') IN (1, 9007199254740992)", &["0"]),
        ("SELECT offset FROM events WHERE json_get(value, 'n') = offset + 1", &["0"]),
        ("SELECT offset FROM events WHERE json_get(value, 'f') > offset", &["0", "4"]),
        ("SELECT offset FROM events WHERE json_get(value, 's') IN ('x', 'y')", &["0"]),
        ("SELECT offset FROM events WHERE json_get(value, 's') LIKE 'H%'", &["4"]),
        ("SELECT offset FROM events WHERE json_get(value, 'b') = true", &["0"]),
        ("SELECT sum(json_get(value, 'f')::double) FROM events", &["8.5"]),
        ("SELECT CAST(json_get(value, 'n') AS int) FROM events WHERE offset < 2", &["1", "null"]),
        ("SELECT (value->'n')::bigint FROM events", &["1", "null", "null", "null", "9007199254740993"]),
        ("SELECT json_get_int(value, 'n') + 1 FROM events WHERE offset = 0", &["2"]),
        (
            "SELECT json_get(value, 's') AS s, count(*) FROM events GROUP BY s ORDER BY s NULLS FIRST",
            &["null|3", "Hello|1", "x|1"],
        ),
        ("SELECT s FROM (SELECT json_get(value, 's') AS s FROM events) WHERE s = 'x'", &["x"]),
    ]);
}

#[test]
fn offset_needs_no_quotes_where_only_the_column_can_stand() {
    check(&[
        ("SELECT offset FROM events WHERE offset > 3", &["4"]),
        ("SELECT key, offset FROM events ORDER BY offset DESC LIMIT 1 OFFSET 1", &["63|3"]),
        ("SELECT max(offset), min(Offset) FROM events", &["4|0"]),
        ("SELECT e.offset FROM events e WHERE 3 < e.offset", &["4"]),
        ("SELECT offset + 1 AS offset FROM events WHERE key = 'b' AND offset BETWEEN 1 AND 2", &["2"]),
        ("SELECT count(DISTINCT offset) FROM events OFFSET 0", &["5"]),
        ("SELECT DISTINCT offset FROM events WHERE NOT offset > 0", &["0"]),
        ("SELECT offset FROM events ORDER BY 1 LIMIT ALL OFFSET (1 + 3)", &["4"]),
        (
            "SELECT CASE WHEN offset = 1 THEN offset ELSE offset * 10 END FROM events WHERE offset IN (1, 2)",
            &["1", "20"],
        ),
        ("SELECT 2 * offset FROM events WHERE offset = 2", &["4"]),
    ]);
    let (names, _) = block_on(execute(&state(), "SELECT OFFSET FROM events")).expect("reads");
    assert_eq!(names, ["offset"]);
}

#[test]
fn parameters_compared_with_bytes_are_text() {
    let state = state();
    for (text, expected) in [
        ("SELECT offset FROM events WHERE key = $1", DataType::Utf8),
        ("SELECT offset FROM events WHERE $1 < key", DataType::Utf8),
        ("SELECT offset FROM events WHERE offset = $1", DataType::Int64),
    ] {
        let plan = block_on(plan(&state, text)).expect("plans");
        let types = plan.get_parameter_types().expect("types");
        assert_eq!(types.get("$1"), Some(&Some(expected)), "{text}");
    }
    let plan = block_on(plan(&state, "SELECT offset FROM events WHERE key = $1")).expect("plans");
    let bound = plan.with_param_values(vec![ScalarValue::from("b")]).expect("binds");
    let context = SessionContext::new_with_state(state);
    let rows = block_on(async { context.execute_logical_plan(bound).await?.collect().await }).expect("runs");
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
}

#[test]
fn functions_of_text_follow_the_time_zone() {
    let mut state = state();
    state.config_mut().options_mut().execution.time_zone = Some("+02:00".to_owned());
    let options = state.config_options().clone();
    let functions: Vec<_> = state.scalar_functions().values().cloned().collect();
    for function in functions {
        if let Some(changed) = function.inner().with_updated_config(&options) {
            state.register_udf(changed.into()).expect("registers");
        }
    }
    for text in ["SELECT to_timestamp('2024-01-01T00:00:00')", "SELECT to_timestamp(x'323032342d30312d3031')"]
    {
        let (_, rows) = block_on(execute(&state, text)).expect("runs");
        assert_eq!(rows, ["2024-01-01T00:00:00+02:00"], "{text}");
    }
}
