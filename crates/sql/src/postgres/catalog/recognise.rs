//! Tells the statements that ask for something of PostgreSQL's from those that do not.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, ObjectName, Query, Select, Statement, Value, ValueWithSpan, Visit, VisitMut, Visitor,
    VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::rewrite::{constant, parts};
use super::{Facts, Recognised, layout, select};

/// See [`Catalog::recognise`](super::Catalog::recognise).
pub(super) fn recognise(text: &str, facts: &Facts) -> Option<Recognised> {
    let lower = text.to_ascii_lowercase();
    // Most statements are about topics, and need not be read twice.
    if !HINTS.iter().any(|hint| lower.contains(hint)) {
        return None;
    }
    // what is too deep to be parsed is refused by the session
    crate::dialect::check_depth(text).ok()?;
    let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, text).ok()?;
    let mut statement = statements.pop().filter(|_| statements.is_empty())?;
    if !matches!(statement, Statement::Query(_)) {
        return None;
    }
    let mut found = Found::default();
    let _ = statement.visit(&mut found);
    let foreign = found.relations.difference(&found.local).count() > 0;
    if !found.own {
        return None;
    }
    if !foreign {
        return Some(Recognised::Own(Box::new(statement)));
    }
    let _ = VisitMut::visit(&mut statement, &mut Constants { facts });
    Some(Recognised::Mixed(statement.to_string()))
}

/// How many parameters a statement has.
pub(super) fn parameters(statement: &Statement) -> usize {
    let mut greatest = Greatest(0);
    let _ = statement.visit(&mut greatest);
    greatest.0
}

/// The greatest number of a parameter.
struct Greatest(usize);

impl Visitor for Greatest {
    type Break = ();

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        if let Value::Placeholder(name) = &value.value {
            let number = name.strip_prefix('$').and_then(|number| number.parse().ok());
            self.0 = self.0.max(number.unwrap_or(0));
        }
        ControlFlow::Continue(())
    }
}

/// What a statement refers to.
#[derive(Default)]
struct Found {
    own: bool,
    /// Relations that are neither in `pg_catalog` nor in `information_schema`.
    relations: BTreeSet<String>,
    /// Names that the statement gives to queries of its own.
    local: BTreeSet<String>,
}

impl Visitor for Found {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.local.extend(tables.map(|table| table.alias.name.value.clone()));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        match parts(relation).as_slice() {
            [.., schema, _] if schema == "pg_catalog" => self.own = true,
            [.., schema, _] if schema == "information_schema" => {}
            [name] if layout::is_table(name) => self.own = true,
            // Functions that give rows.
            [name] if name.starts_with("pg_get_") => self.own = true,
            names => {
                self.relations.extend(names.last().cloned());
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.own |= match expr {
            Expr::Function(function) => match parts(&function.name).as_slice() {
                [schema, _] => schema == "pg_catalog",
                [name] => is_own_function(name),
                _ => false,
            },
            Expr::Cast { data_type, .. } => match data_type {
                DataType::Regclass => true,
                DataType::Custom(name, _) => {
                    let names = parts(name);
                    names.first().is_some_and(|first| first == "pg_catalog")
                        || names.last().is_some_and(|last| last.starts_with("reg") || last == "oid")
                }
                _ => false,
            },
            _ => false,
        };
        ControlFlow::Continue(())
    }
}

fn is_own_function(name: &str) -> bool {
    let named = matches!(
        name,
        "version" | "current_schemas" | "quote_ident" | "format_type" | "to_regclass" | "to_regtype"
    );
    named
        || matches!(name, "set_config" | "current_setting")
        || name.starts_with("pg_")
        || name.starts_with("has_")
        || super::rewrite::is_constant(name)
}

/// Replaces what answers always the same, and leaves the rest to the engine.
struct Constants<'a> {
    facts: &'a Facts,
}

impl VisitorMut for Constants<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select::name(select);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && let Some(name) = parts(&function.name).last()
            && let Some(value) = constant(name, self.facts)
        {
            *expr = value;
        }
        ControlFlow::Continue(())
    }
}

const HINTS: &[&str] = &[
    "pg_",
    "version",
    "current_",
    "session_user",
    "set_config",
    "_description",
    "format_type",
    "reg",
    "oid",
    "quote_ident",
    "has_",
    "inet_",
    "txid_",
];
