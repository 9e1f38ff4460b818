//! What is done with whole queries: those over tables that are always empty need not be understood, and columns get the
//! names that PostgreSQL gives them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, FunctionArguments, GroupByExpr, Ident, JoinOperator, Query, Select, SelectItem, SetExpr,
    SetOperator, TableFactor, TableWithJoins, Values, Visit, Visitor,
};

use super::layout;
use super::rewrite::{call, cast, null, parse, parts};

/// Leaves out what has no rows: a query over an empty table gives its columns as texts, and no row.
pub(super) fn prune(query: &mut Query) {
    prune_body(&mut query.body);
    if !is_empty(&query.body) {
        return;
    }
    let Some(items) = first_select(&query.body).and_then(|select| nameable(&select.projection)) else {
        return;
    };
    let Some(mut nothing) = nothing() else { return };
    if let SetExpr::Select(select) = nothing.body.as_mut() {
        select.projection = items;
    }
    *query = nothing;
}

/// Of two queries of a union, an empty one is left out.
fn prune_body(body: &mut SetExpr) {
    if let SetExpr::SetOperation { left, op: SetOperator::Union, right, .. } = body {
        prune_body(left);
        prune_body(right);
        let kept = match (is_empty(left), is_empty(right)) {
            (true, false) => right,
            (false, true) => left,
            _ => return,
        };
        *body = std::mem::replace(
            kept,
            SetExpr::Values(Values { explicit_row: false, value_keyword: false, rows: Vec::new() }),
        );
    }
}

/// Replaces a subquery that has no rows by what it gives.
pub(super) fn prune_expr(expr: &mut Expr) {
    let value = match expr {
        Expr::Subquery(query) if is_empty(&query.body) => cast(null(), DataType::Text),
        Expr::Exists { subquery, negated } if is_empty(&subquery.body) => {
            parse(if *negated { "TRUE" } else { "FALSE" })
        }
        Expr::InSubquery { subquery, negated, .. } if is_empty(&subquery.body) => {
            parse(if *negated { "TRUE" } else { "FALSE" })
        }
        Expr::Function(function) => match &function.args {
            FunctionArguments::Subquery(query) if is_empty(&query.body) => parse("make_array()"),
            _ => return,
        },
        _ => return,
    };
    *expr = value;
}

/// DataFusion wants to know of a subquery that refers to the outer query that it gives one row at most. In the catalog it
/// does, and so its greatest value is its value.
pub(super) fn aggregate(query: &mut Query) {
    if query.limit_clause.is_some() || !refers_outside(query) {
        return;
    }
    query.order_by = None;
    if let SetExpr::Select(select) = query.body.as_mut()
        && !is_aggregate(select)
        && let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] =
            select.projection.as_mut_slice()
    {
        let inner = std::mem::replace(expr, null());
        *expr = call("max", vec![inner]);
    }
}

/// `ARRAY(SELECT ..)`: the rows of a query as one array.
pub(super) fn gather(query: &mut Query) {
    query.order_by = None;
    if let SetExpr::Select(select) = query.body.as_mut()
        && let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] =
            select.projection.as_mut_slice()
    {
        let inner = std::mem::replace(expr, null());
        *expr = call("array_agg", vec![inner]);
    }
}

/// Gives the columns their names in PostgreSQL, and keeps equal ones apart.
pub(super) fn name(select: &mut Select) {
    let mut taken = BTreeSet::new();
    for (index, item) in select.projection.iter_mut().enumerate() {
        let (expr, name, given) = match item {
            SelectItem::UnnamedExpr(expr) => {
                let Some(name) = name_of(expr) else { continue };
                let plain = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                (expr, name, plain)
            }
            SelectItem::ExprWithAlias { expr, alias } => (expr, alias.value.clone(), true),
            _ => continue,
        };
        let unique = taken.insert(name.clone());
        if unique && given {
            continue;
        }
        let name = if unique { name } else { format!("{name}{APART}{index}") };
        let expr = std::mem::replace(expr, null());
        *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
    }
}

/// Stands between a column's name and what keeps it apart from others of the same name.
pub(super) const APART: char = '\u{1}';

/// The name that PostgreSQL gives to the column of an expression.
pub(crate) fn name_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(lowered(ident)),
        Expr::CompoundIdentifier(idents) => idents.last().map(lowered),
        Expr::Substring { .. } => Some("substring".to_owned()),
        Expr::Position { .. } => Some("position".to_owned()),
        Expr::Extract { .. } => Some("extract".to_owned()),
        Expr::Function(function) => parts(&function.name).pop(),
        Expr::Cast { expr, data_type, .. } => name_of(expr).filter(|name| name != UNNAMED).or_else(|| {
            let name = data_type.to_string().to_ascii_lowercase();
            name.rsplit('.').next().map(|name| match name {
                "smallint" => "int2".to_owned(),
                "int" | "integer" => "int4".to_owned(),
                "bigint" => "int8".to_owned(),
                "real" => "float4".to_owned(),
                "double precision" | "double" => "float8".to_owned(),
                "boolean" => "bool".to_owned(),
                name => name.to_owned(),
            })
        }),
        Expr::Case { .. } => Some("case".to_owned()),
        Expr::Exists { .. } => Some("exists".to_owned()),
        Expr::Nested(expr) | Expr::Collate { expr, .. } => name_of(expr),
        Expr::Subquery(query) => match first_select(&query.body)?.projection.as_slice() {
            [SelectItem::UnnamedExpr(expr)] => name_of(expr),
            [SelectItem::ExprWithAlias { alias, .. }] => Some(alias.value.clone()),
            _ => None,
        },
        _ => Some(UNNAMED.to_owned()),
    }
}

/// A name as it is looked up.
fn lowered(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() }
}

const UNNAMED: &str = "?column?";

/// The columns of an empty answer, if they have names.
fn nameable(projection: &[SelectItem]) -> Option<Vec<SelectItem>> {
    let item = |item: &SelectItem| {
        let alias = match item {
            SelectItem::UnnamedExpr(expr) => Ident::with_quote('"', name_of(expr)?),
            SelectItem::ExprWithAlias { alias, .. } => alias.clone(),
            _ => return None,
        };
        Some(SelectItem::ExprWithAlias { expr: cast(null(), DataType::Text), alias })
    };
    projection.iter().map(item).collect()
}

/// A query without rows.
fn nothing() -> Option<Query> {
    match parse("(SELECT NULL WHERE FALSE)") {
        Expr::Subquery(query) => Some(*query),
        _ => None,
    }
}

/// The first of the `SELECT`s that a query is made of: it names the columns.
pub(in crate::postgres) fn first_select(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select(&query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

/// Whether it is certain, without looking at conditions, that there are no rows.
fn is_empty(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => !is_aggregate(select) && select.from.iter().any(is_empty_source),
        SetExpr::Query(query) => is_empty(&query.body),
        SetExpr::SetOperation { left, op, right, .. } => match op {
            SetOperator::Union => is_empty(left) && is_empty(right),
            SetOperator::Intersect => is_empty(left) || is_empty(right),
            _ => is_empty(left),
        },
        _ => false,
    }
}

fn is_empty_source(source: &TableWithJoins) -> bool {
    let mut empty = is_empty_factor(&source.relation);
    for join in &source.joins {
        let right = is_empty_factor(&join.relation);
        empty = match &join.join_operator {
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => empty || right,
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => empty,
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => right,
            _ => empty && right,
        };
    }
    empty
}

fn is_empty_factor(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Table { name, args, .. } => match parts(name).as_slice() {
            [name] => layout::is_empty(name) || (args.is_some() && gives_nothing(name)),
            [schema, name] if schema == "pg_catalog" || schema == "information_schema" => {
                layout::is_empty(name) || (args.is_some() && gives_nothing(name))
            }
            _ => false,
        },
        TableFactor::Derived { subquery, .. } => is_empty(&subquery.body),
        TableFactor::NestedJoin { table_with_joins, .. } => is_empty_source(table_with_joins),
        _ => false,
    }
}

/// Functions that give rows, and none here: the arrays in the catalog are all null.
fn gives_nothing(function: &str) -> bool {
    function.starts_with("pg_")
        || matches!(function, "unnest" | "aclexplode" | "generate_subscripts" | "_pg_expandarray")
}

/// Whether a query gives a row even if there is none to read.
fn is_aggregate(select: &Select) -> bool {
    let grouped = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(expressions, _) => !expressions.is_empty(),
    };
    !grouped && Calls::of(&select.projection)
}

/// Finds out whether an aggregate function is called, other than in a query of its own.
#[derive(Default)]
struct Calls {
    depth: usize,
}

impl Calls {
    fn of(items: &[SelectItem]) -> bool {
        items.iter().any(|item| item.visit(&mut Self::default()).is_break())
    }
}

impl Visitor for Calls {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth = self.depth.saturating_add(1);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth = self.depth.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function)
                if self.depth == 0
                    && parts(&function.name)
                        .last()
                        .is_some_and(|name| AGGREGATES.contains(&name.as_str())) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

const AGGREGATES: &[&str] = &[
    "array_agg",
    "avg",
    "bool_and",
    "bool_or",
    "count",
    "every",
    "json_agg",
    "max",
    "min",
    "string_agg",
    "sum",
];

/// Whether a query names a table that it does not read itself.
fn refers_outside(query: &Query) -> bool {
    let mut tables = Tables::default();
    let _ = query.visit(&mut tables);
    tables.named.difference(&tables.read).count() > 0
}

#[derive(Default)]
struct Tables {
    read: BTreeSet<String>,
    named: BTreeSet<String>,
}

impl Visitor for Tables {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let (name, alias) = match factor {
            TableFactor::Table { name, alias, .. } => (parts(name).pop(), alias),
            TableFactor::Derived { alias, .. } => (None, alias),
            _ => return ControlFlow::Continue(()),
        };
        self.read.extend(alias.as_ref().map(|alias| alias.name.value.to_ascii_lowercase()).or(name));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(idents) = expr
            && let [.., table, _] = idents.as_slice()
        {
            self.named.insert(table.value.to_ascii_lowercase());
        }
        ControlFlow::Continue(())
    }
}
