//! The tables of the schema `system`: topics, partitions and groups as rows.
//!
//! Their rows are made when they are read, some thousand at a time, on threads that may take their time: there may be very
//! many. So they are not as of the moment of a statement's snapshot but as of now, each row for itself.

mod groups;
mod partitions;
mod topics;

use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream;
use kolumn_topic_store::{Store, Topic, View};

use self::groups::GroupRows;
use self::partitions::PartitionRows;
use self::topics::TopicRows;
use crate::catalog::topics_schema;
use crate::engine::Shared;
use crate::groups::GroupSource;
use crate::policy::{Policy, Principal, TableName};

/// The names of the tables, sorted.
pub(crate) const TABLES: &[&str] = &["groups", "partitions", "topics"];

/// A system table as of now, with what the principal may see; `None` if there is none of this name.
pub(crate) fn table(
    name: &str,
    shared: &Shared,
    principal: &Principal,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let reader = Arc::new(Reader {
        store: shared.store.clone(),
        policy: Arc::clone(&shared.policy),
        principal: principal.clone(),
        groups: Arc::clone(&shared.groups),
        rows_max: shared.settings.rows_max.max(1),
    });
    let source: Arc<dyn PartitionStream> = match name {
        "groups" => Arc::new(Source::<GroupRows>::new(reader)),
        "partitions" => Arc::new(Source::<PartitionRows>::new(reader)),
        "topics" => Arc::new(Source::<TopicRows>::new(reader)),
        _ => return Ok(None),
    };
    let table = StreamingTable::try_new(Arc::clone(source.schema()), vec![source])?;
    Ok(Some(Arc::new(table)))
}

/// What the rows are read from, and for whom.
#[derive(Debug)]
struct Reader {
    store: Store,
    policy: Arc<dyn Policy>,
    principal: Principal,
    groups: Arc<dyn GroupSource>,
    /// Rows of one batch, at most.
    rows_max: usize,
}

impl Reader {
    fn may_read(&self, view: &View, topic: &str) -> bool {
        let schema = topics_schema(&view.bucket);
        self.policy.may_read(&self.principal, TableName { schema: &schema, table: topic })
    }

    /// The topics of all views that may be read, by bucket and name.
    fn topics(self: &Arc<Self>) -> impl Iterator<Item = (View, Arc<Topic>)> + Send + use<> {
        let reader = Arc::clone(self);
        self.store.views().into_iter().flat_map(move |view| {
            let mut topics = reader.store.topics(view.id);
            topics.retain(|topic| reader.may_read(&view, &topic.name));
            topics.into_iter().map(move |topic| (view.clone(), topic))
        })
    }
}

/// The rows of a system table.
trait Rows: 'static {
    type Row: Send + 'static;

    /// The columns.
    fn fields() -> Vec<Field>;

    /// The rows, in their order. Each is found when it is asked for.
    fn rows(reader: Arc<Reader>) -> impl Iterator<Item = Self::Row> + Send + 'static;

    /// The rows as columns.
    fn columns(rows: &[Self::Row]) -> Vec<ArrayRef>;
}

/// Makes batches of the rows of a table.
struct Source<T> {
    schema: SchemaRef,
    reader: Arc<Reader>,
    table: PhantomData<fn() -> T>,
}

impl<T: Rows> Source<T> {
    fn new(reader: Arc<Reader>) -> Self {
        Self { schema: Arc::new(Schema::new(T::fields())), reader, table: PhantomData }
    }
}

impl<T> Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl<T: Rows> PartitionStream for Source<T> {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (schema, reader) = (Arc::clone(&self.schema), Arc::clone(&self.reader));
        let batches = stream::try_unfold(Batches::<T>::new(schema, reader), |batches| async {
            let next = tokio::task::spawn_blocking(|| batches.next()).await;
            next.map_err(|error| DataFusionError::External(Box::new(error)))?
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

/// Where the reading of a table stands.
struct Batches<T: Rows> {
    schema: SchemaRef,
    reader: Arc<Reader>,
    /// `None` before the first batch.
    rows: Option<Box<dyn Iterator<Item = T::Row> + Send>>,
}

impl<T: Rows> Batches<T> {
    fn new(schema: SchemaRef, reader: Arc<Reader>) -> Self {
        Self { schema, reader, rows: None }
    }

    /// The next batch, and what comes then.
    fn next(mut self) -> Result<Option<(RecordBatch, Self)>> {
        let rows = self.rows.get_or_insert_with(|| Box::new(T::rows(Arc::clone(&self.reader))));
        let rows: Vec<_> = rows.take(self.reader.rows_max).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), T::columns(&rows))?;
        Ok(Some((batch, self)))
    }
}

fn millis(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Millisecond, None), nullable)
}

/// Offsets and what is counted with them: a count that does not fit is shown as the greatest that does.
fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
