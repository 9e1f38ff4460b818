//! `ListOffsets` and `InitProducerId`.

use kolumn_kafka_wire::messages::{
    FindCoordinatorRequest, InitProducerIdRequest, ListOffsetsRequest,
    list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic},
    list_offsets_response::ListOffsetsPartitionResponse,
};
use kolumn_kafka_wire::{ErrorCode, Str};

use crate::client::{Client, batch, batch_at, init_producer_request};
use crate::harness::TestBroker;

async fn ask(
    client: &mut Client,
    version: i16,
    topic: &'static str,
    partition: ListOffsetsPartition<'static>,
    isolation_level: i8,
) -> ListOffsetsPartitionResponse<'static> {
    let topic =
        ListOffsetsTopic { name: Str::from(topic), partitions: vec![partition].into(), ..Default::default() };
    let request = ListOffsetsRequest {
        replica_id: -1,
        isolation_level,
        topics: vec![topic].into(),
        ..ListOffsetsRequest::default()
    };
    let response = client.call(version, &request).await;
    let topic = response.topics.iter().next().expect("a topic");
    topic.partitions.iter().next().expect("a partition")
}

fn at(timestamp: i64) -> ListOffsetsPartition<'static> {
    ListOffsetsPartition { timestamp, ..ListOffsetsPartition::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_finds_the_first_record_from_it_on() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("moments", 1).await;
    for timestamp in [2, 4, 6, 8] {
        client.produce("moments", 0, batch_at(&["x"], timestamp)).await;
    }
    for (moment, offset, timestamp) in
        [(0, 0, 2), (2, 0, 2), (3, 1, 4), (4, 1, 4), (7, 3, 8), (8, 3, 8), (9, -1, -1)]
    {
        let found = ask(&mut client, 7, "moments", at(moment), 0).await;
        assert_eq!((found.error_code, found.offset, found.timestamp), (ErrorCode::NONE, offset, timestamp));
        assert_eq!(found.leader_epoch >= 0, offset >= 0, "the epoch of the record that was found");
    }
    let latest = ask(&mut client, 7, "moments", at(-3), 0).await;
    assert_eq!((latest.offset, latest.timestamp), (3, 8), "the record with the greatest timestamp");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ends_of_an_empty_partition_are_the_next_offset() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("void", 1).await;
    for (special, version) in [(-1, 1), (-2, 1), (-4, 8)] {
        let found = ask(&mut client, version, "void", at(special), 0).await;
        assert_eq!((found.error_code, found.offset, found.timestamp), (ErrorCode::NONE, 0, -1), "{special}");
    }
    client.produce("void", 0, batch(&["a", "b"])).await;
    for isolation in [0, 1] {
        assert_eq!(ask(&mut client, 4, "void", at(-1), isolation).await.offset, 2);
    }
    assert_eq!(ask(&mut client, 4, "void", at(-2), 0).await.offset, 0);
    assert_eq!(ask(&mut client, 9, "void", at(-5), 0).await.offset, -1, "nothing is tiered");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_version_does_not_know_is_an_unsupported_version() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("old", 1).await;
    for (special, version) in [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11), (i64::MIN, 11)] {
        let found = ask(&mut client, version, "old", at(special), 0).await;
        assert_eq!((found.error_code, found.offset), (ErrorCode::UNSUPPORTED_VERSION, -1), "{special}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_topics_partitions_and_epochs_are_told_apart() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("known", 1).await;
    let unknown = ask(&mut client, 7, "unknown", at(-1), 0).await;
    assert_eq!(unknown.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    for partition_index in [1, -1, i32::MAX] {
        let question = ListOffsetsPartition { partition_index, ..at(-1) };
        let found = ask(&mut client, 7, "known", question, 0).await;
        assert_eq!(found.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    }
    let question = ListOffsetsPartition { current_leader_epoch: 1_000, ..at(-1) };
    assert_eq!(ask(&mut client, 7, "known", question, 0).await.error_code, ErrorCode::UNKNOWN_LEADER_EPOCH);
}

#[tokio::test(flavor = "multi_thread")]
async fn producer_ids_differ_and_half_an_identity_is_an_invalid_request() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let plain = init_producer_request();
    let first = client.call(2, &plain).await;
    let second = client.call(5, &plain).await;
    assert_eq!((first.error_code, second.error_code), (ErrorCode::NONE, ErrorCode::NONE));
    assert_ne!(first.producer_id, second.producer_id);
    let known = InitProducerIdRequest { producer_id: first.producer_id, producer_epoch: 0, ..plain.clone() };
    assert_eq!(client.call(4, &known).await.error_code, ErrorCode::NONE);
    for (producer_id, producer_epoch) in [(5, -1), (-1, 5)] {
        let half = InitProducerIdRequest { producer_id, producer_epoch, ..plain.clone() };
        let response = client.call(4, &half).await;
        assert_eq!((response.error_code, response.producer_id), (ErrorCode::INVALID_REQUEST, -1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_and_groups_have_no_coordinator() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let transactional = |id| InitProducerIdRequest {
        transactional_id: Some(Str::from(id)),
        transaction_timeout_ms: 1_000,
        ..InitProducerIdRequest::default()
    };
    let response = client.call(4, &transactional("tx")).await;
    assert_eq!(response.error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    let response = client.call(4, &transactional("")).await;
    assert_eq!(response.error_code, ErrorCode::INVALID_REQUEST);
    for (key_type, code) in [
        (0, ErrorCode::COORDINATOR_NOT_AVAILABLE),
        (1, ErrorCode::COORDINATOR_NOT_AVAILABLE),
        (9, ErrorCode::INVALID_REQUEST),
    ] {
        let coordinator_keys = vec![Str::from("a"), Str::from("b")].into();
        let request = FindCoordinatorRequest { key_type, coordinator_keys, ..Default::default() };
        let response = client.call(4, &request).await;
        assert_eq!(response.coordinators.len(), 2);
        assert!(response.coordinators.iter().all(|found| found.error_code == code && found.node_id == -1));
    }
}
