//! Text together with bytes, and JSON together with anything, as a user of `key` and `value` expects.
//!
//! - Compared with text, bytes are compared with the text's UTF-8.
//! - As the subject of `LIKE`, of a regular expression or of a function of text, and joined to text by `||`, `CASE` or
//!   `COALESCE`, bytes are text: null where they are not UTF-8.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, BinaryExpr, Case, Cast, InList, Like, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};

use super::json;
use super::strict;
use super::text::{TextFunction, as_text, is_bytes, is_text};
use crate::bounded::is_concatenation;

/// Rewrites expressions before `DataFusion` finds a common type.
#[derive(Debug)]
pub(super) struct TextAndBytes;

impl FunctionRewrite for TextAndBytes {
    fn name(&self) -> &'static str {
        "text_and_bytes"
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema, _config: &ConfigOptions) -> Result<Transformed<Expr>> {
        Ok(match expr {
            Expr::BinaryExpr(binary) => Transformed::yes(Expr::BinaryExpr(operands(binary, schema))),
            Expr::InList(list) => Transformed::yes(Expr::InList(in_list(list, schema))),
            Expr::Between(between) => Transformed::yes(Expr::Between(bounds(between, schema))),
            Expr::Like(like) => Transformed::yes(Expr::Like(pattern(like, schema))),
            Expr::SimilarTo(like) => Transformed::yes(Expr::SimilarTo(pattern(like, schema))),
            Expr::Case(case) => Transformed::yes(Expr::Case(branches(case, schema))),
            Expr::ScalarFunction(call) => function(call, schema),
            Expr::Cast(cast) if makes_text_of_bytes(&cast, schema) => Transformed::yes(strict::as_text(cast)),
            Expr::Cast(_) | Expr::TryCast(_) => json::cast(expr, schema),
            other => Transformed::no(other),
        })
    }
}

fn makes_text_of_bytes(cast: &Cast, schema: &DFSchema) -> bool {
    is_text(cast.field.data_type()) && cast.expr.get_type(schema).is_ok_and(|data_type| is_bytes(&data_type))
}

const fn compares(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// Whether an operator takes text on both sides.
const fn wants_text(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::RegexMatch
            | Operator::RegexIMatch
            | Operator::RegexNotMatch
            | Operator::RegexNotIMatch
            | Operator::LikeMatch
            | Operator::ILikeMatch
            | Operator::NotLikeMatch
            | Operator::NotILikeMatch
    )
}

fn operands(binary: BinaryExpr, schema: &DFSchema) -> BinaryExpr {
    let BinaryExpr { left, op, right } = binary;
    let (left, right) = if compares(op) {
        comparable(*left, *right, schema)
    } else if wants_text(op) {
        (as_text(*left, schema), as_text(*right, schema))
    } else {
        (*left, *right)
    };
    BinaryExpr::new(Box::new(left), op, Box::new(right))
}

/// The sides of `||`: text, unless both are bytes.
fn joined(mut call: ScalarFunction, schema: &DFSchema) -> ScalarFunction {
    let is_bytes = |side: &Expr| side.get_type(schema).is_ok_and(|data_type| is_bytes(&data_type));
    if !call.args.iter().all(is_bytes) {
        call.args = call.args.into_iter().map(|side| as_text(side, schema)).collect();
    }
    call
}

/// Two sides of a comparison.
fn comparable(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let (Ok(left_type), Ok(right_type)) = (left.get_type(schema), right.get_type(schema)) else {
        return (left, right);
    };
    let new_left = compared_with(left.clone(), &left_type, &right, &right_type);
    let new_right = compared_with(right, &right_type, &left, &left_type);
    (new_left, new_right)
}

/// One side, given the types of both.
fn compared_with(expr: Expr, own: &DataType, other: &Expr, other_type: &DataType) -> Expr {
    if is_text(own) && is_bytes(other_type) {
        return as_bytes(expr);
    }
    json::compared_with(expr, other, other_type)
}

/// A text as its UTF-8.
fn as_bytes(expr: Expr) -> Expr {
    if let Expr::Literal(literal, metadata) = &expr
        && let Ok(bytes) = literal.cast_to(&DataType::Binary)
    {
        return Expr::Literal(bytes, metadata.clone());
    }
    Expr::Cast(Cast::new(Box::new(expr), DataType::Binary))
}

fn in_list(list: InList, schema: &DFSchema) -> InList {
    let InList { expr, list, negated } = list;
    let Ok(own) = expr.get_type(schema) else {
        return InList { expr, list, negated };
    };
    let typed = |item: &Expr| item.get_type(schema).ok().filter(|item_type| !item_type.is_null());
    // all items are compared as one type, which must be exact for each
    let decisive = list.iter().find(|item| !json::is_small_integer(item)).or(list.first());
    let new_expr = match decisive.and_then(|item| Some((item, typed(item)?))) {
        Some((item, item_type)) => compared_with(expr.as_ref().clone(), &own, item, &item_type),
        None => expr.as_ref().clone(),
    };
    let list = list
        .into_iter()
        .map(|item| match typed(&item) {
            Some(item_type) => compared_with(item, &item_type, &expr, &own),
            None => item,
        })
        .collect();
    let expr = Box::new(new_expr);
    InList { expr, list, negated }
}

fn bounds(between: Between, schema: &DFSchema) -> Between {
    let Between { expr, negated, low, high } = between;
    let (expr, low) = comparable(*expr, *low, schema);
    let (expr, high) = comparable(expr, *high, schema);
    Between { expr: Box::new(expr), negated, low: Box::new(low), high: Box::new(high) }
}

fn pattern(like: Like, schema: &DFSchema) -> Like {
    Like {
        expr: Box::new(as_text(*like.expr, schema)),
        pattern: Box::new(as_text(*like.pattern, schema)),
        ..like
    }
}

/// `CASE key WHEN 'a' …` compares; results of text and of bytes together are text.
fn branches(case: Case, schema: &DFSchema) -> Case {
    let Case { mut expr, when_then_expr, mut else_expr } = case;
    let mut branches = Vec::with_capacity(when_then_expr.len());
    let results = when_then_expr.iter().map(|(_, then)| then).chain(&else_expr);
    let mixed = {
        let types: Vec<DataType> = results.filter_map(|result| result.get_type(schema).ok()).collect();
        types.iter().any(is_text) && types.iter().any(is_bytes)
    };
    for (when, then) in when_then_expr {
        let when = match expr.take() {
            Some(subject) => {
                let (subject, when) = comparable(*subject, *when, schema);
                expr = Some(Box::new(subject));
                Box::new(when)
            }
            None => when,
        };
        let then = if mixed { Box::new(as_text(*then, schema)) } else { then };
        branches.push((when, then));
    }
    if mixed {
        else_expr = else_expr.map(|result| Box::new(as_text(*result, schema)));
    }
    Case { expr, when_then_expr: branches, else_expr }
}

fn function(call: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    if is_concatenation(&call.func) {
        return Transformed::yes(Expr::ScalarFunction(joined(call, schema)));
    }
    let Some(function) = call.func.inner().downcast_ref::<TextFunction>() else {
        return json::nested(call);
    };
    let arguments = function.arguments(call.args, schema);
    Transformed::yes(json::nested(ScalarFunction::new_udf(function.inner().clone(), arguments)).data)
}
