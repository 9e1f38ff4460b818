//! The client: batches encoded before the clock starts, so that it costs a `write` a request.

mod drain;
mod flight;
mod latency;
mod produce;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use serde::{Deserialize, Serialize};

use crate::histogram::Percentiles;

/// Loads a broker with pre-encoded batches and prints what it saw as JSON.
#[derive(Debug, Parser)]
#[command(name = "blaster")]
struct Arguments {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Sends batches as fast as they are acknowledged.
    Produce(Produce),
    /// Fetches a partition from its start, again and again.
    Drain(Drain),
    /// Sends requests of one record at a fixed rate, measured from the intended time of sending.
    Latency(Latency),
}

#[derive(Debug, Clone, Args)]
struct Target {
    /// The broker's address.
    #[arg(long, default_value = "127.0.0.1:9092")]
    broker: SocketAddr,
    /// The topic, created if it does not exist.
    #[arg(long, default_value = "blast")]
    topic: String,
}

#[derive(Debug, Args)]
struct Produce {
    #[command(flatten)]
    target: Target,
    /// Bytes that a batch has at most.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(100..=64_000_000))]
    batch_bytes: u32,
    /// Bytes of value in a record.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=32_000_000))]
    record_bytes: u32,
    /// Requests under way on a connection.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    in_flight: u32,
    /// Connections.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=1_000))]
    connections: i32,
    /// Partitions, to each of which the connections send in turn; by default each connection has one of its own.
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..=100_000))]
    partitions: Option<i32>,
    /// -1 for acknowledgements when durable, 1 for the leader's.
    #[arg(long, default_value_t = -1, allow_hyphen_values = true, value_parser = clap::value_parser!(i16).range(-1..=1))]
    acks: i16,
    /// How long to send.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Stop after this many batches on each connection instead.
    #[arg(long)]
    batches: Option<u64>,
    /// Acknowledgements that arrive before this are not measured.
    #[arg(long, default_value_t = 0.0)]
    warm_up: f64,
}

#[derive(Debug, Args)]
struct Drain {
    #[command(flatten)]
    target: Target,
    /// The partition.
    #[arg(long, default_value_t = 0)]
    partition: i32,
    /// Bytes asked for by each fetch.
    #[arg(long, default_value_t = 1_048_576, value_parser = clap::value_parser!(i32).range(1_000..=60_000_000))]
    fetch_bytes: i32,
    /// How long to fetch.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
}

#[derive(Debug, Args)]
struct Latency {
    #[command(flatten)]
    target: Target,
    /// Requests a second.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// Bytes of value in the record.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    record_bytes: u32,
    /// How long to send.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Acknowledgements that arrive before this are not measured.
    #[arg(long, default_value_t = 0.0)]
    warm_up: f64,
}

/// What the client saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// `produce`, `drain` or `latency`.
    pub(crate) mode: String,
    /// What was measured, without the warm-up.
    pub(crate) seconds: f64,
    pub(crate) requests: u64,
    pub(crate) records: u64,
    /// Bytes of batches, not of requests.
    pub(crate) bytes: u64,
    /// The same with the warm-up, which is what the broker's counters hold.
    pub(crate) bytes_total: u64,
    pub(crate) records_total: u64,
    pub(crate) gb_per_s: f64,
    pub(crate) records_per_s: f64,
    /// From sending (produce, drain), or the intended time of it (latency), to the response.
    pub(crate) latency_us: Percentiles,
}

impl Outcome {
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits than an f64 has")]
    fn new(mode: &str, measured: Duration, counts: Counts, latency_us: Percentiles) -> Self {
        let seconds = measured.as_secs_f64().max(1e-9);
        Self {
            mode: mode.into(),
            seconds,
            requests: counts.requests,
            records: counts.records,
            bytes: counts.bytes,
            bytes_total: counts.bytes_total,
            records_total: counts.records_total,
            gb_per_s: counts.bytes as f64 / seconds / 1e9,
            records_per_s: counts.records as f64 / seconds,
            latency_us,
        }
    }
}

/// What was measured, and what was sent in all.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    requests: u64,
    records: u64,
    bytes: u64,
    bytes_total: u64,
    records_total: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.records += other.records;
        self.bytes += other.bytes;
        self.bytes_total += other.bytes_total;
        self.records_total += other.records_total;
    }

    fn request(&mut self, records: u64, bytes: u64, measured: bool) {
        self.bytes_total += bytes;
        self.records_total += records;
        if measured {
            self.requests += 1;
            self.records += records;
            self.bytes += bytes;
        }
    }
}

/// Runs the blaster and prints one line of JSON.
pub fn blaster(arguments: &[OsString], out: &mut dyn Write) -> io::Result<()> {
    let outcome = match crate::arguments::<Arguments>(arguments)?.mode {
        Mode::Produce(arguments) => produce::run(&arguments)?,
        Mode::Drain(arguments) => drain::run(&arguments)?,
        Mode::Latency(arguments) => latency::run(&arguments)?,
    };
    serde_json::to_writer(&mut *out, &outcome)?;
    writeln!(out)
}

/// A number of seconds from the command line; nonsense is refused with the option's name.
fn seconds(option: &str, value: f64) -> io::Result<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("`{option}` is not a number of seconds"))
    })
}
