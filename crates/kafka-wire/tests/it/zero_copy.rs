//! Decoding allocates nothing, whatever the size; encoding allocates one buffer; payloads are not copied.

use bytes::Bytes;
use kolumn_kafka_wire::messages::{
    FetchRequest, FetchResponse, MetadataRequest, MetadataResponse, ProduceRequest, Request,
    fetch_request::{FetchPartition, FetchTopic},
    fetch_response::{FetchableTopicResponse, PartitionData},
    metadata_request::MetadataRequestTopic,
    metadata_response::{MetadataResponsePartition, MetadataResponseTopic},
    produce_request::{PartitionProduceData, TopicProduceData},
};
use kolumn_kafka_wire::{ApiKey, Message as _, Reader, Records, RequestFrame, encode_request};

use crate::allocations::{count_allocations, measure_allocations};

const SIZES: [usize; 3] = [1, 100, 3000];

#[test]
fn metadata_requests_and_responses_are_decoded_without_allocation() {
    for size in SIZES {
        let topic = MetadataRequestTopic { name: Some("orders".into()), ..Default::default() };
        let request = MetadataRequest { topics: Some(vec![topic; size].into()), ..Default::default() };
        let partition = MetadataResponsePartition {
            replica_nodes: vec![1, 2, 3].into(),
            isr_nodes: vec![1].into(),
            ..Default::default()
        };
        let topic = MetadataResponseTopic {
            name: Some("orders".into()),
            partitions: vec![partition; 4].into(),
            ..Default::default()
        };
        let response = MetadataResponse { topics: vec![topic; size].into(), ..Default::default() };
        for version in [0, 1, 8, 9, 12] {
            let bytes = request.encode_to_bytes(version).unwrap();
            let (names, allocations) = count_allocations(|| {
                let request = MetadataRequest::decode(&bytes, version).unwrap();
                let topics = request.topics.unwrap();
                topics.iter().filter(|topic| topic.name.as_deref() == Some("orders")).count()
            });
            assert_eq!((names, allocations), (size, 0));
            let bytes = response.encode_to_bytes(version).unwrap();
            let (replicas, allocations) = count_allocations(|| {
                let response = MetadataResponse::decode(&bytes, version).unwrap();
                let partitions = response.topics.iter().flat_map(|topic| topic.partitions);
                partitions.flat_map(|partition| partition.replica_nodes).sum::<i32>()
            });
            assert_eq!((usize::try_from(replicas).unwrap(), allocations), (size * 4 * 6, 0));
        }
    }
}

#[test]
fn produce_requests_are_decoded_without_allocation_and_share_the_frame() {
    for size in SIZES {
        let partition = PartitionProduceData {
            records: Some(Records::Borrowed(b"not really a batch")),
            ..Default::default()
        };
        let topic = TopicProduceData {
            name: "t".into(),
            partition_data: vec![partition; 3].into(),
            ..Default::default()
        };
        let request = ProduceRequest { topic_data: vec![topic; size].into(), ..Default::default() };
        for version in [3, 8, 9, 13] {
            let frame: Bytes = frame_of(&encode_request(1, Some("client"), version, &request).unwrap());
            // sharing a buffer for the first time allocates its counter; frames cut from a stream share already
            let _shared_already = frame.clone();
            let walk = |frame: RequestFrame<'_>| {
                let Request::Produce(request) = frame.body else { panic!("another request") };
                let partitions = request.topic_data.into_iter().flat_map(|topic| topic.partition_data);
                partitions.map(|partition| partition.records.unwrap().len()).sum::<usize>()
            };
            let (borrowed, allocations) = count_allocations(|| walk(RequestFrame::decode(&frame).unwrap()));
            assert_eq!((borrowed, allocations), (size * 3 * 18, 0));
            let (shared, allocations) =
                count_allocations(|| walk(RequestFrame::decode_shared(&frame).unwrap()));
            assert_eq!((shared, allocations), (borrowed, 0));
        }
    }
}

#[test]
fn fetch_requests_and_responses_are_decoded_without_allocation() {
    for size in SIZES {
        let partition = FetchPartition { partition: 1, ..Default::default() };
        let topic =
            FetchTopic { topic: "t".into(), partitions: vec![partition; 5].into(), ..Default::default() };
        let request = FetchRequest { topics: vec![topic; size].into(), ..Default::default() };
        let partition = PartitionData { records: Some(Records::Borrowed(&[7; 600])), ..Default::default() };
        let topic = FetchableTopicResponse { partitions: vec![partition; 5].into(), ..Default::default() };
        let response = FetchResponse { responses: vec![topic; size].into(), ..Default::default() };
        for version in [4, 11, 12, 17] {
            let bytes = request.encode_to_bytes(version).unwrap();
            let (partitions, allocations) = count_allocations(|| {
                let mut reader = Reader::new(&bytes);
                let Request::Fetch(request) = Request::read(ApiKey::FETCH, version, &mut reader).unwrap()
                else {
                    panic!("another request")
                };
                request
                    .topics
                    .iter()
                    .flat_map(|topic| topic.partitions)
                    .map(|partition| partition.partition)
                    .sum::<i32>()
            });
            assert_eq!((usize::try_from(partitions).unwrap(), allocations), (size * 5, 0));
            let bytes = response.encode_to_bytes(version).unwrap();
            let _shared_already = bytes.clone();
            let (len, allocations) = count_allocations(|| {
                let response = FetchResponse::decode_shared(&bytes, version).unwrap();
                let partitions = response.responses.into_iter().flat_map(|topic| topic.partitions);
                partitions.map(|partition| partition.records.unwrap().len()).sum::<usize>()
            });
            assert_eq!((len, allocations), (size * 5 * 600, 0));
        }
    }
}

#[test]
fn encoding_allocates_one_buffer_of_the_right_size() {
    let topic = MetadataResponseTopic {
        name: Some("orders".into()),
        partitions: vec![MetadataResponsePartition::default(); 3].into(),
        ..Default::default()
    };
    let response = MetadataResponse { topics: vec![topic; 500].into(), ..Default::default() };
    for version in MetadataResponse::VERSIONS.iter() {
        let (bytes, seen) = measure_allocations(|| response.encode_to_bytes(version).unwrap());
        assert_eq!((seen.count, seen.total), (1, bytes.len()), "v{version}");
    }
}

#[test]
fn shared_records_are_sent_by_reference() {
    let records = Bytes::from(vec![5; 100_000]);
    let partition = PartitionData { records: Some(records.clone().into()), ..Default::default() };
    let topic = FetchableTopicResponse { partitions: vec![partition].into(), ..Default::default() };
    let response = FetchResponse { responses: vec![topic].into(), ..Default::default() };
    let (encoded, seen) = measure_allocations(|| response.encode(12).unwrap());
    assert!(seen.total < 2000, "{seen:?}");
    assert!(encoded.parts().iter().any(|part| {
        matches!(part, kolumn_kafka_wire::Part::Bytes(bytes) if bytes.as_ptr() == records.as_ptr())
    }));
}

fn frame_of(encoded: &kolumn_kafka_wire::Encoded) -> Bytes {
    let parts: Vec<u8> = encoded
        .parts()
        .iter()
        .flat_map(|part| match part {
            kolumn_kafka_wire::Part::Bytes(bytes) => bytes.to_vec(),
            kolumn_kafka_wire::Part::Deferred { .. } => panic!("nothing is deferred"),
        })
        .collect();
    Bytes::from(parts).slice(4..)
}
