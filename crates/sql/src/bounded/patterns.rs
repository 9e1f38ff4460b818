//! `~` with a pattern that is not a constant, as a function: each pattern that is compiled takes memory.

use std::ops::Not;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::functions::regex::regexp_like;
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::{Expr, Operator};

use super::{Bounds, wrapped};

/// The operator as `regexp_like`, if its pattern is not a constant. To be called when texts have one type.
pub(super) fn wrap(binary: BinaryExpr, bounds: &Arc<Bounds>) -> Transformed<Expr> {
    let (is_negated, ignores_case) = match binary.op {
        Operator::RegexMatch => (false, false),
        Operator::RegexIMatch => (false, true),
        Operator::RegexNotMatch => (true, false),
        Operator::RegexNotIMatch => (true, true),
        _ => return Transformed::no(Expr::BinaryExpr(binary)),
    };
    if matches!(*binary.right, Expr::Literal(..)) {
        return Transformed::no(Expr::BinaryExpr(binary));
    }
    let mut arguments = vec![*binary.left, *binary.right];
    if ignores_case {
        arguments.push(Expr::Literal(ScalarValue::Utf8(Some("i".to_owned())), None));
    }
    let call = ScalarFunction::new_udf(wrapped(regexp_like(), bounds), arguments);
    let call = Expr::ScalarFunction(call);
    Transformed::yes(if is_negated { call.not() } else { call })
}
