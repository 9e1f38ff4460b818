//! Fetching: limits, waiting, and what makes an answer final.

use std::time::Duration;

use bytes::Bytes;
use kolumn_kafka_wire::messages::{
    FetchRequest,
    fetch_request::{FetchPartition, FetchTopic},
};
use kolumn_kafka_wire::{ErrorCode, Str, Uuid};
use tokio::time::Instant;

use crate::client::{Client, batch, bytes, fetch_request, only_partition, values};
use crate::harness::TestBroker;

/// Longer than the patience of a test, so that an answer at the deadline does not pass for one in time.
const LONG_MS: i32 = 60_000;

fn waiting(topic: &str, offset: i64, max_wait_ms: i32, min_bytes: i32) -> FetchRequest<'static> {
    FetchRequest { max_wait_ms, min_bytes, ..fetch_request(topic, 0, offset) }
}

fn partitions(topic: &'static str, wanted: &[(i32, i64, i32)]) -> Vec<FetchTopic<'static>> {
    let partitions = wanted.iter().map(|(partition, offset, max)| FetchPartition {
        partition: *partition,
        fetch_offset: *offset,
        partition_max_bytes: *max,
        ..FetchPartition::default()
    });
    let partitions = partitions.collect::<Vec<_>>().into();
    vec![FetchTopic { topic: Str::from(topic), partitions, ..FetchTopic::default() }]
}

async fn lens(client: &mut Client, request: &FetchRequest<'static>) -> Vec<usize> {
    let response = client.call(12, request).await;
    response.responses.iter().flat_map(|topic| topic.partitions).map(|found| bytes(&found).len()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_topic_is_answered_empty_at_the_deadline_and_not_before() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("empty", 1).await;
    let started = Instant::now();
    let response = client.call(12, &waiting("empty", 0, 300, 1)).await;
    assert!(started.elapsed() >= Duration::from_millis(300), "it waits, so that clients do not spin");
    let partition = only_partition(&response);
    assert_eq!((partition.error_code, partition.high_watermark), (ErrorCode::NONE, 0));
    assert_eq!((response.error_code, bytes(&partition).len()), (ErrorCode::NONE, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_fetch_is_woken_by_an_append_to_its_partition() {
    let broker = TestBroker::start().await;
    let (mut consumer, mut producer) = (broker.client().await, broker.client().await);
    producer.create_topic("woken", 1).await;
    let id = consumer.send(12, &waiting("woken", 0, LONG_MS, 1)).await;
    broker.until("the fetch waits", |stats| stats.long_polls == 1).await;
    producer.produce("woken", 0, batch(&["news"])).await;
    let response = consumer.receive::<FetchRequest<'_>>(12, id).await.expect("an answer");
    assert_eq!(values(&only_partition(&response)), [(0, "news".to_owned())]);
    broker.until("nobody waits", |stats| stats.long_polls == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_fetch_is_woken_by_each_of_its_partitions_and_by_no_other() {
    let broker = TestBroker::start().await;
    let (mut consumer, mut producer) = (broker.client().await, broker.client().await);
    producer.create_topic("own", 4).await;
    producer.create_topic("foreign", 2).await;
    for awaited in [("own", 0), ("own", 2), ("also", 1)] {
        if awaited == ("own", 0) {
            producer.create_topic("also", 2).await;
        }
        let mut ends = Vec::new();
        for (topic, partition) in [("own", 0), ("own", 2), ("also", 1)] {
            ends.push(producer.fetch(topic, partition, 0).await.high_watermark);
        }
        let own = partitions("own", &[(0, ends[0], 1 << 20), (2, ends[1], 1 << 20)]);
        let also = partitions("also", &[(1, ends[2], 1 << 20)]);
        let topics = [own, also].concat().into();
        let request = FetchRequest { topics, ..waiting("own", 0, LONG_MS, 1) };
        let id = consumer.send(12, &request).await;
        broker.until("the fetch waits", |stats| stats.long_polls == 1).await;
        for (topic, partition) in [("own", 1), ("own", 3), ("also", 0), ("foreign", 0), ("foreign", 1)] {
            producer.produce(topic, partition, batch(&["not asked for"])).await;
        }
        let answered = tokio::time::timeout(Duration::from_millis(30), consumer.stream.peek(&mut [0])).await;
        assert!(answered.is_err() && broker.broker.stats().long_polls == 1, "it waits on");
        producer.produce(awaited.0, awaited.1, batch(&["asked for"])).await;
        let response = consumer.receive::<FetchRequest<'_>>(12, id).await.expect("an answer");
        let found: Vec<_> = response.responses.iter().flat_map(|topic| topic.partitions).collect();
        let found: Vec<_> = found.iter().flat_map(values).map(|(_, value)| value).collect();
        assert_eq!(found, ["asked for"], "{awaited:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_fetch_gathers_min_bytes() {
    let broker = TestBroker::start().await;
    let (mut consumer, mut producer) = (broker.client().await, broker.client().await);
    producer.create_topic("gather", 1).await;
    let one = batch(&["x"]).len();
    let min_bytes = i32::try_from(one * 3).expect("small");
    let id = consumer.send(12, &waiting("gather", 0, LONG_MS, min_bytes)).await;
    for _ in 0..3 {
        producer.produce("gather", 0, batch(&["x"])).await;
    }
    let response = consumer.receive::<FetchRequest<'_>>(12, id).await.expect("an answer");
    assert_eq!(bytes(&only_partition(&response)).len(), one * 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn min_bytes_beyond_the_limit_of_the_answer_are_not_waited_for() {
    let broker = TestBroker::start_with(|settings| settings.limits.fetch_len_max = 900).await;
    let mut client = broker.client().await;
    client.create_topic("much", 1).await;
    client.produce("much", 0, batch(&[&"m".repeat(1_000)])).await;
    for max_bytes in [1, 1 << 20] {
        let request = FetchRequest { max_bytes, ..waiting("much", 0, LONG_MS, 1 << 20) };
        let response = client.call(12, &request).await;
        assert_eq!(values(&only_partition(&response)).len(), 1, "{max_bytes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_its_limits_cut_off_waits_for_nothing_more() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("full", 1).await;
    let sent = batch(&[&"m".repeat(1_000)]);
    for _ in 0..5 {
        client.produce("full", 0, sent.clone()).await;
    }
    // Two batches and a half: the third does not fit, so that two are all that can come.
    let limit = i32::try_from(sent.len() * 5 / 2).expect("small");
    let topics = |limit| partitions("full", &[(0, 0, limit)]);
    for (max_bytes, partition_max_bytes) in [(limit, i32::MAX), (i32::MAX, limit)] {
        let request = FetchRequest {
            max_bytes,
            topics: topics(partition_max_bytes).into(),
            ..waiting("full", 0, LONG_MS, limit)
        };
        let response = client.call(12, &request).await;
        assert_eq!(values(&only_partition(&response)).len(), 2, "{max_bytes} {partition_max_bytes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn min_bytes_of_zero_never_waits() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("eager", 1).await;
    let response = client.call(12, &waiting("eager", 0, i32::MAX, 0)).await;
    assert_eq!(only_partition(&response).error_code, ErrorCode::NONE);
    let nothing = FetchRequest { max_wait_ms: i32::MAX, min_bytes: 1, ..FetchRequest::default() };
    assert!(client.call(12, &nothing).await.responses.is_empty(), "nor does a fetch of nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_one_partition_ends_the_wait_of_all() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("half", 2).await;
    let topics = partitions("half", &[(0, 0, 1000), (5, 0, 1000), (1, 77, 1000)]);
    let request = FetchRequest { topics: topics.into(), ..waiting("half", 0, LONG_MS, 1) };
    let response = client.call(12, &request).await;
    let codes: Vec<_> =
        response.responses.iter().flat_map(|topic| topic.partitions).map(|found| found.error_code).collect();
    assert_eq!(
        codes,
        [ErrorCode::NONE, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, ErrorCode::OFFSET_OUT_OF_RANGE]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_topic_ends_the_wait_for_it() {
    let broker = TestBroker::start().await;
    let (mut consumer, mut admin) = (broker.client().await, broker.client().await);
    admin.create_topic("fleeting", 1).await;
    let id = consumer.send(12, &waiting("fleeting", 0, LONG_MS, 1)).await;
    broker.until("the fetch waits", |stats| stats.long_polls == 1).await;
    let request = kolumn_kafka_wire::messages::DeleteTopicsRequest {
        topic_names: vec![Str::from("fleeting")].into(),
        ..Default::default()
    };
    admin.call(5, &request).await;
    let response = consumer.receive::<FetchRequest<'_>>(12, id).await.expect("an answer");
    assert_eq!(only_partition(&response).error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_log_is_in_range_and_what_is_behind_it_is_not() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("ends", 1).await;
    client.produce("ends", 0, batch(&["a", "b"])).await;
    let at_end = client.fetch("ends", 0, 2).await;
    assert_eq!(
        (at_end.error_code, at_end.high_watermark, at_end.last_stable_offset),
        (ErrorCode::NONE, 2, 2)
    );
    for offset in [3, -1, i64::MAX, i64::MIN] {
        let out = client.fetch("ends", 0, offset).await;
        assert_eq!((out.error_code, out.high_watermark), (ErrorCode::OFFSET_OUT_OF_RANGE, -1), "{offset}");
        assert!(bytes(&out).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_batch_comes_whole_even_beyond_every_limit() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("large", 3).await;
    let large = batch(&[&"x".repeat(10_000)]);
    for partition in [1, 2] {
        client.produce("large", partition, large.clone()).await;
    }
    for max_bytes in [0, 1, -1] {
        let topics = partitions("large", &[(0, 0, 1), (1, 0, 1), (2, 0, 1)]);
        let request = FetchRequest { max_bytes, topics: topics.into(), ..fetch_request("large", 0, 0) };
        assert_eq!(lens(&mut client, &request).await, [0, large.len(), 0], "max_bytes {max_bytes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_across_partitions_and_only_whole_batches_come() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("wide", 4).await;
    let one = batch(&[&"y".repeat(1_000)]);
    for partition in 0..4 {
        for _ in 0..3 {
            client.produce("wide", partition, one.clone()).await;
        }
    }
    let (one, two) = (one.len(), one.len() * 2);
    let max = |len: usize| i32::try_from(len).expect("small");
    let wanted: Vec<_> = (0..4).map(|partition| (partition, 0, max(two) + 10)).collect();
    let request = |max_bytes| FetchRequest {
        max_bytes,
        topics: partitions("wide", &wanted).into(),
        ..fetch_request("wide", 0, 0)
    };
    assert_eq!(lens(&mut client, &request(i32::MAX)).await, [two; 4], "the limit of a partition");
    assert_eq!(
        lens(&mut client, &request(max(one * 5))).await,
        [two, two, one, 0],
        "the limit of the request"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_brokers_own_limit_holds_whatever_the_client_asks() {
    let broker = TestBroker::start_with(|settings| settings.limits.fetch_len_max = 5_000).await;
    let mut client = broker.client().await;
    client.create_topic("capped", 1).await;
    for _ in 0..10 {
        client.produce("capped", 0, batch(&[&"z".repeat(1_000)])).await;
    }
    let got = lens(&mut client, &fetch_request("capped", 0, 0)).await;
    assert!((1_000..=5_000).contains(&got[0]), "{got:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_knows_another_epoch_is_told_so() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("epochs", 1).await;
    let metadata = client.metadata(&["epochs"], false).await;
    let topic = metadata.topics.iter().next().expect("a topic");
    let current = topic.partitions.iter().next().expect("a partition").leader_epoch;
    let cases =
        [(current, ErrorCode::NONE), (-1, ErrorCode::NONE), (current + 1, ErrorCode::UNKNOWN_LEADER_EPOCH)];
    for (epoch, code) in cases {
        let mut request = fetch_request("epochs", 0, 0);
        let mut topic = request.topics.iter().next().expect("a topic");
        let mut partition = topic.partitions.iter().next().expect("a partition");
        partition.current_leader_epoch = epoch;
        topic.partitions = vec![partition].into();
        request.topics = vec![topic].into();
        assert_eq!(only_partition(&client.call(12, &request).await).error_code, code, "{epoch}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fetch_by_id_knows_the_topic_and_names_an_unknown_id() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let id = client.create_topic("ided", 1).await;
    client.produce("ided", 0, batch(&["x"])).await;
    for (topic_id, code) in [
        (id, ErrorCode::NONE),
        (Uuid::from_bytes([1; 16]), ErrorCode::UNKNOWN_TOPIC_ID),
        (Uuid::default(), ErrorCode::UNKNOWN_TOPIC_ID),
    ] {
        let mut request = fetch_request("", 0, 0);
        let topic = request.topics.iter().next().expect("a topic");
        request.topics = vec![FetchTopic { topic_id, ..topic }].into();
        let response = client.call(13, &request).await;
        assert_eq!(only_partition(&response).error_code, code);
        assert_eq!(response.responses.iter().next().expect("a topic").topic_id, topic_id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn aborted_transactions_are_null_unless_committed_records_are_asked_for() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("plain", 1).await;
    for (isolation_level, expected) in [(0, None), (1, Some(0))] {
        let request = FetchRequest { isolation_level, ..fetch_request("plain", 0, 0) };
        let partition = only_partition(&client.call(12, &request).await);
        assert_eq!(partition.aborted_transactions.map(|list| list.len()), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_partitions_whose_index_was_thinned_are_read_bit_by_bit() {
    const PARTITIONS: i32 = 50;
    let broker = TestBroker::start_with(|settings| {
        settings.storage.tail_len_max = 64 << 10;
        settings.storage.index_len_max = 0;
    })
    .await;
    let mut client = broker.client().await;
    client.create_topic("many", PARTITIONS).await;
    for round in 0..20 {
        for partition in 0..PARTITIONS {
            client.produce("many", partition, batch(&[&format!("{round}").repeat(2_000)])).await;
        }
    }
    let mut offsets = vec![0_i64; usize::try_from(PARTITIONS).unwrap()];
    while offsets.iter().any(|offset| *offset < 20) {
        let before: i64 = offsets.iter().sum();
        let wanted: Vec<_> =
            (0..).zip(&offsets).map(|(partition, offset)| (partition, *offset, 20_000)).collect();
        let request =
            FetchRequest { topics: partitions("many", &wanted).into(), ..fetch_request("many", 0, 0) };
        let response = client.call(12, &request).await;
        for found in response.responses.iter().flat_map(|topic| topic.partitions) {
            assert_eq!(found.error_code, ErrorCode::NONE);
            let next = &mut offsets[usize::try_from(found.partition_index).unwrap()];
            for (offset, value) in values(&found) {
                assert_eq!((offset, value), (*next, next.to_string().repeat(2_000)));
                *next += 1;
            }
        }
        assert!(offsets.iter().sum::<i64>() > before, "each answer has something");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_left_memory_is_fetched_from_disk() {
    let broker = TestBroker::start_with(|settings| settings.storage.tail_len_max = 64 << 10).await;
    let mut client = broker.client().await;
    client.create_topic("cold", 1).await;
    let batches: Vec<Bytes> = (0..40).map(|index: u32| batch(&[&index.to_string().repeat(20_000)])).collect();
    for batch in &batches {
        client.produce("cold", 0, batch.clone()).await;
    }
    let mut offset = 0;
    while offset < 40 {
        let fetched = values(&client.fetch("cold", 0, offset).await);
        assert!(!fetched.is_empty());
        for (found, value) in fetched {
            assert_eq!((found, value), (offset, offset.to_string().repeat(20_000)));
            offset += 1;
        }
    }
}
