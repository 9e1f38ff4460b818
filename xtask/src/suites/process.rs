//! A process that is stopped after a while, with its output in a file.

use std::{
    fs::File,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// A process that has ended, by itself or not.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its exit code, if it ended by itself and not by a signal.
    pub(super) code: Option<i32>,
    /// Whether its time was over.
    pub(super) timed_out: bool,
    /// What it wrote to both outputs.
    pub(super) output: String,
}

impl Ended {
    /// Why a process that says nothing of its own did not do well.
    pub(super) fn reason(&self) -> String {
        match self.code {
            _ if self.timed_out => "timed out".to_owned(),
            Some(code) => format!("exit code {code}"),
            None => "killed by a signal".to_owned(),
        }
    }
}

/// Runs a program, with what it starts, for at most `timeout`; `log` receives its output.
pub(super) fn run(command: &mut Command, log: &Path, timeout: Duration) -> Result<Ended, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", log.display());
    let mut timed = Command::new("timeout");
    // The signal goes to the whole group that `timeout` makes; the second one cannot be caught.
    timed.arg("--kill-after=5").arg(timeout.as_secs().to_string());
    timed.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        timed.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => timed.env(name, value),
            None => timed.env_remove(name),
        };
    }
    let output = File::create(log).map_err(failed)?;
    let errors = output.try_clone().map_err(failed)?;
    let status = timed.stdin(Stdio::null()).stdout(output).stderr(errors).status();
    let code = status.map_err(|error| format!("`timeout`: {error}"))?.code();
    let output = std::fs::read(log).map_err(failed)?;
    // 137 is also what a process that was killed from elsewhere ends with; both are a test that did not end.
    let timed_out = matches!(code, Some(124 | 137));
    Ok(Ended { code, timed_out, output: String::from_utf8_lossy(&output).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, seconds: u64, reason: &str) -> String {
        let folder = std::env::temp_dir().join(format!("suites-process-{}-{seconds}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(&folder).env("WORD", "given");
        let ended = run(&mut command, &folder.join("log"), Duration::from_secs(seconds)).expect("it runs");
        std::fs::remove_dir_all(&folder).expect("the folder goes");
        assert_eq!(ended.reason(), reason);
        ended.output
    }

    #[test]
    fn output_environment_and_exit_code_arrive() {
        assert_eq!(check("echo $WORD; echo too >&2; exit 3", 20, "exit code 3"), "given\ntoo\n");
    }

    #[test]
    fn a_process_that_does_not_end_is_stopped() {
        check("echo begun; sleep 600", 1, "timed out");
    }
}
