//! What the driver asks a broker besides records: whether it is ready, and with which settings it runs.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::client::{Connection, header, refused};
use crate::clock;
use crate::wire::{Cursor, Put, framed, key};

/// A broker, or its topic, must be ready by then.
const READY_MAX: Duration = Duration::from_mins(1);

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until Metadata names a broker.
pub(super) fn wait_until_ready(address: SocketAddr) -> io::Result<()> {
    wait(|| {
        let mut connection = Connection::open(address)?;
        let (brokers, _) = metadata(&mut connection, None)?;
        Ok(brokers > 0)
    })
}

/// Waits until every partition of a topic has a leader.
pub(super) fn wait_for_topic(address: SocketAddr, topic: &str, partitions: i32) -> io::Result<()> {
    wait(|| {
        let mut connection = Connection::open(address)?;
        let (_, led) = metadata(&mut connection, Some(topic))?;
        Ok(led == partitions)
    })
}

/// Asks until the answer is yes. A broker that is starting may also refuse, or close the connection.
fn wait(mut is_ready: impl FnMut() -> io::Result<bool>) -> io::Result<()> {
    let start = clock::now();
    loop {
        let late = start.elapsed() > READY_MAX;
        match is_ready() {
            Ok(true) => return Ok(()),
            Ok(false) if late => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not get ready"));
            }
            Err(error) if late => return Err(error),
            _ => clock::sleep(PAUSE),
        }
    }
}

/// The number of brokers, and of the topic's partitions that have a leader.
fn metadata(connection: &mut Connection, topic: Option<&str>) -> io::Result<(usize, i32)> {
    let mut request = header(key::METADATA, METADATA_VERSION);
    request.count(topic.iter().len());
    if let Some(name) = topic {
        request.string(name);
    }
    for _auto_create_and_operations in 0..3 {
        request.int8(0);
    }
    parse_metadata(&mut connection.call(&framed(&request))?)
}

/// ```text
/// throttle:INT32 [id:INT32 host:STRING port:INT32 rack:STRING] cluster:STRING controller:INT32
/// [error:INT16 name:STRING internal:INT8
///  [error:INT16 index:INT32 leader:INT32 epoch:INT32 [replica:INT32] [in_sync:INT32] [offline:INT32]] operations:INT32] ...
/// ```
fn parse_metadata(response: &mut Cursor<'_>) -> io::Result<(usize, i32)> {
    let _throttle = response.int32()?;
    let brokers = response.count()?;
    for _ in 0..brokers {
        let _id = response.int32()?;
        let _host = response.string()?;
        let _port = response.int32()?;
        let _rack = response.string()?;
    }
    let _cluster = response.string()?;
    let _controller = response.int32()?;
    let mut led = 0;
    for _ in 0..response.count()? {
        let _error = response.int16()?;
        let _name = response.string()?;
        let _internal = response.int8()?;
        for _ in 0..response.count()? {
            let (error, _index, leader) = (response.int16()?, response.int32()?, response.int32()?);
            let _epoch = response.int32()?;
            for _replicas_in_sync_offline in 0..3 {
                let nodes = response.count()?;
                let _nodes = response.take(nodes * 4)?;
            }
            led += i32::from(error == 0 && leader >= 0);
        }
        let _operations = response.int32()?;
    }
    Ok((brokers, led))
}

/// Whose settings are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Resource<'a> {
    Topic(&'a str),
    /// The broker with the node id 1, which all sides have.
    Broker,
}

/// The settings with which a broker or a topic runs, as the broker tells them.
pub(super) fn settings(address: SocketAddr, of: Resource<'_>) -> io::Result<Vec<(String, String)>> {
    let (kind, name) = match of {
        Resource::Topic(name) => (2, name),
        Resource::Broker => (4, "1"),
    };
    let mut request = header(DESCRIBE_CONFIGS, DESCRIBE_CONFIGS_VERSION);
    request.count(1);
    request.int8(kind);
    request.string(name);
    request.int32(-1);
    request.int8(0);
    let mut connection = Connection::open(address)?;
    parse_settings(&mut connection.call(&framed(&request))?)
}

/// ```text
/// throttle:INT32 [error:INT16 message:STRING kind:INT8 name:STRING
///  [name:STRING value:STRING read_only:INT8 source:INT8 sensitive:INT8 [name:STRING value:STRING source:INT8]]]
/// ```
fn parse_settings(response: &mut Cursor<'_>) -> io::Result<Vec<(String, String)>> {
    let _throttle = response.int32()?;
    let mut settings = Vec::new();
    for _ in 0..response.count()? {
        let code = response.int16()?;
        let _message = response.string()?;
        let _kind = response.int8()?;
        let _name = response.string()?;
        if code != 0 {
            return Err(refused("DescribeConfigs", code));
        }
        for _ in 0..response.count()? {
            let (name, value) = (response.string()?, response.string()?);
            let _read_only_source_sensitive = response.take(3)?;
            for _ in 0..response.count()? {
                let _synonym = (response.string()?, response.string()?, response.int8()?);
            }
            settings.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok(settings)
}

const METADATA_VERSION: i16 = 8;
const DESCRIBE_CONFIGS: i16 = 32;
const DESCRIBE_CONFIGS_VERSION: i16 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_with_a_leader_are_counted_and_others_are_not() {
        let mut response = Vec::new();
        response.int32(0);
        response.count(1);
        response.int32(1);
        response.string("host");
        response.int32(9092);
        response.null_string();
        response.string("cluster");
        response.int32(1);
        response.count(1);
        response.int16(0);
        response.string("topic");
        response.int8(0);
        let partitions = [(0, 1), (5, -1), (0, 1)];
        response.count(partitions.len());
        for (error, leader) in partitions {
            response.int16(error);
            response.int32(7);
            response.int32(leader);
            response.int32(0);
            response.count(1);
            response.int32(1);
            response.count(0);
            response.count(0);
        }
        response.int32(i32::MIN);
        assert_eq!(parse_metadata(&mut Cursor::new(&response)).unwrap(), (1, 2));
        for len in 0..response.len() {
            assert!(parse_metadata(&mut Cursor::new(&response[..len])).is_err(), "cut at {len}");
        }
    }

    #[test]
    fn settings_are_read_past_their_synonyms() {
        let mut response = Vec::new();
        response.int32(0);
        response.count(1);
        response.int16(0);
        response.null_string();
        response.int8(2);
        response.string("topic");
        response.count(2);
        for (name, value) in [("retention.bytes", "4"), ("flush.messages", "1")] {
            response.string(name);
            response.string(value);
            response.bytes(&[0, 1, 0]);
            response.count(1);
            response.string("log.something");
            response.null_string();
            response.int8(5);
        }
        let seen = parse_settings(&mut Cursor::new(&response)).unwrap();
        assert_eq!(seen, [("retention.bytes".into(), "4".into()), ("flush.messages".into(), "1".into())]);
    }
}
