//! From the socket's bytes to a batch's header, without I/O.

use std::hint::black_box;
use std::io;

use bytes::BufMut;
use kolumn_broker::connection::{Connection, ConnectionLimits};
use kolumn_kafka_wire::messages::Request;
use kolumn_kafka_wire::{Records, RequestFrame, records};

use super::other;
use crate::clock;
use crate::wire::{invalid, key};

pub(super) fn run(request: &[u8], requests: u32) -> io::Result<()> {
    let now = clock::now();
    let mut engine: Connection<()> = Connection::new(ConnectionLimits::default(), served, now);
    for _ in 0..requests {
        let mut rest = request;
        while !rest.is_empty() {
            let want = engine.receive_want().ok_or_else(|| invalid("the engine wants no bytes"))?;
            let (piece, after) = rest.split_at(want.min(rest.len()));
            engine.receive_buf(piece.len()).put_slice(piece);
            engine.received(now).map_err(other)?;
            rest = after;
        }
        let received =
            engine.next_request().map_err(other)?.ok_or_else(|| invalid("a request is not whole"))?;
        let decoded = RequestFrame::decode_shared(&received.frame).map_err(other)?;
        let Request::Produce(produce) = decoded.body else {
            return Err(invalid("a Produce request is another"));
        };
        for topic in &produce.topic_data {
            for partition in &topic.partition_data {
                let sent = partition.records.and_then(Records::into_bytes).unwrap_or_default();
                for batch in records::batches(&sent) {
                    black_box(batch.map_err(other)?.record_count());
                }
            }
        }
        engine.skip(received.slot);
    }
    Ok(())
}

fn served(api_key: i16, _api_version: i16) -> Option<usize> {
    (api_key == key::PRODUCE).then_some(usize::MAX)
}
