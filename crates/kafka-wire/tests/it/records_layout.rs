//! The bytes themselves: a batch written by hand, and what a broker may change in it.

use kolumn_kafka_wire::records::{
    Batch, BatchBuilder, BatchErrorKind, Compression, Header, TimestampType, patch,
};

use crate::records_support::{Owned, build, parse, read, reseal};

/// A batch of two records, by hand from the layout.
fn batch_by_hand() -> Vec<u8> {
    let first = [28, 0, 0x80, 0x01, 0, 2, b'k', 4, b'v', b'w', 2, 2, b'h', 2, b'x']; // 64 ms, a header
    let second = [12, 0, 0x01, 2, 0, 1, 0]; // -1 ms, empty key, null value
    header_and(1_064, &[&first[..], &second[..]].concat())
}

fn header_and(max_timestamp: i64, records: &[u8]) -> Vec<u8> {
    let mut batch = Vec::new();
    batch.extend(5_i64.to_be_bytes()); // base offset
    batch.extend(i32::try_from(49 + records.len()).unwrap().to_be_bytes());
    batch.extend(9_i32.to_be_bytes()); // leader epoch
    batch.push(2); // magic
    batch.extend([0; 4]); // crc, below
    batch.extend(0b1_0000_i16.to_be_bytes()); // transactional
    batch.extend(1_i32.to_be_bytes()); // last offset delta
    batch.extend(1_000_i64.to_be_bytes()); // base timestamp
    batch.extend(max_timestamp.to_be_bytes());
    batch.extend(77_i64.to_be_bytes()); // producer id
    batch.extend(3_i16.to_be_bytes()); // producer epoch
    batch.extend(40_i32.to_be_bytes()); // base sequence
    batch.extend(2_i32.to_be_bytes()); // record count
    batch.extend(records);
    reseal(&mut batch);
    batch
}

#[test]
fn every_field_is_where_the_layout_says() {
    let bytes = batch_by_hand();
    let batch = parse(&bytes);
    assert_eq!(batch.bytes(), bytes);
    assert_eq!((batch.base_offset(), batch.last_offset(), batch.next_offset()), (5, 6, 7));
    assert_eq!(batch.batch_length(), i32::try_from(bytes.len() - 12).unwrap());
    assert_eq!((batch.partition_leader_epoch(), batch.magic()), (9, 2));
    assert_eq!(batch.crc(), batch.computed_crc());
    assert!(batch.attributes().is_transactional() && !batch.attributes().is_control());
    assert_eq!((batch.last_offset_delta(), batch.record_count()), (1, 2));
    assert_eq!((batch.base_timestamp(), batch.max_timestamp()), (1_000, 1_064));
    assert_eq!((batch.producer_id(), batch.producer_epoch(), batch.base_sequence()), (77, 3, 40));
    assert_eq!(batch.payload().len(), bytes.len() - 61);
}

#[test]
fn the_builder_writes_what_a_hand_would() {
    let mut builder = BatchBuilder::new()
        .with_base_offset(5)
        .with_partition_leader_epoch(9)
        .with_producer(77, 3, 40)
        .with_transaction();
    builder.append(Some(b"k"), Some(b"vw"), [Header { key: "h", value: Some(b"x") }], 1_000).expect("fits");
    builder.append(Some(b""), None, [], 1_063).expect("fits");
    let built = builder.build().expect("fits");
    let first = [26, 0, 0, 0, 2, b'k', 4, b'v', b'w', 2, 2, b'h', 2, b'x'];
    let second = [12, 0, 0x7e, 2, 0, 1, 0];
    assert_eq!(built, header_and(1_063, &[&first[..], &second[..]].concat()));
}

#[track_caller]
fn check_refused(bytes: &[u8], expect: BatchErrorKind) {
    assert_eq!(Batch::parse(bytes).expect_err("refused").kind(), expect);
}

#[test]
fn a_length_that_is_negative_or_holds_no_header_is_refused() {
    let mut bytes = batch_by_hand();
    for length in [i32::MIN, -1, 0, 48] {
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        check_refused(&bytes, BatchErrorKind::InvalidLength(length));
        check_refused(&bytes[..30], BatchErrorKind::InvalidLength(length));
    }
    for length in [49 + 1_000, i32::MAX] {
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        check_refused(&bytes, BatchErrorKind::Partial);
    }
}

#[test]
fn other_format_versions_are_refused_by_their_number() {
    let mut bytes = batch_by_hand();
    for magic in [0_i8, 1, 3, -1] {
        bytes[16] = magic.cast_unsigned();
        check_refused(&bytes, BatchErrorKind::UnsupportedMagic(magic));
        check_refused(&bytes[..17], BatchErrorKind::UnsupportedMagic(magic));
        check_refused(&bytes[..16], BatchErrorKind::Partial);
    }
}

#[test]
fn assigning_an_offset_and_an_epoch_leaves_the_checksum_right() {
    let mut bytes = batch_by_hand();
    patch::set_base_offset(&mut bytes, i64::MAX - 1).expect("a batch");
    patch::set_partition_leader_epoch(&mut bytes, 12).expect("a batch");
    let batch = parse(&bytes);
    assert_eq!((batch.base_offset(), batch.partition_leader_epoch()), (i64::MAX - 1, 12));
    assert_eq!(batch.crc(), batch.computed_crc());
    assert_eq!(batch.crc(), parse(&batch_by_hand()).crc());
}

#[test]
fn log_append_time_rewrites_type_maximum_and_checksum() {
    for codec in Compression::ALL {
        let mut bytes = build(&[Owned::keyed(5, "key", "value")], codec).to_vec();
        let header = patch::log_append_time_header(&parse(&bytes), 99_000);
        patch::set_log_append_time(&mut bytes, 99_000).expect("a batch");
        assert_eq!(bytes[..61], header);
        let batch = parse(&bytes);
        assert_eq!(batch.attributes().timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(batch.attributes().codec(), Ok(codec));
        assert_eq!((batch.base_timestamp(), batch.max_timestamp()), (5, 99_000));
        assert_eq!(batch.crc(), batch.computed_crc());
        assert_eq!(read(&bytes), [Owned::keyed(5, "key", "value")]);

        let mut builder = BatchBuilder::new().with_compression(codec).with_log_append_time(99_000);
        builder.append(Some(b"key"), Some(b"value"), [], 5).expect("fits");
        assert_eq!(builder.build().expect("fits"), bytes, "the builder writes the same");
    }
}

#[test]
fn a_wrong_maximum_timestamp_can_be_corrected() {
    let mut bytes = build(&[Owned::keyed(5, "key", "value")], Compression::None).to_vec();
    let right = bytes.clone();
    patch::set_max_timestamp(&mut bytes, 4).expect("a batch");
    assert_eq!(parse(&bytes).max_timestamp(), 4);
    assert_eq!(patch::max_timestamp_header(&parse(&bytes), 5), right[..61]);
    patch::set_max_timestamp(&mut bytes, 5).expect("a batch");
    assert_eq!(bytes, right);
}

#[test]
fn what_is_too_short_is_not_patched() {
    let mut bytes = batch_by_hand();
    assert_eq!(
        patch::set_base_offset(&mut bytes[..7], 1).expect_err("short").kind(),
        BatchErrorKind::Partial
    );
    let epoch = patch::set_partition_leader_epoch(&mut bytes[..15], 1).expect_err("short");
    assert_eq!(epoch.kind(), BatchErrorKind::Partial);
    assert_eq!(
        patch::set_log_append_time(&mut bytes[..60], 1).expect_err("short").kind(),
        BatchErrorKind::Partial
    );
    assert_eq!(bytes, batch_by_hand());
}
