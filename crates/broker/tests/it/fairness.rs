//! What one connection asks costs others little: their turn comes, and memory is counted.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kolumn_kafka_wire::messages::fetch_request::FetchPartition;
use kolumn_kafka_wire::messages::{ApiVersionsRequest, FetchRequest, MetadataRequest, OffsetFetchRequest};

use crate::client::{batch, fetch_request, frame, values};
use crate::groups_client;
use crate::harness::{TestBroker, until};

/// Sends requests without a pause and throws the answers away, until it is told to stop.
fn flood(address: SocketAddr, over: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let request = MetadataRequest { topics: None, ..MetadataRequest::default() };
    let frames: Vec<u8> = (0..32).flat_map(|index| frame(index, 9, &request)).collect();
    let stream = TcpStream::connect(address).expect("a connection");
    let mut answers = stream.try_clone().expect("a second handle");
    let over = Arc::clone(over);
    std::thread::spawn(move || {
        let draining = std::thread::spawn(move || {
            let mut thrown_away = vec![0; 1 << 20];
            while answers.read(&mut thrown_away).is_ok_and(|len| len > 0) {}
        });
        let mut requests = &stream;
        while !over.load(Ordering::Relaxed) {
            requests.write_all(&frames).expect("requests are read");
        }
        stream.shutdown(Shutdown::Both).expect("open until now");
        draining.join().expect("answers were read");
    })
}

#[test]
fn a_connection_that_never_pauses_keeps_nobody_waiting() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    // All connections share one thread.
    let runtime = runtime.worker_threads(1).enable_all().build().expect("a runtime");
    let broker = runtime.block_on(async {
        let broker = TestBroker::start().await;
        let mut client = broker.client().await;
        for index in 0..100 {
            client.create_topic(&format!("topic-{index}"), 10).await;
        }
        broker
    });
    let over = Arc::new(AtomicBool::new(false));
    let floods = [flood(broker.broker.local_addr(), &over), flood(broker.broker.local_addr(), &over)];
    let question = frame(1, 0, &ApiVersionsRequest::default());
    for _ in 0..20 {
        let mut other = TcpStream::connect(broker.broker.local_addr()).expect("a connection");
        other.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
        other.write_all(&question).expect("a question");
        let mut len = [0; 4];
        other.read_exact(&mut len).expect("an answer, although others never pause");
    }
    over.store(true, Ordering::Relaxed);
    for flood in floods {
        flood.join().expect("ends when it is told to");
    }
    runtime.block_on(broker.stop());
}

#[tokio::test]
async fn a_partition_that_a_fetch_names_many_times_is_read_once_as_it_was_named_last() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    client.produce("t", 0, batch(&["a", "b"])).await;
    client.produce("t", 0, batch(&["c"])).await;
    let mut request: FetchRequest<'static> = fetch_request("t", 0, 0);
    let mut topic = request.topics.iter().next().expect("one topic");
    let named = |fetch_offset| FetchPartition {
        partition: 0,
        fetch_offset,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    topic.partitions = std::iter::repeat_n(named(0), 30_000).chain([named(2)]).collect::<Vec<_>>().into();
    request.topics = vec![topic].into();
    let response = client.call(12, &request).await;
    let partitions: Vec<_> = response.responses.iter().next().expect("one topic").partitions.iter().collect();
    assert_eq!(partitions.len(), 1);
    assert_eq!(values(&partitions[0]), [(2, "c".to_owned())]);
    broker.stop().await;
}

#[tokio::test]
async fn large_answers_that_nobody_reads_are_bounded_for_all_connections_together() {
    const PARTITIONS: i32 = 6_000;
    let broker = TestBroker::start_with(|settings| settings.limits.answers_len_max = 32 << 20).await;
    let mut client = broker.client().await;
    client.create_topic("t", PARTITIONS).await;
    let metadata = "m".repeat(4_000);
    let offsets: Vec<_> = (0..PARTITIONS).map(|partition| (partition, 7, metadata.as_str())).collect();
    for offsets in offsets.chunks(200) {
        groups_client::commit(&mut client, "g", "t", offsets).await;
    }
    // 24 MB each, of which the sockets take a few.
    let question = groups_client::fetch_request(8, "g", None);
    let mut silent = broker.client().await;
    let mut refused = broker.client().await;
    let id = silent.send(8, &question).await;
    // It is counted before its first byte is written.
    silent.stream.readable().await.expect("the answer begins");
    refused.send(8, &question).await;
    refused.expect_close().await;
    until("the reason is told", || broker.recorder.count("AnswersTooLong") == 1).await;
    // Who reads is served, and makes room for others.
    let read = silent.receive::<OffsetFetchRequest<'static>>(8, id).await.expect("an answer");
    let group = read.groups.iter().next().expect("one group");
    assert_eq!(group.topics.iter().map(|topic| topic.partitions.len()).sum::<usize>(), 6_000);
    let mut again = broker.client().await;
    assert_eq!(groups_client::committed(&mut again, "g").await.len(), 6_000);
    broker.stop().await;
}
