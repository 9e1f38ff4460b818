//! A statement while it is planned: that takes its time without waiting for anything, so it has a thread of its own.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{ParamValues, ResolvedTableReference};
use datafusion::error::{DataFusionError, Result as Planned};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::execute_stream;
use datafusion::sql::parser::Statement;
use futures::future::{Either, select};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

use crate::catalog::{Catalogs, topics_schema};
use crate::counters::StatementCounters;
use crate::dialect;
use crate::engine::Shared;
use crate::error::{QueryError, QueryErrorKind};
use crate::planner;
use crate::policy::Principal;
use crate::running::timed_out;

/// What a statement is planned with.
pub(crate) struct Planning {
    pub(crate) shared: Arc<Shared>,
    pub(crate) principal: Principal,
    pub(crate) time_zone: Option<String>,
    pub(crate) sql: String,
}

/// A statement that has begun to run.
pub(crate) struct Begun {
    pub(crate) schema: SchemaRef,
    pub(crate) rows: SendableRecordBatchStream,
    pub(crate) counters: StatementCounters,
}

impl Planning {
    /// Takes the snapshot, plans, and begins to run.
    pub(crate) async fn begin(
        self,
        statement: Statement,
        values: Option<ParamValues>,
    ) -> Result<Begun, QueryError> {
        let Self { shared, principal, time_zone, sql } = &self;
        let explain = |error| dialect::explain(error, sql);
        let counters = StatementCounters::default();
        let references = self.references(&statement).map_err(explain)?;
        let catalogs = Catalogs::snapshot(shared, principal, &references, &counters).map_err(explain)?;
        let planning = async {
            let mut state =
                planner::state_of_statement(&shared.state, catalogs.clone(), time_zone.as_deref())?;
            let plan = planner::plan(&state, statement, values).await?;
            let names = dialect::names(&plan);
            let plan = planner::physical_plan(&mut state, &shared.settings, &plan).await?;
            let schema = answered(&plan.schema(), &names);
            Planned::Ok(Begun { schema, rows: execute_stream(plan, state.task_ctx())?, counters })
        };
        planning.await.map_err(|error| missing(&catalogs, &references, error, sql))
    }

    /// Plans without a snapshot. Gives the columns, and the types of the parameters.
    pub(crate) async fn prepare(
        self,
        statement: Statement,
    ) -> Result<(SchemaRef, Vec<Option<DataType>>), QueryError> {
        let Self { shared, principal, time_zone, sql } = &self;
        let references = self.references(&statement).map_err(|error| dialect::explain(error, sql))?;
        let catalogs = Catalogs::listed(shared, principal);
        let planning = async {
            let state = planner::state_of_statement(&shared.state, catalogs.clone(), time_zone.as_deref())?;
            let plan = planner::plan(&state, statement, None).await?;
            let names = dialect::names(&plan);
            let parameters = planner::parameters(&plan)?;
            // Its types are those of the answer only after the rules have run, which those of its parameters may prevent.
            let analyzed =
                state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {});
            let plan = if parameters.is_empty() { analyzed? } else { analyzed.unwrap_or(plan) };
            Planned::Ok((answered(plan.schema().as_arrow(), &names), parameters))
        };
        planning.await.map_err(|error| missing(&catalogs, &references, error, sql))
    }

    fn references(&self, statement: &Statement) -> Planned<Vec<ResolvedTableReference>> {
        let schema = topics_schema(&self.shared.default_view);
        planner::references(statement, self.shared.default_catalog(), &schema)
    }
}

/// Does work where blocking is allowed, until the deadline, and gives the place of the statement back with its outcome.
///
/// Nothing interrupts it. So a statement that has run out of time, or whose caller has gone, keeps its place until its thread
/// has ended: there are no more such threads than places.
pub(crate) async fn aside<T: Send + 'static, F: Future<Output = Result<T, QueryError>>>(
    place: OwnedSemaphorePermit,
    deadline: Pin<&mut Sleep>,
    allowed: Duration,
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<(T, OwnedSemaphorePermit), QueryError> {
    let task = SpawnedTask::spawn_blocking(move || (Handle::current().block_on(work()), place));
    match select(task, deadline).await {
        Either::Left((Ok((done, place)), _)) => Ok((done?, place)),
        Either::Left((Err(_), _)) => {
            Err(QueryError::new(QueryErrorKind::Internal, "a fault inside of the engine"))
        }
        Either::Right(((), _)) => Err(timed_out(allowed)),
    }
}

/// The columns of an answer. What a plan says about nulls changes with what it is optimised to, which readers that compare
/// a prepared statement with its answer must not notice: so each column may have some.
fn answered(schema: &Schema, names: &[String]) -> SchemaRef {
    let fields = schema.fields().iter().zip(names);
    let fields = fields.map(|(field, name)| Field::new(name, field.data_type().clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The error of a statement that could not be planned: a table that does not exist is told with what there is instead.
fn missing(
    catalogs: &Catalogs,
    references: &[ResolvedTableReference],
    error: DataFusionError,
    sql: &str,
) -> QueryError {
    let explained = dialect::explain(error, sql);
    match catalogs.missing(references) {
        Some(text) if explained.kind() == QueryErrorKind::NotFound => {
            QueryError::new(QueryErrorKind::NotFound, text)
        }
        _ => explained,
    }
}
