//! The answers of the brokers that bound ours: enough of each for a client library to find the partition's leader and
//! load it. What a broker stores is asked of its [`Topics`].

mod reply;

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use crate::wire::{Cursor, Put, RequestHeader, invalid, key};

pub(crate) use reply::{Found, Reply, Topics, Wanted};

/// What is spoken. The exact lower ends are what older client libraries look for.
const VERSIONS: [(i16, i16, i16); 8] = [
    (key::PRODUCE, 0, 8),
    (key::FETCH, 4, 11),
    (key::LIST_OFFSETS, 1, 5),
    (key::METADATA, 0, 8),
    (key::FIND_COORDINATOR, 0, 2),
    (key::API_VERSIONS, 0, 3),
    (key::CREATE_TOPICS, 2, 4),
    (key::INIT_PRODUCER_ID, 0, 1),
];

const NODE_ID: i32 = 1;
const UNSUPPORTED_VERSION: i16 = 35;
/// The code for a batch that is not what its header says.
pub(crate) const CORRUPT_MESSAGE: i16 = 2;
const COORDINATOR_NOT_AVAILABLE: i16 = 15;

/// Answers any request but Produce; an unknown one ends the connection.
pub(crate) fn answer<T: Topics>(
    reply: &mut Reply<T::Stored>,
    header: RequestHeader,
    body: &[u8],
    topics: &T,
    host: SocketAddr,
) -> io::Result<()> {
    if header.key == key::API_VERSIONS {
        api_versions(&mut reply.bytes, header.version);
        return Ok(());
    }
    let spoken =
        VERSIONS.iter().any(|(key, min, max)| *key == header.key && (*min..=*max).contains(&header.version));
    if !spoken {
        return Err(invalid("this request is not spoken"));
    }
    let mut cursor = Cursor::new(body);
    let _client_id = cursor.string()?;
    match header.key {
        key::METADATA => metadata(&mut reply.bytes, header.version, &mut cursor, topics, host),
        key::FETCH => fetch(reply, header.version, &mut cursor, topics),
        key::LIST_OFFSETS => list_offsets(&mut reply.bytes, header.version, &mut cursor, topics),
        key::CREATE_TOPICS => create_topics(&mut reply.bytes, &mut cursor),
        key::FIND_COORDINATOR => {
            find_coordinator(&mut reply.bytes, header.version);
            Ok(())
        }
        _ => {
            init_producer_id(&mut reply.bytes);
            Ok(())
        }
    }
}

fn api_versions(out: &mut Vec<u8>, version: i16) {
    let known = (0..=3).contains(&version);
    out.int16(if known { 0 } else { UNSUPPORTED_VERSION });
    let compact = known && version == 3;
    let count = VERSIONS.len();
    if compact {
        // A compact count is one more than the elements and fits a byte here.
        out.push(u8::try_from(count + 1).unwrap_or_default());
    } else {
        out.count(count);
    }
    for (key, min, max) in VERSIONS {
        out.int16(key);
        out.int16(min);
        out.int16(max);
        if compact {
            out.push(0);
        }
    }
    if known && version >= 1 {
        out.int32(0);
    }
    if compact {
        out.push(0);
    }
}

fn metadata(
    out: &mut Vec<u8>,
    version: i16,
    cursor: &mut Cursor<'_>,
    known: &impl Topics,
    host: SocketAddr,
) -> io::Result<()> {
    if version >= 3 {
        out.int32(0);
    }
    out.int32(1);
    out.int32(NODE_ID);
    out.string(&host.ip().to_string());
    out.int32(i32::from(host.port()));
    if version >= 1 {
        out.null_string();
    }
    if version >= 2 {
        out.string(known.cluster());
    }
    if version >= 1 {
        out.int32(NODE_ID);
    }
    let topics = cursor.count()?;
    out.count(topics);
    for _ in 0..topics {
        out.int16(0);
        out.string(cursor.string()?);
        if version >= 1 {
            out.int8(0);
        }
        out.int32(known.partitions());
        for index in 0..known.partitions() {
            partition_metadata(out, version, index);
        }
        if version >= 8 {
            out.int32(i32::MIN);
        }
    }
    if version >= 8 {
        out.int32(i32::MIN);
    }
    Ok(())
}

fn partition_metadata(out: &mut Vec<u8>, version: i16, index: i32) {
    out.int16(0);
    out.int32(index);
    out.int32(NODE_ID);
    if version >= 7 {
        out.int32(0);
    }
    for _replicas_and_in_sync in 0..2 {
        out.int32(1);
        out.int32(NODE_ID);
    }
    if version >= 5 {
        out.int32(0);
    }
}

/// `replica:INT32 wait_ms:INT32 len_min:INT32 len_max:INT32 isolation:INT8 [session:8] [name [index … offset …]]`
fn fetch<T: Topics>(
    reply: &mut Reply<T::Stored>,
    version: i16,
    cursor: &mut Cursor<'_>,
    known: &T,
) -> io::Result<()> {
    let _replica_id = cursor.int32()?;
    let (wait_ms, len_min, len_max) = (cursor.int32()?, cursor.int32()?, cursor.int32()?);
    let _isolation = cursor.int8()?;
    if version >= 7 {
        let _session = cursor.take(8)?;
    }
    reply.throttle();
    if version >= 7 {
        reply.bytes.int16(0);
        reply.bytes.int32(0);
    }
    let mut left = usize::try_from(len_max).unwrap_or(0);
    let (mut found_len, mut is_refused) = (0, false);
    let topics = cursor.count()?;
    reply.bytes.count(topics);
    for _ in 0..topics {
        let topic = cursor.string()?;
        let partitions = cursor.count()?;
        reply.bytes.string(topic);
        reply.bytes.count(partitions);
        for _ in 0..partitions {
            let partition = cursor.int32()?;
            if version >= 9 {
                let _leader_epoch = cursor.int32()?;
            }
            let offset = cursor.int64()?;
            if version >= 5 {
                let _log_start = cursor.int64()?;
            }
            let len_max = usize::try_from(cursor.int32()?).unwrap_or(0).min(left);
            let wanted = Wanted { topic, partition, offset, len_max };
            // A partition after the first one that has something gets nothing beyond the answer's limit.
            let found = if found_len > 0 && left == 0 { Found::nothing(0) } else { known.read(&wanted) };
            left = left.saturating_sub(found.len());
            found_len += found.len();
            is_refused |= found.error != 0;
            fetched(reply, version, &wanted, found, &known.offsets(topic, partition));
        }
    }
    if found_len < usize::try_from(len_min).unwrap_or(0) && !is_refused {
        reply.patience = u64::try_from(wait_ms).ok().map(Duration::from_millis);
    }
    Ok(())
}

fn fetched<S>(
    reply: &mut Reply<S>,
    version: i16,
    wanted: &Wanted<'_>,
    found: Found<S>,
    offsets: &Range<i64>,
) {
    let out = &mut reply.bytes;
    out.int32(wanted.partition);
    out.int16(found.error);
    out.int64(offsets.end);
    out.int64(offsets.end);
    if version >= 5 {
        out.int64(offsets.start);
    }
    out.int32(-1);
    if version >= 11 {
        out.int32(-1);
    }
    out.count(found.len());
    if let Some(base_offset) = found.base_offset {
        out.int64(base_offset);
    }
    let at = out.len();
    reply.stored.extend(found.stored.into_iter().map(|(stored, len)| (at, stored, len)));
}

fn list_offsets(
    out: &mut Vec<u8>,
    version: i16,
    cursor: &mut Cursor<'_>,
    known: &impl Topics,
) -> io::Result<()> {
    let _replica_id = cursor.int32()?;
    if version >= 2 {
        let _isolation = cursor.int8()?;
        out.int32(0);
    }
    let topics = cursor.count()?;
    out.count(topics);
    for _ in 0..topics {
        let topic = cursor.string()?;
        out.string(topic);
        let partitions = cursor.count()?;
        out.count(partitions);
        for _ in 0..partitions {
            let partition = cursor.int32()?;
            out.int32(partition);
            if version >= 4 {
                let _leader_epoch = cursor.int32()?;
            }
            let is_latest = cursor.int64()? == -1;
            let offsets = known.offsets(topic, partition);
            out.int16(0);
            out.int64(-1);
            out.int64(if is_latest { offsets.end } else { offsets.start });
            if version >= 4 {
                out.int32(0);
            }
        }
    }
    Ok(())
}

fn create_topics(out: &mut Vec<u8>, cursor: &mut Cursor<'_>) -> io::Result<()> {
    out.int32(0);
    let topics = cursor.count()?;
    out.count(topics);
    for _ in 0..topics {
        out.string(cursor.string()?);
        out.int16(0);
        out.null_string();
        let _partitions_and_replication = cursor.take(6)?;
        for _ in 0..cursor.count()? {
            let _index = cursor.int32()?;
            let replicas = cursor.count()?;
            let _nodes = cursor.take(replicas * 4)?;
        }
        for _ in 0..cursor.count()? {
            let _config = (cursor.string()?, cursor.string()?);
        }
    }
    Ok(())
}

fn find_coordinator(out: &mut Vec<u8>, version: i16) {
    if version >= 1 {
        out.int32(0);
    }
    out.int16(COORDINATOR_NOT_AVAILABLE);
    if version >= 1 {
        out.null_string();
    }
    out.int32(-1);
    out.string("");
    out.int32(-1);
}

fn init_producer_id(out: &mut Vec<u8>) {
    out.int32(0);
    out.int16(0);
    out.int64(1);
    out.int16(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_version_of_api_versions_is_answered_in_version_0() {
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        api_versions(&mut known, 0);
        api_versions(&mut unknown, 9);
        assert_eq!(unknown[..2], UNSUPPORTED_VERSION.to_be_bytes());
        assert_eq!(unknown[2..], known[2..]);
        assert_eq!(known.len(), 2 + 4 + VERSIONS.len() * 6);
    }

    #[test]
    fn version_3_of_api_versions_is_compact_with_empty_tag_sections() {
        let mut out = Vec::new();
        api_versions(&mut out, 3);
        assert_eq!(out.len(), 2 + 1 + VERSIONS.len() * 7 + 4 + 1);
        assert_eq!(usize::from(out[2]), VERSIONS.len() + 1);
    }

    /// A broker with two partitions, of which the second holds what no fetch's minimum is met by.
    struct Fixture;

    impl Topics for Fixture {
        type Stored = &'static str;

        fn cluster(&self) -> &'static str {
            "fixture"
        }

        fn partitions(&self) -> i32 {
            2
        }

        fn offsets(&self, _topic: &str, partition: i32) -> Range<i64> {
            0..i64::from(partition) * 10
        }

        fn read(&self, wanted: &Wanted<'_>) -> Found<&'static str> {
            if wanted.partition == 0 {
                return Found::nothing(0);
            }
            Found { error: 0, base_offset: None, stored: vec![("a", 70), ("b", 30)] }
        }
    }

    /// A Fetch of version 11 for one partition.
    fn fetch_body(partition: i32, wait_ms: i32, len_min: i32) -> Vec<u8> {
        let mut body = Vec::new();
        body.string("id");
        for field in [-1, wait_ms, len_min, 1000] {
            body.int32(field);
        }
        body.int8(0);
        body.bytes(&[0; 8]);
        body.int32(1);
        body.string("topic");
        body.int32(1);
        body.int32(partition);
        body.int32(-1);
        body.int64(0);
        body.int64(-1);
        body.int32(1000);
        body
    }

    fn fetch_of(body: &[u8]) -> io::Result<Reply<&'static str>> {
        let header = RequestHeader { key: key::FETCH, version: 11, correlation_id: 1 };
        let mut reply = Reply::new(1);
        answer(&mut reply, header, body, &Fixture, "127.0.0.1:9092".parse().unwrap()).map(|()| reply)
    }

    #[test]
    fn stored_stretches_are_counted_and_spliced_in_behind_their_length() {
        let reply = fetch_of(&fetch_body(1, 500, 1)).unwrap();
        let frame = reply.frame();
        assert_eq!(frame[..4], u32::try_from(frame.len() - 4 + 100).unwrap().to_be_bytes());
        let at = reply.stored[0].0;
        assert_eq!(reply.bytes[at - 4..at], 100_u32.to_be_bytes());
        assert_eq!(reply.stored, [(at, "a", 70), (at, "b", 30)]);
    }

    #[test]
    fn a_fetch_waits_for_as_many_bytes_as_it_asks_for() {
        let patience = |partition, wait_ms, len_min| {
            fetch_of(&fetch_body(partition, wait_ms, len_min)).unwrap().patience
        };
        assert_eq!(patience(0, 500, 1), Some(Duration::from_millis(500)));
        assert_eq!(patience(1, 500, 101), Some(Duration::from_millis(500)));
        assert_eq!(patience(1, 500, 100), None);
        assert_eq!(patience(0, 500, 0), None);
    }

    #[test]
    fn a_request_cut_anywhere_is_an_error_and_no_panic() {
        let body = fetch_body(0, 500, 1);
        for len in 0..body.len() {
            assert!(fetch_of(&body[..len]).is_err(), "cut at {len}");
        }
        assert!(fetch_of(&body).is_ok());
    }
}
