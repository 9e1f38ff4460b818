//! The judgement of producers' batches.

use kolumn_kafka_wire::records::control::{Marker, Outcome, control_batch};
use kolumn_kafka_wire::records::{
    BatchBuilder, Compression, Inflater, RecordLimits, Summary, ValidateError, ValidateErrorKind,
    empty_batch, validate,
};

use crate::records_support::{Owned, build, parse, with_bytes_at, with_payload};

fn judge(bytes: &[u8]) -> Result<Summary, ValidateError> {
    validate(&parse(bytes), &mut Inflater::new(), &RecordLimits::default())
}

#[track_caller]
fn check_refused(bytes: &[u8], kind: ValidateErrorKind, record: Option<i32>) {
    let error = judge(bytes).expect_err("refused");
    assert_eq!((error.kind(), error.record_index()), (kind, record), "{error}");
}

fn three() -> Vec<u8> {
    let records = [Owned::keyed(10, "a", "1"), Owned::keyed(30, "b", "2"), Owned::keyed(20, "c", "3")];
    build(&records, Compression::None).to_vec()
}

#[test]
fn a_batch_with_a_wrong_checksum_is_corrupt_before_anything_else_is_looked_at() {
    for codec in Compression::ALL {
        let mut bytes = build(&[Owned::keyed(10, "key", "value")], codec).to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        check_refused(&bytes, ValidateErrorKind::Corrupt, None);
    }
    let mut worse = three();
    worse[22] = 0xff; // all attributes
    worse[57..61].copy_from_slice(&[0xff; 4]); // record count -1
    check_refused(&worse, ValidateErrorKind::Corrupt, None);
}

#[test]
fn a_record_count_that_cannot_be_is_refused() {
    for count in [-1, i32::MIN, 0, 2, 4] {
        let bytes = with_bytes_at(&three(), 57, &i32::to_be_bytes(count));
        check_refused(&bytes, ValidateErrorKind::InvalidBatch, None);
    }
    let most = with_bytes_at(&three(), 57, &i32::MAX.to_be_bytes());
    check_refused(
        &with_bytes_at(&most, 23, &(i32::MAX - 1).to_be_bytes()),
        ValidateErrorKind::InvalidBatch,
        None,
    );
}

#[test]
fn a_batch_without_records_is_not_for_producers_to_send() {
    let without = |count: i32| {
        let bytes = with_bytes_at(&with_payload(&three(), &[]), 57, &count.to_be_bytes());
        with_bytes_at(&bytes, 23, &(count - 1).to_be_bytes())
    };
    for count in [0, -1] {
        check_refused(&without(count), ValidateErrorKind::InvalidBatch, None);
    }
    check_refused(&empty_batch(0, 0, 0, 0).expect("fits"), ValidateErrorKind::InvalidBatch, None);
}

#[test]
fn a_last_offset_that_does_not_fit_the_count_is_refused() {
    for delta in [-1, 1, 3, i32::MAX] {
        check_refused(
            &with_bytes_at(&three(), 23, &i32::to_be_bytes(delta)),
            ValidateErrorKind::InvalidBatch,
            None,
        );
    }
}

#[test]
fn codecs_that_do_not_exist_are_refused_as_invalid() {
    for codec in 5..=7 {
        check_refused(&with_bytes_at(&three(), 22, &[codec]), ValidateErrorKind::InvalidBatch, None);
    }
}

#[test]
fn control_batches_are_refused_from_clients_and_welcome_from_a_broker() {
    let bytes = control_batch(7, 0, 1, Marker::new(Outcome::Commit, 1));
    check_refused(&bytes, ValidateErrorKind::InvalidBatch, None);
    let limits = RecordLimits::default().with_control_allowed();
    let summary = validate(&parse(&bytes), &mut Inflater::new(), &limits).expect("valid");
    assert_eq!(summary.record_count, 1);
}

#[test]
fn a_delete_horizon_is_not_for_clients_to_set() {
    check_refused(&with_bytes_at(&three(), 22, &[1 << 6]), ValidateErrorKind::InvalidBatch, None);
}

#[test]
fn an_idempotent_producer_has_an_epoch_and_a_sequence() {
    let batch = |id, epoch, sequence| {
        let mut builder = BatchBuilder::new().with_producer(id, epoch, sequence);
        builder.append(None, None, [], 0).expect("fits");
        builder.build().expect("fits")
    };
    check_refused(&batch(0, -1, 0), ValidateErrorKind::InvalidBatch, None);
    check_refused(&batch(0, 0, -1), ValidateErrorKind::InvalidBatch, None);
    assert!(judge(&batch(0, 0, 0)).is_ok());
    assert!(judge(&batch(-1, -1, -1)).is_ok());
    check_refused(&with_bytes_at(&three(), 22, &[1 << 4]), ValidateErrorKind::InvalidBatch, None);
}

#[test]
fn records_out_of_order_are_refused_with_their_index() {
    let mut builder = BatchBuilder::new();
    builder.append(None, None, [], 0).expect("fits");
    builder.append_at(2, None, None, [], 0).expect("fits");
    let bytes = with_bytes_at(&builder.build().expect("fits"), 23, &1_i32.to_be_bytes());
    check_refused(&bytes, ValidateErrorKind::InvalidRecord, Some(1));
}

#[test]
fn a_malformed_record_is_named() {
    let bytes = three();
    let mut payload = bytes[61..].to_vec();
    let second = usize::from(payload[0] / 2) + 1;
    payload[second] += 2; // the second record claims a byte of the third
    check_refused(&with_payload(&bytes, &payload), ValidateErrorKind::InvalidRecord, Some(1));
}

#[test]
fn bytes_after_the_last_record_are_refused() {
    let bytes = three();
    let payload = [&bytes[61..], &[0]].concat();
    check_refused(&with_payload(&bytes, &payload), ValidateErrorKind::InvalidBatch, None);
}

#[test]
fn a_timestamp_beyond_64_bits_is_refused() {
    check_refused(
        &with_bytes_at(&three(), 27, &i64::MAX.to_be_bytes()),
        ValidateErrorKind::InvalidRecord,
        Some(1),
    );
}

#[test]
fn a_header_key_that_is_not_utf8_is_refused() {
    let payload = [18, 0, 0, 0, 1, 1, 2, 2, 0xff, 1];
    let one = build(&[Owned::keyed(0, "", "")], Compression::None);
    check_refused(&with_payload(&one, &payload), ValidateErrorKind::InvalidRecord, Some(0));
}

#[test]
fn the_first_record_without_a_key_is_reported() {
    assert_eq!(judge(&three()).expect("valid").null_key_index, None);
    let keyless = Owned { key: None, ..Owned::keyed(0, "", "v") };
    let records = [Owned::keyed(0, "", "v"), keyless.clone(), keyless];
    assert_eq!(judge(&build(&records, Compression::Zstd)).expect("valid").null_key_index, Some(1));
}

#[test]
fn a_wrong_maximum_timestamp_is_reported_and_not_refused() {
    let summary = judge(&three()).expect("valid");
    assert!(summary.header_max_timestamp_is_right);
    assert_eq!(
        (summary.min_timestamp, summary.max_timestamp, summary.max_timestamp_offset_delta),
        (10, 30, 1)
    );
    let summary = judge(&with_bytes_at(&three(), 35, &31_i64.to_be_bytes())).expect("valid");
    assert!(!summary.header_max_timestamp_is_right);
    assert_eq!(summary.max_timestamp, 30);
}

#[test]
fn a_payload_beyond_the_limit_is_too_large_and_one_at_the_limit_is_not() {
    let records = vec![Owned::keyed(0, "key", &"v".repeat(50_000)); 4];
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let bytes = build(&records, codec);
        let len = judge(&bytes).expect("valid").uncompressed_len;
        let with_limit = |limit| {
            let limits = RecordLimits::default().with_inflated_len_max(limit);
            validate(&parse(&bytes), &mut Inflater::new(), &limits).map_err(|error| error.kind())
        };
        assert!(with_limit(len).is_ok(), "{codec} at the limit");
        assert_eq!(with_limit(len - 1), Err(ValidateErrorKind::TooLarge), "{codec} beyond");
        assert_eq!(with_limit(0), Err(ValidateErrorKind::TooLarge), "{codec} without any");
    }
}

#[test]
fn errors_say_what_is_wrong_and_keep_their_cause() {
    let mut bytes = three();
    bytes[17..21].copy_from_slice(&[0, 0, 0, 1]);
    let error = judge(&bytes).expect_err("refused").to_string();
    assert!(error.starts_with("the batch's checksum is 0x00000001, its bytes have 0x"), "{error}");

    let error = judge(&with_payload(&three(), &[0x80; 30])).expect_err("refused");
    let cause = std::error::Error::source(&error).expect("a cause").to_string();
    assert_eq!(cause, "record 0 at byte 0: a variable-length integer is too long");
}
