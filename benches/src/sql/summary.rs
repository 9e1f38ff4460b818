//! The arithmetic: ratios inside each round, medians over the rounds, and whether the run counts.

use super::query::Query;
use super::round::{Round, Work};
use super::side::Side;
use crate::system::Spread;

/// A figure that is aimed at.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Aim {
    pub(super) title: String,
    pub(super) unit: &'static str,
    /// `None` for what is printed beside the others, to explain them.
    pub(super) at_most: Option<f64>,
    pub(super) seen: Option<Spread>,
}

impl Aim {
    /// Whether the median meets it; `None` where nothing is asked or known.
    pub(super) fn is_met(&self) -> Option<bool> {
        Some(self.seen?.median <= self.at_most?)
    }
}

/// What a run says.
#[derive(Debug)]
pub(super) struct Summary {
    /// Which rounds count, by their index.
    pub(super) counted: Vec<usize>,
    pub(super) left_out: Vec<usize>,
    pub(super) aims: Vec<Aim>,
}

/// How far a round's memory copy may be from the median of all.
const CALIBRATION_DRIFT_MAX: f64 = 0.25;

/// What is asked where every row is needed: to `DataFusion` on Parquet without and with a cache, and to reading the bytes.
const UNCACHED_MAX: f64 = 2.0;
const CACHED_MAX: f64 = 1.2;
const FILES_MAX: f64 = 1.3;
/// What is asked where it is not, in ms.
const AT_ONCE_MAX: f64 = 2.0;

impl Summary {
    pub(super) fn new(rounds: &[Round]) -> Self {
        let (counted, left_out) = partition(rounds);
        let of: Vec<&Round> = counted.iter().filter_map(|index| rounds.get(*index)).collect();
        Self { aims: aims(&of), counted, left_out }
    }

    /// A run is void if half of its rounds do not count.
    pub(super) fn is_void(&self) -> bool {
        self.counted.len() <= self.left_out.len()
    }
}

/// How long a side took.
pub(super) fn ms(rounds: &[&Round], side: Side, work: Work) -> Option<Spread> {
    Spread::new(rounds.iter().filter_map(|round| round.ms(side, work)))
}

/// How long a side took for a work, in units of another side and its work in the same round.
pub(super) fn ratio(rounds: &[&Round], one: (Side, Work), other: (Side, Work)) -> Option<Spread> {
    let of = |round: &&Round| Some(round.ms(one.0, one.1)? / round.ms(other.0, other.1)?);
    Spread::new(rounds.iter().filter_map(of))
}

fn aims(rounds: &[&Round]) -> Vec<Aim> {
    let mut aims = Vec::new();
    let whole = || Query::ALL.into_iter().filter(|query| query.is_whole());
    let mut compare = |title: &str, query: Query, side: Side, rival: (Side, Work), at_most: Option<f64>| {
        let seen = ratio(rounds, (side, Work::Query(query)), rival);
        aims.push(Aim { title: format!("{}, {title}", query.title()), unit: "", at_most, seen });
    };
    for (side, at_most) in [(Side::Memory, UNCACHED_MAX), (Side::Cached, CACHED_MAX)] {
        for query in whole() {
            let title = format!("{} to DataFusion", side.title());
            compare(&title, query, side, (Side::DataFusion, Work::Query(query)), Some(at_most));
        }
    }
    for query in whole() {
        compare(
            "files to reading the bytes",
            query,
            Side::Files,
            (Side::Files, Work::Bytes),
            Some(FILES_MAX),
        );
    }
    for query in whole() {
        compare("broker to memory", query, Side::Broker, (Side::Memory, Work::Query(query)), None);
    }
    for (side, at_most) in [(Side::Memory, Some(AT_ONCE_MAX)), (Side::Broker, None)] {
        for query in Query::ALL.into_iter().filter(|query| query.is_at_once()) {
            let (title, seen) = (query.title(), ms(rounds, side, Work::Query(query)));
            aims.push(Aim { title: format!("{title}, {}", side.title()), unit: "ms", at_most, seen });
        }
    }
    aims
}

/// The rounds whose calibration is near the median, and the others.
fn partition(rounds: &[Round]) -> (Vec<usize>, Vec<usize>) {
    let median = Spread::new(rounds.iter().map(|round| round.memory_copy_gb_per_s));
    let near = |round: &Round| {
        median.is_some_and(|spread| {
            (round.memory_copy_gb_per_s / spread.median - 1.0).abs() <= CALIBRATION_DRIFT_MAX
        })
    };
    let (counted, left_out): (Vec<_>, Vec<_>) = rounds.iter().enumerate().partition(|(_, round)| near(round));
    let index = |of: Vec<(usize, &Round)>| of.into_iter().map(|(index, _)| index).collect();
    (index(counted), index(left_out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::round::tests::round;

    /// `DataFusion` takes 10 ms, the others what is said; reading the bytes takes 4.
    fn rounds(memory: f64, files: f64) -> Vec<Round> {
        let ms = move |side: Side, work: Work| match (side, work) {
            (_, Work::Bytes) => Some(4.0),
            (Side::DataFusion, _) => Some(10.0),
            (Side::Memory, _) => Some(memory),
            (Side::Files, _) => Some(files),
            _ => None,
        };
        vec![round(ms, 10.0), round(ms, 11.0)]
    }

    #[track_caller]
    fn check(rounds: &[Round], title: &str, expect: Option<(f64, Option<bool>)>) {
        let summary = Summary::new(rounds);
        let aim = summary.aims.iter().find(|aim| aim.title == title).expect("an aim of this title");
        assert_eq!(aim.seen.map(|seen| (seen.median, aim.is_met())), expect);
    }

    #[test]
    fn aims_are_ratios_inside_the_rounds() {
        let rounds = rounds(20.0, 6.0);
        check(&rounds, "group by 20 types, memory to DataFusion", Some((2.0, Some(true))));
        check(&rounds, "group by 20 types, cached to DataFusion", None);
        check(&rounds, "sum of the values' lengths, files to reading the bytes", Some((1.5, Some(false))));
        check(&rounds, "count(*), memory", Some((20.0, Some(false))));
        check(&rounds, "count(*), broker", None);
    }

    #[test]
    fn a_round_of_another_machine_speed_is_left_out() {
        let ms = |_: Side, _: Work| Some(1.0);
        let summary = Summary::new(&[round(ms, 10.0), round(ms, 5.0), round(ms, 10.5)]);
        assert_eq!((&summary.counted[..], &summary.left_out[..]), (&[0, 2][..], &[1][..]));
        assert!(!summary.is_void());
        assert!(Summary::new(&[]).is_void());
    }
}
