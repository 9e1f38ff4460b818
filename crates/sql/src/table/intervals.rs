//! Sets of integers as sorted intervals: which partitions, offsets or timestamps a filter leaves.

use datafusion::logical_expr::Operator;

/// A set of integers.
///
/// INVARIANT: intervals are inclusive, not empty, sorted, and neither overlap nor touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Intervals(Vec<(i64, i64)>);

impl Intervals {
    /// Every integer.
    pub(crate) fn all() -> Self {
        Self::between(i64::MIN, i64::MAX)
    }

    /// No integer.
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    /// The integers from `low` to `high`, both included.
    pub(crate) fn between(low: i64, high: i64) -> Self {
        if low <= high { Self(vec![(low, high)]) } else { Self::none() }
    }

    /// The integers `x` for which `x operator value` is true; `None`, if the operator compares in another way.
    pub(crate) fn compared(operator: Operator, value: i64) -> Option<Self> {
        let below = || value.checked_sub(1).map_or_else(Self::none, |high| Self::between(i64::MIN, high));
        let above = || value.checked_add(1).map_or_else(Self::none, |low| Self::between(low, i64::MAX));
        match operator {
            Operator::Eq => Some(Self::between(value, value)),
            Operator::NotEq => Some(below().or(&above())),
            Operator::Lt => Some(below()),
            Operator::LtEq => Some(Self::between(i64::MIN, value)),
            Operator::Gt => Some(above()),
            Operator::GtEq => Some(Self::between(value, i64::MAX)),
            _ => None,
        }
    }

    /// What is in both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some(&&(low, high)), Some(&&(other_low, other_high))) = (ours.peek(), theirs.peek()) {
            let shared = (low.max(other_low), high.min(other_high));
            if shared.0 <= shared.1 {
                both.push(shared);
            }
            if high < other_high {
                ours.next();
            } else {
                theirs.next();
            }
        }
        Self(both)
    }

    /// What is in one of them.
    pub(crate) fn or(&self, other: &Self) -> Self {
        Self::union(self.0.iter().chain(&other.0).copied().collect())
    }

    /// All values of a list.
    pub(crate) fn values(values: impl IntoIterator<Item = i64>) -> Self {
        Self::union(values.into_iter().map(|value| (value, value)).collect())
    }

    fn union(mut intervals: Vec<(i64, i64)>) -> Self {
        intervals.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(intervals.len());
        for (low, high) in intervals {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self(merged)
    }

    /// The intervals, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.0.iter().copied()
    }

    /// Whether a value is in it.
    pub(crate) fn contains(&self, value: i64) -> bool {
        let after = self.0.partition_point(|&(low, _)| low <= value);
        after.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|&(_, high)| value <= high)
    }

    /// Whether nothing is missing between its least and its greatest.
    pub(crate) const fn is_connected(&self) -> bool {
        self.0.len() <= 1
    }

    /// Its least and its greatest; `None` if it is empty.
    pub(crate) fn bounds(&self) -> Option<(i64, i64)> {
        let (&(low, _), &(_, high)) = self.0.first().zip(self.0.last())?;
        Some((low, high))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OPERATORS: [Operator; 6] =
        [Operator::Eq, Operator::NotEq, Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq];

    fn holds(operator: Operator, left: i64, right: i64) -> bool {
        match operator {
            Operator::Eq => left == right,
            Operator::NotEq => left != right,
            Operator::Lt => left < right,
            Operator::LtEq => left <= right,
            Operator::Gt => left > right,
            _ => left >= right,
        }
    }

    fn value() -> impl Strategy<Value = i64> {
        prop_oneof![4 => -5..5_i64, 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
    }

    proptest! {
        #[test]
        fn sets_contain_what_the_comparisons_say(
            first in (0..6_usize, value()),
            second in (0..6_usize, value()),
            list in prop::collection::vec(value(), 0..5),
            probe in value(),
        ) {
            let (one, two) = ((OPERATORS[first.0], first.1), (OPERATORS[second.0], second.1));
            let left = Intervals::compared(one.0, one.1).unwrap();
            let right = Intervals::compared(two.0, two.1).unwrap();
            let (in_left, in_right) = (holds(one.0, probe, one.1), holds(two.0, probe, two.1));
            prop_assert_eq!(left.contains(probe), in_left);
            prop_assert_eq!(left.and(&right).contains(probe), in_left && in_right);
            prop_assert_eq!(left.or(&right).contains(probe), in_left || in_right);
            let listed = Intervals::values(list.iter().copied());
            prop_assert_eq!(listed.contains(probe), list.contains(&probe));
            prop_assert_eq!(listed.and(&left).contains(probe), list.contains(&probe) && in_left);
        }
    }
}
