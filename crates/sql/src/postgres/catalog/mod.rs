//! `pg_catalog`: what PostgreSQL's clients ask about tables, types and the session itself. Statements about it are planned
//! apart from the engine's, over tables in memory that are made from the session's information schema.

mod functions;
mod layout;
mod listing;
mod recognise;
mod rewrite;
mod select;
mod types;

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::common::ParamValues;
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::Statement;

pub(super) use self::rewrite::{call, cast, parse, parts};
pub(super) use self::select::{first_select, name_of};

use self::listing::Listing;
use self::rewrite::Rewritten;
use super::refusal::Refusal;
use super::variables::Variables;
use crate::dialect::literal;
use crate::engine::Engine;
use crate::error::QueryError;
use crate::session::Session;

/// The catalog as one session sees it.
pub(crate) struct Catalog {
    facts: Facts,
    context: Option<SessionContext>,
}

/// A statement that asks for something of PostgreSQL's.
#[derive(Clone, Debug)]
pub(crate) enum Recognised {
    /// It asks for nothing else.
    Own(Box<Statement>),
    /// It asks for topics, too; what is PostgreSQL's has been replaced.
    Mixed(String),
}

/// What is known of a session.
#[derive(Debug)]
struct Facts {
    user: String,
    database: String,
    catalogs: Vec<String>,
    /// The schema that needs not be named.
    schema: String,
    process: i32,
}

impl Facts {
    /// The name of the catalog as a literal of SQL.
    fn catalog_literal(&self) -> String {
        literal(self.catalogs.first().map_or("", String::as_str))
    }

    /// The catalog's names, and that by which the client has connected.
    fn databases(&self) -> BTreeSet<String> {
        self.catalogs.iter().chain([&self.database]).cloned().collect()
    }

    /// Who owns everything, and who asks.
    fn roles(&self) -> Vec<String> {
        let mut names = vec![listing::OWNER_NAME.to_owned()];
        if self.user != listing::OWNER_NAME {
            names.push(self.user.clone());
        }
        names
    }
}

impl Catalog {
    /// The catalog for a client who has connected with these names.
    pub(crate) fn new(engine: &Engine, user: &str, database: &str, process: i32) -> Self {
        let facts = Facts {
            user: user.to_owned(),
            database: database.to_owned(),
            catalogs: engine.shared.catalogs.clone(),
            schema: format!("{}/kafka_topics", engine.shared.default_view),
            process,
        };
        Self { facts, context: None }
    }

    /// The schemas whose tables need no schema before them, as SQL.
    pub(crate) fn search_path(&self) -> String {
        functions::quote(&self.facts.schema)
    }

    /// Finds out whether a statement asks for something of PostgreSQL's.
    pub(crate) fn recognise(&self, text: &str) -> Option<Recognised> {
        recognise::recognise(text, &self.facts)
    }

    /// The columns of a statement's answer and the types of its parameters.
    pub(crate) async fn describe(
        &mut self,
        session: &Session,
        variables: &Variables,
        recognised: &Recognised,
    ) -> Result<(SchemaRef, Vec<Option<DataType>>), Refusal> {
        let statement = match recognised {
            Recognised::Own(statement) => statement,
            Recognised::Mixed(text) => {
                let prepared = session.prepare(text).await?;
                return Ok((shown(&prepared.schema), prepared.parameters));
            }
        };
        let rewritten = rewrite::rewrite(statement, &self.facts, variables)?;
        let plan = self.plan(session, variables, &rewritten).await?;
        let types = plan.get_parameter_types().map_err(fault)?;
        let type_of = |index: usize| types.get(&format!("${}", index.saturating_add(1))).cloned().flatten();
        // what has no rows is left out, and its parameters with it
        let count = recognise::parameters(statement);
        if count > PARAMETERS_MAX {
            return Err(Refusal::error(super::refusal::state::LIMIT_EXCEEDED, "too many parameters"));
        }
        Ok((shown(plan.schema().as_arrow()), (0..count).map(type_of).collect()))
    }

    /// Runs a statement.
    pub(crate) async fn run(
        &mut self,
        session: &Session,
        variables: &mut Variables,
        recognised: &Recognised,
        values: Option<ParamValues>,
    ) -> Result<(SchemaRef, SendableRecordBatchStream), Refusal> {
        let statement = match recognised {
            Recognised::Own(statement) => statement,
            Recognised::Mixed(text) => {
                let answer = session.execute_with(text, values).await?;
                return Ok((shown(&answer.schema), answer.rows));
            }
        };
        let rewritten = rewrite::rewrite(statement, &self.facts, variables)?;
        for (name, value) in &rewritten.settings {
            if let Some(Err(refusal)) = variables.set(name, Some(value)) {
                return Err(refusal);
            }
        }
        let mut plan = self.plan(session, variables, &rewritten).await?;
        if let Some(values) = values {
            plan = plan.with_param_values(values).map_err(|error| refused(error, session, statement))?;
        }
        let schema = shown(plan.schema().as_arrow());
        let frame = DataFrame::new(self.context()?.state(), plan);
        let rows = frame.execute_stream().await;
        Ok((schema, rows.map_err(|error| refused(error, session, statement))?))
    }

    async fn plan(
        &mut self,
        session: &Session,
        variables: &Variables,
        rewritten: &Rewritten,
    ) -> Result<LogicalPlan, Refusal> {
        let context = self.context()?.clone();
        let catalog = Arc::new(MemoryCatalogProvider::new());
        let (own, standard) = (Arc::new(MemorySchemaProvider::new()), Arc::new(MemorySchemaProvider::new()));
        if rewritten.asks {
            let columns = rewritten.tables.contains("pg_attribute") || rewritten.tables.contains("pg_class");
            let listing = Listing::read(session, &self.facts, columns).await?;
            for function in functions::functions(&listing, &self.facts.schema) {
                context.register_udf(function);
            }
            for name in &rewritten.tables {
                let table = listing.table(name, &self.facts, variables)?;
                own.register_table(name.clone(), Arc::new(table)).map_err(fault)?;
            }
            for name in &rewritten.standard_tables {
                let table = listing::information_schema(session, name).await?;
                standard.register_table(name.clone(), Arc::new(table)).map_err(fault)?;
            }
        }
        catalog.register_schema("pg_catalog", own).map_err(fault)?;
        catalog.register_schema("information_schema", standard).map_err(fault)?;
        context.register_catalog(CATALOG, catalog);
        let statement = &rewritten.statement;
        let plan = context.state().statement_to_plan(Parsed::Statement(Box::new(statement.clone()))).await;
        plan.map_err(|error| refused(error, session, statement))
    }

    /// What plans and runs the statements; made when the first one comes.
    fn context(&mut self) -> Result<&SessionContext, Refusal> {
        if self.context.is_none() {
            let config = SessionConfig::new()
                .with_default_catalog_and_schema(CATALOG, "pg_catalog")
                .with_create_default_catalog_and_schema(false)
                .with_information_schema(false)
                .with_target_partitions(1);
            let runtime =
                RuntimeEnvBuilder::new().with_memory_limit(MEMORY_LEN_MAX, 1.0).build_arc().map_err(fault)?;
            self.context = Some(SessionContext::new_with_config_rt(config, runtime));
        }
        self.context.as_ref().ok_or_else(|| Refusal::error(super::refusal::state::INTERNAL, "no context"))
    }
}

/// The names of columns without what keeps equal ones apart.
fn shown(schema: &Schema) -> SchemaRef {
    let field = |field: &Arc<Field>| {
        let name = field.name().split(select::APART).next().unwrap_or_default().to_owned();
        field.as_ref().clone().with_name(name)
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// Why a statement cannot be planned or run.
fn refused(error: DataFusionError, session: &Session, statement: &Statement) -> Refusal {
    let error = QueryError::from(error);
    session.engine().shared.note(&statement.to_string(), &error);
    error.into()
}

fn fault(error: DataFusionError) -> Refusal {
    QueryError::from(error).into()
}

const CATALOG: &str = "kolumn";
const PARAMETERS_MAX: usize = 1000;
/// Of one statement about the catalog.
const MEMORY_LEN_MAX: usize = 64 << 20;
