//! Median and range of what the rounds gave.

/// Median and range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` of nothing.
    pub(crate) fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Self { median: f64::midpoint(lower, upper), min, max })
    }
}

/// Median and range, with the digits that mean something.
pub(crate) fn figure(spread: Option<Spread>) -> String {
    match spread {
        None => "–".into(),
        Some(Spread { median, min, max }) if (max - min).abs() < f64::EPSILON => digits(median),
        Some(Spread { median, min, max }) => format!("{} ({}..{})", digits(median), digits(min), digits(max)),
    }
}

/// Three digits that mean something, more only before the point.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_median_and_range() {
        assert_eq!(Spread::new([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::new([4.0, 1.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(Spread::new([f64::NAN]), None);
    }

    #[test]
    fn numbers_have_three_digits_that_mean_something() {
        for (value, text) in [(1234.5, "1234"), (12.34, "12.3"), (1.234, "1.23"), (0.1234, "0.123")] {
            assert_eq!(digits(value), text);
        }
    }
}
