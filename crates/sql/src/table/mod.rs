//! A topic as a table of DataFusion.

mod constraint;
mod intervals;
mod layout;
mod scan;
mod statistics;
mod stream;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::internal_err;
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use kolumn_topic_store::{PartitionSnapshot, TableSnapshot, table_schema};

use crate::counters::StatementCounters;
use constraint::Constraint;
use scan::TopicScan;

/// A topic: its rows as a snapshot holds them, or, where only its columns are asked for, none.
#[derive(Debug)]
pub(crate) struct TopicTable {
    rows: Option<Rows>,
}

#[derive(Debug)]
struct Rows {
    snapshot: Arc<TableSnapshot>,
    counters: StatementCounters,
}

impl TopicTable {
    /// A table that can be read.
    pub(crate) const fn new(snapshot: Arc<TableSnapshot>, counters: StatementCounters) -> Self {
        Self { rows: Some(Rows { snapshot, counters }) }
    }

    /// A table to be listed and planned over: reading it fails.
    pub(crate) const fn listed() -> Self {
        Self { rows: None }
    }

    /// About how many bytes it has.
    pub(crate) fn len(&self) -> u64 {
        let rows = self.rows.as_ref();
        let partitions = rows.map_or(&[][..], |rows| rows.snapshot.partitions());
        partitions.iter().map(PartitionSnapshot::bytes).fold(0, u64::saturating_add)
    }

    /// About how many bytes a row has, on average.
    pub(crate) fn row_len(&self) -> usize {
        let rows = self.rows.as_ref();
        let partitions = rows.map_or(&[][..], |rows| rows.snapshot.partitions());
        let offsets = partitions.iter().map(PartitionSnapshot::offsets);
        let rows = offsets.map(|offsets| offsets.end.abs_diff(offsets.start)).fold(0, u64::saturating_add);
        usize::try_from(self.len() / rows.max(1)).unwrap_or(usize::MAX)
    }
}

#[async_trait]
impl TableProvider for TopicTable {
    fn schema(&self) -> SchemaRef {
        table_schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let judge = |filter: &&Expr| match Constraint::of(filter) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(judge).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(Rows { snapshot, counters }) = &self.rows else {
            return internal_err!("a table that is only listed cannot be read");
        };
        let parallelism = session.config().target_partitions();
        let constraint = Constraint::of_all(filters).map_err(DataFusionError::Internal)?;
        let scan =
            TopicScan::new(Arc::clone(snapshot), &constraint, projection, parallelism, counters.scan())?;
        let scan = if limit.is_some() { scan.fetching(limit) } else { scan };
        Ok(Arc::new(scan))
    }
}
