//! The driver of the SQL benchmark: the broker's SQL and two rivals on the same rows in turns, several rounds, one report.

mod bytes;
mod peer;
mod query;
mod report;
mod round;
mod rows;
mod side;
mod summary;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::system::Machine;
use report::About;
use round::{Round, announce};
use side::{Place, Running, Side};
use summary::Summary;

#[cfg(test)]
pub(crate) use rows::{BATCH_ROWS, Row};
pub(crate) use rows::{batches, timestamp};

/// Compares SQL over topics with `DataFusion` and `DuckDB` on Parquet files of the same rows, and prints Markdown.
#[derive(Debug, Parser)]
#[command(name = "sql")]
struct Arguments {
    /// A Python that has the packages of benches/sql/requirements.txt.
    #[arg(long, default_value = "target/clients/venv-sql-benchmark/bin/python")]
    python: PathBuf,
    /// The broker's program.
    #[arg(long, default_value = "target/release/broker")]
    broker: PathBuf,
    /// A directory on the disk to measure; what is made in it is removed again.
    #[arg(long, default_value = "target/sql-benchmark")]
    dir: PathBuf,
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000_000))]
    rows: u64,
    /// Rounds, each of everything; one more goes before them unmeasured.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Threads that each side may use for one statement.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// The sides, all by default.
    #[arg(long, value_delimiter = ',')]
    sides: Vec<Side>,
    /// A first look: 2,000,000 rows, 3 rounds.
    #[arg(long, conflicts_with_all = ["rows", "rounds"])]
    quick: bool,
    /// Write the report to this file too.
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Write every round's numbers to this file, a line of JSON each.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Runs the SQL benchmark; an error if two sides differ in an answer, or if the run is void.
pub fn sql(arguments: &[OsString], out: &mut dyn Write) -> io::Result<()> {
    let arguments: Arguments = crate::arguments(arguments)?;
    let (rows, rounds) = if arguments.quick { (2_000_000, 3) } else { (arguments.rows, arguments.rounds) };
    let wanted = |side: &Side| arguments.sides.is_empty() || arguments.sides.contains(side);
    let sides: Vec<Side> = Side::ALL.into_iter().filter(wanted).collect();
    let place = Place {
        rows,
        threads: arguments.threads,
        python: arguments.python,
        broker: arguments.broker,
        programs: side::programs(sides.iter().any(|side| side.scans()))?,
        dir: arguments.dir,
    };
    remove_dir(&place.dir)?;
    fs::create_dir_all(&place.dir)?;
    let machine = Machine::describe(&place.dir);
    let (about, measured) = measure(&place, &sides, rounds)?;
    if let Some(path) = &arguments.json {
        save_rounds(path, &measured)?;
    }
    remove_dir(&place.dir)?;
    let summary = Summary::new(&measured);
    let text = report::markdown(&machine, &place, &about, &measured, &summary);
    out.write_all(text.as_bytes())?;
    if let Some(path) = &arguments.markdown {
        fs::write(path, text.as_bytes())?;
    }
    if summary.is_void() { Err(io::Error::other("the run is void, the report says why")) } else { Ok(()) }
}

/// Starts the sides one after the other, each with the machine for itself, and runs the rounds.
fn measure(place: &Place, sides: &[Side], rounds: u32) -> io::Result<(Vec<About>, Vec<Round>)> {
    announce(&format!("writing {} rows as Parquet", place.rows));
    side::write_parquet(place)?;
    let mut running = Vec::new();
    for side in sides {
        announce(&format!("starting {}", side.title()));
        running.push(Running::start(*side, place)?);
    }
    announce("a round that is not measured");
    let warm = Round::run(&mut running, place, 0, None)?;
    let mut measured = Vec::new();
    for index in 1..=rounds {
        announce(&format!("round {index} of {rounds}"));
        measured.push(Round::run(&mut running, place, index, Some(&warm))?);
    }
    let about = |running: &Running| {
        Ok(About {
            side: running.side,
            version: running.peer.ready.version.clone(),
            loaded_s: running.peer.ready.loaded_s,
            resident_max: running.usage()?.resident_max,
        })
    };
    Ok((running.iter().map(about).collect::<io::Result<_>>()?, measured))
}

fn save_rounds(path: &Path, rounds: &[Round]) -> io::Result<()> {
    let mut lines = Vec::new();
    for round in rounds {
        serde_json::to_writer(&mut lines, round)?;
        lines.push(b'\n');
    }
    fs::write(path, lines)
}

fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
