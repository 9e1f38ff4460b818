//! A session: its prepared statements, portals and transaction, and how each message is answered.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::ParamValues;

use super::catalog::{Catalog, Recognised};
use super::connection::Outgoing;
use super::frame::{Bind, Format, Message, Target};
use super::listener::Registered;
use super::parameters;
use super::refusal::{Refusal, state};
use super::reply::{Column, Replies, Transaction};
use super::rows::Rows;
use super::statement::{Kind, Step, split};
use super::translate::{Translated, translate};
use super::types::{columns, oid, oid_of};
use super::variables::Variables;
use crate::dialect::UNDECIDED;
use crate::engine::Engine;
use crate::error::QueryError;
use crate::policy::Principal;
use crate::session::Session;

/// What a client has of its session.
pub(crate) struct Conversation {
    session: Session,
    catalog: Catalog,
    variables: Variables,
    transaction: Transaction,
    statements: HashMap<String, Arc<Statement>>,
    portals: HashMap<String, Portal>,
}

/// A prepared statement.
struct Statement {
    text: String,
    kind: Kind,
    /// It asks for PostgreSQL's own tables and functions.
    recognised: Option<Recognised>,
    /// How it differs from what the client has sent.
    translated: Translated,
    /// The columns of its answer, if it has rows.
    columns: Option<Vec<Column>>,
    parameters: Vec<u32>,
    /// The types of the parameters as far as the client has declared them.
    declared: Vec<u32>,
}

/// A statement with values for its parameters.
struct Portal {
    statement: Arc<Statement>,
    values: Option<ParamValues>,
    formats: Vec<Format>,
    /// Its rows, once it runs.
    rows: Option<Rows>,
    done: bool,
}

/// Why a message is not answered.
#[derive(Debug)]
pub(crate) enum Failure {
    Refused(Refusal),
    /// The connection is broken.
    Io,
}

/// What a statement gives.
enum Outcome {
    Rows(Rows),
    Done(&'static str),
}

impl Conversation {
    /// Begins a session with what the client has said of itself.
    ///
    /// # Errors
    /// A parameter has a value that cannot be.
    pub(crate) async fn begin(
        engine: &Engine,
        parameters: &[(String, String)],
        registered: &Registered,
        replies: &mut Replies,
    ) -> Result<Self, Refusal> {
        let given =
            |name| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let user = given("user").unwrap_or_default();
        let session = engine.session(Principal::anonymous());
        let catalog = Catalog::new(engine, user, given("database").unwrap_or(user), registered.process);
        let mut variables = Variables::new(user, &catalog.search_path());
        replies.authentication_ok();
        for (name, value) in parameters {
            match name.as_str() {
                "user" | "database" | "options" | "replication" => {}
                name if name.eq_ignore_ascii_case("TimeZone") => {
                    // Clients send the zone of their machine, whatever it is called there.
                    if set_time_zone(&session, value).await.is_ok() {
                        variables.keep("TimeZone", value);
                    } else {
                        let text = format!("time zone `{value}` is not known here: it is UTC");
                        replies.warning(state::INVALID_PARAMETER_VALUE, &text);
                    }
                }
                _ => {
                    if let Some(Err(refusal)) = variables.set(name, Some(value)) {
                        return Err(Refusal { fatal: true, ..refusal });
                    }
                    variables.keep(name, value);
                }
            }
        }
        variables.reported().for_each(|(name, value)| replies.parameter(name, value));
        replies.key_data(registered.process, registered.secret);
        replies.ready(Transaction::None);
        let (statements, portals) = (HashMap::new(), HashMap::new());
        Ok(Self { session, catalog, variables, transaction: Transaction::None, statements, portals })
    }

    /// How long a statement may take. The engine ends its own ones before; those about the catalog it does not know.
    pub(crate) fn statement_timeout(&self) -> Duration {
        let longest = self.session.engine().settings().statement_timeout.saturating_add(MARGIN);
        self.variables.statement_timeout().map_or(longest, |limit| limit.min(longest))
    }

    /// Notes that a message was refused.
    pub(crate) fn failed(&mut self, extended: bool, replies: &mut Replies) {
        if self.transaction == Transaction::Open {
            self.transaction = Transaction::Failed;
        }
        self.end_portals();
        if !extended {
            replies.ready(self.transaction);
        }
    }

    /// Answers a message. If it is interrupted, what was sent is whole messages.
    pub(crate) async fn answer(&mut self, message: Message, outgoing: &mut Outgoing) -> Result<(), Failure> {
        match message {
            Message::Query(text) => return self.query(&text, outgoing).await,
            Message::Parse { name, text, types } => {
                self.parse(name, text, &types).await?;
                outgoing.replies.parse_complete();
            }
            Message::Bind(bind) => {
                self.bind(bind).await?;
                outgoing.replies.bind_complete();
            }
            Message::Describe(target) => self.describe(&target, &mut outgoing.replies)?,
            Message::Execute { portal, rows_max } => self.execute(&portal, rows_max, outgoing).await?,
            Message::Close(target) => {
                match target {
                    Target::Statement(name) => drop(self.statements.remove(&name)),
                    Target::Portal(name) => drop(self.portals.remove(&name)),
                }
                outgoing.replies.close_complete();
            }
            Message::Sync => {
                self.end_portals();
                outgoing.replies.ready(self.transaction);
            }
            Message::Flush | Message::Terminate => {}
        }
        Ok(())
    }

    /// The simple protocol: a text with any number of statements.
    async fn query(&mut self, text: &str, outgoing: &mut Outgoing) -> Result<(), Failure> {
        let statements = split(text)?;
        if statements.is_empty() {
            outgoing.replies.empty_query();
        }
        for text in statements {
            let statement = self.look_at(text, &[]).await?;
            match self.run(&statement, None, &mut outgoing.replies).await? {
                Outcome::Done(tag) => outgoing.replies.complete(tag),
                Outcome::Rows(mut rows) => {
                    outgoing.replies.columns(rows.columns(), &[])?;
                    rows.send(outgoing, &[], 0, self.variables.bytea_output()).await?;
                    outgoing.replies.complete(&rows.tag());
                }
            }
        }
        outgoing.replies.ready(self.transaction);
        Ok(())
    }

    async fn parse(&mut self, name: String, text: String, types: &[u32]) -> Result<(), Failure> {
        if !name.is_empty() && self.statements.contains_key(&name) {
            let text = format!("prepared statement `{name}` already exists");
            return Err(Refusal::error(state::STATEMENT_DUPLICATE, text).into());
        }
        let texts = split(&text)?;
        let statement = match texts.as_slice() {
            [] => Statement { parameters: types.to_vec(), ..self.look_at("", &[]).await? },
            [text] => self.prepare(text, types).await?,
            _ => {
                let text = "cannot insert multiple commands into a prepared statement";
                return Err(Refusal::error(state::SYNTAX, text).into());
            }
        };
        let held: usize = self.statements.values().map(|statement| statement.text.len()).sum();
        if self.statements.len() >= STATEMENTS_MAX || held.saturating_add(text.len()) > STATEMENTS_LEN_MAX {
            let text = "too many prepared statements in this session: close some";
            return Err(Refusal::error(state::LIMIT_EXCEEDED, text).into());
        }
        self.statements.insert(name, Arc::new(statement));
        Ok(())
    }

    /// A statement of which nothing is planned, but what has to be known to translate it.
    async fn look_at(&mut self, text: &str, types: &[u32]) -> Result<Statement, Failure> {
        let kind = Kind::of(text);
        if kind == Kind::Copy {
            let text = "`COPY` is not supported: rows are written by Kafka's producers, and `psql --csv -c 'SELECT …'` or \
                        `\\g file` puts those of a query into a file";
            return Err(Refusal::error(state::FEATURE_NOT_SUPPORTED, text).into());
        }
        let mut translated = Translated::default();
        let mut text = text.to_owned();
        let mut recognised = None;
        if matches!(kind, Kind::Query { .. }) {
            translated = translate(&text, types)?;
            if let Some(asked) = translated.undecided() {
                // What cannot be planned is refused when the statement itself is.
                let found =
                    self.session.prepare(&asked).await.map_or_else(|_| Vec::new(), |found| found.parameters);
                translated.decide(|index| {
                    found.get(index).and_then(Option::as_ref).is_some_and(|found| oid_of(found) == oid::BYTEA)
                });
            }
            text = translated.text().unwrap_or(text);
            recognised = self.catalog.recognise(&text);
        }
        let (parameters, declared) = (Vec::new(), types.to_vec());
        Ok(Statement { text, kind, recognised, translated, columns: None, parameters, declared })
    }

    async fn prepare(&mut self, text: &str, types: &[u32]) -> Result<Statement, Failure> {
        let mut statement = self.look_at(text, types).await?;
        let (shape, inferred) = match (&statement.kind, &statement.recognised) {
            (Kind::Query { .. }, Some(recognised)) => {
                self.allowed(&statement.kind)?;
                self.catalog.describe(&self.session, &self.variables, recognised).await?
            }
            (Kind::Query { .. }, None) => {
                self.allowed(&statement.kind)?;
                let cast = match statement.translated.typed(types) {
                    Some(with_casts) => self.session.prepare(&with_casts).await.ok(),
                    None => None,
                };
                // Not everywhere is a cast possible.
                let prepared = match cast {
                    Some(prepared) => prepared,
                    None => self.session.prepare(&statement.text).await?,
                };
                (prepared.schema, prepared.parameters)
            }
            (Kind::Show(name), _) if self.variables.get(name).is_some() || is_all(name) => {
                statement.columns = Some(columns(self.show(name).schema()));
                statement.parameters = types.to_vec();
                return Ok(statement);
            }
            (Kind::Show(_), _) => {
                let prepared = self.session.prepare(text).await?;
                (prepared.schema, prepared.parameters)
            }
            _ => {
                statement.parameters = types.to_vec();
                return Ok(statement);
            }
        };
        let shape = statement.translated.named(&shape);
        statement.columns = (!shape.fields().is_empty()).then(|| columns(&shape));
        // What the client says of a parameter's type goes before what we find.
        let found = inferred.iter().map(|found| found.as_ref().map_or(oid::TEXT, oid_of));
        statement.parameters = found.collect();
        for (index, number) in types.iter().enumerate() {
            match statement.parameters.get_mut(index) {
                Some(place) if *number != 0 && *number != oid::UNKNOWN => *place = *number,
                Some(_) => {}
                None => statement.parameters.push(if *number == 0 { oid::TEXT } else { *number }),
            }
        }
        for (index, number) in &statement.translated.casts {
            let is_open = matches!(types.get(*index).copied(), None | Some(0 | oid::UNKNOWN));
            if let Some(place) =
                statement.parameters.get_mut(*index).filter(|place| is_open && **place == oid::TEXT)
            {
                *place = *number;
            }
        }
        for index in &statement.translated.bytes {
            if let Some(place) = statement.parameters.get_mut(*index) {
                *place = oid::BYTEA;
            }
        }
        Ok(statement)
    }

    async fn bind(&mut self, bind: Bind) -> Result<(), Refusal> {
        let statement = self.statement(&bind.statement)?;
        let (given, expected) = (bind.values.len(), statement.parameters.len());
        if given != expected {
            let name = &bind.statement;
            let text = format!("{given} values are bound, but statement `{name}` has {expected} parameters");
            return Err(Refusal::error(state::PROTOCOL, text));
        }
        if self.portals.len() >= PORTALS_MAX && !self.portals.contains_key(&bind.portal) {
            return Err(Refusal::error(
                state::LIMIT_EXCEEDED,
                "too many portals in this session: close some",
            ));
        }
        let bytes = bytes_among(&self.session, &statement, &bind).await;
        let mut values = Vec::new();
        for (index, (value, number)) in bind.values.iter().zip(&statement.parameters).enumerate() {
            let number = if bytes.contains(&index) { oid::BYTEA } else { *number };
            values.push(parameters::read(number, Format::of(&bind.formats, index), value.as_ref())?);
        }
        let values = (!values.is_empty()).then(|| ParamValues::from(values));
        let portal = Portal { statement, values, formats: bind.result_formats, rows: None, done: false };
        self.portals.insert(bind.portal, portal);
        Ok(())
    }

    fn describe(&self, target: &Target, replies: &mut Replies) -> Result<(), Refusal> {
        let (statement, formats) = match target {
            Target::Statement(name) => {
                let statement = self.statement(name)?;
                replies.parameters(&statement.parameters);
                (statement, &[][..])
            }
            Target::Portal(name) => {
                let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
                (Arc::clone(&portal.statement), portal.formats.as_slice())
            }
        };
        if let Some(columns) = &statement.columns {
            return replies.columns(columns, formats);
        }
        replies.no_data();
        Ok(())
    }

    async fn execute(&mut self, name: &str, rows_max: usize, outgoing: &mut Outgoing) -> Result<(), Failure> {
        let mut portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        if portal.rows.is_none() && !portal.done {
            if portal.statement.text.is_empty() {
                outgoing.replies.empty_query();
                self.portals.insert(name.to_owned(), portal);
                return Ok(());
            }
            let statement = Arc::clone(&portal.statement);
            match self.run(&statement, portal.values.clone(), &mut outgoing.replies).await? {
                Outcome::Done(tag) => {
                    outgoing.replies.complete(tag);
                    portal.done = true;
                }
                Outcome::Rows(rows) => {
                    let types =
                        |columns: &[Column]| columns.iter().map(|column| column.oid).collect::<Vec<_>>();
                    if statement.columns.as_deref().map(types) != Some(types(rows.columns())) {
                        let text =
                            "the types of the answer are not those that were described: prepare it again";
                        return Err(Refusal::error(state::FEATURE_NOT_SUPPORTED, text).into());
                    }
                    portal.rows = Some(rows);
                }
            }
        } else if portal.done {
            // As in PostgreSQL: nothing is left.
            outgoing.replies.complete("SELECT 0");
        }
        if let Some(rows) = &mut portal.rows {
            let bytea = self.variables.bytea_output();
            if rows.send(outgoing, &portal.formats, rows_max, bytea).await? {
                outgoing.replies.portal_suspended();
            } else {
                outgoing.replies.complete(&rows.tag());
                (portal.rows, portal.done) = (None, true);
            }
        }
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    /// Runs a statement.
    async fn run(
        &mut self,
        statement: &Statement,
        values: Option<ParamValues>,
        replies: &mut Replies,
    ) -> Result<Outcome, Failure> {
        self.allowed(&statement.kind)?;
        match &statement.kind {
            Kind::Query { tag } => {
                let (schema, rows) = if let Some(recognised) = &statement.recognised {
                    self.catalog.run(&self.session, &mut self.variables, recognised, values).await?
                } else {
                    let answer = self.session.execute_with(&statement.text, values).await?;
                    (answer.schema, answer.rows)
                };
                Ok(if schema.fields().is_empty() {
                    Outcome::Done("SET")
                } else {
                    Outcome::Rows(Rows::new(statement.translated.named(&schema), rows, tag))
                })
            }
            Kind::Transaction(step) => Ok(Outcome::Done(self.step(*step, replies))),
            Kind::Set { name, value } => self.set(&statement.text, name, value.as_deref(), replies).await,
            Kind::ResetAll | Kind::Discard => {
                set_time_zone(&self.session, "UTC").await?;
                self.variables.reset();
                if statement.kind == Kind::ResetAll {
                    return Ok(Outcome::Done("RESET"));
                }
                self.statements.clear();
                Ok(Outcome::Done("DISCARD ALL"))
            }
            Kind::Show(name) if self.variables.get(name).is_some() || is_all(name) => {
                Ok(Outcome::Rows(self.show(name)))
            }
            Kind::Show(_) => {
                let answer = self.session.execute_with(&statement.text, values).await?;
                Ok(Outcome::Rows(Rows::new(answer.schema, answer.rows, "SHOW")))
            }
            Kind::Deallocate(name) => {
                match name {
                    Some(name) => drop(self.statements.remove(name)),
                    None => self.statements.clear(),
                }
                Ok(Outcome::Done(if name.is_some() { "DEALLOCATE" } else { "DEALLOCATE ALL" }))
            }
            Kind::Nothing(tag) => Ok(Outcome::Done(tag)),
            Kind::Copy => Err(Refusal::error(state::FEATURE_NOT_SUPPORTED, "`COPY` is not supported").into()),
        }
    }

    async fn set(
        &mut self,
        text: &str,
        name: &str,
        value: Option<&str>,
        replies: &mut Replies,
    ) -> Result<Outcome, Failure> {
        if name.eq_ignore_ascii_case("TimeZone") {
            set_time_zone(&self.session, value.unwrap_or("UTC")).await?;
        }
        match self.variables.set(name, value) {
            Some(Ok(report)) => {
                if let Some((name, value)) = report {
                    replies.parameter(name, &value);
                }
            }
            Some(Err(refusal)) => return Err(refusal.into()),
            // It may be one of the engine's.
            None => drop(self.session.execute(text).await?),
        }
        Ok(Outcome::Done("SET"))
    }

    /// The answer to `SHOW`.
    fn show(&self, name: &str) -> Rows {
        if is_all(name) {
            return Rows::texts(
                &["name", "setting"],
                self.variables.all().map(|(name, value)| vec![name, value]),
            );
        }
        let (name, value) = self.variables.get(name).unwrap_or_default();
        Rows::texts(&[name], std::iter::once(vec![value]))
    }

    fn step(&mut self, step: Step, replies: &mut Replies) -> &'static str {
        let was = self.transaction;
        let (now, tag) = match step {
            Step::Begin => (Transaction::Open, "BEGIN"),
            Step::Commit if was == Transaction::Failed => (Transaction::None, "ROLLBACK"),
            Step::Commit => (Transaction::None, "COMMIT"),
            Step::Rollback => (Transaction::None, "ROLLBACK"),
            Step::Savepoint => (was, "SAVEPOINT"),
            Step::Release => (was, "RELEASE"),
            Step::RollbackTo => (Transaction::Open, "ROLLBACK"),
        };
        match (step, was) {
            (Step::Begin, Transaction::Open) => {
                replies.warning("25001", "there is already a transaction in progress");
            }
            (Step::Commit | Step::Rollback, Transaction::None) => {
                replies.warning("25P01", "there is no transaction in progress");
            }
            _ => {}
        }
        self.transaction = now;
        tag
    }

    fn allowed(&self, kind: &Kind) -> Result<(), Refusal> {
        if self.transaction == Transaction::Failed && !kind.ends_failure() {
            let text = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Refusal::error(state::TRANSACTION_FAILED, text));
        }
        Ok(())
    }

    /// Portals live as long as a transaction, be it one that nobody has begun.
    fn end_portals(&mut self) {
        if self.transaction != Transaction::Open {
            self.portals.clear();
        }
    }

    fn statement(&self, name: &str) -> Result<Arc<Statement>, Refusal> {
        let found = self.statements.get(name).map(Arc::clone);
        found.ok_or_else(|| {
            Refusal::error(state::STATEMENT_NAME, format!("prepared statement `{name}` does not exist"))
        })
    }
}

/// Which values are bytes, although we have told that they are text: those that are written as bytes, of a type that the
/// client leaves open, and are compared with bytes.
async fn bytes_among(session: &Session, statement: &Statement, bind: &Bind) -> BTreeSet<usize> {
    let is_open = |index| matches!(statement.declared.get(index).copied(), None | Some(0 | oid::UNKNOWN));
    let values = bind.values.iter().zip(&statement.parameters).enumerate();
    let written = values.filter(|(index, (value, number))| {
        **number == oid::TEXT
            && is_open(*index)
            && Format::of(&bind.formats, *index) == Format::Text
            && value.as_ref().is_some_and(|value| parameters::is_hex(value))
    });
    let mut written: BTreeSet<usize> = written.map(|(index, _)| index).collect();
    if let Some(asked) =
        Some(&written).filter(|set| !set.is_empty()).and_then(|set| statement.translated.asking(set))
    {
        let found = session.prepare(&asked).await.map_or_else(|_| Vec::new(), |found| found.parameters);
        written.retain(|index| {
            let found = found.get(index.saturating_add(UNDECIDED)).and_then(Option::as_ref);
            found.is_some_and(|found| oid_of(found) == oid::BYTEA)
        });
    } else {
        written.clear();
    }
    written
}

async fn set_time_zone(session: &Session, zone: &str) -> Result<(), QueryError> {
    let text = format!("SET TIME ZONE '{}'", zone.replace('\'', "''"));
    session.execute(&text).await.map(drop)
}

fn no_portal(name: &str) -> Refusal {
    Refusal::error(state::PORTAL_NAME, format!("portal `{name}` does not exist"))
}

fn is_all(name: &str) -> bool {
    name.eq_ignore_ascii_case("all")
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Self {
        Self::Io
    }
}

/// Drivers keep some hundred.
const STATEMENTS_MAX: usize = 1024;
const STATEMENTS_LEN_MAX: usize = 16 << 20;
const PORTALS_MAX: usize = 64;
const MARGIN: Duration = Duration::from_secs(1);
