//! The rows of a stream: scans, one after the other, whose reads of the disk run where blocking is allowed.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;
use kolumn_topic_store::{
    DiskRead, Fetched, ReadError, Scan, ScanCounters, ScanRequest, ScanStep, TableSnapshot,
};

/// What a stream reads.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) table: Arc<TableSnapshot>,
    /// The scans, in the order of their rows.
    pub(crate) requests: Vec<ScanRequest>,
    /// How many rows, at most.
    pub(crate) limit: Option<usize>,
    pub(crate) counters: Arc<ScanCounters>,
}

/// Begins to read. Nothing happens before the stream is polled; dropping it ends everything but a read under way.
pub(crate) fn read(schema: SchemaRef, reading: Reading) -> SendableRecordBatchStream {
    let cursor = Cursor {
        table: reading.table,
        requests: reading.requests.into(),
        rows_left: reading.limit.unwrap_or(usize::MAX),
        counters: reading.counters,
        scan: None,
        ahead: None,
    };
    let rows = stream::try_unfold(cursor, |mut cursor| async move {
        let next = cursor.next().await?;
        Ok(next.map(|rows| (rows, cursor)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

struct Cursor {
    table: Arc<TableSnapshot>,
    requests: VecDeque<ScanRequest>,
    rows_left: usize,
    counters: Arc<ScanCounters>,
    scan: Option<Scan>,
    /// A read that the present scan will need, under way.
    ahead: Option<SpawnedTask<Result<Fetched, ReadError>>>,
}

impl Cursor {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some(scan) = self.scan.as_mut() else {
                if !self.begin() {
                    return Ok(None);
                }
                continue;
            };
            match scan.step().map_err(external)? {
                ScanStep::Rows(rows) => {
                    let rows =
                        if rows.num_rows() > self.rows_left { rows.slice(0, self.rows_left) } else { rows };
                    self.rows_left -= rows.num_rows();
                    if self.rows_left > 0 && self.ahead.is_none() {
                        self.ahead = scan.read_ahead().map(start);
                    }
                    return Ok(Some(rows));
                }
                ScanStep::NeedsDisk(read) => {
                    // One that is under way comes first: perhaps it is the same.
                    let task = self.ahead.take().unwrap_or_else(|| start(read));
                    let fetched = task.await.map_err(|fault| DataFusionError::External(Box::new(fault)))?;
                    scan.supply(fetched.map_err(external)?);
                    self.ahead = scan.read_ahead().map(start);
                }
                ScanStep::End => {
                    self.scan = None;
                    self.ahead = None;
                    // A scan that finds nothing gives nobody else a turn by itself.
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Begins the next scan; says whether there is one.
    fn begin(&mut self) -> bool {
        if self.rows_left == 0 {
            return false;
        }
        let Some(mut request) = self.requests.pop_front() else {
            return false;
        };
        request.limit = (self.rows_left < usize::MAX).then_some(self.rows_left);
        self.scan = Some(self.table.scan(request).counting(Arc::clone(&self.counters)));
        true
    }
}

fn start(read: DiskRead) -> SpawnedTask<Result<Fetched, ReadError>> {
    SpawnedTask::spawn_blocking(move || read.run())
}

fn external(error: ReadError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
