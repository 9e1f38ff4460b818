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
    let mut builder = Builder::with_capacity(len_max.max(HEADER_LEN + value_len + 32), timestamp);
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let mut value = vec![0; value_len];
    loop {
        noise.fill(&mut value);
        let full = builder.bytes.len();
        builder.push(timestamp, None, &value);
        if builder.count > 1 && builder.bytes.len() > len_max {
            builder.bytes.truncate(full);
            builder.count -= 1;
            return builder.finish();
        }
    }
}

/// Gathers records into a batch without a producer, without headers and without compression.
#[derive(Debug)]
pub(crate) struct Builder {
    bytes: Vec<u8>,
    base_timestamp: i64,
    max_timestamp: i64,
    count: i32,
    /// One record's body, kept for the next one's.
    body: Vec<u8>,
}

impl Builder {
    /// Timestamps are written as differences to `base_timestamp`.
    pub(crate) fn with_capacity(len: usize, base_timestamp: i64) -> Self {
        let mut bytes = Vec::with_capacity(len);
        bytes.resize(HEADER_LEN, 0);
        Self { bytes, base_timestamp, max_timestamp: base_timestamp, count: 0, body: Vec::new() }
    }

    /// `RECORD => length attributes:INT8 timestamp_delta offset_delta key_length key value_length value headers:0`,
    /// the integers without a type being zigzag varints; no key has the length -1.
    pub(crate) fn push(&mut self, timestamp: i64, key: Option<&[u8]>, value: &[u8]) {
        let body = &mut self.body;
        body.clear();
        body.int8(0);
        varint(body, timestamp - self.base_timestamp);
        varint(body, i64::from(self.count));
        varint(body, key.map_or(-1, len));
        body.bytes(key.unwrap_or_default());
        varint(body, len(value));
        body.bytes(value);
        varint(body, 0);
        varint(&mut self.bytes, len(body));
        self.bytes.bytes(body);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.count += 1;
    }

    /// Writes the header in front of the records.
    pub(crate) fn finish(mut self) -> Batch {
        let mut counted = Vec::with_capacity(HEADER_LEN);
        counted.int16(0);
        counted.int32(self.count - 1);
        counted.int64(self.base_timestamp);
        counted.int64(self.max_timestamp);
        counted.int64(-1);
        counted.int16(-1);
        counted.int32(-1);
        counted.int32(self.count);
        let mut head = Vec::with_capacity(HEADER_LEN);
        head.int64(0);
        head.count(self.bytes.len() - LENGTH_END);
        head.int32(-1);
        head.int8(2);
        put_at(&mut self.bytes, head.len() + 4, &counted);
        let sum = crc32c(self.bytes.get(head.len() + 4..).unwrap_or_default());
        head.bytes(&sum.to_be_bytes());
        put_at(&mut self.bytes, 0, &head);
        Batch { bytes: self.bytes, count: self.count }
    }
}

fn put_at(bytes: &mut [u8], at: usize, what: &[u8]) {
    for (to, from) in bytes.iter_mut().skip(at).zip(what) {
        *to = *from;
    }
}

fn len(bytes: &[u8]) -> i64 {
    i64::try_from(bytes.len()).unwrap_or(i64::MAX)
}

/// CRC-32C, the checksum of a batch from its attributes on.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes);
    u32::try_from(sum).unwrap_or_default()
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
    fn keys_values_and_times_are_where_readers_look_for_them() {
        let mut builder = Builder::with_capacity(0, 1000);
        builder.push(1000, Some(b"k"), b"v");
        builder.push(1063, None, b"");
        builder.push(999, Some(b""), b"w");
        let batch = builder.finish();
        assert_eq!(batch.bytes[27..43], [1000_i64.to_be_bytes(), 1063_i64.to_be_bytes()].concat());
        let records = [
            &[16, 0, 0, 0, 2, b'k', 2, b'v', 0][..],
            &[12, 0, 126, 2, 1, 0, 0],
            &[14, 0, 1, 4, 0, 2, b'w', 0],
        ];
        let expected: Vec<u8> = records.into_iter().flatten().copied().collect();
        assert_eq!(batch.bytes[HEADER_LEN..], expected);
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
