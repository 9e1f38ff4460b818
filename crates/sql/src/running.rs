//! A statement while its rows are read: its place among the statements, and its end in time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{Stream, StreamExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

use crate::dialect;
use crate::engine::Shared;
use crate::error::{QueryError, QueryErrorKind};

/// The rows of a statement. At its end, at an error, and when it is dropped, everything that it holds is let go.
pub(crate) struct Running {
    schema: SchemaRef,
    rest: Option<Rest>,
}

struct Rest {
    rows: SendableRecordBatchStream,
    deadline: Pin<Box<Sleep>>,
    timeout: Duration,
    text: String,
    _place: OwnedSemaphorePermit,
    noting: Arc<Shared>,
}

impl Running {
    /// The rows under this schema, which has the same columns.
    pub(crate) fn new(
        schema: SchemaRef,
        rows: SendableRecordBatchStream,
        deadline: Pin<Box<Sleep>>,
        timeout: Duration,
        text: String,
        place: OwnedSemaphorePermit,
        noting: Arc<Shared>,
    ) -> Self {
        Self { schema, rest: Some(Rest { rows, deadline, timeout, text, _place: place, noting }) }
    }
}

impl Stream for Running {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(rest) = self.rest.as_mut() else {
            return Poll::Ready(None);
        };
        let next = if rest.deadline.as_mut().poll(context).is_ready() {
            Some(Err(timed_out(rest.timeout)))
        } else {
            match rest.rows.poll_next_unpin(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => None,
                Poll::Ready(Some(Ok(rows))) => Some(Ok(rows)),
                Poll::Ready(Some(Err(error))) => {
                    let error = dialect::explain(error, &rest.text);
                    rest.noting.note(&rest.text, &error);
                    Some(Err(error))
                }
            }
        };
        let next = next.map(|rows| {
            let rows = rows.map_err(|error| DataFusionError::External(Box::new(error)))?;
            // by their order: a plan may call columns otherwise, and say more of them
            let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
            let (_, columns, _) = rows.into_parts();
            Ok(RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options)?)
        });
        if !matches!(next, Some(Ok(_))) {
            self.rest = None;
        }
        Poll::Ready(next)
    }
}

impl RecordBatchStream for Running {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}

/// The error of a statement that takes too long.
pub(crate) fn timed_out(timeout: Duration) -> QueryError {
    QueryError::new(QueryErrorKind::Timeout, format!("the statement took longer than {timeout:?}"))
}
