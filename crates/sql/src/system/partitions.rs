//! `system.partitions`: a row for each partition.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Field};
use kolumn_topic_store::{PartitionIndex, PartitionOffsets};

use super::{Reader, Rows, count};

pub(super) struct PartitionRows;

pub(super) struct Row {
    bucket: Arc<str>,
    topic: Arc<str>,
    partition: PartitionIndex,
    offsets: PartitionOffsets,
    bytes: i64,
}

impl Rows for PartitionRows {
    type Row = Row;

    fn fields() -> Vec<Field> {
        vec![
            Field::new("bucket", DataType::Utf8, false),
            Field::new("topic", DataType::Utf8, false),
            Field::new("partition", DataType::Int32, false),
            Field::new("log_start_offset", DataType::Int64, false),
            Field::new("high_watermark", DataType::Int64, false),
            Field::new("rows", DataType::Int64, false),
            Field::new("bytes", DataType::Int64, false),
            Field::new("leader_epoch", DataType::Int32, false),
        ]
    }

    fn rows(reader: Arc<Reader>) -> impl Iterator<Item = Row> + Send + 'static {
        reader.topics().flat_map(move |(view, topic)| {
            let reader = Arc::clone(&reader);
            (0..topic.partitions).map(PartitionIndex::new).filter_map(move |partition| {
                // A topic that was deleted at this moment has none.
                let offsets = reader.store.offsets(topic.id, partition).ok()?;
                let bytes = count(reader.store.partition_len(topic.id, partition)?);
                let (bucket, topic) = (Arc::clone(&view.bucket), Arc::clone(&topic.name));
                Some(Row { bucket, topic, partition, offsets, bytes })
            })
        })
    }

    fn columns(rows: &[Row]) -> Vec<ArrayRef> {
        let offsets = || rows.iter().map(|row| row.offsets);
        let start = |offsets: PartitionOffsets| offsets.log_start.value();
        let end = |offsets: PartitionOffsets| offsets.high_watermark.value();
        vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.bucket))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.topic))),
            Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.partition.value()))),
            Arc::new(Int64Array::from_iter_values(offsets().map(start))),
            Arc::new(Int64Array::from_iter_values(offsets().map(end))),
            Arc::new(Int64Array::from_iter_values(offsets().map(|offsets| end(offsets) - start(offsets)))),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.bytes))),
            Arc::new(Int32Array::from_iter_values(offsets().map(|offsets| offsets.leader_epoch.value()))),
        ]
    }
}
