//! Timestamps of different units and zones, compared exactly.
//!
//! To compare with a literal of a finer unit, `DataFusion` casts the column. Its optimiser takes that cast away again by
//! casting the literal instead, which cuts off what the column's unit cannot say. So a cast to a finer unit is a function
//! here: the optimiser asks it which values of the column give the literal, which are none if it lies between two of them.
//!
//! ```text
//! column                1ms             2ms
//! literal                     1500us            column < literal  as  column < 2ms     column >= literal  as  column >= 2ms
//!                                               column = literal  as  column >= 2ms AND column < 2ms
//! ```
//!
//! A timestamp without a zone that is compared with one in a zone is of UTC, as Kafka's are. A `CAST` that a statement
//! writes itself reads it as what clocks show in that zone.

use std::sync::Arc;

use datafusion::arrow::compute::CastOptions;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::format::DEFAULT_CAST_OPTIONS;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue, exec_err, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

/// Casts that a statement writes, before `DataFusion` adds its own.
#[derive(Debug)]
pub(super) struct WrittenCasts;

/// Casts to a common type, after `DataFusion` has added them.
#[derive(Debug)]
pub(super) struct CommonTypes;

impl FunctionRewrite for WrittenCasts {
    fn name(&self) -> &'static str {
        "written_casts_of_timestamps"
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema, _config: &ConfigOptions) -> Result<Transformed<Expr>> {
        Ok(rewrite(expr, schema, |from, to| shifts(from, to).then_some(Reading::Clock)))
    }
}

impl FunctionRewrite for CommonTypes {
    fn name(&self) -> &'static str {
        "common_types_of_timestamps"
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema, _config: &ConfigOptions) -> Result<Transformed<Expr>> {
        Ok(rewrite(expr, schema, |from, to| {
            let (own, other) = (per_second(from.0), per_second(to.0));
            (own < other || (own == other && shifts(from, to))).then_some(Reading::Moment)
        }))
    }
}

/// Unit and zone of a timestamp.
type Kind<'a> = (TimeUnit, Option<&'a str>);

fn kind(data_type: &DataType) -> Option<Kind<'_>> {
    match data_type {
        DataType::Timestamp(unit, zone) => Some((*unit, zone.as_deref())),
        _ => None,
    }
}

/// Puts the function in the place of a cast between two kinds of timestamps, if there is a reading for them.
fn rewrite(
    expr: Expr,
    schema: &DFSchema,
    reading: impl FnOnce(Kind<'_>, Kind<'_>) -> Option<Reading>,
) -> Transformed<Expr> {
    let (argument, to, is_try) = match &expr {
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type(), false),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type(), true),
        _ => return Transformed::no(expr),
    };
    if matches!(argument.as_ref(), Expr::Literal(..)) {
        return Transformed::no(expr);
    }
    let from = argument.get_type(schema).unwrap_or(DataType::Null);
    let reading = kind(&from).zip(kind(to)).and_then(|(from, to)| reading(from, to));
    let Some(reading) = reading else { return Transformed::no(expr) };
    let function = TimestampCast::new(to.clone(), reading, is_try);
    let argument = argument.as_ref().clone();
    let call = ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), vec![argument]);
    Transformed::yes(Expr::ScalarFunction(call))
}

/// Whether Arrow's cast reads the timestamp as what clocks show.
fn shifts((_, from): Kind<'_>, (_, to): Kind<'_>) -> bool {
    from.is_none() && to.is_some_and(|zone| !is_utc(zone))
}

/// Whether a zone is the one that timestamps without a zone are in.
fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "+00:00" | "Z")
}

/// What a timestamp without a zone is, in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reading {
    /// The moment that it is in UTC.
    Moment,
    /// The moment at which clocks of the zone show it.
    Clock,
}

/// A cast between two kinds of timestamps.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TimestampCast {
    to: DataType,
    reading: Reading,
    /// Whether what does not fit is null, and not an error.
    is_try: bool,
    signature: Signature,
}

impl TimestampCast {
    fn new(to: DataType, reading: Reading, is_try: bool) -> Self {
        Self { to, reading, is_try, signature: Signature::any(1, Volatility::Immutable) }
    }

    /// Whether it is the same moment, for whatever it is given.
    fn keeps_moments(&self) -> bool {
        self.reading == Reading::Moment && !self.is_try
    }
}

impl ScalarUDFImpl for TimestampCast {
    fn name(&self) -> &'static str {
        "cast_timestamp"
    }

    // calls that differ in their type have other names
    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let [argument] = arguments else { return internal_err!("a cast takes one argument") };
        Ok(format!("CAST({} AS {})", argument.schema_name(), self.to))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = self.is_try || arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = arguments.args.as_slice() else {
            return exec_err!("a cast takes one argument");
        };
        let options = Some(CastOptions { safe: self.is_try, ..DEFAULT_CAST_OPTIONS });
        let (from, to) = (argument.data_type(), &self.to);
        match kind(&from).zip(kind(to)) {
            Some((from, (unit, Some(_)))) if self.reading == Reading::Moment && from.1.is_none() => {
                let in_utc = DataType::Timestamp(unit, Some("+00:00".into()));
                argument.cast_to(&in_utc, options.as_ref())?.cast_to(to, options.as_ref())
            }
            _ => argument.cast_to(to, options.as_ref()),
        }
    }

    fn preimage(
        &self,
        arguments: &[Expr],
        literal: &Expr,
        context: &SimplifyContext,
    ) -> Result<PreimageResult> {
        let ([expr], Expr::Literal(literal, _)) = (arguments, literal) else {
            return Ok(PreimageResult::None);
        };
        if !self.keeps_moments() || literal.data_type() != self.to || expr.is_volatile() {
            return Ok(PreimageResult::None);
        }
        let from = context.get_data_type(expr)?;
        Ok(match bounds(literal, &from) {
            Some((lower, upper)) => PreimageResult::Range {
                expr: expr.clone(),
                interval: Box::new(Interval::try_new(lower, upper)?),
            },
            None => PreimageResult::None,
        })
    }

    fn preserves_lex_ordering(&self, _inputs: &[ExprProperties]) -> Result<bool> {
        Ok(self.keeps_moments())
    }

    fn strictly_order_preserving(&self, _inputs: &[ExprProperties]) -> Result<bool> {
        Ok(self.keeps_moments())
    }
}

/// The least value of a coarser unit that is not before the literal, and the least one that is after it.
fn bounds(literal: &ScalarValue, from: &DataType) -> Option<(ScalarValue, ScalarValue)> {
    let DataType::Timestamp(unit, zone) = from else { return None };
    let value = match literal {
        ScalarValue::TimestampSecond(value, _)
        | ScalarValue::TimestampMillisecond(value, _)
        | ScalarValue::TimestampMicrosecond(value, _)
        | ScalarValue::TimestampNanosecond(value, _) => (*value)?,
        _ => return None,
    };
    let (finer, _) = kind(&literal.data_type())?;
    let ratio = per_second(finer).checked_div(per_second(*unit)).filter(|ratio| *ratio > 0)?;
    let floor = value.div_euclid(ratio);
    let after = floor.checked_add(1)?;
    let not_before = if value.rem_euclid(ratio) == 0 { floor } else { after };
    let timestamp = |value| {
        let (value, zone) = (Some(value), zone.clone());
        match unit {
            TimeUnit::Second => ScalarValue::TimestampSecond(value, zone),
            TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(value, zone),
            TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(value, zone),
            TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(value, zone),
        }
    };
    Some((timestamp(not_before), timestamp(after)))
}

const fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
