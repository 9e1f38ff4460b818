//! The dialect over a table in memory, without a store.

mod expressions;
mod statements;

use std::sync::Arc;

use datafusion::arrow::array::{BinaryArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::catalog::{
    CatalogProvider, MemTable, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider,
};
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::{Order, Scope, analyzer_rules, explain, look_up, parse, register_functions, understand};
use crate::bounded::{Bounds, Operators};
use crate::error::{QueryError, QueryErrorKind};

const SCHEMA: &str = "kafka/kafka_topics";

/// A state with the tables `events` and `My_Topic` of offset, key and value, in the catalogs `kolumn` and `vast`.
fn state() -> SessionState {
    let schema = Arc::new(Schema::new(vec![
        Field::new("offset", DataType::Int64, false),
        Field::new("key", DataType::Binary, true),
        Field::new("value", DataType::Binary, true),
    ]));
    let keys: [Option<&[u8]>; 5] = [Some(b"a"), Some(b"b"), None, Some(b"c"), Some(b"a")];
    let values: [Option<&[u8]>; 5] = [
        Some(br#"{"n":1,"s":"x","f":1.5,"b":true,"o":{"k":[10,20]},"z":null,"e":"{\"k\":1}"}"#),
        Some(b"not JSON"),
        None,
        Some(b"\xff\xfe"),
        Some(br#"{"n":9007199254740993,"s":"Hello","f":7,"b":"yes"}"#),
    ];
    let columns: Vec<datafusion::arrow::array::ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(0..5)),
        Arc::new(BinaryArray::from_iter(keys)),
        Arc::new(BinaryArray::from_iter(values)),
    ];
    let batch = RecordBatch::try_new(schema.clone(), columns).expect("columns of the schema");
    let table = Arc::new(MemTable::try_new(schema, vec![vec![batch]]).expect("a table"));
    let topics = Arc::new(MemorySchemaProvider::new());
    for name in ["events", "My_Topic"] {
        topics.register_table(name.to_owned(), table.clone()).expect("registers");
    }
    let catalog = Arc::new(MemoryCatalogProvider::new());
    catalog.register_schema(SCHEMA, topics).expect("registers");
    catalog.register_schema("b'ucket", Arc::new(MemorySchemaProvider::new())).expect("registers");

    let config = SessionConfig::new()
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_target_partitions(1)
        .with_default_catalog_and_schema("kolumn", SCHEMA);
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_analyzer_rules(analyzer_rules())
        .build();
    for name in ["kolumn", "vast"] {
        state.catalog_list().register_catalog(name.to_owned(), catalog.clone());
    }
    register_functions(&mut state).expect("registers");
    let bounds = Arc::new(Bounds::new(64 << 20));
    state.register_expr_planner(Arc::new(Operators::new(&bounds))).expect("registers");
    state
}

async fn plan(state: &SessionState, text: &str) -> Result<LogicalPlan, QueryError> {
    let mut statements = parse(text)?;
    assert_eq!(statements.len(), 1, "{text}");
    let statement = statements.remove(0);
    look_up(&statement, "kolumn", SCHEMA, state.catalog_list().as_ref())?;
    let catalogs = ["kolumn", "vast"].map(str::to_owned);
    let scope = Scope { catalog: "kolumn", schema: SCHEMA, catalogs: &catalogs, time_zone: None };
    match understand(statement, scope)? {
        Order::Query(statement) => {
            state.statement_to_plan(*statement).await.map_err(|error| explain(error, text))
        }
        order => panic!("{text} is {order:?}"),
    }
}

async fn execute(state: &SessionState, text: &str) -> Result<(Vec<String>, Vec<String>), QueryError> {
    let plan = plan(state, text).await?;
    let frame = SessionContext::new_with_state(state.clone())
        .execute_logical_plan(plan)
        .await
        .map_err(|error| explain(error, text))?;
    let names = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
    let batches = frame.collect().await.map_err(|error| explain(error, text))?;
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

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

/// Every statement with its rows, in one state.
#[track_caller]
fn check(cases: &[(&str, &[&str])]) {
    let state = state();
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        match block_on(execute(&state, text)) {
            Ok((_, rows)) if rows == *expected => {}
            other => wrong.push(format!("{text}\n  expected {expected:?}\n  but it is {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every statement with the kind of its refusal and a part of its message.
#[track_caller]
fn check_refused(cases: &[(&str, QueryErrorKind, &str)]) {
    let state = state();
    let mut wrong = Vec::new();
    for (text, kind, message) in cases {
        match block_on(execute(&state, text)) {
            Err(error) if error.kind() == *kind && error.to_string().contains(message) => {}
            other => wrong.push(format!("{text}\n  expected {kind:?} {message}\n  but it is {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
