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
//! | [`blaster`] | the client: sends batches that were encoded before the clock started, so that the client's cost is a `write` |
//! | [`calibrate`] | the machine: memory copy, a stream and a ping-pong over loopback, sync latency, fresh append, aligned write and sync |
//! | [`system`] | the driver: starts the two brokers, runs client and calibration in turns, reads `/proc`, prints Markdown |
//!
//! The first three print one line of JSON and are useful alone; the driver starts them as processes of
//! their own, so that a broker's CPU time and memory are read from `/proc/PID`, not estimated.
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
//! # What keeps a run honest
//!
//! - The null broker reaches 0.6 of the loopback stream of the same round, or the run is void: a slow rival
//!   flatters everybody.
//! - A round whose loopback stream or memory copy is more than a quarter away from the median of the rounds
//!   is left out, and the table says so.
//! - Acknowledgement latency counts from the *intended* time of sending, so a stalled broker cannot slow
//!   down the clock that measures it; the client sleeps and never spins.
//! - An error code in any response ends the run. A rate with errors in it is no rate.
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
//! and `blaster` to ask. `calibrate` needs neither. `system` puts all together; `process` is its reader of
//! `/proc`, `report` its arithmetic. Of the SQL benchmark, `sql::rows` and `sql::query` are what is given and asked, `ask` is
//! how, and `engine` answers.

#![forbid(unsafe_code)]
#![expect(
    clippy::missing_errors_doc,
    reason = "every function fails with the error of the socket, file or process that it drives"
)]

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

mod ask;
mod batch;
mod blaster;
mod calibrate;
mod client;
mod clock;
mod engine;
mod histogram;
mod null_broker;
mod process;
mod sql;
mod system;
mod wire;

pub use blaster::blaster;
pub use calibrate::calibrate;
pub use engine::sql_engine;
pub use null_broker::{NullBroker, null_broker};
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
