//! How long the rows of a statement are, so that its batches are not too long.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::bounded::{scalar_len, varies};
use crate::table::TopicTable;

/// What an optimised plan says of its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Widths {
    /// About the bytes of a row where it is longest.
    row_len: usize,
    /// How many functions the plan calls.
    pub(crate) calls: usize,
}

impl Widths {
    /// By the average length of the rows of each topic. What is long among short ones is not foreseen, nor how much longer
    /// compressed rows become.
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut widths = Self::default();
        widths.add(plan)?;
        Ok(widths)
    }

    /// How many rows have about so many bytes.
    pub(crate) fn rows(self, len: usize, rows_max: usize) -> usize {
        (len / self.row_len.max(1)).max(ROWS_MIN).min(rows_max)
    }

    /// The bytes of a node's rows.
    fn add(&mut self, plan: &LogicalPlan) -> Result<usize> {
        let mut given = 0_usize;
        for input in plan.inputs() {
            let len = self.add(input)?;
            given =
                if matches!(plan, LogicalPlan::Join(_)) { given.saturating_add(len) } else { given.max(len) };
        }
        let mut subqueries = 0_usize;
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                match expr {
                    Expr::ScalarFunction(_) => self.calls += 1,
                    Expr::ScalarSubquery(subquery) => {
                        subqueries = subqueries.saturating_add(self.add(&subquery.subquery)?);
                    }
                    Expr::Exists(exists) => _ = self.add(&exists.subquery.subquery)?,
                    Expr::InSubquery(within) => _ = self.add(&within.subquery.subquery)?,
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        let given = given.saturating_add(subqueries);
        let row_len = match plan {
            LogicalPlan::TableScan(scan) => source_as_provider(&scan.source)
                .ok()
                .and_then(|provider| provider.downcast_ref().map(TopicTable::row_len))
                .unwrap_or(0),
            _ => made(plan, given)?.into_iter().fold(given, usize::saturating_add),
        };
        self.row_len = self.row_len.max(row_len);
        Ok(row_len)
    }
}

/// The bytes of each column that a node makes from rows of so many bytes, and does not only hand on.
fn made(plan: &LogicalPlan, given: usize) -> Result<Vec<usize>> {
    let first = match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) => 0,
        LogicalPlan::Window(window) => window.input.schema().fields().len(),
        _ => return Ok(Vec::new()),
    };
    let mut fields = plan.schema().fields().iter().skip(first);
    let mut made = Vec::new();
    plan.apply_expressions(|expr| {
        let varies = fields.next().is_none_or(|field| varies(field.data_type()));
        if varies && !is_column(expr) {
            let given = if expr.any_column_refs() { given } else { 0 };
            made.push(given.saturating_add(literals(expr)?));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(made)
}

/// The bytes of the literals that may become values of each row: not those that are only compared with.
fn literals(expr: &Expr) -> Result<usize> {
    let mut len = 0_usize;
    expr.apply(|expr| {
        Ok(match expr {
            Expr::InList(_) | Expr::Like(_) | Expr::SimilarTo(_) | Expr::Between(_) => {
                TreeNodeRecursion::Jump
            }
            Expr::BinaryExpr(binary) if binary.op.supports_propagation() => TreeNodeRecursion::Jump,
            Expr::Literal(literal, _) => {
                len = len.saturating_add(scalar_len(literal));
                TreeNodeRecursion::Continue
            }
            _ => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(len)
}

fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Alias(alias) => is_column(&alias.expr),
        _ => false,
    }
}

/// Batches have no fewer rows, however long these are.
const ROWS_MIN: usize = 16;
