//! What a session may see, as rows of the catalog. It is asked of the information schema, so a policy holds here too.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray, UInt32Array,
};
use datafusion::arrow::array::{Int16Array, Int32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use futures::TryStreamExt;

use super::super::refusal::{Refusal, state};
use super::super::types::{len_of, oid, oid_of};
use super::super::variables::Variables;
use super::{Facts, layout, types};
use crate::error::QueryError;
use crate::session::Session;

/// The relations that there are.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) relations: Vec<Relation>,
    schemas: Vec<String>,
}

/// A table or view.
#[derive(Debug)]
pub(super) struct Relation {
    pub(super) oid: u32,
    pub(super) schema: String,
    pub(super) name: String,
    kind: &'static str,
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    name: String,
    oid: u32,
    nullable: bool,
}

impl Listing {
    /// Asks what there is; columns only if they are asked for.
    pub(super) async fn read(session: &Session, facts: &Facts, columns: bool) -> Result<Self, Refusal> {
        let of_catalog = format!("WHERE table_catalog = {}", facts.catalog_literal());
        let text = format!(
            "SELECT table_schema, table_name, table_type FROM information_schema.tables {of_catalog} ORDER BY 1, 2"
        );
        let mut relations = Vec::new();
        for batch in rows(session, &text).await? {
            let [schemas, names, kinds] = texts(&batch)?;
            for row in 0..batch.num_rows() {
                let kind = if kinds.value(row) == "VIEW" { "v" } else { "r" };
                relations.push(Relation::new(schemas.value(row), names.value(row), kind));
            }
        }
        // What is called as a function is no relation.
        let tables = layout::tables().filter(|(name, _)| !name.starts_with("pg_get_"));
        relations.extend(tables.map(|(name, columns)| {
            let mut relation = Relation::new("pg_catalog", name, "r");
            let fields = layout::fields(columns);
            relation.columns.extend(fields.map(|(name, kind)| Column {
                name: name.to_owned(),
                oid: layout::oid_of(kind),
                nullable: true,
            }));
            relation
        }));
        relations.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        apart(&mut relations);
        let mut listing = Self { relations, schemas: Vec::new() };
        if columns {
            listing.read_columns(session, &of_catalog).await?;
        }
        let of_catalog = format!("WHERE catalog_name = {}", facts.catalog_literal());
        let text = format!("SELECT schema_name FROM information_schema.schemata {of_catalog} ORDER BY 1");
        for batch in rows(session, &text).await? {
            let [names] = texts(&batch)?;
            listing.schemas.extend(names.iter().flatten().map(str::to_owned));
        }
        listing.schemas.extend(["pg_catalog", "information_schema"].map(str::to_owned));
        listing.schemas.extend(listing.relations.iter().map(|relation| relation.schema.clone()));
        listing.schemas.sort();
        listing.schemas.dedup();
        Ok(listing)
    }

    async fn read_columns(&mut self, session: &Session, of_catalog: &str) -> Result<(), Refusal> {
        let text = format!(
            "SELECT table_schema, table_name, column_name, data_type, is_nullable FROM information_schema.columns \
             {of_catalog} ORDER BY table_schema, table_name, ordinal_position"
        );
        for batch in rows(session, &text).await? {
            let [schemas, names, columns, data_types, nullable] = texts(&batch)?;
            for row in 0..batch.num_rows() {
                let key = (schemas.value(row), names.value(row));
                let found =
                    self.relations.binary_search_by(|of| (of.schema.as_str(), of.name.as_str()).cmp(&key));
                if let Some(relation) = found.ok().and_then(|index| self.relations.get_mut(index)) {
                    relation.columns.push(Column {
                        name: columns.value(row).to_owned(),
                        oid: oid_of_name(data_types.value(row)),
                        nullable: nullable.value(row) == "YES",
                    });
                }
            }
        }
        Ok(())
    }

    /// A table of the catalog, filled.
    pub(super) fn table(
        &self,
        name: &str,
        facts: &Facts,
        variables: &Variables,
    ) -> Result<MemTable, Refusal> {
        let columns = match name {
            "pg_am" => vec![("oid", oids([2])), ("amname", list(["heap"])), ("amtype", list(["t"]))],
            "pg_attribute" => self.attributes(),
            "pg_class" => self.classes(),
            "pg_database" => databases(facts),
            "pg_namespace" => vec![
                ("oid", oids(self.schemas.iter().map(|name| schema_oid(name)))),
                ("nspname", list(self.schemas.iter().map(String::as_str))),
                ("nspowner", oids(self.schemas.iter().map(|_| OWNER))),
            ],
            "pg_roles" | "pg_authid" => {
                let names = facts.roles();
                let flags =
                    |value: bool| -> ArrayRef { Arc::new(BooleanArray::from(vec![value; names.len()])) };
                vec![
                    ("oid", oids((0..).zip(&names).map(|(index, _)| OWNER + index))),
                    ("rolname", list(names.iter().map(String::as_str))),
                    ("rolinherit", flags(true)),
                    ("rolcanlogin", flags(true)),
                    ("rolconnlimit", Arc::new(Int32Array::from(vec![-1; names.len()]))),
                ]
            }
            "pg_user" => {
                let names = facts.roles();
                vec![
                    ("usename", list(names.iter().map(String::as_str))),
                    ("usesysid", oids((0..).zip(&names).map(|(index, _)| OWNER + index))),
                ]
            }
            "pg_settings" => vec![
                ("name", list(variables.all().map(|(name, _)| name))),
                ("setting", list(variables.all().map(|(_, value)| value))),
                ("context", list(variables.all().map(|_| "user"))),
                ("vartype", list(variables.all().map(|_| "string"))),
                ("source", list(variables.all().map(|_| "default"))),
            ],
            "pg_tables" => {
                let tables = || self.relations.iter().filter(|relation| relation.kind == "r");
                vec![
                    ("schemaname", list(tables().map(|relation| relation.schema.as_str()))),
                    ("tablename", list(tables().map(|relation| relation.name.as_str()))),
                    ("tableowner", list(tables().map(|_| OWNER_NAME))),
                ]
            }
            "pg_tablespace" => {
                vec![("oid", oids([1663])), ("spcname", list(["pg_default"])), ("spcowner", oids([OWNER]))]
            }
            "pg_type" => type_rows(),
            _ => Vec::new(),
        };
        filled(name, &columns)
    }

    fn classes(&self) -> Vec<(&'static str, ArrayRef)> {
        let all = &self.relations;
        let same = |text: &'static str| list(all.iter().map(move |_| text));
        let natts = all.iter().map(|relation| i16::try_from(relation.columns.len()).unwrap_or(i16::MAX));
        vec![
            ("oid", oids(all.iter().map(|relation| relation.oid))),
            ("relname", list(all.iter().map(|relation| relation.name.as_str()))),
            ("relnamespace", oids(all.iter().map(|relation| schema_oid(&relation.schema)))),
            ("relowner", oids(all.iter().map(|_| OWNER))),
            ("relam", oids(all.iter().map(|relation| if relation.kind == "r" { 2 } else { 0 }))),
            ("relkind", list(all.iter().map(|relation| relation.kind))),
            ("relnatts", Arc::new(Int16Array::from_iter_values(natts))),
            ("relpersistence", same("p")),
            ("relreplident", same("d")),
            ("relispopulated", Arc::new(BooleanArray::from(vec![true; all.len()]))),
        ]
    }

    fn attributes(&self) -> Vec<(&'static str, ArrayRef)> {
        let all = || {
            self.relations
                .iter()
                .flat_map(|relation| (1_i16..).zip(&relation.columns).map(move |pair| (relation.oid, pair)))
        };
        let count = all().count();
        vec![
            ("attrelid", oids(all().map(|(relation, _)| relation))),
            ("attname", list(all().map(|(_, (_, column))| column.name.as_str()))),
            ("atttypid", oids(all().map(|(_, (_, column))| column.oid))),
            (
                "attlen",
                Arc::new(Int16Array::from_iter_values(all().map(|(_, (_, column))| len_of(column.oid)))),
            ),
            ("attnum", Arc::new(Int16Array::from_iter_values(all().map(|(_, (number, _))| number)))),
            ("attstattarget", Arc::new(Int32Array::from(vec![-1; count]))),
            ("atttypmod", Arc::new(Int32Array::from(vec![-1; count]))),
            (
                "attnotnull",
                Arc::new(all().map(|(_, (_, column))| Some(!column.nullable)).collect::<BooleanArray>()),
            ),
            ("attalign", list(all().map(|_| "i"))),
            ("attstorage", list(all().map(|_| "p"))),
            ("attcompression", list(all().map(|_| ""))),
            ("attidentity", list(all().map(|_| ""))),
            ("attgenerated", list(all().map(|_| ""))),
            ("attislocal", Arc::new(BooleanArray::from(vec![true; count]))),
        ]
    }
}

impl Relation {
    fn new(schema: &str, name: &str, kind: &'static str) -> Self {
        let oid = number_of(&[schema, name]);
        Self { oid, schema: schema.to_owned(), name: name.to_owned(), kind, columns: Vec::new() }
    }
}

/// Two names may give one number: then the later one takes the next.
fn apart(relations: &mut [Relation]) {
    let mut taken = std::collections::BTreeSet::new();
    for relation in relations {
        while !taken.insert(relation.oid) {
            relation.oid = FIRST_OID + relation.oid.wrapping_add(1) % OIDS;
        }
    }
}

/// The number of a schema; those that PostgreSQL has itself are known to clients.
fn schema_oid(name: &str) -> u32 {
    if name == "pg_catalog" { PG_CATALOG } else { number_of(&[name]) }
}

/// A number that a name keeps from statement to statement: a hash (FNV-1a) beyond the numbers that PostgreSQL reserves.
fn number_of(parts: &[&str]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    FIRST_OID + hash % OIDS
}

fn databases(facts: &Facts) -> Vec<(&'static str, ArrayRef)> {
    let names = facts.databases();
    let all = |text: &'static str| list(names.iter().map(move |_| text));
    vec![
        ("oid", oids(names.iter().map(|name| number_of(&["database", name])))),
        ("datname", list(names.iter().map(String::as_str))),
        ("datdba", oids(names.iter().map(|_| OWNER))),
        ("encoding", Arc::new(Int32Array::from(vec![6; names.len()]))),
        ("datlocprovider", all("c")),
        ("datallowconn", Arc::new(BooleanArray::from(vec![true; names.len()]))),
        ("datconnlimit", Arc::new(Int32Array::from(vec![-1; names.len()]))),
        ("dattablespace", oids(names.iter().map(|_| 1663))),
        ("datcollate", all("C")),
        ("datctype", all("C")),
    ]
}

fn type_rows() -> Vec<(&'static str, ArrayRef)> {
    let all = || types::types();
    let numbers = |number: fn(types::Type) -> u32| oids(all().map(number));
    let count = all().count();
    vec![
        ("oid", numbers(|of| of.oid)),
        ("typname", list(all().map(|of| of.name))),
        ("typnamespace", oids(all().map(|_| PG_CATALOG))),
        ("typowner", oids(all().map(|_| OWNER))),
        ("typlen", Arc::new(Int16Array::from_iter_values(all().map(|of| of.len)))),
        ("typtype", list(all().map(|_| "b"))),
        ("typcategory", list(all().map(|of| of.category))),
        ("typisdefined", Arc::new(BooleanArray::from(vec![true; count]))),
        ("typdelim", list(all().map(|_| ","))),
        ("typelem", numbers(|of| of.element)),
        ("typarray", numbers(|of| of.array)),
        ("typalign", list(all().map(|_| "i"))),
        ("typstorage", list(all().map(|_| "p"))),
        ("typtypmod", Arc::new(Int32Array::from(vec![-1; count]))),
    ]
}

/// A table with these columns; the others are zero, false or null.
fn filled(name: &str, columns: &[(&str, ArrayRef)]) -> Result<MemTable, Refusal> {
    let schema = layout::schema(name).ok_or_else(|| {
        Refusal::error(state::TABLE_MISSING, format!("relation `pg_catalog.{name}` does not exist"))
    })?;
    let rows = columns.first().map_or(0, |(_, column)| column.len());
    let value = |data_type: &DataType| match data_type {
        DataType::Boolean => Ok(ScalarValue::Boolean(Some(false))),
        DataType::UInt32 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Float32 => {
            ScalarValue::new_zero(data_type)
        }
        other => ScalarValue::try_from(other),
    };
    let mut arrays = Vec::new();
    for field in schema.fields() {
        let given =
            columns.iter().find(|(name, _)| name == field.name()).map(|(_, column)| Arc::clone(column));
        arrays.push(match given {
            Some(column) => column,
            None => value(field.data_type()).and_then(|value| value.to_array_of_size(rows)).map_err(fault)?,
        });
    }
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    MemTable::try_new(schema, vec![vec![batch]]).map_err(fault)
}

/// A table of the information schema as the session sees it.
pub(super) async fn information_schema(session: &Session, name: &str) -> Result<MemTable, Refusal> {
    let text = format!("SELECT * FROM information_schema.\"{}\"", name.replace('"', "\"\""));
    let answer = session.execute(&text).await?;
    let fields: Vec<_> =
        answer.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let batches: Vec<RecordBatch> = answer.rows.try_collect().await.map_err(fault)?;
    let batches = batches.into_iter().map(|batch| batch.with_schema(Arc::clone(&schema)));
    let batches = batches.collect::<Result<Vec<_>, _>>()?;
    MemTable::try_new(schema, vec![batches]).map_err(fault)
}

async fn rows(session: &Session, text: &str) -> Result<Vec<RecordBatch>, Refusal> {
    session.execute(text).await?.rows.try_collect().await.map_err(fault)
}

/// The columns of a batch as texts.
fn texts<const N: usize>(batch: &RecordBatch) -> Result<[StringArray; N], Refusal> {
    let mut columns = Vec::new();
    for column in batch.columns() {
        let column = cast(column, &DataType::Utf8)?;
        columns.extend(column.as_string_opt::<i32>().cloned());
    }
    columns
        .try_into()
        .map_err(|_| Refusal::error(state::INTERNAL, "the information schema has other columns"))
}

fn oid_of_name(data_type: &str) -> u32 {
    match data_type.parse::<DataType>() {
        Ok(data_type) => oid_of(&data_type),
        Err(_) if data_type.contains("Struct") || data_type.starts_with("Map") => oid::JSON,
        Err(_) => oid::TEXT,
    }
}

fn oids(numbers: impl IntoIterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(numbers))
}

fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(texts.into_iter().map(Some).collect::<StringArray>())
}

fn fault(error: DataFusionError) -> Refusal {
    QueryError::from(error).into()
}

/// Who owns everything.
pub(super) const OWNER_NAME: &str = "kolumn";
const OWNER: u32 = 10;
const PG_CATALOG: u32 = 11;
const FIRST_OID: u32 = 16_384;
/// Clients may read numbers as signed.
const OIDS: u32 = (1 << 31) - FIRST_OID;
