//! What our SQL understands beyond `DataFusion`'s: `SHOW SCHEMAS`, text compared with bytes, JSON functions, hints.

mod bytes;
mod depth;
mod explain;
mod generic;
mod ignored;
mod json;
mod names;
mod offset;
mod order;
mod parse;
mod show;
mod strict;
mod syntax;
mod text;
mod timestamps;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::catalog::CatalogProviderList;
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::optimizer::analyzer::function_rewrite::ApplyFunctionRewrites;
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::sql::parser::Statement;
#[cfg(feature = "postgres")]
use datafusion::sql::sqlparser::ast::Expr;

#[cfg(feature = "postgres")]
pub(crate) use show::literal;
#[cfg(feature = "flight")]
pub(crate) use show::quoted;
pub(crate) use text::text_parameter;

use crate::error::QueryError;

/// Cuts a text into parsed statements; empty ones are left out. An error says where, and hints at the usual causes.
pub(crate) fn parse(text: &str) -> Result<Vec<Statement>, QueryError> {
    parse::parse(text)
}

/// Refuses a text that would be parsed into trees too deep to recurse over; [`parse`] has done it already.
#[cfg(feature = "postgres")]
pub(crate) fn check_depth(text: &str) -> Result<(), QueryError> {
    let tokens = parse::tokens(text).map_err(|error| explain(error, text))?;
    depth::check(&tokens)
}

/// What a statement is to the session.
#[derive(Debug)]
pub(crate) enum Order {
    /// To be planned and run: perhaps rewritten (`SHOW SCHEMAS` is a query of the information schema).
    Query(Box<Statement>),
    /// Sets a variable of the session, to `None` for its default.
    Set {
        /// The variable's name, as `DataFusion` spells it: `datafusion.execution.time_zone` so far.
        name: String,
        /// Its new value as text.
        value: Option<String>,
    },
    /// Has no effect and no rows (`BEGIN`, `COMMIT`, `ROLLBACK`, `DISCARD ALL`): everything is read-only.
    Nothing,
}

/// What a statement finds in its session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scope<'a> {
    /// The catalog of names without one.
    pub(crate) catalog: &'a str,
    /// The schema of names without one.
    pub(crate) schema: &'a str,
    /// The names of all catalogs.
    pub(crate) catalogs: &'a [String],
    /// The time zone, if one is set.
    pub(crate) time_zone: Option<&'a str>,
}

/// Finds out what a statement wants; refuses what would change something.
pub(crate) fn understand(statement: Statement, scope: Scope<'_>) -> Result<Order, QueryError> {
    order::understand(statement, scope)
}

/// Parameters of greater numbers are bytes where they are compared with bytes; others are text there. So a statement can be
/// asked which of its literals are compared with bytes.
pub(crate) const UNDECIDED: usize = 32_768;

/// Writes a pattern of `LIKE` with a backslash for the escape character that it has.
#[cfg(feature = "postgres")]
pub(crate) fn escape_with_backslash(expr: &mut Expr) {
    syntax::escape_with_backslash(expr);
}

/// The names of the columns of an answer, which are not all those of its plan.
pub(crate) fn names(plan: &LogicalPlan) -> Vec<String> {
    names::names(plan)
}

/// Refuses `SHOW SCHEMAS` and `SHOW TABLES` of a place that is not among the catalogs: the information schema would list
/// nothing, without an error. To be called before [`understand`].
pub(crate) fn look_up(
    statement: &Statement,
    catalog: &str,
    schema: &str,
    catalogs: &dyn CatalogProviderList,
) -> Result<(), QueryError> {
    show::look_up(statement, catalog, schema, catalogs)
}

/// The rules that give a plan its types: those of `DataFusion`, with ours before and after them.
pub(crate) fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let before: [Arc<dyn FunctionRewrite + Send + Sync>; 2] =
        [Arc::new(timestamps::WrittenCasts), Arc::new(bytes::TextAndBytes)];
    let mut rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> =
        vec![Arc::new(ApplyFunctionRewrites::new(before.to_vec()))];
    rules.extend(Analyzer::new().rules);
    rules.push(Arc::new(ApplyFunctionRewrites::new(vec![Arc::new(timestamps::CommonTypes)])));
    rules
}

/// Registers our functions, some of them in place of `DataFusion`'s, which are to be registered before.
pub(crate) fn register_functions(registry: &mut dyn FunctionRegistry) -> Result<()> {
    for name in AMPLIFIERS {
        registry.deregister_udf(name)?;
    }
    text::register(registry)?;
    json::register(registry)
}

/// Functions whose result is as large as a number in the statement says: it would be outside of every bound on memory, and
/// no timeout interrupts a function. The table function `generate_series` makes its rows one after the other and stays.
const AMPLIFIERS: &[&str] =
    &["repeat", "lpad", "rpad", "array_repeat", "array_resize", "range", "generate_series"];

/// An error of `DataFusion` in our words: of the right kind, with a hint where one helps. `text` is the statement.
pub(crate) fn explain(error: datafusion::error::DataFusionError, text: &str) -> QueryError {
    explain::explain(error, text)
}
