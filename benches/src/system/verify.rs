//! After each case: is everything in the log that was acknowledged, and nothing else?

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::load::Load;
use crate::batch::Header;
use crate::client::{Connection, FetchRequest};
use crate::clock;

/// What a consumer found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Verified {
    /// Records that were acknowledged; `None` where nothing was.
    pub(super) acknowledged: Option<u64>,
    /// Records over all partitions: where the logs end.
    pub(super) end: u64,
    /// Records that retention had deleted when the reading began, and when it was over.
    pub(super) start_before: u64,
    pub(super) start_after: u64,
    pub(super) read: u64,
    pub(super) gaps: u64,
    /// Whether the reading came to the end in its time.
    pub(super) is_complete: bool,
}

impl Verified {
    /// What is wrong.
    pub(super) fn fault(&self) -> Option<String> {
        let Self { acknowledged, end, start_before, start_after, read, gaps, is_complete } = self;
        match acknowledged {
            Some(acknowledged) if acknowledged != end => {
                let unsure =
                    if *is_complete { "" } else { ", or so it says: the reading did not come so far" };
                return Some(format!(
                    "{acknowledged} records were acknowledged, the log ends after {end}{unsure}"
                ));
            }
            _ => {}
        }
        if *gaps > 0 {
            return Some(format!("{gaps} offsets did not follow the one before"));
        }
        let (most, least) = (end.saturating_sub(*start_before), end.saturating_sub(*start_after));
        let whole = (least..=most).contains(read);
        if *is_complete && !whole {
            return Some(format!("{read} records were read, {least} to {most} are in the log"));
        }
        None
    }
}

/// Reads a topic from its start, with librdkafka if there is a program for it.
pub(super) fn verify(load: &Load<'_>, acknowledged: Option<u64>) -> io::Result<Verified> {
    let start_before = offsets(load, EARLIEST)?;
    let told = offsets(load, LATEST)?;
    // A side may say that its log ends earlier than it does: what was acknowledged is looked for in any case.
    let there = acknowledged.unwrap_or(told).max(told).saturating_sub(start_before);
    let (read, gaps, is_complete) = if there == 0 {
        (0, 0, true)
    } else if load.programs.load.is_some() {
        let seen = load.consume(there, &[])?;
        (seen.outcome.records_total, seen.gaps, seen.errors == 0)
    } else {
        walk(load)?
    };
    let start_after = offsets(load, EARLIEST)?;
    let end = told.max(start_before + read);
    Ok(Verified { acknowledged, end, start_before, start_after, read, gaps, is_complete })
}

const EARLIEST: i64 = -2;
const LATEST: i64 = -1;

/// The sum over all partitions.
fn offsets(load: &Load<'_>, which: i64) -> io::Result<u64> {
    let mut connection = Connection::open(load.address)?;
    let mut sum = 0;
    for partition in 0..load.partitions {
        sum += u64::try_from(connection.offset(load.topic, partition, which)?).unwrap_or_default();
    }
    Ok(sum)
}

/// Walks the headers of all batches: how many records, how many gaps, and whether all was read in time.
fn walk(load: &Load<'_>) -> io::Result<(u64, u64, bool)> {
    let limit = Duration::try_from_secs_f64(load.seconds).unwrap_or_default();
    let start = clock::now();
    let (mut read, mut gaps) = (0, 0);
    for partition in 0..load.partitions {
        let mut connection = Connection::open(load.address)?;
        let first = connection.offset(load.topic, partition, EARLIEST)?;
        let end = connection.offset(load.topic, partition, LATEST)?;
        let request = FetchRequest { topic: load.topic, partition, bytes_max: FETCH_BYTES };
        let mut next = first;
        while next < end {
            if start.elapsed() > limit {
                return Ok((read, gaps, false));
            }
            let (after, records, missing) = follow(connection.fetch(&request, next)?.records, next);
            if after == next {
                return Err(io::Error::other("a fetch below the end brought no whole batch"));
            }
            (next, read, gaps) = (after, read + records, gaps + missing);
        }
    }
    Ok((read, gaps, true))
}

/// The offset after the last whole batch, the records up to it from `from` on, and the batches that did not follow the one before.
fn follow(mut records: &[u8], from: i64) -> (i64, u64, u64) {
    let (mut next, mut count, mut gaps) = (from, 0, 0);
    while let Ok(header) = Header::parse(records)
        && let Some((_, after)) = records.split_at_checked(header.len)
    {
        let is_first = next == from;
        let follows = header.base_offset == next || (is_first && header.base_offset < next);
        gaps += u64::from(!follows);
        let begin = header.base_offset.max(next);
        count += u64::try_from(header.next_offset().saturating_sub(begin)).unwrap_or_default();
        next = header.next_offset().max(next);
        records = after;
    }
    (next, count, gaps)
}

/// Whoever sends to a topic only needs to know where it ends.
pub(super) fn end(address: SocketAddr, topic: &str) -> io::Result<u64> {
    let offset = Connection::open(address)?.offset(topic, 0, LATEST)?;
    Ok(u64::try_from(offset).unwrap_or_default())
}

const FETCH_BYTES: i32 = 1_048_576;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch;

    const WELL: Verified = Verified {
        acknowledged: Some(100),
        end: 100,
        start_before: 20,
        start_after: 30,
        read: 75,
        gaps: 0,
        is_complete: true,
    };

    #[track_caller]
    fn check(verified: &Verified, expect: Option<&str>) {
        let fault = verified.fault();
        match expect {
            None => assert_eq!(fault, None),
            Some(text) => assert!(fault.as_ref().is_some_and(|fault| fault.contains(text)), "{fault:?}"),
        }
    }

    #[test]
    fn what_retention_deletes_meanwhile_is_no_fault_and_a_loss_is() {
        check(&WELL, None);
        check(&Verified { read: 69, ..WELL }, Some("69 records were read, 70 to 80"));
        check(&Verified { read: 81, ..WELL }, Some("81 records"));
        check(&Verified { read: 10, is_complete: false, ..WELL }, None);
        check(&Verified { acknowledged: Some(101), ..WELL }, Some("101 records were acknowledged"));
        check(&Verified { acknowledged: Some(99), ..WELL }, Some("ends after 100"));
        check(&Verified { acknowledged: Some(99), is_complete: false, ..WELL }, Some("or so it says"));
        check(&Verified { acknowledged: None, ..WELL }, None);
        check(&Verified { gaps: 1, is_complete: false, ..WELL }, Some("1 offsets"));
    }

    #[test]
    fn headers_are_followed_over_gaps_and_into_the_middle_of_a_batch() {
        let one = batch::build(10, 200, 0);
        let records = |offsets: &[i64]| {
            let mut records = Vec::new();
            for offset in offsets {
                let mut bytes = one.bytes.clone();
                bytes[..8].copy_from_slice(&offset.to_be_bytes());
                records.extend(bytes);
            }
            records
        };
        let count = i64::from(one.count);
        let whole = u64::try_from(2 * count).unwrap();
        assert_eq!(follow(&records(&[0, count]), 0), (2 * count, whole, 0));
        assert_eq!(follow(&records(&[0, count]), 1), (2 * count, whole - 1, 0));
        assert_eq!(follow(&records(&[0, count + 1]), 0), (2 * count + 1, whole, 1));
        assert_eq!(follow(&records(&[0])[..70], 0), (0, 0, 0));
    }
}
