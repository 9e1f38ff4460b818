//! Which catalogs, schemas and tables there are: what the information schema tells, in the shape of Flight SQL.

use std::sync::Arc;

use arrow_flight::sql::{CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables};
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::TryStreamExt;
use tonic::Status;

use super::{plain, status};
use crate::dialect::quoted;
use crate::error::{QueryError, QueryErrorKind};
use crate::session::Session;

pub(super) async fn catalogs(command: CommandGetCatalogs, session: &Session) -> Result<RecordBatch, Status> {
    let mut found = command.into_builder();
    for row in texts(session, "SELECT DISTINCT catalog_name FROM information_schema.schemata").await? {
        let [catalog] = &row;
        found.append(catalog);
    }
    found.build().map_err(status::of_flight)
}

pub(super) async fn schemas(command: CommandGetDbSchemas, session: &Session) -> Result<RecordBatch, Status> {
    let text = listing("catalog_name, schema_name", "schemata", command.catalog.as_deref(), session);
    let mut found = command.into_builder();
    for row in texts(session, &text).await? {
        let [catalog, schema] = &row;
        found.append(catalog, schema);
    }
    found.build().map_err(status::of_flight)
}

pub(super) async fn tables(command: CommandGetTables, session: &Session) -> Result<RecordBatch, Status> {
    let with_columns = command.include_schema;
    let empty = Schema::empty();
    let mut found = CommandGetTables { include_schema: false, ..command.clone() }.into_builder();
    let columns = "table_catalog, table_schema, table_name, table_type";
    for row in texts(session, &listing(columns, "tables", command.catalog.as_deref(), session)).await? {
        let [catalog, schema, table, kind] = &row;
        found.append(catalog, schema, table, kind_of(schema, kind), &empty).map_err(status::of_flight)?;
    }
    let found = found.build().map_err(status::of_flight)?;
    if !with_columns {
        return Ok(found);
    }
    // The patterns have chosen; only what is left is asked for its columns.
    let mut described = command.into_builder();
    for row in rows::<4>(&found)? {
        let [catalog, schema, table, kind] = &row;
        let columns = match columns_of(session, [catalog, schema, table]).await {
            Ok(columns) => columns,
            Err(error) if error.kind() == QueryErrorKind::NotFound => continue, // deleted since
            Err(error) => return Err(status::of_query(&error)),
        };
        described.append(catalog, schema, table, kind, &columns).map_err(status::of_flight)?;
    }
    described.build().map_err(status::of_flight)
}

pub(super) fn table_types(command: CommandGetTableTypes) -> Result<RecordBatch, Status> {
    let mut types = command.into_builder();
    for kind in [SYSTEM_TABLE, TABLE, VIEW] {
        types.append(kind);
    }
    types.build().map_err(status::of_flight)
}

/// The columns of `GetPrimaryKeys`.
pub(super) fn primary_keys() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("catalog_name", DataType::Utf8, true),
        Field::new("db_schema_name", DataType::Utf8, true),
        Field::new("table_name", DataType::Utf8, false),
        Field::new("column_name", DataType::Utf8, false),
        Field::new("key_name", DataType::Utf8, true),
        Field::new("key_sequence", DataType::Int32, false),
    ]))
}

/// The columns of `GetExportedKeys`, `GetImportedKeys` and `GetCrossReference`.
pub(super) fn foreign_keys() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("pk_catalog_name", DataType::Utf8, true),
        Field::new("pk_db_schema_name", DataType::Utf8, true),
        Field::new("pk_table_name", DataType::Utf8, false),
        Field::new("pk_column_name", DataType::Utf8, false),
        Field::new("fk_catalog_name", DataType::Utf8, true),
        Field::new("fk_db_schema_name", DataType::Utf8, true),
        Field::new("fk_table_name", DataType::Utf8, false),
        Field::new("fk_column_name", DataType::Utf8, false),
        Field::new("key_sequence", DataType::Int32, false),
        Field::new("fk_key_name", DataType::Utf8, true),
        Field::new("pk_key_name", DataType::Utf8, true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}

/// The information schema's kind of a table in the words that clients filter by.
fn kind_of<'a>(schema: &str, kind: &'a str) -> &'a str {
    match (schema, kind) {
        ("system", _) => SYSTEM_TABLE,
        (_, "BASE TABLE") => TABLE,
        (_, other) => other,
    }
}

/// The statement that lists what is in the catalog of this name. Where none is asked for, it is the first one: under its
/// other names, the catalog is the same.
fn listing(columns: &str, table: &str, catalog: Option<&str>, session: &Session) -> String {
    let shared = &session.engine().shared;
    let catalog = catalog.filter(|name| shared.has_catalog(name)).unwrap_or(shared.default_catalog());
    format!("SELECT {columns} FROM {}.information_schema.{table}", quoted(catalog))
}

async fn columns_of(session: &Session, path: [&str; 3]) -> Result<SchemaRef, QueryError> {
    let path = path.map(quoted).join(".");
    let prepared = session.prepare(&format!("SELECT * FROM {path}")).await?;
    Ok(plain::schema(&prepared.schema))
}

/// The rows of a statement whose columns are text.
async fn texts<const N: usize>(session: &Session, text: &str) -> Result<Vec<[String; N]>, Status> {
    let answer = session.execute(text).await.map_err(|error| status::of_query(&error))?;
    let batches = answer.rows.try_collect::<Vec<_>>().await;
    let batches = batches.map_err(|error| status::of_query(&QueryError::from(error)))?;
    let mut texts = Vec::new();
    for batch in &batches {
        texts.append(&mut rows(batch)?);
    }
    Ok(texts)
}

fn rows<const N: usize>(batch: &RecordBatch) -> Result<Vec<[String; N]>, Status> {
    let columns = batch.columns().iter().map(|column| cast(column, &DataType::Utf8));
    let columns: Vec<ArrayRef> =
        columns.collect::<Result<_, _>>().map_err(|error| status::of_arrow(&error))?;
    let columns: [ArrayRef; N] =
        columns.try_into().map_err(|_| status::internal("the information schema has other columns"))?;
    let columns = columns.each_ref().map(AsArray::as_string::<i32>);
    Ok((0..batch.num_rows()).map(|row| columns.map(|column| column.value(row).to_owned())).collect())
}

const TABLE: &str = "TABLE";
const VIEW: &str = "VIEW";
const SYSTEM_TABLE: &str = "SYSTEM TABLE";
