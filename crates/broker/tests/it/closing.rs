//! How the broker closes a connection: answers that it owes arrive, whatever else the peer has sent.

use std::io::ErrorKind;

use kolumn_kafka_wire::messages::{ApiVersionsRequest, FetchRequest, ProduceRequest};
use kolumn_kafka_wire::{ApiKey, ErrorCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{Client, batch, fetch_request, frame, produce_request, raw_frame};
use crate::harness::TestBroker;

/// Longer than the patience of a test.
const LONG_MS: i32 = 60_000;

/// Reads up to the end, which must come without a reset.
async fn expect_end(client: &mut Client) {
    let mut rest = Vec::new();
    let end = tokio::time::timeout(crate::client::PATIENCE, client.stream.read_to_end(&mut rest));
    let end = end.await.expect("the broker closes the connection");
    assert_eq!((end.map_err(|error| error.kind()), rest.len()), (Ok(0), 0));
}

/// Frames that are none, each followed by more than a receive buffer of the engine holds.
fn faults() -> Vec<(&'static str, Vec<u8>)> {
    let too_long = i32::MAX.to_be_bytes().to_vec();
    let not_served = raw_frame(ApiKey::new(999), 0, 1, &[]);
    let malformed = raw_frame(ApiKey::METADATA, 1, 1, &i32::MAX.to_be_bytes());
    let refused = frame(1, 7, &produce_request("nowhere", 0, batch(&["x"]), 0));
    let faults =
        [("too long", too_long), ("not served", not_served), ("malformed", malformed), ("refused", refused)];
    faults.map(|(what, fault)| (what, [fault, vec![0xAA; 300_000]].concat())).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_before_a_fault_arrive_whatever_comes_behind_it() {
    let broker = TestBroker::start().await;
    broker.client().await.create_topic("owed", 1).await;
    for (what, fault) in faults() {
        let mut client = broker.client().await;
        let mut frames = Vec::new();
        for id in 0..25 {
            frames.extend(frame(2 * id, 0, &ApiVersionsRequest::default()));
            // Answered only once the disk has it: the fault is seen long before.
            frames.extend(frame(2 * id + 1, 9, &produce_request("owed", 0, batch(&["x"]), -1)));
        }
        frames.extend(fault);
        client.send_bytes(&frames).await;
        for id in 0..25 {
            client.receive::<ApiVersionsRequest<'_>>(0, 2 * id).await.expect(what);
            let produced = client.receive::<ProduceRequest<'_>>(9, 2 * id + 1).await.expect(what);
            let topic = produced.responses.iter().next().expect("a topic");
            let partition = topic.partition_responses.iter().next().expect("a partition");
            assert_eq!(partition.error_code, ErrorCode::NONE, "{what}");
        }
        expect_end(&mut client).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_behind_a_fault_is_neither_started_nor_answered() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("behind", 1).await;
    let malformed = raw_frame(ApiKey::METADATA, 1, 1, &i32::MAX.to_be_bytes());
    let produce = frame(2, 9, &produce_request("behind", 0, batch(&["x"]), -1));
    let mut faulty = broker.client().await;
    faulty.send_bytes(&[malformed, produce].concat()).await;
    expect_end(&mut faulty).await;
    assert_eq!(client.fetch("behind", 0, 0).await.high_watermark, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_waits_for_the_fetch_before_it() {
    let broker = TestBroker::start().await;
    let mut producer = broker.client().await;
    producer.create_topic("awaited", 1).await;
    let mut client = broker.client().await;
    let request = FetchRequest { max_wait_ms: LONG_MS, min_bytes: 1, ..fetch_request("awaited", 0, 0) };
    let id = client.send(12, &request).await;
    client.send_bytes(&(-1_i32).to_be_bytes()).await;
    broker.until("the fetch waits", |stats| stats.long_polls == 1).await;
    producer.produce("awaited", 0, batch(&["x"])).await;
    client.receive::<FetchRequest<'_>>(12, id).await.expect("an answer");
    expect_end(&mut client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_goes_on_sending_is_not_listened_to_for_ever() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.send_bytes(&(-1_i32).to_be_bytes()).await;
    let flood = vec![0; 64 << 10];
    let sending = async {
        loop {
            match client.stream.write(&flood).await {
                Ok(_) => {}
                Err(error) => break error.kind(),
            }
        }
    };
    let ended = tokio::time::timeout(crate::client::PATIENCE, sending).await.expect("an end");
    assert!(matches!(ended, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{ended}");
    broker.until("its place is free", |stats| stats.connections == 0 && stats.in_flight_len == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_takes_no_answer_away_from_a_peer_that_has_sent_more() {
    let broker = TestBroker::start_with(|settings| settings.limits.in_flight_max = 2).await;
    let mut client = broker.client().await;
    client.create_topic("last", 1).await;
    let request = FetchRequest { max_wait_ms: LONG_MS, min_bytes: 1, ..fetch_request("last", 0, 0) };
    let id = client.send(12, &request).await;
    client.send(12, &request).await;
    broker.until("both are taken up", |stats| stats.long_polls == 1 && stats.requests == 3).await;
    // Not read, because as many requests as may be are in flight.
    client.send_bytes(&vec![0xAA; 100_000]).await;
    let stopping = tokio::spawn(broker.broker.shutdown());
    for id in [id, id + 1] {
        client.receive::<FetchRequest<'_>>(12, id).await.expect("an answer");
    }
    expect_end(&mut client).await;
    drop(client);
    stopping.await.expect("it runs").expect("a clean stop");
}
