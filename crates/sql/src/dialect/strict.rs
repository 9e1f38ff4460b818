//! `CAST` of bytes to text, row by row.
//!
//! Arrow's cast checks all bytes that an array shares with others, also those of rows that a filter or a limit has cut off: a
//! row that nobody asked for would fail the statement.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, AsArray, StringBuilder};
use datafusion::arrow::compute::cast as arrow_cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::text::is_text;

/// A cast of bytes to a type of text; the bytes of each row have to be UTF-8.
pub(super) fn as_text(cast: Cast) -> Expr {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(BytesToText::new().into()));
    debug_assert!(is_text(cast.field.data_type()), "only text is made of bytes here");
    let text = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&FUNCTION), vec![*cast.expr]));
    if *cast.field.data_type() == DataType::Utf8 {
        return text;
    }
    Expr::Cast(Cast { expr: Box::new(text), field: cast.field })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BytesToText {
    signature: Signature,
}

impl BytesToText {
    fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for BytesToText {
    fn name(&self) -> &'static str {
        "bytes_to_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = arguments.args.as_slice() else {
            return exec_err!("bytes_to_text takes one argument");
        };
        let array = argument.to_array(arguments.number_rows)?;
        let array = if *array.data_type() == DataType::Binary {
            array
        } else {
            arrow_cast(&array, &DataType::Binary)?
        };
        let Some(bytes) = array.as_binary_opt::<i32>() else {
            return exec_err!("bytes_to_text takes bytes");
        };
        let mut text = StringBuilder::with_capacity(bytes.len(), 0);
        for value in bytes {
            match value.map(std::str::from_utf8).transpose() {
                Ok(value) => text.append_option(value),
                Err(error) => {
                    return exec_err!(
                        "bytes that are not UTF-8 cannot be cast to text ({error}); TRY_CAST makes them null"
                    );
                }
            }
        }
        Ok(ColumnarValue::Array(Arc::new(text.finish())))
    }
}
