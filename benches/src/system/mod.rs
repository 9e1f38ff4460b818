//! The driver: all sides and the machine in turns, several rounds, one Markdown report.

mod admin;
mod aims;
mod case;
mod disk;
mod java;
mod launch;
mod load;
mod machine;
mod plot;
mod report;
mod results;
#[cfg(test)]
mod samples;
mod schedule;
mod side;
mod spread;
mod stage;
mod summary;
mod svg;
mod tables;
mod trial;
mod verify;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Parser;

use case::Case;
use launch::Programs;
use report::About;
use results::{Identity, Results};
use schedule::Schedule;
use side::Side;
use stage::Plan;
use summary::Summary;

pub(crate) use machine::Machine;
#[cfg(feature = "sql")]
pub(crate) use machine::load_average;
#[cfg(feature = "sql")]
pub(crate) use report::line;
#[cfg(feature = "sql")]
pub(crate) use spread::{Spread, figure};

/// Compares the broker with its rivals and with the limits of the machine, and prints Markdown.
#[derive(Debug, Parser)]
#[command(name = "system")]
struct Arguments {
    /// The broker's program.
    #[arg(default_value = "target/release/broker")]
    broker: PathBuf,
    /// A further argument of the broker; may be given several times.
    #[arg(long = "broker-arg", allow_hyphen_values = true)]
    broker_args: Vec<String>,
    /// The folder with Apache Kafka's jars; without it Kafka is left out.
    #[arg(long)]
    kafka_classpath: Option<PathBuf>,
    /// Tansu's program; without it Tansu is left out.
    #[arg(long)]
    tansu: Option<PathBuf>,
    /// The load program with librdkafka; without it only the blaster's cases are done.
    #[arg(long)]
    load: Option<PathBuf>,
    /// A directory on the disk to measure. What is made in it is removed again, but for the results.
    #[arg(long, default_value = "target/system-benchmark")]
    dir: PathBuf,
    /// A first look, which is the default: W1, W2 and W7 on seven sides, 3 rounds of 15 s a load.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Everything: 3 rounds of 30 s a load.
    #[arg(long)]
    full: bool,
    /// Only these cases or families of them, as in `W1,W5-10,fetch`.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these sides.
    #[arg(long, value_enum, value_delimiter = ',')]
    sides: Vec<Side>,
    /// Rounds, each of everything.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Seconds of each load, with its warm-up.
    #[arg(long)]
    seconds: Option<f64>,
    /// Mebibytes that the calibration appends to a fresh file; few flatter the page cache.
    #[arg(long, default_value_t = 1024)]
    append_mib: u64,
    /// Forget the results of an earlier run in the same directory, instead of going on behind them.
    #[arg(long)]
    restart: bool,
    /// Put the report into this file too, in place of an earlier one, and the plot beside it.
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// Runs the system benchmark; an error if the run is void or the broker has lost anything.
pub fn system(arguments: &[OsString], out: &mut dyn Write) -> io::Result<()> {
    let arguments: Arguments = crate::arguments(arguments)?;
    fs::create_dir_all(&arguments.dir)?;
    let plan = plan(&arguments)?;
    let (sides, cases) = (chosen_sides(&arguments), chosen_cases(&arguments)?);
    let mut schedule = Schedule::new(&plan.programs, &cases, &sides, arguments.rounds);
    let machine = Machine::describe(&plan.dir);
    let identity = identity(&plan, &machine);
    let mut results = Results::open(&plan.dir.join("results.jsonl"), &identity, arguments.restart)?;
    schedule.run(&plan, &mut results)?;

    let summary = Summary::new(&results.lines);
    let plot = arguments.markdown.as_deref().map(beside);
    let name = plot.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let about = About { machine: &machine, seconds: plan.seconds, left_out: &schedule.left_out, plot: name };
    let text = report::markdown(&about, &summary);
    out.write_all(text.as_bytes())?;
    if let (Some(path), Some(plot)) = (&arguments.markdown, &plot) {
        let old = if path.exists() { fs::read_to_string(path)? } else { String::new() };
        write(path, &report::merged(&old, &text))?;
        write(plot, &plot::svg(&summary, &identity.commit))?;
    }
    let faults = summary.faults_of_ours();
    if !faults.is_empty() {
        return Err(io::Error::other(faults.join("\n")));
    }
    if summary.is_void() { Err(io::Error::other("the run is void, the report says why")) } else { Ok(()) }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display())))
}

fn plan(arguments: &Arguments) -> io::Result<Plan> {
    let seconds = arguments.seconds.unwrap_or(if arguments.full { 30.0 } else { 15.0 });
    if !(0.05..=3600.0).contains(&seconds) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "`--seconds` is not between 0.05 and 3600"));
    }
    let programs = Programs {
        dir: programs()?,
        broker: absolute(&arguments.broker)?,
        broker_args: arguments.broker_args.clone(),
        kafka: arguments.kafka_classpath.as_deref().map(absolute).transpose()?,
        tansu: arguments.tansu.as_deref().map(absolute).transpose()?,
        load: arguments.load.as_deref().map(absolute).transpose()?,
    };
    // A first look has no time for more; a full one reads all that retention leaves of most sides.
    let verify_seconds = if arguments.full { 20.0 } else { 1.5 };
    Ok(Plan {
        programs,
        dir: absolute(&arguments.dir)?,
        seconds,
        verify_seconds,
        append_mib: arguments.append_mib,
    })
}

/// Servers are started in other directories.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    std::path::absolute(path)
}

fn chosen_sides(arguments: &Arguments) -> Vec<Side> {
    match (arguments.sides.is_empty(), arguments.full) {
        (false, _) => Side::ALL.into_iter().filter(|side| arguments.sides.contains(side)).collect(),
        (true, true) => Side::ALL.to_vec(),
        (true, false) => Side::QUICK.to_vec(),
    }
}

fn chosen_cases(arguments: &Arguments) -> io::Result<Vec<Case>> {
    if arguments.only.is_empty() {
        return Ok(match (arguments.full, &arguments.load) {
            (true, _) => Case::ALL.to_vec(),
            (false, Some(_)) => Case::QUICK.to_vec(),
            (false, None) => Case::QUICK_RAW.to_vec(),
        });
    }
    let mut named = Vec::new();
    for word in &arguments.only {
        let cases = Case::named(word);
        if cases.is_empty() {
            let all = Case::ALL.map(Case::name).join(", ");
            let message = format!("`{word}` is none of the cases: {all}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        named.extend(cases);
    }
    Ok(Case::ALL.into_iter().filter(|case| named.contains(case)).collect())
}

/// The commit alone does not tell one build of a changed tree from another.
fn identity(plan: &Plan, machine: &Machine) -> Identity {
    let row = |name: &str| {
        let found = machine.rows.iter().find(|(of, _)| *of == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let Programs { broker, broker_args, .. } = &plan.programs;
    let built = fs::metadata(broker).map(|seen| format!("{} bytes, {:?}", seen.len(), seen.modified().ok()));
    Identity {
        commit: row("commit"),
        machine: ["kernel", "processor", "memory"].map(row).join("; "),
        broker: format!("{} {}: {}", broker.display(), broker_args.join(" "), built.unwrap_or_default()),
        seconds: plan.seconds,
    }
}

/// `BASELINE.md` has its picture in `baseline.svg`.
fn beside(markdown: &Path) -> PathBuf {
    let stem = markdown.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    markdown.with_file_name(format!("{stem}.svg"))
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
