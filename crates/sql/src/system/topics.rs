//! `system.topics`: a row for each topic.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, StringArray, TimestampMillisecondArray};
use datafusion::arrow::datatypes::{DataType, Field};
use kolumn_topic_store::{PartitionIndex, Topic, View};

use super::{Reader, Rows, count, millis};

pub(super) struct TopicRows;

pub(super) struct Row {
    view: View,
    topic: Arc<Topic>,
    rows: i64,
    bytes: i64,
}

impl Rows for TopicRows {
    type Row = Row;

    fn fields() -> Vec<Field> {
        vec![
            Field::new("bucket", DataType::Utf8, false),
            Field::new("topic", DataType::Utf8, false),
            Field::new("topic_id", DataType::Utf8, false),
            Field::new("partitions", DataType::Int32, false),
            millis("created", false),
            Field::new("rows", DataType::Int64, false),
            Field::new("bytes", DataType::Int64, false),
            Field::new("retention_ms", DataType::Int64, true),
            Field::new("retention_bytes", DataType::Int64, true),
            Field::new("cleanup_policy", DataType::Utf8, false),
            Field::new("timestamp_type", DataType::Utf8, false),
            Field::new("max_message_bytes", DataType::Int64, false),
        ]
    }

    fn rows(reader: Arc<Reader>) -> impl Iterator<Item = Row> + Send + 'static {
        reader.topics().map(move |(view, topic)| {
            let (rows, bytes) = size(&reader, &topic);
            Row { view, topic, rows, bytes }
        })
    }

    fn columns(rows: &[Row]) -> Vec<ArrayRef> {
        let config = |row: &Row, key: &str| row.topic.config.value(key).unwrap_or_default().to_owned();
        let topics = || rows.iter().map(|row| &*row.topic);
        vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.view.bucket))),
            Arc::new(StringArray::from_iter_values(topics().map(|topic| &topic.name))),
            Arc::new(StringArray::from_iter_values(topics().map(|topic| topic.id.to_string()))),
            Arc::new(Int32Array::from_iter_values(topics().map(|topic| topic.partitions))),
            Arc::new(TimestampMillisecondArray::from_iter_values(
                topics().map(|topic| topic.created.value()),
            )),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.rows))),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.bytes))),
            Arc::new(topics().map(|topic| topic.config.retention_ms()).collect::<Int64Array>()),
            Arc::new(topics().map(|topic| topic.config.retention_bytes().map(count)).collect::<Int64Array>()),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| config(row, "cleanup.policy")))),
            Arc::new(StringArray::from_iter_values(
                rows.iter().map(|row| config(row, "message.timestamp.type")),
            )),
            Arc::new(Int64Array::from_iter_values(topics().map(max_message_bytes))),
        ]
    }
}

fn max_message_bytes(topic: &Topic) -> i64 {
    i64::try_from(topic.config.max_message_bytes()).unwrap_or(i64::MAX)
}

/// Rows and bytes of all partitions together.
fn size(reader: &Reader, topic: &Topic) -> (i64, i64) {
    (0..topic.partitions).map(PartitionIndex::new).fold((0, 0), |(rows, bytes): (i64, i64), partition| {
        // One that was deleted at this moment has nothing.
        let offsets = reader.store.offsets(topic.id, partition).ok();
        let more = offsets.map_or(0, |offsets| offsets.high_watermark.value() - offsets.log_start.value());
        let len = reader.store.partition_len(topic.id, partition).map_or(0, count);
        (rows.saturating_add(more), bytes.saturating_add(len))
    })
}
