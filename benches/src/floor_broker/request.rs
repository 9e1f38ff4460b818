//! One request: what it does to the log and what is answered.

use std::io;
use std::net::SocketAddr;

use super::log::{Log, Place};
use crate::answer;
use crate::wire::{Cursor, RequestHeader, invalid, key};

pub(super) type Reply = answer::Reply<Place>;

/// Handles a request; `None` if it wants no answer. What it appends is durable after the log's next commit.
pub(super) fn handle(frame: &[u8], log: &mut Log, host: SocketAddr) -> io::Result<Option<Reply>> {
    let mut cursor = Cursor::new(frame);
    let header = RequestHeader::parse(&mut cursor)?;
    if header.key == key::PRODUCE {
        return produce(header, cursor, log);
    }
    let mut reply = Reply::new(header.correlation_id);
    answer::answer(&mut reply, header, cursor.rest(), &*log, host)?;
    Ok(Some(reply))
}

/// `client_id transactional_id acks:INT16 timeout:INT32 [name:STRING [index:INT32 records:BYTES]]`
fn produce(header: RequestHeader, mut cursor: Cursor<'_>, log: &mut Log) -> io::Result<Option<Reply>> {
    if !(3..=8).contains(&header.version) {
        return Err(invalid("this version of Produce is not spoken"));
    }
    let _client_and_transaction = (cursor.string()?, cursor.string()?);
    let (acks, _timeout) = (cursor.int16()?, cursor.int32()?);
    let topics = cursor.int32()?;
    let mut reply = Reply::new(header.correlation_id);
    reply.count(topics);
    for _ in 0..topics {
        let name = cursor.string()?;
        let partitions = cursor.int32()?;
        reply.topic(name, partitions);
        for _ in 0..partitions {
            let index = cursor.int32()?;
            let len = usize::try_from(cursor.int32()?).unwrap_or(0);
            let appended = log.append(name, index, cursor.take(len)?)?;
            let (error, base_offset) = appended.map_or_else(|code| (code, -1), |offset| (0, offset));
            reply.produced(header.version, index, error, base_offset);
        }
    }
    reply.throttle();
    Ok((acks != 0).then_some(reply))
}
