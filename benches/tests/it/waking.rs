//! A thousand long polls on other partitions: an append wakes one, and nothing wakes any without an append.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use kolumn_broker::Broker;
use kolumn_kafka_wire::records::BatchBuilder;
use kolumn_topic_store::{
    Appended, Commit, Durability, NewTopic, PartitionIndex, Settings, Silent, Store, Timestamp, TopicConfig,
    TopicId,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const NOW: Timestamp = Timestamp::new(1_700_000_000_000);
const TOPIC: &str = "t";
/// Partitions that one fetch waits for, so that the connections get by with few open files.
const FETCHED_AT_ONCE: usize = 4;
const CONNECTIONS: usize = 250;
const PARTITIONS: usize = FETCHED_AT_ONCE * CONNECTIONS;

fn open(dir: &tempfile::TempDir) -> (Store, TopicId) {
    let disk = kolumn_journal::disk::buffered(dir.path()).unwrap();
    let settings = Settings { durability: Durability::Os, size_limit: Some(1 << 30), ..Settings::default() };
    let store = Store::open(disk, settings, 7, Arc::new(Silent::new()), NOW).unwrap();
    let view = store.ensure_view("kafka", NOW).unwrap().wait().unwrap();
    let partitions = i32::try_from(PARTITIONS).unwrap();
    let new = NewTopic { name: TOPIC.into(), partitions, config: TopicConfig::default() };
    let topic = store.create_topic(view.id, new, false, NOW).unwrap().wait().unwrap();
    (store, topic.id)
}

fn append(store: &Store, topic: TopicId, partition: usize) -> Commit<Appended> {
    let mut builder = BatchBuilder::new();
    builder.append(None, Some(b"news"), [], NOW.value()).unwrap();
    let partition = PartitionIndex::new(i32::try_from(partition).unwrap());
    store.append(topic, partition, builder.build().unwrap(), NOW).unwrap()
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn an_append_wakes_the_one_waiter_of_its_partition_among_a_thousand() {
    let dir = tempfile::tempdir().unwrap();
    let (store, topic) = open(&dir);
    let all = (0..PARTITIONS).map(|index| PartitionIndex::new(i32::try_from(index).unwrap()));
    let mut watches: Vec<_> = all.map(|partition| store.watch(&[(topic, partition)])).collect();
    let woken = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut waiting: Vec<_> = watches.iter_mut().map(|watch| Box::pin(watch.changed())).collect();
    for wait in &mut waiting {
        assert_eq!(wait.as_mut().poll(&mut context), Poll::Pending);
    }
    append(&store, topic, 500).wait().unwrap();
    let mut with_news = Vec::new();
    for (index, wait) in waiting.iter_mut().enumerate() {
        if wait.as_mut().poll(&mut context) == Poll::Ready(()) {
            with_news.push(index);
        }
    }
    assert_eq!(with_news, [500]);
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
}

#[test]
fn parked_fetches_of_a_thousand_partitions_sleep_and_an_append_answers_one() {
    let dir = tempfile::tempdir().unwrap();
    let (store, topic) = open(&dir);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let broker = Broker::builder()
            .store(store.clone())
            .listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .configure(|settings| settings.storage.maintenance_interval_ms = 3_600_000)
            .start()
            .await
            .unwrap();
        let mut clients = park(broker.local_addr()).await.unwrap();
        for _ in 0..1000 {
            if store.stats().watched == PARTITIONS {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(store.stats().watched, PARTITIONS, "every fetch waits for its partitions");

        // A timer for each fetch, or one for all that looks again, would wake the thread during this.
        let parks = || tokio::runtime::Handle::current().metrics().worker_park_count(0);
        let before = parks();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let during = parks() - before;
        assert!(during < 50, "{during} sleeps of the thread instead of one");

        append(&store, topic, 0).await.unwrap();
        let mut len = [0; 4];
        clients[0].read_exact(&mut len).await.unwrap();
        assert_eq!(store.stats().watched, PARTITIONS - FETCHED_AT_ONCE, "all others still wait");
        drop(clients);
        broker.shutdown().await.unwrap();
    });
}

/// Connections with a fetch each.
async fn park(address: SocketAddr) -> io::Result<Vec<TcpStream>> {
    let mut clients = Vec::new();
    for connection in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(&fetch(connection * FETCHED_AT_ONCE)).await?;
        clients.push(stream);
    }
    Ok(clients)
}

/// Fetch version 4 of some partitions from offset 0, without a client's id, with a minute of patience.
fn fetch(first: usize) -> Vec<u8> {
    let mut body = vec![0, 1, 0, 4, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    for field in [60_000_i32, 1, 1_000_000] {
        body.extend(field.to_be_bytes());
    }
    body.extend([0, 0, 0, 0, 1, 0, 1]);
    body.extend(TOPIC.as_bytes());
    body.extend(u32::try_from(FETCHED_AT_ONCE).unwrap().to_be_bytes());
    for partition in first..first + FETCHED_AT_ONCE {
        body.extend(u32::try_from(partition).unwrap().to_be_bytes());
        body.extend(0_i64.to_be_bytes());
        body.extend(1_000_000_i32.to_be_bytes());
    }
    [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat()
}
