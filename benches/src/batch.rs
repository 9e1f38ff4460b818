//! Record batches of format 2: building one ahead of the clock, and reading a batch's header.
//!
//! ```text
//!  0 base offset i64 | 8 length i32 | 12 leader epoch i32 | 16 magic i8 | 17 crc u32 |
//! 21 attributes i16 | 23 last offset delta i32 | 27 base timestamp i64 | 35 max timestamp i64 |
//! 43 producer id i64 | 51 producer epoch i16 | 53 base sequence i32 | 57 count i32 | 61 records
//! ```
//! The length counts from byte 12, the checksum from byte 21.

use std::io;

use crate::wire::{Cursor, Put, invalid};

/// Bytes in front of the records.
pub(crate) const HEADER_LEN: usize = 61;

/// Bytes that the length field does not count.
pub(crate) const LENGTH_END: usize = 12;

/// What the benchmark reads of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) base_offset: i64,
    /// Of the whole batch, from its first byte.
    pub(crate) len: usize,
    pub(crate) last_offset_delta: i32,
    pub(crate) count: i32,
}

impl Header {
    pub(crate) fn parse(bytes: &[u8]) -> io::Result<Self> {
        let mut cursor = Cursor::new(bytes);
        let base_offset = cursor.int64()?;
        let counted =
            usize::try_from(cursor.int32()?).map_err(|_| invalid("a batch's length is negative"))?;
        let _leader_epoch = cursor.int32()?;
        if cursor.int8()? != 2 {
            return Err(invalid("a batch is not of format 2"));
        }
        let _crc_and_attributes = cursor.take(6)?;
        let last_offset_delta = cursor.int32()?;
        let _timestamps_and_producer = cursor.take(30)?;
        let count = cursor.int32()?;
        let len = counted + LENGTH_END;
        if len < HEADER_LEN || count < 0 || last_offset_delta < 0 {
            return Err(invalid("a batch's header contradicts itself"));
        }
        Ok(Self { base_offset, len, last_offset_delta, count })
    }

    /// The offset that follows the batch's last one.
    pub(crate) fn next_offset(&self) -> i64 {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta)).saturating_add(1)
    }
}

/// A finished batch and how many records it holds.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) count: i32,
}

/// Builds a batch of as many records with `value_len` bytes of value as fit into `len_max`, at least one.
///
/// The values do not compress and differ, keys are null, there are no headers and no producer.
pub(crate) fn build(value_len: usize, len_max: usize, timestamp: i64) -> Batch {
    let mut bytes = Vec::with_capacity(len_max.max(HEADER_LEN + value_len + 32));
    bytes.resize(HEADER_LEN, 0);
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let mut value = vec![0; value_len];
    let mut count = 0_i32;
    loop {
        noise.fill(&mut value);
        let record = record(&value, count);
        if count > 0 && bytes.len() + record.len() > len_max {
            break;
        }
        bytes.bytes(&record);
        count += 1;
    }
    let mut header = Vec::with_capacity(HEADER_LEN);
    header.int16(0);
    header.int32(count - 1);
    header.int64(timestamp);
    header.int64(timestamp);
    header.int64(-1);
    header.int16(-1);
    header.int32(-1);
    header.int32(count);
    let records = bytes.split_off(HEADER_LEN);
    let counted: Vec<u8> = [header, records].concat();
    bytes.clear();
    bytes.int64(0);
    bytes.count(counted.len() + 9);
    bytes.int32(-1);
    bytes.int8(2);
    bytes.bytes(&crc32c(&counted).to_be_bytes());
    bytes.bytes(&counted);
    Batch { bytes, count }
}

/// CRC-32C, the checksum of a batch from its attributes on.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes);
    u32::try_from(sum).unwrap_or_default()
}

/// `RECORD => length attributes:INT8 timestamp_delta offset_delta key_length:-1 value_length value headers:0`,
/// the integers without a type being zigzag varints.
fn record(value: &[u8], offset_delta: i32) -> Vec<u8> {
    let mut body = vec![0];
    varint(&mut body, 0);
    varint(&mut body, i64::from(offset_delta));
    varint(&mut body, -1);
    varint(&mut body, i64::try_from(value.len()).unwrap_or(i64::MAX));
    body.bytes(value);
    varint(&mut body, 0);
    let mut record = Vec::with_capacity(body.len() + 5);
    varint(&mut record, i64::try_from(body.len()).unwrap_or(i64::MAX));
    record.bytes(&body);
    record
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut left = (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned();
    while left > 0x7f {
        out.push(low_byte(left) | 0x80);
        left >>= 7;
    }
    out.push(low_byte(left));
}

fn low_byte(value: u64) -> u8 {
    u8::try_from(value & 0x7f).unwrap_or_default()
}

/// A xorshift generator: bytes that no codec shrinks, the same in every run.
struct Noise(u64);

impl Noise {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            for (to, from) in chunk.iter_mut().zip(self.0.to_le_bytes()) {
                *to = from;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_batch_reads_back_and_its_checksum_holds() {
        let batch = build(1024, 1_000_000, 1_700_000_000_000);
        let header = Header::parse(&batch.bytes).unwrap();
        assert_eq!(header.len, batch.bytes.len());
        assert!(header.len <= 1_000_000 && header.len > 998_000, "{}", header.len);
        assert_eq!(header.count, batch.count);
        assert_eq!(header.last_offset_delta, batch.count - 1);
        assert_eq!(header.next_offset(), i64::from(batch.count));
        let stored = u32::from_be_bytes(batch.bytes[17..21].try_into().unwrap());
        assert_eq!(stored, crc32c(&batch.bytes[21..]));
    }

    #[test]
    fn the_checksum_is_the_castagnoli_one() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn the_records_of_a_built_batch_walk_to_its_end() {
        let batch = build(100, 16_384, 0);
        let mut rest = &batch.bytes[HEADER_LEN..];
        let mut seen = 0;
        while !rest.is_empty() {
            let (len, used) = unvarint(rest);
            rest = &rest[used + usize::try_from(len).unwrap()..];
            seen += 1;
        }
        assert_eq!(seen, batch.count);
    }

    #[test]
    fn one_record_is_built_even_if_it_is_larger_than_asked() {
        assert_eq!(build(1024, 100, 0).count, 1);
    }

    #[test]
    fn a_header_that_lies_is_refused() {
        let good = build(10, 200, 0).bytes;
        for (at, byte) in [(8, 0x80), (16, 1), (23, 0xff), (57, 0xff)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert!(Header::parse(&bad).is_err(), "byte {at}");
        }
        for len in 0..HEADER_LEN {
            assert!(Header::parse(&good[..len]).is_err(), "cut at {len}");
        }
    }

    fn unvarint(bytes: &[u8]) -> (i64, usize) {
        let mut value = 0_u64;
        for (index, byte) in bytes.iter().enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                return ((value >> 1).cast_signed() ^ -((value & 1).cast_signed()), index + 1);
            }
        }
        panic!("a varint has no end");
    }
}
