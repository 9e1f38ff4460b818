//! Arbitrary records through the builder: the batch is valid and reads back as it was appended.
#![no_main]

use kolumn_kafka_wire::records::{
    Batch, BatchBuilder, Compression, Header, Inflater, RecordLimits, validate,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((codec, mut rest)) = input.split_first() else { return };
    let codec = Compression::ALL[usize::from(codec % 5)];
    let mut builder = BatchBuilder::new().with_compression(codec);
    let mut appended = Vec::new();
    while let Some((&[shape, key_len, value_len], tail)) = rest.split_first_chunk() {
        let (key, tail) = tail.split_at(tail.len().min(key_len.into()));
        let (value, tail) = tail.split_at(tail.len().min(value_len.into()));
        rest = tail;
        let (key, value) = ((shape & 1 == 0).then_some(key), (shape & 2 == 0).then_some(value));
        let header = Header { key: if shape & 4 == 0 { "a" } else { "é" }, value: key };
        let headers = vec![header; usize::from(shape >> 6)];
        let timestamp = i64::from(value_len) << (shape & 0b11_1000);
        if builder.append(key, value, headers.iter().copied(), timestamp).is_ok() {
            appended.push((key, value, headers, timestamp));
        }
    }
    let Ok(bytes) = builder.build() else { return assert!(appended.is_empty(), "what was appended builds") };

    let (batch, _) = Batch::parse(&bytes).expect("a batch");
    let mut inflater = Inflater::new();
    let summary = validate(&batch, &mut inflater, &RecordLimits::default()).expect("a valid batch");
    assert!(summary.header_max_timestamp_is_right);
    let records = batch.records(&mut inflater, usize::MAX).expect("inflates");
    let read: Vec<_> = records
        .map(|record| {
            let record = record.expect("a record");
            let timestamp = batch.base_timestamp() + record.timestamp_delta;
            (record.key, record.value, record.headers.iter().collect(), timestamp)
        })
        .collect();
    assert_eq!(read, appended);
});
