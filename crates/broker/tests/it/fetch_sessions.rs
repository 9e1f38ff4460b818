//! Incremental fetch sessions: what a client is told, what it is not told again, and how a session ends.

use std::time::Duration;

use kolumn_kafka_wire::messages::{
    DeleteTopicsRequest, FetchRequest, FetchResponse,
    fetch_request::{FetchPartition, FetchTopic, ForgottenTopic},
    fetch_response::PartitionData,
};
use kolumn_kafka_wire::{ErrorCode, Str, Uuid};
use tokio::time::Instant;

use crate::client::{Client, batch, bytes, values};
use crate::harness::TestBroker;

/// Longer than the patience of a test.
const LONG_MS: i32 = 60_000;

/// A consumer that keeps a session: what it will say in its next request.
struct Consumer {
    client: Client,
    version: i16,
    session_id: i32,
    epoch: i32,
    request: FetchRequest<'static>,
}

impl Consumer {
    async fn connect(broker: &TestBroker, version: i16) -> Self {
        let client = broker.client().await;
        let request = FetchRequest { max_bytes: 50 << 20, ..FetchRequest::default() };
        Self { client, version, session_id: 0, epoch: 0, request }
    }

    /// In a session with all partitions of one topic from offset 0; what is there was told.
    async fn with_session(broker: &TestBroker, topic: &'static str, partitions: i32) -> Self {
        let mut consumer = Self::connect(broker, 12).await;
        let all: Vec<_> = (0..partitions).map(|partition| (partition, 0)).collect();
        let response = consumer.fetch(&named(topic, &all), &[]).await;
        assert!(response.session_id > 0 && response.error_code == ErrorCode::NONE, "{response:?}");
        consumer
    }

    fn next(
        &mut self,
        topics: &[FetchTopic<'static>],
        forgotten: &[ForgottenTopic<'static>],
    ) -> FetchRequest<'static> {
        let request = FetchRequest {
            session_id: self.session_id,
            session_epoch: self.epoch,
            topics: topics.to_vec().into(),
            forgotten_topics_data: forgotten.to_vec().into(),
            ..self.request.clone()
        };
        self.epoch += 1;
        request
    }

    /// The next request of the session, and its answer.
    async fn fetch(
        &mut self,
        topics: &[FetchTopic<'static>],
        forgotten: &[ForgottenTopic<'static>],
    ) -> FetchResponse<'static> {
        let request = self.next(topics, forgotten);
        let response = self.client.call(self.version, &request).await;
        self.session_id = response.session_id;
        response
    }

    /// A request that changes nothing: the partitions that are told.
    async fn poll(&mut self) -> Vec<PartitionData<'static>> {
        let response = self.fetch(&[], &[]).await;
        assert_eq!(response.error_code, ErrorCode::NONE);
        told(&response)
    }
}

fn topic(name: &'static str, topic_id: Uuid, wanted: &[FetchPartition<'static>]) -> Vec<FetchTopic<'static>> {
    let partitions = wanted.to_vec().into();
    vec![FetchTopic { topic: Str::from(name), topic_id, partitions, ..FetchTopic::default() }]
}

fn wanted(partition: i32, fetch_offset: i64) -> FetchPartition<'static> {
    FetchPartition { partition, fetch_offset, partition_max_bytes: 1 << 20, ..FetchPartition::default() }
}

fn named(name: &'static str, all: &[(i32, i64)]) -> Vec<FetchTopic<'static>> {
    let all: Vec<_> = all.iter().map(|(partition, offset)| wanted(*partition, *offset)).collect();
    topic(name, Uuid::ZERO, &all)
}

fn forgotten(name: &'static str, topic_id: Uuid, partitions: &[i32]) -> Vec<ForgottenTopic<'static>> {
    let partitions = partitions.to_vec().into();
    vec![ForgottenTopic { topic: Str::from(name), topic_id, partitions, ..ForgottenTopic::default() }]
}

fn told(response: &FetchResponse<'static>) -> Vec<PartitionData<'static>> {
    response.responses.iter().flat_map(|topic| topic.partitions).collect()
}

fn indexes(told: &[PartitionData<'static>]) -> Vec<i32> {
    told.iter().map(|partition| partition.partition_index).collect()
}

async fn delete(client: &mut Client, name: &'static str) {
    let request =
        DeleteTopicsRequest { topic_names: vec![Str::from(name)].into(), ..DeleteTopicsRequest::default() };
    client.call(5, &request).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_told_only_what_changed() {
    let broker = TestBroker::start().await;
    let mut producer = broker.client().await;
    producer.create_topic("quiet", 3).await;
    let mut consumer = Consumer::with_session(&broker, "quiet", 3).await;
    assert!(consumer.poll().await.is_empty(), "nothing has changed");
    producer.produce("quiet", 1, batch(&["news"])).await;
    let news = consumer.poll().await;
    assert_eq!((indexes(&news), values(&news[0])), (vec![1], vec![(0, "news".to_owned())]));
    assert_eq!(indexes(&consumer.poll().await), [1], "records come until the client says that it has them");
    assert!(told(&consumer.fetch(&named("quiet", &[(1, 1)]), &[]).await).is_empty());
    // The client has moved on by itself, and so knows nothing of the end that moves.
    producer.produce("quiet", 2, batch(&["a"])).await;
    consumer.fetch(&named("quiet", &[(2, 1)]), &[]).await;
    producer.produce("quiet", 2, batch(&["b"])).await;
    let news = told(&consumer.fetch(&named("quiet", &[(2, 2)]), &[]).await);
    assert_eq!((indexes(&news), news[0].high_watermark, bytes(&news[0]).len()), (vec![2], 2, 0));
    assert!(consumer.poll().await.is_empty(), "which is told once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incremental_fetch_without_changes_waits_to_its_deadline() {
    let broker = TestBroker::start().await;
    broker.client().await.create_topic("idle", 2).await;
    let mut consumer = Consumer::with_session(&broker, "idle", 2).await;
    (consumer.request.max_wait_ms, consumer.request.min_bytes) = (300, 1);
    let started = Instant::now();
    assert!(consumer.poll().await.is_empty());
    assert!(started.elapsed() >= Duration::from_millis(300), "it waits, so that clients do not spin");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incremental_fetch_that_names_nothing_waits_for_all_partitions_of_its_session() {
    let broker = TestBroker::start().await;
    let mut producer = broker.client().await;
    producer.create_topic("awaited", 3).await;
    let mut consumer = Consumer::with_session(&broker, "awaited", 3).await;
    (consumer.request.max_wait_ms, consumer.request.min_bytes) = (LONG_MS, 1);
    for partition in [2, 0] {
        let changed = named("awaited", if partition == 0 { &[(2, 1)] } else { &[] });
        let request = consumer.next(&changed, &[]);
        let id = consumer.client.send(12, &request).await;
        broker.until("the fetch waits", |stats| stats.long_polls == 1).await;
        producer.produce("awaited", partition, batch(&["news"])).await;
        let response = consumer.client.receive::<FetchRequest<'_>>(12, id).await.expect("an answer");
        assert_eq!(indexes(&told(&response)), [partition]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_answer_starves_no_partition_of_its_session() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("busy", 4).await;
    let sent = batch(&[&"x".repeat(1_000)]);
    let mut consumer = Consumer::with_session(&broker, "busy", 4).await;
    for partition in 0..4 {
        for _ in 0..3 {
            client.produce("busy", partition, sent.clone()).await;
        }
    }
    consumer.request.max_bytes = i32::try_from(sent.len()).expect("small");
    let mut offsets = [0; 4];
    let mut served = Vec::new();
    let mut moved = Vec::new();
    for _ in 0..12 {
        let news = told(&consumer.fetch(&named("busy", &moved), &[]).await);
        let full: Vec<_> = news.iter().filter(|found| !bytes(found).is_empty()).collect();
        assert_eq!((full.len(), bytes(full[0]).len()), (1, sent.len()), "one batch fills an answer");
        let partition = full[0].partition_index;
        let offset = &mut offsets[usize::try_from(partition).expect("an index")];
        *offset += 1;
        moved = vec![(partition, *offset)];
        served.push(partition);
    }
    assert_eq!(served, [0, 1, 2, 3].repeat(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_an_answer_hold_for_a_session_of_many_partitions() {
    let broker = TestBroker::start_with(|settings| settings.limits.fetch_len_max = 5_000).await;
    let mut client = broker.client().await;
    client.create_topic("many", 50).await;
    let mut consumer = Consumer::with_session(&broker, "many", 50).await;
    for partition in 0..50 {
        client.produce("many", partition, batch(&[&"y".repeat(1_000)])).await;
    }
    client.create_topic("large", 1).await;
    client.produce("large", 0, batch(&[&"z".repeat(9_000)])).await;
    consumer.request.max_bytes = i32::MAX;
    for _ in 0..13 {
        let lens: Vec<_> = consumer.poll().await.iter().map(|found| bytes(found).len()).collect();
        let sum = lens.iter().sum::<usize>();
        assert!((4_000..=5_000).contains(&sum), "{lens:?}");
    }
    let mut consumer = Consumer::with_session(&broker, "large", 1).await;
    for max_bytes in [0, 1, -1] {
        consumer.request.max_bytes = max_bytes;
        assert_eq!(values(&consumer.poll().await[0]).len(), 1, "the first batch comes whole, {max_bytes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_what_was_never_there_harms_nothing() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let id = client.create_topic("kept", 2).await;
    for (version, name, id) in [(12, "kept", Uuid::ZERO), (13, "", id)] {
        let mut consumer = Consumer::connect(&broker, version).await;
        let session = consumer.fetch(&topic(name, id, &[wanted(0, 0), wanted(1, 0)]), &[]).await.session_id;
        let strange =
            [forgotten("", Uuid::ZERO, &[0, 1]), forgotten("other", Uuid::from_bytes([1; 16]), &[0])];
        let response = consumer.fetch(&[], &strange.concat()).await;
        assert_eq!(
            (response.error_code, response.session_id),
            (ErrorCode::NONE, session),
            "version {version}"
        );
        let response = consumer.fetch(&[], &forgotten(name, id, &[0])).await;
        assert_eq!((response.error_code, response.session_id), (ErrorCode::NONE, session));
        client.produce("kept", 0, batch(&["forgotten"])).await;
        client.produce("kept", 1, batch(&["wanted"])).await;
        assert_eq!(indexes(&consumer.poll().await), [1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_remembers_the_epoch_that_its_client_knows() {
    let broker = TestBroker::start().await;
    broker.client().await.create_topic("epochs", 1).await;
    // Opened again, so that there is an epoch before the present one.
    let broker = TestBroker::start_in(broker.stop().await, |_| {}).await;
    let mut client = broker.client().await;
    let metadata = client.metadata(&["epochs"], false).await;
    let current =
        metadata.topics.iter().next().expect("a topic").partitions.iter().next().expect("one").leader_epoch;
    let knowing = |epoch| {
        topic("epochs", Uuid::ZERO, &[FetchPartition { current_leader_epoch: epoch, ..wanted(0, 0) }])
    };
    let mut consumer = Consumer::with_session(&broker, "epochs", 1).await;
    for (epoch, code) in
        [(current - 1, ErrorCode::FENCED_LEADER_EPOCH), (current + 1, ErrorCode::UNKNOWN_LEADER_EPOCH)]
    {
        let response = consumer.fetch(&knowing(epoch), &[]).await;
        assert_eq!(told(&response)[0].error_code, code, "epoch {epoch} of {current}");
        for _ in 0..2 {
            assert_eq!(consumer.poll().await[0].error_code, code, "also when it is not said again");
        }
        let again = told(&consumer.fetch(&knowing(current), &[]).await);
        assert_eq!(again[0].error_code, ErrorCode::NONE, "the end of an error is news");
        assert!(consumer.poll().await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_made_again_is_another_one_in_a_session_by_ids() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let old = client.create_topic("again", 1).await;
    client.produce("again", 0, batch(&["old"])).await;
    let mut consumer = Consumer::connect(&broker, 13).await;
    let session = consumer.fetch(&topic("", old, &[wanted(0, 1)]), &[]).await.session_id;
    delete(&mut client, "again").await;
    let new = client.create_topic("again", 1).await;
    client.produce("again", 0, batch(&["new"])).await;
    let response = consumer.fetch(&[], &[]).await;
    let answered = response.responses.iter().next().expect("a topic");
    assert_eq!((answered.topic_id, told(&response)[0].error_code), (old, ErrorCode::UNKNOWN_TOPIC_ID));
    let response = consumer.fetch(&topic("", new, &[wanted(0, 0)]), &forgotten("", old, &[0])).await;
    let ids: Vec<_> = response.responses.iter().map(|topic| topic.topic_id).collect();
    assert_eq!((response.session_id, ids), (session, vec![new]));
    assert_eq!(values(&told(&response)[0]), [(0, "new".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_made_again_is_found_by_its_name() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let mut consumer = Consumer::connect(&broker, 12).await;
    let codes =
        |told: &[PartitionData<'static>]| told.iter().map(|found| found.error_code).collect::<Vec<_>>();
    let response = consumer.fetch(&named("later", &[(0, 0)]), &[]).await;
    assert!(response.session_id > 0);
    assert_eq!(codes(&told(&response)), [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION]);
    for value in ["first", "second"] {
        client.create_topic("later", 1).await;
        client.produce("later", 0, batch(&[value])).await;
        assert_eq!(values(&consumer.poll().await[0]), [(0, value.to_owned())]);
        delete(&mut client, "later").await;
        for _ in 0..2 {
            assert_eq!(codes(&consumer.poll().await), [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_does_not_fit_its_session_is_refused_and_changes_nothing() {
    let broker = TestBroker::start().await;
    broker.client().await.create_topic("strict", 1).await;
    let mut consumer = Consumer::with_session(&broker, "strict", 1).await;
    let known = consumer.session_id;
    let unknown = if known == 1 { 2 } else { known - 1 };
    let cases = [
        (12, unknown, 1, ErrorCode::FETCH_SESSION_ID_NOT_FOUND),
        (12, 0, 1, ErrorCode::FETCH_SESSION_ID_NOT_FOUND),
        (12, -1, 1, ErrorCode::FETCH_SESSION_ID_NOT_FOUND),
        (12, known, 2, ErrorCode::INVALID_FETCH_SESSION_EPOCH),
        (12, known, i32::MAX, ErrorCode::INVALID_FETCH_SESSION_EPOCH),
        (12, known, -2, ErrorCode::INVALID_FETCH_SESSION_EPOCH),
        (13, known, 1, ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR),
    ];
    for (version, session_id, session_epoch, code) in cases {
        let request = FetchRequest {
            session_id,
            session_epoch,
            max_wait_ms: LONG_MS,
            min_bytes: 1,
            ..FetchRequest::default()
        };
        let response = consumer.client.call(version, &request).await;
        assert_eq!(
            (response.error_code, response.responses.len()),
            (code, 0),
            "{session_id} {session_epoch}"
        );
    }
    assert!(consumer.poll().await.is_empty());
    assert_eq!(consumer.session_id, known);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_fetch_ends_the_session_that_it_names() {
    let broker = TestBroker::start().await;
    broker.client().await.create_topic("ended", 2).await;
    for (epoch, renewed) in [(0, true), (-1, false)] {
        let mut consumer = Consumer::with_session(&broker, "ended", 2).await;
        let old = consumer.session_id;
        consumer.epoch = epoch;
        let response = consumer.fetch(&named("ended", &[(0, 0), (1, 0)]), &[]).await;
        assert_eq!(
            (response.error_code, indexes(&told(&response))),
            (ErrorCode::NONE, vec![0, 1]),
            "in full"
        );
        assert_eq!((response.session_id > 0, response.session_id != old), (renewed, true));
        let request = FetchRequest { session_id: old, session_epoch: 1, ..FetchRequest::default() };
        let response = consumer.client.call(12, &request).await;
        assert_eq!(response.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    }
    let mut consumer = Consumer::connect(&broker, 12).await;
    consumer.epoch = -1;
    assert_eq!(consumer.fetch(&named("ended", &[(0, 0)]), &[]).await.session_id, 0, "and none is wanted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_forgotten_everything_has_ended() {
    let broker = TestBroker::start().await;
    broker.client().await.create_topic("empty", 2).await;
    let mut consumer = Consumer::with_session(&broker, "empty", 2).await;
    let id = consumer.session_id;
    let response = consumer.fetch(&[], &forgotten("empty", Uuid::ZERO, &[0, 1])).await;
    assert_eq!((response.error_code, response.session_id, told(&response)), (ErrorCode::NONE, 0, vec![]));
    consumer.session_id = id;
    assert_eq!(consumer.fetch(&[], &[]).await.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    let mut consumer = Consumer::connect(&broker, 12).await;
    assert_eq!(consumer.fetch(&[], &[]).await.session_id, 0, "nor does it begin so");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_requests_with_one_epoch_the_second_is_refused() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("twice", 1).await;
    let mut consumer = Consumer::with_session(&broker, "twice", 1).await;
    (consumer.request.max_wait_ms, consumer.request.min_bytes) = (LONG_MS, 1);
    let first = consumer.next(&[], &[]);
    let waiting = consumer.client.send(12, &first).await;
    broker.until("the first waits", |stats| stats.long_polls == 1).await;
    let refused = client.call(12, &first).await;
    assert_eq!(refused.error_code, ErrorCode::INVALID_FETCH_SESSION_EPOCH);
    assert_eq!(broker.broker.stats().long_polls, 1, "the first goes on");
    // The request that follows ends the wait of the one before: whoever sends it no longer expects that answer.
    let next = FetchRequest { max_wait_ms: 0, ..consumer.next(&[], &[]) };
    assert_eq!(client.call(12, &next).await.error_code, ErrorCode::NONE);
    let late = consumer.client.receive::<FetchRequest<'_>>(12, waiting).await.expect("an answer");
    assert_eq!(late.error_code, ErrorCode::INVALID_FETCH_SESSION_EPOCH);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_sent_behind_one_another_meet_their_session_in_order() {
    let broker = TestBroker::start().await;
    let mut producer = broker.client().await;
    producer.create_topic("piped", 1).await;
    let mut consumer = Consumer::with_session(&broker, "piped", 1).await;
    let mut sent = Vec::new();
    for max_wait_ms in [LONG_MS, 0, 0] {
        (consumer.request.max_wait_ms, consumer.request.min_bytes) = (max_wait_ms, 1);
        let request = consumer.next(&[], &[]);
        sent.push(consumer.client.send(12, &request).await);
    }
    broker.until("the first waits", |stats| stats.long_polls == 1).await;
    producer.produce("piped", 0, batch(&["x"])).await;
    for id in sent {
        let response = consumer.client.receive::<FetchRequest<'_>>(12, id).await.expect("an answer");
        assert_eq!((response.error_code, indexes(&told(&response))), (ErrorCode::NONE, vec![0]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_answer_that_was_never_given_would_have_told_is_still_news() {
    let broker = TestBroker::start().await;
    let mut producer = broker.client().await;
    producer.create_topic("lost", 1).await;
    producer.produce("lost", 0, batch(&["told"])).await;
    let mut consumer = Consumer::with_session(&broker, "lost", 1).await;
    (consumer.request.max_wait_ms, consumer.request.min_bytes) = (LONG_MS, 1 << 20);
    let request = consumer.next(&named("lost", &[(0, 1)]), &[]);
    consumer.client.send(12, &request).await;
    broker.until("the fetch waits", |stats| stats.long_polls == 1).await;
    producer.produce("lost", 0, batch(&["not told"])).await;
    consumer.client = broker.client().await;
    broker.until("it is given up", |stats| stats.long_polls == 0).await;
    consumer.request.max_wait_ms = 0;
    let repeated = consumer.client.call(12, &request).await;
    assert_eq!(repeated.error_code, ErrorCode::INVALID_FETCH_SESSION_EPOCH, "so that its client begins anew");
    let news = told(&consumer.fetch(&named("lost", &[(0, 2)]), &[]).await);
    assert_eq!((indexes(&news), news[0].high_watermark), (vec![0], 2));
    assert!(consumer.poll().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_finds_no_room_for_a_session_fetches_in_full() {
    let broker = TestBroker::start_with(|settings| {
        (settings.limits.fetch_sessions_max, settings.limits.fetch_session_partitions_max) = (1, 3);
    })
    .await;
    broker.client().await.create_topic("room", 4).await;
    let mut first = Consumer::with_session(&broker, "room", 2).await;
    let mut second = Consumer::connect(&broker, 12).await;
    for _ in 0..2 {
        second.epoch = 0;
        let response = second.fetch(&named("room", &[(0, 0), (1, 0)]), &[]).await;
        assert_eq!((response.error_code, response.session_id), (ErrorCode::NONE, 0));
        assert_eq!(indexes(&told(&response)), [0, 1]);
    }
    let id = first.session_id;
    let response = first.fetch(&named("room", &[(2, 0)]), &[]).await;
    assert_eq!(
        (response.session_id, indexes(&told(&response))),
        (id, vec![2]),
        "up to the limit it may grow"
    );
    let response = first.fetch(&named("room", &[(3, 0)]), &[]).await;
    assert_eq!((response.error_code, response.session_id), (ErrorCode::NONE, 0), "beyond it, it ends");
    assert_eq!(indexes(&told(&response)), [3], "with an answer");
    first.session_id = id;
    assert_eq!(first.fetch(&[], &[]).await.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    second.epoch = 0;
    let response = second.fetch(&named("room", &[(0, 0)]), &[]).await;
    assert!(response.session_id > 0, "and makes room");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_no_topic_can_have_is_not_remembered() {
    let broker = TestBroker::start().await;
    broker.client().await.create_topic("fine", 1).await;
    let mut consumer = Consumer::connect(&broker, 12).await;
    let long: &'static str = Box::leak("n".repeat(250).into_boxed_str());
    let response = consumer.fetch(&named(long, &[(0, 0)]), &[]).await;
    assert_eq!(told(&response)[0].error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(response.session_id, 0);
    let mut consumer = Consumer::with_session(&broker, "fine", 1).await;
    let response = consumer.fetch(&named(long, &[(0, 0)]), &[]).await;
    assert_eq!(told(&response)[0].error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(response.session_id, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn aborted_transactions_are_null_in_a_session_unless_committed_records_are_asked_for() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("plain", 1).await;
    let mut consumer = Consumer::with_session(&broker, "plain", 1).await;
    client.produce("plain", 0, batch(&["x"])).await;
    for (isolation_level, expected) in [(0, None), (1, Some(0)), (0, None)] {
        consumer.request.isolation_level = isolation_level;
        let news = consumer.poll().await;
        let found = &news[0];
        assert_eq!(found.aborted_transactions.as_ref().map(kolumn_kafka_wire::Array::len), expected);
        assert_eq!((values(found).len(), found.last_stable_offset), (1, found.high_watermark));
    }
}
