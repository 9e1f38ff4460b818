//! Functions whose results are bounded.
//!
//! The memory of sorts, groups and joins is taken from a pool. A function takes its memory where it likes, and no timeout
//! interrupts it. So every function stands behind a wrapper, which
//!
//! - computes from the arguments how long the result can be, before the call, where a function can multiply (`replace`);
//!   what would be too long for one call is made of fewer rows at a time, and a single row that is too long is refused,
//! - looks at the length of the result after the call, and
//! - counts what is alive of all results of all statements, which have a limit together.
//!
//! ```text
//! registered      functions by name, as a statement is planned and its constants are computed
//! analyzed        those that DataFusion's planner puts into a plan by itself (`[a, b]`, `SUBSTRING(… FROM …)`)
//! simplified      those that stand in the place of another after `simplify`
//! ```

mod concatenation;
mod constants;
mod function;
mod growth;
mod lengths;
mod patterns;
mod results;
#[cfg(test)]
mod tests;
mod types;

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{Expr, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::function_rewrite::ApplyFunctionRewrites;

pub(crate) use concatenation::{Operators, is_concatenation};
pub(crate) use constants::Constants;
use function::Bounded;
pub(crate) use function::varies;
pub(crate) use lengths::scalar_len;
use results::Results;
pub(crate) use types::{check_types, check_written_types};

/// What functions may take. All functions of an engine share one.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// Bytes of one call's result.
    call_len_max: usize,
    /// What is alive of all results.
    results: Results,
}

impl Bounds {
    /// Bounds beside a pool of so many bytes.
    pub(crate) fn new(memory_len_max: usize) -> Self {
        Self {
            call_len_max: (memory_len_max / CALL_PART).max(CALL_LEN_MIN),
            results: Results::new(memory_len_max.max(RESULTS_LEN_MIN)),
        }
    }
}

/// Puts the wrapper around all functions that are registered.
pub(crate) fn register(state: &mut SessionState, bounds: &Arc<Bounds>) -> Result<()> {
    let functions: Vec<_> = state.scalar_functions().values().cloned().collect();
    for function in functions {
        state.register_udf(wrapped(function, bounds))?;
    }
    Ok(())
}

/// The rule that puts the wrapper around the functions of a plan. To be run after all rules that look for functions.
pub(crate) fn analyzer_rule(bounds: &Arc<Bounds>) -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(ApplyFunctionRewrites::new(vec![Arc::new(Wrapping(Arc::clone(bounds)))]))
}

/// The function behind the wrapper, unless it is there already, or needs none.
fn wrapped(function: Arc<ScalarUDF>, bounds: &Arc<Bounds>) -> Arc<ScalarUDF> {
    if function.inner().is::<Bounded>() || UNWRAPPED.iter().any(|(name, _)| *name == function.name()) {
        return function;
    }
    Arc::new(Bounded::new(function, Arc::clone(bounds)).into())
}

#[derive(Debug)]
struct Wrapping(Arc<Bounds>);

impl FunctionRewrite for Wrapping {
    fn name(&self) -> &'static str {
        "bounded_functions"
    }

    fn rewrite(&self, expr: Expr, _schema: &DFSchema, _config: &ConfigOptions) -> Result<Transformed<Expr>> {
        Ok(wrap(expr, &self.0))
    }
}

/// The call of a function as that of its wrapper, and an operator that takes memory as one.
fn wrap(expr: Expr, bounds: &Arc<Bounds>) -> Transformed<Expr> {
    match expr {
        Expr::ScalarFunction(call) if !call.func.inner().is::<Bounded>() => {
            let func = wrapped(call.func, bounds);
            Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args: call.args }))
        }
        Expr::BinaryExpr(binary) => patterns::wrap(binary, bounds),
        other => Transformed::no(other),
    }
}

/// Functions that stay as they are, and why.
const UNWRAPPED: &[(&str, &str)] = &[
    ("get_field", "its result is a part of its argument; the optimiser looks for it"),
    ("log", "a number; the optimiser looks for it below `power`"),
    ("power", "a number; the optimiser looks for it below `log`"),
];
/// One call may make one part in so many of the memory of queries,
const CALL_PART: usize = 4;
/// but always so many bytes.
const CALL_LEN_MIN: usize = 16 << 20;
/// All results together may have so many bytes even if queries have less memory.
const RESULTS_LEN_MIN: usize = 64 << 20;
