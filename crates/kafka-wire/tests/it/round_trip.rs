//! Random messages in every version: what is decoded is what was there, and is encoded to the same bytes.

use bytes::Bytes;
use kolumn_kafka_wire::messages::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, DefaultPrincipalData, EndTxnMarker,
    KRaftVersionRecord, LeaderChangeMessage, Request, RequestHeader, Response, ResponseHeader,
    SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord,
};
use kolumn_kafka_wire::{ApiKey, Encoded, Message, Part, Reader};

use crate::schema::{self, Kind, Random, Schema};

const ROUNDS: u64 = 12;

#[test]
fn every_message_round_trips_in_every_version() {
    let mut seen = 0;
    for schema in schema::all() {
        for version in schema.versions() {
            for seed in 0..ROUNDS {
                let bytes = schema.random_bytes(version, &mut Random::new(seed), true);
                check(&schema, version, &Bytes::from(bytes));
            }
            seen += 1;
        }
    }
    assert!(seen > 300, "only {seen} versions were seen");
}

#[test]
fn every_proper_prefix_of_a_message_is_an_error() {
    for schema in schema::all() {
        for version in schema.versions() {
            let bytes = schema.random_bytes(version, &mut Random::new(99), true);
            for len in 0..bytes.len() {
                assert!(!decodes(&schema, version, &bytes[..len]), "{} v{version} cut at {len}", schema.name);
            }
        }
    }
}

#[test]
fn damaged_messages_decode_to_something_that_can_be_encoded_or_are_refused() {
    for schema in schema::all() {
        for version in schema.versions() {
            let mut random = Random::new(7);
            let mut bytes = schema.random_bytes(version, &mut random, true);
            for _ in 0..60.min(bytes.len()) {
                let position = random.below(bytes.len());
                let before = bytes[position];
                bytes[position] ^= 1 << random.below(8);
                let damaged = Bytes::from(bytes.clone());
                if decodes(&schema, version, &damaged) {
                    let once = reencode(&schema, version, &damaged);
                    assert_eq!(reencode(&schema, version, &once), once, "{} v{version}", schema.name);
                }
                bytes[position] = before;
            }
        }
    }
}

#[test]
fn every_key_of_the_schemas_is_known() {
    let mut keys: Vec<_> = schema::all()
        .iter()
        .filter_map(|schema| match schema.kind {
            Kind::Request(key) => {
                assert_eq!(
                    key.versions().unwrap().iter().collect::<Vec<_>>(),
                    schema.versions().collect::<Vec<_>>()
                );
                schema.versions().for_each(|v| assert_eq!(key.is_flexible(v), schema.is_flexible(v)));
                Some(key)
            }
            _ => None,
        })
        .collect();
    keys.sort();
    assert_eq!(keys, ApiKey::all().collect::<Vec<_>>());
}

/// Calls a generic function for the message type that has the schema's name.
macro_rules! with_message {
    ($schema:expr, $function:ident $arguments:tt) => {
        with_message!(@ $schema, $function $arguments
            ConsumerProtocolAssignment ConsumerProtocolSubscription DefaultPrincipalData EndTxnMarker
            KRaftVersionRecord LeaderChangeMessage RequestHeader ResponseHeader
            SnapshotFooterRecord SnapshotHeaderRecord VotersRecord)
    };
    (@type EndTxnMarker) => { EndTxnMarker };
    (@type $message:ident) => { $message<'_> };
    (@ $schema:expr, $function:ident $arguments:tt $($message:ident)*) => {
        match $schema.name.as_str() {
            $(stringify!($message) => $function::<with_message!(@type $message)> $arguments,)*
            unknown => panic!("no message `{unknown}`"),
        }
    };
}

fn check(schema: &Schema, version: i16, bytes: &Bytes) {
    let name = &schema.name;
    assert_eq!(reencode(schema, version, bytes), bytes, "{name} v{version}");
    match schema.kind {
        Kind::Request(key) => {
            let borrowed = Request::read(key, version, &mut Reader::new(bytes)).unwrap();
            let shared = Request::read(key, version, &mut Reader::shared(bytes)).unwrap();
            assert_eq!(borrowed, shared);
            let owned = shared.clone().into_owned();
            assert_eq!(owned, borrowed);
            assert_eq!(format!("{owned:?}"), format!("{borrowed:?}"));
            for message in [borrowed, shared, owned] {
                let encoded = Encoded::build(|writer| message.write(writer, version)).unwrap();
                assert_eq!(join(encoded), bytes, "{name} v{version}");
            }
        }
        Kind::Response(key) => {
            let borrowed = Response::read(key, version, &mut Reader::new(bytes)).unwrap();
            let shared = Response::read(key, version, &mut Reader::shared(bytes)).unwrap();
            assert_eq!(borrowed, shared);
            let owned = shared.clone().into_owned();
            assert_eq!(owned, borrowed);
            for message in [borrowed, shared, owned] {
                let encoded = Encoded::build(|writer| message.write(writer, version)).unwrap();
                assert_eq!(join(encoded), bytes, "{name} v{version}");
            }
        }
        Kind::Other => with_message!(schema, check_other(version, bytes)),
    }
}

fn check_other<'a, M: Message<'a> + PartialEq + std::fmt::Debug>(version: i16, bytes: &'a Bytes) {
    let borrowed = M::decode(bytes, version).unwrap();
    let shared = M::decode_shared(bytes, version).unwrap();
    assert_eq!(borrowed, shared);
    assert_eq!(shared.encoded_len(version).unwrap(), bytes.len());
    assert_eq!(join(shared.encode(version).unwrap()), bytes);
    let _ = shared.into_owned();
}

fn decodes(schema: &Schema, version: i16, bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    let read = match schema.kind {
        Kind::Request(key) => Request::read(key, version, &mut reader).map(|_| ()),
        Kind::Response(key) => Response::read(key, version, &mut reader).map(|_| ()),
        Kind::Other => return with_message!(schema, decodes_other(version, bytes)),
    };
    read.is_ok() && reader.finish().is_ok()
}

fn decodes_other<'a, M: Message<'a>>(version: i16, bytes: &'a [u8]) -> bool {
    M::decode(bytes, version).is_ok()
}

fn reencode(schema: &Schema, version: i16, bytes: &Bytes) -> Bytes {
    let mut reader = Reader::new(bytes);
    let result = match schema.kind {
        Kind::Request(key) => {
            let message = Request::read(key, version, &mut reader).unwrap();
            Encoded::build_contiguous(|writer| message.write(writer, version))
        }
        Kind::Response(key) => {
            let message = Response::read(key, version, &mut reader).unwrap();
            Encoded::build_contiguous(|writer| message.write(writer, version))
        }
        Kind::Other => return with_message!(schema, reencode_other(version, bytes)),
    };
    reader.finish().unwrap();
    result.unwrap()
}

fn reencode_other<'a, M: Message<'a>>(version: i16, bytes: &'a Bytes) -> Bytes {
    M::decode(bytes, version).unwrap().encode_to_bytes(version).unwrap()
}

fn join(encoded: Encoded) -> Bytes {
    let len = encoded.len();
    let parts = encoded.into_iter().map(|part| match part {
        Part::Bytes(bytes) => bytes,
        Part::Deferred { .. } => panic!("decoding defers nothing"),
    });
    let bytes: Bytes = parts.flatten().collect();
    assert_eq!(bytes.len(), len);
    bytes
}
