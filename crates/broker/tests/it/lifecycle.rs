//! Starting, stopping, starting again.

use std::error::Error;
use std::net::SocketAddr;

use kolumn_broker::{Broker, StartErrorKind};
use kolumn_kafka_wire::ErrorCode;
use kolumn_kafka_wire::messages::{FetchRequest, ProduceRequest};
use tempfile::TempDir;

use crate::client::{batch, fetch_request, only_partition, produce_request, values};
use crate::harness::TestBroker;

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_topics_records_ids_and_raises_the_epoch() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let id = client.create_topic("kept", 2).await;
    client.produce("kept", 1, batch(&["a", "b"])).await;
    let cluster = broker.broker.cluster_id().to_owned();
    let epoch = |metadata: kolumn_kafka_wire::messages::MetadataResponse<'static>| {
        let topic = metadata.topics.iter().next().expect("a topic");
        (topic.topic_id, topic.partitions.iter().next().expect("a partition").leader_epoch)
    };
    let identity = |metadata: &kolumn_kafka_wire::messages::MetadataResponse<'static>| {
        let node = metadata.brokers.iter().next().expect("a broker").node_id;
        (metadata.cluster_id.as_deref().map(str::to_owned), metadata.controller_id, node)
    };
    let metadata = client.metadata(&["kept"], false).await;
    let known = identity(&metadata);
    assert_eq!(known, (Some(cluster.clone()), 1, 1));
    let before = epoch(metadata);
    let broker = TestBroker::start_in(broker.stop().await, |_| {}).await;
    let mut client = broker.client().await;
    let metadata = client.metadata(&["kept"], false).await;
    assert_eq!(identity(&metadata), known, "clients find the cluster that they knew");
    let after = epoch(metadata);
    assert_eq!((before.0, after.0), (id, id));
    assert_eq!(after.1, before.1 + 1);
    assert_eq!(broker.broker.cluster_id(), cluster);
    let fetched = client.fetch("kept", 1, 0).await;
    assert_eq!(values(&fetched), [(0, "a".to_owned()), (1, "b".to_owned())]);
    assert_eq!(client.produce("kept", 1, batch(&["c"])).await.base_offset, 2);

    let mut request = fetch_request("kept", 0, 0);
    let mut topic = request.topics.iter().next().expect("a topic");
    let mut partition = topic.partitions.iter().next().expect("a partition");
    partition.current_leader_epoch = before.1;
    topic.partitions = vec![partition].into();
    request.topics = vec![topic].into();
    let fenced = only_partition(&client.call(12, &request).await);
    assert_eq!(fenced.error_code, ErrorCode::FENCED_LEADER_EPOCH, "a client with the old epoch refreshes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_dropped_has_lost_nothing_that_it_acknowledged() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("kept", 1).await;
    client.produce("kept", 0, batch(&["a"])).await;
    let TestBroker { broker, dir, .. } = broker;
    let store = broker.store().clone();
    drop(broker);
    client.expect_close().await;
    tokio::task::spawn_blocking(move || store.close()).await.expect("runs").expect("closes");
    let broker = TestBroker::start_in(dir, |_| {}).await;
    let mut client = broker.client().await;
    assert_eq!(values(&client.fetch("kept", 0, 0).await), [(0, "a".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_answers_what_has_arrived_and_wakes_who_waits() {
    // It ends because all is answered, not because its time is up.
    let broker = TestBroker::start_with(|settings| settings.limits.drain_timeout_ms = 120_000).await;
    let mut producer = broker.client().await;
    producer.create_topic("drained", 1).await;
    let mut waiting = broker.client().await;
    let fetch = FetchRequest { max_wait_ms: 60_000, min_bytes: 1 << 20, ..fetch_request("drained", 0, 0) };
    let fetch_id = waiting.send(12, &fetch).await;
    broker.until("the fetch waits", |stats| stats.long_polls == 1).await;
    let before = broker.broker.stats().requests;
    let mut ids = Vec::new();
    for value in ["a", "b", "c"] {
        ids.push(producer.send(9, &produce_request("drained", 0, batch(&[value]), -1)).await);
    }
    broker.until("they have arrived", |stats| stats.requests == before + 3).await;
    let stopping = tokio::spawn(broker.stop());
    for (offset, id) in (0..).zip(ids) {
        let response = producer.receive::<ProduceRequest<'_>>(9, id).await.expect("an answer");
        let topic = response.responses.iter().next().expect("a topic");
        let partition = topic.partition_responses.iter().next().expect("a partition");
        assert_eq!((partition.error_code, partition.base_offset), (ErrorCode::NONE, offset));
    }
    let response = waiting.receive::<FetchRequest<'_>>(12, fetch_id).await.expect("an answer");
    assert_eq!(only_partition(&response).error_code, ErrorCode::NONE);
    producer.expect_close().await;
    waiting.expect_close().await;
    let dir = stopping.await.expect("a clean stop");
    let broker = TestBroker::start_in(dir, |_| {}).await;
    assert_eq!(broker.client().await.fetch("drained", 0, 0).await.high_watermark, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_cuts_off_clients_that_do_not_take_their_answers() {
    let broker = TestBroker::start_with(|settings| settings.limits.drain_timeout_ms = 200).await;
    let mut client = broker.client().await;
    client.create_topic("deaf", 1).await;
    for _ in 0..10 {
        client.produce("deaf", 0, batch(&[&"d".repeat(900_000)])).await;
    }
    let before = broker.broker.stats().requests;
    for _ in 0..10 {
        let request = FetchRequest { max_bytes: 10 << 20, ..fetch_request("deaf", 0, 0) };
        client.send(12, &request).await;
    }
    broker.until("they have arrived", |stats| stats.requests == before + 10).await;
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_closes_the_listener_and_the_store_that_it_opened() {
    let broker = TestBroker::start().await;
    let (address, store) = (broker.broker.local_addr(), broker.broker.store().clone());
    let _dir = broker.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens");
    assert!(store.init_producer_id().is_err(), "nothing more is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_serves_one_broker_at_a_time() {
    let broker = TestBroker::start().await;
    let second = Broker::builder()
        .data_dir(broker.dir.path())
        .listen(SocketAddr::from(([127, 0, 0, 1], 0)))
        .start()
        .await;
    assert_eq!(second.expect_err("locked").kind(), StartErrorKind::Storage);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_taken_is_named() {
    let taken = TestBroker::start().await;
    let address = taken.broker.local_addr();
    let dir = TempDir::new().expect("a directory");
    let error = Broker::builder().data_dir(dir.path()).listen(address).start().await.expect_err("taken");
    assert_eq!(error.kind(), StartErrorKind::Listen);
    assert_eq!(error.to_string(), format!("cannot listen on `{address}`"));
    assert!(error.source().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_cannot_work_do_not_start() {
    let error = Broker::builder().view("").start().await.expect_err("refused");
    assert_eq!(error.kind(), StartErrorKind::Settings);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_listens_on_several_addresses() {
    let dir = TempDir::new().expect("a directory");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let broker =
        Broker::builder().data_dir(dir.path()).listen(any).listen(any).start().await.expect("it starts");
    for address in broker.local_addrs() {
        let mut client = crate::client::Client::connect(*address).await;
        let response = client.metadata(&[], false).await;
        let node = response.brokers.iter().next().expect("a broker");
        assert_eq!(node.port, i32::from(address.port()), "clients stay at the address that they chose");
    }
    broker.shutdown().await.expect("a clean stop");
}
