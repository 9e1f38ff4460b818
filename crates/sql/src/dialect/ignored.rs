//! Clauses that the parser knows, and the planner would pass over without a word or take for something else: they are
//! refused by name.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Query, Select, SetExpr, SetOperator, SetQuantifier, TableFactor, Visit, Visitor,
};

/// The first such clause of a query, also of one inside of it.
pub(super) fn find(query: &Query) -> Option<&'static str> {
    match Visit::visit(query, &mut Find) {
        ControlFlow::Break(clause) => Some(clause),
        ControlFlow::Continue(()) => None,
    }
}

struct Find;

impl Visitor for Find {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        present(&[
            (!query.locks.is_empty(), "FOR UPDATE"),
            (query.for_clause.is_some(), "FOR XML, JSON or BROWSE"),
            (query.settings.is_some(), "SETTINGS"),
            (query.format_clause.is_some(), "FORMAT"),
        ])?;
        of_body(&query.body)
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Self::Break> {
        match table {
            TableFactor::Table {
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
                ..
            } => present(&[
                (sample.is_some(), "TABLESAMPLE"),
                (version.is_some(), "FOR SYSTEM_TIME AS OF"),
                (!with_hints.is_empty() || !index_hints.is_empty(), "hints of a table"),
                (*with_ordinality, "WITH ORDINALITY"),
                (!partitions.is_empty(), "PARTITION of a table"),
                (json_path.is_some(), "a path behind a table"),
            ]),
            TableFactor::Pivot { .. } => ControlFlow::Break("PIVOT"),
            TableFactor::Unpivot { .. } => ControlFlow::Break("UNPIVOT"),
            TableFactor::MatchRecognize { .. } => ControlFlow::Break("MATCH_RECOGNIZE"),
            TableFactor::Derived { sample, .. } => present(&[(sample.is_some(), "TABLESAMPLE")]),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn of_body(body: &SetExpr) -> ControlFlow<&'static str> {
    match body {
        SetExpr::Select(select) => of_select(select),
        SetExpr::SetOperation { left, op, set_quantifier, right } => {
            // They would be planned as joins, which take a row or leave it, however often it is there.
            let counts = *set_quantifier == SetQuantifier::All;
            present(&[
                (counts && *op == SetOperator::Except, "EXCEPT ALL"),
                (counts && *op == SetOperator::Intersect, "INTERSECT ALL"),
            ])?;
            of_body(left)?;
            of_body(right)
        }
        // a nested query is visited itself
        _ => ControlFlow::Continue(()),
    }
}

fn of_select(select: &Select) -> ControlFlow<&'static str> {
    present(&[
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (select.value_table_mode.is_some(), "SELECT AS STRUCT or VALUE"),
        (select.select_modifiers.is_some(), "a modifier of SELECT"),
    ])
}

/// Breaks off with the first clause that is there.
fn present(clauses: &[(bool, &'static str)]) -> ControlFlow<&'static str> {
    match clauses.iter().find(|(is_present, _)| *is_present) {
        Some((_, clause)) => ControlFlow::Break(clause),
        None => ControlFlow::Continue(()),
    }
}
