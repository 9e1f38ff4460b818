//! What clients can make the broker hold: frames, connections, answers that nobody takes.

use std::time::Duration;

use kolumn_kafka_wire::ErrorCode;
use kolumn_kafka_wire::messages::{ApiVersionsRequest, FetchRequest};
use tokio::io::AsyncWriteExt;

use crate::client::{Client, batch, fetch_request, frame, produce_request, values};
use crate::harness::{TestBroker, until};

/// The beginning of a produce frame that claims to be this long.
fn produce_head(len: i32) -> Vec<u8> {
    let mut head = len.to_be_bytes().to_vec();
    head.extend([0, 0, 0, 9, 0, 0, 0, 1]);
    head
}

async fn round_trip(client: &mut Client, topic: &str, value: &str) {
    let produced = client.produce(topic, 0, batch(&[value])).await;
    assert_eq!(produced.error_code, ErrorCode::NONE, "{:?}", produced.error_message);
    let fetched = client.fetch(topic, 0, produced.base_offset).await;
    assert_eq!(values(&fetched), [(produced.base_offset, value.to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_over_the_limit_close_the_connection_before_their_body() {
    let broker = TestBroker::start_with(|settings| settings.limits.frame_len_max = 10_000).await;
    for head in [produce_head(10_001), produce_head(i32::MAX), vec![0x7f, 0xff, 0xff, 0xff]] {
        let mut client = broker.client().await;
        client.send_bytes(&head).await;
        client.expect_close().await;
    }
    assert_eq!(broker.broker.stats().in_flight_len, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_not_served_closes_the_connection_before_its_body() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let mut head = (50_i32 << 20).to_be_bytes().to_vec();
    head.extend([0, 99, 0, 0]);
    client.send_bytes(&head).await;
    client.expect_close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_records_have_a_limit_of_their_own() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let mut head = (50_i32 << 20).to_be_bytes().to_vec();
    head.extend([0, 3, 0, 9]);
    client.send_bytes(&head).await;
    client.expect_close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_senders_of_huge_frames_hold_what_they_sent_and_no_more() {
    let broker = TestBroker::start_with(|settings| settings.limits.in_flight_len_max = 1 << 20).await;
    let mut good = broker.client().await;
    good.create_topic("busy", 1).await;
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut client = broker.client().await;
        client.send_bytes(&produce_head(90 << 20)).await;
        slow.push(client);
    }
    for round in 0..5 {
        for client in &mut slow {
            client.send_bytes(&[0]).await;
        }
        round_trip(&mut good, "busy", &round.to_string()).await;
    }
    assert!(broker.broker.stats().in_flight_len < 100 * 4096);
    drop(slow);
    broker
        .until("everything is given back", |stats| stats.in_flight_len == 0 && stats.connections == 1)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_full_of_frames_that_do_not_end_is_freed_by_eviction() {
    let broker = TestBroker::start_with(|settings| {
        settings.limits.in_flight_len_max = 1 << 20;
        settings.limits.slow_frame_timeout_ms = 200;
    })
    .await;
    let mut good = broker.client().await;
    good.create_topic("busy", 1).await;
    let mut stuck = Vec::new();
    for _ in 0..8 {
        let mut client = broker.client().await;
        stuck.push(tokio::spawn(async move {
            let filler = [&produce_head(90 << 20)[..], &vec![0; 4 << 20]].concat();
            // Ends when the broker gives the connection up.
            drop(client.stream.write_all(&filler).await);
            client
        }));
    }
    until("one is evicted", || broker.recorder.count("Evicted") > 0).await;
    // Small requests find the reserve, a large one finds the overdraft when those before it are evicted.
    round_trip(&mut good, "busy", "small").await;
    round_trip(&mut good, "busy", &"large".repeat(190_000)).await;
    for task in stuck {
        task.abort();
    }
    broker
        .until("everything is given back", |stats| stats.in_flight_len == 0 && stats.connections == 1)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_never_read_do_not_hold_up_others() {
    let broker = TestBroker::start().await;
    let mut good = broker.client().await;
    good.create_topic("data", 1).await;
    for _ in 0..10 {
        good.produce("data", 0, batch(&[&"d".repeat(900_000)])).await;
    }
    let mut stalled = Vec::new();
    for _ in 0..20 {
        let mut client = broker.client().await;
        for id in 0..10 {
            let request = FetchRequest { max_bytes: 10 << 20, ..fetch_request("data", 0, 0) };
            client.send_bytes(&frame(id, 12, &request)).await;
        }
        stalled.push(client);
    }
    for round in 0..5 {
        round_trip(&mut good, "data", &round.to_string()).await;
    }
    drop(stalled);
    broker.until("all is given back", |stats| stats.connections == 1 && stats.in_flight_len == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_is_not_read_beyond_its_requests_in_flight() {
    let broker = TestBroker::start_with(|settings| settings.limits.in_flight_max = 4).await;
    let mut client = broker.client().await;
    client.create_topic("waits", 1).await;
    let waiting = FetchRequest { max_wait_ms: 20_000, min_bytes: 1, ..fetch_request("waits", 0, 0) };
    for id in 0..50 {
        client.send_bytes(&frame(id, 12, &waiting)).await;
    }
    broker.until("the first one waits", |stats| stats.long_polls == 1).await;
    assert!(broker.broker.stats().requests <= 1 + 4);
    client.expect_silence().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_over_the_limit_are_refused_and_places_come_back() {
    let broker = TestBroker::start_with(|settings| settings.limits.connections_max = 3).await;
    for _ in 0..5 {
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = broker.client().await;
            client.call(0, &ApiVersionsRequest::default()).await;
            clients.push(client);
        }
        let mut refused = broker.client().await;
        refused.expect_close().await;
        drop(clients);
        broker.until("places are free", |stats| stats.connections == 0).await;
    }
    assert_eq!(broker.broker.stats().connections_refused, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_says_nothing_is_closed_after_the_idle_timeout() {
    let broker = TestBroker::start_with(|settings| settings.limits.connection_idle_timeout_ms = 1_000).await;
    let mut silent = broker.client().await;
    let mut half = broker.client().await;
    half.send_bytes(&produce_head(1_000)).await;
    silent.expect_close().await;
    half.expect_close().await;
    broker.until("nobody is left", |stats| stats.connections == 0).await;
    assert_eq!(broker.recorder.count("Idle"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_produce_request_of_partitions_without_batches_is_refused() {
    use kolumn_kafka_wire::messages::produce_request::PartitionProduceData;
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("many", 1).await;
    let mut request = produce_request("many", 0, batch(&["x"]), -1);
    let mut topic = request.topic_data.iter().next().expect("a topic");
    topic.partition_data = vec![PartitionProduceData::default(); 100_000].into();
    request.topic_data = vec![topic].into();
    client.send(9, &request).await;
    client.expect_close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_hold_no_request_memory() {
    let broker = TestBroker::start().await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        let mut client = broker.client().await;
        client.call(0, &ApiVersionsRequest::default()).await;
        idle.push(client);
    }
    assert_eq!((broker.broker.stats().connections, broker.broker.stats().in_flight_len), (200, 0));
}

impl Client {
    /// Nothing arrives for a moment.
    async fn expect_silence(&mut self) {
        let read = tokio::time::timeout(Duration::from_millis(50), self.receive_frame()).await;
        assert!(read.is_err(), "something arrived");
    }
}
