//! The foreign clients' step: runs the Python programs in `tests/clients` against the dev-profile broker.
//!
//! Each program starts the broker itself on a free port with a folder of its own, prints one `ok: …` line for each thing
//! that it has seen to hold, and ends with an exit code other than 0 at the first thing that does not.

use std::{path::Path, process::Command};

use crate::{shell, test::Tally, tools, workspace::Workspace};

/// One program of `tests/clients`, with the arguments that it gets in the normal and in the long run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    file: &'static str,
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
pub(crate) const ROUND_TRIP: Program = Program { file: "round_trip.py", normal: &[], long: &[] };

/// Kills the broker with signal 9 while producers are at work, and re-reads everything after each restart.
pub(crate) const KILL: Program =
    Program { file: "kill.py", normal: &["--rounds", "5"], long: &["--rounds", "20"] };

/// Reads in a system call trace that no acknowledgement leaves before its sync returned.
pub(crate) const SYNC_ORDER: Program = Program { file: "sync_order.py", normal: &[], long: &[] };

/// Thousands of idle, slow and stalled connections beside clients that must not notice.
pub(crate) const HOSTILE: Program = Program { file: "hostile.py", normal: &[], long: &["--seconds", "60"] };

/// A log far larger than the memory budget is fetched completely.
pub(crate) const GREAT_LOG: Program =
    Program { file: "great_log.py", normal: &["--megabytes", "512"], long: &["--megabytes", "4096"] };
