//! Types that are too large: what is made of them has memory without a value.

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::resources_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, ArrayElemTypeDef, visit_expressions};

/// Refuses a plan with a type of too many parts: a struct of structs doubles with each level, and a list of a fixed length
/// has all its elements even where it is null.
pub(crate) fn check_types(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        for field in node.schema().fields() {
            check_type(field.data_type())?;
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                match expr {
                    Expr::Cast(cast) => check_type(cast.field.data_type())?,
                    Expr::TryCast(cast) => check_type(cast.field.data_type())?,
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// Refuses a statement that writes such a type: some casts are computed before there is a plan.
pub(crate) fn check_written_types(statement: &Statement) -> Result<()> {
    let statement = match statement {
        Statement::Statement(statement) => statement,
        Statement::Explain(explain) => return check_written_types(&explain.statement),
        _ => return Ok(()),
    };
    let judged = visit_expressions(statement.as_ref(), |expr| {
        let written = match expr {
            ast::Expr::Cast { data_type, .. } => data_type,
            ast::Expr::TypedString(string) => &string.data_type,
            _ => return ControlFlow::Continue(()),
        };
        if elements(written) > PARTS_MAX as u64 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if judged.is_break() {
        return resources_err!("a type has more than {PARTS_MAX} parts");
    }
    Ok(())
}

/// How many elements of a fixed number a type has, as it is written.
fn elements(written: &ast::DataType) -> u64 {
    match written {
        ast::DataType::Array(ArrayElemTypeDef::SquareBracket(element, len)) => {
            elements(element).saturating_mul(len.unwrap_or(1).max(1))
        }
        ast::DataType::Array(
            ArrayElemTypeDef::AngleBracket(element) | ArrayElemTypeDef::Parenthesis(element),
        ) => elements(element),
        ast::DataType::Struct(fields, _) => {
            fields.iter().map(|field| elements(&field.field_type)).fold(0, u64::saturating_add)
        }
        _ => 1,
    }
}

/// Refuses a type of too many parts.
pub(super) fn check_type(data_type: &DataType) -> Result<()> {
    if parts(data_type, PARTS_MAX).is_none() {
        return resources_err!("a type has more than {PARTS_MAX} parts");
    }
    Ok(())
}

/// How many of `left` parts a type leaves: its fields, and the elements of what has a fixed length.
fn parts(data_type: &DataType, left: usize) -> Option<usize> {
    let mut left = left.checked_sub(1)?;
    match data_type {
        DataType::Struct(fields) => {
            for field in fields {
                left = parts(field.data_type(), left)?;
            }
        }
        DataType::Union(fields, _) => {
            for (_, field) in fields.iter() {
                left = parts(field.data_type(), left)?;
            }
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::Map(field, _) => left = parts(field.data_type(), left)?,
        DataType::Dictionary(_, values) => left = parts(values, left)?,
        DataType::RunEndEncoded(_, values) => left = parts(values.data_type(), left)?,
        DataType::FixedSizeList(field, len) => {
            let element = left - parts(field.data_type(), left)?;
            left = left.checked_sub(element.checked_mul(usize::try_from(*len).unwrap_or(0))?)?;
        }
        DataType::FixedSizeBinary(len) => left = left.checked_sub(usize::try_from(*len).unwrap_or(0))?,
        _ => {}
    }
    Some(left)
}

/// The parts of one type.
const PARTS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::Field;

    use super::*;

    #[test]
    fn types_that_double_or_pad_are_refused_early() {
        let mut doubling = DataType::Utf8;
        for level in 0..200 {
            assert_eq!(check_type(&doubling).is_ok(), level < 12, "{level}");
            let field = Arc::new(Field::new("a", doubling, true));
            doubling = DataType::Struct(vec![Arc::clone(&field), field].into());
        }
        let list = |len, of| DataType::FixedSizeList(Arc::new(Field::new("a", of, true)), len);
        for (data_type, is_small) in [
            (DataType::FixedSizeBinary(16), true),
            (DataType::FixedSizeBinary(4_096), false),
            (list(1_000, DataType::Int32), true),
            (list(1_000_000_000, DataType::Int32), false),
            (list(100, list(100, DataType::Int32)), false),
            (DataType::List(Arc::new(Field::new("a", DataType::Utf8, true))), true),
        ] {
            assert_eq!(check_type(&data_type).is_ok(), is_small, "{data_type}");
        }
    }
}
