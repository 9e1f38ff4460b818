//! What the steps of a test run came to: counted, timed, printed as a table and as one closing line.

use std::{path::Path, time::Duration};

/// How many tests a step saw pass and fail.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    /// Adds the numbers of a closing line of cargo's test runner; other lines count nothing.
    pub(crate) fn count(&mut self, line: &str) {
        let Some((_, numbers)) = line.split_once("test result: ") else { return };
        for part in numbers.split([';', '.']) {
            let mut words = part.split_whitespace();
            match (words.next().and_then(|number| number.parse::<u64>().ok()), words.next()) {
                (Some(number), Some("passed")) => self.passed += number,
                (Some(number), Some("failed")) => self.failed += number,
                _ => {}
            }
        }
    }
}

/// What one step came to.
#[derive(Debug)]
pub(super) struct Outcome {
    name: &'static str,
    took: Duration,
    tally: Tally,
    error: Option<String>,
}

impl Outcome {
    /// A step without tests of its own counts as one; a step that failed counts as at least one failure.
    pub(super) fn new(name: &'static str, took: Duration, mut tally: Tally, error: Option<String>) -> Self {
        if error.is_some() {
            tally.failed = tally.failed.max(1);
        } else if tally.passed == 0 {
            tally.passed = 1;
        }
        if let Some(message) = &error {
            println!("{name}: {message}");
        }
        Self { name, took, tally, error }
    }
}

/// All steps of a run.
#[derive(Debug, Default)]
pub(super) struct Report {
    outcomes: Vec<Outcome>,
}

impl Report {
    pub(super) fn add(&mut self, outcome: Outcome) {
        println!("<== {} took {:.1} s", outcome.name, outcome.took.as_secs_f64());
        self.outcomes.push(outcome);
    }

    pub(super) fn passed(&self) -> bool {
        self.outcomes.iter().all(|outcome| outcome.error.is_none() && outcome.tally.failed == 0)
    }

    /// The closing table and line.
    pub(super) fn print(&self) {
        println!("\n{:<12} {:>9} {:>8} {:>8}  outcome", "step", "seconds", "passed", "failed");
        for Outcome { name, took, tally, error } in &self.outcomes {
            let word = if error.is_some() || tally.failed > 0 { "FAILED" } else { "ok" };
            println!(
                "{name:<12} {:>9.1} {:>8} {:>8}  {word}",
                took.as_secs_f64(),
                tally.passed,
                tally.failed
            );
        }
        println!("\n{}", self.line());
    }

    /// Writes the closing line below the target folder, for a caller that wants to repeat it.
    pub(super) fn keep(&self, target: &Path) -> Result<(), String> {
        let file = target.join("xtask-test.txt");
        std::fs::write(&file, self.line() + "\n").map_err(|error| format!("{}: {error}", file.display()))
    }

    fn line(&self) -> String {
        let (passed, failed) = self.outcomes.iter().fold((0, 0), |(passed, failed), outcome| {
            (passed + outcome.tally.passed, failed + outcome.tally.failed)
        });
        format!("{passed} passed, {failed} failed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, passed: u64, failed: u64) {
        let mut tally = Tally::default();
        tally.count(line);
        assert_eq!((tally.passed, tally.failed), (passed, failed));
    }

    #[test]
    fn closing_lines_of_the_test_runner_are_counted() {
        check(
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.1s",
            12,
            0,
        );
        check("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out", 3, 2);
        check("test journal::opens ... ok", 0, 0);
    }

    #[test]
    fn a_step_without_tests_counts_as_one_and_a_failure_is_never_lost() {
        let quiet = Outcome::new("doc", Duration::ZERO, Tally::default(), None);
        assert_eq!((quiet.tally.passed, quiet.tally.failed), (1, 0));
        let broken =
            Outcome::new("test", Duration::ZERO, Tally { passed: 5, failed: 0 }, Some("no".to_owned()));
        assert_eq!((broken.tally.passed, broken.tally.failed), (5, 1));
    }
}
