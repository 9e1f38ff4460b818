//! Rows of Arrow as rows of JSON, to be compared with the rivals' answers.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use serde_json::Value;

/// The rows as JSON; bytes are taken for UTF-8, as the benchmark's keys and values are.
pub(super) fn plain(batches: &[RecordBatch]) -> Result<Vec<Vec<Value>>, String> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().map(|column| value(column.as_ref(), row));
            rows.push(values.collect::<Result<_, _>>()?);
        }
    }
    Ok(rows)
}

fn value(column: &dyn Array, row: usize) -> Result<Value, String> {
    if column.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match column.data_type() {
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Utf8 => column.as_string::<i32>().value(row).into(),
        DataType::Utf8View => column.as_string_view().value(row).into(),
        DataType::Binary => text(column.as_binary::<i32>().value(row)),
        DataType::BinaryView => text(column.as_binary_view().value(row)),
        other => return Err(format!("an answer has a column of type {other}")),
    })
}

fn text(bytes: &[u8]) -> Value {
    String::from_utf8_lossy(bytes).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BinaryArray, BooleanArray, Int64Array, StringViewArray};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(column: impl Array + 'static, expect: Result<Vec<Value>, &str>) {
        let batch = RecordBatch::try_from_iter([("c", Arc::new(column) as ArrayRef)]).unwrap();
        let expect = expect.map(|values| values.into_iter().map(|value| vec![value]).collect());
        assert_eq!(plain(&[batch]), expect.map_err(str::to_owned));
    }

    #[test]
    fn numbers_texts_and_bytes_become_json() {
        check(Int64Array::from(vec![Some(-7), None]), Ok(vec![json!(-7), Value::Null]));
        check(StringViewArray::from(vec!["type-01"]), Ok(vec![json!("type-01")]));
        check(BinaryArray::from(vec![&b"user"[..]]), Ok(vec![json!("user")]));
    }

    #[test]
    fn a_type_that_no_statement_asks_for_is_refused() {
        check(BooleanArray::from(vec![true]), Err("an answer has a column of type Boolean"));
    }
}
