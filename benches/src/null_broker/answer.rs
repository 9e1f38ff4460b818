//! The answers: enough of each for a client library to find the partition's leader and load it.

use std::io;
use std::net::SocketAddr;

use super::Shared;
use crate::wire::{Cursor, Put, RequestHeader, invalid, key};

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

/// Offsets end here: a fetch never reaches it, and a client that asks for the latest offset gets it.
const HIGH_WATERMARK: i64 = 1 << 40;

const NODE_ID: i32 = 1;
const UNSUPPORTED_VERSION: i16 = 35;
const COORDINATOR_NOT_AVAILABLE: i16 = 15;

/// A response that is being built.
pub(super) struct Reply {
    bytes: Vec<u8>,
    /// Where the shared batch, without its first 8 bytes, is to be spliced in.
    pub(super) batches: Vec<usize>,
}

impl Reply {
    pub(super) fn new(correlation_id: i32) -> Self {
        Self { bytes: correlation_id.to_be_bytes().to_vec(), batches: Vec::new() }
    }

    /// The frame so far, its size counting what is spliced in.
    pub(super) fn frame(&self, spliced_len: usize) -> Vec<u8> {
        let mut frame = Vec::with_capacity(self.bytes.len() + 4);
        frame.count(self.bytes.len() + self.batches.len() * spliced_len);
        frame.bytes(&self.bytes);
        frame
    }

    pub(super) fn count(&mut self, count: i32) {
        self.bytes.int32(count);
    }

    pub(super) fn topic(&mut self, name: &str, partitions: i32) {
        self.bytes.string(name);
        self.bytes.int32(partitions);
    }

    pub(super) fn throttle(&mut self) {
        self.bytes.int32(0);
    }

    /// One partition of a Produce response.
    pub(super) fn produced(&mut self, version: i16, index: i32, error: i16, base_offset: i64) {
        self.bytes.int32(index);
        self.bytes.int16(error);
        self.bytes.int64(base_offset);
        self.bytes.int64(-1); // the time of appending, if the broker sets it
        if version >= 5 {
            self.bytes.int64(0); // the log's start
        }
        if version >= 8 {
            self.bytes.int32(0); // errors of records
            self.bytes.null_string();
        }
    }
}

/// Answers any request but Produce; an unknown one ends the connection.
pub(super) fn answer(
    reply: &mut Reply,
    header: RequestHeader,
    body: &[u8],
    shared: &Shared,
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
        key::METADATA => metadata(&mut reply.bytes, header.version, &mut cursor, shared, host),
        key::FETCH => fetch(reply, header.version, &mut cursor, shared),
        key::LIST_OFFSETS => list_offsets(&mut reply.bytes, header.version, &mut cursor),
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
    shared: &Shared,
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
        out.string("null-broker");
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
        out.int32(shared.partitions);
        for index in 0..shared.partitions {
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

/// One whole batch a partition, whatever limits the request sets, as brokers do for the first one.
fn fetch(reply: &mut Reply, version: i16, cursor: &mut Cursor<'_>, shared: &Shared) -> io::Result<()> {
    let _replica_id_waits_limits_isolation = cursor.take(17)?;
    if version >= 7 {
        let _session = cursor.take(8)?;
    }
    reply.throttle();
    if version >= 7 {
        reply.bytes.int16(0);
        reply.bytes.int32(0);
    }
    let topics = cursor.count()?;
    reply.bytes.count(topics);
    for _ in 0..topics {
        let name = cursor.string()?;
        let partitions = cursor.count()?;
        reply.bytes.string(name);
        reply.bytes.count(partitions);
        for _ in 0..partitions {
            let index = cursor.int32()?;
            if version >= 9 {
                let _leader_epoch = cursor.int32()?;
            }
            let offset = cursor.int64()?;
            let _log_start_and_limit = cursor.take(if version >= 5 { 12 } else { 4 })?;
            fetched(reply, version, index, offset, shared);
        }
    }
    Ok(())
}

fn fetched(reply: &mut Reply, version: i16, index: i32, offset: i64, shared: &Shared) {
    let out = &mut reply.bytes;
    out.int32(index);
    out.int16(0);
    out.int64(HIGH_WATERMARK);
    out.int64(HIGH_WATERMARK);
    if version >= 5 {
        out.int64(0);
    }
    out.int32(-1);
    if version >= 11 {
        out.int32(-1);
    }
    let reachable = (0..HIGH_WATERMARK).contains(&offset);
    if !reachable {
        out.int32(0);
        return;
    }
    out.count(shared.batch.bytes.len());
    out.int64(offset - offset % i64::from(shared.batch.count));
    reply.batches.push(reply.bytes.len());
}

fn list_offsets(out: &mut Vec<u8>, version: i16, cursor: &mut Cursor<'_>) -> io::Result<()> {
    let _replica_id = cursor.int32()?;
    if version >= 2 {
        let _isolation = cursor.int8()?;
        out.int32(0);
    }
    let topics = cursor.count()?;
    out.count(topics);
    for _ in 0..topics {
        out.string(cursor.string()?);
        let partitions = cursor.count()?;
        out.count(partitions);
        for _ in 0..partitions {
            out.int32(cursor.int32()?);
            if version >= 4 {
                let _leader_epoch = cursor.int32()?;
            }
            let latest = cursor.int64()? == -1;
            out.int16(0);
            out.int64(-1);
            out.int64(if latest { HIGH_WATERMARK } else { 0 });
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

    #[test]
    fn a_fetch_is_answered_with_the_batch_that_covers_its_offset() {
        let batch = crate::batch::build(100, 2000, 0);
        let count = i64::from(batch.count);
        let shared = Shared { batch, partitions: 1, taken: 0.into() };
        let mut reply = Reply::new(5);
        fetched(&mut reply, 11, 0, 3 * count + 2, &shared);
        let at = reply.batches[0];
        assert_eq!(reply.bytes[at - 8..at], (3 * count).to_be_bytes());
        let mut beyond = Reply::new(5);
        fetched(&mut beyond, 11, 0, HIGH_WATERMARK, &shared);
        assert!(beyond.batches.is_empty());
    }

    #[test]
    fn a_request_cut_anywhere_is_an_error_and_no_panic() {
        let batch = crate::batch::build(10, 200, 0);
        let shared = Shared { batch, partitions: 2, taken: 0.into() };
        let host = "127.0.0.1:9092".parse().unwrap();
        let mut body = Vec::new();
        body.string("id");
        body.bytes(&[0; 17]);
        body.bytes(&[0; 8]);
        body.int32(1);
        body.string("topic");
        body.int32(1);
        body.bytes(&[0; 28]);
        let header = RequestHeader { key: key::FETCH, version: 11, correlation_id: 1 };
        for len in 0..body.len() {
            let answered = answer(&mut Reply::new(1), header, &body[..len], &shared, host);
            assert!(answered.is_err(), "cut at {len}");
        }
        assert!(answer(&mut Reply::new(1), header, &body, &shared, host).is_ok());
    }
}
