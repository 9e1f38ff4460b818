//! Producing: what is appended, what is refused and with which code.

use bytes::Bytes;
use kolumn_kafka_wire::messages::{
    FetchRequest, ProduceRequest,
    produce_request::{PartitionProduceData, TopicProduceData},
};
use kolumn_kafka_wire::records::{BatchBuilder, Compression, Header, batches};
use kolumn_kafka_wire::{ErrorCode, Records, Str, Uuid};

use crate::client::{
    Client, batch, build, bytes, fetch_request, init_producer_request, only_partition, produce_request,
    values,
};
use crate::harness::TestBroker;

const NOW: i64 = 1_700_000_000_000;

async fn code(client: &mut Client, version: i16, batch: Bytes) -> ErrorCode {
    let response = client.call(version, &produce_request("orders", 0, batch, -1)).await;
    let topic = response.responses.iter().next().expect("a topic");
    topic.partition_responses.iter().next().expect("a partition").error_code
}

async fn orders() -> (TestBroker, Client) {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("orders", 1).await;
    (broker, client)
}

/// Writes the checksum anew after a batch was changed.
fn sealed(mut batch: Vec<u8>) -> Bytes {
    let (parsed, _) = kolumn_kafka_wire::records::Batch::parse(&batch).expect("a batch");
    let crc = parsed.computed_crc();
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_produced_record_is_fetched_with_the_same_bytes() {
    let (_broker, mut client) = orders().await;
    let first = client.produce("orders", 0, batch(&["a", "b", "c"])).await;
    assert_eq!((first.error_code, first.base_offset), (ErrorCode::NONE, 0), "the offset of its first record");
    assert_eq!((first.log_append_time_ms, first.log_start_offset), (-1, 0));
    let second = client.produce("orders", 0, batch(&["d"])).await;
    assert_eq!((second.error_code, second.base_offset), (ErrorCode::NONE, 3));
    let fetched = client.fetch("orders", 0, 1).await;
    let expected =
        ["a", "b", "c", "d"].into_iter().zip(0..).map(|(value, offset)| (offset, value.to_owned()));
    let expected: Vec<(i64, String)> = expected.collect();
    assert_eq!(values(&fetched), expected, "the batch that holds the offset comes whole");
    assert_eq!(fetched.high_watermark, 4);
    let sent = batch(&["a", "b", "c"]);
    assert_eq!(
        bytes(&fetched)[16..sent.len()],
        sent[16..],
        "all but base offset and leader epoch is as sent"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_codec_keeps_its_bytes_and_its_attributes() {
    let (_broker, mut client) = orders().await;
    let codecs =
        [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    let mut offset = 0;
    for codec in codecs {
        let sent = build(BatchBuilder::new().with_compression(codec), &["x".repeat(500).as_str(), "y"], NOW);
        let produced = client.produce("orders", 0, sent.clone()).await;
        assert_eq!((produced.error_code, produced.base_offset), (ErrorCode::NONE, offset), "{codec:?}");
        let fetched = bytes(&client.fetch("orders", 0, offset).await);
        let stored = batches(&fetched).next().expect("a batch").expect("whole");
        assert_eq!(stored.attributes().codec().ok(), Some(codec));
        assert_eq!(fetched[21..], sent[21..]);
        offset += 2;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn zstd_before_version_7_is_an_error_of_its_partition_and_no_disconnect() {
    let (_broker, mut client) = orders().await;
    let zstd = || build(BatchBuilder::new().with_compression(Compression::Zstd), &["x"], NOW);
    for version in 3..=6 {
        assert_eq!(code(&mut client, version, zstd()).await, ErrorCode::UNSUPPORTED_COMPRESSION_TYPE);
    }
    assert_eq!(code(&mut client, 7, zstd()).await, ErrorCode::NONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_is_a_corrupt_message_before_anything_else() {
    let (_broker, mut client) = orders().await;
    let mut flipped = batch(&["a"]).to_vec();
    *flipped.last_mut().expect("a byte") ^= 1;
    assert_eq!(code(&mut client, 9, flipped.clone().into()).await, ErrorCode::CORRUPT_MESSAGE);
    // Also where something else is wrong with it: another batch behind it, an unknown codec, a control bit.
    let doubled = [&flipped[..], &batch(&["b"])[..]].concat();
    assert_eq!(code(&mut client, 9, doubled.into()).await, ErrorCode::CORRUPT_MESSAGE);
    for attribute in [0x07, 0x20, 0x10] {
        let mut marked = flipped.clone();
        marked[22] |= attribute;
        assert_eq!(code(&mut client, 9, marked.into()).await, ErrorCode::CORRUPT_MESSAGE, "{attribute}");
    }
    assert_eq!(client.fetch("orders", 0, 0).await.high_watermark, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_producer_may_send_is_an_invalid_record() {
    let (_broker, mut client) = orders().await;
    let marked = |bits: u8| {
        let mut batch = batch(&["a"]).to_vec();
        batch[22] |= bits;
        sealed(batch)
    };
    let two_batches = Bytes::from([batch(&["a"]), batch(&["b"])].concat());
    for (what, records) in [
        ("two batches", two_batches),
        ("a control batch", marked(0x20)),
        ("codec 5", marked(0x05)),
        ("codec 7", marked(0x07)),
        ("no batch", Bytes::new()),
    ] {
        assert_eq!(code(&mut client, 9, records).await, ErrorCode::INVALID_RECORD, "{what}");
    }
    assert_eq!(client.fetch("orders", 0, 0).await.high_watermark, 0, "the high watermark has not moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_lengths_and_counts_are_refused_and_the_connection_goes_on() {
    let (_broker, mut client) = orders().await;
    let with = |at: usize, value: u32| {
        let mut batch = batch(&["a"]).to_vec();
        batch[at..at + 4].copy_from_slice(&value.to_be_bytes());
        batch
    };
    let refused = [ErrorCode::CORRUPT_MESSAGE, ErrorCode::INVALID_RECORD];
    for count in [u32::MAX, i32::MAX as u32, 0, 2] {
        assert!(
            refused.contains(&code(&mut client, 9, sealed(with(57, count))).await),
            "record count {count}"
        );
    }
    // Each of these agrees with itself: a batch of nothing, and one that skips offsets.
    for (count, last_delta) in [(0_u32, u32::MAX), (1, 5), (1, u32::MAX)] {
        let mut batch = with(57, count);
        batch[23..27].copy_from_slice(&last_delta.to_be_bytes());
        if count == 0 {
            batch.truncate(61);
            batch[8..12].copy_from_slice(&49_u32.to_be_bytes());
        }
        let code = code(&mut client, 9, sealed(batch)).await;
        assert_eq!(code, ErrorCode::INVALID_RECORD, "{count} {last_delta}");
    }
    for len in [0x8000_0000, 0x7fff_ffff, 0, 48] {
        assert!(refused.contains(&code(&mut client, 9, with(8, len).into()).await), "batch length {len}");
    }
    let short = Bytes::from(with(8, 0x8000_0000)).slice(..30);
    assert!(refused.contains(&code(&mut client, 9, short).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn old_message_formats_are_refused_by_name() {
    let (_broker, mut client) = orders().await;
    for magic in [0, 1] {
        let mut set = batch(&["a"]).to_vec();
        set[16] = magic;
        assert_eq!(code(&mut client, 3, set.into()).await, ErrorCode::UNSUPPORTED_FOR_MESSAGE_FORMAT);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn acks_other_than_0_1_and_all_are_refused() {
    let (_broker, mut client) = orders().await;
    for (acks, expected) in [
        (1, ErrorCode::NONE),
        (-1, ErrorCode::NONE),
        (2, ErrorCode::INVALID_REQUIRED_ACKS),
        (-2, ErrorCode::INVALID_REQUIRED_ACKS),
    ] {
        let response = client.call(9, &produce_request("orders", 0, batch(&["x"]), acks)).await;
        let topic = response.responses.iter().next().expect("a topic");
        assert_eq!(topic.partition_responses.iter().next().expect("a partition").error_code, expected);
    }
    assert_eq!(client.fetch("orders", 0, 0).await.high_watermark, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_topics_partitions_and_ids_are_answered_each_for_itself() {
    let (_broker, mut client) = orders().await;
    let partition = |index| PartitionProduceData {
        index,
        records: Some(Records::from(batch(&["x"]))),
        ..Default::default()
    };
    let topic = |name, partitions: Vec<_>| TopicProduceData {
        name: Str::from(name),
        partition_data: partitions.into(),
        ..Default::default()
    };
    let topics =
        vec![topic("orders", vec![partition(7), partition(0)]), topic("nowhere", vec![partition(0)])];
    let request =
        ProduceRequest { acks: -1, timeout_ms: 1_000, topic_data: topics.into(), ..Default::default() };
    let response = client.call(9, &request).await;
    let codes: Vec<_> = response
        .responses
        .iter()
        .flat_map(|topic| topic.partition_responses)
        .map(|partition| (partition.index, partition.error_code))
        .collect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(codes, [(7, unknown), (0, ErrorCode::NONE), (0, unknown)]);

    let topic_id = Uuid::from_bytes([5; 16]);
    let topic =
        TopicProduceData { topic_id, partition_data: vec![partition(0)].into(), ..Default::default() };
    let request = ProduceRequest { acks: -1, topic_data: vec![topic].into(), ..Default::default() };
    let response = client.call(13, &request).await;
    let topic = response.responses.iter().next().expect("a topic");
    let answered = topic.partition_responses.iter().next().expect("a partition");
    assert_eq!((topic.topic_id, answered.error_code), (topic_id, ErrorCode::UNKNOWN_TOPIC_ID));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_without_a_key_is_named_by_its_index_in_a_compacted_topic() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic_with("keyed", 1, &[("cleanup.policy", "compact")]).await;
    let mut builder = BatchBuilder::new();
    builder.append(Some(b"key"), Some(b"value"), [], NOW).expect("a record");
    builder.append(None, Some(b"value"), [], NOW).expect("a record");
    let refused = client.produce("keyed", 0, builder.build().expect("a batch")).await;
    assert_eq!((refused.error_code, refused.base_offset), (ErrorCode::INVALID_RECORD, -1));
    let indices: Vec<_> = refused.record_errors.iter().map(|error| error.batch_index).collect();
    assert_eq!(indices, [1]);
    assert!(refused.error_message.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_over_the_topics_limit_are_too_large() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic_with("small", 1, &[("max.message.bytes", "1000")]).await;
    let refused = client.produce("small", 0, batch(&[&"x".repeat(2_000)])).await;
    assert_eq!(refused.error_code, ErrorCode::MESSAGE_TOO_LARGE);
    assert_eq!(client.produce("small", 0, batch(&["x"])).await.error_code, ErrorCode::NONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timestamp_of_next_year_is_an_invalid_timestamp() {
    let (_broker, mut client) = orders().await;
    let far = 4_000_000_000_000;
    let refused = client.produce("orders", 0, crate::client::batch_at(&["x"], far)).await;
    assert_eq!(refused.error_code, ErrorCode::INVALID_TIMESTAMP);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_with_log_append_time_says_when_it_appended() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic_with("stamped", 1, &[("message.timestamp.type", "LogAppendTime")]).await;
    let produced = client.produce("stamped", 0, batch(&["x"])).await;
    assert!(produced.log_append_time_ms > NOW);
    let fetched = bytes(&client.fetch("stamped", 0, 0).await);
    let stored = batches(&fetched).next().expect("a batch").expect("whole");
    assert_eq!((stored.max_timestamp(), stored.crc()), (produced.log_append_time_ms, stored.computed_crc()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_batch_of_an_idempotent_producer_has_its_first_offset() {
    let (_broker, mut client) = orders().await;
    let id = client.call(4, &init_producer_request()).await.producer_id;
    let of = |epoch, sequence| build(BatchBuilder::new().with_producer(id, epoch, sequence), &["x"], NOW);
    for sequence in 0..7 {
        let produced = client.produce("orders", 0, of(0, sequence)).await;
        assert_eq!((produced.error_code, produced.base_offset), (ErrorCode::NONE, i64::from(sequence)));
    }
    for sequence in 2..7 {
        let repeated = client.produce("orders", 0, of(0, sequence)).await;
        assert_eq!((repeated.error_code, repeated.base_offset), (ErrorCode::NONE, i64::from(sequence)));
    }
    assert_eq!(
        client.produce("orders", 0, of(0, 9)).await.error_code,
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
    );
    assert_eq!(client.produce("orders", 0, of(1, 0)).await.error_code, ErrorCode::NONE);
    assert_eq!(client.produce("orders", 0, of(0, 7)).await.error_code, ErrorCode::INVALID_PRODUCER_EPOCH);
    assert_eq!(client.fetch("orders", 0, 0).await.high_watermark, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn transactional_records_are_refused_as_a_state_that_is_not_there() {
    let (_broker, mut client) = orders().await;
    let transactional = build(BatchBuilder::new().with_producer(1, 0, 0).with_transaction(), &["x"], NOW);
    assert_eq!(code(&mut client, 9, transactional).await, ErrorCode::INVALID_TXN_STATE);
    let request = ProduceRequest {
        transactional_id: Some(Str::from("tx")),
        ..produce_request("orders", 0, batch(&["x"]), -1)
    };
    let response = client.call(9, &request).await;
    let topic = response.responses.iter().next().expect("a topic");
    let answered = topic.partition_responses.iter().next().expect("a partition");
    assert_eq!(answered.error_code, ErrorCode::INVALID_TXN_STATE);
}

#[tokio::test(flavor = "multi_thread")]
async fn null_keys_null_values_and_repeated_headers_come_back_in_order() {
    let (_broker, mut client) = orders().await;
    let mut builder = BatchBuilder::new();
    let headers = [("x", Some(&b"1"[..])), ("x", Some(&b"2"[..])), ("none", None), ("empty", Some(&b""[..]))];
    let headers = headers.map(|(key, value)| Header { key, value });
    builder.append(None, None, headers, NOW).expect("a record");
    // More than 24.8 days later: the delta needs 64 bits.
    builder.append(Some(b""), Some(b""), [], NOW - 3_000_000_000_000).expect("a record");
    let produced = client.produce("orders", 0, builder.build().expect("a batch")).await;
    assert_eq!(produced.error_code, ErrorCode::NONE, "{:?}", produced.error_message);
    let fetched = bytes(&client.fetch("orders", 0, 0).await);
    let stored = batches(&fetched).next().expect("a batch").expect("whole");
    let records: Vec<_> = kolumn_kafka_wire::records::iter_records(stored.payload(), stored.record_count())
        .map(|record| record.expect("a record"))
        .collect();
    assert_eq!((records[0].key, records[0].value), (None, None));
    let found: Vec<_> = records[0].headers.iter().collect();
    assert_eq!(found, headers);
    assert_eq!((records[1].key, records[1].value), (Some(&b""[..]), Some(&b""[..])));
    let times = [0, 1].map(|index| stored.base_timestamp() + records[index].timestamp_delta);
    assert_eq!((times, stored.max_timestamp()), ([NOW, NOW - 3_000_000_000_000], NOW));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_record_takes_the_same_way() {
    let (_broker, mut client) = orders().await;
    let large = "l".repeat(900 << 10);
    assert_eq!(client.produce("orders", 0, batch(&[&large])).await.error_code, ErrorCode::NONE);
    let request = FetchRequest { max_bytes: 1, ..fetch_request("orders", 0, 0) };
    let fetched = only_partition(&client.call(12, &request).await);
    assert_eq!(values(&fetched), [(0, large)]);
}
