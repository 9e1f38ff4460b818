//! `||`, which is an operator of DataFusion, as a function, and structs: functions are bounded.

use std::sync::Arc;

use datafusion::arrow::compute::kernels::concat_elements::concat_elements_dyn;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::utils::list_ndims;
use datafusion::common::{DFSchema, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::functions::core;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawDictionaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::function::Bounded;
use super::{Bounds, wrapped};
use crate::dialect::text_parameter;

/// Plans what DataFusion plans by itself: `||` of texts and of bytes as [`Concatenation`], and structs, whose type has to be
/// looked at as soon as it is made. To be asked before DataFusion's planners.
#[derive(Debug)]
pub(crate) struct Operators {
    concatenation: Arc<ScalarUDF>,
    named_struct: Arc<ScalarUDF>,
    r#struct: Arc<ScalarUDF>,
}

impl Operators {
    pub(crate) fn new(bounds: &Arc<Bounds>) -> Self {
        let signature = Signature::user_defined(Volatility::Immutable);
        Self {
            concatenation: wrapped(Arc::new(Concatenation { signature }.into()), bounds),
            named_struct: wrapped(core::named_struct(), bounds),
            r#struct: wrapped(core::r#struct(), bounds),
        }
    }
}

impl ExprPlanner for Operators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_list = |side: &Expr| side.get_type(schema).is_ok_and(|data_type| list_ndims(&data_type) > 0);
        if expr.op != BinaryOperator::StringConcat || is_list(&expr.left) || is_list(&expr.right) {
            return Ok(PlannerResult::Original(expr));
        }
        let arguments = vec![text_parameter(expr.left), text_parameter(expr.right)];
        Ok(PlannerResult::Planned(call(&self.concatenation, arguments)))
    }

    fn plan_dictionary_literal(
        &self,
        expr: RawDictionaryExpr,
        _schema: &DFSchema,
    ) -> Result<PlannerResult<RawDictionaryExpr>> {
        let columns = expr.keys.into_iter().zip(expr.values);
        let arguments = columns.flat_map(|(name, value)| [name, value]).collect();
        Ok(PlannerResult::Planned(call(&self.named_struct, arguments)))
    }

    fn plan_struct_literal(&self, arguments: Vec<Expr>, is_named: bool) -> Result<PlannerResult<Vec<Expr>>> {
        let function = if is_named { &self.named_struct } else { &self.r#struct };
        Ok(PlannerResult::Planned(call(function, arguments)))
    }
}

fn call(function: &Arc<ScalarUDF>, arguments: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), arguments))
}

/// Whether it is the function of `||`.
pub(crate) fn is_concatenation(function: &ScalarUDF) -> bool {
    let bounded = function.inner().downcast_ref::<Bounded>();
    bounded.is_some_and(|bounded| bounded.inner().inner().is::<Concatenation>())
}

/// `left || right`: null if one of them is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Concatenation {
    signature: Signature,
}

impl ScalarUDFImpl for Concatenation {
    fn name(&self) -> &'static str {
        "||"
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let names: Vec<_> = arguments.iter().map(|argument| argument.schema_name().to_string()).collect();
        Ok(names.join(" || "))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = types else {
            return plan_err!("`||` takes two arguments");
        };
        // bytes beside text are made text of before types are coerced
        let (left, right) = match (left.is_binary(), right.is_binary()) {
            (true, false) => (&DataType::Utf8, right),
            (false, true) => (left, &DataType::Utf8),
            _ => (left, right),
        };
        let (left, right) = BinaryTypeCoercer::new(left, &Operator::StringConcat, right).get_input_types()?;
        Ok(vec![left, right])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [left, right] = types else {
            return plan_err!("`||` takes two arguments");
        };
        BinaryTypeCoercer::new(left, &Operator::StringConcat, right).get_result_type()
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let sides =
            arguments.args.into_iter().map(|side| side.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let [left, right] = sides.as_slice() else {
            return exec_err!("`||` takes two arguments");
        };
        Ok(ColumnarValue::Array(concat_elements_dyn(left.as_ref(), right.as_ref())?))
    }
}
