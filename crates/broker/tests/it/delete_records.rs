//! `DeleteRecords`: the log starts later, and goes on where it was.

use kolumn_kafka_wire::messages::{
    DeleteRecordsRequest, ListOffsetsRequest,
    delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic},
    list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic},
};
use kolumn_kafka_wire::{ErrorCode, Str};

use crate::client::{Client, batch, values};
use crate::harness::TestBroker;

/// Asks for deletions; the answers are partition, low watermark and error.
async fn delete(
    client: &mut Client,
    version: i16,
    topic: &'static str,
    partitions: &[(i32, i64)],
) -> Vec<(i32, i64, ErrorCode)> {
    let partitions = partitions.iter().map(|(partition_index, offset)| DeleteRecordsPartition {
        partition_index: *partition_index,
        offset: *offset,
        ..DeleteRecordsPartition::default()
    });
    let topic = DeleteRecordsTopic {
        name: Str::from(topic),
        partitions: partitions.collect(),
        ..DeleteRecordsTopic::default()
    };
    let request =
        DeleteRecordsRequest { topics: vec![topic].into(), timeout_ms: 30_000, ..Default::default() };
    let response = client.call(version, &request).await;
    let topic = response.topics.iter().next().expect("a topic");
    topic
        .partitions
        .iter()
        .map(|result| (result.partition_index, result.low_watermark, result.error_code))
        .collect()
}

async fn delete_one(client: &mut Client, topic: &'static str, before: i64) -> (i64, ErrorCode) {
    let results = delete(client, 2, topic, &[(0, before)]).await;
    assert_eq!(results.len(), 1);
    (results[0].1, results[0].2)
}

/// The first offset and the one after the last.
async fn ends(client: &mut Client, topic: &'static str) -> (i64, i64) {
    let mut ends = Vec::new();
    for timestamp in [-2, -1] {
        let partition = ListOffsetsPartition { timestamp, ..ListOffsetsPartition::default() };
        let topic = ListOffsetsTopic {
            name: Str::from(topic),
            partitions: vec![partition].into(),
            ..ListOffsetsTopic::default()
        };
        let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic].into(), ..Default::default() };
        let response = client.call(7, &request).await;
        let topic = response.topics.iter().next().expect("a topic");
        ends.push(topic.partitions.iter().next().expect("a partition").offset);
    }
    (ends[0], ends[1])
}

/// A topic of five records: a batch of two, one of one, one of two.
async fn five(broker: &TestBroker) -> Client {
    let mut client = broker.client().await;
    client.create_topic("five", 2).await;
    for values in [&["a", "b"][..], &["c"], &["d", "e"]] {
        client.produce("five", 0, batch(values)).await;
    }
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn records_before_an_offset_are_deleted_and_the_log_starts_there() {
    let broker = TestBroker::start().await;
    let mut client = five(&broker).await;
    for (before, start) in [(2, 2), (4, 4)] {
        assert_eq!(delete_one(&mut client, "five", before).await, (start, ErrorCode::NONE));
        assert_eq!(ends(&mut client, "five").await, (start, 5));
        let gone = client.fetch("five", 0, start - 1).await;
        assert_eq!((gone.error_code, gone.log_start_offset), (ErrorCode::OFFSET_OUT_OF_RANGE, -1));
        let fetched = client.fetch("five", 0, start).await;
        assert_eq!((fetched.error_code, fetched.log_start_offset), (ErrorCode::NONE, start));
        assert_eq!(values(&fetched).last().expect("a record").0, 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_what_is_deleted_already_succeeds_and_changes_nothing() {
    let broker = TestBroker::start().await;
    let mut client = five(&broker).await;
    assert_eq!(delete_one(&mut client, "five", 0).await, (0, ErrorCode::NONE), "at the log start");
    assert_eq!(delete_one(&mut client, "five", 3).await, (3, ErrorCode::NONE));
    for before in [3, 2, 0] {
        assert_eq!(delete_one(&mut client, "five", before).await, (3, ErrorCode::NONE), "{before}");
    }
    assert_eq!(ends(&mut client, "five").await, (3, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn minus_one_deletes_all_records_and_more_than_all_is_out_of_range() {
    let broker = TestBroker::start().await;
    let mut client = five(&broker).await;
    for before in [6, i64::MAX, -2, i64::MIN] {
        assert_eq!(delete_one(&mut client, "five", before).await, (-1, ErrorCode::OFFSET_OUT_OF_RANGE));
    }
    assert_eq!(ends(&mut client, "five").await, (0, 5));
    assert_eq!(delete_one(&mut client, "five", -1).await, (5, ErrorCode::NONE));
    assert_eq!(ends(&mut client, "five").await, (5, 5), "the ends of an emptied log are its next offset");
    assert_eq!(delete_one(&mut client, "five", -1).await, (5, ErrorCode::NONE));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_all_records_are_deleted_offsets_go_on() {
    let broker = TestBroker::start().await;
    let mut client = five(&broker).await;
    assert_eq!(delete_one(&mut client, "five", -1).await, (5, ErrorCode::NONE));
    let produced = client.produce("five", 0, batch(&["f"])).await;
    assert_eq!(
        (produced.error_code, produced.base_offset, produced.log_start_offset),
        (ErrorCode::NONE, 5, 5)
    );
    let broker = TestBroker::start_in(broker.stop().await, |_| {}).await;
    let mut client = broker.client().await;
    assert_eq!(ends(&mut client, "five").await, (5, 6), "also after a restart");
    assert_eq!(values(&client.fetch("five", 0, 5).await), [(5, "f".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_partition_of_a_deletion_has_its_own_result_in_every_version() {
    let broker = TestBroker::start().await;
    let mut client = five(&broker).await;
    for version in 0..=2 {
        let results = delete(&mut client, version, "five", &[(1, -1), (0, 2), (9, 0), (0, 1), (-1, 0)]).await;
        let expected = [
            (-1, -1, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            (0, 1, ErrorCode::NONE),
            (1, 0, ErrorCode::NONE),
            (9, -1, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ];
        assert_eq!(results, expected, "of one named twice the last wish counts");
        let unknown = delete(&mut client, version, "unknown", &[(0, -1)]).await;
        assert_eq!(unknown, [(0, -1, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_a_topic_that_only_compacts_are_not_deleted() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic_with("keyed", 1, &[("cleanup.policy", "compact")]).await;
    client.produce("keyed", 0, batch(&["a"])).await;
    assert_eq!(delete_one(&mut client, "keyed", -1).await, (-1, ErrorCode::POLICY_VIOLATION));
    client.create_topic_with("both", 1, &[("cleanup.policy", "compact,delete")]).await;
    client.produce("both", 0, batch(&["a"])).await;
    assert_eq!(delete_one(&mut client, "both", -1).await, (1, ErrorCode::NONE));
}
