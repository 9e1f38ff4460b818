//! Consuming from the beginning: how fast, and whether all is there.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use rdkafka::message::Message as _;

use crate::arguments::{Consume, Start, Until};
use crate::clock;
use crate::outcome::{Counts, Outcome};
use crate::reader::{Order, Reader};

pub(crate) fn run(arguments: &Consume) -> io::Result<Outcome> {
    let mut reader = match arguments.from_offsets {
        Start::Beginning => Reader::from_beginning(&arguments.target, arguments.fetch_bytes)?,
    };
    let mut wanted = Wanted::new(arguments.until.as_ref());
    let end = arguments.seconds.map(|seconds| clock::now() + seconds);
    let mut counts = Counts::default();
    let mut times = None;
    let mut silence = None;
    while !wanted.is_read() && silence.is_none() {
        let read =
            reader.next()?.map(|message| (message.partition(), message.offset(), message.payload_len()));
        let now = clock::now();
        if let Some((partition, offset, len)) = read {
            counts.record(len, true);
            wanted.read(partition, offset);
            times = Some(times.map_or((now, now), |(first, _)| (first, now)));
        } else if arguments.until.is_some() {
            silence = reader.silence();
        }
        if end.is_some_and(|end| now >= end) {
            break;
        }
    }
    let measured = times.map_or(Duration::ZERO, |(first, last)| last.saturating_duration_since(first));
    let order = reader.order();
    Ok(Outcome {
        errors: wanted.missing(),
        gaps: order.gaps,
        first_offsets: order.first_offsets(),
        next_offsets: order.next_offsets(),
        faults: faults(&wanted, order, silence),
        ..Outcome::new("consume", measured, counts)
    })
}

fn faults(wanted: &Wanted, order: &Order, silence: Option<String>) -> Vec<String> {
    let missing = (wanted.missing() > 0).then(|| format!("{} records are missing", wanted.missing()));
    let gaps = (order.gaps > 0).then(|| format!("{} offsets do not follow their predecessor", order.gaps));
    missing.into_iter().chain(gaps).chain(silence).collect()
}

/// What is still to be read.
#[derive(Debug)]
enum Wanted {
    Count(u64),
    /// Of each partition that is not read: the next offset, and the one to reach.
    Offsets(BTreeMap<i32, (i64, i64)>),
    /// Whatever comes in time.
    Anything,
}

impl Wanted {
    fn new(until: Option<&Until>) -> Self {
        match until {
            None => Self::Anything,
            Some(Until::Count(count)) => Self::Count(*count),
            Some(Until::Offsets(offsets)) => Self::Offsets(
                offsets.iter().filter(|(_, end)| **end > 0).map(|(at, end)| (*at, (0, *end))).collect(),
            ),
        }
    }

    fn read(&mut self, partition: i32, offset: i64) {
        match self {
            Self::Count(left) => *left = left.saturating_sub(1),
            Self::Offsets(open) => {
                if let Some((next, end)) = open.get_mut(&partition) {
                    *next = offset + 1;
                    if next >= end {
                        open.remove(&partition);
                    }
                }
            }
            Self::Anything => {}
        }
    }

    fn is_read(&self) -> bool {
        match self {
            Self::Count(left) => *left == 0,
            Self::Offsets(open) => open.is_empty(),
            Self::Anything => false,
        }
    }

    fn missing(&self) -> u64 {
        match self {
            Self::Count(left) => *left,
            Self::Offsets(open) => {
                open.values().map(|(next, end)| u64::try_from(end - next).unwrap_or_default()).sum()
            }
            Self::Anything => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(until: Option<&Until>, read: &[(i32, i64)], done: bool, missing: u64) {
        let mut wanted = Wanted::new(until);
        for (partition, offset) in read {
            wanted.read(*partition, *offset);
        }
        assert_eq!((wanted.is_read(), wanted.missing()), (done, missing));
    }

    #[test]
    fn all_is_read_when_the_count_or_each_partition_is_reached() {
        check(None, &[(0, 0)], false, 0);
        check(Some(&Until::Count(2)), &[(0, 0)], false, 1);
        check(Some(&Until::Count(2)), &[(0, 0), (0, 1), (0, 2)], true, 0);
        let offsets = Until::Offsets(BTreeMap::from([(0, 10), (1, 2), (2, 0)]));
        check(Some(&offsets), &[], false, 12);
        check(Some(&offsets), &[(0, 9), (1, 0), (7, 5)], false, 1);
        check(Some(&offsets), &[(0, 9), (1, 1)], true, 0);
    }
}
