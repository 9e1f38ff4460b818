//! Syntax of expressions that is rewritten before it is planned.
//!
//! A chain of `AND` or `OR` is parsed into a tree as deep as it is long; it is balanced, so that whatever recurses over it
//! does so a few levels only. `SUBSTRING(… FROM …)`, `POSITION(… IN …)` and `OVERLAY(…)` are planned as calls of `DataFusion`'s own functions, which
//! take text only; as plain calls they find those that take bytes too. `LIKE … ESCAPE` takes no escape character but the
//! backslash.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    Ident, ObjectName, Query, SelectItem, SetExpr, TableFactor, Value, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::generic::Syntax;

/// Rewrites every expression of a query.
pub(super) fn rewrite(query: &mut Query) {
    let rewritten = query.visit(&mut Rewrite);
    debug_assert!(rewritten.is_continue(), "nothing breaks off");
}

struct Rewrite;

impl VisitorMut for Rewrite {
    type Break = ();

    // before what is inside of it is visited, which recurses
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        balance(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(call) = plain_call(expr) {
            *expr = call;
        }
        escape_with_backslash(expr);
        compare_with_rows(expr);
        ControlFlow::Continue(())
    }
}

/// `x = ANY (SELECT …)` is `x IN (SELECT …)`, and `x <> ALL (SELECT …)` is `x NOT IN (SELECT …)`.
///
/// With other operators, the column of the rows gets a name of its own: `DataFusion` compares `x` with it by its name, and takes
/// the two for the same where both are of one table.
fn compare_with_rows(expr: &mut Expr) {
    let (left, op, right, negated) = match expr {
        Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op, right, false),
        Expr::AllOp { left, compare_op, right } => (left, compare_op, right, true),
        _ => return,
    };
    let Expr::Subquery(subquery) = right.as_mut() else {
        return;
    };
    if matches!((&*op, negated), (BinaryOperator::Eq, false) | (BinaryOperator::NotEq, true)) {
        let left = std::mem::replace(left, Box::new(Expr::value(Value::Null)));
        *expr = Expr::InSubquery { expr: left, subquery: subquery.clone(), negated };
        return;
    }
    if let SetExpr::Select(select) = subquery.body.as_mut()
        && let [item @ (SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })] =
            select.projection.as_mut_slice()
    {
        if let SelectItem::UnnamedExpr(expr) = item {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::new(COMPARED) };
        }
    } else if let Some(named) = named_rows(subquery) {
        **subquery = named;
    }
}

/// `SELECT * FROM (query) AS name`.
fn named_rows(query: &Query) -> Option<Query> {
    let parser = Parser::new(&Syntax).try_with_sql(&format!("SELECT * FROM (SELECT 1) AS {COMPARED}"));
    let mut named = parser.ok()?.parse_query().ok()?;
    let SetExpr::Select(select) = named.body.as_mut() else {
        return None;
    };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    **subquery = query.clone();
    Some(*named)
}

/// Balances a chain of one of the two associative operators, if the expression is one.
fn balance(expr: &mut Expr) {
    let Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } = expr else {
        return;
    };
    let op = op.clone();
    let mut operands = Vec::new();
    let mut rest = std::mem::replace(expr, Expr::value(Value::Null));
    // the parser's chains lean to the left
    loop {
        match rest {
            Expr::BinaryOp { left, op: next, right } if next == op => {
                operands.push(*right);
                rest = *left;
            }
            first => {
                operands.push(first);
                break;
            }
        }
    }
    operands.reverse();
    while operands.len() > 1 {
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        let mut operands_left = operands.into_iter();
        while let Some(left) = operands_left.next() {
            pairs.push(match operands_left.next() {
                Some(right) => {
                    Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }
                }
                None => left,
            });
        }
        operands = pairs;
    }
    if let Some(balanced) = operands.pop() {
        *expr = balanced;
    }
}

fn plain_call(expr: &Expr) -> Option<Expr> {
    let (name, arguments) = match expr {
        Expr::Substring { expr, substring_from: Some(from), substring_for: length, .. } => {
            ("substr", vec![Some(expr), Some(from), length.as_ref()])
        }
        Expr::Position { expr, r#in } => ("strpos", vec![Some(r#in), Some(expr)]),
        Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            ("overlay", vec![Some(expr), Some(overlay_what), Some(overlay_from), overlay_for.as_ref()])
        }
        _ => return None,
    };
    let arguments = arguments.into_iter().flatten().map(|argument| argument.as_ref().clone());
    Some(call(name, arguments))
}

/// See [`super::escape_with_backslash`].
pub(super) fn escape_with_backslash(expr: &mut Expr) {
    let (Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. }) = expr else {
        return;
    };
    let Some(Value::SingleQuotedString(escape)) = escape_char.as_ref().map(|escape| &escape.value) else {
        return;
    };
    let mut characters = escape.chars();
    let escape = match (characters.next(), characters.next()) {
        (Some('\\'), None) => return,
        (escape, None) => escape,
        _ => return, // is refused when it is planned
    };
    let new = match pattern.as_ref() {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(pattern) => text(&escaped(pattern, escape)),
            _ => return,
        },
        pattern => {
            let mut new = replaced(pattern.clone(), "\\", "\\\\");
            if let Some(escape) = escape.map(String::from) {
                new = replaced(new, &escape.repeat(2), DOUBLED);
                new = replaced(new, &escape, "\\");
                new = replaced(new, DOUBLED, &escape);
            }
            new
        }
    };
    **pattern = new;
    *escape_char = None;
}

fn escaped(pattern: &str, escape: Option<char>) -> String {
    let mut new = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match (c, characters.clone().next()) {
            (c, Some(next)) if Some(c) == escape => {
                characters.next();
                new.extend(['\\', next]);
            }
            ('\\', _) => new.push_str("\\\\"),
            (c, _) => new.push(c),
        }
    }
    new
}

fn replaced(expr: Expr, from: &str, to: &str) -> Expr {
    call("replace", [expr, text(from), text(to)])
}

fn text(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.to_owned()))
}

fn call(name: &str, arguments: impl IntoIterator<Item = Expr>) -> Expr {
    let arguments =
        arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// What rows are called with which something is compared.
const COMPARED: &str = "rows_compared";
/// Stands for two escape characters, which are one that is meant, while single ones are replaced.
const DOUBLED: &str = "\u{1}";
