//! What an owner of an engine can choose.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::error::{QueryError, QueryErrorKind};

/// Plain data; start from [`Settings::default`] and change what you need.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers use struct update syntax")]
pub struct Settings {
    /// Memory of all queries together, for sorting, grouping and joining; beyond it they spill. At least 8 MiB; default
    /// 512 MiB.
    ///
    /// The results of functions may have as much again (at least 64 MiB), and one call a quarter of it (at least 16 MiB):
    /// what needs more fails.
    pub memory_len_max: usize,
    /// Where queries spill to. What is left there from earlier is deleted at start. `None`: a query that would spill fails.
    pub spill_dir: Option<PathBuf>,
    /// Bytes of the disk that all queries together may spill. Default 8 GiB.
    pub spill_len_max: u64,
    /// Threads' worth of parallelism in one query, as far as there are 8 MiB of memory for each. Default: the number of
    /// processors.
    pub parallelism: usize,
    /// How long a statement may take, from its planning to its last row. Default ten minutes. A reader that stalls holds the
    /// statement's place so long.
    pub statement_timeout: Duration,
    /// Statements that run at a time; more of them wait. Default 32.
    pub statements_max: usize,
    /// The longest text of a statement. Default 256 KiB.
    pub statement_len_max: usize,
    /// Rows of one batch, at most; fewer, down to 16, where rows are long. Default 8192.
    pub rows_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            memory_len_max: 512 << 20,
            spill_dir: None,
            spill_len_max: 8 << 30,
            parallelism: std::thread::available_parallelism().map_or(2, usize::from),
            statement_timeout: Duration::from_mins(10),
            statements_max: 32,
            statement_len_max: 256 << 10,
            rows_max: 8192,
        }
    }
}

impl Settings {
    /// Refuses what cannot work, by name.
    pub(crate) fn validate(&self) -> Result<(), QueryError> {
        let counts = [
            ("parallelism", self.parallelism),
            ("statements_max", self.statements_max),
            ("rows_max", self.rows_max),
            ("statement_len_max", self.statement_len_max),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(QueryError::new(
                QueryErrorKind::Unsupported,
                format!("`{name}` has to be at least 1"),
            ));
        }
        if self.memory_len_max < MEMORY_LEN_MIN {
            let text = format!("`memory_len_max` has to be at least {MEMORY_LEN_MIN}");
            return Err(QueryError::new(QueryErrorKind::Unsupported, text));
        }
        if self.statements_max > Semaphore::MAX_PERMITS {
            let text = format!("`statements_max` has to be at most {}", Semaphore::MAX_PERMITS);
            return Err(QueryError::new(QueryErrorKind::Unsupported, text));
        }
        if self.statement_timeout.is_zero() {
            return Err(QueryError::new(
                QueryErrorKind::Unsupported,
                "`statement_timeout` has to be longer than nothing",
            ));
        }
        Ok(())
    }

    /// How many pieces of a query run at a time. Each of them may sort, for which it needs some memory.
    pub(crate) fn pieces(&self) -> usize {
        self.parallelism.min(self.memory_len_max / MEMORY_LEN_MIN).max(1)
    }
}

/// What a sort needs so that it can merge what it has spilled.
const MEMORY_LEN_MIN: usize = 8 << 20;
