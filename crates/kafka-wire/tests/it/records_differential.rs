//! Another implementation reads what we write, and we read what it writes.
#![cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]

use bytes::{Buf as _, Bytes, BytesMut};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records as theirs;
use kolumn_kafka_wire::records::{BatchBuilder, Compression};
use proptest::prelude::*;

use crate::records_support::{Owned, append, codec, parse, read, records};

const fn their_codec(codec: Compression) -> theirs::Compression {
    match codec {
        Compression::None => theirs::Compression::None,
        Compression::Gzip => theirs::Compression::Gzip,
        Compression::Snappy => theirs::Compression::Snappy,
        Compression::Lz4 => theirs::Compression::Lz4,
        Compression::Zstd => theirs::Compression::Zstd,
    }
}

fn to_theirs(index: usize, record: &Owned) -> theirs::Record {
    let index = i32::try_from(index).expect("few");
    let header = |(key, value): &(String, Option<Vec<u8>>)| {
        (StrBytes::from_string(key.clone()), value.clone().map(Bytes::from))
    };
    theirs::Record {
        transactional: true,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 4,
        producer_id: 70,
        producer_epoch: 2,
        timestamp_type: theirs::TimestampType::Creation,
        offset: 1_000 + i64::from(index),
        sequence: 30 + index,
        timestamp: record.timestamp,
        key: record.key.clone().map(Bytes::from),
        value: record.value.clone().map(Bytes::from),
        headers: record.headers.iter().map(header).collect::<IndexMap<_, _>>(),
    }
}

/// They keep headers in a map, so that equal keys cannot be told apart.
fn with_distinct_header_keys(mut records: Vec<Owned>) -> Vec<Owned> {
    for record in &mut records {
        record.timestamp = record.timestamp.clamp(0, 1 << 60);
        record.headers.sort();
        record.headers.dedup_by(|a, b| a.0 == b.0);
    }
    records
}

proptest! {
    #[test]
    fn another_implementation_reads_what_we_write(records in records(12), codec in codec()) {
        let records = with_distinct_header_keys(records);
        let mut builder = BatchBuilder::new()
            .with_base_offset(1_000)
            .with_partition_leader_epoch(4)
            .with_producer(70, 2, 30)
            .with_transaction()
            .with_compression(codec);
        for record in &records {
            append(&mut builder, record);
        }
        let mut bytes = builder.build().expect("fits");
        let zstd = (codec == Compression::Zstd).then_some(|packed: &mut Bytes, _| {
            let packed = packed.split_to(packed.len());
            Ok(Bytes::from(zstd::stream::decode_all(packed.reader())?))
        });
        let read = theirs::RecordBatchDecoder::decode_with_custom_compression(&mut bytes, zstd);
        let read = read.expect("they read it");
        prop_assert_eq!(read.compression, their_codec(codec));
        let expect: Vec<_> = records.iter().enumerate().map(|(i, record)| to_theirs(i, record)).collect();
        prop_assert_eq!(read.records, expect);
    }

    #[test]
    fn we_read_what_another_implementation_writes(records in records(12), codec in codec()) {
        let records = with_distinct_header_keys(records);
        let written: Vec<_> = records.iter().enumerate().map(|(i, record)| to_theirs(i, record)).collect();
        let mut bytes = BytesMut::new();
        let options = theirs::RecordEncodeOptions { version: 2, compression: their_codec(codec) };
        let zstd = (codec == Compression::Zstd).then_some(|plain: &mut BytesMut, packed: &mut BytesMut, _| {
            packed.extend_from_slice(&zstd::stream::encode_all(plain.reader(), 3)?);
            Ok(())
        });
        theirs::RecordBatchEncoder::encode_with_custom_compression(&mut bytes, &written, &options, zstd)
            .expect("they write it");
        let batch = parse(&bytes);
        prop_assert_eq!(batch.attributes().codec(), Ok(codec));
        prop_assert!(batch.attributes().is_transactional());
        prop_assert_eq!((batch.base_offset(), batch.partition_leader_epoch()), (1_000, 4));
        prop_assert_eq!((batch.producer_id(), batch.producer_epoch(), batch.base_sequence()), (70, 2, 30));
        prop_assert_eq!(read(&bytes), records);
    }
}
