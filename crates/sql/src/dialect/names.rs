//! Columns of the same name: an answer may have them, and `DataFusion` refuses them.
//!
//! All but the first get another name while a statement is planned, and their own again in the answer.

use datafusion::logical_expr::{Expr as Planned, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr};

/// Keeps the columns of a query's answer apart.
pub(super) fn keep_apart(query: &mut Query) {
    keep_apart_in(&mut query.body);
}

fn keep_apart_in(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => keep_items_apart(&mut select.projection),
        SetExpr::Query(query) => keep_apart(query),
        // a union has the names of its first query, and each of them is planned by itself
        SetExpr::SetOperation { left, right, .. } => {
            keep_apart_in(left);
            keep_apart_in(right);
        }
        _ => {}
    }
}

fn keep_items_apart(items: &mut [SelectItem]) {
    let is_wildcard =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    let beside_all = items.iter().any(is_wildcard);
    let mut taken: Vec<Name> = Vec::new();
    for (index, item) in items.iter_mut().enumerate() {
        let (expr, given) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.clone())),
            _ => continue,
        };
        let name = given.as_ref().map_or_else(|| Name::of(expr), |given| Name::Column(None, given.clone()));
        // a column that is named beside of `*` is among those, too
        let is_among_all = beside_all && given.is_none() && matches!(name, Name::Column(..));
        if !is_among_all && !taken.iter().any(|other| other.may_be(&name)) {
            taken.push(name);
            continue;
        }
        let alias = Ident::with_quote('"', format!("{}{APART}{index}", given.unwrap_or_default()));
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
    }
}

/// What `DataFusion` calls the column of an expression, as far as it can be told before it is planned.
enum Name {
    /// A column's, with the tables that it is said to be of.
    Column(Option<String>, String),
    /// The text of an expression.
    Text(String),
}

impl Name {
    fn of(expr: &Expr) -> Self {
        match expr {
            Expr::Identifier(ident) => Self::Column(None, folded(ident)),
            Expr::CompoundIdentifier(idents) => {
                let mut parts: Vec<String> = idents.iter().map(folded).collect();
                let column = parts.pop().unwrap_or_default();
                Self::Column(Some(parts.join(".")), column)
            }
            // neither of them is part of a name
            Expr::Cast { expr, .. } | Expr::Nested(expr) => Self::of(expr),
            other => {
                let text = other.to_string().to_lowercase();
                Self::Text(text.replace(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"'), ""))
            }
        }
    }

    /// Whether both may be the same; if they are not, it does no harm.
    fn may_be(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Column(tables, column), Self::Column(other_tables, other_column)) => {
                let same_tables = match (tables, other_tables) {
                    (Some(tables), Some(other_tables)) => tables == other_tables,
                    _ => true,
                };
                column == other_column && same_tables
            }
            (Self::Text(text), Self::Text(other)) => text == other,
            _ => false,
        }
    }
}

fn folded(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() }
}

/// The names of the columns of an answer.
pub(super) fn names(plan: &LogicalPlan) -> Vec<String> {
    let name = |name: &String| match name.split_once(APART) {
        None => name.clone(),
        Some(("", _)) => expression(plan, name).unwrap_or_default(),
        Some((given, _)) => given.to_owned(),
    };
    plan.schema().fields().iter().map(|field| name(field.name())).collect()
}

/// What the expression would be called that has got this name.
fn expression(plan: &LogicalPlan, name: &str) -> Option<String> {
    let mut rest = Some(plan);
    while let Some(plan) = rest {
        if let LogicalPlan::Projection(projection) = plan {
            let found = projection.expr.iter().find_map(|expr| match expr {
                Planned::Alias(alias) if alias.name == name => Some(alias.expr.qualified_name().1),
                _ => None,
            });
            if found.is_some() {
                return found;
            }
        }
        rest = plan.inputs().first().copied();
    }
    None
}

/// Stands between a column's name and what keeps it apart from others of the same name.
const APART: char = '\u{1}';
