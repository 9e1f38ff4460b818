//! The benchmarks: how near is the broker to what this machine can do at all, and its SQL to the best of its rivals?
//!
//! An absolute number says little on a shared virtual machine, where the same program is twice as fast an
//! hour later. So everything here is a *ratio inside one interleaved run*: the broker, a rival that does
//! almost nothing, and the bare machine are measured in turns, several rounds, and the tables show medians
//! of the rounds' ratios with their range.
//!
//! # The system benchmark's programs
//!
//! | program | is |
//! | --- | --- |
//! | [`null_broker`] | the rival: parses frame and batch headers, stores nothing, answers everything. It shares no code with the broker: its parser is its own |
//! | [`floor_broker`] | the other limit: one thread that writes and syncs before it acknowledges, and does nothing else |
//! | [`blaster`] | the client: sends batches that were encoded before the clock started, so that the client's cost is a `write` |
//! | [`calibrate`] | the machine: memory copy, a stream and a ping-pong over loopback, sync latency, fresh append, aligned write and sync |
//! | `librdkafka` | the load that all sides have in common: a workspace of its own, because it brings a client library in C |
//! | [`system`] | the driver: starts all sides, Apache Kafka and Tansu among them, runs client and calibration in turns, reads `/proc`, prints Markdown |
//!
//! Blaster and calibration print one line of JSON, and all are useful alone; the driver starts them as processes of
//! their own, so that a broker's CPU time and memory are read from `/proc/PID`, not estimated.
//!
//! # The guard's
//!
//! [`guard`] does one thing to the broker's parts again and again, for a simulated processor that counts instructions and
//! allocations: `cargo xtask bench guard` compares them with `guard.json`.
//!
//! # The SQL benchmark's
//!
//! | program | is |
//! | --- | --- |
//! | [`sql`] | the driver: gives all sides the same rows, asks them the same statements in turns, compares answers and times |
//! | [`sql_engine`] | SQL without a network: a store and an engine in one process, with as much memory as it is told to use |
//! | `sql/rival.py` | `DataFusion` and `DuckDB` on Parquet files, and the broker through ADBC |
//!
//! The driver and its sides exchange lines of JSON; each side reads its own clock, around the statement alone.
//!
//! # Features
//!
//! | feature | brings |
//! | --- | --- |
//! | `sql`, a default | the SQL benchmark, and with it DataFusion |
//! | `guard`, a default | the program that counts instructions and allocations a request |
//!
//! # What keeps a run honest
//!
//! - The null broker reaches 0.6 of the loopback stream of the same round, or the run is void: a slow rival
//!   flatters everybody.
//! - A round whose loopback stream or memory copy is more than a quarter away from the median of the rounds
//!   is left out, and the table says so.
//! - Acknowledgement latency counts from the *intended* time of sending, so a stalled broker cannot slow
//!   down the clock that measures it; the client sleeps and never spins.
//! - An error code in any response ends the case. A rate with errors in it is no rate.
//! - After each case a consumer reads back what was acknowledged; what is missing is a fault in the report.
//! - What acknowledges before a sync is not compared with what acknowledges after it.
//! - All sides of the SQL benchmark give the same answers in each round, or the run ends.
//! - A drain checks that the batches' offsets follow each other without a gap.
//!
//! # It is not
//!
//! A conformance suite (a fetch is checked for order, not for content), nor a comparison of clients: the
//! blaster has no batching, compression or retries to pay for.
//!
//! # Example
//!
//! A null broker and a blaster in one process. The programs are functions of their arguments and an output:
//!
//! ```
//! use benches::NullBroker;
//!
//! let broker = NullBroker::bind("127.0.0.1:0".parse()?)?;
//! let address = broker.local_addr().to_string();
//! broker.serve_in_background();
//!
//! let mut out = Vec::new();
//! let arguments = ["blaster", "produce", "--broker", &address, "--batches", "20", "--batch-bytes", "16384"];
//! benches::blaster(&arguments.map(Into::into), &mut out)?;
//!
//! let seen: serde_json::Value = serde_json::from_slice(&out)?;
//! assert_eq!(seen["requests"], 20);
//! assert_eq!(seen["records"], 20 * 15); // a batch of 16 KiB holds 15 records of 1 KiB
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reading order
//!
//! `wire` and `batch` are the hand parser and the batch format; `null_broker` uses them to answer, `client`
//! and `blaster` to ask. `calibrate` needs neither. `system` puts all together: `side` and `case` say who and what, `trial` does
//! a case to a side on its `stage`, `schedule` goes through all of them, `summary` has the arithmetic; `process` is its reader of
//! `/proc`. Of the SQL benchmark, `sql::rows` and `sql::query` are what is given and asked, `ask` is
//! how, and `engine` answers.

#![forbid(unsafe_code)]
#![expect(
    clippy::missing_errors_doc,
    reason = "every function fails with the error of the socket, file or process that it drives"
)]

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

mod answer;
#[cfg(feature = "sql")]
mod ask;
mod batch;
mod blaster;
mod calibrate;
mod client;
mod clock;
#[cfg(feature = "sql")]
mod engine;
mod floor_broker;
#[cfg(feature = "guard")]
mod guard;
mod histogram;
mod null_broker;
mod process;
#[cfg(feature = "sql")]
mod sql;
mod system;
mod wire;

pub use blaster::blaster;
pub use calibrate::calibrate;
#[cfg(feature = "sql")]
pub use engine::sql_engine;
pub use floor_broker::{FloorBroker, floor_broker};
#[cfg(feature = "guard")]
pub use guard::guard;
pub use null_broker::{NullBroker, null_broker};
#[cfg(feature = "sql")]
pub use sql::sql;
pub use system::system;

/// Runs one of the programs with this process' arguments and standard output.
#[must_use]
pub fn main(program: fn(&[OsString], &mut dyn Write) -> io::Result<()>) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match program(&arguments, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to tell it to if standard error is gone too.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Parses a program's arguments; a request for help or the version ends the process, as clap does it.
fn arguments<A: clap::Parser>(arguments: &[OsString]) -> io::Result<A> {
    A::try_parse_from(arguments).or_else(|error| {
        if error.use_stderr() {
            Err(io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))
        } else {
            error.exit()
        }
    })
}
