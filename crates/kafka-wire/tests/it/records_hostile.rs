//! Damaged and malicious batches: refused, or read as something equal; never a panic, never a large
//! allocation.

use kolumn_kafka_wire::records::{
    Compression, Inflater, RecordErrorKind, RecordLimits, batches, iter_records, validate,
};
use proptest::prelude::*;

use crate::allocations::measure_allocations;
use crate::records_support::{Owned, build, codec, parse, read, records, reseal, walk, with_payload};

fn sample() -> Vec<Owned> {
    let headers = vec![("x".to_owned(), Some(b"1".to_vec())), ("x".to_owned(), None)];
    let mut records = vec![Owned::keyed(1_000, "apple", &"pie ".repeat(30)); 3];
    records[1] = Owned { timestamp: 0, key: None, value: None, headers };
    records
}

/// Reads everything that can be read, as a broker would that forgot to look at errors.
fn read_at_any_price(bytes: &[u8]) {
    let mut inflater = Inflater::new();
    for batch in batches(bytes).flatten() {
        let _ = validate(&batch, &mut inflater, &RecordLimits::default());
        if let Ok(payload) = batch.decompress(&mut inflater, LIMIT) {
            let _ = walk(payload, batch.record_count(), batch.base_timestamp());
        }
    }
}

const LIMIT: usize = 1 << 20;

#[test]
fn a_batch_cut_at_any_byte_is_not_a_batch() {
    for codec in Compression::ALL {
        let bytes = build(&sample(), codec);
        for cut in 0..bytes.len() {
            assert!(kolumn_kafka_wire::records::Batch::parse(&bytes[..cut]).is_err(), "{codec} cut at {cut}");
        }
    }
}

#[test]
fn a_payload_cut_at_any_byte_is_refused() {
    for codec in Compression::ALL {
        let bytes = build(&sample(), codec);
        for cut in 61..bytes.len() {
            let cut_short = with_payload(&bytes, &bytes[61..cut]);
            let judged = validate(&parse(&cut_short), &mut Inflater::new(), &RecordLimits::default());
            assert!(judged.is_err(), "{codec} cut at {cut}");
        }
    }
}

#[test]
fn a_flipped_byte_is_caught_by_the_checksum_or_lies_outside_it() {
    for codec in Compression::ALL {
        let bytes = build(&sample(), codec);
        for at in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 0xff;
            read_at_any_price(&flipped);
            let Ok((batch, _)) = kolumn_kafka_wire::records::Batch::parse(&flipped) else { continue };
            let judged = validate(&batch, &mut Inflater::new(), &RecordLimits::default());
            // Base offset and leader epoch are the broker's to write.
            assert_eq!(judged.is_ok(), at < 8 || (12..16).contains(&at), "{codec} flipped at {at}");
        }
    }
}

#[test]
fn every_bit_flipped_under_a_right_checksum_never_panics() {
    for codec in Compression::ALL {
        let bytes = build(&sample(), codec);
        for at in 21..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.to_vec();
                flipped[at] ^= 1 << bit;
                reseal(&mut flipped);
                read_at_any_price(&flipped);
            }
        }
    }
}

#[test]
fn integers_of_ten_bytes_and_more_are_read_or_refused() {
    let delta = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let payload = [&[30, 0][..], &delta, &[0, 1, 1, 0]].concat();
    let record = iter_records(&payload, 1).next().expect("a record").expect("which is valid");
    assert_eq!(record.timestamp_delta, i64::MIN);
    for (last, kind) in [(0x02, RecordErrorKind::VarintTooLong), (0x81, RecordErrorKind::VarintTooLong)] {
        let mut payload = payload.clone();
        payload[11] = last;
        let error = iter_records(&payload, 1).next().expect("an item").expect_err("refused");
        assert_eq!(error.kind(), kind);
    }
}

#[test]
fn claimed_counts_and_lengths_allocate_nothing() {
    let one = build(&[Owned::keyed(0, "key", "value")], Compression::None);
    let most = [0xfe, 0xff, 0xff, 0xff, 0x0f]; // 2^31 - 1
    let payloads = [
        [&most[..], &[0; 60]].concat(),                           // record length
        [&[120, 0, 0, 0][..], &most, &[0; 60]].concat(),          // key length
        [&[120, 0, 0, 0, 1][..], &most, &[0; 60]].concat(),       // value length
        [&[120, 0, 0, 0, 1, 1][..], &most, &[0; 60]].concat(),    // header count
        [&[120, 0, 0, 0, 1, 1, 2][..], &most, &[0; 60]].concat(), // header key length
    ];
    for payload in payloads {
        for count in [1, i32::MAX, -1] {
            let mut bytes = with_payload(&one, &payload);
            bytes[23..27].copy_from_slice(&count.wrapping_sub(1).to_be_bytes());
            bytes[57..61].copy_from_slice(&count.to_be_bytes());
            reseal(&mut bytes);
            let batch = parse(&bytes);
            let mut inflater = Inflater::new();
            let (judged, seen) =
                measure_allocations(|| validate(&batch, &mut inflater, &RecordLimits::default()));
            assert!(judged.is_err());
            assert_eq!(seen.count, 0, "{payload:?}");
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_at_any_price(&bytes);
        for codec in Compression::ALL {
            let _ = Inflater::new().inflate(codec, &bytes, LIMIT);
        }
    }

    #[test]
    fn damaged_batches_under_a_right_checksum_never_panic(
        records in records(8),
        codec in codec(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        prop_assume!(records.iter().all(|record| record.timestamp.checked_sub(records[0].timestamp).is_some()));
        let mut bytes = build(&records, codec).to_vec();
        for (at, byte) in damage {
            let at = 21 + at.index(bytes.len() - 21);
            bytes[at] = byte;
        }
        reseal(&mut bytes);
        read_at_any_price(&bytes);
        if validate(&parse(&bytes), &mut Inflater::new(), &RecordLimits::default()).is_ok() {
            // What is accepted can be read by the same rules once more.
            let _ = read(&bytes);
        }
    }
}
