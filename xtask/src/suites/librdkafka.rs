//! librdkafka's own tests, from the npm package that carries its source.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::Value;

use super::{
    Home, List, Run, Suite,
    home::{headers, jobs},
    outcome::Outcome,
    process::Ended,
};
use crate::{shell, tools};

/// The suite.
#[derive(Debug)]
pub(super) struct Librdkafka;

impl Suite for Librdkafka {
    fn name(&self) -> &'static str {
        "librdkafka"
    }

    fn threshold(&self) -> (usize, usize) {
        (80, 108)
    }

    fn prepare(&self, home: &Home<'_>) -> Result<(), String> {
        tools::debian(&["npm", "make", "gcc", "g++", "pkg-config"])?;
        headers(&[
            ("zlib.h", "zlib1g-dev"),
            ("openssl/ssl.h", "libssl-dev"),
            ("zstd.h", "libzstd-dev"),
            ("rapidjson/document.h", "rapidjson-dev"),
        ])?;
        super::kafka_python::environment(home)?;
        home.once(PACKAGE, |folder| {
            shell::run(Command::new("npm").current_dir(folder).args(["pack", PACKAGE]))?;
            home.checksum(ARCHIVE, ARCHIVE_SHA256)?;
            shell::run(Command::new("tar").current_dir(folder).args(["xzf", ARCHIVE, SOURCE]))?;
            let source = folder.join(SOURCE);
            let configure = ["--disable-gssapi", "--disable-curl"];
            shell::run(Command::new(source.join("configure")).current_dir(&source).args(configure))?;
            for (part, goal) in [("src", "all"), ("src-cpp", "all"), ("tests", "build")] {
                shell::run(Command::new("make").current_dir(&source).args([
                    "-j",
                    &jobs(),
                    "-C",
                    part,
                    goal,
                ]))?;
            }
            Ok(())
        })
    }

    /// The runner takes numbers, so tests of one number share a process.
    fn runs(&self, _: &Home<'_>, list: &List) -> Result<Vec<Run>, String> {
        let mut runs: Vec<Run> = Vec::new();
        for scenario in [DEFAULT, NO_AUTO_CREATE, MANUAL] {
            for name in list.names().filter(|name| scenario_of(name) == scenario) {
                let number = name.split('_').next().unwrap_or(name);
                let id = format!("{scenario} {number}");
                match runs.last_mut().filter(|run| run.id == id) {
                    Some(run) => run.tests.push(name.to_owned()),
                    None => runs.push(Run {
                        id,
                        tests: vec![name.to_owned()],
                        settings: if scenario == DEFAULT {
                            AUTO_CREATE_SETTINGS
                        } else {
                            NO_AUTO_CREATE_SETTINGS
                        },
                        port: None,
                        timeout: TIMEOUT,
                    }),
                }
            }
        }
        Ok(runs)
    }

    fn command(&self, home: &Home<'_>, run: &Run, address: &str) -> Result<Command, String> {
        let (scenario, number) = run.id.split_once(' ').unwrap_or_default();
        let source = home.folder().join(SOURCE);
        home.keep("test.conf", &format!("metadata.broker.list={address}\n"))?;
        let report = source.join("tests").join(REPORT);
        if report.exists() {
            std::fs::remove_file(&report).map_err(|error| format!("{}: {error}", report.display()))?;
        }
        let mut command = Command::new("./test-runner");
        command.current_dir(source.join("tests")).args(["-L", "-Q", "-p1", "-s", scenario]);
        command.env("TESTS", number).env("TEST_KAFKA_VERSION", "4.0.0").env("TEST_REPORT", REPORT);
        command.env("RDKAFKA_TEST_CONF", home.folder().join("test.conf"));
        // The runner would else find another librdkafka that the machine may have.
        command.env("LD_LIBRARY_PATH", libraries(&source)?);
        command.env("BROKERS", address).env("KAFKA_PATH", home.checked_in().join("kafka"));
        command.env("SUITES_PYTHON", super::kafka_python::environment(home)?);
        Ok(command)
    }

    fn outcomes(&self, home: &Home<'_>, run: &Run, ended: &Ended) -> Vec<(String, Outcome)> {
        let report = std::fs::read(home.folder().join(SOURCE).join("tests").join(REPORT)).unwrap_or_default();
        let report: Value = serde_json::from_slice(&report).unwrap_or_default();
        let outcome = |name: &str| outcome(name, &report, ended);
        run.tests.iter().map(|name| (name.clone(), outcome(name))).collect()
    }
}

/// What kind of cluster a test wants. No test is of the scenario of the manual ones, so that they are skipped: the
/// runner, when told to, would run them for ever.
fn scenario_of(name: &str) -> &'static str {
    match name {
        _ if NO_AUTO_CREATE_TESTS.contains(&name) => NO_AUTO_CREATE,
        _ if name.starts_with('8') => MANUAL,
        _ => DEFAULT,
    }
}

/// What the report says of a test. A runner that ends badly has seen something that its report does not tell.
fn outcome(name: &str, report: &Value, ended: &Ended) -> Outcome {
    let state = |test: &Value| test.get("state").and_then(Value::as_str).unwrap_or_default().to_owned();
    let tests = report.get("tests");
    let of_test = tests.and_then(|tests| tests.get(name)).map(state).unwrap_or_default();
    let failed = |test: &Value| matches!(state(test).as_str(), "FAILED" | "RUNNING");
    let any_failed = tests.and_then(Value::as_object).is_some_and(|tests| tests.values().any(failed));
    match of_test.as_str() {
        "PASSED" if ended.code == Some(0) || any_failed => {
            skipped(name, &ended.output).map_or(Outcome::Passed, Outcome::Skipped)
        }
        "PASSED" => Outcome::Failed(failure("<MAIN>", ended)),
        "SKIPPED" => {
            Outcome::Skipped(skipped(name, &ended.output).unwrap_or_else(|| "not run by default".to_owned()))
        }
        _ => Outcome::Failed(failure(name, ended)),
    }
}

/// Why a test says that it was skipped.
///
/// `line => … "[" name blank* "/" … "] WARN: SKIPPING TEST: " reason`
fn skipped(name: &str, output: &str) -> Option<String> {
    output.lines().find_map(|line| {
        let (before, reason) = line.split_once("WARN: SKIPPING TEST: ")?;
        let (_, test) = before.rsplit_once('[')?;
        (test.split(['/', ' ']).next() == Some(name)).then(|| plain(reason))
    })
}

/// Why a test says that it failed: the line after the one that tells its name.
fn failure(name: &str, ended: &Ended) -> String {
    let title = format!("### Test \"{name}");
    let mut lines = ended.output.lines().skip_while(|line| !line.contains(&title));
    lines.nth(1).map_or_else(|| ended.reason(), plain)
}

/// A line without the codes that colour it.
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    text.trim().to_owned()
}

fn libraries(source: &Path) -> Result<std::ffi::OsString, String> {
    let folders: [PathBuf; 2] = [source.join("src"), source.join("src-cpp")];
    std::env::join_paths(folders).map_err(|error| format!("{}: {error}", source.display()))
}

const PACKAGE: &str = "@confluentinc/kafka-javascript@1.10.1";
const ARCHIVE: &str = "confluentinc-kafka-javascript-1.10.1.tgz";
const ARCHIVE_SHA256: &str = "ada7d703bb1d3237e2292bfabf438d663b6160c9f1ac2a2406b5dc4257c81b66";
const SOURCE: &str = "package/deps/librdkafka";
const REPORT: &str = "kolumn-report.json";
const TIMEOUT: Duration = Duration::from_mins(3);

const DEFAULT: &str = "default";
const NO_AUTO_CREATE: &str = "noautocreate";
const MANUAL: &str = "manual";

/// The tests that their authors run only against a cluster that creates no topic by itself.
const NO_AUTO_CREATE_TESTS: &[&str] = &[
    "0045_subscribe_update_non_exist_and_partchange",
    "0045_subscribe_update_topic_remove",
    "0107_topic_recreate",
    "0111_delay_create_topics",
];

// As the suite's own clusters have it: four partitions a topic, and members that start together join together.
const AUTO_CREATE_SETTINGS: &str =
    "[topics]\nauto_create = true\ndefault_partitions = 4\n\n[groups]\ninitial_rebalance_delay_ms = 100\n";
const NO_AUTO_CREATE_SETTINGS: &str =
    "[topics]\nauto_create = false\ndefault_partitions = 4\n\n[groups]\ninitial_rebalance_delay_ms = 100\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(report: &str, code: i32, output: &str, expected: &Outcome) {
        let report: Value = serde_json::from_str(report).expect("JSON");
        let ended = Ended { code: Some(code), timed_out: code == 124, output: output.to_owned() };
        assert_eq!(outcome("0012_produce", &report, &ended), *expected);
    }

    #[test]
    fn the_report_tells_what_passed() {
        check(r#"{"tests": {"0012_produce": {"state": "PASSED"}}}"#, 0, "", &Outcome::Passed);
    }

    #[test]
    fn a_skip_has_the_reason_that_the_test_gives() {
        let output = "\u{1b}[33m[0012_produce_more  /  0.0s] WARN: SKIPPING TEST: wrong\n\
                      \u{1b}[33m[0012_produce       /  0.0s] WARN: SKIPPING TEST: needs TLS \u{1b}[0m\n";
        let skipped = Outcome::Skipped("needs TLS".to_owned());
        check(r#"{"tests": {"0012_produce": {"state": "SKIPPED"}}}"#, 0, output, &skipped);
        check(r#"{"tests": {"0012_produce": {"state": "PASSED"}}}"#, 0, output, &skipped);
    }

    #[test]
    fn a_failure_has_the_line_after_its_title() {
        let output =
            "\u{1b}[31m### Test \"0012_produce (sub)\" failed at x.c:57: ###\nno \u{1b}[0msuch topic\n";
        let failed = Outcome::Failed("no such topic".to_owned());
        check(r#"{"tests": {"0012_produce": {"state": "FAILED"}}}"#, 1, output, &failed);
        check("{}", 134, output, &failed);
    }

    #[test]
    fn a_runner_that_ends_badly_after_a_pass_is_a_failure() {
        let output = "### Test \"<MAIN>\" failed at x.c:1: ###\n3 threads left\n";
        let failed = Outcome::Failed("3 threads left".to_owned());
        check(r#"{"tests": {"0012_produce": {"state": "PASSED"}}}"#, 134, output, &failed);
        let beside = r#"{"tests": {"0012_produce": {"state": "PASSED"}, "0012_b": {"state": "FAILED"}}}"#;
        check(beside, 1, output, &Outcome::Passed);
    }

    #[test]
    fn a_runner_that_says_nothing_is_a_failure() {
        check("null", 124, "", &Outcome::Failed("timed out".to_owned()));
    }
}
