//! The plan node that reads a topic.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column as ColumnExpr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{Count, Metric, MetricValue, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, SortOrderPushdownResult,
};
use kolumn_topic_store::{Column, RowFilter, ScanCounters, ScanRequest, TableSnapshot, table_schema};

use super::constraint::Constraint;
use super::layout::{Layout, Piece, Shape, lay_out, wanted};
use super::statistics::statistics;
use super::stream::{self, Reading};
use crate::counters::ScanTotals;

/// Reads rows of a topic: the pieces that the constraint leaves, laid out in streams.
///
/// INVARIANT: in each stream, rows come ascending by partition and offset; `order` turns either round. What the streams
/// give together is the same in any layout, which is why sorts and limits may choose one.
#[derive(Clone, Debug)]
pub(crate) struct TopicScan {
    table: Arc<TableSnapshot>,
    columns: Arc<[Column]>,
    pieces: Arc<[Piece]>,
    /// `None` if the constraint cannot be fulfilled; then there are no pieces.
    filter: RowFilter,
    layout: Layout,
    order: Order,
    fetch: Option<usize>,
    parallelism: usize,
    counters: Arc<ScanCounters>,
    properties: Arc<PlanProperties>,
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Order {
    /// From the last partition of a stream to the first.
    partitions_descend: bool,
    /// From the last offset of a partition to the first.
    offsets_descend: bool,
    /// Streams are told to be in the order of their offsets alone; each has one partition then.
    by_offset: bool,
}

impl TopicScan {
    pub(crate) fn new(
        table: Arc<TableSnapshot>,
        constraint: &Constraint,
        projection: Option<&Vec<usize>>,
        parallelism: usize,
        counters: Arc<ScanCounters>,
    ) -> Result<Self> {
        let (columns, schema) = match projection {
            Some(projection) => {
                let columns =
                    projection.iter().filter_map(|&index| Column::ALL.get(index).copied()).collect();
                (columns, Arc::new(table_schema().project(projection)?))
            }
            None => (Column::ALL.to_vec(), table_schema()),
        };
        let (filter, pieces) = match constraint.row_filter() {
            Some(filter) => (filter, wanted(&table, constraint)),
            None => (RowFilter::default(), Vec::new()),
        };
        let layout = lay_out(&table, &pieces, Shape::Parallel(parallelism));
        let order = Order::default();
        let properties = properties(schema, &layout, order);
        Ok(Self {
            table,
            columns: columns.into(),
            pieces: pieces.into(),
            filter,
            layout,
            order,
            fetch: None,
            parallelism,
            counters,
            properties: Arc::new(properties),
        })
    }

    /// The same with at most so many rows of each stream.
    ///
    /// Few rows are read by few streams: each has to give as many as are fetched.
    pub(crate) fn fetching(&self, fetch: Option<usize>) -> Self {
        let mut scan = self.clone();
        scan.fetch = fetch;
        if fetch.is_some_and(|fetch| fetch <= FETCH_FEW) {
            // A stream that reads two partitions has no order by offset, which may have been promised already.
            let shape =
                if self.layout.is_pure { Shape::ByPartition } else { Shape::Parallel(self.parallelism) };
            scan.set(lay_out(&self.table, &self.pieces, shape), self.order);
        }
        scan
    }

    /// The same in an order, if there is a layout that has it.
    fn ordered(&self, sort: &[PhysicalSortExpr]) -> Result<Option<Self>> {
        let descends = |column: Column| {
            let key = sort.iter().find(|key| is_column(&key.expr, column));
            key.is_some_and(|key| key.options.descending)
        };
        let order = Order {
            partitions_descend: descends(Column::Partition),
            offsets_descend: descends(Column::Offset),
            by_offset: sort.first().is_some_and(|key| is_column(&key.expr, Column::Offset)),
        };
        let mut scan = self.clone();
        scan.set(self.layout.clone(), order);
        if scan.properties.eq_properties.ordering_satisfy(sort.iter().cloned())? {
            return Ok(Some(scan));
        }
        if self.layout.is_pure {
            return Ok(None);
        }
        let layout = lay_out(&self.table, &self.pieces, Shape::ByPartition);
        if layout.streams.len() > ORDERED_STREAMS_MAX {
            return Ok(None);
        }
        scan.set(layout, order);
        let satisfied = scan.properties.eq_properties.ordering_satisfy(sort.iter().cloned())?;
        Ok(satisfied.then_some(scan))
    }

    fn set(&mut self, layout: Layout, order: Order) {
        self.properties =
            Arc::new(properties(Arc::clone(self.properties.eq_properties.schema()), &layout, order));
        self.layout = layout;
        self.order = order;
    }

    fn requests(&self, pieces: &[Piece], rows_max: usize) -> Vec<ScanRequest> {
        let request = |piece: &Piece| ScanRequest {
            partition: piece.partition,
            offsets: piece.offsets.clone(),
            columns: self.columns.to_vec(),
            filter: self.filter.clone(),
            descending: self.order.offsets_descend,
            limit: None,
            rows_max,
        };
        let by_partition = pieces.chunk_by(|one, next| one.partition == next.partition);
        let mut groups: Vec<Vec<ScanRequest>> = by_partition
            .map(|pieces| {
                let requests = pieces.iter().map(request);
                if self.order.offsets_descend { requests.rev().collect() } else { requests.collect() }
            })
            .collect();
        if self.order.partitions_descend {
            groups.reverse();
        }
        groups.into_iter().flatten().collect()
    }
}

impl ExecutionPlan for TopicScan {
    fn name(&self) -> &'static str {
        "TopicScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a scan has no children") }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a scan has no children") }
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(pieces) = self.layout.streams.get(partition) else {
            return internal_err!("the scan has no stream {partition}");
        };
        let reading = Reading {
            table: Arc::clone(&self.table),
            requests: self.requests(pieces, context.session_config().batch_size()),
            limit: self.fetch,
            counters: Arc::clone(&self.counters),
        };
        Ok(stream::read(self.schema(), reading))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        let totals = ScanTotals::of(&self.counters);
        let counts = [
            ("rows_walked", totals.rows_walked),
            ("rows_decoded", totals.rows_decoded),
            ("rows_cached", totals.rows_cached),
            ("batches", totals.batches),
            ("bytes_read", totals.bytes_read),
        ];
        let mut metrics = MetricsSet::new();
        for (name, value) in counts {
            let count = Count::new();
            count.add(usize::try_from(value).unwrap_or(usize::MAX));
            metrics.push(Arc::new(Metric::new(MetricValue::Count { name: name.into(), count }, None)));
        }
        Some(metrics)
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let pieces = match args.partition() {
            None => &*self.pieces,
            Some(stream) => match self.layout.streams.get(stream) {
                Some(pieces) => pieces.as_slice(),
                None => return internal_err!("the scan has no stream {stream}"),
            },
        };
        let all = args.partition().is_none();
        let statistics = statistics(&self.table, pieces, &self.columns, &self.filter);
        let streams = if all { self.layout.streams.len() } else { 1 };
        match self.fetch {
            None => Ok(Arc::new(statistics)),
            Some(fetch) => Ok(Arc::new(statistics.with_fetch(Some(fetch), 0, streams)?)),
        }
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(self.fetching(fetch)))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn try_pushdown_sort(
        &self,
        sort: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        // Other rows come first in another order.
        if self.fetch.is_some() {
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        Ok(match self.ordered(sort)? {
            Some(scan) => SortOrderPushdownResult::Exact { inner: Arc::new(scan) },
            None => SortOrderPushdownResult::Unsupported,
        })
    }
}

impl DisplayAs for TopicScan {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<_> = self.columns.iter().map(|column| column.name()).collect();
        let rows: usize = self.pieces.iter().map(Piece::len).sum();
        write!(f, "TopicScan: topic={}, columns=[{}]", self.table.topic().name, columns.join(", "))?;
        write!(f, ", streams={}, offsets={rows}", self.layout.streams.len())?;
        if let Some(min) = self.filter.timestamp_min.filter(|min| *min > i64::MIN) {
            write!(f, ", timestamp>={min}ms")?;
        }
        if let Some(max) = self.filter.timestamp_max {
            write!(f, ", timestamp<={max}ms")?;
        }
        if let Some(keys) = &self.filter.keys {
            write!(f, ", keys={}", keys.len())?;
        }
        if self.order.offsets_descend {
            write!(f, ", descending")?;
        }
        match self.fetch {
            Some(fetch) => write!(f, ", fetch={fetch}"),
            None => Ok(()),
        }
    }
}

/// What the planner may rely on.
fn properties(schema: SchemaRef, layout: &Layout, order: Order) -> PlanProperties {
    let key = |column: Column, descending: bool| {
        let index = schema.index_of(column.name()).ok()?;
        let expr = Arc::new(ColumnExpr::new(column.name(), index));
        Some(PhysicalSortExpr::new(expr, SortOptions { descending, nulls_first: descending }))
    };
    // One order, though a stream of one partition has several: a merge of streams keeps the one that it merges by, and the
    // planner believes that it keeps all that its input has.
    let keys = if order.by_offset && layout.is_pure {
        vec![key(Column::Offset, order.offsets_descend)]
    } else {
        vec![key(Column::Partition, order.partitions_descend), key(Column::Offset, order.offsets_descend)]
    };
    // Without the column of the first key nothing is known of the second.
    let ordering: Vec<_> = keys.into_iter().map_while(|key| key).collect();
    let orderings = if ordering.is_empty() { Vec::new() } else { vec![ordering] };
    PlanProperties::new(
        EquivalenceProperties::new_with_orderings(schema, orderings),
        Partitioning::UnknownPartitioning(layout.streams.len()),
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
}

fn is_column(expr: &Arc<dyn PhysicalExpr>, column: Column) -> bool {
    expr.downcast_ref::<ColumnExpr>().is_some_and(|expr| expr.name() == column.name())
}

/// Up to so many rows are fetched by one stream for each partition.
const FETCH_FEW: usize = 65_536;
/// Streams that a merge by offset may have.
const ORDERED_STREAMS_MAX: usize = 256;
