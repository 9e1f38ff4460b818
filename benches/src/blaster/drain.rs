//! Fetching a partition as fast as it comes, one fetch at a time as client libraries do.

use std::io;

use super::{Counts, Drain, Outcome, seconds};
use crate::batch::Header;
use crate::client::{Connection, FetchRequest};
use crate::clock;
use crate::histogram::Histogram;
use crate::wire::invalid;

const EARLIEST: i64 = -2;
const LATEST: i64 = -1;

pub(super) fn run(arguments: &Drain) -> io::Result<Outcome> {
    let duration = seconds("--seconds", arguments.seconds)?;
    let (topic, partition) = (arguments.target.topic.as_str(), arguments.partition);
    let mut connection = Connection::open(arguments.target.broker)?;
    let first = connection.offset(topic, partition, EARLIEST)?;
    let end = connection.offset(topic, partition, LATEST)?;
    if first >= end {
        return Err(invalid("there is nothing to fetch"));
    }
    let request = FetchRequest { topic, partition, bytes_max: arguments.fetch_bytes };
    let (mut counts, mut latency) = (Counts::default(), Histogram::new());
    let start = clock::now();
    let (mut now, mut offset) = (start, first);
    while now.saturating_duration_since(start) < duration {
        let fetched = connection.fetch(&request, offset)?;
        let (next, records) = walk(fetched.records, offset)?;
        counts.request(records, u64::try_from(fetched.records.len()).unwrap_or_default(), true);
        offset = if next >= end { first } else { next };
        let arrived = clock::now();
        latency.record(arrived.saturating_duration_since(now));
        now = arrived;
    }
    Ok(Outcome::new("drain", now.saturating_duration_since(start), counts, latency.percentiles()))
}

/// Walks the batches of a response: the first covers `offset`, each begins where the one before ended.
/// Gives the offset to ask for next and the number of records.
fn walk(records: &[u8], offset: i64) -> io::Result<(i64, u64)> {
    let (mut rest, mut next, mut count) = (records, offset, 0);
    while !rest.is_empty() {
        let Ok(header) = Header::parse(rest) else {
            break; // a response may end inside a batch
        };
        let Some((_, after)) = rest.split_at_checked(header.len) else {
            break;
        };
        let follows = if count == 0 { header.base_offset <= next } else { header.base_offset == next };
        if !follows || header.next_offset() <= next {
            return Err(invalid("the batches of a response do not follow each other"));
        }
        next = header.next_offset();
        count += u64::try_from(header.count).unwrap_or_default();
        rest = after;
    }
    if next == offset {
        return Err(invalid("a fetch below the end brought no whole batch"));
    }
    Ok((next, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch;

    fn batches(offsets: &[i64]) -> Vec<u8> {
        let mut records = Vec::new();
        for offset in offsets {
            let mut batch = batch::build(10, 200, 0).bytes;
            batch[..8].copy_from_slice(&offset.to_be_bytes());
            records.extend(batch);
        }
        records
    }

    #[test]
    fn batches_in_a_row_are_counted() {
        let count = i64::from(batch::build(10, 200, 0).count);
        let records = batches(&[0, count, 2 * count]);
        let (next, seen) = walk(&records, 1).unwrap();
        assert_eq!((next, i64::try_from(seen).unwrap()), (3 * count, 3 * count));
    }

    #[test]
    fn a_gap_a_repetition_and_an_empty_response_are_errors() {
        let count = i64::from(batch::build(10, 200, 0).count);
        for offsets in [&[0, count + 1][..], &[0, 0], &[1], &[]] {
            assert!(walk(&batches(offsets), 0).is_err(), "{offsets:?}");
        }
    }

    #[test]
    fn a_last_batch_that_is_cut_does_not_count() {
        let count = i64::from(batch::build(10, 200, 0).count);
        let records = batches(&[0, count]);
        assert_eq!(walk(&records[..records.len() - 1], 0).unwrap().0, count);
    }
}
