//! The driver: null broker, broker and machine in turns, several rounds, one Markdown report.

mod machine;
mod report;
mod round;
mod summary;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Parser;

use round::{Plan, Round};
use summary::Summary;

pub(crate) use machine::{Machine, load_average};
pub(crate) use report::{figure, line};
pub(crate) use summary::Spread;

/// Compares a broker with the null broker and the machine, and prints Markdown.
#[derive(Debug, Parser)]
#[command(name = "system")]
struct Arguments {
    /// The broker's program.
    #[arg(default_value = "target/release/broker")]
    broker: PathBuf,
    /// An argument of the broker, in place of the defaults `--listen {address} --data-dir {dir} --sql none`;
    /// may be given several times, and `{address}` and `{dir}` are replaced.
    #[arg(long = "broker-arg", allow_hyphen_values = true)]
    broker_args: Vec<String>,
    /// A directory on the disk to measure; what is made in it is removed again.
    #[arg(long, default_value = "target/system-benchmark")]
    dir: PathBuf,
    /// Rounds, each of everything.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Seconds of each load.
    #[arg(long, default_value_t = 15.0)]
    seconds: f64,
    /// Mebibytes that the calibration appends to a fresh file; few flatter the page cache.
    #[arg(long, default_value_t = 1024)]
    append_mib: u64,
    /// A first look: 3 rounds of 5 seconds.
    #[arg(long, conflicts_with_all = ["rounds", "seconds"])]
    quick: bool,
    /// Write the report to this file too.
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Write every round's numbers to this file, a line of JSON each.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Runs the system benchmark; an error if the run is void.
pub fn system(arguments: &[OsString], out: &mut dyn Write) -> io::Result<()> {
    let arguments: Arguments = crate::arguments(arguments)?;
    let (rounds, seconds) = if arguments.quick { (3, 5.0) } else { (arguments.rounds, arguments.seconds) };
    let plan = Plan {
        broker: arguments.broker,
        broker_args: if arguments.broker_args.is_empty() {
            ["--listen", "{address}", "--data-dir", "{dir}", "--sql", "none"].map(Into::into).to_vec()
        } else {
            arguments.broker_args
        },
        programs: programs()?,
        dir: arguments.dir,
        seconds,
        append_mib: arguments.append_mib,
    };
    fs::create_dir_all(&plan.dir)?;
    let machine = Machine::describe(&plan.dir);
    let mut measured = Vec::new();
    for index in 1..=rounds {
        // Progress goes to standard error, where a closed pipe is no reason to stop measuring.
        let _ = writeln!(io::stderr(), "round {index} of {rounds}");
        measured.push(Round::run(&plan, index % 2 == 0)?);
    }
    if let Some(path) = &arguments.json {
        save_rounds(path, &measured)?;
    }
    let summary = Summary::new(&measured);
    let text = report::markdown(&machine, seconds, &measured, &summary);
    out.write_all(text.as_bytes())?;
    if let Some(path) = &arguments.markdown {
        fs::write(path, text.as_bytes())?;
    }
    if summary.is_void() { Err(io::Error::other("the run is void, the report says why")) } else { Ok(()) }
}

fn save_rounds(path: &Path, rounds: &[Round]) -> io::Result<()> {
    let mut lines = Vec::new();
    for round in rounds {
        serde_json::to_writer(&mut lines, round)?;
        lines.push(b'\n');
    }
    fs::write(path, lines)
}

/// The directory of this program, where its siblings are.
fn programs() -> io::Result<PathBuf> {
    let this = std::env::current_exe()?;
    let dir = this.parent().map(Path::to_path_buf).unwrap_or_default();
    for name in ["blaster", "calibrate", "null_broker"] {
        if !dir.join(name).exists() {
            let message = format!(
                "`{name}` is not beside this program; build all with `cargo build --release -p benches`"
            );
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
    }
    Ok(dir)
}
