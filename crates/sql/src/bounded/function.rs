//! The wrapper around a function.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TransformedResult, TreeNode};
use datafusion::common::{ExprSchema, ScalarValue, resources_err};
use datafusion::error::Result;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, StructFieldMapping,
};

use super::growth::Growth;
use super::lengths::{array_len, scalar_len};
use super::types::check_type;
use super::{Bounds, Constants, wrap};

/// A function that is not called if its result would be too long, and does not keep one that is.
pub(super) struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
    bounds: Arc<Bounds>,
}

impl Bounded {
    pub(super) fn new(inner: Arc<ScalarUDF>, bounds: Arc<Bounds>) -> Self {
        let growth = Growth::of(inner.name());
        Self { inner, growth, bounds }
    }

    /// The function.
    pub(super) const fn inner(&self) -> &Arc<ScalarUDF> {
        &self.inner
    }

    fn refused<T>(&self, what: &str) -> Result<T> {
        let (name, len_max) = (self.inner.name(), self.bounds.call_len_max);
        resources_err!(
            "`{name}` would make {what} of more than {len_max} bytes; `memory_len_max` has to be larger for that"
        )
    }

    /// Calls the function for a few rows after the other, so that no call takes more than it may.
    fn call_by_parts(&self, arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut parts: Vec<ArrayRef> = Vec::new();
        let mut len = 0_usize;
        let mut todo = vec![(0, arguments.number_rows)];
        while let Some((first, rows)) = todo.pop() {
            let part = cut(arguments, first, rows);
            if self.growth.bound(&part.args, rows) <= self.bounds.call_len_max {
                let result = self.inner.invoke_with_args(part)?.into_array(rows)?;
                len = len.saturating_add(array_len(&result));
                if len > self.bounds.call_len_max {
                    return self.refused("a batch");
                }
                parts.push(result);
            } else if rows <= 1 {
                return self.refused("a value");
            } else {
                let half = rows / 2;
                todo.push((first + half, rows - half));
                todo.push((first, half));
            }
        }
        let parts: Vec<_> = parts.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&parts)?))
    }

    /// Counts a result, unless it is too long.
    fn counted(&self, result: &ColumnarValue, constants: Option<&Constants>) -> Result<()> {
        let len = match result {
            ColumnarValue::Scalar(scalar) => scalar_len(scalar),
            ColumnarValue::Array(array) if varies(array.data_type()) => array_len(array),
            ColumnarValue::Array(_) => return Ok(()),
        };
        if len > self.bounds.call_len_max {
            return self.refused("a result");
        }
        match (result, constants) {
            (ColumnarValue::Array(array), None) => self.bounds.results.add(array).or_else(|full| {
                let len_max = full.len_max;
                resources_err!("the results of functions in all queries are longer than {len_max} bytes (`memory_len_max`)")
            }),
            (_, Some(constants)) => constants.add(len),
            (ColumnarValue::Scalar(_), None) => Ok(()),
        }
    }
}

/// These rows of the arguments.
fn cut(arguments: &ScalarFunctionArgs, first: usize, rows: usize) -> ScalarFunctionArgs {
    let args = arguments.args.iter().map(|argument| match argument {
        ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(first, rows)),
        ColumnarValue::Scalar(_) => argument.clone(),
    });
    ScalarFunctionArgs { args: args.collect(), number_rows: rows, ..arguments.clone() }
}

/// Whether values of this type can be of any length.
pub(crate) fn varies(data_type: &DataType) -> bool {
    !(data_type.is_primitive() || matches!(data_type, DataType::Boolean | DataType::Null))
}

impl fmt::Debug for Bounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounded").field("inner", &self.inner).finish_non_exhaustive()
    }
}

/// Whether two wrap the same function says whether they are the same.
impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

#[warn(clippy::missing_trait_methods, reason = "what is not handed on is lost")]
impl ScalarUDFImpl for Bounded {
    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = !arguments.args.is_empty()
            && arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let options = Arc::clone(&arguments.config_options);
        let result = if self.growth.bound(&arguments.args, rows) <= self.bounds.call_len_max {
            self.inner.invoke_with_args(arguments)?
        } else if is_constant {
            return self.refused("a value");
        } else {
            self.call_by_parts(&arguments)?
        };
        self.counted(&result, if is_constant { options.extensions.get() } else { None })?;
        Ok(result)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.inner.return_field_from_args(arguments)?;
        check_type(field.data_type())?;
        Ok(field)
    }

    /// What a function is replaced by is bounded as well. Some put constants together by themselves.
    fn simplify(&self, arguments: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let constants = arguments.iter().map(|argument| match argument {
            Expr::Literal(literal, _) => scalar_len(literal),
            _ => 0,
        });
        if constants.fold(0, usize::saturating_add) > self.bounds.call_len_max {
            return Ok(ExprSimplifyResult::Original(arguments));
        }
        Ok(match self.inner.simplify(arguments, context)? {
            ExprSimplifyResult::Simplified(expr) => {
                let expr = expr.transform_up(|expr| Ok(wrap(expr, &self.bounds))).data()?;
                ExprSimplifyResult::Simplified(expr)
            }
            ExprSimplifyResult::Original(arguments) => ExprSimplifyResult::Original(arguments),
        })
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let changed = self.inner.inner().with_updated_config(config)?;
        Some(Self::new(Arc::new(changed), Arc::clone(&self.bounds)).into())
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn display_name(&self, arguments: &[Expr]) -> Result<String> {
        #[expect(deprecated, reason = "handed on for whoever calls it")]
        self.inner.display_name(arguments)
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        self.inner.schema_name(arguments)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn is_nullable(&self, arguments: &[Expr], schema: &dyn ExprSchema) -> bool {
        #[expect(deprecated, reason = "handed on for whoever calls it")]
        self.inner.is_nullable(arguments, schema)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn preimage(
        &self,
        arguments: &[Expr],
        literal: &Expr,
        context: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.inner.preimage(arguments, literal, context)
    }

    fn conditional_arguments<'a>(&self, arguments: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(arguments)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        self.inner.evaluate_bounds(inputs)
    }

    fn propagate_constraints(
        &self,
        interval: &Interval,
        inputs: &[&Interval],
    ) -> Result<Option<Vec<Interval>>> {
        self.inner.propagate_constraints(interval, inputs)
    }

    fn struct_field_mapping(&self, literals: &[Option<ScalarValue>]) -> Option<StructFieldMapping> {
        self.inner.struct_field_mapping(literals)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.preserves_lex_ordering(inputs)
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.strictly_order_preserving(inputs)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn placement(&self, arguments: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner.placement(arguments)
    }
}
