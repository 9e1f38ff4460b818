//! What is built is valid and reads back as it was appended, whatever the codec.

use kolumn_kafka_wire::records::{
    BatchBuilder, BatchErrorKind, BuildErrorKind, Compression, Inflater, RecordLimits, batches, empty_batch,
    iter_records, validate,
};
use proptest::prelude::*;

use crate::records_support::{Owned, append, build, codec, naive_walk, parse, read, records, walk};

proptest! {
    #[test]
    fn built_batches_read_back_as_they_were_appended(records in records(30), codec in codec()) {
        let fits = records.iter().all(|record| record.timestamp.checked_sub(records[0].timestamp).is_some());
        prop_assume!(fits);
        let bytes = build(&records, codec);
        prop_assert_eq!(parse(&bytes).attributes().codec(), Ok(codec));
        prop_assert_eq!(read(&bytes), records);
    }

    #[test]
    fn the_dull_twin_reads_the_same(records in records(30)) {
        prop_assume!(records.iter().all(|record| record.timestamp.checked_sub(records[0].timestamp).is_some()));
        let bytes = build(&records, Compression::None);
        let batch = parse(&bytes);
        let twin = naive_walk(batch.payload(), batch.record_count(), batch.base_timestamp());
        prop_assert_eq!(twin, Some(records));
    }

    #[test]
    fn the_summary_is_what_the_records_say(records in records(30), codec in codec()) {
        prop_assume!(records.iter().all(|record| record.timestamp.checked_sub(records[0].timestamp).is_some()));
        let bytes = build(&records, codec);
        let summary = validate(&parse(&bytes), &mut Inflater::new(), &RecordLimits::default());
        let summary = summary.expect("a valid batch");
        let max = records.iter().map(|record| record.timestamp).max();
        let max_at = records.iter().position(|record| Some(record.timestamp) == max);
        let null_key = records.iter().position(|record| record.key.is_none());
        prop_assert_eq!(usize::try_from(summary.record_count), Ok(records.len()));
        prop_assert_eq!(summary.last_offset_delta, summary.record_count - 1);
        prop_assert_eq!(Some(summary.min_timestamp), records.iter().map(|record| record.timestamp).min());
        prop_assert_eq!(Some(summary.max_timestamp), max);
        prop_assert_eq!(usize::try_from(summary.max_timestamp_offset_delta).ok(), max_at);
        prop_assert_eq!(summary.null_key_index.map(|index| usize::try_from(index).unwrap()), null_key);
        prop_assert!(summary.header_max_timestamp_is_right);
        prop_assert_eq!(summary.compression, codec);
        let plain = build(&records, Compression::None);
        prop_assert_eq!(summary.uncompressed_len, parse(&plain).payload().len());
    }

    #[test]
    fn arbitrary_payloads_are_read_like_the_twin_reads_them(
        payload in proptest::collection::vec(prop_oneof![3 => 0..24_u8, 1 => any::<u8>()], 0..60),
        count in 0..6_i32,
    ) {
        let read = walk(&payload, count, 0).ok();
        prop_assert_eq!(read, naive_walk(&payload, count, 0));
    }
}

#[test]
fn timestamps_months_apart_in_one_batch_survive() {
    let mut records = vec![Owned::keyed(1_764_000_000_000, "now", ""), Owned::keyed(0, "then", "")];
    records.push(Owned::keyed(i64::MAX, "last", ""));
    for codec in Compression::ALL {
        assert_eq!(read(&build(&records, codec)), records);
    }
}

#[test]
fn equal_header_keys_and_null_header_values_keep_their_order() {
    let headers = [("x", Some("1")), ("x", Some("2")), ("", None), ("x", None), ("y", Some(""))];
    let headers = headers.map(|(key, value)| (key.to_owned(), value.map(|value| value.as_bytes().to_vec())));
    let record = [Owned { headers: headers.to_vec(), ..Owned::keyed(5, "key", "value") }];
    for codec in Compression::ALL {
        assert_eq!(read(&build(&record, codec)), record);
    }
}

#[test]
fn a_record_of_900_kilobytes_survives_every_codec() {
    let value: Vec<u8> = (0_u32..900_000).map(|i| i.wrapping_mul(i).to_be_bytes()[1]).collect();
    let record = [Owned { timestamp: 1, key: None, value: Some(value), headers: Vec::new() }];
    for codec in Compression::ALL {
        assert_eq!(read(&build(&record, codec)), record);
    }
}

#[test]
fn several_batches_are_walked_in_order_and_a_cut_tail_is_recognised() {
    let first = build(&[Owned::keyed(1, "a", "1")], Compression::None);
    let second = build(&[Owned::keyed(2, "b", "2")], Compression::Lz4);
    let both = [&first[..], &second[..]].concat();
    for cut in 0..=both.len() {
        let whole = usize::from(cut >= first.len()) + usize::from(cut == both.len());
        let mut walk = batches(&both[..cut]);
        assert!(walk.by_ref().take(whole).all(|batch| batch.is_ok()));
        match walk.next() {
            None => assert!(cut == 0 || cut == first.len() || cut == both.len()),
            Some(tail) => {
                assert_eq!(tail.map(|_| ()).map_err(|error| error.kind()), Err(BatchErrorKind::Partial));
                assert!(walk.next().is_none(), "the error ends the walk");
                assert_eq!(walk.rest(), &both[first.len() * whole..cut]);
            }
        }
    }
}

#[test]
fn offsets_with_gaps_and_a_gap_at_the_end_are_covered() {
    let mut builder = BatchBuilder::new().with_base_offset(100);
    builder.append_at(3, None, Some(b"a"), [], 10).expect("fits");
    builder.append_at(7, None, Some(b"b"), [], 9).expect("fits");
    let bytes = builder.build_to(9).expect("fits");
    let batch = parse(&bytes);
    assert_eq!((batch.base_offset(), batch.last_offset(), batch.next_offset()), (100, 109, 110));
    let deltas =
        iter_records(batch.payload(), batch.record_count()).map(|record| record.unwrap().offset_delta);
    assert_eq!(deltas.collect::<Vec<_>>(), [3, 7]);
    assert_eq!((batch.base_timestamp(), batch.max_timestamp()), (10, 10));
}

#[test]
fn a_batch_without_records_keeps_its_header_and_its_offsets() {
    let bytes = empty_batch(50, 4, 3, 777).expect("fits");
    let batch = parse(&bytes);
    assert_eq!((batch.record_count(), batch.last_offset_delta(), batch.next_offset()), (0, 4, 55));
    assert_eq!((batch.partition_leader_epoch(), batch.max_timestamp()), (3, 777));
    assert_eq!(batch.crc(), batch.computed_crc());
    let mut inflater = Inflater::new();
    assert_eq!(batch.records(&mut inflater, 0).expect("inflates").next(), None);
}

#[test]
fn an_append_that_fails_leaves_the_batch_as_it_was() {
    let mut builder = BatchBuilder::new();
    append(&mut builder, &Owned::keyed(i64::MIN, "a", "1"));
    let (count, len) = (builder.record_count(), builder.uncompressed_len());
    let far = builder.append(None, None, [], i64::MAX).expect_err("out of range");
    assert_eq!(far.kind(), BuildErrorKind::TimestampOutOfRange);
    let late = builder.append_at(0, None, None, [], i64::MIN).expect_err("not after the first");
    assert_eq!(late.kind(), BuildErrorKind::OffsetOutOfOrder);
    assert_eq!((builder.record_count(), builder.uncompressed_len()), (count, len));
    assert_eq!(read(&builder.build().expect("fits")), [Owned::keyed(i64::MIN, "a", "1")]);
}

#[test]
fn a_batch_cannot_end_before_its_last_record() {
    assert_eq!(BatchBuilder::new().build().expect_err("empty").kind(), BuildErrorKind::OffsetOutOfOrder);
    let mut builder = BatchBuilder::new();
    builder.append_at(2, None, None, [], 0).expect("fits");
    assert_eq!(builder.build_to(1).expect_err("too early").kind(), BuildErrorKind::OffsetOutOfOrder);
    assert_eq!(empty_batch(0, -1, 0, 0).expect_err("negative").kind(), BuildErrorKind::OffsetOutOfOrder);
}
