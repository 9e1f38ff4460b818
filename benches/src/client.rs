//! The blaster's side of the protocol: a blocking connection, and requests that are encoded ahead.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::clock;
use crate::wire::{Cursor, Put, framed, invalid, key};

/// The newest versions before the flexible encoding, which every broker still speaks.
mod version {
    pub(super) const PRODUCE: i16 = 8;
    pub(super) const FETCH: i16 = 11;
    pub(super) const LIST_OFFSETS: i16 = 5;
    pub(super) const CREATE_TOPICS: i16 = 4;
}

/// A response is refused above this length.
const RESPONSE_LEN_MAX: usize = 64 * 1024 * 1024;

/// A broker that is silent for so long has failed.
const SILENCE_MAX: Duration = Duration::from_secs(30);

const CLIENT_ID: &str = "blaster";
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const LEADER_NOT_AVAILABLE: i16 = 5;
const NOT_LEADER: i16 = 6;
const TOPIC_ALREADY_EXISTS: i16 = 36;
const TIMEOUT_MS: i32 = 30_000;
/// Kafka opens ten thousand partitions for some seconds after it has answered its first request.
const LEADS_AFTER: Duration = Duration::from_mins(1);
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// A connection that asks one thing at a time.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    response: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(broker: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(broker)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        Ok(Self { stream, response: Vec::new() })
    }

    /// The two directions, for a sender and a receiver that do not wait for each other.
    pub(crate) fn split(self) -> io::Result<(TcpStream, Responses)> {
        let reading = self.stream.try_clone()?;
        Ok((
            self.stream,
            Responses { stream: BufReader::with_capacity(64 * 1024, reading), buffer: Vec::new() },
        ))
    }

    /// Sends a request and receives its response without the correlation id.
    pub(crate) fn call(&mut self, request: &[u8]) -> io::Result<Cursor<'_>> {
        self.stream.write_all(request)?;
        receive(&mut self.stream, &mut self.response)
    }

    /// Creates the topic with these settings unless it exists.
    pub(crate) fn create_topic(
        &mut self,
        topic: &str,
        partitions: i32,
        settings: &[(&str, &str)],
    ) -> io::Result<()> {
        let mut response = self.call(&create_topic_request(topic, partitions, settings))?;
        let _throttle_and_count = response.take(8)?;
        let _name = response.string()?;
        match response.int16()? {
            0 | TOPIC_ALREADY_EXISTS => Ok(()),
            code => Err(refused("CreateTopics", code)),
        }
    }

    /// The first offset of a partition (`-2`), or the one after its last (`-1`). A broker that has just started may not lead it
    /// yet: it is asked again for a while.
    pub(crate) fn offset(&mut self, topic: &str, partition: i32, which: i64) -> io::Result<i64> {
        let until = clock::now() + LEADS_AFTER;
        loop {
            match self.offset_now(topic, partition, which)? {
                Ok(offset) => return Ok(offset),
                Err(UNKNOWN_TOPIC_OR_PARTITION | LEADER_NOT_AVAILABLE | NOT_LEADER)
                    if clock::now() < until =>
                {
                    clock::sleep(ASK_AGAIN_AFTER);
                }
                Err(code) => return Err(refused("ListOffsets", code)),
            }
        }
    }

    /// The offset, or the error code of the partition.
    fn offset_now(&mut self, topic: &str, partition: i32, which: i64) -> io::Result<Result<i64, i16>> {
        let mut request = header(key::LIST_OFFSETS, version::LIST_OFFSETS);
        request.int32(-1);
        request.int8(0);
        one_partition(&mut request, topic, partition);
        request.int32(-1);
        request.int64(which);
        let mut response = self.call(&framed(&request))?;
        let _throttle = response.int32()?;
        skip_to_partition(&mut response)?;
        let code = response.int16()?;
        if code != 0 {
            return Ok(Err(code));
        }
        let _timestamp = response.int64()?;
        response.int64().map(Ok)
    }

    /// Fetches from an offset; the records come as they were sent.
    pub(crate) fn fetch(&mut self, request: &FetchRequest<'_>, offset: i64) -> io::Result<Fetched<'_>> {
        let mut response = self.call(&fetch_request(request, offset))?;
        let _throttle = response.int32()?;
        let code = response.int16()?;
        if code != 0 {
            return Err(refused("Fetch", code));
        }
        let _session = response.int32()?;
        skip_to_partition(&mut response)?;
        let code = response.int16()?;
        if code != 0 {
            return Err(refused("Fetch", code));
        }
        let _high_watermark_stable_and_start = response.take(24)?;
        let aborted = response.count()?;
        let _aborted = response.take(aborted * 16)?;
        let _preferred_replica = response.int32()?;
        let len = usize::try_from(response.int32()?).unwrap_or(0);
        Ok(Fetched { records: response.take(len)? })
    }
}

/// What stays the same from fetch to fetch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchRequest<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) bytes_max: i32,
}

/// The records of a fetch response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fetched<'a> {
    pub(crate) records: &'a [u8],
}

/// The receiving half of a split connection.
#[derive(Debug)]
pub(crate) struct Responses {
    stream: BufReader<TcpStream>,
    buffer: Vec<u8>,
}

impl Responses {
    /// Ends the connection, which also ends a send that waits for the broker to read.
    pub(crate) fn abort(&self) {
        // A socket that is closed already needs no closing.
        let _ = self.stream.get_ref().shutdown(Shutdown::Both);
    }

    /// Receives a Produce response for one partition; an error code in it is an error.
    pub(crate) fn produced(&mut self) -> io::Result<()> {
        let mut response = receive(&mut self.stream, &mut self.buffer)?;
        skip_to_partition(&mut response)?;
        match response.int16()? {
            0 => Ok(()),
            code => Err(refused("Produce", code)),
        }
    }
}

/// A Produce request with one batch, ready to be sent again and again.
pub(crate) fn produce_request(topic: &str, partition: i32, acks: i16, batch: &[u8]) -> Vec<u8> {
    let mut request = header(key::PRODUCE, version::PRODUCE);
    request.null_string();
    request.int16(acks);
    request.int32(TIMEOUT_MS);
    one_partition(&mut request, topic, partition);
    request.count(batch.len());
    request.bytes(batch);
    framed(&request)
}

/// Turns a request of [`produce_request`] to another partition, whose index is all that changes.
///
/// It ends with `index:INT32 len:INT32 batch`.
pub(crate) fn redirect(request: &mut [u8], batch_len: usize, partition: i32) {
    let at = request.len().saturating_sub(batch_len + 8);
    for (to, from) in request.iter_mut().skip(at).zip(partition.to_be_bytes()) {
        *to = from;
    }
}

/// A Fetch request that waits for half a second if there is nothing.
pub(crate) fn fetch_request(wanted: &FetchRequest<'_>, offset: i64) -> Vec<u8> {
    let mut request = header(key::FETCH, version::FETCH);
    request.int32(-1);
    request.int32(500);
    request.int32(1);
    request.int32(wanted.bytes_max);
    request.int8(0);
    request.int32(0);
    request.int32(-1);
    one_partition(&mut request, wanted.topic, wanted.partition);
    request.int32(-1);
    request.int64(offset);
    request.int64(-1);
    request.int32(wanted.bytes_max);
    request.int32(0);
    request.string("");
    framed(&request)
}

/// A request for a topic with these settings.
pub(crate) fn create_topic_request(topic: &str, partitions: i32, settings: &[(&str, &str)]) -> Vec<u8> {
    let mut request = header(key::CREATE_TOPICS, version::CREATE_TOPICS);
    request.int32(1);
    request.string(topic);
    request.int32(partitions);
    request.int16(1);
    request.int32(0);
    request.count(settings.len());
    for (name, value) in settings {
        request.string(name);
        request.string(value);
    }
    request.int32(TIMEOUT_MS);
    request.int8(0);
    framed(&request)
}

/// All requests carry one correlation id: responses come in the order of the requests.
pub(crate) fn header(key: i16, version: i16) -> Vec<u8> {
    let mut request = Vec::new();
    request.int16(key);
    request.int16(version);
    request.int32(CORRELATION_ID);
    request.string(CLIENT_ID);
    request
}

const CORRELATION_ID: i32 = 7;

fn one_partition(request: &mut Vec<u8>, topic: &str, partition: i32) {
    request.int32(1);
    request.string(topic);
    request.int32(1);
    request.int32(partition);
}

/// Walks over `[name [index` of a response about one partition.
fn skip_to_partition(response: &mut Cursor<'_>) -> io::Result<()> {
    if response.int32()? != 1 {
        return Err(invalid("a response is not about one topic"));
    }
    let _name = response.string()?;
    if response.int32()? != 1 {
        return Err(invalid("a response is not about one partition"));
    }
    let _index = response.int32()?;
    Ok(())
}

fn receive<'a>(stream: &mut impl Read, buffer: &'a mut Vec<u8>) -> io::Result<Cursor<'a>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = usize::try_from(i32::from_be_bytes(len)).unwrap_or(usize::MAX);
    if len > RESPONSE_LEN_MAX {
        return Err(invalid("a response is longer than any can be"));
    }
    // Grows to the longest response once; after that nothing is cleared or allocated.
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    let response = buffer.get_mut(..len).unwrap_or_default();
    stream.read_exact(response)?;
    let mut cursor = Cursor::new(response);
    if cursor.int32()? != CORRELATION_ID {
        return Err(invalid("a response carries another correlation id"));
    }
    Ok(cursor)
}

pub(crate) fn refused(what: &str, code: i16) -> io::Error {
    io::Error::other(format!("the broker refused {what} with error {code}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_that_claims_2_gib_is_refused_before_anything_is_reserved() {
        let mut buffer = Vec::new();
        assert!(receive(&mut &i32::MAX.to_be_bytes()[..], &mut buffer).is_err());
        assert_eq!(buffer.capacity(), 0);
    }

    #[test]
    fn a_response_to_another_request_is_refused() {
        let response = framed(&9_i32.to_be_bytes());
        assert!(receive(&mut &response[..], &mut Vec::new()).is_err());
    }

    #[test]
    fn a_produce_request_ends_with_its_batch_and_begins_with_its_size() {
        let request = produce_request("t", 3, -1, b"the batch");
        assert!(request.ends_with(b"the batch"));
        assert_eq!(request[..4], u32::try_from(request.len() - 4).unwrap().to_be_bytes());
    }

    #[test]
    fn a_redirected_request_is_the_one_that_would_have_been_made_for_the_other_partition() {
        for batch in [&b"the batch"[..], b""] {
            let mut request = produce_request("t", 3, -1, batch);
            for partition in [0, 15_999, 3] {
                redirect(&mut request, batch.len(), partition);
                assert_eq!(request, produce_request("t", partition, -1, batch));
            }
        }
    }
}
