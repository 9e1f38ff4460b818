//! The foreign clients' steps: [`install`] brings the clients; the rest runs the Python programs in `tests/clients` against the dev-profile broker.
//!
//! Each program starts the broker itself on a free port with a folder of its own, prints one `ok: …` line for each thing
//! that it has seen to hold, and ends with an exit code other than 0 at the first thing that does not.

pub(crate) mod install;
pub(crate) mod lean;
pub(crate) mod notifier;

use std::{path::Path, process::Command};

use crate::{shell, test::Tally, tools, workspace::Workspace};

/// One program of `tests/clients`, with the arguments that it gets in the normal and in the long run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    file: &'static str,
    needs: Needs,
    normal: &'static [&'static str],
    long: &'static [&'static str],
}

/// The clients that a program drives, besides kcat.
#[derive(Debug, Clone, Copy)]
enum Needs {
    /// kafka-python, in the Python that it runs in.
    Kafka,
    /// All that [`install`] brings.
    Fleet,
    /// kafka-python and libraries that ask in SQL, in the Python that it runs in, and `psql`.
    Sql,
    /// Clients of S3 and kafka-python, in the Python that it runs in.
    Storage,
}

impl Program {
    /// Runs it; every `ok:` line counts as a passed test.
    pub(crate) fn run(self, workspace: &Workspace, long: bool, tally: &mut Tally) -> Result<(), String> {
        self.run_on(&tools::broker(workspace)?, workspace, long, tally)
    }

    /// Runs it with this program as the broker.
    fn run_on(
        self,
        broker: &Path,
        workspace: &Workspace,
        long: bool,
        tally: &mut Tally,
    ) -> Result<(), String> {
        tools::debian(&["kcat", "strace"])?;
        let python = match self.needs {
            Needs::Kafka | Needs::Fleet => tools::python(workspace)?,
            Needs::Storage => install::python(workspace, STORAGE)?,
            Needs::Sql => {
                tools::debian(&["psql"])?;
                install::python(workspace, DOORS)?
            }
        };
        let scratch = workspace.target.join("clients/scratch");
        std::fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
        let mut command = Command::new(python);
        command.current_dir(&workspace.root).env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg("-u").arg(Path::new("tests/clients").join(self.file));
        command.arg("--broker").arg(broker).arg("--scratch").arg(scratch);
        if matches!(self.needs, Needs::Fleet) {
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
    Program { file: "round_trip.py", needs: Needs::Kafka, normal: &[], long: &[] };

/// The five programs that the event broker was described with, by each version of the Python clients.
pub(crate) const SEED: Program = Program { file: "seed.py", needs: Needs::Fleet, normal: &[], long: &[] };

/// Every client reads what every client wrote, with every codec, without a group and in one.
pub(crate) const MATRIX: Program = Program { file: "matrix.py", needs: Needs::Fleet, normal: &[], long: &[] };

/// Members of many clients join, leave and are killed, every second.
pub(crate) const REBALANCE: Program = Program {
    file: "rebalance.py",
    needs: Needs::Fleet,
    normal: &["--seconds", "20"],
    long: &["--seconds", "120"],
};

/// A group goes on when the broker is killed and started again.
pub(crate) const RESTART: Program =
    Program { file: "restart.py", needs: Needs::Fleet, normal: &[], long: &[] };

/// Kills the broker with signal 9 while producers are at work, and re-reads everything after each restart.
pub(crate) const KILL: Program =
    Program { file: "kill.py", needs: Needs::Kafka, normal: &["--rounds", "5"], long: &["--rounds", "20"] };

/// Reads in a system call trace that no acknowledgement leaves before its sync returned.
pub(crate) const SYNC_ORDER: Program =
    Program { file: "sync_order.py", needs: Needs::Kafka, normal: &[], long: &[] };

/// Thousands of idle, slow and stalled connections beside clients that must not notice.
pub(crate) const HOSTILE: Program =
    Program { file: "hostile.py", needs: Needs::Kafka, normal: &[], long: &["--seconds", "60"] };

/// A log far larger than the memory budget is fetched completely.
pub(crate) const GREAT_LOG: Program = Program {
    file: "great_log.py",
    needs: Needs::Kafka,
    normal: &["--megabytes", "512"],
    long: &["--megabytes", "4096"],
};

/// The same statements with the same answers through `broker sql`, ADBC, psql and psycopg, while a producer writes.
pub(crate) const SQL: Program = Program { file: "sql.py", needs: Needs::Sql, normal: &[], long: &[] };

/// What was flushed is in the answer to the next question.
pub(crate) const FRESH: Program = Program {
    file: "fresh.py",
    needs: Needs::Sql,
    normal: &["--rounds", "500"],
    long: &["--rounds", "10000"],
};

/// The folder of `tests/clients` with the lock file of what asks in SQL.
const DOORS: &str = "doors";
/// That of the clients of S3.
const STORAGE: &str = "storage";
