//! Walking records allocates nothing, and inflating into a warm buffer nothing either.

use kolumn_kafka_wire::records::{Compression, Inflater, RecordLimits, batches, validate};

use crate::allocations::count_allocations;
use crate::records_support::{Owned, build, parse};

fn many(count: i64) -> Vec<Owned> {
    let header = ("source".to_owned(), Some(b"till".to_vec()));
    let record = |at: i64| Owned {
        headers: vec![header.clone(), ("source".to_owned(), None)],
        ..Owned::keyed(1_700_000_000_000 + at, &format!("key {at}"), &"value ".repeat(20))
    };
    (0..count).map(record).collect()
}

#[test]
fn walking_uncompressed_records_allocates_nothing() {
    let bytes = build(&many(2_000), Compression::None).repeat(3);
    let mut inflater = Inflater::new();
    let (seen, allocations) = count_allocations(|| {
        let mut seen = 0;
        for batch in batches(&bytes) {
            let batch = batch.expect("a batch");
            validate(&batch, &mut inflater, &RecordLimits::default()).expect("valid");
            for record in batch.records(&mut inflater, 0).expect("not compressed") {
                let record = record.expect("a record");
                seen += record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len);
                seen += record.headers.iter().map(|header| header.key.len()).sum::<usize>();
            }
        }
        seen
    });
    let keys: usize = (0..2_000).map(|at| format!("key {at}").len()).sum();
    assert_eq!(seen, 3 * (keys + 2_000 * (120 + 2 * 6)));
    assert_eq!(allocations, 0);
}

#[test]
fn a_warm_inflater_allocates_nothing_for_snappy_lz4_and_zstd() {
    let records = many(500);
    for codec in [Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let bytes = build(&records, codec);
        let batch = parse(&bytes);
        let mut inflater = Inflater::new();
        validate(&batch, &mut inflater, &RecordLimits::default()).expect("valid");
        let (summary, allocations) =
            count_allocations(|| validate(&batch, &mut inflater, &RecordLimits::default()).expect("valid"));
        assert_eq!(summary.record_count, 500);
        assert_eq!(allocations, 0, "{codec}");
    }
}

#[test]
fn an_inflater_gives_memory_back_when_told() {
    let bytes = build(&many(5_000), Compression::Lz4);
    let mut inflater = Inflater::new();
    assert_eq!(inflater.capacity(), 0);
    validate(&parse(&bytes), &mut inflater, &RecordLimits::default()).expect("valid");
    assert!(inflater.capacity() > 500_000);
    inflater.shrink_to(10_000);
    assert!(inflater.capacity() <= 10_000);
    validate(&parse(&bytes), &mut inflater, &RecordLimits::default()).expect("still valid");
}
