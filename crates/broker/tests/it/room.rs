//! A log without room: producers wait, and go on when a deletion makes room.

use std::net::SocketAddr;
use std::sync::Arc;

use kolumn_broker::{Broker, Observer};
use kolumn_kafka_wire::messages::{DeleteTopicsRequest, ProduceRequest};
use kolumn_kafka_wire::{ErrorCode, Str};
use kolumn_topic_store::{PressureLevel, Settings, Silent, Store, Timestamp};
use tempfile::TempDir;

use crate::client::{Client, batch, produce_request, values};
use crate::harness::{Recorder, until};

/// A store of a few small files, and a broker over it.
pub(crate) async fn small() -> (Broker, Store, TempDir) {
    let dir = TempDir::new().expect("a directory");
    let (disk, _) = kolumn_journal::probe(dir.path()).expect("a disk");
    let settings = Settings {
        file_len: 512 << 10,
        batch_len_max: 128 << 10,
        size_limit: Some(8 << 20),
        ..Settings::default()
    };
    let now = Timestamp::new(1_800_000_000_000);
    let opened =
        tokio::task::spawn_blocking(move || Store::open(disk, settings, 1, Arc::new(Silent::new()), now));
    let store = opened.await.expect("runs").expect("opens");
    let broker = Broker::builder()
        .store(store.clone())
        .listen(SocketAddr::from(([127, 0, 0, 1], 0)))
        .observer(Arc::new(Recorder::default()) as Arc<dyn Observer>)
        .configure(|settings| {
            settings.storage.maintenance_interval_ms = 20;
            settings.groups.initial_rebalance_delay_ms = 0;
        })
        .start()
        .await
        .expect("it starts");
    (broker, store, dir)
}

fn produced(response: &kolumn_kafka_wire::messages::ProduceResponse<'static>) -> ErrorCode {
    let topic = response.responses.iter().next().expect("a topic");
    topic.partition_responses.iter().next().expect("a partition").error_code
}

/// Fills topic `filler` with requests that give up soon.
pub(crate) async fn fill(producer: &mut Client, value: &str) {
    loop {
        let mut request = produce_request("filler", 0, batch(&[value]), -1);
        request.timeout_ms = 1;
        match produced(&producer.call(9, &request).await) {
            ErrorCode::NONE => {}
            code => {
                assert_eq!(code, ErrorCode::KAFKA_STORAGE_ERROR, "retriable, and told to refresh");
                return;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_log_holds_producers_back_until_a_deletion_makes_room() {
    let (broker, store, _dir) = small().await;
    let mut admin = Client::connect(broker.local_addr()).await;
    admin.create_topic("filler", 1).await;
    admin.create_topic("patient", 1).await;
    let value = "f".repeat(100_000);
    let mut producer = Client::connect(broker.local_addr()).await;
    fill(&mut producer, &value).await;
    assert_eq!(store.pressure().level, PressureLevel::Full);
    // One that waits.
    let request = produce_request("patient", 0, batch(&[&value]), -1);
    let waiting = producer.send(9, &request).await;
    until("it has arrived", || broker.stats().in_flight_len > 100_000).await;
    let deletion =
        DeleteTopicsRequest { topic_names: vec![Str::from("filler")].into(), ..Default::default() };
    let deleted = admin.call(5, &deletion).await;
    assert!(deleted.responses.iter().all(|result| result.error_code == ErrorCode::NONE), "{deleted:?}");
    let response = producer.receive::<ProduceRequest<'_>>(9, waiting).await.expect("an answer");
    assert_eq!(produced(&response), ErrorCode::NONE);
    assert_eq!(values(&admin.fetch("patient", 0, 0).await), [(0, value)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_answers_those_who_wait_for_room() {
    let (broker, store, _dir) = small().await;
    let mut producer = Client::connect(broker.local_addr()).await;
    producer.create_topic("filler", 1).await;
    let value = "f".repeat(100_000);
    fill(&mut producer, &value).await;
    let before = broker.stats().requests;
    let waiting = producer.send(9, &produce_request("filler", 0, batch(&[&value]), -1)).await;
    until("it has been started", || broker.stats().requests > before).await;
    let stopping = tokio::spawn(broker.shutdown());
    let response = producer.receive::<ProduceRequest<'_>>(9, waiting).await.expect("an answer");
    assert_eq!(produced(&response), ErrorCode::KAFKA_STORAGE_ERROR, "retriable elsewhere or later");
    stopping.await.expect("runs").expect("a clean stop");
    tokio::task::spawn_blocking(move || store.close()).await.expect("runs").expect("closes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_handed_in_stays_open() {
    let (broker, store, _dir) = small().await;
    let mut client = Client::connect(broker.local_addr()).await;
    client.create_topic("lent", 1).await;
    broker.shutdown().await.expect("a clean stop");
    assert!(!store.is_read_only());
    let commit = store.init_producer_id().expect("it is open");
    commit.await.expect("and writes");
    tokio::task::spawn_blocking(move || store.close()).await.expect("runs").expect("closes");
}
