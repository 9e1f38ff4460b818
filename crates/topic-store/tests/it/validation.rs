//! What a producer may not send: refused before anything is assigned, with a reason that says what to correct.

use bytes::Bytes;
use kolumn_kafka_wire::records::control::{Marker, Outcome};
use kolumn_kafka_wire::records::{Batch, BatchBuilder, Compression, TimestampType, control_batch};
use kolumn_topic_store::{AppendError, AppendErrorKind as Kind, TopicId};

use crate::support::*;

fn refusal(stepped: &Stepped, topic: TopicId, batch: Bytes) -> AppendError {
    let error = stepped.store.append(topic, P0, batch, stepped.now).expect_err("refused");
    let offsets = stepped.store.offsets(topic, P0).expect("known");
    assert_eq!(offsets.high_watermark.value(), 0, "nothing was assigned");
    error
}

fn with_crc(mut bytes: Vec<u8>) -> Bytes {
    let crc = Batch::parse(&bytes).expect("a batch").0.computed_crc();
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes.into()
}

#[test]
fn damaged_and_malformed_batches_are_refused_by_kind() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    let good = batch(&[b"a", b"b"]).to_vec();
    let changed = |at: usize, bytes: &[u8]| {
        let mut copy = good.clone();
        copy[at..at + bytes.len()].copy_from_slice(bytes);
        copy
    };
    let mut flipped = good.clone();
    *flipped.last_mut().expect("not empty") ^= 1;
    let table: &[(Bytes, Kind)] = &[
        (flipped.into(), Kind::Corrupt),
        (changed(8, &0x8000_0000_u32.to_be_bytes()).into(), Kind::Corrupt),
        (good[..good.len() - 1].to_vec().into(), Kind::Corrupt),
        (good[..30].to_vec().into(), Kind::Corrupt),
        (Bytes::new(), Kind::Corrupt),
        (changed(16, &[1]).into(), Kind::UnsupportedFormat(1)),
        ([good.clone(), good.clone()].concat().into(), Kind::InvalidRecord),
        (with_crc(changed(57, &(-1_i32).to_be_bytes())), Kind::InvalidRecord),
        (with_crc(changed(57, &i32::MAX.to_be_bytes())), Kind::InvalidRecord),
        (with_crc(changed(57, &3_i32.to_be_bytes())), Kind::InvalidRecord),
        (with_crc(changed(22, &[0x20])), Kind::InvalidRecord),
        (with_crc(changed(22, &[0x10])), Kind::InvalidRecord),
    ];
    for (batch, kind) in table {
        assert_eq!(refusal(&stepped, topic.id, batch.clone()).kind(), *kind);
    }
    for codec in 5..8 {
        let kind = refusal(&stepped, topic.id, with_crc(changed(22, &[codec]))).kind();
        assert!(
            matches!(kind, Kind::InvalidRecord | Kind::UnsupportedCompression),
            "codec {codec}: {kind:?}"
        );
    }
    let mut transactional = batch_of(1, 0, 0, 1).to_vec();
    transactional[22] |= 0x10;
    assert_eq!(refusal(&stepped, topic.id, with_crc(transactional)).kind(), Kind::InvalidRecord);
    let marker = Marker::new(Outcome::Commit, 0);
    let forged = control_batch(1, 0, NOW.value(), marker);
    assert_eq!(refusal(&stepped, topic.id, forged).kind(), Kind::InvalidRecord);
    stepped.append(topic.id, &good.into());
}

#[test]
fn a_batch_above_the_topics_limit_is_too_large() {
    let mut stepped = Stepped::open(small_settings());
    let sent = batch(&[&[1; 1000]]);
    let limit = sent.len().to_string();
    let (_, topic) = stepped.topic("t", &[("max.message.bytes", &limit)]);
    let larger = batch(&[&[1; 1001]]);
    let kind = refusal(&stepped, topic.id, larger.clone()).kind();
    assert_eq!(kind, Kind::TooLarge { len: larger.len(), max: sent.len() });
    stepped.append(topic.id, &sent);
}

#[test]
fn no_topic_may_allow_larger_batches_than_the_settings() {
    let settings = small_settings();
    let max = settings.batch_len_max;
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[("max.message.bytes", "1000000")]);
    let larger = large(1, max);
    let kind = refusal(&stepped, topic.id, larger.clone()).kind();
    assert_eq!(kind, Kind::TooLarge { len: larger.len(), max });
}

#[test]
fn timestamps_outside_the_topics_bounds_are_refused() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[("message.timestamp.before.max.ms", "1000")]);
    let now = NOW.value();
    let early = refusal(&stepped, topic.id, batch_at(now - 1001, &[b"a"]));
    assert_eq!(early.kind(), Kind::InvalidTimestamp);
    let year = 365 * 86_400_000;
    let late = refusal(&stepped, topic.id, batch_at(now + year, &[b"a"]));
    assert_eq!((late.kind(), late.record_errors()[0].0), (Kind::InvalidTimestamp, 0));
    let stamped = BatchBuilder::new().with_log_append_time(now);
    let mut stamped = stamped;
    stamped.append(None, None, [], now).expect("fits");
    assert_eq!(refusal(&stepped, topic.id, stamped.build().expect("fits")).kind(), Kind::InvalidTimestamp);
    stepped.append(topic.id, &batch_at(-1, &[b"without a timestamp"]));
    stepped.append(topic.id, &batch_at(now - 1000, &[b"a"]));
    stepped.append(topic.id, &batch_at(now + 3_600_000, &[b"a"]));
}

#[test]
fn a_compacted_topic_takes_no_record_without_a_key() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[("cleanup.policy", "compact")]);
    let mut builder = BatchBuilder::new();
    builder.append(Some(b"k"), None, [], NOW.value()).expect("fits");
    builder.append(None, Some(b"v"), [], NOW.value()).expect("fits");
    builder.append(Some(b"k"), Some(b"v"), [], NOW.value()).expect("fits");
    builder.append(None, None, [], NOW.value()).expect("fits");
    let error = refusal(&stepped, topic.id, builder.build().expect("fits"));
    let named: Vec<i32> = error.record_errors().iter().map(|(index, _)| *index).collect();
    assert_eq!((error.kind(), named), (Kind::InvalidRecord, vec![1, 3]));
}

#[test]
fn the_records_that_a_compacted_topic_refuses_are_named_up_to_a_limit() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[("cleanup.policy", "compact")]);
    let mut builder = BatchBuilder::new().with_compression(Compression::Zstd);
    for _ in 0..1500 {
        builder.append(None, Some(b"v"), [], NOW.value()).expect("fits");
    }
    let error = refusal(&stepped, topic.id, builder.build().expect("fits"));
    assert_eq!(error.record_errors().len(), 1000);
}

#[test]
fn log_append_time_rewrites_attributes_maximum_and_checksum() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[("message.timestamp.type", "LogAppendTime")]);
    let sent = batch_at(5, &[b"a", b"b"]);
    let appended = stepped.append(topic.id, &sent);
    assert_eq!(appended.log_append_time, Some(NOW));
    let stored = read_all(&stepped.store, topic.id, P0, 1000).remove(0);
    let (batch, _) = Batch::parse(&stored).expect("a batch");
    assert_eq!(batch.attributes().timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!((batch.max_timestamp(), batch.crc()), (NOW.value(), batch.computed_crc()));
    assert_eq!(stored[43..], sent[43..]);
}

#[test]
fn a_wrong_maximum_in_the_header_is_corrected() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    let sent = batch_at(NOW.value() - 500, &[b"a", b"b"]);
    let mut wrong = sent.to_vec();
    wrong[35..43].copy_from_slice(&0_i64.to_be_bytes());
    stepped.append(topic.id, &with_crc(wrong));
    assert_stored(&read_all(&stepped.store, topic.id, P0, 1000)[0], &sent, 0);
}

#[test]
fn every_codec_is_kept_as_it_was_sent() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    let codecs =
        [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    let mut sent = Vec::new();
    for codec in codecs {
        let mut builder = BatchBuilder::new().with_compression(codec);
        builder.append(None, Some(&[9; 5000]), [], NOW.value()).expect("fits");
        let batch = builder.build().expect("fits");
        stepped.append(topic.id, &batch);
        sent.push(batch);
    }
    for ((stored, sent), offset) in read_all(&stepped.store, topic.id, P0, 9000).iter().zip(&sent).zip(0..) {
        assert_stored(stored, sent, offset);
    }
}
