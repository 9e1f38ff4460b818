//! The results on disk: a line for each thing that is finished, so that a run that was interrupted goes on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::case::Case;
use super::side::Side;
use super::stage::Measured;
use crate::calibrate::Calibration;

/// What must be the same for results to belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) commit: String,
    pub(super) machine: String,
    /// The broker's program: its path, length, time and further arguments.
    pub(super) broker: String,
    pub(super) seconds: f64,
}

/// A line of the file; the first one is the identity.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    Identity(Identity),
    /// One at the start of a round, and one more each time that a round is taken up again.
    Calibrated {
        round: u32,
        calibration: Calibration,
    },
    Tried(Box<Trial>),
}

/// One case on one side in one round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Trial {
    pub(super) round: u32,
    pub(super) case: Case,
    pub(super) side: Side,
    pub(super) outcome: Outcome,
}

/// What came of a trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    Measured(Measured),
    /// It could not be brought to its end. It is tried again when the run is taken up again.
    Failed(String),
}

/// The file and what it holds.
#[derive(Debug)]
pub(super) struct Results {
    file: File,
    pub(super) lines: Vec<Line>,
}

impl Results {
    /// Goes on behind what a run with the same identity has left; another identity is an error unless all is forgotten.
    pub(super) fn open(path: &Path, identity: &Identity, restart: bool) -> io::Result<Self> {
        let text = match fs::read_to_string(path) {
            Ok(text) if !restart => text,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => String::new(),
        };
        let (mut lines, whole) = parse(&text);
        match lines.first() {
            None => {}
            Some(Line::Identity(other)) if other == identity => {}
            Some(_) => {
                let message = format!(
                    "`{}` has the results of another commit, machine or plan; `--restart` forgets them",
                    path.display()
                );
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
            }
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        file.set_len(u64::try_from(whole).unwrap_or_default())?;
        let is_new = lines.is_empty();
        lines.retain(|line| !matches!(line, Line::Identity(_)));
        let mut results = Self { file, lines };
        if is_new {
            results.write(&Line::Identity(identity.clone()))?;
        }
        Ok(results)
    }

    /// Whether a trial has been brought to its end.
    pub(super) fn has(&self, round: u32, case: Case, side: Side) -> bool {
        self.lines.iter().any(|line| match line {
            Line::Tried(trial) => {
                (trial.round, trial.case, trial.side) == (round, case, side)
                    && matches!(trial.outcome, Outcome::Measured(_))
            }
            _ => false,
        })
    }

    /// Keeps a line, on the disk before in memory.
    pub(super) fn push(&mut self, line: Line) -> io::Result<()> {
        self.write(&line)?;
        self.lines.push(line);
        Ok(())
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)?;
        self.file.sync_data()
    }
}

/// The whole lines at the beginning, and how many bytes they are: the last one may have been cut when the run was killed.
fn parse(text: &str) -> (Vec<Line>, usize) {
    let (mut lines, mut whole) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let Some(Ok(parsed)) = line.strip_suffix('\n').map(serde_json::from_str) else {
            break;
        };
        whole += line.len();
        lines.push(parsed);
    }
    (lines, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(commit: &str) -> Identity {
        Identity { commit: commit.into(), machine: "m".into(), broker: "b".into(), seconds: 15.0 }
    }

    fn trial(round: u32, case: Case, outcome: Outcome) -> Line {
        Line::Tried(Box::new(Trial { round, case, side: Side::Sync, outcome }))
    }

    #[test]
    fn a_run_that_was_killed_goes_on_behind_its_last_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.jsonl");
        let mut results = Results::open(&path, &identity("a"), false).unwrap();
        results.push(trial(1, Case::W1, Outcome::Measured(Measured::default()))).unwrap();
        results.push(trial(1, Case::W2, Outcome::Failed("no".into()))).unwrap();
        drop(results);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"tried\":{\"round\":1,\"case\":\"W7\"").unwrap();
        drop(file);

        let mut results = Results::open(&path, &identity("a"), false).unwrap();
        assert_eq!(results.lines.len(), 2);
        assert!(results.has(1, Case::W1, Side::Sync));
        for (round, case, side) in
            [(1, Case::W2, Side::Sync), (2, Case::W1, Side::Sync), (1, Case::W1, Side::Os)]
        {
            assert!(!results.has(round, case, side), "{round} {case:?} {side:?}");
        }
        results.push(trial(1, Case::W2, Outcome::Measured(Measured::default()))).unwrap();
        drop(results);
        let results = Results::open(&path, &identity("a"), false).unwrap();
        assert!(results.has(1, Case::W2, Side::Sync), "what failed is tried again");
    }

    #[test]
    fn results_of_another_commit_are_neither_continued_nor_lost_unasked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.jsonl");
        let mut results = Results::open(&path, &identity("a"), false).unwrap();
        results.push(trial(1, Case::W1, Outcome::Measured(Measured::default()))).unwrap();
        drop(results);
        let error = Results::open(&path, &identity("b"), false).unwrap_err();
        assert!(error.to_string().contains("--restart"), "{error}");
        assert!(Results::open(&path, &identity("a"), false).unwrap().has(1, Case::W1, Side::Sync));
        assert!(Results::open(&path, &identity("b"), true).unwrap().lines.is_empty());
    }
}
