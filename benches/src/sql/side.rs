//! The sides: who answers, and how each is started.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use serde::Serialize;

use super::peer::Peer;
use super::rows;
use crate::client::{self, Connection};
use crate::process::{Server, Usage, free_address};

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
pub(super) enum Side {
    /// `DataFusion` on Parquet files.
    #[value(name = "datafusion")]
    DataFusion,
    /// `DuckDB` on the same files.
    #[value(name = "duckdb")]
    DuckDb,
    /// Kolumn in a process, batches in memory, nothing decoded kept.
    Memory,
    /// The same with all decoded rows kept.
    Cached,
    /// The same with nothing in memory: every statement reads the journal's files.
    Files,
    /// The broker program through ADBC and Flight SQL, otherwise as `Memory`.
    Broker,
}

impl Side {
    pub(super) const ALL: [Self; 6] =
        [Self::DataFusion, Self::DuckDb, Self::Memory, Self::Cached, Self::Files, Self::Broker];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::DataFusion => "DataFusion",
            Self::DuckDb => "DuckDB",
            Self::Memory => "memory",
            Self::Cached => "cached",
            Self::Files => "files",
            Self::Broker => "broker",
        }
    }

    /// Whether it can scan without SQL: those that are a store in their process.
    pub(super) const fn scans(self) -> bool {
        matches!(self, Self::Memory | Self::Cached | Self::Files)
    }
}

/// What all sides are started with.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) rows: u64,
    pub(super) threads: u32,
    pub(super) python: PathBuf,
    pub(super) broker: PathBuf,
    /// Where the other programs of this package are.
    pub(super) programs: PathBuf,
    pub(super) dir: PathBuf,
}

/// A side that is ready to answer.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) side: Side,
    pub(super) peer: Peer,
    /// The broker behind the peer, if that only asks it.
    broker: Option<Server>,
}

impl Running {
    pub(super) fn start(side: Side, place: &Place) -> io::Result<Self> {
        let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", side.title()));
        let (mut command, broker) = match side {
            Side::DataFusion | Side::DuckDb => (rival(side, place), None),
            Side::Memory => (engine(side, place, MUCH, 0), None),
            Side::Cached => (engine(side, place, MUCH, MUCH), None),
            Side::Files => (engine(side, place, 0, 0), None),
            Side::Broker => {
                let (broker, sql) = broker(place).map_err(told)?;
                let mut command = python(place);
                command.arg("adbc").arg(format!("grpc://{sql}"));
                (command, Some(broker))
            }
        };
        Ok(Self { side, peer: Peer::start(&mut command).map_err(told)?, broker })
    }

    /// What the process that has the rows has used so far.
    pub(super) fn usage(&self) -> io::Result<Usage> {
        self.broker.as_ref().map_or_else(|| self.peer.usage(), Server::usage)
    }
}

/// Makes the Parquet files that the rivals read.
pub(super) fn write_parquet(place: &Place) -> io::Result<()> {
    let dir = place.dir.join(PARQUET);
    fs::create_dir_all(&dir)?;
    fs::write(place.dir.join(RIVAL), include_str!("../../sql/rival.py"))?;
    rows::write_text(place.rows, &dir)?;
    let status = python(place).arg("parquet").arg(&dir).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("writing Parquet: {status}"))) }
}

/// The directory in which a side has its log.
pub(super) fn log_dir(side: Side, place: &Place) -> PathBuf {
    place.dir.join(side.title())
}

fn python(place: &Place) -> Command {
    let mut command = Command::new(&place.python);
    command.arg(place.dir.join(RIVAL));
    command
}

fn rival(side: Side, place: &Place) -> Command {
    let mut command = python(place);
    command.arg(if side == Side::DuckDb { "duckdb" } else { "datafusion" }).arg(place.dir.join(PARQUET));
    command.args(["--threads", &place.threads.to_string()]);
    command
}

fn engine(side: Side, place: &Place, tail_len_max: u64, decoded_len_max: u64) -> Command {
    let mut command = Command::new(place.programs.join("sql_engine"));
    command.arg("--dir").arg(log_dir(side, place));
    let numbers = [
        ("--rows", place.rows),
        ("--tail-len-max", tail_len_max),
        ("--decoded-len-max", decoded_len_max),
        ("--threads", place.threads.into()),
    ];
    for (name, value) in numbers {
        command.args([name, &value.to_string()]);
    }
    command
}

/// The broker with all rows, and where it answers SQL.
fn broker(place: &Place) -> io::Result<(Server, SocketAddr)> {
    let (kafka, sql) = (free_address()?, free_address()?);
    let config = place.dir.join("broker.toml");
    fs::write(&config, format!("[storage]\ntail_len_max = {MUCH}\ndecoded_len_max = 0\n"))?;
    let mut command = Command::new(&place.broker);
    command.arg("--config").arg(&config).arg("--data-dir").arg(log_dir(Side::Broker, place));
    command.args(["--listen", &kafka.to_string(), "--sql", &sql.to_string()]);
    let server = Server::start(command, kafka, &place.dir.join("broker.log"))?;
    produce(kafka, place.rows)?;
    Ok((server, sql))
}

/// Sends the rows to a broker, and waits until all are acknowledged.
fn produce(broker: SocketAddr, rows: u64) -> io::Result<()> {
    let mut connection = Connection::open(broker)?;
    // The rows' timestamps lie in the past, where retention would find them.
    connection.create_topic(TOPIC, 1, &[("retention.ms", "-1")])?;
    let (mut requests, mut responses) = connection.split()?;
    let mut in_flight = 0_u32;
    for batch in rows::batches(rows) {
        if in_flight == IN_FLIGHT_MAX {
            responses.produced()?;
            in_flight -= 1;
        }
        requests.write_all(&client::produce_request(TOPIC, 0, -1, &batch.bytes))?;
        in_flight += 1;
    }
    (0..in_flight).try_for_each(|_| responses.produced())
}

/// The directory of this program, where its siblings are.
pub(super) fn programs(engine: bool) -> io::Result<PathBuf> {
    let this = std::env::current_exe()?;
    let dir = this.parent().map(Path::to_path_buf).unwrap_or_default();
    if engine && !dir.join("sql_engine").exists() {
        let message =
            "`sql_engine` is not beside this program; build it with `cargo build --release -p benches`";
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    Ok(dir)
}

const TOPIC: &str = "events";
const PARQUET: &str = "parquet";
const RIVAL: &str = "rival.py";
/// More memory than the rows take; it is a bound, not a reservation.
const MUCH: u64 = 64 << 30;
const IN_FLIGHT_MAX: u32 = 16;
