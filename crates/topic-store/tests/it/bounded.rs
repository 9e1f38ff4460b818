//! Appending with a bound on the work: either all of it is done, or nothing is assigned.

use bytes::Bytes;
use kolumn_kafka_wire::records::{BatchBuilder, Compression, HEADER_LEN};
use kolumn_topic_store::{AppendErrorKind, Settings};

use crate::support::*;

/// A batch of a record of this many zeros, and how many bytes its records have.
fn zeros(codec: Compression, len: usize) -> (Bytes, usize) {
    let mut builder = BatchBuilder::new().with_compression(codec);
    builder.append(None, Some(&vec![0; len]), [], NOW.value()).expect("fits");
    let records_len = builder.uncompressed_len() - HEADER_LEN;
    (builder.build().expect("fits"), records_len)
}

const CODECS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

#[test]
fn a_batch_above_the_bound_is_not_appended_and_one_at_the_bound_is() {
    for codec in CODECS {
        let mut stepped = Stepped::open(small_settings());
        let (_, topic) = stepped.topic("t", &[]);
        let (batch, records_len) = zeros(codec, 20_000);
        let mut walk_len = records_len - 1;
        let appended = stepped.store.append_bounded(topic.id, P0, batch.clone(), NOW, &mut walk_len);
        assert!(appended.expect("nothing is wrong with it").is_none(), "{codec:?}");
        stepped.settle();
        assert_eq!(stepped.store.offsets(topic.id, P0).expect("known").high_watermark.value(), 0);

        let mut walk_len = records_len + 7;
        let appended = stepped.store.append_bounded(topic.id, P0, batch, NOW, &mut walk_len);
        let appended = appended.expect("accepted").expect("within the bound");
        assert_eq!((stepped.done(appended).base_offset.value(), walk_len), (0, 7), "{codec:?}");
    }
}

#[test]
fn what_was_left_aside_is_appended_without_a_bound_and_takes_the_next_offset() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    let (bomb, _) = zeros(Compression::Zstd, 5 << 20);
    assert!(bomb.len() < 2000);
    let small = batch(&[b"small"]);
    let mut walk_len = 1 << 20;
    let mut bounded = |batch: &Bytes| {
        stepped.store.append_bounded(topic.id, P0, batch.clone(), NOW, &mut walk_len).expect("accepted")
    };
    let first = bounded(&small).expect("short");
    assert!(bounded(&bomb).is_none());
    assert!(bounded(&small).is_none(), "the bound is used up by the attempt");
    let second = stepped.store.append(topic.id, P0, bomb, NOW).expect("accepted");
    let third = stepped.store.append(topic.id, P0, small, NOW).expect("accepted");
    let offsets = [first, second, third].map(|commit| stepped.done(commit).base_offset.value());
    assert_eq!(offsets, [0, 1, 2]);
}

#[test]
fn the_limit_of_the_settings_is_an_error_with_and_without_a_bound() {
    let settings = Settings { inflated_len_max: 100_000, ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[]);
    let (bomb, _) = zeros(Compression::Gzip, 100_001);
    let unbounded = stepped.store.append(topic.id, P0, bomb.clone(), NOW).expect_err("too large");
    let bounded = stepped.store.append_bounded(topic.id, P0, bomb, NOW, &mut 200_000).expect_err("too large");
    for error in [unbounded, bounded] {
        assert!(matches!(error.kind(), AppendErrorKind::TooLarge { max: 100_000, .. }), "{error:?}");
    }
}

#[test]
fn a_batch_that_is_refused_after_its_walk_uses_the_bound_up() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    let mut damaged = batch(&[b"value"]).to_vec();
    *damaged.last_mut().expect("not empty") ^= 1;
    let mut walk_len = 1 << 20;
    let refused = stepped.store.append_bounded(topic.id, P0, damaged.into(), NOW, &mut walk_len);
    assert_eq!(refused.expect_err("damaged").kind(), AppendErrorKind::Corrupt);
    assert_eq!(walk_len, 0);
}
