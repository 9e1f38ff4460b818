//! SQL beside the broker: an engine over its store, servers on a runtime of their own, and a client that asks them.

use std::io::{self, BufReader, BufWriter, IsTerminal as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use kolumn_broker::{Broker, GroupDescription, GroupMember, GroupReader, Settings, SqlSettings};
use kolumn_sql::flight::{FlightServer, FlightSettings};
use kolumn_sql::postgres::{PostgresServer, PostgresSettings};
use kolumn_sql::{Engine, Event, Group, GroupSource, Member, Observer, shell};
use tokio::runtime::{Builder, Runtime};

use crate::arguments::{Format, Query};
use crate::reachable;

/// The servers that the settings ask for. They have threads of their own, so that no query keeps a connection of the
/// broker waiting.
#[derive(Debug)]
pub(crate) struct Servers {
    /// `None` if there are no servers.
    runtime: Option<Runtime>,
    flight: Option<FlightServer>,
    postgres: Option<PostgresServer>,
}

impl Servers {
    /// Starts them over the store of a broker.
    pub(crate) async fn start(settings: &Settings, broker: &Broker) -> Result<Self, String> {
        let mut servers = Self { runtime: None, flight: None, postgres: None };
        let SqlSettings { listen, postgres_listen, open_to_others, .. } = settings.sql;
        if listen.is_none() && postgres_listen.is_none() {
            return Ok(servers);
        }
        let runtime = Builder::new_multi_thread().enable_all().thread_name("sql").build();
        let runtime = runtime.map_err(|error| format!("the runtime of SQL: {error}"))?;
        let handle = runtime.handle().clone();
        servers.runtime = Some(runtime);
        let builder = engine(settings, broker);
        let built = handle.spawn_blocking(|| builder.build()).await.map_err(|error| error.to_string())?;
        let engine = built.map_err(|error| format!("SQL: {}", crate::describe(&error)))?;
        if let Some(listen) = listen {
            let server = FlightServer::start(engine.clone(), FlightSettings { listen, open_to_others });
            let started = handle.spawn(server).await.map_err(|error| error.to_string())?;
            servers.flight = Some(started.map_err(|error| taken(listen, "--sql", &error))?);
        }
        if let Some(listen) = postgres_listen {
            let server = PostgresServer::start(
                engine,
                PostgresSettings { listen, open_to_others, ..PostgresSettings::default() },
            );
            let started = handle.spawn(server).await.map_err(|error| error.to_string())?;
            servers.postgres = Some(started.map_err(|error| taken(listen, "--postgres", &error))?);
        }
        Ok(servers)
    }

    /// A line for each of them.
    pub(crate) fn places(&self) -> Vec<String> {
        let flight =
            self.flight.iter().map(|server| format!("SQL on {} (Arrow Flight)", server.local_addr()));
        let postgres =
            self.postgres.iter().map(|server| format!("SQL on {} (PostgreSQL)", server.local_addr()));
        flight.chain(postgres).collect()
    }

    /// A command line to try.
    pub(crate) fn example(&self) -> Option<String> {
        let address = reachable(self.flight.as_ref()?.local_addr());
        let named = if Some(address) == SqlSettings::default().listen {
            String::new()
        } else {
            format!("--address {address} ")
        };
        Some(format!("broker sql {named}'SELECT * FROM greetings'"))
    }

    /// Ends them; statements that run have a second.
    pub(crate) async fn stop(mut self) {
        let (flight, postgres) = (self.flight.take(), self.postgres.take());
        let Some(runtime) = &self.runtime else { return };
        let stopped = runtime.spawn(async move {
            tokio::join!(
                async {
                    if let Some(server) = flight {
                        server.shutdown().await;
                    }
                },
                async {
                    if let Some(server) = postgres {
                        server.shutdown().await;
                    }
                }
            )
        });
        // One that panicked has nothing left to stop.
        let _ = stopped.await;
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // To wait for its threads would block one of the broker's.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn engine(settings: &Settings, broker: &Broker) -> kolumn_sql::Builder {
    Engine::builder(broker.store().clone())
        .settings(kolumn_sql::Settings {
            memory_len_max: settings.sql.memory_len_max,
            // The log leaves alone what is not its own.
            spill_dir: Some(settings.data_dir.join("sql-spill")),
            spill_len_max: settings.sql.spill_len_max,
            statement_timeout: Duration::from_millis(settings.sql.statement_timeout_ms),
            statements_max: settings.sql.statements_max,
            ..kolumn_sql::Settings::default()
        })
        .catalog_alias("vast")
        .default_view(&settings.view)
        .groups(Arc::new(Groups(broker.group_reader())))
        .observer(Arc::new(Log))
}

fn taken(address: SocketAddr, flag: &str, error: &io::Error) -> String {
    format!("cannot serve SQL on `{address}`: {error}; `{flag}` chooses another address, or `none`")
}

/// Runs what is asked on the broker at the address, and prints the answers.
pub(crate) fn ask(query: &Query, settings: &Settings) -> Result<(), String> {
    let address = match &query.address {
        Some(text) => text.to_socket_addrs().map_err(|error| format!("`{text}`: {error}"))?.next(),
        None => settings.sql.listen.map(reachable),
    };
    let address = address.ok_or("there is no address to ask; `--address` names one")?;
    let format = match query.format {
        Format::Table => shell::Format::Table,
        Format::Csv => shell::Format::Csv,
        Format::Json => shell::Format::Json,
    };
    // The shell blocks the thread that it runs on; another one drives the connection.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| format!("the runtime: {error}"))?;
    let (mut input, mut output) = (BufReader::new(io::stdin()), BufWriter::new(io::stdout()));
    let asked = async {
        match &query.statement {
            None if io::stdin().is_terminal() => {
                shell::interact(address, format, &mut input, &mut output).await
            }
            statement => shell::run(address, statement.as_deref(), format, &mut input, &mut output).await,
        }
    };
    runtime.block_on(asked).map_err(|error| error.to_string())
}

/// Writes the faults of SQL to the log: a client is told little of them.
#[derive(Debug)]
struct Log;

impl Observer for Log {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Fault { sql, error, .. } => {
                let shown: String = sql.chars().take(STATEMENT_LEN_SHOWN).collect();
                tracing::error!(
                    statement = shown,
                    error = crate::describe(*error),
                    "a statement met a fault"
                );
            }
            other => tracing::debug!(event = ?other, "SQL"),
        }
    }
}

/// Characters of a statement in the log.
const STATEMENT_LEN_SHOWN: usize = 500;

/// The broker's groups in the words of SQL.
#[derive(Debug)]
struct Groups(GroupReader);

impl GroupSource for Groups {
    fn groups(&self, bucket: &str) -> Vec<Group> {
        self.0.groups(Some(bucket)).into_iter().map(group).collect()
    }
}

fn group(group: GroupDescription) -> Group {
    Group {
        id: group.id.to_string(),
        state: group.state.to_owned(),
        protocol_type: group.protocol_type,
        protocol: group.protocol,
        members: group.members.into_iter().map(member).collect(),
    }
}

fn member(member: GroupMember) -> Member {
    let topics = member.assigned.unwrap_or_default().into_iter();
    let assigned = topics.flat_map(|assigned| {
        assigned.partitions.into_iter().map(move |partition| (Arc::clone(&assigned.topic), partition))
    });
    Member {
        id: member.id,
        instance_id: member.instance_id,
        client_id: member.client_id,
        client_host: member.client_host,
        assigned: assigned.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_engine() {
        let (ours, theirs) = (SqlSettings::default(), kolumn_sql::Settings::default());
        assert_eq!(ours.memory_len_max, theirs.memory_len_max);
        assert_eq!(ours.spill_len_max, theirs.spill_len_max);
        assert_eq!(Duration::from_millis(ours.statement_timeout_ms), theirs.statement_timeout);
        assert_eq!(ours.statements_max, theirs.statements_max);
        assert_eq!(ours.listen, Some(FlightSettings::default().listen));
    }
}
