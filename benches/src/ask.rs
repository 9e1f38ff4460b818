//! What the driver of the SQL benchmark and its sides say to each other: a line of JSON there, a line of JSON back.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The first line that a side prints, once it has all rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// What it is.
    pub(crate) version: String,
    /// Bytes of batches in the journal; with a journal only.
    #[serde(default)]
    pub(crate) journal_len: u64,
    /// How long appending the rows took; with a journal only.
    #[serde(default)]
    pub(crate) loaded_s: f64,
}

/// Asks for one thing so many times.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Request {
    #[serde(flatten)]
    pub(crate) what: What,
    pub(crate) times: u32,
}

/// What is asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum What {
    /// A statement.
    Sql(String),
    /// These columns of all rows, decoded on one thread without any SQL.
    Scan(Vec<String>),
}

/// The answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Response {
    Answered(Answer),
    /// It cannot.
    Failed {
        error: String,
    },
}

/// What a statement or a scan has come to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// How long each time took.
    pub(crate) ms: Vec<f64>,
    /// The rows of the last time; of a scan, how many there were.
    pub(crate) rows: Vec<Vec<Value>>,
    /// What the last time did for them, if the side knows.
    #[serde(default)]
    pub(crate) work: Option<RowCounts>,
}

/// How many rows of the table a statement had to do with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowCounts {
    /// Their bytes were walked through.
    pub(crate) walked: u64,
    /// They were copied into columns.
    pub(crate) decoded: u64,
    /// They were taken from the cache of decoded rows.
    pub(crate) cached: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_the_rivals_read_and_write_them() {
        let request = Request { what: What::Sql("SELECT 1".into()), times: 3 };
        assert_eq!(serde_json::to_string(&request).unwrap(), r#"{"sql":"SELECT 1","times":3}"#);
        let rows = serde_json::from_str(r#"{"ms": [0.5], "rows": [[1, "a", null]]}"#).unwrap();
        assert!(matches!(rows, Response::Answered(answer) if answer.ms == [0.5] && answer.rows.len() == 1));
        let failed = serde_json::from_str(r#"{"error": "no"}"#).unwrap();
        assert!(matches!(failed, Response::Failed { error } if error == "no"));
    }
}
