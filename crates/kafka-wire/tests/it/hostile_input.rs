//! Bytes that no honest peer sends: refused by name, without panic and without believing a claimed length.

use bytes::Bytes;
use kolumn_kafka_wire::messages::{
    FetchResponse, JoinGroupRequest, MetadataRequest, MetadataResponse, OffsetFetchRequest, ProduceRequest,
    Request, RequestHeader, SaslAuthenticateRequest,
};
use kolumn_kafka_wire::{ApiKey, DecodeErrorKind, Message, Reader, RequestFrame};

use crate::allocations::measure_allocations;
use crate::schema::put_unsigned_varint;

const HUGE: [u8; 4] = [0x7f, 0xff, 0xff, 0xff];

#[test]
fn a_count_of_2_to_the_31_is_refused_before_anything_is_allocated() {
    let (error, seen) = measure_allocations(|| MetadataRequest::decode(&HUGE, 0).unwrap_err());
    assert_eq!(error.kind(), DecodeErrorKind::Malformed);
    assert_eq!((error.position(), error.field_path().to_string()), (4, "topics".to_owned()));
    assert!(seen.total < 1024, "{seen:?}");

    // the same in compact form: varint of 2^31
    let compact = [0xff, 0xff, 0xff, 0xff, 0x07];
    let (error, seen) = measure_allocations(|| MetadataRequest::decode(&compact, 9).unwrap_err());
    assert_eq!(error.kind(), DecodeErrorKind::Malformed);
    assert!(seen.total < 1024, "{seen:?}");

    // an array of fixed-length elements inside an array: topics, partitions, replicas
    let mut nested = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    nested.extend([0, 0, 0, 0]);
    nested.extend([0x3f, 0xff, 0xff, 0xff, 0, 0, 0, 1]);
    let (error, seen) = measure_allocations(|| MetadataResponse::decode(&nested, 0).unwrap_err());
    assert!(seen.total < 2048, "{seen:?}: {error}");
}

#[test]
fn lengths_beyond_the_input_are_refused_before_anything_is_allocated() {
    check_small(&[&HUGE[..2], b"abc"].concat(), DecodeErrorKind::Truncated, |bytes| {
        MetadataRequest::decode(&[&[0, 0, 0, 1], bytes].concat(), 0).map(|_| ()).unwrap_err()
    });
    check_small(&HUGE, DecodeErrorKind::Truncated, |bytes| {
        SaslAuthenticateRequest::decode(bytes, 0).map(|_| ()).unwrap_err()
    });
    check_small(&[0xff, 0xff, 0xff, 0xff, 0x0f], DecodeErrorKind::Truncated, |bytes| {
        SaslAuthenticateRequest::decode(bytes, 2).map(|_| ()).unwrap_err()
    });
}

#[test]
fn a_client_id_of_negative_length_is_malformed() {
    for length in [[0xff, 0xfe], [0x80, 0x00]] {
        let frame = [&[0, 3, 0, 0, 0, 0, 0, 1][..], &length].concat();
        let error = RequestFrame::decode(&frame).unwrap_err();
        assert_eq!(error.kind(), DecodeErrorKind::Malformed);
        assert_eq!(error.message(), Some("RequestHeader"));
        assert_eq!(error.field_path().to_string(), "client_id");
    }
    let error = RequestHeader::read_frame(&mut Reader::new(&[0, 3, 0])).unwrap_err();
    assert_eq!(error.kind(), DecodeErrorKind::Truncated);
}

#[test]
fn null_is_refused_in_versions_that_do_not_allow_it() {
    let null_array = [0xff; 4];
    let error = MetadataRequest::decode(&null_array, 0).unwrap_err();
    assert_eq!(error.kind(), DecodeErrorKind::Malformed);
    assert_eq!(
        error.to_string(),
        "`MetadataRequest` version 0, field `topics` at byte 4: null is not allowed"
    );
    MetadataRequest::decode(&null_array, 1).unwrap();

    let group_then_null = [0, 1, b'g', 0xff, 0xff, 0xff, 0xff];
    assert!(OffsetFetchRequest::decode(&group_then_null, 1).is_err());
    OffsetFetchRequest::decode(&group_then_null, 2).unwrap();
    // a text that is never null, in both forms
    let error = JoinGroupRequest::decode(&[0xff, 0xff], 0).unwrap_err();
    assert_eq!(error.field_path().to_string(), "group_id");
    assert!(JoinGroupRequest::decode(&[0], 6).is_err());
}

#[test]
fn tags_out_of_order_twice_or_longer_than_the_input_are_refused() {
    let with_tags = |tags: &[u8]| [&[0, 0, 0, 0][..], tags].concat();
    for (tags, kind) in [
        (&[2, 7, 0, 6, 0][..], DecodeErrorKind::Malformed),
        (&[2, 7, 0, 7, 0], DecodeErrorKind::Malformed),
        (&[1, 7, 9, 0], DecodeErrorKind::Truncated),
        (&[0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0], DecodeErrorKind::Malformed),
        (&[0x80, 0x80, 0x80, 0x80, 0x80, 0], DecodeErrorKind::Malformed),
    ] {
        let error = MetadataRequest::decode(&with_tags(tags), 9).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    MetadataRequest::decode(&with_tags(&[2, 6, 0, 7, 0]), 9).unwrap();
}

#[test]
fn a_known_tagged_field_fills_its_length_exactly() {
    // response v12 without topics, then tag 0 of a later version
    let head = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let node = [2, 0, 0, 0, 1, 2, b'h', 0, 0, 0, 9, 0, 0];
    let with = |len: u8, data: &[u8]| [&head[..], &[1, 0, len], data].concat();
    let len = u8::try_from(node.len()).unwrap();
    let response = with(len, &node);
    let decoded = FetchResponse::decode(&response, 16).unwrap();
    assert_eq!(decoded.node_endpoints.iter().next().unwrap().port, 9);
    let error = with(len + 1, &[&node[..], &[0]].concat());
    assert_eq!(FetchResponse::decode(&error, 16).unwrap_err().kind(), DecodeErrorKind::TrailingBytes);
    // version 12 does not have it: an unknown field, kept as it is
    let older = FetchResponse::decode(&response, 12).unwrap();
    assert!(older.node_endpoints.is_empty());
    assert_eq!(older.unknown_tagged_fields.len(), 1);
    assert_eq!(older.encode_to_bytes(12).unwrap(), response);
}

#[test]
fn what_is_not_a_request_is_named() {
    let kind =
        |key, version| Request::read(ApiKey::new(key), version, &mut Reader::new(&[])).unwrap_err().kind();
    assert_eq!(kind(9999, 0), DecodeErrorKind::UnknownApiKey);
    assert_eq!(kind(-1, 0), DecodeErrorKind::UnknownApiKey);
    assert_eq!(kind(3, 14), DecodeErrorKind::UnsupportedVersion);
    assert_eq!(kind(3, -1), DecodeErrorKind::UnsupportedVersion);
    assert_eq!(kind(3, i16::MIN), DecodeErrorKind::UnsupportedVersion);
    assert_eq!(kind(3, 0), DecodeErrorKind::Truncated);

    let error = MetadataRequest::decode(&[0xff, 0xff, 0xff, 0xff, 1], 1).unwrap_err();
    assert_eq!(error.kind(), DecodeErrorKind::TrailingBytes);
    assert_eq!(error.to_string(), "`MetadataRequest` version 1 at byte 4: 1 bytes left over");
}

#[test]
fn text_that_is_not_utf_8_or_too_long_is_refused() {
    let error = MetadataRequest::decode(&[0, 0, 0, 1, 0, 1, 0xff], 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`MetadataRequest` version 0, field `topics[0].name` at byte 7: text is not UTF-8"
    );
    let mut long = vec![2];
    put_unsigned_varint(0x8000 + 1, &mut long);
    long.extend(vec![b'a'; 0x8000]);
    long.extend([0, 1, 0, 0, 0]);
    let error = MetadataRequest::decode(&long, 9).unwrap_err();
    assert_eq!(error.kind(), DecodeErrorKind::Malformed);
}

#[test]
fn a_million_empty_elements_cost_no_memory() {
    // each empty topic of Produce v9 takes three bytes
    let count = 1_000_000;
    let mut body = vec![0, 0, 1, 0, 0, 0, 0];
    put_unsigned_varint(count + 1, &mut body);
    body.extend([1, 1, 0].repeat(count));
    body.push(0);
    let (request, seen) = measure_allocations(|| ProduceRequest::decode(&body, 9).unwrap());
    assert_eq!(request.topic_data.len(), count);
    assert_eq!(seen.count, 0);
}

#[track_caller]
fn check_small(
    bytes: &[u8],
    kind: DecodeErrorKind,
    decode: impl FnOnce(&[u8]) -> kolumn_kafka_wire::DecodeError,
) {
    let bytes = Bytes::copy_from_slice(bytes);
    let (error, seen) = measure_allocations(|| decode(&bytes));
    assert_eq!(error.kind(), kind, "{error}");
    assert!(seen.total < 1024, "{seen:?}");
}
