//! Which joins sort both of their sides, because the smaller one is too much to hold in memory.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use crate::table::TopicTable;

/// Whether a join of this optimised plan may have to hold more than so many bytes. A hash join holds its smaller side and
/// cannot spill it; sorts can. What conditions and groups leave out is not foreseen, so a join may sort without need.
pub(crate) fn are_large(plan: &LogicalPlan, len_max: u64) -> Result<bool> {
    let mut is_large = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Join(join) = node {
            is_large |= len_of(&join.left).min(len_of(&join.right)) > len_max;
        }
        Ok(if is_large { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_large)
}

/// About how many bytes the topics have that a plan reads.
fn len_of(plan: &LogicalPlan) -> u64 {
    let LogicalPlan::TableScan(scan) = plan else {
        return plan.inputs().into_iter().map(len_of).fold(0, u64::saturating_add);
    };
    let provider = source_as_provider(&scan.source);
    provider.ok().and_then(|provider| provider.downcast_ref().map(TopicTable::len)).unwrap_or(0)
}
