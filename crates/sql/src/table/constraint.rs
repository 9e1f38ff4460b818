//! What the filters of a query leave of a topic, as far as a scan can apply them exactly.
//!
//! ```text
//! conjunct   = comparison / "column IN (list)" / "column BETWEEN low AND high" / "column IS NOT NULL"
//!            / conjunct AND conjunct          ; of any columns
//!            / conjunct OR conjunct           ; of one and the same column
//! column     = partition / offset / timestamp / key
//! ```
//!
//! A conjunct that is not of this form, or is not exactly expressible (a literal of a finer unit is; a timestamp in a time
//! zone is not), is not taken, and the query filters the rows itself.

use std::collections::BTreeSet;

use bytes::Bytes;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use kolumn_topic_store::{Column, RowFilter};

use super::intervals::Intervals;

/// Rows that fulfil all of it are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constraint {
    /// Which partitions.
    pub(crate) partitions: Intervals,
    /// Which offsets.
    pub(crate) offsets: Intervals,
    /// Which timestamps, if rows without one are not wanted.
    timestamps: Option<Intervals>,
    /// Which keys.
    keys: Option<BTreeSet<Bytes>>,
}

impl Constraint {
    /// Takes every row.
    pub(crate) fn open() -> Self {
        Self { partitions: Intervals::all(), offsets: Intervals::all(), timestamps: None, keys: None }
    }

    /// Takes no row.
    fn nothing() -> Self {
        Self { partitions: Intervals::none(), ..Self::open() }
    }

    /// What a filter says, if a scan can apply exactly that.
    pub(crate) fn of(filter: &Expr) -> Option<Self> {
        let taken = match filter {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                Self::of(left)?.and(&Self::of(right)?)
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                Self::of(left)?.or(&Self::of(right)?)?
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (operand(left)?, operand(right)?) {
                (Operand::Column(column), Operand::Value(value)) => Self::compared(column, *op, value)?,
                (Operand::Value(value), Operand::Column(column)) => {
                    Self::compared(column, op.swap()?, value)?
                }
                _ => return None,
            },
            Expr::Between(Between { expr, negated: false, low, high }) => {
                let (Operand::Column(column), Operand::Value(low), Operand::Value(high)) =
                    (operand(expr)?, operand(low)?, operand(high)?)
                else {
                    return None;
                };
                Self::compared(column, Operator::GtEq, low)?.and(&Self::compared(
                    column,
                    Operator::LtEq,
                    high,
                )?)
            }
            Expr::InList(InList { expr, list, negated: false }) => Self::listed(expr, list)?,
            Expr::IsNotNull(expr) => match operand(expr)? {
                Operand::Column(Column::Timestamp) => {
                    Self { timestamps: Some(Intervals::all()), ..Self::open() }
                }
                Operand::Column(Column::Partition | Column::Offset) => Self::open(),
                _ => return None,
            },
            // What a filter was folded to after it had been taken: null is as good as false.
            Expr::Literal(ScalarValue::Boolean(value), _) => {
                if *value == Some(true) {
                    Self::open()
                } else {
                    Self::nothing()
                }
            }
            _ => return None,
        };
        taken.is_expressible().then_some(taken)
    }

    /// All filters together, which were promised to be applied: one that cannot be taken is an error, and its text.
    pub(crate) fn of_all(filters: &[Expr]) -> Result<Self, String> {
        filters.iter().try_fold(Self::open(), |all, filter| {
            let one = Self::of(filter)
                .ok_or_else(|| format!("the filter `{filter}` was taken and cannot be applied"))?;
            Ok(all.and(&one))
        })
    }

    /// What rows at wanted positions have to fulfil besides; `None` if no row can.
    pub(crate) fn row_filter(&self) -> Option<RowFilter> {
        let mut filter = RowFilter::default();
        if let Some(timestamps) = &self.timestamps {
            // `is_expressible` and `and` leave one interval at most.
            let (low, high) = timestamps.bounds()?;
            filter.timestamp_min = Some(low);
            filter.timestamp_max = (high < i64::MAX).then_some(high);
        }
        if let Some(keys) = &self.keys {
            if keys.is_empty() {
                return None;
            }
            filter.keys = Some(keys.iter().cloned().collect());
        }
        Some(filter)
    }

    /// The scan knows one range of timestamps.
    fn is_expressible(&self) -> bool {
        self.timestamps.as_ref().is_none_or(Intervals::is_connected)
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        Self {
            partitions: self.partitions.and(&other.partitions),
            offsets: self.offsets.and(&other.offsets),
            timestamps: both(self.timestamps.as_ref(), other.timestamps.as_ref(), Intervals::and),
            keys: both(self.keys.as_ref(), other.keys.as_ref(), |ours, theirs| ours & theirs),
        }
    }

    /// What one of the two takes, if they constrain one and the same column, or one of them takes nothing.
    fn or(&self, other: &Self) -> Option<Self> {
        let nothing = Self::nothing();
        if *self == nothing || *other == nothing {
            return Some(if *self == nothing { other.clone() } else { self.clone() });
        }
        let open = Self::open();
        let either = Self {
            partitions: self.partitions.or(&other.partitions),
            offsets: self.offsets.or(&other.offsets),
            timestamps: self.timestamps.as_ref().zip(other.timestamps.as_ref()).map(|(a, b)| a.or(b)),
            keys: self.keys.as_ref().zip(other.keys.as_ref()).map(|(a, b)| a | b),
        };
        let only = |keep: fn(&mut Self, &Self)| {
            let rest = |constraint: &Self| {
                let mut rest = constraint.clone();
                keep(&mut rest, &open);
                rest == open
            };
            rest(self) && rest(other)
        };
        let of_one_column = only(|rest, open| rest.partitions.clone_from(&open.partitions))
            || only(|rest, open| rest.offsets.clone_from(&open.offsets))
            || only(|rest, _| rest.timestamps = None)
            || only(|rest, _| rest.keys = None);
        of_one_column.then_some(either)
    }

    fn compared(column: Column, operator: Operator, value: &ScalarValue) -> Option<Self> {
        if value.is_null() {
            return comparison(operator).then(Self::nothing);
        }
        match column {
            Column::Partition => {
                Some(Self { partitions: Intervals::compared(operator, integer(value)?)?, ..Self::open() })
            }
            Column::Offset => {
                Some(Self { offsets: Intervals::compared(operator, integer(value)?)?, ..Self::open() })
            }
            Column::Timestamp => {
                let timestamps = timestamps_compared(operator, value)?;
                Some(Self { timestamps: Some(timestamps), ..Self::open() })
            }
            Column::Key if operator == Operator::Eq => {
                let keys = BTreeSet::from([key(value)?]);
                Some(Self { keys: Some(keys), ..Self::open() })
            }
            _ => None,
        }
    }

    fn listed(expr: &Expr, list: &[Expr]) -> Option<Self> {
        let Operand::Column(column) = operand(expr)? else {
            return None;
        };
        let mut values = Vec::with_capacity(list.len());
        for item in list {
            let Operand::Value(value) = operand(item)? else {
                return None;
            };
            // `x IN (…, NULL)` is true for the same rows as without it, and else not true.
            if !value.is_null() {
                values.push(value);
            }
        }
        let integers = || values.iter().map(|value| integer(value)).collect::<Option<Vec<_>>>();
        match column {
            Column::Partition => Some(Self { partitions: Intervals::values(integers()?), ..Self::open() }),
            Column::Offset => Some(Self { offsets: Intervals::values(integers()?), ..Self::open() }),
            Column::Timestamp => {
                let mut timestamps = Intervals::none();
                for value in values {
                    timestamps = timestamps.or(&timestamps_compared(Operator::Eq, value)?);
                }
                Some(Self { timestamps: Some(timestamps), ..Self::open() })
            }
            Column::Key => {
                let keys = values.iter().map(|value| key(value)).collect::<Option<_>>()?;
                Some(Self { keys: Some(keys), ..Self::open() })
            }
            _ => None,
        }
    }
}

/// One side of a comparison.
enum Operand<'a> {
    Column(Column),
    Value(&'a ScalarValue),
}

fn operand(expr: &Expr) -> Option<Operand<'_>> {
    match expr {
        Expr::Literal(value, _) => Some(Operand::Value(value)),
        Expr::Column(column) => {
            let column = Column::ALL.into_iter().find(|candidate| candidate.name() == column.name())?;
            Some(Operand::Column(column))
        }
        Expr::Cast(cast) => {
            let Operand::Column(column) = operand(&cast.expr)? else {
                return None;
            };
            // A cast that keeps every value and its order changes no comparison.
            let keeps = match (column, cast.field.data_type()) {
                (Column::Partition, DataType::Int32 | DataType::Int64)
                | (Column::Offset, DataType::Int64) => {
                    matches!(*cast.expr, Expr::Column(_))
                }
                (Column::Timestamp, DataType::Timestamp(unit, zone)) => {
                    *unit != TimeUnit::Second
                        && is_utc(zone.as_deref())
                        && matches!(*cast.expr, Expr::Column(_))
                }
                _ => false,
            };
            keeps.then_some(Operand::Column(column))
        }
        _ => None,
    }
}

/// Columns have no time zone, which comparisons with one take for UTC.
fn is_utc(zone: Option<&str>) -> bool {
    matches!(zone, None | Some("UTC" | "+00:00" | "Z"))
}

const fn comparison(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
    )
}

fn integer(value: &ScalarValue) -> Option<i64> {
    match *value {
        ScalarValue::Int8(value) => value.map(i64::from),
        ScalarValue::Int16(value) => value.map(i64::from),
        ScalarValue::Int32(value) => value.map(i64::from),
        ScalarValue::Int64(value) => value,
        ScalarValue::UInt8(value) => value.map(i64::from),
        ScalarValue::UInt16(value) => value.map(i64::from),
        ScalarValue::UInt32(value) => value.map(i64::from),
        ScalarValue::UInt64(value) => value.and_then(|value| i64::try_from(value).ok()),
        _ => None,
    }
}

fn key(value: &ScalarValue) -> Option<Bytes> {
    match value {
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes)) => Some(Bytes::copy_from_slice(bytes)),
        _ => None,
    }
}

/// The milliseconds that compare so with a time of any unit.
fn timestamps_compared(operator: Operator, value: &ScalarValue) -> Option<Intervals> {
    let (value, per_ms, zone) = match value {
        ScalarValue::TimestampMillisecond(Some(value), zone) => (*value, 1, zone),
        ScalarValue::TimestampMicrosecond(Some(value), zone) => (*value, 1_000, zone),
        ScalarValue::TimestampNanosecond(Some(value), zone) => (*value, 1_000_000, zone),
        ScalarValue::TimestampSecond(Some(value), zone) => (value.checked_mul(1_000)?, 1, zone),
        _ => return None,
    };
    if !is_utc(zone.as_deref()) {
        return None;
    }
    let (floor, is_whole) = (value.div_euclid(per_ms), value.rem_euclid(per_ms) == 0);
    match (operator, is_whole) {
        (_, true) => Intervals::compared(operator, floor),
        (Operator::Eq, false) => Some(Intervals::none()),
        (Operator::NotEq, false) => Some(Intervals::all()),
        (Operator::Lt | Operator::LtEq, false) => Intervals::compared(Operator::LtEq, floor),
        (Operator::Gt | Operator::GtEq, false) => Intervals::compared(Operator::Gt, floor),
        _ => None,
    }
}

/// The conjunction of what may be there.
fn both<T: Clone>(ours: Option<&T>, theirs: Option<&T>, and: impl Fn(&T, &T) -> T) -> Option<T> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => Some(and(ours, theirs)),
        (one, other) => one.or(other).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::DataType;
    use datafusion::logical_expr::{cast, col, lit};

    use super::*;

    fn ns(value: i64) -> Expr {
        lit(ScalarValue::TimestampNanosecond(Some(value), None))
    }

    fn bytes(text: &str) -> Expr {
        lit(ScalarValue::Binary(Some(text.as_bytes().to_vec())))
    }

    #[test]
    fn filters_of_positions_times_and_keys_are_taken() {
        let taken = |filter: Expr| Constraint::of(&filter).unwrap();
        let offset = || col("offset");
        assert_eq!(taken(offset().gt(lit(5_i64))).offsets, Intervals::between(6, i64::MAX));
        assert_eq!(taken(lit(5_i64).gt(offset())).offsets, Intervals::between(i64::MIN, 4));
        assert_eq!(
            taken(offset().eq(lit(1_i64)).or(offset().eq(lit(2_i64)))).offsets,
            Intervals::between(1, 2)
        );
        assert_eq!(taken(offset().between(lit(1_i64), lit(3_i64))).offsets, Intervals::between(1, 3));
        assert_eq!(
            taken(cast(col("partition"), DataType::Int64).eq(lit(1_i64))).partitions,
            Intervals::between(1, 1)
        );
        let keys = taken(col("key").in_list(vec![bytes("a"), bytes("b")], false)).row_filter().unwrap().keys;
        assert_eq!(keys.unwrap(), [Bytes::from("a"), Bytes::from("b")]);
        let both = taken(col("key").eq(bytes("a")).and(col("key").eq(bytes("b"))));
        assert_eq!(both.row_filter(), None);
        assert_eq!(taken(offset().eq(lit(ScalarValue::Int64(None)))), Constraint::nothing());
    }

    #[test]
    fn times_of_finer_units_are_rounded_so_that_the_same_rows_are_wanted() {
        let nanos = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let bounds = |filter: Expr| {
            let filter = Constraint::of(&filter).unwrap().row_filter()?;
            Some((filter.timestamp_min, filter.timestamp_max))
        };
        let time = || cast(col("timestamp"), nanos.clone());
        let least = Some(i64::MIN);
        assert_eq!(bounds(time().lt(ns(2_000_001))), Some((least, Some(2))));
        assert_eq!(bounds(time().lt(ns(2_000_000))), Some((least, Some(1))));
        assert_eq!(bounds(time().lt_eq(ns(1_999_999))), Some((least, Some(1))));
        assert_eq!(bounds(time().gt(ns(2_000_001))), Some((Some(3), None)));
        assert_eq!(bounds(time().gt_eq(ns(-1))), Some((Some(0), None)));
        assert_eq!(bounds(time().eq(ns(2_000_001))), None);
        assert_eq!(bounds(time().not_eq(ns(2_000_001))), Some((least, None)));
        assert_eq!(bounds(time().is_not_null()), Some((least, None)));
    }

    #[test]
    fn what_a_scan_cannot_say_exactly_is_not_taken() {
        let (offset, key, time) = (|| col("offset"), || col("key"), || col("timestamp"));
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        let tokyo = ScalarValue::TimestampMillisecond(Some(5), Some("Asia/Tokyo".into()));
        let ms = |value| lit(ScalarValue::TimestampMillisecond(Some(value), None));
        for filter in [
            offset().eq(lit(5.5)),
            cast(offset(), DataType::Int32).eq(lit(5)),
            offset().eq(lit(1_i64)).or(col("partition").eq(lit(1))),
            offset().in_list(vec![lit(1_i64)], true),
            key().gt(bytes("a")),
            key().not_eq(bytes("a")),
            key().is_not_null(),
            key().eq(lit("a")),
            key().eq(col("value")),
            time().not_eq(ms(5)),
            cast(time(), seconds.clone()).eq(lit(ScalarValue::TimestampSecond(Some(5), None))),
            time().gt(lit(tokyo)),
            col("value").eq(bytes("a")),
        ] {
            assert_eq!(Constraint::of(&filter), None, "{filter}");
        }
    }
}
