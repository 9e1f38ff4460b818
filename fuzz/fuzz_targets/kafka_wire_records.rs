//! Arbitrary bytes as a records field: never a panic, and what passes validation reads to its end.
#![no_main]

use kolumn_kafka_wire::records::{Batch, Inflater, RecordLimits, batches, patch, validate};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let mut inflater = Inflater::new();
    for batch in batches(input).flatten() {
        read(&batch, &mut inflater);
        // Few inputs have a right checksum, so that most would end there; give them one.
        let mut sealed = batch.bytes().to_vec();
        patch::set_max_timestamp(&mut sealed, batch.max_timestamp()).expect("a batch");
        let (sealed, rest) = Batch::parse(&sealed).expect("still a batch");
        assert!(rest.is_empty());
        assert_eq!(sealed.crc(), sealed.computed_crc());
        read(&sealed, &mut inflater);
    }
});

fn read(batch: &Batch<'_>, inflater: &mut Inflater) {
    let limits = RecordLimits::default().with_inflated_len_max(LIMIT).with_control_allowed();
    let judged = validate(batch, inflater, &limits);
    let Ok(records) = batch.records(inflater, LIMIT) else {
        return assert!(judged.is_err(), "valid, but does not inflate");
    };
    let mut count = 0;
    for record in records {
        let Ok(record) = record else { return assert!(judged.is_err(), "valid, but malformed") };
        assert_eq!(record.headers.iter().count(), record.headers.len());
        count += 1;
    }
    assert_eq!(count, batch.record_count());
    if let Ok(summary) = judged {
        assert_eq!(summary.record_count, count);
        assert!(summary.min_timestamp <= summary.max_timestamp);
    }
}
