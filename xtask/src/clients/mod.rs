//! The foreign clients' steps: [`install`] brings the clients; the rest runs the Python programs in `tests/clients` against the dev-profile broker.
//!
//! Each program starts the broker itself on a free port with a folder of its own, prints one `ok: …` line for each thing
//! that it has seen to hold, and ends with an exit code other than 0 at the first thing that does not.

pub(crate) mod install;

use std::{path::Path, process::Command};

use crate::{shell, test::Tally, tools, workspace::Workspace};

/// One program of `tests/clients`, with the arguments that it gets in the normal and in the long run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    file: &'static str,
    /// Whether it drives the clients that [`install`] brings, and not only those of the Python that it runs in.
    fleet: bool,
    normal: &'static [&'static str],
    long: &'static [&'static str],
}

impl Program {
    /// Runs it; every `ok:` line counts as a passed test.
    pub(crate) fn run(self, workspace: &Workspace, long: bool, tally: &mut Tally) -> Result<(), String> {
        tools::debian(&["kcat", "strace"])?;
        let python = tools::python(workspace)?;
        let broker = tools::broker(workspace)?;
        let scratch = workspace.target.join("clients/scratch");
        std::fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
        let mut command = Command::new(python);
        command.current_dir(&workspace.root).env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg("-u").arg(Path::new("tests/clients").join(self.file));
        command.arg("--broker").arg(broker).arg("--scratch").arg(scratch);
        if self.fleet {
            install::all(workspace)?;
            command.arg("--clients").arg(install::folder(workspace));
        }
        command.args(if long { self.long } else { self.normal });
        let mut seen: u64 = 0;
        let outcome = shell::run_scanned(&mut command, |line| seen += u64::from(line.starts_with("ok: ")));
        tally.passed += seen;
        if outcome.is_ok() && seen == 0 {
            return Err(format!("`{}` checked nothing", self.file));
        }
        outcome
    }
}

/// Produces and consumes with kafka-python and kcat, each also reading what the other wrote.
pub(crate) const ROUND_TRIP: Program =
    Program { file: "round_trip.py", fleet: false, normal: &[], long: &[] };

/// The five programs that the event broker was described with, by each version of the Python clients.
pub(crate) const SEED: Program = Program { file: "seed.py", fleet: true, normal: &[], long: &[] };

/// Every client reads what every client wrote, with every codec, without a group and in one.
pub(crate) const MATRIX: Program = Program { file: "matrix.py", fleet: true, normal: &[], long: &[] };

/// Members of many clients join, leave and are killed, every second.
pub(crate) const REBALANCE: Program =
    Program { file: "rebalance.py", fleet: true, normal: &["--seconds", "20"], long: &["--seconds", "120"] };

/// A group goes on when the broker is killed and started again.
pub(crate) const RESTART: Program = Program { file: "restart.py", fleet: true, normal: &[], long: &[] };

/// Kills the broker with signal 9 while producers are at work, and re-reads everything after each restart.
pub(crate) const KILL: Program =
    Program { file: "kill.py", fleet: false, normal: &["--rounds", "5"], long: &["--rounds", "20"] };

/// Reads in a system call trace that no acknowledgement leaves before its sync returned.
pub(crate) const SYNC_ORDER: Program =
    Program { file: "sync_order.py", fleet: false, normal: &[], long: &[] };

/// Thousands of idle, slow and stalled connections beside clients that must not notice.
pub(crate) const HOSTILE: Program =
    Program { file: "hostile.py", fleet: false, normal: &[], long: &["--seconds", "60"] };

/// A log far larger than the memory budget is fetched completely.
pub(crate) const GREAT_LOG: Program = Program {
    file: "great_log.py",
    fleet: false,
    normal: &["--megabytes", "512"],
    long: &["--megabytes", "4096"],
};
