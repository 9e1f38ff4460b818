//! How long arguments and results are, without copying them.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait};
use datafusion::arrow::datatypes::{BinaryViewType, ByteViewType, DataType, StringViewType};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

/// The bytes of all rows of an argument; a single value counts once for each row.
pub(super) fn len(argument: &ColumnarValue, rows: usize) -> usize {
    match argument {
        ColumnarValue::Array(array) => array_len(array),
        ColumnarValue::Scalar(scalar) => scalar_len(scalar).saturating_mul(rows),
    }
}

/// The bytes of a single value.
pub(crate) fn scalar_len(scalar: &ScalarValue) -> usize {
    match scalar {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
            text.as_ref().map_or(0, String::len)
        }
        ScalarValue::Binary(bytes)
        | ScalarValue::LargeBinary(bytes)
        | ScalarValue::BinaryView(bytes)
        | ScalarValue::FixedSizeBinary(_, bytes) => bytes.as_ref().map_or(0, Vec::len),
        scalar => nested(scalar).map_or(VALUE_LEN, |array| array_len(&array)),
    }
}

/// A single list, map or struct as an array of one row.
fn nested(scalar: &ScalarValue) -> Option<ArrayRef> {
    match scalar {
        ScalarValue::List(array) => Some(Arc::clone(array) as ArrayRef),
        ScalarValue::LargeList(array) => Some(Arc::clone(array) as ArrayRef),
        ScalarValue::FixedSizeList(array) => Some(Arc::clone(array) as ArrayRef),
        ScalarValue::Map(array) => Some(Arc::clone(array) as ArrayRef),
        ScalarValue::Struct(array) => Some(Arc::clone(array) as ArrayRef),
        _ => None,
    }
}

/// The bytes of an array's rows, as far as it refers to them.
pub(super) fn array_len(array: &ArrayRef) -> usize {
    let rows = array.len();
    match array.data_type() {
        DataType::Null => 0,
        DataType::Utf8 => spanned(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => spanned(array.as_string::<i64>().value_offsets()),
        DataType::Binary => spanned(array.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => spanned(array.as_binary::<i64>().value_offsets()),
        DataType::Utf8View => view_lens::<StringViewType>(array).sum(),
        DataType::BinaryView => view_lens::<BinaryViewType>(array).sum(),
        DataType::FixedSizeBinary(len) => usize::try_from(*len).unwrap_or(0).saturating_mul(rows),
        DataType::Dictionary(..) => {
            array.as_any_dictionary_opt().map_or(0, |array| row_lens_max(array.values())).saturating_mul(rows)
        }
        data_type => match data_type.primitive_width() {
            Some(width) => width.saturating_mul(rows),
            None if data_type.is_nested() => {
                let children: usize = children(array).iter().map(array_len).fold(0, usize::saturating_add);
                children.saturating_add(rows.saturating_mul(VALUE_LEN))
            }
            None => array.get_array_memory_size(),
        },
    }
}

/// How many values an argument has that are not made of others; a single one counts once for each row.
pub(super) fn leaves(argument: &ColumnarValue, rows: usize) -> usize {
    match argument {
        ColumnarValue::Array(array) => array_leaves(array),
        ColumnarValue::Scalar(scalar) => {
            nested(scalar).map_or(1, |array| array_leaves(&array)).saturating_mul(rows)
        }
    }
}

fn array_leaves(array: &ArrayRef) -> usize {
    if array.data_type().is_nested() {
        children(array).iter().map(array_leaves).fold(0, usize::saturating_add)
    } else {
        array.len()
    }
}

/// The bytes of the longest row, or more.
pub(super) fn longest(argument: &ColumnarValue) -> usize {
    match argument {
        ColumnarValue::Array(array) => row_lens_max(array),
        ColumnarValue::Scalar(scalar) => scalar_len(scalar),
    }
}

fn row_lens_max(array: &ArrayRef) -> usize {
    match array.data_type() {
        DataType::Utf8 => row_lens(array.as_string::<i32>().value_offsets()).max().unwrap_or(0),
        DataType::LargeUtf8 => row_lens(array.as_string::<i64>().value_offsets()).max().unwrap_or(0),
        DataType::Binary => row_lens(array.as_binary::<i32>().value_offsets()).max().unwrap_or(0),
        DataType::LargeBinary => row_lens(array.as_binary::<i64>().value_offsets()).max().unwrap_or(0),
        DataType::Utf8View => view_lens::<StringViewType>(array).max().unwrap_or(0),
        DataType::BinaryView => view_lens::<BinaryViewType>(array).max().unwrap_or(0),
        data_type => data_type.primitive_width().unwrap_or_else(|| array_len(array)),
    }
}

/// The text of a row, if it is text and not null.
pub(super) fn text(argument: &ColumnarValue, row: usize) -> Option<&str> {
    let array = match argument {
        ColumnarValue::Array(array) => array,
        ColumnarValue::Scalar(scalar) => return scalar.try_as_str().flatten(),
    };
    if row >= array.len() || array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Some(array.as_string_view().value(row)),
        _ => None,
    }
}

/// How many texts of an argument differ. A single value is one.
pub(super) fn distinct(argument: &ColumnarValue) -> usize {
    match argument {
        ColumnarValue::Array(array) => {
            (0..array.len()).filter_map(|row| text(argument, row)).collect::<HashSet<_>>().len()
        }
        ColumnarValue::Scalar(_) => 1,
    }
}

/// The arrays that a nested one is made of, cut to its rows.
fn children(array: &ArrayRef) -> Vec<ArrayRef> {
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            vec![cut(list.values(), list.value_offsets())]
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            vec![cut(list.values(), list.value_offsets())]
        }
        DataType::FixedSizeList(..) => vec![Arc::clone(array.as_fixed_size_list().values())],
        DataType::Map(..) => {
            let map = array.as_map();
            let entries = Arc::new(map.entries().clone()) as ArrayRef;
            vec![cut(&entries, map.value_offsets())]
        }
        DataType::Struct(_) => array.as_struct().columns().to_vec(),
        _ => Vec::new(),
    }
}

fn cut<O: OffsetSizeTrait>(values: &ArrayRef, offsets: &[O]) -> ArrayRef {
    values.slice(offsets.first().map_or(0, |first| first.as_usize()), spanned(offsets))
}

/// From the first offset to the last.
fn spanned<O: OffsetSizeTrait>(offsets: &[O]) -> usize {
    match (offsets.first(), offsets.last()) {
        (Some(first), Some(last)) => last.as_usize().saturating_sub(first.as_usize()),
        _ => 0,
    }
}

fn row_lens<O: OffsetSizeTrait>(offsets: &[O]) -> impl Iterator<Item = usize> {
    offsets
        .iter()
        .zip(offsets.iter().skip(1))
        .map(|(start, end)| end.as_usize().saturating_sub(start.as_usize()))
}

fn view_lens<T: ByteViewType>(array: &ArrayRef) -> impl Iterator<Item = usize> {
    array.as_byte_view::<T>().lengths().map(|len| usize::try_from(len).unwrap_or(usize::MAX))
}

/// About the bytes of a value that has no length of its own.
const VALUE_LEN: usize = 16;
