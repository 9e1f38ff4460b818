//! The load of the system benchmark that all sides are given: librdkafka as a producer and as a consumer.
//!
//! Prints one line of JSON with what it saw. Whatever was lost, refused or out of order is in there and also on standard
//! error, and the exit code is 1.
#![forbid(unsafe_code)]

mod arguments;
mod client;
#[path = "../../src/clock.rs"]
#[expect(dead_code, reason = "the benchmark's own clock, of which this program needs a part")]
mod clock;
mod consume;
mod end_to_end;
#[path = "../../src/histogram.rs"]
mod histogram;
mod outcome;
mod payload;
mod produce;
mod reader;
mod reports;
mod schedule;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Mode};
use outcome::Outcome;

fn main() -> ExitCode {
    // Before any client is made: the threads of librdkafka inherit it.
    clock::sharpen_sleep();
    match run(&Arguments::parse().mode) {
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => tell(&faults.join("; ")),
        Err(error) => tell(&error.to_string()),
    }
}

/// Runs a load, prints its outcome, and returns what was wrong with it.
fn run(mode: &Mode) -> io::Result<Vec<String>> {
    let outcome: Outcome = match mode {
        Mode::Produce(arguments) => produce::run(arguments)?,
        Mode::Consume(arguments) => consume::run(arguments)?,
        Mode::EndToEnd(arguments) => end_to_end::run(arguments)?,
    };
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &outcome)?;
    writeln!(out)?;
    Ok(outcome.faults)
}

fn tell(error: &str) -> ExitCode {
    // Nothing is left to tell it to if standard error is gone too.
    let _ = writeln!(io::stderr(), "error: {error}");
    ExitCode::FAILURE
}
