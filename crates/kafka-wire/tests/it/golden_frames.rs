//! Frames written down byte by byte, from the protocol's layouts.

use bytes::Bytes;
use kolumn_kafka_wire::messages::{
    ApiVersionsResponse, MetadataRequest, ProduceRequest, Request, Response, api_versions_response,
    metadata_request::MetadataRequestTopic,
};
use kolumn_kafka_wire::{
    ApiKey, ErrorCode, Message as _, Records, RequestFrame, ResponseFrame, Uuid, encode_request,
    encode_response,
};

#[test]
fn metadata_v9_is_flexible_with_a_header_of_version_2() {
    let request = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic { name: Some("t1".into()), ..Default::default() }].into()),
        ..Default::default()
    };
    let frame = flat(encode_request(7, Some("me"), 9, &request).unwrap());
    let expected = [
        &[0, 0, 0, 22][..],
        &[0, 3, 0, 9, 0, 0, 0, 7],
        &[0, 2, b'm', b'e', 0], // classic client id, no tags
        &[2, 3, b't', b'1', 0], // one topic
        &[1, 0, 0, 0],          // create topics, no operations, no tags
    ]
    .concat();
    assert_eq!(frame, expected);
    let decoded = RequestFrame::decode(&frame[4..]).unwrap();
    assert_eq!(decoded.header.api_key(), ApiKey::METADATA);
    assert_eq!(decoded.header.client_id.as_deref(), Some("me"));
    assert_eq!(decoded.body, Request::Metadata(request));
}

#[test]
fn metadata_v0_asks_for_all_topics_with_an_empty_array() {
    let all = MetadataRequest::decode(&[0, 0, 0, 0], 0).unwrap();
    assert!(all.topics.unwrap().is_empty());
    let all = MetadataRequest::decode(&[0xff, 0xff, 0xff, 0xff], 1).unwrap();
    assert_eq!(all.topics, None);
}

#[test]
fn api_versions_are_answered_under_a_header_of_version_0_and_without_default_tags() {
    let response = ApiVersionsResponse {
        api_keys: vec![api_versions_response::ApiVersion {
            api_key: 18,
            max_version: 4,
            ..Default::default()
        }]
        .into(),
        ..Default::default()
    };
    let frame = flat(encode_response(5, 3, &Response::ApiVersions(response.clone())).unwrap());
    let expected = [
        &[0, 0, 0, 19][..],
        &[0, 0, 0, 5],              // correlation id and nothing else
        &[0, 0],                    // no error
        &[2, 0, 18, 0, 0, 0, 4, 0], // one element
        &[0, 0, 0, 0],              // throttle time
        &[0],                       // no tags
    ]
    .concat();
    assert_eq!(frame, expected);
    let frame = Bytes::from(frame).slice(4..);
    let decoded = ResponseFrame::decode_shared(&frame, ApiKey::API_VERSIONS, 3).unwrap();
    assert_eq!(decoded.body, Response::ApiVersions(response));
}

#[test]
fn an_unknown_version_is_answered_with_error_35_in_version_0() {
    let response = ApiVersionsResponse {
        error_code: ErrorCode::UNSUPPORTED_VERSION,
        api_keys: vec![api_versions_response::ApiVersion {
            api_key: 18,
            max_version: 4,
            ..Default::default()
        }]
        .into(),
        ..Default::default()
    };
    let body = response.encode_to_bytes(0).unwrap();
    assert_eq!(body[..], [0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4]);
}

#[test]
fn produce_v3_carries_records_as_nullable_bytes() {
    let body = [
        &[0xff, 0xff][..],               // no transactional id
        &[0xff, 0xff, 0, 0, 0x75, 0x30], // acks -1, 30 s
        &[0, 0, 0, 1, 0, 1, b't'],       // one topic
        &[0, 0, 0, 1, 0, 0, 0, 2],       // partition 2
        &[0, 0, 0, 3, 1, 2, 3],
    ]
    .concat();
    let body = Bytes::from(body);
    let request = ProduceRequest::decode_shared(&body, 3).unwrap();
    assert_eq!((request.acks, request.timeout_ms), (-1, 30_000));
    let topic = request.topic_data.iter().next().unwrap();
    let partition = topic.partition_data.iter().next().unwrap();
    let Some(Records::Shared(records)) = partition.records else { panic!("records share the frame") };
    assert_eq!(records, [1, 2, 3][..]);
    assert_eq!(records.as_ptr(), body[body.len() - 3..].as_ptr());
    assert_eq!(request.encode_to_bytes(3).unwrap(), body);
}

#[test]
fn produce_v13_names_topics_by_id() {
    let mut body = vec![0, 0, 1, 0, 0, 0, 9, 2];
    body.extend([7; 16]);
    body.extend([1, 0, 0]);
    let request = ProduceRequest::decode(&body, 13).unwrap();
    let topic = request.topic_data.iter().next().unwrap();
    assert_eq!((topic.topic_id, topic.name.as_str()), (Uuid::from_bytes([7; 16]), ""));
    assert_eq!(request.encode_to_bytes(13).unwrap(), body);
}

fn flat(encoded: kolumn_kafka_wire::Encoded) -> Vec<u8> {
    let len = encoded.len();
    let bytes: Vec<u8> = encoded
        .into_iter()
        .flat_map(|part| match part {
            kolumn_kafka_wire::Part::Bytes(bytes) => bytes,
            kolumn_kafka_wire::Part::Deferred { .. } => panic!("nothing is deferred"),
        })
        .collect();
    assert_eq!(bytes.len(), len);
    bytes
}
