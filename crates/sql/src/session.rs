//! A session: whose statements they are, and what they have set.

use std::pin::{Pin, pin};
use std::str::FromStr;
use std::sync::Arc;

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::ParamValues;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::EmptyRecordBatchStream;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep, timeout};

use crate::catalog::{Catalogs, topics_schema};
use crate::counters::{ScanTotals, StatementCounters};
use crate::dialect::{self, Order, Scope};
use crate::engine::Engine;
use crate::error::{QueryError, QueryErrorKind};
use crate::planning::{Begun, Planning, aside};
use crate::policy::Principal;
use crate::running::Running;
use crate::split;

/// Statements of one principal, one after the other. Each one sees everything that was acknowledged before it began, and
/// all its tables as of one moment.
#[derive(Debug)]
pub struct Session {
    engine: Engine,
    principal: Principal,
    /// Where `SET time zone` has moved it.
    time_zone: Mutex<Option<String>>,
}

/// The rows that a statement answers with. Dropping it cancels the statement.
#[non_exhaustive]
pub struct Answer {
    /// The columns.
    pub schema: SchemaRef,
    /// The rows. An error among them is the last item; [`QueryError::from`] gives it its kind.
    pub rows: SendableRecordBatchStream,
    /// What its scans do.
    pub scans: Scans,
}

/// What the scans of a statement have done so far, also after its rows have been read. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Scans(StatementCounters);

/// A statement that was planned and can be run again and again: each run sees what is acknowledged then.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Prepared {
    /// Its text.
    pub sql: String,
    /// The columns of its answer; none, if it has no rows (`SET`).
    pub schema: SchemaRef,
    /// The types of its parameters `$1`, `$2`, …, where they can be told.
    pub parameters: Vec<Option<DataType>>,
}

impl Session {
    pub(crate) const fn new(engine: Engine, principal: Principal) -> Self {
        Self { engine, principal, time_zone: Mutex::new(None) }
    }

    /// The engine that answers.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// On whose behalf.
    #[must_use]
    pub const fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Cuts a text into its statements, at semicolons. Empty ones are left out.
    ///
    /// # Errors
    /// The text is not SQL.
    pub fn split(&self, text: &str) -> Result<Vec<String>, QueryError> {
        self.check_len(text)?;
        split::split(text)
    }

    /// Runs one statement. The rows come as the answer is read; nothing is read ahead of it without a bound.
    ///
    /// # Errors
    /// See [`QueryErrorKind`]; errors that show later come with the rows.
    pub async fn execute(&self, sql: &str) -> Result<Answer, QueryError> {
        self.execute_with(sql, None).await
    }

    /// Runs one statement with values for its parameters `$1`, `$2`, ….
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn execute_with(&self, sql: &str, values: Option<ParamValues>) -> Result<Answer, QueryError> {
        let answer = self.answer_to(sql, values).await;
        answer.inspect_err(|error| self.engine.shared.note(sql, error))
    }

    async fn answer_to(&self, sql: &str, values: Option<ParamValues>) -> Result<Answer, QueryError> {
        let statement = match self.understand(sql)? {
            Order::Query(statement) => *statement,
            Order::Set { name, value } => {
                self.set(&name, value)?;
                return Ok(Answer::empty());
            }
            Order::Nothing => return Ok(Answer::empty()),
        };
        let place = self.place().await?;
        let allowed = self.engine.shared.settings.statement_timeout;
        let mut deadline = Box::pin(sleep(allowed));
        let planning = self.planning(sql);
        let work = move || planning.begin(statement, values);
        let (begun, place) = aside(place, deadline.as_mut(), allowed, work).await?;
        Ok(self.answer(sql, begun, deadline, place))
    }

    /// Plans a statement without running it.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn prepare(&self, sql: &str) -> Result<Prepared, QueryError> {
        let prepared = self.planned(sql).await;
        prepared.inspect_err(|error| self.engine.shared.note(sql, error))
    }

    async fn planned(&self, sql: &str) -> Result<Prepared, QueryError> {
        let none =
            || Prepared { sql: sql.to_owned(), schema: Arc::new(Schema::empty()), parameters: Vec::new() };
        let Order::Query(statement) = self.understand(sql)? else {
            return Ok(none());
        };
        let place = self.place().await?;
        let allowed = self.engine.shared.settings.statement_timeout;
        let deadline = pin!(sleep(allowed));
        let planning = self.planning(sql);
        let work = move || planning.prepare(*statement);
        let ((schema, parameters), _) = aside(place, deadline, allowed, work).await?;
        Ok(Prepared { sql: sql.to_owned(), schema, parameters })
    }

    /// What one statement wants.
    fn understand(&self, sql: &str) -> Result<Order, QueryError> {
        self.check_len(sql)?;
        let mut statements = dialect::parse(sql)?;
        let refuse = |text: &str| Err(QueryError::new(QueryErrorKind::Syntax, text));
        match (statements.pop(), statements.is_empty()) {
            (None, _) => refuse("there is no statement in the text"),
            (Some(_), false) => refuse("there is more than one statement in the text"),
            (Some(statement), true) => {
                let (catalog, schema) = (self.catalog(), self.schema());
                dialect::look_up(
                    &statement,
                    catalog,
                    &schema,
                    &Catalogs::listed(&self.engine.shared, &self.principal),
                )?;
                let zone = self.time_zone.lock().clone();
                let catalogs = &self.engine.shared.catalogs;
                let scope = Scope { catalog, schema: &schema, catalogs, time_zone: zone.as_deref() };
                dialect::understand(statement, scope)
            }
        }
    }

    fn check_len(&self, text: &str) -> Result<(), QueryError> {
        let len_max = self.engine.shared.settings.statement_len_max;
        if text.len() <= len_max {
            return Ok(());
        }
        let text = format!("a statement of {} bytes is longer than the {len_max} bytes allowed", text.len());
        Err(QueryError::new(QueryErrorKind::ResourcesExhausted, text))
    }

    /// The catalog of names without one.
    fn catalog(&self) -> &str {
        self.engine.shared.default_catalog()
    }

    /// The schema of names without one.
    fn schema(&self) -> String {
        topics_schema(&self.engine.shared.default_view)
    }

    /// What a statement of this text is planned with.
    fn planning(&self, sql: &str) -> Planning {
        Planning {
            shared: Arc::clone(&self.engine.shared),
            principal: self.principal.clone(),
            time_zone: self.time_zone.lock().clone(),
            sql: sql.to_owned(),
        }
    }

    /// Sets a variable of the session.
    fn set(&self, name: &str, value: Option<String>) -> Result<(), QueryError> {
        if name != TIME_ZONE {
            return Err(QueryError::new(QueryErrorKind::Unsupported, format!("`{name}` cannot be set")));
        }
        if let Some(zone) = &value
            && Tz::from_str(zone).is_err()
        {
            return Err(QueryError::new(QueryErrorKind::Syntax, format!("`{zone}` is not a time zone")));
        }
        *self.time_zone.lock() = value;
        Ok(())
    }

    /// Waits for a place among the statements that run; not longer than a statement may take.
    async fn place(&self) -> Result<OwnedSemaphorePermit, QueryError> {
        let shared = &self.engine.shared;
        let place = Arc::clone(&shared.places).acquire_owned();
        if let Ok(Ok(place)) = timeout(shared.settings.statement_timeout, place).await {
            return Ok(place);
        }
        // The engine does not close its places, so none has become free.
        let text = format!("{} statements are running, and none has ended", shared.settings.statements_max);
        Err(QueryError::new(QueryErrorKind::ResourcesExhausted, text))
    }

    fn answer(
        &self,
        sql: &str,
        begun: Begun,
        deadline: Pin<Box<Sleep>>,
        place: OwnedSemaphorePermit,
    ) -> Answer {
        let Begun { schema, rows, counters } = begun;
        let allowed = self.engine.shared.settings.statement_timeout;
        let noting = Arc::clone(&self.engine.shared);
        let rows =
            Running::new(SchemaRef::clone(&schema), rows, deadline, allowed, sql.to_owned(), place, noting);
        Answer { schema, rows: Box::pin(rows), scans: Scans(counters) }
    }
}

impl Answer {
    /// The answer to what has no rows.
    fn empty() -> Self {
        let schema = Arc::new(Schema::empty());
        let rows = Box::pin(EmptyRecordBatchStream::new(SchemaRef::clone(&schema)));
        Self { schema, rows, scans: Scans::default() }
    }
}

impl Scans {
    /// The counts of all of them together.
    #[must_use]
    pub fn totals(&self) -> ScanTotals {
        self.0.totals()
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// The one variable that a session has.
const TIME_ZONE: &str = "datafusion.execution.time_zone";
