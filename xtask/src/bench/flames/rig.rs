//! The programs, the broker under a load, and `perf` beside it.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;

use super::calls::{self, Counts};
use crate::{bench::rivals, broker::Broker, shell, tools, workspace::Workspace};

/// What is started.
#[derive(Debug)]
pub(super) struct Programs {
    broker: PathBuf,
    blaster: PathBuf,
    librdkafka: PathBuf,
}

impl Programs {
    /// Builds a broker whose stacks can be followed, in a folder of its own because its flags are others, and the clients.
    pub(super) fn build(workspace: &Workspace) -> Result<Self, String> {
        tools::debian(&["perf"])?;
        let librdkafka = rivals::load(workspace)?;
        let build = ["build", "--release", "--no-default-features"];
        let blaster = ["--package", "benches", "--bin", "blaster"];
        shell::run(shell::cargo(&workspace.root, &build).args(blaster))?;
        let home = workspace.target.join("bench/flames");
        let mut command = shell::cargo(&workspace.root, &build);
        command.args(["--package", "broker"]).env("CARGO_TARGET_DIR", &home);
        // Lines are for whoever looks closer with `perf annotate`; what is built is the same.
        command.env("RUSTFLAGS", "-C force-frame-pointers=yes");
        command.env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
        shell::run(&mut command)?;
        let blaster = workspace.target.join("release/blaster");
        Ok(Self { broker: home.join("release/broker"), blaster, librdkafka })
    }
}

/// Who sends a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    Blaster,
    Librdkafka,
}

/// A load without its length: the client, its mode first among the arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) client: Client,
    pub(super) arguments: &'static [&'static str],
}

/// What a load says that it did.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) requests_per_s: f64,
    pub(super) records_per_s: f64,
}

impl Outcome {
    /// Requests are 0 where the client does not know them.
    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let number = |field: &str| value.get(field)?.as_f64();
        let seconds = number("seconds").filter(|seconds| *seconds > 0.0)?;
        Some(Self {
            requests_per_s: number("requests")? / seconds,
            records_per_s: number("records")? / seconds,
        })
    }
}

/// A broker with an empty log and one topic; it is killed, and its log removed, when it is dropped.
#[derive(Debug)]
pub(super) struct Rig<'p> {
    programs: &'p Programs,
    /// Of the broker and of what `perf` records.
    folder: PathBuf,
    broker: Broker,
    /// Dropped after the broker.
    _log: Log,
}

impl<'p> Rig<'p> {
    pub(super) fn start(
        programs: &'p Programs,
        folder: &Path,
        settings: &'static str,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(failed)?;
        }
        std::fs::create_dir_all(folder).map_err(failed)?;
        let log = Log(folder.join("data"));
        let broker = Broker::start(&programs.broker, folder, settings, None)?;
        let rig = Self { programs, folder: folder.to_owned(), broker, _log: log };
        // One record makes the topic.
        let _made = rig.run(&["produce", "--batches", "1", "--batch-bytes", "100", "--record-bytes", "1"])?;
        Ok(rig)
    }

    /// Sends so many batches of 1 MB.
    pub(super) fn fill(&self, batches: &str) -> Result<(), String> {
        self.run(&["produce", "--batches", batches]).map(drop)
    }

    /// Runs the blaster until it ends by itself.
    fn run(&self, arguments: &[&str]) -> Result<Outcome, String> {
        finish(self.client(Client::Blaster, arguments)?)
    }

    fn client(&self, client: Client, arguments: &[&str]) -> Result<Child, String> {
        let program = match client {
            Client::Blaster => &self.programs.blaster,
            Client::Librdkafka => &self.programs.librdkafka,
        };
        let mut command = Command::new(program);
        command.args(arguments).args(["--broker", self.broker.address(), "--topic", "load"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        command.spawn().map_err(|error| format!("{}: {error}", program.display()))
    }

    /// Runs a load, and once it has warmed up a command that ends while the load still runs.
    fn under<T>(
        &self,
        load: Load,
        seconds: f64,
        act: impl FnOnce() -> Result<T, String>,
    ) -> Result<(T, Outcome), String> {
        let length = (WARM_UP.as_secs_f64() + seconds + REST_S).to_string();
        let warm_up = WARM_UP.as_secs_f64().to_string();
        let mut arguments = load.arguments.to_vec();
        arguments.extend(["--seconds", &length]);
        if load.arguments.first() != Some(&"drain") {
            arguments.extend(["--warm-up", &warm_up]);
        }
        let mut child = self.client(load.client, &arguments)?;
        std::thread::sleep(WARM_UP);
        let done = act();
        let still_ran = matches!(child.try_wait(), Ok(None));
        let outcome = finish(child)?;
        if still_ran { Ok((done?, outcome)) } else { Err("the load ended before `perf` did".to_owned()) }
    }

    /// What `perf script` prints of the stacks that were seen under a load.
    pub(super) fn record(&self, load: Load, seconds: f64) -> Result<String, String> {
        let file = self.folder.join("perf.data");
        let (id, length) = (self.broker.id().to_string(), seconds.to_string());
        let ((), _outcome) = self.under(load, seconds, || {
            let mut perf = Command::new("perf");
            perf.args(["record", "--quiet", "--event", "cpu-clock", "--freq", FREQUENCY]);
            perf.args(["--call-graph", "fp", "--pid", &id, "--output"]).arg(&file);
            shell::run_quietly(perf.args(["--", "sleep", &length]))
        })?;
        let mut perf = Command::new("perf");
        perf.args(["script", "--no-inline", "--fields", "comm,ip,sym", "--input"]).arg(&file);
        shell::collect(&mut perf)
    }

    /// What the broker called under a load, and what the load did meanwhile.
    pub(super) fn count(&self, load: Load, seconds: f64) -> Result<(Counts, Outcome), String> {
        let listed = shell::collect(Command::new("perf").args(["list", "syscalls:sys_enter_*"]))?;
        let (id, length, events) =
            (self.broker.id().to_string(), seconds.to_string(), calls::events(&listed));
        let file = self.folder.join("perf.txt");
        self.under(load, seconds, || {
            let mut perf = Command::new("perf");
            perf.args(["stat", "--field-separator", ",", "--event", &events, "--pid", &id, "--output"]);
            shell::run_quietly(perf.arg(&file).args(["--", "sleep", &length]))?;
            let text = std::fs::read_to_string(&file);
            text.map(|text| calls::parse(&text)).map_err(|error| format!("{}: {error}", file.display()))
        })
    }
}

/// The folder of a broker's log.
#[derive(Debug)]
struct Log(PathBuf);

impl Drop for Log {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next start.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn finish(child: Child) -> Result<Outcome, String> {
    let output = child.wait_with_output().map_err(|error| format!("a load: {error}"))?;
    let told = String::from_utf8_lossy(&output.stdout);
    match Outcome::parse(&told) {
        Some(outcome) if output.status.success() => Ok(outcome),
        _ => Err(format!("a load failed: {} {}", output.status, told.trim())),
    }
}

/// Before anything is looked at.
const WARM_UP: Duration = Duration::from_secs(2);
/// A load goes on for so long after `perf` should have ended, which takes its time to start.
const REST_S: f64 = 3.0;
/// Samples a second: no multiple of what timers are set to.
const FREQUENCY: &str = "997";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_taken_from_what_a_load_prints() {
        let seen = Outcome::parse(r#"{"seconds":2.0,"requests":10,"records":150,"other":1}"#).unwrap();
        assert!((seen.requests_per_s - 5.0).abs() < 1e-9 && (seen.records_per_s - 75.0).abs() < 1e-9);
        for text in
            ["", "{}", r#"{"seconds":0,"requests":10,"records":150}"#, r#"{"seconds":1,"records":150}"#]
        {
            assert!(Outcome::parse(text).is_none(), "{text}");
        }
    }
}
