//! One connection: the order of answers, requests without one, and what a disconnect leaves behind.

use kolumn_kafka_wire::messages::{
    ApiVersionsRequest, CreateTopicsRequest, DeleteTopicsRequest, FetchRequest, MetadataRequest,
    ProduceRequest, create_topics_request::CreatableTopic,
};
use kolumn_kafka_wire::{ApiKey, Array, ErrorCode, Str};
use tokio::io::AsyncWriteExt;

use crate::client::{
    batch, fetch_request, frame, metadata_request, only_partition, produce_request, raw_frame, values,
};
use crate::harness::{TestBroker, until};

/// Longer than the patience of a test.
const LONG_MS: i32 = 60_000;

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_are_appended_and_answered_in_their_order() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("piped", 1).await;
    let mut frames = Vec::new();
    for index in 0..200 {
        let request = produce_request("piped", 0, batch(&[&index.to_string()]), -1);
        frames.extend(frame(index, 9, &request));
        frames.extend(frame(1_000 + index, 0, &ApiVersionsRequest::default()));
    }
    let (mut reader, mut writer) = client.stream.into_split();
    let sending = tokio::spawn(async move { writer.write_all(&frames).await.map(|()| writer) });
    let mut answers = Vec::new();
    while answers.len() < 400 {
        let len = tokio::io::AsyncReadExt::read_i32(&mut reader).await.expect("an answer");
        let mut answer = vec![0; usize::try_from(len).expect("a length")];
        tokio::io::AsyncReadExt::read_exact(&mut reader, &mut answer).await.expect("an answer");
        answers.push(i32::from_be_bytes(answer[..4].try_into().expect("four bytes")));
    }
    let expected: Vec<_> = (0..200).flat_map(|index| [index, 1_000 + index]).collect();
    assert_eq!(answers, expected);
    drop(sending.await.expect("sent"));
    let mut client = broker.client().await;
    let mut stored = Vec::new();
    while stored.len() < 200 {
        let offset = i64::try_from(stored.len()).expect("few");
        stored.extend(values(&client.fetch("piped", 0, offset).await));
    }
    let expected: Vec<_> = (0..200_i64).map(|index| (index, index.to_string())).collect();
    assert_eq!(stored, expected, "appended in the order of arrival");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_acknowledgement_holds_no_place_in_the_order() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("silent", 1).await;
    for value in ["a", "b"] {
        client.send(9, &produce_request("silent", 0, batch(&[value]), 0)).await;
    }
    let produced = client.produce("silent", 0, batch(&["c"])).await;
    assert_eq!(produced.base_offset, 2, "both were appended, none was answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_batch_without_acknowledgement_closes_the_connection() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.send(9, &produce_request("nowhere", 0, batch(&["x"]), 0)).await;
    client.expect_close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_sent_right_before_the_connection_ends_are_appended() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("last-words", 1).await;
    let mut brief = broker.client().await;
    brief.send(9, &produce_request("last-words", 0, batch(&["bye"]), 0)).await;
    drop(brief);
    let request = FetchRequest { max_wait_ms: LONG_MS, min_bytes: 1, ..fetch_request("last-words", 0, 0) };
    let fetched = only_partition(&client.call(12, &request).await);
    assert_eq!(values(&fetched), [(0, "bye".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_fetch_holds_back_later_answers_and_not_later_effects() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("mixed", 1).await;
    let waiting = FetchRequest { max_wait_ms: LONG_MS, min_bytes: 1, ..fetch_request("mixed", 0, 0) };
    let fetch = client.send(12, &waiting).await;
    let produce = client.send(9, &produce_request("mixed", 0, batch(&["own"]), -1)).await;
    let fetched = client.receive::<FetchRequest<'_>>(12, fetch).await.expect("the first answer");
    assert_eq!(values(&only_partition(&fetched)), [(0, "own".to_owned())]);
    client.receive::<ProduceRequest<'_>>(9, produce).await.expect("the second answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnect_cancels_a_waiting_fetch() {
    let broker = TestBroker::start().await;
    let mut admin = broker.client().await;
    admin.create_topic("left", 1).await;
    for _ in 0..20 {
        let mut client = broker.client().await;
        let waiting = FetchRequest { max_wait_ms: LONG_MS, min_bytes: 1, ..fetch_request("left", 0, 0) };
        client.send(12, &waiting).await;
        broker.until("the fetch waits", |stats| stats.long_polls == 1).await;
        drop(client);
        broker.until("it is cancelled", |stats| stats.long_polls == 0 && stats.connections == 1).await;
    }
    assert_eq!(broker.broker.stats().in_flight_len, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnect_is_noticed_also_while_nothing_more_is_read() {
    let broker = TestBroker::start_with(|settings| settings.limits.in_flight_max = 4).await;
    let mut admin = broker.client().await;
    admin.create_topic("left", 1).await;
    let waiting = FetchRequest { max_wait_ms: LONG_MS, min_bytes: 1, ..fetch_request("left", 0, 0) };
    for sent in [4, 9] {
        let mut client = broker.client().await;
        for _ in 0..sent {
            client.send(12, &waiting).await;
        }
        broker.until("the first fetch waits", |stats| stats.long_polls == 1).await;
        drop(client);
        broker.until("all are given up", |stats| stats.long_polls == 0 && stats.connections == 1).await;
    }
    assert_eq!(broker.broker.stats().in_flight_len, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_sent_before_it_left_is_appended_though_fetches_were_waiting() {
    let broker = TestBroker::start_with(|settings| settings.limits.in_flight_max = 4).await;
    let mut admin = broker.client().await;
    admin.create_topic("left", 1).await;
    admin.create_topic("late", 1).await;
    let waiting = FetchRequest { max_wait_ms: LONG_MS, min_bytes: 1, ..fetch_request("left", 0, 0) };
    let mut client = broker.client().await;
    for _ in 0..4 {
        client.send(12, &waiting).await;
    }
    client.send(7, &produce_request("late", 0, batch(&["last words"]), -1)).await;
    broker.until("it has come", |stats| stats.connections == 2).await;
    drop(client);
    broker.until("it is gone", |stats| stats.connections == 1).await;
    // Appended is not durable yet: nobody waited for that.
    let request = FetchRequest { max_wait_ms: LONG_MS, min_bytes: 1, ..fetch_request("late", 0, 0) };
    assert_eq!(only_partition(&admin.call(12, &request).await).high_watermark, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_behind_a_request_are_passed_over() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    // As librdkafka 2.8 asks for all topics: a null array of four bytes where one is meant.
    client.send_bytes(b"\0\0\0\x19\0\x03\0\x0c\0\0\0\x03\0\x07rdkafka\0\0\0\0\0\x01\0\0").await;
    let response = client.receive_frame().await.expect("an answer");
    assert_eq!(response.get(..4), Some(&[0, 0, 0, 3][..]), "answered under its correlation id");
    assert_eq!(client.call(12, &metadata_request(&[], false)).await.brokers.len(), 1, "in step");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_reset_leave_the_listener_alone() {
    let broker = TestBroker::start().await;
    for _ in 0..50 {
        let client = broker.client().await;
        let socket = socket2::SockRef::from(&client.stream);
        socket.set_linger(Some(std::time::Duration::ZERO)).expect("a socket option");
        drop(client);
    }
    let mut client = broker.client().await;
    assert!(!client.call(0, &ApiVersionsRequest::default()).await.api_keys.is_empty());
    broker.until("the others are gone", |stats| stats.connections == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_close_their_own_connection_only() {
    let broker = TestBroker::start().await;
    let mut good = broker.client().await;
    // An array of 2^31-1 elements in a body of four bytes; a client id of length -2; a body cut short.
    let count = i32::MAX.to_be_bytes();
    let header_with_client_id = |len: i16| {
        let mut frame = vec![0, 0, 0, 10, 0, 3, 0, 0, 0, 0, 0, 1];
        frame.extend(len.to_be_bytes());
        frame
    };
    // Nothing but the length is wrong: taken for null, it would leave a request for all topics.
    let mut negative_client_id = header_with_client_id(-2);
    negative_client_id.extend([0; 4]);
    negative_client_id[3] += 4;
    let metadata = frame(1, 0, &MetadataRequest { topics: Some(Array::default()), ..Default::default() });
    let mut cut = metadata.clone();
    cut.truncate(metadata.len() - 1);
    cut[3] -= 1;
    for bad in [
        raw_frame(ApiKey::METADATA, 0, 1, &count),
        negative_client_id,
        header_with_client_id(i16::MAX),
        cut,
        (-1_i32).to_be_bytes().to_vec(),
        i32::MIN.to_be_bytes().to_vec(),
        0_i32.to_be_bytes().to_vec(),
        i32::MAX.to_be_bytes().to_vec(),
    ] {
        let mut client = broker.client().await;
        client.send_bytes(&bad).await;
        client.expect_close().await;
    }
    let response = good.call(12, &metadata_request(&[], false)).await;
    assert_eq!(response.brokers.len(), 1);
    // A task that panics closes its connection too, and tells nothing.
    let told = |reason| broker.recorder.count(reason);
    until("all ends are told", || told("ConnectionClosed") == 8).await;
    assert_eq!((told("Malformed("), told("FrameLength("), told("FrameTooLong")), (4, 3, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_of_fetch_has_a_code_that_fetch_may_have() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("legal", 1).await;
    let request = FetchRequest { max_wait_ms: 50, min_bytes: 1, ..fetch_request("legal", 0, 0) };
    let response = client.call(12, &request).await;
    let partition = only_partition(&response);
    assert_eq!((response.error_code, partition.error_code), (ErrorCode::NONE, ErrorCode::NONE));
    assert_eq!(client.call(4, &request).await.error_code, ErrorCode::NONE, "time up is an empty answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_than_may_be_in_flight_are_all_answered() {
    let broker = TestBroker::start_with(|settings| settings.limits.in_flight_max = 4).await;
    let mut client = broker.client().await;
    let mut frames: Vec<u8> = (0..100).flat_map(|id| frame(id, 0, &ApiVersionsRequest::default())).collect();
    frames.extend(i32::MAX.to_be_bytes());
    // In one piece: no later byte wakes the broker for what it could not start at first.
    client.send_bytes(&frames).await;
    for id in 0..100 {
        client.receive::<ApiVersionsRequest<'_>>(0, id).await.expect("an answer");
    }
    client.expect_close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_meets_the_effects_of_those_before_it() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let topic = CreatableTopic {
        name: Str::from("next"),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let create = CreateTopicsRequest { topics: vec![topic].into(), ..Default::default() };
    let delete = DeleteTopicsRequest { topic_names: vec![Str::from("next")].into(), ..Default::default() };
    let ask = |allow| metadata_request(&["next"], allow);
    let produce = || produce_request("next", 0, batch(&["x"]), -1);
    // All at once: a producer that created its topic does not wait for the answer.
    let frames = [
        frame(1, 5, &create),
        frame(2, 9, &produce()),
        frame(3, 5, &delete),
        frame(4, 9, &produce()),
        frame(5, 12, &ask(true)),
        frame(6, 9, &produce()),
    ];
    client.send_bytes(&frames.concat()).await;
    let created = client.receive::<CreateTopicsRequest<'_>>(5, 1).await.expect("an answer");
    assert!(created.topics.iter().all(|result| result.error_code == ErrorCode::NONE));
    let mut codes = Vec::new();
    for id in 2..=6 {
        match id {
            3 => drop(client.receive::<DeleteTopicsRequest<'_>>(5, id).await.expect("an answer")),
            5 => drop(client.receive::<MetadataRequest<'_>>(12, id).await.expect("an answer")),
            _ => {
                let response = client.receive::<ProduceRequest<'_>>(9, id).await.expect("an answer");
                let topic = response.responses.iter().next().expect("a topic");
                let partition = topic.partition_responses.iter().next().expect("a partition");
                codes.push((partition.error_code, partition.base_offset));
            }
        }
    }
    let unknown = (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, -1);
    assert_eq!(codes, [(ErrorCode::NONE, 0), unknown, (ErrorCode::NONE, 0)]);
}
