//! The rows of an answer, sent as they come.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};

use super::connection::Outgoing;
use super::conversation::Failure;
use super::frame::Format;
use super::refusal::Refusal;
use super::reply::Column;
use super::types::columns;
use super::value::{self, ByteaOutput};
use crate::error::QueryError;

/// Rows that are sent in one go or in several.
pub(crate) struct Rows {
    columns: Vec<Column>,
    schema: SchemaRef,
    stream: SendableRecordBatchStream,
    /// The rows of this batch from `next` on are not yet sent.
    batch: Option<RecordBatch>,
    next: usize,
    tag: &'static str,
    /// How many were sent in this go.
    count: usize,
}

impl Rows {
    /// The rows of an answer; the tag says what kind of statement has them.
    pub(crate) fn new(schema: SchemaRef, stream: SendableRecordBatchStream, tag: &'static str) -> Self {
        Self { columns: columns(&schema), schema, stream, batch: None, next: 0, tag, count: 0 }
    }

    /// Rows of texts, as `SHOW` answers.
    pub(crate) fn texts<'a>(names: &[&str], rows: impl Iterator<Item = Vec<&'a str>>) -> Self {
        let rows: Vec<_> = rows.collect();
        let fields: Vec<_> = names.iter().map(|name| Field::new(*name, DataType::Utf8, false)).collect();
        let schema = Arc::new(Schema::new(fields));
        let column = |index: usize| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().filter_map(|row| row.get(index).copied())))
        };
        let arrays = (0..names.len()).map(column).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(Into::into);
        let stream = RecordBatchStreamAdapter::new(Arc::clone(&schema), stream::iter([batch]));
        Self::new(schema, Box::pin(stream), "SHOW")
    }

    /// Its columns.
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Its schema.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What says that the statement is done.
    pub(crate) fn tag(&self) -> String {
        if self.tag == "SELECT" { format!("SELECT {}", self.count) } else { self.tag.to_owned() }
    }

    /// Sends rows: this many, or all for 0. Returns whether there may be more.
    pub(crate) async fn send(
        &mut self,
        outgoing: &mut Outgoing,
        formats: &[Format],
        rows_max: usize,
        bytea: ByteaOutput,
    ) -> Result<bool, Failure> {
        self.count = 0;
        while let Some(batch) = self.present().await? {
            while self.next < batch.num_rows() {
                if rows_max > 0 && self.count >= rows_max {
                    return Ok(true);
                }
                let (row, columns) = (self.next, &self.columns);
                outgoing.replies.row(columns.len(), |index, out| {
                    match (columns.get(index), batch.columns().get(index)) {
                        (Some(column), Some(array)) => value::write(
                            array.as_ref(),
                            row,
                            column.oid,
                            Format::of(formats, index),
                            bytea,
                            out,
                        ),
                        _ => Ok(false),
                    }
                })?;
                self.next = row.saturating_add(1);
                self.count = self.count.saturating_add(1);
                outgoing.flush_some().await?;
            }
        }
        Ok(false)
    }

    /// The batch of which rows are left; `None` at the end.
    async fn present(&mut self) -> Result<Option<RecordBatch>, Refusal> {
        loop {
            if let Some(batch) = &self.batch
                && self.next < batch.num_rows()
            {
                return Ok(Some(batch.clone()));
            }
            (self.batch, self.next) = (None, 0);
            match self.stream.next().await {
                Some(batch) => {
                    self.batch = Some(batch.map_err(|error| Refusal::from(QueryError::from(error)))?);
                }
                None => return Ok(None),
            }
        }
    }
}
