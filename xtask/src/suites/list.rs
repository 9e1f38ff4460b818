//! The checked-in expectation of every test, and its comparison with what was seen.
//!
//! ```text
//! list => line*
//! line => "#" comment | name " = passes" | name " = " word ": " reason
//! word => "fails" | "skips" | "flaky"
//! ```
//!
//! A flaky test fails now and then whatever the broker does, Apache Kafka included; it must pass in one of a few runs.

use std::{collections::BTreeMap, path::Path};

use super::outcome::Outcome;

/// The expectations of one suite.
#[derive(Debug, Default)]
pub(super) struct List {
    tests: BTreeMap<String, Outcome>,
    /// Those of the tests that are listed as flaky, with the reasons; their outcome is that they pass.
    flaky: BTreeMap<String, String>,
}

impl List {
    /// Reads a list; a line that is not of the grammar is an error.
    pub(super) fn load(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Self::parse(&text).map_err(|message| format!("{}: {message}", file.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (mut tests, mut flaky) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let wrong = || format!("`{line}` is not a line of a list");
            let (name, outcome) = line.split_once(" = ").ok_or_else(wrong)?;
            let outcome = match outcome.split_once(": ") {
                None if outcome == "passes" => Outcome::Passed,
                Some(("fails", reason)) if !reason.is_empty() => Outcome::Failed(reason.to_owned()),
                Some(("skips", reason)) if !reason.is_empty() => Outcome::Skipped(reason.to_owned()),
                Some(("flaky", reason)) if !reason.is_empty() => {
                    flaky.insert(name.to_owned(), reason.to_owned());
                    Outcome::Passed
                }
                _ => return Err(wrong()),
            };
            if tests.insert(name.to_owned(), outcome).is_some() {
                return Err(format!("`{name}` is listed twice"));
            }
        }
        Ok(Self { tests, flaky })
    }

    /// Whether a test may be run again.
    pub(super) fn is_flaky(&self, name: &str) -> bool {
        self.flaky.contains_key(name)
    }

    /// The names of the tests, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tests.keys().map(String::as_str)
    }
}

/// What was seen of one suite.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    seen: BTreeMap<String, Outcome>,
}

impl Verdict {
    pub(super) fn add(&mut self, test: String, outcome: Outcome) {
        self.seen.insert(test, outcome);
    }

    /// How many tests passed, and how many there were.
    pub(super) fn totals(&self) -> (usize, usize) {
        let passed = self.seen.values().filter(|outcome| **outcome == Outcome::Passed).count();
        (passed, self.seen.len())
    }

    /// What does not agree with the list; tests that were not seen count if the run was `complete`.
    pub(super) fn differences(&self, list: &List, complete: bool) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, outcome) in &self.seen {
            match list.tests.get(name) {
                None => faults.push(format!("{name} is not in the list; it {outcome}")),
                Some(expected) if expected.word() == outcome.word() => {}
                Some(_) if *outcome == Outcome::Passed => {
                    faults.push(format!("{name} passes: the list is out of date"));
                }
                Some(expected) => {
                    faults.push(format!("{name} {outcome}; by the list it {}", expected.word()));
                }
            }
        }
        if complete {
            let unseen = list.names().filter(|name| !self.seen.contains_key(*name));
            faults.extend(unseen.map(|name| format!("{name} is in the list and did not run")));
        }
        faults
    }

    /// What was seen, in the form of a list; a reason that the list gives for the same outcome is kept.
    pub(super) fn as_list(&self, list: &List) -> String {
        let lines = self.seen.iter().map(|(name, outcome)| {
            let kept = list.tests.get(name).filter(|expected| expected.word() == outcome.word());
            match list.flaky.get(name) {
                Some(reason) if *outcome == Outcome::Passed => format!("{name} = flaky: {reason}\n"),
                _ => format!("{name} = {}\n", kept.unwrap_or(outcome)),
            }
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str =
        "# of a suite\na = passes\n\nb::c[1] = fails: Fetch v12 is: not built\nd = skips: needs TLS\n";

    #[track_caller]
    fn check(seen: &[(&str, Outcome)], complete: bool, expected: &[&str]) {
        let list = List::parse(LIST).expect("a list");
        let mut verdict = Verdict::default();
        for (name, outcome) in seen {
            verdict.add((*name).to_owned(), outcome.clone());
        }
        assert_eq!(verdict.differences(&list, complete), expected);
    }

    fn failed() -> Outcome {
        Outcome::Failed("why\nand more".to_owned())
    }

    #[test]
    fn what_is_as_listed_is_no_difference() {
        let skipped = Outcome::Skipped("no broker".to_owned());
        check(&[("a", Outcome::Passed), ("b::c[1]", failed()), ("d", skipped)], true, &[]);
    }

    #[test]
    fn a_listed_pass_that_fails_is_a_difference() {
        check(&[("a", failed())], false, &["a fails: why; by the list it passes"]);
    }

    #[test]
    fn a_listed_failure_that_passes_is_a_difference() {
        check(&[("b::c[1]", Outcome::Passed)], false, &["b::c[1] passes: the list is out of date"]);
    }

    #[test]
    fn a_listed_skip_that_fails_is_a_difference() {
        check(&[("d", failed())], false, &["d fails: why; by the list it skips"]);
    }

    #[test]
    fn no_test_is_lost_and_none_is_new() {
        let seen = [("a", Outcome::Passed), ("d", Outcome::Skipped(String::new())), ("e", Outcome::Passed)];
        let new = "e is not in the list; it passes";
        check(&seen, false, &[new]);
        check(&seen, true, &[new, "b::c[1] is in the list and did not run"]);
    }

    #[test]
    fn a_flaky_test_must_pass_and_stays_listed_as_flaky() {
        let list = List::parse("a = flaky: a race of its own\nb = passes\n").expect("a list");
        assert!(list.is_flaky("a") && !list.is_flaky("b"));
        let mut verdict = Verdict::default();
        verdict.add("a".to_owned(), failed());
        assert_eq!(verdict.differences(&list, false), ["a fails: why; by the list it passes"]);
        verdict.add("a".to_owned(), Outcome::Passed);
        assert!(verdict.differences(&list, false).is_empty());
        assert_eq!(verdict.as_list(&list), "a = flaky: a race of its own\n");
    }

    #[test]
    fn lines_that_are_not_of_the_grammar_are_refused() {
        for text in ["a", "a = pass", "a = fails", "a = fails: ", "a = fails:why", "a = passes\na = passes"] {
            assert!(List::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_was_seen_is_written_as_a_list_that_keeps_known_reasons() {
        let list = List::parse(LIST).expect("a list");
        let mut verdict = Verdict::default();
        verdict.add("b::c[1]".to_owned(), failed());
        verdict.add("a".to_owned(), failed());
        assert_eq!(verdict.as_list(&list), "a = fails: why\nb::c[1] = fails: Fetch v12 is: not built\n");
    }
}
