//! JSON in text and bytes: what is not JSON, not UTF-8, missing or of another type is null, never an error.
//!
//! `json_get` and `->` give text: a string without its quotes, anything else as it is written. Cast or compared with
//! something that is not text, they give a value of that type.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::expr::{Alias, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::prelude::coalesce;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use datafusion_functions_json::udfs;

use super::UNDECIDED;
use super::text::{Takes, TextFunction, as_text, is_bytes, text_parameter};

/// `json_get(json, key or index, …)`: `json_as_text` that can be cast and nested.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonGet {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl JsonGet {
    fn udf() -> Arc<ScalarUDF> {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(Self { inner: udfs::json_as_text_udf(), signature }.into())
    }
}

impl ScalarUDFImpl for JsonGet {
    fn name(&self) -> &'static str {
        "json_get"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<Arc<Field>> {
        self.inner.return_field_from_args(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(arguments)
    }
}

/// Registers the functions, and the operators `->`, `->>` and `?`.
pub(super) fn register(registry: &mut dyn FunctionRegistry) -> Result<()> {
    let functions = [
        JsonGet::udf(),
        udfs::json_get_bool_udf(),
        udfs::json_get_float_udf(),
        udfs::json_get_int_udf(),
        udfs::json_get_json_udf(),
        udfs::json_get_array_udf(),
        udfs::json_get_str_udf(),
        udfs::json_as_text_udf(),
        udfs::json_contains_udf(),
        udfs::json_length_udf(),
        udfs::json_object_keys_udf(),
    ];
    for function in functions {
        registry.register_udf(of_bytes(function))?;
    }
    registry.register_expr_planner(Arc::new(Operators))
}

fn of_bytes(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    Arc::new(TextFunction::new(function, Takes::Text).into())
}

/// Plans operators: those of JSON as functions, and those that are checked for text before anything is rewritten.
#[derive(Debug)]
struct Operators;

impl ExprPlanner for Operators {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let function = match &expr.op {
            BinaryOperator::Arrow | BinaryOperator::HashArrow => JsonGet::udf(),
            BinaryOperator::LongArrow | BinaryOperator::HashLongArrow => udfs::json_as_text_udf(),
            BinaryOperator::Question => udfs::json_contains_udf(),
            BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch => {
                expr.left = as_text(expr.left, schema);
                expr.right = as_text(expr.right, schema);
                return Ok(PlannerResult::Original(expr));
            }
            _ => {
                let (left, right) = (is_bytes_in(&expr.left, schema), is_bytes_in(&expr.right, schema));
                expr.left = if right { text_beside_bytes(expr.left) } else { expr.left };
                expr.right = if left { text_beside_bytes(expr.right) } else { expr.right };
                return Ok(PlannerResult::Original(expr));
            }
        };
        let name = format!("{} {} {}", shown(&expr.left), expr.op, shown(&expr.right));
        let call = ScalarFunction::new_udf(of_bytes(function), vec![expr.left, expr.right]);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call).alias(name)))
    }
}

fn is_bytes_in(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| is_bytes(&data_type))
}

/// A parameter that is compared with bytes is text: that is what is written there.
fn text_beside_bytes(expr: Expr) -> Expr {
    match &expr {
        Expr::Placeholder(parameter) if is_undecided(&parameter.id) => expr,
        _ => text_parameter(expr),
    }
}

/// Whether it is a parameter that asks what it would be.
fn is_undecided(id: &str) -> bool {
    id.strip_prefix('$')
        .and_then(|number| number.parse().ok())
        .is_some_and(|number: usize| number > UNDECIDED)
}

/// How an operand of an operator is shown in the name of its column.
fn shown(expr: &Expr) -> String {
    match expr {
        Expr::Column(column) => column.name.clone(),
        Expr::Alias(alias) => alias.name.clone(),
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => format!("'{text}'"),
        Expr::Literal(literal, _) => literal.to_string(),
        other => other.to_string(),
    }
}

/// `json_get` below a cast: the function that gives a value of that type, if there is one.
pub(super) fn cast(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (inner, data_type) = match &expr {
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type()),
        _ => return Transformed::no(expr),
    };
    let Some(accessor) = json_get(inner).and_then(|call| typed(call, data_type)) else {
        return Transformed::no(expr);
    };
    if accessor.get_type(schema).is_ok_and(|own| own == *data_type) {
        return Transformed::yes(accessor);
    }
    Transformed::yes(match expr {
        Expr::Cast(cast) => Expr::Cast(Cast { expr: Box::new(accessor), field: cast.field }),
        Expr::TryCast(cast) => Expr::TryCast(TryCast { expr: Box::new(accessor), field: cast.field }),
        other => other,
    })
}

/// `json_get` compared with something of this type.
pub(super) fn compared_with(expr: Expr, other: &Expr, other_type: &DataType) -> Expr {
    let Some(call) = json_get(&expr) else {
        return expr;
    };
    let float = || read_by(udfs::json_get_float_udf(), call);
    if !other_type.is_integer() {
        return typed(call, other_type).unwrap_or(expr);
    }
    if is_small_integer(other) {
        return float();
    }
    // integers beyond 2^53 are no floats, and fractions no integers
    let decimal = |read: Expr| Expr::TryCast(TryCast::new(Box::new(read), DataType::Decimal128(38, 10)));
    coalesce(vec![decimal(read_by(udfs::json_get_int_udf(), call)), decimal(float())])
}

/// Whether it is an integer that is compared exactly with any float.
pub(super) fn is_small_integer(expr: &Expr) -> bool {
    const EXACT: i64 = 1 << 53;
    matches!(expr, Expr::Literal(ScalarValue::Int64(Some(value)), _) if (-EXACT + 1..EXACT).contains(value))
}

/// The call that reads this type.
fn typed(call: &ScalarFunction, data_type: &DataType) -> Option<Expr> {
    let function = match data_type {
        DataType::Boolean => udfs::json_get_bool_udf(),
        data_type if data_type.is_integer() => udfs::json_get_int_udf(),
        data_type if data_type.is_floating() || data_type.is_decimal() => udfs::json_get_float_udf(),
        _ => return None,
    };
    Some(read_by(function, call))
}

/// The call, of this function.
fn read_by(function: Arc<ScalarUDF>, call: &ScalarFunction) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(function, call.args.clone()))
}

/// `json_…(json_get(json, 'a'), 'b')` as `json_…(json, 'a', 'b')`: what is inside of a string is not JSON.
pub(super) fn nested(call: ScalarFunction) -> Transformed<Expr> {
    if let Some((first, path)) = call.args.split_first()
        && call.func.name().starts_with("json_")
        && let Some(inner) = json_get(first)
        && inner.args.iter().skip(1).chain(path).all(|step| matches!(step, Expr::Literal(..)))
    {
        let arguments = inner.args.iter().chain(path).cloned().collect();
        return Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(call.func.clone(), arguments)));
    }
    Transformed::no(Expr::ScalarFunction(call))
}

/// The call, if it is one of `json_get`.
fn json_get(expr: &Expr) -> Option<&ScalarFunction> {
    match expr {
        Expr::ScalarFunction(call) if call.func.inner().is::<JsonGet>() => Some(call),
        Expr::Alias(Alias { expr, .. }) => json_get(expr),
        _ => None,
    }
}
