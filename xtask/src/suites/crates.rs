//! The tests of Rust clients, from their crates.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::Value;

use super::{Home, List, Run, Suite, home::headers, outcome::Outcome, process::Ended};
use crate::{shell, tools};

/// A crate whose tests want a broker.
#[derive(Debug)]
pub(super) struct Crate {
    name: &'static str,
    package: &'static str,
    version: &'static str,
    threshold: (usize, usize),
    /// The test targets that are built, each with the filter of libtest that chooses among its tests.
    targets: &'static [&'static str],
    /// Packages of its lock file that are too old for this toolchain, with the version to take.
    updates: &'static [(&'static str, &'static str)],
    /// The variable that takes the broker's address, and the others.
    address: &'static str,
    variables: &'static [(&'static str, &'static str)],
    settings: &'static str,
    /// The only port that its tests know.
    port: Option<u16>,
}

/// rskafka. What needs a SOCKS proxy, SASL or a Java client returns early and counts as passed.
pub(super) const RSKAFKA: Crate = Crate {
    name: "rskafka",
    package: "rskafka",
    version: "0.6.0",
    threshold: (58, 58),
    targets: &["client", "consumer", "produce_consume", "producer"],
    updates: &[("rsasl", "2.3.1")],
    address: "KAFKA_CONNECT",
    variables: &[("TEST_INTEGRATION", "1"), ("TEST_BROKER_IMPL", "kafka")],
    settings: "[topics]\nauto_create = false\n\n[groups]\ninitial_rebalance_delay_ms = 0\n",
    port: None,
};

/// rust-rdkafka, with the librdkafka that its crate carries. Some of its tests expect node 0 on `localhost:9092`.
pub(super) const RUST_RDKAFKA: Crate = Crate {
    name: "rust-rdkafka",
    package: "rdkafka",
    version: "0.39.0",
    threshold: (36, 43),
    targets: &[
        "test_admin",
        "test_high_consumers",
        "test_high_producers",
        "test_low_consumers",
        "test_low_producers",
        "test_metadata",
        "test_topic_partition_list",
        "test_transactions",
    ],
    updates: &[],
    address: "KAFKA_HOST",
    variables: &[("KAFKA_VERSION", "4.0.0")],
    settings: "node_id = 0\n\n[topics]\ndefault_partitions = 3\n\n[groups]\ninitial_rebalance_delay_ms = 0\n",
    port: Some(9092),
};

impl Suite for Crate {
    fn name(&self) -> &'static str {
        self.name
    }

    fn threshold(&self) -> (usize, usize) {
        self.threshold
    }

    fn prepare(&self, home: &Home<'_>) -> Result<(), String> {
        tools::debian(&["make", "gcc", "g++", "cmake"])?;
        headers(&[("zlib.h", "zlib1g-dev")])?;
        home.once(&format!("{} {}", self.package, self.version), |folder| {
            let unpacked = folder.join("source");
            copy_folder(&self.download(folder)?, &unpacked)?;
            // The crate's own choice of a toolchain would be downloaded; and it is no member of our workspace.
            let toolchain = unpacked.join("rust-toolchain.toml");
            if toolchain.exists() {
                std::fs::remove_file(&toolchain)
                    .map_err(|error| format!("{}: {error}", toolchain.display()))?;
            }
            append(&unpacked.join("Cargo.toml"), "\n[workspace]\n")?;
            for (package, version) in self.updates {
                let update = ["update", "--quiet", "--package", package, "--precise", version];
                shell::run(&mut shell::cargo(&unpacked, &update))?;
            }
            shell::run(self.build(&unpacked).arg("--quiet"))
        })
    }

    fn runs(&self, home: &Home<'_>, _: &List) -> Result<Vec<Run>, String> {
        let mut runs = Vec::new();
        for (target, program) in self.programs(home)? {
            let listed = shell::collect(Command::new(&program).args(["--list", "--format", "terse"]))?;
            // What the targets share is in each of them.
            let own = |test: &&str| !test.starts_with("utils::");
            for test in listed.lines().filter_map(|line| line.strip_suffix(": test")).filter(own) {
                runs.push(Run {
                    id: format!("{} {test}", program.display()),
                    tests: vec![format!("{target}::{test}")],
                    settings: self.settings,
                    port: self.port,
                    timeout: TIMEOUT,
                });
            }
        }
        Ok(runs)
    }

    fn command(&self, home: &Home<'_>, run: &Run, address: &str) -> Result<Command, String> {
        let (program, test) = run.id.rsplit_once(' ').unwrap_or_default();
        let mut command = Command::new(program);
        command.current_dir(home.folder().join("source")).args(["--exact", test, "--test-threads=1"]);
        command.env(self.address, address).envs(self.variables.iter().copied());
        Ok(command)
    }

    fn outcomes(&self, _: &Home<'_>, run: &Run, ended: &Ended) -> Vec<(String, Outcome)> {
        run.tests.iter().map(|test| (test.clone(), outcome(ended))).collect()
    }
}

impl Crate {
    /// Has cargo fetch the crate for a package that depends on it, and returns where cargo keeps it.
    fn download(&self, folder: &Path) -> Result<PathBuf, String> {
        let fetching = folder.join("fetch");
        let failed = |error: std::io::Error| format!("{}: {error}", fetching.display());
        std::fs::create_dir_all(fetching.join("src")).map_err(failed)?;
        std::fs::write(fetching.join("src/lib.rs"), "").map_err(failed)?;
        let manifest = format!(
            "[package]\nname = \"fetch\"\nedition = \"2024\"\n\n[dependencies]\n{} = \"={}\"\n\n[workspace]\n",
            self.package, self.version
        );
        std::fs::write(fetching.join("Cargo.toml"), manifest).map_err(failed)?;
        let metadata = shell::collect(&mut shell::cargo(&fetching, &["metadata", "--format-version", "1"]))?;
        let metadata: Value =
            serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
        let packages =
            metadata.get("packages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let wanted =
            packages.iter().find(|package| package.get("name").and_then(Value::as_str) == Some(self.package));
        let manifest = wanted.and_then(|package| package.get("manifest_path")).and_then(Value::as_str);
        let kept = manifest.and_then(|file| Path::new(file).parent());
        kept.map(Path::to_path_buf).ok_or_else(|| format!("cargo fetched no `{}`", self.package))
    }

    fn build(&self, source: &Path) -> Command {
        let mut command = shell::cargo(source, &["test", "--locked", "--no-run"]);
        for target in self.targets {
            command.args(["--test", target]);
        }
        command.env("CARGO_TARGET_DIR", source.join("target"));
        command
    }

    /// The built programs, by target.
    fn programs(&self, home: &Home<'_>) -> Result<Vec<(String, PathBuf)>, String> {
        let mut command = self.build(&home.folder().join("source"));
        let messages = shell::collect(command.args(["--quiet", "--message-format", "json"]))?;
        let program = |line: &str| {
            let message: Value = serde_json::from_str(line).ok()?;
            let target = message.get("target")?.get("name")?.as_str()?.to_owned();
            Some((target, PathBuf::from(message.get("executable")?.as_str()?)))
        };
        let mut programs: Vec<(String, PathBuf)> = messages.lines().filter_map(program).collect();
        programs.retain(|(target, _)| self.targets.contains(&target.as_str()));
        programs.sort();
        Ok(programs)
    }
}

/// What libtest says, and why a test panicked: the line after the one that tells where.
fn outcome(ended: &Ended) -> Outcome {
    if ended.code == Some(0) && ended.output.contains("test result: ok. 1 passed") {
        return Outcome::Passed;
    }
    if ended.code == Some(0) && ended.output.contains("; 1 ignored") {
        return Outcome::Skipped("ignored by its authors".to_owned());
    }
    let mut lines = ended.output.lines().skip_while(|line| !line.contains("panicked at"));
    let panic = lines.nth(1).map(|line| line.trim().to_owned());
    Outcome::Failed(match panic {
        Some(reason) if !ended.timed_out => reason,
        _ => ended.reason(),
    })
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    std::fs::create_dir_all(to).map_err(failed)?;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (source, goal) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().map_err(failed)?.is_dir() {
            copy_folder(&source, &goal)?;
        } else {
            std::fs::copy(&source, &goal).map_err(failed)?;
        }
    }
    Ok(())
}

fn append(file: &Path, text: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let before = std::fs::read_to_string(file).map_err(failed)?;
    std::fs::write(file, before + text).map_err(failed)
}

const TIMEOUT: Duration = Duration::from_mins(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: i32, output: &str, expected: &Outcome) {
        let ended = Ended { code: Some(code), timed_out: code == 124, output: output.to_owned() };
        assert_eq!(outcome(&ended), *expected);
    }

    #[test]
    fn one_test_that_passed_is_a_pass_and_none_is_a_failure() {
        check(0, "test result: ok. 1 passed; 0 failed; 0 ignored", &Outcome::Passed);
        check(
            0,
            "test result: ok. 0 passed; 0 failed; 0 ignored",
            &Outcome::Failed("exit code 0".to_owned()),
        );
        let skipped = Outcome::Skipped("ignored by its authors".to_owned());
        check(0, "test result: ok. 0 passed; 0 failed; 1 ignored", &skipped);
    }

    #[test]
    fn a_panic_has_the_line_after_its_place() {
        let output = "thread 'a' panicked at tests/a.rs:1:1:\nno such topic\nnote: more\n";
        check(101, output, &Outcome::Failed("no such topic".to_owned()));
        check(124, output, &Outcome::Failed("timed out".to_owned()));
        check(139, "", &Outcome::Failed("exit code 139".to_owned()));
    }
}
