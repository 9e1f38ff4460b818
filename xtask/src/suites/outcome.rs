//! What became of one test.

use std::fmt;

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// The test, or the suite, chose not to run it.
    Skipped(String),
    Failed(String),
}

impl Outcome {
    /// The word that stands for it in a list.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passes",
            Self::Skipped(_) => "skips",
            Self::Failed(_) => "fails",
        }
    }

    /// Why it did not pass, in one line.
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Passed => "",
            Self::Skipped(reason) | Self::Failed(reason) => reason.lines().next().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => formatter.write_str(self.word()),
            _ => write!(formatter, "{}: {}", self.word(), self.reason()),
        }
    }
}
