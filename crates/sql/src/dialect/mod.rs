//! What our SQL understands beyond `DataFusion`'s: `SHOW SCHEMAS`, text compared with bytes, JSON functions, hints.

mod bytes;
mod depth;
mod explain;
mod generic;
mod ignored;
mod json;
mod offset;
mod order;
mod parse;
mod show;
mod strict;
mod syntax;
mod text;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::catalog::CatalogProviderList;
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::function_rewrite::ApplyFunctionRewrites;
use datafusion::sql::parser::Statement;

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

/// Finds out what a statement wants; refuses what would change something.
///
/// `catalog` and `schema` are those of names without one.
pub(crate) fn understand(statement: Statement, catalog: &str, schema: &str) -> Result<Order, QueryError> {
    order::understand(statement, catalog, schema)
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

/// Rules to be run before those of `DataFusion`.
pub(crate) fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    vec![Arc::new(ApplyFunctionRewrites::new(vec![Arc::new(bytes::TextAndBytes)]))]
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
