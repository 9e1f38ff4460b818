//! From a parsed statement to a plan.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::common::{ParamValues, ResolvedTableReference, plan_err};
use datafusion::error::Result;
use datafusion::execution::context::{SQLOptions, SessionState};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::execution::{FunctionRegistry, SessionStateDefaults};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement;
use datafusion::sql::resolve::resolve_table_references;

use crate::apart::FiltersApart;
use crate::bounded::{self, Bounds, Constants};
use crate::catalog::{Catalogs, topics_schema};
use crate::dialect;
use crate::error::{QueryError, QueryErrorKind};
use crate::joins;
use crate::memory::Pool;
use crate::settings::Settings;
use crate::simplify;
use crate::widths::Widths;
use crate::yields::YieldingJoins;

/// What statements begin with.
pub(crate) fn state(
    settings: &Settings,
    default_view: &str,
    pool: &Arc<Pool>,
) -> Result<SessionState, QueryError> {
    let mut config = SessionConfig::new()
        .with_target_partitions(settings.pieces())
        .with_batch_size(settings.rows_max)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema("kolumn", topics_schema(default_view));
    let options = config.options_mut();
    // The rows before a merge are read ahead only so far: the default of a gigabyte would be outside of any bound of ours.
    options.execution.sort_pushdown_buffer_capacity = MERGE_BUFFER_LEN;
    options.execution.sort_spill_reservation_bytes = sort_reserve(settings);
    // To read JSON costs much, so it stays above filters and limits. It would also be moved below a projection that gives its
    // column's name to something else.
    options.optimizer.enable_leaf_expression_pushdown = false;
    // Text is `Utf8` wherever it comes from, the type that every client knows.
    options.sql_parser.map_string_types_to_utf8view = false;

    let disk = DiskManagerBuilder::default().with_max_temp_directory_size(settings.spill_len_max);
    let disk = disk.with_mode(match &settings.spill_dir {
        Some(directory) => {
            clear(directory).map_err(|error| spill_error(directory, &error))?;
            DiskManagerMode::Directories(vec![directory.clone()])
        }
        None => DiskManagerMode::Disabled,
    });
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::clone(pool) as Arc<dyn MemoryPool>)
        .with_disk_manager_builder(disk)
        .build_arc()?;
    let bounds = Arc::new(Bounds::new(settings.memory_len_max));
    let mut rules = dialect::analyzer_rules();
    rules.push(bounded::analyzer_rule(&bounds));
    let mut planners: Vec<Arc<dyn ExprPlanner>> = vec![Arc::new(bounded::Operators::new(&bounds))];
    planners.extend(SessionStateDefaults::default_expr_planners());
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_analyzer_rules(rules)
        .with_optimizer_rules(simplify::optimizer_rules())
        .with_physical_optimizer_rules(physical_rules())
        .with_expr_planners(planners)
        .with_scalar_functions(SessionStateDefaults::default_scalar_functions())
        .with_aggregate_functions(SessionStateDefaults::default_aggregate_functions())
        .with_window_functions(SessionStateDefaults::default_window_functions())
        .with_table_function_list(SessionStateDefaults::default_table_functions())
        .build();
    bounded::register(&mut state, &bounds)?;
    dialect::register_functions(&mut state)?;
    Ok(state)
}

/// DataFusion's rules for physical plans, and ours where they belong.
fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = Vec::new();
    for rule in PhysicalOptimizer::new().rules {
        if rule.name() == "ProjectionPushdown" {
            rules.push(Arc::new(FiltersApart));
        }
        rules.push(rule);
    }
    rules.push(Arc::new(YieldingJoins));
    rules
}

/// The state for a statement: with these catalogs, in this time zone, now.
pub(crate) fn state_of_statement(
    template: &SessionState,
    catalogs: Catalogs,
    time_zone: Option<&str>,
) -> Result<SessionState> {
    let mut state = template.clone();
    state.register_catalog_list(Arc::new(catalogs));
    if let Some(zone) = time_zone {
        state.config_mut().options_mut().execution.time_zone = Some(zone.to_owned());
        let options = Arc::clone(state.config_options());
        let functions: Vec<_> = state.scalar_functions().values().cloned().collect();
        for function in functions {
            if let Some(changed) = function.inner().with_updated_config(&options) {
                state.register_udf(Arc::new(changed))?;
            }
        }
    }
    state.config_mut().options_mut().extensions.insert(Constants::default());
    state.mark_start_execution();
    Ok(state)
}

/// The tables that a statement names, in full.
pub(crate) fn references(
    statement: &Statement,
    catalog: &str,
    schema: &str,
) -> Result<Vec<ResolvedTableReference>> {
    let (references, _) = resolve_table_references(statement, true)?;
    Ok(references.into_iter().map(|reference| reference.resolve(catalog, schema)).collect())
}

/// Plans a statement. It cannot write, whatever it is.
pub(crate) async fn plan(
    state: &SessionState,
    statement: Statement,
    values: Option<ParamValues>,
) -> Result<LogicalPlan> {
    bounded::check_written_types(&statement)?;
    let plan = state.statement_to_plan(statement).await?;
    let reads = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    reads.verify_plan(&plan)?;
    bounded::check_types(&plan)?;
    match values {
        Some(values) => plan.with_param_values(values),
        None => Ok(plan),
    }
}

/// Plans how to run a statement in the memory there is.
pub(crate) async fn physical_plan(
    state: &mut SessionState,
    settings: &Settings,
    plan: &LogicalPlan,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = state.optimize(plan)?;
    let widths = Widths::of(&plan)?;
    if let Some(constants) = state.config_options().extensions.get::<Constants>() {
        constants.planned(widths.calls)?;
    }
    let can_spill = settings.spill_dir.is_some();
    let sorts_for_join =
        can_spill && joins::are_large(&plan, (settings.memory_len_max / HASH_JOIN_PART) as u64)?;
    let mut batches = BATCH_PART.saturating_mul(settings.pieces());
    let options = state.config_mut().options_mut();
    if sorts_for_join {
        options.optimizer.prefer_hash_join = false;
        // DataFusion sorts for a join only where it could be in several pieces. Each of them has two sorts, and what spreads
        // its rows.
        options.execution.target_partitions = options.execution.target_partitions.max(2);
        batches = batches.saturating_mul(4);
    }
    let batch_len = (settings.memory_len_max / batches).clamp(BATCH_LEN_MIN, BATCH_LEN_MAX);
    options.execution.batch_size = ConfigNonZeroUsize::try_new(widths.rows(batch_len, settings.rows_max))?;
    let planner = Arc::clone(state.query_planner());
    planner.create_physical_plan(&plan, state).await
}

/// The types of a plan's parameters, in their order.
pub(crate) fn parameters(plan: &LogicalPlan) -> Result<Vec<Option<DataType>>> {
    let mut parameters = Vec::new();
    for (name, data_type) in plan.get_parameter_types()? {
        let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        let index = number.and_then(|number| number.checked_sub(1)).filter(|index| *index < PARAMETERS_MAX);
        let Some(index) = index else {
            return plan_err!("`{name}` is not a parameter: they are `$1`, `$2`, up to `${PARAMETERS_MAX}`");
        };
        if parameters.len() <= index {
            parameters.resize(index + 1, None);
        }
        if let Some(parameter) = parameters.get_mut(index) {
            *parameter = data_type;
        }
    }
    Ok(parameters)
}

/// What each sort takes for its merge before it has anything to merge. The pool keeps a share for each merge anyhow, so this
/// is little: when all statements that may run sort, they must be able to begin.
fn sort_reserve(settings: &Settings) -> usize {
    let sorts = settings.pieces().saturating_mul(settings.statements_max);
    (settings.memory_len_max / sorts.saturating_mul(8).max(1)).clamp(SORT_RESERVE_MIN, SORT_RESERVE_MAX)
}

/// Deletes what an earlier engine could not delete, because its process ended.
fn clear(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(SPILL_PREFIX));
        if is_ours && entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn spill_error(directory: &Path, error: &io::Error) -> QueryError {
    let text = format!("the folder for spilling `{}` cannot be used: {error}", directory.display());
    QueryError::new(QueryErrorKind::Internal, text)
}

/// As many as PostgreSQL's protocol can count.
const PARAMETERS_MAX: usize = 65_535;
/// How far a stream of sorted rows may be ahead of the merge that reads it.
const MERGE_BUFFER_LEN: usize = 8 << 20;
/// A hash join may hold about one part in so many of the memory.
const HASH_JOIN_PART: usize = 4;
/// How many batches the memory of a query's piece has room for, within bounds of their length.
const BATCH_PART: usize = 32;
const BATCH_LEN_MIN: usize = 256 << 10;
const BATCH_LEN_MAX: usize = 16 << 20;
const SORT_RESERVE_MIN: usize = 64 << 10;
const SORT_RESERVE_MAX: usize = 10 << 20;
/// What DataFusion begins the names of its folders with.
const SPILL_PREFIX: &str = "datafusion-";
