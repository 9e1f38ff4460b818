//! One round: every statement on every side in turn, then the scans without SQL and the bytes alone.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::bytes;
use super::query::Query;
use super::side::{Place, Running, Side, log_dir};
use crate::ask::{RowCounts, What};
use crate::calibrate;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Work {
    Query(Query),
    Scan(Columns),
    /// Reading the log's files without looking at what is in them.
    Bytes,
}

/// What a scan without SQL decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Columns {
    All,
    Key,
    OffsetAndTimestamp,
}

impl Columns {
    pub(super) const ALL: [Self; 3] = [Self::All, Self::Key, Self::OffsetAndTimestamp];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::All => "all columns",
            Self::Key => "key",
            Self::OffsetAndTimestamp => "offset, timestamp",
        }
    }

    fn names(self) -> Vec<String> {
        let names: &[&str] = match self {
            Self::All => &["partition", "offset", "timestamp", "key", "value", "headers"],
            Self::Key => &["key"],
            Self::OffsetAndTimestamp => &["offset", "timestamp"],
        };
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}

/// One work on one side; the median if it was done several times.
#[derive(Debug, Clone, Copy, Serialize)]
struct Sample {
    side: Side,
    work: Work,
    ms: f64,
    rows: Option<RowCounts>,
}

/// All of one round.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Round {
    pub(super) memory_copy_gb_per_s: f64,
    samples: Vec<Sample>,
}

impl Round {
    /// Runs a round; in each one another side begins. What `before` did fast is done several times.
    pub(super) fn run(
        running: &mut [Running],
        place: &Place,
        index: u32,
        before: Option<&Self>,
    ) -> io::Result<Self> {
        let mut round =
            Self { memory_copy_gb_per_s: calibrate::memory_copy(CALIBRATION), samples: Vec::new() };
        let first = usize::try_from(index).unwrap_or_default() % running.len().max(1);
        running.rotate_left(first);
        for query in Query::ALL {
            round.query(running, place, index, query, before)?;
        }
        for one in running.iter_mut().filter(|one| one.side.scans()) {
            for columns in Columns::ALL {
                round.scan(one, place, columns)?;
            }
            if one.side == Side::Files {
                let took = bytes::read(&log_dir(one.side, place), one.peer.ready.journal_len)?;
                round.push(one.side, Work::Bytes, vec![took.as_secs_f64() * 1e3], None);
            }
        }
        running.rotate_right(first);
        Ok(round)
    }

    fn push(&mut self, side: Side, work: Work, ms: Vec<f64>, rows: Option<RowCounts>) {
        self.samples.push(Sample { side, work, ms: median(ms), rows });
    }

    /// With how many rows it had to do, if the side says so.
    pub(super) fn row_counts(&self, side: Side, work: Work) -> Option<RowCounts> {
        self.samples.iter().find(|sample| sample.side == side && sample.work == work)?.rows
    }

    /// How long it took, if it was done.
    pub(super) fn ms(&self, side: Side, work: Work) -> Option<f64> {
        self.samples.iter().find(|sample| sample.side == side && sample.work == work).map(|sample| sample.ms)
    }

    fn query(
        &mut self,
        running: &mut [Running],
        place: &Place,
        index: u32,
        query: Query,
        before: Option<&Self>,
    ) -> io::Result<()> {
        let (work, text) = (Work::Query(query), query.text(place.rows, index));
        let mut expected: Option<(Side, Vec<Vec<Value>>)> = None;
        for Running { side, peer, .. } in running {
            let failed = |error: &dyn std::fmt::Display| {
                io::Error::other(format!(
                    "{}, {}: {error}; the statement is `{text}`",
                    side.title(),
                    query.title()
                ))
            };
            let times = before.and_then(|round| round.ms(*side, work)).map_or(1, times);
            let answer = peer.ask(What::Sql(text.clone()), times).map_err(|error| failed(&error))?;
            let rows = answer.rows;
            self.push(*side, work, answer.ms, answer.work);
            match &expected {
                None => expected = Some((*side, rows)),
                Some((_, same)) if *same == rows => {}
                Some((other, wanted)) => {
                    let (seen, wanted) = (shown(&rows), shown(wanted));
                    return Err(failed(&format!("{seen}, but {} answers {wanted}", other.title())));
                }
            }
        }
        Ok(())
    }

    fn scan(&mut self, one: &mut Running, place: &Place, columns: Columns) -> io::Result<()> {
        let answer = one.peer.ask(What::Scan(columns.names()), 1)?;
        if answer.rows != [[Value::from(place.rows)]] {
            let (title, seen) = (one.side.title(), shown(&answer.rows));
            return Err(io::Error::other(format!("{title}, scan of {}: {seen} rows", columns.title())));
        }
        self.push(one.side, Work::Scan(columns), answer.ms, answer.work);
        Ok(())
    }
}

/// Says which round runs. Standard error may be closed, which is no reason to stop measuring.
pub(super) fn announce(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// What takes a millisecond is measured better by doing it again.
fn times(ms: f64) -> u32 {
    (1..=TIMES_MAX).rev().find(|times| f64::from(*times) * ms <= ENOUGH_MS).unwrap_or(1)
}

fn median(mut ms: Vec<f64>) -> f64 {
    ms.sort_by(f64::total_cmp);
    ms.get(ms.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The beginning of an answer.
fn shown(rows: &[Vec<Value>]) -> String {
    serde_json::json!(rows).to_string().chars().take(SHOWN_MAX).collect()
}

const CALIBRATION: Duration = Duration::from_millis(100);
const TIMES_MAX: u32 = 9;
const ENOUGH_MS: f64 = 50.0;
const SHOWN_MAX: usize = 300;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A round in which every side takes `ms` of itself for everything.
    pub(in crate::sql) fn round(ms: impl Fn(Side, Work) -> Option<f64>, memory_copy: f64) -> Round {
        let works = Query::ALL.map(Work::Query).into_iter();
        let works: Vec<Work> = works.chain(Columns::ALL.map(Work::Scan)).chain([Work::Bytes]).collect();
        let samples = Side::ALL.into_iter().flat_map(|side| works.iter().map(move |work| (side, *work)));
        let samples =
            samples.filter_map(|(side, work)| Some(Sample { side, work, ms: ms(side, work)?, rows: None }));
        Round { memory_copy_gb_per_s: memory_copy, samples: samples.collect() }
    }

    #[test]
    fn fast_things_are_done_several_times() {
        for (ms, expect) in [(0.1, 9), (10.0, 5), (30.0, 1), (5000.0, 1), (f64::NAN, 1)] {
            assert_eq!(times(ms), expect, "{ms}");
        }
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
    }
}
