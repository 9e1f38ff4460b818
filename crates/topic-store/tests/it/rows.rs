//! Rows of scans as plain values, and their dull twin: a list.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use kolumn_kafka_wire::records::{BatchBuilder, Compression, Header};
use kolumn_topic_store::{Column, RowFilter, ScanCounters, ScanRequest, ScanStep, TableSnapshot};

use crate::support::P0;

/// The headers of a row.
pub(crate) type HeaderList = Vec<(String, Option<Vec<u8>>)>;

/// A row of a scan: `None` for the columns that were not asked for.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::option_option, reason = "a column that was not asked for is not one that is null")]
pub(crate) struct PlainRow {
    pub(crate) partition: Option<i32>,
    pub(crate) offset: Option<i64>,
    pub(crate) timestamp: Option<Option<i64>>,
    pub(crate) key: Option<Option<Vec<u8>>>,
    pub(crate) value: Option<Option<Vec<u8>>>,
    pub(crate) headers: Option<HeaderList>,
}

impl PlainRow {
    /// A row of a batch that is still to be appended.
    pub(crate) fn new(time: i64, key: Option<&[u8]>, value: Option<&[u8]>, headers: HeaderList) -> Self {
        Self {
            partition: Some(0),
            offset: None,
            timestamp: Some((time >= 0).then_some(time)),
            key: Some(key.map(<[u8]>::to_vec)),
            value: Some(value.map(<[u8]>::to_vec)),
            headers: Some(headers),
        }
    }

    fn project(&self, columns: &[Column]) -> Self {
        let has = |column| columns.contains(&column);
        Self {
            partition: self.partition.filter(|_| has(Column::Partition)),
            offset: self.offset.filter(|_| has(Column::Offset)),
            timestamp: self.timestamp.filter(|_| has(Column::Timestamp)),
            key: self.key.clone().filter(|_| has(Column::Key)),
            value: self.value.clone().filter(|_| has(Column::Value)),
            headers: self.headers.clone().filter(|_| has(Column::Headers)),
        }
    }
}

/// The batch with these rows as its records.
pub(crate) fn batch_of_rows(rows: &[PlainRow], codec: Compression) -> Bytes {
    let mut builder = BatchBuilder::new().with_compression(codec);
    for row in rows {
        let headers =
            row.headers.iter().flatten().map(|(key, value)| Header { key, value: value.as_deref() });
        let (key, value) = (row.key.as_ref().unwrap().as_deref(), row.value.as_ref().unwrap().as_deref());
        builder.append(key, value, headers, row.timestamp.unwrap().unwrap_or(-1)).expect("fits");
    }
    builder.build().expect("fits")
}

/// What a scan has to give: the rows of a list that are asked for.
pub(crate) fn expected(rows: &[PlainRow], request: &ScanRequest) -> Vec<PlainRow> {
    let RowFilter { timestamp_min, timestamp_max, keys } = &request.filter;
    let passes = |row: &&PlainRow| {
        let (time, key) = (row.timestamp.unwrap(), row.key.as_ref().unwrap());
        request.offsets.contains(&row.offset.unwrap())
            && timestamp_min.is_none_or(|min| time.is_some_and(|time| time >= min))
            && timestamp_max.is_none_or(|max| time.is_some_and(|time| time <= max))
            && keys
                .as_ref()
                .is_none_or(|keys| key.as_ref().is_some_and(|key| keys.iter().any(|one| one == key)))
    };
    let mut found: Vec<_> = rows.iter().filter(passes).map(|row| row.project(&request.columns)).collect();
    if request.descending {
        found.reverse();
    }
    found.truncate(request.limit.unwrap_or(usize::MAX));
    found
}

/// A request for all rows of the first partition.
pub(crate) fn all(columns: &[Column]) -> ScanRequest {
    ScanRequest {
        partition: P0,
        offsets: 0..i64::MAX,
        columns: columns.to_vec(),
        filter: RowFilter::default(),
        descending: false,
        limit: None,
        rows_max: 100,
    }
}

/// All rows of a scan.
pub(crate) fn read_rows(table: &Arc<TableSnapshot>, request: ScanRequest) -> Vec<PlainRow> {
    count_rows(table, request).0
}

/// All rows of a scan, and what it took.
pub(crate) fn count_rows(
    table: &Arc<TableSnapshot>,
    request: ScanRequest,
) -> (Vec<PlainRow>, Arc<ScanCounters>) {
    let counters = Arc::<ScanCounters>::default();
    let (columns, rows_max) = (request.columns.clone(), request.rows_max);
    let mut scan = table.scan(request).counting(Arc::clone(&counters));
    let mut rows = Vec::new();
    while let Some(batch) = scan.next_blocking().expect("readable") {
        assert!((1..=rows_max).contains(&batch.num_rows()), "{} rows", batch.num_rows());
        rows.extend(rows_of(&batch, &columns));
    }
    assert!(scan.next_blocking().expect("readable").is_none(), "the end stays the end");
    (rows, counters)
}

/// All rows of a scan whose reads run ahead.
pub(crate) fn read_rows_ahead(table: &Arc<TableSnapshot>, request: ScanRequest) -> Vec<PlainRow> {
    let columns = request.columns.clone();
    let mut scan = table.scan(request);
    let mut rows = Vec::new();
    let mut ahead = None;
    loop {
        match scan.step().expect("readable") {
            ScanStep::Rows(batch) => {
                rows.extend(rows_of(&batch, &columns));
                if ahead.is_none() {
                    ahead = scan.read_ahead();
                    assert!(ahead.is_none() || scan.read_ahead().is_none(), "at most one is out");
                }
            }
            ScanStep::NeedsDisk(read) => {
                let read = ahead.take().unwrap_or(read);
                scan.supply(read.run().expect("readable"));
                ahead = scan.read_ahead();
            }
            ScanStep::End => return rows,
        }
    }
}

/// Compares without a flood of bytes where the offsets differ already.
#[track_caller]
pub(crate) fn assert_same(found: &[PlainRow], expect: &[PlainRow], what: &impl std::fmt::Debug) {
    let offsets = |rows: &[PlainRow]| rows.iter().map(|row| row.offset).collect::<Vec<_>>();
    assert_eq!(offsets(found), offsets(expect), "{what:?}");
    for (found, expect) in found.iter().zip(expect) {
        assert_eq!(found, expect, "{what:?}");
    }
}

pub(crate) fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn rows_of(batch: &RecordBatch, columns: &[Column]) -> Vec<PlainRow> {
    assert_eq!(batch.num_columns(), columns.len());
    let fields = batch.schema();
    for (field, column) in fields.fields().iter().zip(columns) {
        assert_eq!(**field, column.field());
    }
    let mut rows = vec![PlainRow::default(); batch.num_rows()];
    for (array, column) in batch.columns().iter().zip(columns) {
        for (row, at) in rows.iter_mut().zip(0..) {
            match column {
                Column::Partition => row.partition = Some(array.as_primitive::<Int32Type>().value(at)),
                Column::Offset => row.offset = Some(array.as_primitive::<Int64Type>().value(at)),
                Column::Timestamp => {
                    let times = array.as_primitive::<TimestampMillisecondType>();
                    row.timestamp = Some(times.is_valid(at).then(|| times.value(at)));
                }
                Column::Key => row.key = Some(blob(array, at)),
                Column::Value => row.value = Some(blob(array, at)),
                Column::Headers => row.headers = Some(headers(array, at)),
                _ => unreachable!("there are no other columns"),
            }
        }
    }
    rows
}

fn blob(array: &dyn Array, at: usize) -> Option<Vec<u8>> {
    array.is_valid(at).then(|| array.as_binary::<i32>().value(at).to_vec())
}

fn headers(array: &dyn Array, at: usize) -> HeaderList {
    let items = array.as_list::<i32>().value(at);
    let items = items.as_struct();
    let (keys, values) = (items.column(0).as_string::<i32>(), items.column(1));
    (0..items.len()).map(|at| (keys.value(at).to_owned(), blob(values, at))).collect()
}
