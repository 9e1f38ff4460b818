//! What a statement is to the session, and the refusal of those that write.

use std::ops::ControlFlow;

use datafusion::sql::parser::{ExplainStatement, ResetStatement, Statement};
use datafusion::sql::sqlparser::ast::{
    self, Expr, ObjectName, Query, Set, SetExpr, UnaryOperator, Value, Visit, Visitor,
};

use super::{Order, Scope, ignored, names, show, syntax};
use crate::error::{QueryError, QueryErrorKind};

/// See [`super::understand`].
pub(super) fn understand(statement: Statement, scope: Scope<'_>) -> Result<Order, QueryError> {
    match statement {
        Statement::Statement(statement) => understand_standard(*statement, scope),
        Statement::Explain(explain) => {
            let explained = understand_explained(*explain.statement, scope)?;
            Ok(query(Statement::Explain(ExplainStatement { statement: Box::new(explained), ..explain })))
        }
        Statement::Reset(ResetStatement::Variable(name)) => set(&name, None),
        Statement::CreateExternalTable(_) => Err(read_only("CREATE EXTERNAL TABLE")),
        Statement::CopyTo(_) => Err(read_only("COPY")),
    }
}

fn understand_explained(statement: Statement, scope: Scope<'_>) -> Result<Statement, QueryError> {
    match understand(statement, scope)? {
        Order::Query(statement) => Ok(*statement),
        Order::Set { .. } | Order::Nothing => Err(unsupported("`EXPLAIN` of what is not a query")),
    }
}

fn understand_standard(statement: ast::Statement, scope: Scope<'_>) -> Result<Order, QueryError> {
    use ast::Statement as S;
    match statement {
        S::Query(mut body) => {
            syntax::rewrite(&mut body);
            if let ControlFlow::Break(what) = Visit::visit(&body, &mut FindWrites) {
                return Err(read_only(what));
            }
            if let Some(clause) = ignored::find(&body) {
                return Err(unsupported(&format!("`{clause}`")));
            }
            names::keep_apart(&mut body);
            Ok(standard(S::Query(body)))
        }
        S::Explain { describe_alias, analyze, verbose, query_plan, estimate, statement, format, options } => {
            let explained = understand_explained(Statement::Statement(statement), scope)?;
            let Statement::Statement(statement) = explained else {
                return Err(unsupported("`EXPLAIN EXPLAIN`"));
            };
            let explain = S::Explain {
                describe_alias,
                analyze,
                verbose,
                query_plan,
                estimate,
                statement,
                format,
                options,
            };
            Ok(standard(explain))
        }
        S::ExplainTable { .. } | S::ShowFunctions { .. } => Ok(standard(statement)),
        S::ShowVariable { variable } => Ok(query(show::variable(&variable, scope)?)),
        S::ShowSchemas { show_options, .. } => Ok(query(show::schemas(show_options, scope)?)),
        S::ShowTables { show_options, .. } => Ok(query(show::tables(show_options, scope)?)),
        S::ShowCatalogs { show_options, .. } => Ok(query(show::catalogs(show_options, "Catalog", scope)?)),
        S::ShowDatabases { show_options, .. } => Ok(query(show::catalogs(show_options, "Database", scope)?)),
        S::ShowColumns { show_options, .. } => Ok(query(show::columns(show_options)?)),
        S::Set(assignment) => understand_set(assignment),
        S::StartTransaction { .. }
        | S::Commit { .. }
        | S::Rollback { .. }
        | S::Savepoint { .. }
        | S::ReleaseSavepoint { .. }
        | S::Discard { .. }
        | S::Deallocate { .. }
        | S::Close { .. }
        | S::UNLISTEN { .. } => Ok(Order::Nothing),
        S::Use(_) => Err(unsupported("`USE`: write the catalog and the schema before the table, or `USE`")),
        S::Declare { .. } | S::Fetch { .. } | S::Open(_) => Err(without_cursors(&statement)),
        S::Prepare { .. } | S::Execute { .. } | S::LISTEN { .. } => {
            Err(unsupported(&format!("`{}`", first_words(&statement))))
        }
        other if first_words(&other).starts_with("SHOW") => {
            Err(unsupported(&format!("`{}`", first_words(&other))))
        }
        other => Err(read_only(&first_words(&other))),
    }
}

fn without_cursors(statement: &ast::Statement) -> QueryError {
    let what = first_words(statement);
    let text = format!("`{what}` is not supported: there are no cursors, and answers come as they are read");
    QueryError::new(QueryErrorKind::Unsupported, text)
}

/// Finds what would write inside of a query: `WITH x AS (DELETE …)`, `SELECT … INTO`.
struct FindWrites;

impl Visitor for FindWrites {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        writes(&query.body)
    }
}

fn writes(body: &SetExpr) -> ControlFlow<&'static str> {
    match body {
        SetExpr::Insert(_) => ControlFlow::Break("INSERT"),
        SetExpr::Update(_) => ControlFlow::Break("UPDATE"),
        SetExpr::Delete(_) => ControlFlow::Break("DELETE"),
        SetExpr::Merge(_) => ControlFlow::Break("MERGE"),
        SetExpr::Select(select) if select.into.is_some() => ControlFlow::Break("SELECT INTO"),
        SetExpr::SetOperation { left, right, .. } => {
            writes(left)?;
            writes(right)
        }
        // a nested query is visited itself
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) | SetExpr::Table(_) => {
            ControlFlow::Continue(())
        }
    }
}

fn understand_set(assignment: Set) -> Result<Order, QueryError> {
    match assignment {
        Set::SingleAssignment { variable, values, .. } => set(&variable, Some(&values)),
        Set::SetTimeZone { value, .. } => set_time_zone(Some(&[value])),
        Set::SetNames { .. } | Set::SetNamesDefault {} | Set::SetTransaction { .. } => Ok(Order::Nothing),
        Set::ParenthesizedAssignments { .. }
        | Set::MultipleAssignments { .. }
        | Set::SetSessionAuthorization(_)
        | Set::SetSessionParam(_)
        | Set::SetRole { .. } => Err(unsupported("this form of `SET`")),
    }
}

fn set(variable: &ObjectName, values: Option<&[Expr]>) -> Result<Order, QueryError> {
    let name = show::parts(variable)?.join(".").to_ascii_lowercase();
    match name.as_str() {
        name if is_time_zone(name) => set_time_zone(values),
        "all" if values.is_none() => set_time_zone(None),
        name if WITHOUT_EFFECT.contains(&name) => Ok(Order::Nothing),
        name => Err(QueryError::new(QueryErrorKind::Unsupported, format!("`{name}` cannot be set"))),
    }
}

/// Whether it is a name of the one variable that has an effect.
pub(super) fn is_time_zone(name: &str) -> bool {
    [TIME_ZONE, "timezone", "time.zone"].contains(&name)
}

fn set_time_zone(values: Option<&[Expr]>) -> Result<Order, QueryError> {
    let value = match values {
        None => None,
        Some([value]) => time_zone(value)?,
        Some(_) => return Err(not_a_time_zone()),
    };
    Ok(Order::Set { name: TIME_ZONE.to_owned(), value })
}

/// A zone's name or offset; a number is of hours.
fn time_zone(value: &Expr) -> Result<Option<String>, QueryError> {
    let (negative, value) = match value {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => (true, expr.as_ref()),
        value => (false, value),
    };
    match value {
        Expr::Identifier(name)
            if ["default", "local"].contains(&name.value.to_ascii_lowercase().as_str()) =>
        {
            Ok(None)
        }
        Expr::Identifier(name) => Ok(Some(name.value.clone())),
        Expr::Value(value) => match &value.value {
            Value::Number(hours, _) => {
                let hours: u8 = hours.parse().ok().filter(|hours| *hours < 24).ok_or_else(not_a_time_zone)?;
                Ok(Some(format!("{}{hours:02}:00", if negative { '-' } else { '+' })))
            }
            Value::SingleQuotedString(name) | Value::DoubleQuotedString(name)
                if name.eq_ignore_ascii_case("default") =>
            {
                Ok(None)
            }
            Value::SingleQuotedString(name) | Value::DoubleQuotedString(name) => Ok(Some(name.clone())),
            _ => Err(not_a_time_zone()),
        },
        _ => Err(not_a_time_zone()),
    }
}

fn not_a_time_zone() -> QueryError {
    QueryError::new(
        QueryErrorKind::Syntax,
        "a time zone is a name like 'Europe/Paris', an offset like '+02:00', or a number of hours",
    )
}

/// The keyword that a statement begins with, and the next one after `CREATE`, `DROP` and `ALTER`.
fn first_words(statement: &ast::Statement) -> String {
    let text = statement.to_string();
    let mut words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or("statement").to_ascii_uppercase();
    if !["CREATE", "DROP", "ALTER", "SHOW"].contains(&first.as_str()) {
        return first;
    }
    match words.find(|word| !["OR", "REPLACE", "TEMPORARY"].contains(word)) {
        Some(second) => format!("{first} {}", second.to_ascii_uppercase()),
        None => first,
    }
}

fn standard(statement: ast::Statement) -> Order {
    query(Statement::Statement(Box::new(statement)))
}

fn query(statement: Statement) -> Order {
    Order::Query(Box::new(statement))
}

fn read_only(what: &str) -> QueryError {
    QueryError::new(
        QueryErrorKind::ReadOnly,
        format!("`{what}` is refused: SQL reads topics, it does not change anything"),
    )
}

fn unsupported(what: &str) -> QueryError {
    QueryError::new(QueryErrorKind::Unsupported, format!("{what} is not supported"))
}

/// The one variable that has an effect, as `DataFusion` spells it.
const TIME_ZONE: &str = "datafusion.execution.time_zone";

/// What clients set by themselves when they connect; their wishes are fulfilled already or do not matter here.
const WITHOUT_EFFECT: [&str; 22] = [
    "application_name",
    "autocommit",
    "bytea_output",
    "client_encoding",
    "client_min_messages",
    "datestyle",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "extra_float_digits",
    "geqo",
    "idle_in_transaction_session_timeout",
    "intervalstyle",
    "jit",
    "lc_messages",
    "lock_timeout",
    "names",
    "row_security",
    "search_path",
    "session characteristics",
    "standard_conforming_strings",
    "statement_timeout",
    "transaction_isolation",
];
