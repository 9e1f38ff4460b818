//! What a version cannot express is an error when it is encoded, never a panic and never silently lost.

use bytes::Bytes;
use kolumn_kafka_wire::messages::{
    CreateTopicsRequest, EndTxnRequest, FetchRequest, FetchResponse, JoinGroupRequest, ListOffsetsRequest,
    MetadataRequest, MetadataResponse, ProduceResponse,
    create_topics_request::CreatableTopic,
    fetch_response::{FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData},
    metadata_request::MetadataRequestTopic,
    metadata_response::MetadataResponseTopic,
    produce_response,
};
use kolumn_kafka_wire::{EncodeErrorKind, Message, Part, Records, TaggedFields, Uuid};

#[test]
fn a_field_that_the_version_lacks_is_refused_unless_it_has_its_default() {
    let request = MetadataRequest { allow_auto_topic_creation: false, ..Default::default() };
    let error = request.encode(3).unwrap_err();
    assert_eq!(error.kind(), EncodeErrorKind::FieldNotInVersion);
    assert_eq!(
        error.to_string(),
        "`MetadataRequest` version 3, field `allow_auto_topic_creation`: set, but not part of this version"
    );
    request.encode(4).unwrap();
    MetadataRequest::default().encode(3).unwrap();

    let nested = FetchResponse {
        responses: vec![FetchableTopicResponse {
            partitions: vec![
                PartitionData::default(),
                PartitionData { preferred_read_replica: 3, ..Default::default() },
            ]
            .into(),
            ..Default::default()
        }]
        .into(),
        ..Default::default()
    };
    let error = nested.encode(10).unwrap_err();
    assert_eq!(error.field_path().to_string(), "responses[0].partitions[1].preferred_read_replica");
}

#[test]
fn an_ignorable_field_that_the_version_lacks_is_left_out() {
    let response =
        MetadataResponse { throttle_time_ms: 7, cluster_id: Some("c".into()), ..Default::default() };
    assert_eq!(response.encode_to_bytes(0).unwrap()[..], [0; 8]);
}

#[test]
fn tagged_fields_of_another_version_are_not_written() {
    let leader = LeaderIdAndEpoch { leader_id: 1, leader_epoch: 2, ..Default::default() };
    let partition = PartitionData { current_leader: leader, ..Default::default() };
    let topic = FetchableTopicResponse { partitions: vec![partition].into(), ..Default::default() };
    let response = FetchResponse { responses: vec![topic].into(), ..Default::default() };
    assert_eq!(response.encode(11).unwrap_err().kind(), EncodeErrorKind::FieldNotInVersion);
    response.encode(12).unwrap();

    let node = NodeEndpoint { node_id: 1, ..Default::default() };
    let response = FetchResponse { node_endpoints: vec![node].into(), ..Default::default() };
    assert_eq!(response.encode(15).unwrap_err().field_path().to_string(), "node_endpoints");
    response.encode(16).unwrap();
}

#[test]
fn tagged_fields_with_their_defaults_are_not_written() {
    let partition = produce_response::PartitionProduceResponse::default();
    let topic = produce_response::TopicProduceResponse {
        partition_responses: vec![partition].into(),
        ..Default::default()
    };
    let response = ProduceResponse { responses: vec![topic].into(), ..Default::default() };
    let bytes = response.encode_to_bytes(10).unwrap();
    // two counts, a name, the partition's fields, throttle time; and three tag counts, all zero
    assert_eq!(bytes.len(), 3 + (4 + 2 + 8 + 8 + 8 + 1 + 1) + 4 + 3);
    let request = FetchRequest::default().encode_to_bytes(18).unwrap();
    // no forgotten topics, an empty rack, no tags
    assert!(request.ends_with(&[1, 1, 0]), "{request:?}");
}

#[test]
fn null_is_refused_in_versions_that_do_not_allow_it() {
    let all = MetadataRequest { topics: None, ..Default::default() };
    let error = all.encode(0).unwrap_err();
    assert_eq!(error.kind(), EncodeErrorKind::NullNotAllowed);
    assert_eq!(error.field_path().to_string(), "topics");
    all.encode(1).unwrap();

    let unnamed =
        MetadataRequestTopic { name: None, topic_id: Uuid::from_bytes([1; 16]), ..Default::default() };
    let by_id = MetadataRequest { topics: Some(vec![unnamed].into()), ..Default::default() };
    assert_eq!(by_id.encode(9).unwrap_err().field_path().to_string(), "topics[0].name");
    by_id.encode(10).unwrap();

    let unnamed = MetadataResponseTopic { name: None, ..Default::default() };
    let response = MetadataResponse { topics: vec![unnamed].into(), ..Default::default() };
    assert_eq!(response.encode(11).unwrap_err().kind(), EncodeErrorKind::NullNotAllowed);
    response.encode(12).unwrap();
}

#[test]
fn a_text_longer_than_32767_bytes_is_an_error_in_both_forms() {
    let long = "x".repeat(32_768);
    let request = JoinGroupRequest { reason: Some(long.as_str().into()), ..Default::default() };
    let error = request.encode(8).unwrap_err();
    assert_eq!(
        (error.kind(), error.field_path().to_string()),
        (EncodeErrorKind::TooLong, "reason".to_owned())
    );
    let request = JoinGroupRequest { group_id: long.as_str().into(), ..Default::default() };
    assert_eq!(request.encode(0).unwrap_err().kind(), EncodeErrorKind::TooLong);
    let request = JoinGroupRequest { group_id: "x".repeat(32_767).into(), ..Default::default() };
    request.encode(0).unwrap();
    request.encode(6).unwrap();
}

#[test]
fn a_message_longer_than_an_int32_is_an_error() {
    let records = Records::Deferred { len: usize::MAX, token: 1 };
    let response = |records: &Records<'static>| {
        let partition = PartitionData { records: Some(records.clone()), ..Default::default() };
        let topic = FetchableTopicResponse {
            partitions: vec![partition.clone(), partition].into(),
            ..Default::default()
        };
        FetchResponse { responses: vec![topic].into(), ..Default::default() }
    };
    assert_eq!(response(&records).encode(12).unwrap_err().kind(), EncodeErrorKind::TooLong);
    let records = Records::Deferred { len: 0x7fff_ffff, token: 1 };
    assert_eq!(response(&records).encode(12).unwrap_err().kind(), EncodeErrorKind::TooLong);
    assert_eq!(response(&records).encoded_len(4).unwrap_err().kind(), EncodeErrorKind::TooLong);
}

#[test]
fn deferred_records_keep_their_place_and_cannot_be_contiguous() {
    let deferred = PartitionData {
        partition_index: 1,
        records: Some(Records::Deferred { len: 70_000, token: 42 }),
        ..Default::default()
    };
    let shared = PartitionData {
        partition_index: 2,
        records: Some(Bytes::from(vec![9; 1000]).into()),
        ..Default::default()
    };
    let small = PartitionData {
        partition_index: 3,
        records: Some(Bytes::from(vec![8; 10]).into()),
        ..Default::default()
    };
    let topic =
        FetchableTopicResponse { partitions: vec![deferred, shared, small].into(), ..Default::default() };
    let response = FetchResponse { responses: vec![topic].into(), ..Default::default() };
    for version in [4, 12, 16] {
        let encoded = response.encode(version).unwrap();
        assert_eq!(encoded.len(), response.encoded_len(version).unwrap());
        let kinds: Vec<_> = encoded
            .parts()
            .iter()
            .map(|part| match part {
                Part::Bytes(bytes) if bytes.iter().all(|byte| *byte == 9) => "payload",
                Part::Bytes(_) => "header",
                Part::Deferred { len: 70_000, token: 42 } => "gap",
                Part::Deferred { .. } => "other",
            })
            .collect();
        assert_eq!(kinds, ["header", "gap", "header", "payload", "header"]);
        let error = response.encode_to_bytes(version).unwrap_err();
        assert_eq!(error.kind(), EncodeErrorKind::DeferredRecords);
        assert_eq!(error.field_path().to_string(), "responses[0].partitions[0].records");
    }
}

#[test]
fn tagged_fields_in_a_classic_version_and_doubled_tags_are_refused() {
    let mut unknown_tagged_fields = TaggedFields::new();
    unknown_tagged_fields.insert(9, vec![1]);
    let request =
        EndTxnRequest { unknown_tagged_fields: unknown_tagged_fields.clone(), ..Default::default() };
    assert_eq!(request.encode(2).unwrap_err().kind(), EncodeErrorKind::FieldNotInVersion);
    request.encode(3).unwrap();

    unknown_tagged_fields.insert(0, vec![1]);
    let request = FetchRequest { cluster_id: Some("c".into()), unknown_tagged_fields, ..Default::default() };
    assert_eq!(request.encode(12).unwrap_err().kind(), EncodeErrorKind::DuplicateTag);
}

#[test]
fn a_version_that_does_not_exist_is_refused() {
    for version in [-1, 12, i16::MAX, i16::MIN] {
        let error = ListOffsetsRequest::default().encode(version).unwrap_err();
        assert_eq!(error.kind(), EncodeErrorKind::UnsupportedVersion);
        assert_eq!((error.message(), error.version()), (Some("ListOffsetsRequest"), Some(version)));
    }
}

#[test]
fn defaults_of_every_struct_can_be_written() {
    let request =
        CreateTopicsRequest { topics: vec![CreatableTopic::default()].into(), ..Default::default() };
    for version in CreateTopicsRequest::VERSIONS.iter() {
        let bytes = request.encode_to_bytes(version).unwrap();
        assert_eq!(CreateTopicsRequest::decode(&bytes, version).unwrap(), request);
    }
    assert_eq!(CreateTopicsRequest::default().timeout_ms, 60_000);
}
