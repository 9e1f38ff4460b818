//! PostgreSQL's functions that need their arguments. Those that answer always the same are replaced before planning.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray, UInt32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, UInt32Type};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::listing::Listing;
use super::types;

/// A function and what it has to know.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    does: Does,
    signature: Signature,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Does {
    /// `pg_table_is_visible(oid)`.
    IsVisible(Arc<BTreeMap<u32, String>>),
    /// The name of a relation, with its schema where it has to be named.
    RelationName(Arc<BTreeMap<u32, String>>),
    /// `to_regclass(text)`: the relation of this name.
    Relation(Arc<BTreeMap<String, u32>>),
    /// `to_regtype(text)`: the type of this name.
    Type,
    /// `pg_size_pretty(bigint)`.
    Size,
    /// `format_type(oid, modifier)`.
    TypeTitle,
    /// `quote_ident(text)`.
    Quote,
    /// `array_to_string(array, text)`; of an array that is written as a text, too.
    Join,
}

/// The functions, for what there is now.
pub(super) fn functions(listing: &Listing, schema: &str) -> Vec<ScalarUDF> {
    let (mut visible, mut names, mut numbers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for relation in &listing.relations {
        let quoted = quote(&relation.name);
        let full = format!("{}.{quoted}", quote(&relation.schema));
        if relation.schema == schema || relation.schema == "pg_catalog" {
            visible.insert(relation.oid, quoted.clone());
            names.insert(relation.oid, quoted.clone());
            numbers.insert(quoted, relation.oid);
        } else {
            names.insert(relation.oid, full.clone());
        }
        numbers.insert(full, relation.oid);
    }
    let names = Arc::new(names);
    let one = || Signature::any(1, Volatility::Stable);
    let two = || Signature::any(2, Volatility::Stable);
    let all = [
        ("pg_table_is_visible", Does::IsVisible(Arc::new(visible)), one()),
        (RELATION_NAME, Does::RelationName(names), one()),
        ("to_regclass", Does::Relation(Arc::new(numbers)), one()),
        ("to_regtype", Does::Type, one()),
        ("pg_size_pretty", Does::Size, one()),
        ("format_type", Does::TypeTitle, two()),
        ("quote_ident", Does::Quote, one()),
        ("array_to_string", Does::Join, two()),
    ];
    let function = |(name, does, signature)| ScalarUDF::from(Function { name, does, signature });
    all.into_iter().map(function).collect()
}

/// A name as it is written in SQL: quoted where it has to be.
pub(super) fn quote(name: &str) -> String {
    let plain = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if plain && !name.starts_with(|first: char| first.is_ascii_digit()) && !name.is_empty() {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.does {
            Does::IsVisible(_) => DataType::Boolean,
            Does::Relation(_) | Does::Type => DataType::UInt32,
            _ => DataType::Utf8,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(first) = arrays.first() else {
            return Ok(ColumnarValue::Array(Arc::new(StringArray::new_null(0))));
        };
        let answer: ArrayRef = match &self.does {
            Does::IsVisible(visible) => Arc::new(
                numbers(first)?
                    .iter()
                    .map(|of| of.map(|of| visible.contains_key(&of)))
                    .collect::<BooleanArray>(),
            ),
            Does::RelationName(names) => {
                let name = |of: u32| names.get(&of).cloned().unwrap_or_else(|| of.to_string());
                Arc::new(numbers(first)?.iter().map(|of| of.map(name)).collect::<StringArray>())
            }
            Does::Relation(relations) => {
                let found = |name: &str| relations.get(name).copied().or_else(|| name.parse().ok());
                Arc::new(texts(first)?.iter().map(|name| name.and_then(found)).collect::<UInt32Array>())
            }
            Does::Type => {
                let names = texts(first)?;
                Arc::new(names.iter().map(|name| name.and_then(types::by_name)).collect::<UInt32Array>())
            }
            Does::Size => {
                let sizes = cast(first, &DataType::Int64)?;
                let sizes = sizes.as_primitive::<Int64Type>();
                Arc::new(sizes.iter().map(|size| size.map(pretty)).collect::<StringArray>())
            }
            Does::TypeTitle => {
                Arc::new(numbers(first)?.iter().map(|of| of.map(types::title)).collect::<StringArray>())
            }
            Does::Quote => {
                Arc::new(texts(first)?.iter().map(|name| name.map(quote)).collect::<StringArray>())
            }
            Does::Join => {
                let separators = arrays.get(1).map(texts).transpose()?;
                Arc::new(
                    (0..first.len())
                        .map(|row| {
                            let separator = separators.as_ref().filter(|array| array.is_valid(row));
                            joined(first, row, separator.map_or("", |array| array.value(row)))
                        })
                        .collect::<Result<StringArray>>()?,
                )
            }
        };
        Ok(ColumnarValue::Array(answer))
    }
}

/// A number of bytes as PostgreSQL shows it: in the first unit in which it is short, halves rounded up.
fn pretty(size: i64) -> String {
    if size.unsigned_abs() < 10 * 1024 {
        return format!("{size} bytes");
    }
    // In halves of the unit.
    let mut halves = size / 512;
    for unit in ["kB", "MB", "GB", "TB"] {
        if halves.unsigned_abs() < 20 * 1024 - 1 {
            return format!("{} {unit}", halves.saturating_add(halves.signum()) / 2);
        }
        halves /= 1024;
    }
    format!("{} PB", halves.saturating_add(halves.signum()) / 2)
}

fn joined(array: &ArrayRef, row: usize, separator: &str) -> Result<Option<String>> {
    if array.is_null(row) {
        return Ok(None);
    }
    if let Some(list) = array.as_list_opt::<i32>() {
        let elements = texts(&list.value(row))?;
        return Ok(Some(elements.iter().flatten().collect::<Vec<_>>().join(separator)));
    }
    let text = texts(array)?.value(row).to_owned();
    Ok(Some(text.trim_matches(['{', '}']).replace(',', separator)))
}

fn numbers(array: &ArrayRef) -> Result<UInt32Array> {
    let array = cast(array, &DataType::UInt32)?;
    Ok(array.as_primitive::<UInt32Type>().clone())
}

fn texts(array: &ArrayRef) -> Result<StringArray> {
    let array = cast(array, &DataType::Utf8)?;
    Ok(array.as_string::<i32>().clone())
}

/// Not a function of PostgreSQL: what casting an oid to `regclass` shows.
pub(super) const RELATION_NAME: &str = "relation_name";
