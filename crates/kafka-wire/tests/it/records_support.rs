//! Owned records, their generation, and a second parser written from the layout alone.

use bytes::Bytes;
use kolumn_kafka_wire::records::{
    Batch, BatchBuilder, Compression, Header, Inflater, RecordLimits, iter_records, validate,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// A record that owns its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) timestamp: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Owned {
    pub(crate) fn keyed(timestamp: i64, key: &str, value: &str) -> Self {
        Self { timestamp, key: Some(key.into()), value: Some(value.into()), headers: Vec::new() }
    }
}

/// Records of all kinds: null and empty keys and values, headers with equal keys, far apart timestamps.
pub(crate) fn records(max: usize) -> impl Strategy<Value = Vec<Owned>> {
    let bytes = || option::of(vec(any::<u8>(), 0..40));
    let header = ("[a-c]{0,2}|é", option::of(vec(any::<u8>(), 0..6)));
    let timestamp = prop_oneof![4 => 1_700_000_000_000..1_700_000_100_000_i64, 1 => Just(0), 1 => Just(-1), 1 => 0..i64::MAX];
    let record = (timestamp, bytes(), bytes(), vec(header, 0..4))
        .prop_map(|(timestamp, key, value, headers)| Owned { timestamp, key, value, headers });
    vec(record, 1..=max)
}

pub(crate) fn codec() -> impl Strategy<Value = Compression> {
    proptest::sample::select(&Compression::ALL[..])
}

pub(crate) fn append(builder: &mut BatchBuilder, record: &Owned) {
    let headers = record.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() });
    builder
        .append(record.key.as_deref(), record.value.as_deref(), headers, record.timestamp)
        .expect("the record fits");
}

pub(crate) fn build(records: &[Owned], compression: Compression) -> Bytes {
    let mut builder = BatchBuilder::new().with_compression(compression);
    for record in records {
        append(&mut builder, record);
    }
    builder.build().expect("the batch fits")
}

/// The one batch that `bytes` is.
#[track_caller]
pub(crate) fn parse(bytes: &[u8]) -> Batch<'_> {
    let (batch, rest) = Batch::parse(bytes).expect("a batch");
    assert!(rest.is_empty(), "nothing follows the batch");
    batch
}

/// Validates the batch and returns its records.
#[track_caller]
pub(crate) fn read(bytes: &[u8]) -> Vec<Owned> {
    let batch = parse(bytes);
    let mut inflater = Inflater::new();
    validate(&batch, &mut inflater, &RecordLimits::default()).expect("a valid batch");
    let payload = batch.decompress(&mut inflater, usize::MAX).expect("inflates");
    walk(payload, batch.record_count(), batch.base_timestamp()).expect("valid records")
}

/// Walks records to their end or to the first error.
pub(crate) fn walk(
    payload: &[u8],
    count: i32,
    base_timestamp: i64,
) -> Result<Vec<Owned>, kolumn_kafka_wire::records::RecordError> {
    let owned = |header: Header<'_>| (header.key.to_owned(), header.value.map(<[u8]>::to_vec));
    iter_records(payload, count)
        .map(|record| {
            let record = record?;
            Ok(Owned {
                timestamp: base_timestamp.wrapping_add(record.timestamp_delta),
                key: record.key.map(<[u8]>::to_vec),
                value: record.value.map(<[u8]>::to_vec),
                headers: record.headers.iter().map(owned).collect(),
            })
        })
        .collect()
}

/// Sets bytes of a batch and makes its checksum right again.
pub(crate) fn with_bytes_at(batch: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut changed = batch.to_vec();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    reseal(&mut changed);
    changed
}

/// Replaces the payload of a batch; length and checksum follow.
pub(crate) fn with_payload(batch: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut changed = [&batch[..61], payload].concat();
    let length = i32::try_from(changed.len() - 12).expect("a small batch");
    changed[8..12].copy_from_slice(&length.to_be_bytes());
    reseal(&mut changed);
    changed
}

pub(crate) fn reseal(batch: &mut [u8]) {
    let crc = naive_crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

fn naive_crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

/// The dull twin: reads an uncompressed payload field by field; none if anything is not as laid out.
pub(crate) fn naive_walk(payload: &[u8], count: i32, base_timestamp: i64) -> Option<Vec<Owned>> {
    let mut at = 0;
    let mut records = Vec::new();
    for _ in 0..usize::try_from(count).ok()? {
        let length = usize::try_from(naive_varint(payload, &mut at, 32)?).ok()?;
        let end = at.checked_add(length).filter(|end| *end <= payload.len())?;
        let body = &payload[..end];
        at += 1;
        let timestamp = i64::try_from(naive_varint(body, &mut at, 64)?).ok()?;
        naive_varint(body, &mut at, 32)?;
        let key = naive_bytes(body, &mut at)?;
        let value = naive_bytes(body, &mut at)?;
        let mut headers = Vec::new();
        for _ in 0..usize::try_from(naive_varint(body, &mut at, 32)?).ok()? {
            let key = String::from_utf8(naive_bytes(body, &mut at)??).ok()?;
            headers.push((key, naive_bytes(body, &mut at)?));
        }
        if at != end {
            return None;
        }
        records.push(Owned { timestamp: base_timestamp.wrapping_add(timestamp), key, value, headers });
    }
    (at == payload.len()).then_some(records)
}

/// Bytes that may be null, which is the inner option.
#[expect(clippy::option_option, reason = "what is not there and what is null are two things")]
fn naive_bytes(body: &[u8], at: &mut usize) -> Option<Option<Vec<u8>>> {
    let length = naive_varint(body, at, 32)?;
    if length == -1 {
        return Some(None);
    }
    let start = *at;
    *at = start.checked_add(usize::try_from(length).ok()?)?;
    Some(Some(body.get(start..*at)?.to_vec()))
}

fn naive_varint(body: &[u8], at: &mut usize, bits: u32) -> Option<i128> {
    let mut raw = 0_u128;
    for group in 0..bits.div_ceil(7) {
        let byte = *body.get(*at)?;
        *at += 1;
        raw += u128::from(byte % 128) << (7 * group);
        if byte < 128 {
            let half = i128::try_from(raw / 2).ok()?;
            return (raw < 1 << bits).then_some(if raw.is_multiple_of(2) { half } else { -half - 1 });
        }
    }
    None
}
