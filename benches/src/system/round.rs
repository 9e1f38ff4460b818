//! One round: the calibration, then each load on each side in turn.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::blaster::Outcome;
use crate::calibrate::Calibration;
use crate::clock;
use crate::process::{Server, free_address};

/// What every round does.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) broker: PathBuf,
    pub(super) broker_args: Vec<String>,
    /// Where `blaster`, `calibrate` and `null_broker` are.
    pub(super) programs: PathBuf,
    pub(super) dir: PathBuf,
    pub(super) seconds: f64,
    pub(super) append_mib: u64,
}

/// The loads, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Load {
    /// 1 KiB records in batches of 1 MB, 5 requests under way.
    W1,
    /// 1 KiB records in batches of 16 KiB, 64 requests under way.
    W2,
    /// Fetching what was produced last and fits in memory, again and again.
    FetchHot,
    /// Fetching what W1 produced, from its start.
    FetchCold,
    /// One record a request, 1,000 requests a second.
    Latency,
}

impl Load {
    pub(super) const ALL: [Self; 5] = [Self::W1, Self::W2, Self::FetchHot, Self::FetchCold, Self::Latency];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::W1 => "W1 produce, 1 MB batches",
            Self::W2 => "W2 produce, 16 KB batches",
            Self::FetchHot => "fetch, from memory",
            Self::FetchCold => "fetch, W1's log from its start",
            Self::Latency => "acknowledgement, 1,000/s",
        }
    }

    /// The null broker has no log, so there is one fetch from it.
    fn runs_on_null(self) -> bool {
        self != Self::FetchCold
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::W1 => &["produce", "--topic", "w1", "--in-flight", "5", "--warm-up", "0.5"],
            Self::W2 => &[
                "produce",
                "--topic",
                "w2",
                "--batch-bytes",
                "16384",
                "--in-flight",
                "64",
                "--warm-up",
                "0.5",
            ],
            Self::FetchHot => &["drain", "--topic", "hot"],
            Self::FetchCold => &["drain", "--topic", "w1"],
            Self::Latency => &["latency", "--topic", "latency", "--rate", "1000", "--warm-up", "0.5"],
        }
    }
}

/// 24 MB: well within any memory that a broker keeps for its newest data.
const HOT_BATCHES: &str = "24";

/// Between the start and the first look at the memory.
const REST: Duration = Duration::from_millis(500);

/// One load on one side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sample {
    pub(super) outcome: Outcome,
    pub(super) cpu_s: f64,
    pub(super) resident_max: u64,
    pub(super) written: u64,
}

/// One side in one round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Side {
    pub(super) listening_after_ms: f64,
    pub(super) resident_at_start: u64,
    pub(super) samples: Vec<(Load, Sample)>,
    pub(super) stopped_well: bool,
}

impl Side {
    pub(super) fn sample(&self, load: Load) -> Option<&Sample> {
        self.samples.iter().find(|(of, _)| *of == load).map(|(_, sample)| sample)
    }
}

/// All of one round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Round {
    pub(super) calibration: Calibration,
    pub(super) null: Side,
    pub(super) broker: Side,
}

impl Round {
    /// Runs a round; every other one has the broker first.
    pub(super) fn run(plan: &Plan, broker_first: bool) -> io::Result<Self> {
        let data = plan.dir.join("data");
        remove_dir(&data)?;
        let calibration = calibrate(plan)?;
        let mut null = Measured::start(plan, "null broker", null_command(plan))?;
        let mut broker = Measured::start(plan, "broker", broker_command(plan, &data))?;
        for load in Load::ALL {
            if broker_first {
                broker.load(plan, load)?;
            }
            if load.runs_on_null() {
                null.load(plan, load)?;
            }
            if !broker_first {
                broker.load(plan, load)?;
            }
        }
        let round = Self { calibration, null: null.stop()?, broker: broker.stop()? };
        remove_dir(&data)?;
        Ok(round)
    }
}

/// A side while it is measured.
struct Measured {
    name: &'static str,
    server: Server,
    side: Side,
}

impl Measured {
    fn start(plan: &Plan, name: &'static str, command: impl FnOnce(&str) -> Command) -> io::Result<Self> {
        let address = free_address()?;
        let log = plan.dir.join(format!("{}.log", name.replace(' ', "-")));
        let command = command(&address.to_string());
        let server = Server::start(command, address, &log).map_err(|error| context(name, "start", &error))?;
        clock::sleep(REST);
        let side = Side {
            listening_after_ms: server.listening_after.as_secs_f64() * 1e3,
            resident_at_start: server.usage()?.resident,
            samples: Vec::new(),
            stopped_well: false,
        };
        Ok(Self { name, server, side })
    }

    fn load(&mut self, plan: &Plan, load: Load) -> io::Result<()> {
        let address = self.server.address.to_string();
        let failed = |error| context(self.name, load.title(), &error);
        if load == Load::FetchHot {
            let fill = ["produce", "--topic", "hot", "--batches", HOT_BATCHES, "--broker", &address];
            let _filled: Outcome = run_json(&plan.programs.join("blaster"), &fill).map_err(failed)?;
        }
        let seconds = plan.seconds.to_string();
        let common = ["--broker", &address, "--seconds", &seconds];
        let arguments: Vec<&str> = load.arguments().iter().copied().chain(common).collect();
        let before = self.server.usage()?;
        let outcome = run_json(&plan.programs.join("blaster"), &arguments).map_err(failed)?;
        let after = self.server.usage()?;
        let sample = Sample {
            outcome,
            cpu_s: after.cpu.saturating_sub(before.cpu).as_secs_f64(),
            resident_max: after.resident_max,
            written: after.written.saturating_sub(before.written),
        };
        self.side.samples.push((load, sample));
        Ok(())
    }

    fn stop(self) -> io::Result<Side> {
        let Self { server, mut side, .. } = self;
        side.stopped_well = server.stop()?;
        Ok(side)
    }
}

fn null_command(plan: &Plan) -> impl FnOnce(&str) -> Command {
    let program = plan.programs.join("null_broker");
    move |address| {
        let mut command = Command::new(program);
        command.args(["--listen", address]);
        command
    }
}

fn broker_command(plan: &Plan, data: &Path) -> impl FnOnce(&str) -> Command {
    let dir = data.to_string_lossy();
    move |address| {
        let mut command = Command::new(&plan.broker);
        for argument in &plan.broker_args {
            command.arg(argument.replace("{address}", address).replace("{dir}", &dir));
        }
        command
    }
}

fn calibrate(plan: &Plan) -> io::Result<Calibration> {
    let dir = plan.dir.to_string_lossy();
    let seconds = (plan.seconds / 10.0).clamp(0.2, 2.0).to_string();
    let append_mib = plan.append_mib.to_string();
    let arguments = ["--dir", &dir, "--seconds", &seconds, "--append-mib", &append_mib];
    run_json(&plan.programs.join("calibrate"), &arguments)
        .map_err(|error| context("the machine", "calibration", &error))
}

/// Runs a program of this package and parses the line it prints.
fn run_json<T: for<'de> Deserialize<'de>>(program: &Path, arguments: &[&str]) -> io::Result<T> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout)?)
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}

fn context(who: &str, what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{who}, {what}: {error}"))
}

fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
