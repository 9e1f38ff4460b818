//! Functions of text that take bytes as well: bytes that are UTF-8 are the text, others are null.

use std::sync::Arc;

use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::exec_err;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::expr::{Placeholder, TryCast};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

/// Lets a function take bytes where it takes text.
///
/// It stands for the function while a statement is planned, when types are checked; the rewriting of
/// [`super::bytes`] then puts the function itself in its place, with its arguments as text.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TextFunction {
    inner: Arc<ScalarUDF>,
    takes: Takes,
    signature: Signature,
}

/// What a function takes, besides bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Takes {
    /// Text, so that bytes always stand for it.
    Text,
    /// Anything as long as it is of one type: bytes stand for text only if they are together with it.
    OneType,
}

impl TextFunction {
    pub(super) fn new(inner: Arc<ScalarUDF>, takes: Takes) -> Self {
        let signature = inner.signature();
        let type_signature = match &signature.type_signature {
            // these would let bytes pass; the exact types are an example for the listing of functions
            TypeSignature::VariadicAny | TypeSignature::Any(_) => TypeSignature::OneOf(vec![
                TypeSignature::UserDefined,
                TypeSignature::Exact(vec![DataType::Utf8, DataType::Utf8]),
            ]),
            TypeSignature::UserDefined => TypeSignature::UserDefined,
            other => TypeSignature::OneOf(vec![other.clone(), TypeSignature::UserDefined]),
        };
        let signature = Signature::new(type_signature, signature.volatility);
        Self { inner, takes, signature }
    }

    /// The function.
    pub(super) const fn inner(&self) -> &Arc<ScalarUDF> {
        &self.inner
    }

    /// The arguments as the function takes them.
    pub(super) fn arguments(&self, arguments: Vec<Expr>, schema: &DFSchema) -> Vec<Expr> {
        let types: Vec<DataType> =
            arguments.iter().map(|argument| argument.get_type(schema).unwrap_or(DataType::Null)).collect();
        if self.leaves_bytes(&types) {
            return arguments;
        }
        arguments.into_iter().map(|argument| as_text(argument, schema)).collect()
    }

    fn leaves_bytes(&self, types: &[DataType]) -> bool {
        self.takes == Takes::OneType && !types.iter().any(is_text)
    }
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let leaves_bytes = self.leaves_bytes(types);
        let fields: Vec<FieldRef> = types
            .iter()
            .map(|data_type| if is_bytes(data_type) && !leaves_bytes { &DataType::Utf8 } else { data_type })
            .map(|data_type| Arc::new(Field::new("", data_type.clone(), true)))
            .collect();
        let coerced = fields_with_udf(&fields, self.inner.as_ref())?;
        Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let changed = self.inner.inner().with_updated_config(config)?;
        Some(Self::new(Arc::new(changed), self.takes).into())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(arguments)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// `octet_length`: how many bytes there are, in a text or as they are.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OctetLength {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for OctetLength {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [data_type] if is_bytes(data_type) => Ok(vec![DataType::Binary]),
            _ => Ok(vec![DataType::Utf8]),
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = arguments.args.as_slice() else {
            return exec_err!("octet_length takes one argument");
        };
        match argument {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(length(array.as_ref())?)),
            ColumnarValue::Scalar(scalar) => {
                let lengths = length(scalar.to_array()?.as_ref())?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&lengths, 0)?))
            }
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// Registers them all in place of `DataFusion`'s, as far as those are registered.
pub(super) fn register(registry: &mut dyn FunctionRegistry) -> Result<()> {
    let names = TEXT
        .iter()
        .map(|name| (*name, Takes::Text))
        .chain(ONE_TYPE.iter().map(|name| (*name, Takes::OneType)));
    for (name, takes) in names {
        if let Ok(inner) = registry.udf(name)
            && !inner.inner().is::<TextFunction>()
        {
            registry.register_udf(Arc::new(TextFunction::new(inner, takes).into()))?;
        }
    }
    if let Ok(inner) = registry.udf("octet_length") {
        let signature = Signature::user_defined(Volatility::Immutable);
        registry.register_udf(Arc::new(OctetLength { inner, signature }.into()))?;
    }
    Ok(())
}

/// The expression as text if it is bytes: null where they are not UTF-8.
pub(super) fn as_text(expr: Expr, schema: &DFSchema) -> Expr {
    match expr.get_type(schema) {
        Ok(data_type) if is_bytes(&data_type) => Expr::TryCast(TryCast::new(Box::new(expr), DataType::Utf8)),
        _ => expr,
    }
}

/// A parameter as text, unless something else is known of it.
pub(crate) fn text_parameter(expr: Expr) -> Expr {
    match expr {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            let field = Arc::new(Field::new(&id, DataType::Utf8, true));
            Expr::Placeholder(Placeholder::new_with_field(id, Some(field)))
        }
        other => other,
    }
}

pub(super) const fn is_bytes(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
    )
}

pub(super) const fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Functions of text, by one of their names each; their other names come along.
const TEXT: [&str; 40] = [
    "ascii",
    "bit_length",
    "btrim",
    "character_length",
    "concat",
    "concat_ws",
    "contains",
    "ends_with",
    "find_in_set",
    "initcap",
    "left",
    "levenshtein",
    "lower",
    "ltrim",
    "overlay",
    "regexp_count",
    "regexp_instr",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
    "replace",
    "reverse",
    "right",
    "rtrim",
    "split_part",
    "starts_with",
    "string_to_array",
    "strpos",
    "substr",
    "substr_index",
    "to_date",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "to_unixtime",
    "translate",
    "upper",
    "to_time",
];

/// Functions of arguments of one type.
const ONE_TYPE: [&str; 7] = ["coalesce", "greatest", "least", "nullif", "nvl", "nvl2", "ifnull"];
