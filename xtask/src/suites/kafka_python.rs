//! kafka-python's integration tests, from its source distribution.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use super::{Home, List, Run, Suite, home::virtual_environment, outcome::Outcome, process::Ended};
use crate::shell;

/// The suite.
#[derive(Debug)]
pub(super) struct KafkaPython;

impl Suite for KafkaPython {
    fn name(&self) -> &'static str {
        "kafka-python"
    }

    fn threshold(&self) -> (usize, usize) {
        (45, 67)
    }

    fn prepare(&self, home: &Home<'_>) -> Result<(), String> {
        let python = environment(home)?;
        let requirements = home.checked_in().join("kafka-python-source.txt");
        home.once(&read(&requirements)?, |folder| {
            let mut download = Command::new(&python);
            download.current_dir(folder).args([
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--require-hashes",
            ]);
            shell::run(download.args(["--no-binary", "kafka-python", "--requirement"]).arg(&requirements))?;
            shell::run(Command::new("tar").current_dir(folder).args(["xzf", &format!("{SOURCE}.tar.gz")]))?;
            // The distribution leaves out the tests' package file and the module that starts servers.
            let tests = folder.join(SOURCE).join("test");
            copy(&home.checked_in().join("kafka_python_shim/service.py"), &tests.join("service.py"))?;
            std::fs::write(tests.join("__init__.py"), "")
                .map_err(|error| format!("{}: {error}", tests.display()))
        })
    }

    fn runs(&self, home: &Home<'_>, _: &List) -> Result<Vec<Run>, String> {
        let mut collect = pytest(home, "127.0.0.1:1")?;
        let listed = shell::collect(collect.args([FOLDER, "--collect-only"]))?;
        let ids = listed.lines().filter(|line| line.contains("::"));
        let run = |id: &str| Run {
            id: id.to_owned(),
            tests: vec![name(id)],
            settings: SETTINGS,
            port: None,
            timeout: TIMEOUT,
        };
        Ok(ids.map(run).collect())
    }

    fn command(&self, home: &Home<'_>, run: &Run, address: &str) -> Result<Command, String> {
        let mut command = pytest(home, address)?;
        command.args(["-rA", "--tb=short", &run.id]);
        Ok(command)
    }

    fn outcomes(&self, _: &Home<'_>, run: &Run, ended: &Ended) -> Vec<(String, Outcome)> {
        run.tests.iter().map(|test| (test.clone(), outcome(ended))).collect()
    }
}

/// pytest in the suite's folder, with what its fixtures want to know.
fn pytest(home: &Home<'_>, address: &str) -> Result<Command, String> {
    let mut command = Command::new(environment(home)?);
    command.current_dir(home.folder().join(SOURCE)).args(["-m", "pytest", "-q", "--disable-warnings"]);
    command.env("KAFKA_VERSION", "4.2.0").env("KAFKA_URI", format!("kafka://{address}"));
    command.env("KAFKA_ROOT", home.checked_in().join("kafka")).env("COLUMNS", "1000");
    Ok(command)
}

/// A Python with kafka-python and what its tests need, in a virtual environment that the suites share.
pub(super) fn environment(home: &Home<'_>) -> Result<PathBuf, String> {
    let requirements = home.checked_in().join("requirements.txt");
    let folder = home.workspace.target.join("suites/venv");
    let (python, stamp, wanted) =
        (folder.join("bin/python"), folder.join("installed.txt"), read(&requirements)?);
    if python.is_file() && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    virtual_environment(&folder)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    shell::run(install.arg(&requirements))?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python)
}

/// `test/integration/test_a.py::test_b` is listed as `test_a::test_b`.
fn name(id: &str) -> String {
    id.trim_start_matches(FOLDER).trim_start_matches('/').replacen(".py::", "::", 1)
}

/// What pytest's summary says.
///
/// `line => ("PASSED" | "SKIPPED" | "FAILED" | "ERROR") " " id [" - " reason]`, where a skip has `[count] file:line: reason`
fn outcome(ended: &Ended) -> Outcome {
    let after = |word: &str| ended.output.lines().rev().find_map(|line| line.strip_prefix(word));
    let reason =
        |line: &str| line.split_once(" - ").map_or_else(|| ended.reason(), |(_, reason)| reason.to_owned());
    if let Some(line) = after("FAILED ").or_else(|| after("ERROR ")) {
        return Outcome::Failed(reason(line));
    }
    match (ended.code, after("PASSED "), after("SKIPPED ")) {
        (Some(0), Some(_), _) => Outcome::Passed,
        (Some(0), None, Some(line)) => {
            Outcome::Skipped(line.split_once(": ").map_or(line, |(_, reason)| reason).to_owned())
        }
        _ => Outcome::Failed(ended.reason()),
    }
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::copy(from, to).map_err(|error| format!("{}: {error}", from.display()))?;
    Ok(())
}

const SOURCE: &str = "kafka_python-3.0.12";
const FOLDER: &str = "test/integration";
const TIMEOUT: Duration = Duration::from_mins(1);
// Some of its tests want node 0, and sessions that end after three seconds.
const SETTINGS: &str = "node_id = 0\n\n[topics]\ndefault_partitions = 4\n\n[groups]\ninitial_rebalance_delay_ms = 0\nsession_timeout_min_ms = 1000\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: i32, output: &str, expected: &Outcome) {
        let ended = Ended { code: Some(code), timed_out: code == 124, output: output.to_owned() };
        assert_eq!(outcome(&ended), *expected);
    }

    #[test]
    fn the_summary_tells_the_outcome() {
        check(0, "PASSED test/a.py::test_b\n1 passed in 0.1s\n", &Outcome::Passed);
        let skipped = Outcome::Skipped("needs TLS".to_owned());
        check(0, "SKIPPED [1] test/a.py:12: needs TLS\n1 skipped in 0.1s\n", &skipped);
        let failed = Outcome::Failed("KafkaError: no".to_owned());
        check(1, "FAILED test/a.py::test_b - KafkaError: no\n", &failed);
        check(1, "PASSED test/a.py::test_b\nERROR test/a.py::test_b - KafkaError: no\n", &failed);
    }

    #[test]
    fn a_run_without_a_summary_failed() {
        check(0, "", &Outcome::Failed("exit code 0".to_owned()));
        check(124, "", &Outcome::Failed("timed out".to_owned()));
        check(2, "PASSED test/a.py::test_b\n", &Outcome::Failed("exit code 2".to_owned()));
    }

    #[test]
    fn the_folder_and_the_suffix_are_left_out_of_names() {
        assert_eq!(name("test/integration/test_a.py::Case::test_b[1.py]"), "test_a::Case::test_b[1.py]");
    }
}
