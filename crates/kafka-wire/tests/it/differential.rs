//! Another codec, `kafka-protocol`, reads what this one writes and the other way round.

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey as TheirKey, RequestKind, ResponseKind};
use kolumn_kafka_wire::messages::{Request, Response};
use kolumn_kafka_wire::{ApiKey, Encoded, Reader};

use crate::schema::{self, Kind, Random};

const ROUNDS: u64 = 8;

#[test]
fn requests_mean_the_same_to_another_codec() {
    let mut gaps = BTreeSet::new();
    let mut seen = 0;
    for_each_common_version(|key, theirs, version, request, bytes| {
        if request {
            seen += 1;
            if !check_request(key, theirs, version, bytes) {
                gaps.insert((key, version));
            }
        }
    });
    assert!(seen > 1000, "only {seen} requests were compared");
    // its table of APIs lists these versions, its messages do not have them
    let expected = [(ApiKey::OFFSET_COMMIT, 10), (ApiKey::OFFSET_FETCH, 10), (ApiKey::INIT_PRODUCER_ID, 6)];
    assert_eq!(Vec::from_iter(gaps), expected);
}

#[test]
fn responses_mean_the_same_to_another_codec() {
    let mut gaps = BTreeSet::new();
    let mut seen = 0;
    for_each_common_version(|key, theirs, version, request, bytes| {
        if !request {
            seen += 1;
            if !check_response(key, theirs, version, bytes) {
                gaps.insert((key, version));
            }
        }
    });
    assert!(seen > 1000, "only {seen} responses were compared");
    assert_eq!(Vec::from_iter(gaps), []);
}

fn for_each_common_version(mut check: impl FnMut(ApiKey, TheirKey, i16, bool, &Bytes)) {
    for schema in schema::all() {
        let (key, request) = match schema.kind {
            Kind::Request(key) => (key, true),
            Kind::Response(key) => (key, false),
            Kind::Other => continue,
        };
        let Ok(theirs) = TheirKey::try_from(key.code()) else { continue };
        let common = theirs.valid_versions();
        for version in schema.versions().filter(|version| (common.min..=common.max).contains(version)) {
            for seed in 0..ROUNDS {
                let bytes = schema.random_bytes(version, &mut Random::new(seed), false);
                check(key, theirs, version, request, &Bytes::from(bytes));
            }
        }
    }
}

/// Whether the other codec has this version.
fn check_request(key: ApiKey, theirs: TheirKey, version: i16, bytes: &Bytes) -> bool {
    let ours = Request::read(key, version, &mut Reader::new(bytes)).unwrap();
    let mut unread = Encoded::build_contiguous(|writer| ours.write(writer, version)).unwrap();
    let read = match RequestKind::decode(theirs, &mut unread, version) {
        Ok(read) => read,
        Err(error) if format!("{error:#}").contains("version not supported") => return false,
        Err(error) => panic!("{key} request v{version}: {error:#}: {ours:?}"),
    };
    assert!(unread.is_empty(), "{key} request v{version}: {} bytes left", unread.len());
    let mut back = BytesMut::new();
    read.encode(&mut back, version).unwrap_or_else(|error| panic!("{key} request v{version}: {error:#}"));
    let again = Request::read(key, version, &mut Reader::new(&back)).unwrap();
    assert_eq!(again, ours, "{key} request v{version}");
    true
}

/// Whether the other codec has this version.
fn check_response(key: ApiKey, theirs: TheirKey, version: i16, bytes: &Bytes) -> bool {
    let ours = Response::read(key, version, &mut Reader::new(bytes)).unwrap();
    let mut unread = Encoded::build_contiguous(|writer| ours.write(writer, version)).unwrap();
    let read = match ResponseKind::decode(theirs, &mut unread, version) {
        Ok(read) => read,
        Err(error) if format!("{error:#}").contains("version not supported") => return false,
        Err(error) => panic!("{key} response v{version}: {error:#}: {ours:?}"),
    };
    assert!(unread.is_empty(), "{key} response v{version}: {} bytes left", unread.len());
    let mut back = BytesMut::new();
    read.encode(&mut back, version).unwrap_or_else(|error| panic!("{key} response v{version}: {error:#}"));
    let again = Response::read(key, version, &mut Reader::new(&back)).unwrap();
    assert_eq!(again, ours, "{key} response v{version}");
    true
}
