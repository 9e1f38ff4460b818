//! `DataFusion`'s simplification of expressions, without what it gets wrong about `IN`.
//!
//! It takes two lists of one operand together: `x IN (1, 2) AND x IN (3, 4)` becomes false, and `x NOT IN (1, 2) OR x NOT IN
//! (3, 4)` true, also where `x` is null and both are null; nulls and columns among the items are taken for values that equal
//! nothing else. Only unions of lists are right: of `IN` with `OR` between, of `NOT IN` with `AND`.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Optimizer, OptimizerConfig, OptimizerRule};

/// `DataFusion`'s rules for logical plans, with ours in the place of its simplification.
pub(crate) fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    for rule in &mut rules {
        if rule.name() == SimplifyExpressions::new().name() {
            *rule = Arc::new(ListsApart::default());
        }
    }
    rules
}

/// The simplification, for which the operands of lists that must not be taken together have marks that differ.
#[derive(Debug, Default)]
struct ListsApart(SimplifyExpressions);

impl OptimizerRule for ListsApart {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new(&plan);
        let mut mark = |expr: Expr| {
            let name = names.save(&expr);
            let marked = Marks::default().mark(expr, false)?;
            Ok(if marked.transformed { marked.update_data(|expr| name.restore(expr)) } else { marked })
        };
        let marked = plan.map_expressions(|expr| match expr {
            Expr::GroupingSet(_) => expr.map_children(&mut mark),
            expr => mark(expr),
        })?;
        let simplified = self.0.rewrite(marked.data, config)?;
        if !marked.transformed {
            return Ok(simplified);
        }
        simplified.map_data(|plan| {
            let names = NamePreserver::new(&plan);
            let mut unmark = |expr: Expr| {
                let name = names.save(&expr);
                Ok(unmarked(expr)?.update_data(|expr| without_needless_alias(name.restore(expr))))
            };
            plan.map_expressions(|expr| match expr {
                Expr::GroupingSet(_) => expr.map_children(&mut unmark),
                expr => unmark(expr),
            })
            .data()
        })
    }
}

/// The marks that the operands in an expression have got: which conditions each of them stands in. The first one has none.
#[derive(Debug, Default)]
struct Marks(HashMap<Expr, Operands>);

#[derive(Debug, Default)]
struct Operands {
    count: usize,
    /// The marks of single conditions. The same condition has the same one, so that it is still recognised.
    of_conditions: HashMap<(Expr, bool), usize>,
}

/// An operand's marks in one chain of `AND` or `OR`.
#[derive(Clone, Copy, Debug, Default)]
struct InChain {
    conditions: usize,
    mark: Option<usize>,
}

impl Marks {
    /// Marks the operands in an expression that has so many `NOT`s above it that it is `negated`.
    fn mark(&mut self, expr: Expr, negated: bool) -> Result<Transformed<Expr>> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                let mut chain = HashMap::new();
                count(&expr, op, &mut chain);
                self.mark_chain(expr, op, negated, &mut chain)
            }
            Expr::Not(_) => expr.map_children(|expr| self.mark(expr, !negated)),
            expr => match Condition::of(&expr) {
                Some(Condition { operand, .. }) => {
                    let operands = self.0.entry(operand.clone()).or_default();
                    let next = operands.count;
                    let mark = *operands.of_conditions.entry((expr.clone(), negated)).or_insert(next);
                    operands.count = operands.count.max(mark + 1);
                    marked(expr, mark)
                }
                None => expr.map_children(|expr| self.mark(expr, negated)),
            },
        }
    }

    /// Marks the operands in a chain, of which those conditions have the same mark whose union is right.
    fn mark_chain(
        &mut self,
        expr: Expr,
        chained: Operator,
        negated: bool,
        chain: &mut HashMap<Expr, InChain>,
    ) -> Result<Transformed<Expr>> {
        if matches!(&expr, Expr::BinaryExpr(BinaryExpr { op, .. }) if *op == chained) {
            return expr.map_children(|expr| self.mark_chain(expr, chained, negated, chain));
        }
        let operand = Condition::of(&expr).filter(|condition| condition.is_united_by(chained));
        let in_chain = operand.and_then(|condition| chain.get_mut(condition.operand));
        match in_chain.filter(|in_chain| in_chain.conditions > 1).zip(operand) {
            Some((in_chain, condition)) => {
                let operands = self.0.entry(condition.operand.clone()).or_default();
                let mark = *in_chain.mark.get_or_insert(operands.count);
                operands.count = operands.count.max(mark + 1);
                marked(expr, mark)
            }
            None => self.mark(expr, negated),
        }
    }
}

/// Counts the conditions of each operand in a chain whose union is right.
fn count(expr: &Expr, chained: Operator, chain: &mut HashMap<Expr, InChain>) {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if *op == chained => {
            count(left, chained, chain);
            count(right, chained, chain);
        }
        expr => {
            if let Some(condition) = Condition::of(expr).filter(|condition| condition.is_united_by(chained)) {
                chain.entry(condition.operand.clone()).or_default().conditions += 1;
            }
        }
    }
}

/// What is, or may become, a list.
#[derive(Clone, Copy, Debug)]
struct Condition<'a> {
    /// What is looked up, without its casts.
    operand: &'a Expr,
    /// Whether it is `NOT IN` or `<>`.
    negated: bool,
}

impl<'a> Condition<'a> {
    fn of(expr: &'a Expr) -> Option<Self> {
        match expr {
            Expr::InList(InList { expr, negated, .. }) => {
                let operand = without_casts(expr);
                (!matches!(operand, Expr::Literal(..))).then_some(Self { operand, negated: *negated })
            }
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Eq | Operator::NotEq), right }) => {
                let negated = *op == Operator::NotEq;
                match (without_casts(left), without_casts(right)) {
                    (Expr::Column(_), Expr::Column(_)) => None,
                    (operand @ Expr::Column(_), _) | (_, operand @ Expr::Column(_)) => {
                        Some(Self { operand, negated })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    const fn is_united_by(&self, chained: Operator) -> bool {
        self.negated == matches!(chained, Operator::And)
    }
}

fn without_casts(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Cast(cast) => &cast.expr,
            Expr::TryCast(cast) => &cast.expr,
            expr => return expr,
        };
    }
}

/// A condition with a mark at its operand, below the casts: these are moved to the items.
fn marked(condition: Expr, mark: usize) -> Result<Transformed<Expr>> {
    if mark == 0 {
        return Ok(Transformed::no(condition));
    }
    let name = format!("{MARK}{mark}");
    let marked = match condition {
        Expr::InList(list) => {
            Expr::InList(InList { expr: Box::new(marked_operand(*list.expr, &name)?), ..list })
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let side = |side: Box<Expr>| -> Result<Box<Expr>> {
                let is_operand = matches!(without_casts(&side), Expr::Column(_));
                if is_operand { marked_operand(*side, &name).map(Box::new) } else { Ok(side) }
            };
            Expr::BinaryExpr(BinaryExpr { left: side(left)?, op, right: side(right)? })
        }
        other => other,
    };
    Ok(Transformed::yes(marked))
}

fn marked_operand(expr: Expr, name: &str) -> Result<Expr> {
    match expr {
        Expr::Cast(_) | Expr::TryCast(_) => {
            expr.map_children(|expr| marked_operand(expr, name).map(Transformed::yes)).data()
        }
        expr => Ok(expr.alias(name)),
    }
}

fn unmarked(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        Ok(match expr {
            Expr::Alias(alias) if alias.name.starts_with(MARK) => Transformed::yes(*alias.expr),
            expr => Transformed::no(expr),
        })
    })
}

/// Without an alias that is the expression's own name: rules do not look below it.
fn without_needless_alias(expr: Expr) -> Expr {
    match expr {
        Expr::Alias(alias)
            if alias.metadata.is_none()
                && alias.expr.qualified_name() == (alias.relation.clone(), alias.name.clone()) =>
        {
            *alias.expr
        }
        expr => expr,
    }
}

/// How a mark begins. It is no character of an alias that a statement has, nor of one that keeps columns of the same name apart.
const MARK: char = '\u{2}';
