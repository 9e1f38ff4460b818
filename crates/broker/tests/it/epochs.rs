//! `OffsetForLeaderEpoch`: what a consumer learns that was away while the leader changed.

use kolumn_kafka_wire::messages::{
    OffsetForLeaderEpochRequest,
    offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic},
    offset_for_leader_epoch_response::EpochEndOffset,
};
use kolumn_kafka_wire::{ErrorCode, Str};

use crate::client::{Client, batch};
use crate::harness::TestBroker;

fn question(leader_epoch: i32) -> OffsetForLeaderPartition<'static> {
    OffsetForLeaderPartition { leader_epoch, ..OffsetForLeaderPartition::default() }
}

async fn ask(
    client: &mut Client,
    version: i16,
    topic: &'static str,
    question: OffsetForLeaderPartition<'static>,
) -> EpochEndOffset<'static> {
    let topic = OffsetForLeaderTopic {
        topic: Str::from(topic),
        partitions: vec![question].into(),
        ..OffsetForLeaderTopic::default()
    };
    let request = OffsetForLeaderEpochRequest { topics: vec![topic].into(), ..Default::default() };
    let response = client.call(version, &request).await;
    let topic = response.topics.iter().next().expect("a topic");
    topic.partitions.iter().next().expect("a partition")
}

async fn epoch_of(client: &mut Client, topic: &str) -> i32 {
    let metadata = client.metadata(&[topic], false).await;
    let topic = metadata.topics.iter().next().expect("a topic");
    topic.partitions.iter().next().expect("a partition").leader_epoch
}

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_ends_where_the_next_one_with_records_begins() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("ages", 1).await;
    client.produce("ages", 0, batch(&["a", "b"])).await;
    let first = epoch_of(&mut client, "ages").await;
    // An opening without records between two with some.
    let broker = TestBroker::start_in(broker.stop().await, |_| {}).await;
    let broker = TestBroker::start_in(broker.stop().await, |_| {}).await;
    let mut client = broker.client().await;
    let last = epoch_of(&mut client, "ages").await;
    assert_eq!(last, first + 2);
    client.produce("ages", 0, batch(&["c"])).await;
    let undefined = (-1, -1);
    let expected = [
        (first - 1, undefined),
        (first, (first, 2)),
        (first + 1, (first, 2)),
        (last, (last, 3)),
        (last + 1, undefined),
        (-1, undefined),
        (i32::MIN, undefined),
    ];
    for version in 2..=4 {
        for (asked, end) in expected {
            let found = ask(&mut client, version, "ages", question(asked)).await;
            assert_eq!(found.error_code, ErrorCode::NONE);
            assert_eq!((found.leader_epoch, found.end_offset), end, "{asked} in version {version}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_knows_another_epoch_is_fenced_or_told_to_wait() {
    let broker = TestBroker::start().await;
    client_with_topic(&broker).await;
    let broker = TestBroker::start_in(broker.stop().await, |_| {}).await;
    let mut client = broker.client().await;
    let present = epoch_of(&mut client, "ages").await;
    for (current_leader_epoch, code) in [
        (-1, ErrorCode::NONE),
        (present - 1, ErrorCode::FENCED_LEADER_EPOCH),
        (present, ErrorCode::NONE),
        (present + 1, ErrorCode::UNKNOWN_LEADER_EPOCH),
    ] {
        let question = OffsetForLeaderPartition { current_leader_epoch, ..question(present) };
        let found = ask(&mut client, 3, "ages", question).await;
        assert_eq!(found.error_code, code, "{current_leader_epoch}");
        let end = if code.is_error() { (-1, -1) } else { (present, 1) };
        assert_eq!((found.leader_epoch, found.end_offset), end);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn epochs_of_unknown_topics_and_partitions_are_unknown() {
    let broker = TestBroker::start().await;
    let mut client = client_with_topic(&broker).await;
    let found = ask(&mut client, 4, "unknown", question(0)).await;
    assert_eq!(found.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    for partition in [1, -1, i32::MAX] {
        let found = ask(&mut client, 4, "ages", OffsetForLeaderPartition { partition, ..question(0) }).await;
        assert_eq!((found.error_code, found.partition), (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, partition));
    }
}

/// A client, after a record was written to topic `ages`.
async fn client_with_topic(broker: &TestBroker) -> Client {
    let mut client = broker.client().await;
    client.create_topic("ages", 1).await;
    client.produce("ages", 0, batch(&["a"])).await;
    client
}
