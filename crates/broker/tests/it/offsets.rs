//! `ListOffsets` and `InitProducerId`.

use kolumn_broker::Settings;
use kolumn_kafka_wire::messages::{
    FindCoordinatorRequest, InitProducerIdRequest, ListOffsetsRequest,
    list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic},
    list_offsets_response::ListOffsetsPartitionResponse,
};
use kolumn_kafka_wire::{ErrorCode, Str};
use kolumn_topic_store::{PartitionIndex, Timestamp};

use crate::client::{Client, batch, batch_at, bytes as bytes_of, init_producer_request, values};
use crate::harness::{TestBroker, until};

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
async fn an_offset_is_told_with_the_epoch_under_which_it_was_written() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("ages", 1).await;
    client.produce("ages", 0, batch_at(&["old"], 2)).await;
    let first = ask(&mut client, 7, "ages", at(-1), 0).await.leader_epoch;
    let broker = TestBroker::start_in(broker.stop().await, |_| {}).await;
    let mut client = broker.client().await;
    let second = ask(&mut client, 7, "ages", at(-1), 0).await.leader_epoch;
    assert!(first >= 0 && second > first, "the end of the log belongs to the present epoch");
    client.produce("ages", 0, batch_at(&["new"], 5)).await;
    let expected = [
        (0, 0, first),
        (2, 0, first),
        (3, 1, second),
        (EARLIEST, 0, first),
        (EARLIEST_LOCAL, 0, first),
        (MAX_TIMESTAMP, 1, second),
        (LATEST, 2, second),
    ];
    for (time, offset, epoch) in expected {
        let found = ask(&mut client, 8, "ages", at(time), 0).await;
        assert_eq!((found.offset, found.leader_epoch), (offset, epoch), "{time}");
    }
    assert_eq!(ask(&mut client, 3, "ages", at(0), 0).await.leader_epoch, -1, "not known to this version");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ends_follow_what_retention_takes_away() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let kilobyte = "k".repeat(1_000);
    let topics = [("shorter", "1500", 2), ("emptied", "0", 4)];
    for (topic, bytes, _) in topics {
        client.create_topic_with(topic, 1, &[("retention.bytes", bytes)]).await;
        for values in [&[&*kilobyte, "and a second record"][..], &[&kilobyte], &[&kilobyte]] {
            client.produce(topic, 0, batch(values)).await;
        }
    }
    maintain(&broker).await;
    for (topic, _, start) in topics {
        until("it is shorter", || log_start(&broker, topic) == start).await;
        for (special, offset) in [(EARLIEST, start), (EARLIEST_LOCAL, start), (LATEST, 4)] {
            let found = ask(&mut client, 8, topic, at(special), 0).await;
            assert_eq!((found.error_code, found.offset), (ErrorCode::NONE, offset), "{topic} {special}");
        }
        for gone in 0..start {
            let fetched = client.fetch(topic, 0, gone).await;
            assert_eq!(fetched.error_code, ErrorCode::OFFSET_OUT_OF_RANGE, "{topic} {gone}");
            assert!(bytes_of(&fetched).is_empty());
        }
        let fetched = client.fetch(topic, 0, start).await;
        assert_eq!((fetched.error_code, fetched.log_start_offset), (ErrorCode::NONE, start), "{topic}");
        assert!(values(&fetched).into_iter().map(|(offset, _)| offset).eq(start..4), "{topic}");
        let produced = client.produce(topic, 0, batch(&["next"])).await;
        assert_eq!((produced.base_offset, produced.log_start_offset), (4, start), "{topic}");
    }
}

/// Lets the store look at once at what its topics may lose.
async fn maintain(broker: &TestBroker) {
    let store = broker.broker.store().clone();
    let later = Timestamp::new(4_000_000_000_000);
    let maintained = tokio::task::spawn_blocking(move || store.maintain(later)).await;
    maintained.expect("runs").expect("maintains");
}

fn log_start(broker: &TestBroker, topic: &str) -> i64 {
    let store = broker.broker.store();
    let view = store.view(&Settings::default().view).expect("the broker's view").id;
    let topic = store.topic(view, topic).expect("a topic").id;
    store.offsets(topic, PartitionIndex::new(0)).expect("a partition").log_start.value()
}

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;

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
async fn transactions_have_no_coordinator() {
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
    let (nobody, invalid) = (ErrorCode::COORDINATOR_NOT_AVAILABLE, ErrorCode::INVALID_REQUEST);
    for (version, key_type, code) in
        [(4, 1, nobody), (6, 1, nobody), (4, 9, invalid), (5, 2, invalid), (6, 2, nobody)]
    {
        let coordinator_keys = vec![Str::from("a"), Str::from("b")].into();
        let request = FindCoordinatorRequest { key_type, coordinator_keys, ..Default::default() };
        let response = client.call(version, &request).await;
        assert_eq!(response.coordinators.len(), 2);
        assert!(response.coordinators.iter().all(|found| found.error_code == code && found.node_id == -1));
    }
    assert_eq!(broker.recorder.count("CoordinatorMissing"), 1, "the log says why the client waits, once");
}
