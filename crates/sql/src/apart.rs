//! Filters and the columns that they leave out, apart.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

/// Puts a projection over a filter in the place of the columns that the filter leaves out.
///
/// To be run before DataFusion moves projections: it moves one below a filter as if the filter gave all columns of its input,
/// and fails where it gives fewer, because the rule has run before. It puts the two together again.
#[derive(Debug)]
pub(crate) struct FiltersApart;

impl PhysicalOptimizerRule for FiltersApart {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            match plan.downcast_ref::<FilterExec>().and_then(|filter| apart(filter).transpose()) {
                Some(apart) => Ok(Transformed::yes(apart?)),
                None => Ok(Transformed::no(plan)),
            }
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "FiltersApart"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The filter with all columns of its input, below a projection; `None` if it has them all.
fn apart(filter: &FilterExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(kept) = filter.projection() else { return Ok(None) };
    let whole = FilterExecBuilder::from(filter).apply_projection(None)?.build()?;
    let schema = whole.schema();
    let columns = kept.iter().filter_map(|&index| {
        let name = schema.fields().get(index)?.name();
        Some(ProjectionExpr { expr: Arc::new(Column::new(name, index)), alias: name.clone() })
    });
    let columns: Vec<_> = columns.collect();
    Ok(Some(Arc::new(ProjectionExec::try_new(columns, Arc::new(whole))?)))
}
