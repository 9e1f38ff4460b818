//! Small batches that inflate to much: they take their time from each other, and keep their place.

use bytes::Bytes;
use kolumn_broker::Settings;
use kolumn_kafka_wire::ErrorCode;
use kolumn_kafka_wire::messages::{ApiVersionsRequest, ProduceRequest, ProduceResponse};
use kolumn_kafka_wire::records::{BatchBuilder, Compression};
use kolumn_topic_store::PartitionIndex;

use crate::client::{Client, batch, frame, produce_request};
use crate::harness::{TestBroker, until};

/// A batch of one record of 32 MiB, a thousandth of that as it is sent.
fn bomb(builder: BatchBuilder) -> Bytes {
    let mut builder = builder.with_compression(Compression::Zstd);
    builder.append(None, Some(&vec![0; 32 << 20]), [], 1_700_000_000_000).expect("a record");
    let bomb = builder.build().expect("a batch");
    assert!(bomb.len() < 32 << 10, "{}", bomb.len());
    bomb
}

/// Sends these to `orders` at once, with the correlation ids 1, 2, 3 ...
async fn pipeline(client: &mut Client, batches: impl IntoIterator<Item = Bytes>) {
    let frames = batches.into_iter().zip(1..).map(|(batch, id)| {
        let request: ProduceRequest<'static> = produce_request("orders", 0, batch, -1);
        frame(id, 9, &request)
    });
    client.send_bytes(&frames.collect::<Vec<_>>().concat()).await;
}

/// The code and the offset that the next response has, which has to be the one with this id.
async fn produced(client: &mut Client, id: i32) -> (ErrorCode, i64) {
    let response: ProduceResponse<'static> =
        client.receive::<ProduceRequest<'_>>(9, id).await.expect("an answer");
    let topic = response.responses.iter().next().expect("a topic");
    let partition = topic.partition_responses.iter().next().expect("a partition");
    (partition.error_code, partition.base_offset)
}

// Everything of the broker that is not handed to another thread runs on this one.
#[tokio::test(flavor = "current_thread")]
async fn others_are_answered_while_batches_are_inflated() {
    const COUNT: i32 = 24;
    let broker = TestBroker::start().await;
    let (mut producer, mut other) = (broker.client().await, broker.client().await);
    producer.create_topic("orders", 1).await;
    other.call(4, &ApiVersionsRequest::default()).await;
    let store = broker.broker.store().clone();
    let view = store.view(&Settings::default().view).expect("the broker's view");
    let topic = store.topic(view.id, "orders").expect("it was created").id;
    let before = broker.broker.stats().requests;
    let bomb = bomb(BatchBuilder::new());
    pipeline(&mut producer, (0..COUNT).map(|_| bomb.clone())).await;
    until("the first is being inflated", || broker.broker.stats().requests > before).await;
    other.call(4, &ApiVersionsRequest::default()).await;
    let appended = store.offsets(topic, PartitionIndex::new(0)).expect("known").high_watermark.value();
    assert!(appended <= i64::from(COUNT) / 2, "answered after {appended} batches only");
    for (id, offset) in (1..=COUNT).zip(0..) {
        assert_eq!(produced(&mut producer, id).await, (ErrorCode::NONE, offset));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pipelined_behind_a_batch_that_takes_long_keeps_its_order() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("orders", 1).await;
    // Sequences of one producer: any other order would be refused.
    let builder = |sequence| BatchBuilder::new().with_producer(7, 0, sequence);
    let small = |sequence| crate::client::build(builder(sequence), &["small"], 1_700_000_000_000);
    let batches = [small(0), bomb(builder(1)), small(2), small(3), bomb(builder(4)), small(5)];
    pipeline(&mut client, batches).await;
    for (id, offset) in (1..=6).zip(0..) {
        assert_eq!(produced(&mut client, id).await, (ErrorCode::NONE, offset));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_behind_one_that_takes_long_are_answered_as_usual() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("orders", 3).await;
    let mut request = produce_request("orders", 0, batch(&["first"]), -1);
    let mut topic = request.topic_data.iter().next().expect("a topic");
    let mut partitions: Vec<_> = topic.partition_data.iter().collect();
    for (index, records) in [(1, bomb(BatchBuilder::new())), (9, batch(&["nowhere"])), (2, batch(&["last"]))]
    {
        let mut partition = partitions[0].clone();
        (partition.index, partition.records) = (index, Some(records.into()));
        partitions.push(partition);
    }
    topic.partition_data = partitions.into();
    request.topic_data = vec![topic].into();
    let response = client.call(9, &request).await;
    let topic = response.responses.iter().next().expect("a topic");
    let answers = topic.partition_responses.iter().map(|answer| (answer.index, answer.error_code));
    let expected = [
        (0, ErrorCode::NONE),
        (1, ErrorCode::NONE),
        (9, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        (2, ErrorCode::NONE),
    ];
    assert_eq!(answers.collect::<Vec<_>>(), expected);
}
