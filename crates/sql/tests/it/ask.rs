//! Asking a session and reading its answer as text.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use kolumn_sql::{Answer, QueryError, ScanTotals, Session};

/// An answer that has been read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// Name and type of each column.
    pub(crate) columns: Vec<(String, String)>,
    /// The cells of each row as text, with `|` between them and `NULL` for nulls.
    pub(crate) rows: Vec<String>,
    /// What the scans did.
    pub(crate) scans: ScanTotals,
}

/// Runs a statement and reads its answer.
pub(crate) async fn ask(session: &Session, text: &str) -> Result<Told, QueryError> {
    read(session.execute(text).await?).await
}

/// Reads an answer to its end.
pub(crate) async fn read(answer: Answer) -> Result<Told, QueryError> {
    let columns = answer.schema.fields().iter();
    let columns = columns.map(|field| (field.name().clone(), field.data_type().to_string())).collect();
    let batches: Vec<_> = answer.rows.try_collect().await.map_err(QueryError::from)?;
    let rows = texts(&batches);
    Ok(Told { columns, rows, scans: answer.scans.totals() })
}

/// The rows of batches as text.
pub(crate) fn texts(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let formatters =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap());
        let formatters: Vec<_> = formatters.collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> =
                formatters.iter().map(|formatter| formatter.value(row).to_string()).collect();
            rows.push(cells.join("|"));
        }
    }
    rows
}

/// A runtime as a server has one.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// The rows that a statement answers with.
#[track_caller]
pub(crate) fn check(session: &Session, text: &str, expected: &[&str]) {
    match runtime().block_on(ask(session, text)) {
        Ok(told) => assert_eq!(told.rows, expected, "{text}"),
        Err(error) => panic!("{text}: {error:?}"),
    }
}
