//! Writing batches.

use alloc::vec::Vec;

use bytes::Bytes;

use super::attributes::{Attributes, Compression};
use super::batch::{HEADER_LEN, LENGTH_OVERHEAD, MAGIC, at};
use super::compression::compress;
use super::cursor::{put_varint, put_varlong, varlong_len};
use super::error::{BuildError, BuildErrorKind};
use super::patch;
use super::record::Header;

/// Collects records and writes them as one batch.
///
/// ```
/// use kolumn_kafka_wire::records::{Batch, BatchBuilder, Compression};
///
/// let mut builder = BatchBuilder::new().with_producer(7, 0, 42);
/// builder.append(Some(b"key"), Some(b"value"), [], 1_000)?;
/// builder.append(Some(b"key"), None, [], 2_000)?;
/// let bytes = builder.build()?;
///
/// let (batch, rest) = Batch::parse(&bytes)?;
/// assert!(rest.is_empty());
/// assert_eq!((batch.record_count(), batch.next_offset()), (2, 2));
/// assert_eq!((batch.base_sequence(), batch.max_timestamp()), (42, 2_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    fields: Fields,
    compression: Compression,
    log_append_time: Option<i64>,
    /// A place for the header, then the records.
    buffer: Vec<u8>,
}

impl BatchBuilder {
    /// A batch of base offset 0, not compressed, of no idempotent producer.
    #[must_use]
    pub fn new() -> Self {
        Self {
            fields: Fields { last_offset_delta: -1, ..Fields::default() },
            compression: Compression::None,
            log_append_time: None,
            buffer: Vec::from([0; HEADER_LEN]),
        }
    }

    /// Compresses the records.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// The offset of delta 0.
    #[must_use]
    pub fn with_base_offset(mut self, offset: i64) -> Self {
        self.fields.base_offset = offset;
        self
    }

    /// The leader epoch in which the batch is appended; 0 otherwise.
    #[must_use]
    pub fn with_partition_leader_epoch(mut self, epoch: i32) -> Self {
        self.fields.leader_epoch = epoch;
        self
    }

    /// The idempotent producer and the sequence number of its first record.
    #[must_use]
    pub fn with_producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.fields.producer_id = id;
        self.fields.producer_epoch = epoch;
        self.fields.base_sequence = base_sequence;
        self
    }

    /// Makes the batch a part of its producer's transaction.
    #[must_use]
    pub fn with_transaction(mut self) -> Self {
        self.fields.attributes |= Attributes::TRANSACTIONAL;
        self
    }

    /// Makes the records control records; for markers there is [`control_batch`](super::control_batch).
    #[must_use]
    pub fn with_control(mut self) -> Self {
        self.fields.attributes |= Attributes::CONTROL;
        self
    }

    /// Gives all records the broker's timestamp. Their own are kept, but no consumer looks at them.
    #[must_use]
    pub fn with_log_append_time(mut self, timestamp_ms: i64) -> Self {
        self.fields.attributes |= Attributes::LOG_APPEND_TIME;
        self.log_append_time = Some(timestamp_ms);
        self
    }

    /// How many records have been appended.
    #[must_use]
    pub const fn record_count(&self) -> i32 {
        self.fields.record_count
    }

    /// How many bytes the batch would have without compression.
    #[must_use]
    pub const fn uncompressed_len(&self) -> usize {
        self.buffer.len()
    }

    /// Appends a record whose offset follows the one before.
    ///
    /// # Errors
    /// If the record does not fit into the batch or its timestamp is out of range; the batch stays as it was.
    pub fn append<'h, H>(
        &mut self,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: H,
        timestamp_ms: i64,
    ) -> Result<(), BuildError>
    where
        H: IntoIterator<Item = Header<'h>, IntoIter: Clone>,
    {
        let delta = self.fields.last_offset_delta.checked_add(1).ok_or(TOO_LARGE)?;
        self.append_at(delta, key, value, headers, timestamp_ms)
    }

    /// Appends a record at `offset_delta`, which leaves a gap if it does not follow the one before.
    ///
    /// # Errors
    /// If the delta is not greater than the one before, if the record does not fit into the batch or its
    /// timestamp is out of range; the batch stays as it was.
    pub fn append_at<'h, H>(
        &mut self,
        offset_delta: i32,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: H,
        timestamp_ms: i64,
    ) -> Result<(), BuildError>
    where
        H: IntoIterator<Item = Header<'h>, IntoIter: Clone>,
    {
        if offset_delta <= self.fields.last_offset_delta {
            return Err(BuildError::new(BuildErrorKind::OffsetOutOfOrder));
        }
        let count = self.fields.record_count.checked_add(1).ok_or(TOO_LARGE)?;
        let first = self.fields.record_count == 0;
        let base_timestamp = if first { timestamp_ms } else { self.fields.base_timestamp };
        let timestamp_delta = timestamp_ms
            .checked_sub(base_timestamp)
            .ok_or(BuildError::new(BuildErrorKind::TimestampOutOfRange))?;

        let headers = headers.into_iter();
        let body_len = body_len(timestamp_delta, offset_delta, key, value, headers.clone())?;
        let record_len = varlong_len(i64::from(body_len.0)) + body_len.1;
        if self.buffer.len() + record_len > LEN_MAX {
            return Err(TOO_LARGE);
        }
        self.buffer.reserve(record_len);
        put_varint(&mut self.buffer, body_len.0);
        self.buffer.push(0);
        put_varlong(&mut self.buffer, timestamp_delta);
        put_varint(&mut self.buffer, offset_delta);
        put_nullable(&mut self.buffer, key);
        put_nullable(&mut self.buffer, value);
        // Each header takes two bytes, so a body whose length is known to fit has a count that fits.
        put_varlong(&mut self.buffer, i64::try_from(headers.clone().count()).unwrap_or(i64::MAX));
        for header in headers {
            put_nullable(&mut self.buffer, Some(header.key.as_bytes()));
            put_nullable(&mut self.buffer, header.value);
        }

        self.fields.record_count = count;
        self.fields.last_offset_delta = offset_delta;
        self.fields.base_timestamp = base_timestamp;
        self.fields.max_timestamp =
            if first { timestamp_ms } else { self.fields.max_timestamp.max(timestamp_ms) };
        Ok(())
    }

    /// Writes the batch, which ends at its last record.
    ///
    /// # Errors
    /// If there is no record, if the batch is too large, or if the codec is not built.
    pub fn build(self) -> Result<Bytes, BuildError> {
        let last = self.fields.last_offset_delta;
        self.build_to(last)
    }

    /// Writes the batch so that it covers the offsets up to `last_offset_delta`, records or not.
    ///
    /// # Errors
    /// If the end is before the last record or before offset 0, if the batch is too large, or if the
    /// codec is not built.
    pub fn build_to(mut self, last_offset_delta: i32) -> Result<Bytes, BuildError> {
        if last_offset_delta < self.fields.last_offset_delta.max(0) {
            return Err(BuildError::new(BuildErrorKind::OffsetOutOfOrder));
        }
        self.fields.last_offset_delta = last_offset_delta;
        if let Some(timestamp) = self.log_append_time {
            self.fields.max_timestamp = timestamp;
        }
        let mut bytes = self.buffer;
        // A batch without records has no stream to compress.
        if self.compression != Compression::None && self.fields.record_count > 0 {
            self.fields.attributes |= self.compression.bits();
            let records = bytes.get(HEADER_LEN..).unwrap_or_default();
            let mut compressed = Vec::with_capacity(HEADER_LEN + records.len() / 2);
            compressed.resize(HEADER_LEN, 0);
            compress(self.compression, records, &mut compressed)?;
            bytes = compressed;
        }
        if bytes.len() > LEN_MAX {
            return Err(TOO_LARGE);
        }
        if let Some((header, payload)) = bytes.split_first_chunk_mut::<HEADER_LEN>() {
            *header = self.fields.header(payload);
        }
        Ok(Bytes::from(bytes))
    }
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// A batch without records that covers the offsets from `base_offset` to `last_offset_delta` after it,
/// as compaction leaves it.
///
/// # Errors
/// If `last_offset_delta` is negative.
pub fn empty_batch(
    base_offset: i64,
    last_offset_delta: i32,
    partition_leader_epoch: i32,
    max_timestamp_ms: i64,
) -> Result<Bytes, BuildError> {
    let mut builder =
        BatchBuilder::new().with_base_offset(base_offset).with_partition_leader_epoch(partition_leader_epoch);
    builder.fields.base_timestamp = max_timestamp_ms;
    builder.fields.max_timestamp = max_timestamp_ms;
    builder.build_to(last_offset_delta)
}

/// The fields of a header, except those that follow from the payload.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    pub(super) base_offset: i64,
    pub(super) leader_epoch: i32,
    pub(super) attributes: i16,
    pub(super) last_offset_delta: i32,
    pub(super) base_timestamp: i64,
    pub(super) max_timestamp: i64,
    pub(super) producer_id: i64,
    pub(super) producer_epoch: i16,
    pub(super) base_sequence: i32,
    pub(super) record_count: i32,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            base_offset: 0,
            leader_epoch: 0,
            attributes: 0,
            last_offset_delta: 0,
            base_timestamp: -1,
            max_timestamp: -1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: 0,
        }
    }
}

impl Fields {
    /// The header of a batch with these fields and this payload, of at most [`LEN_MAX`] together.
    fn header(&self, payload: &[u8]) -> [u8; HEADER_LEN] {
        let length = payload.len() + HEADER_LEN - LENGTH_OVERHEAD;
        debug_assert!(length + LENGTH_OVERHEAD <= LEN_MAX, "the caller has checked the length");
        let length = i32::try_from(length).unwrap_or(i32::MAX);
        let mut header = [0; HEADER_LEN];
        patch::put::<{ at::BASE_OFFSET }, 8>(&mut header, self.base_offset.to_be_bytes());
        patch::put::<{ at::BATCH_LENGTH }, 4>(&mut header, length.to_be_bytes());
        patch::put::<{ at::LEADER_EPOCH }, 4>(&mut header, self.leader_epoch.to_be_bytes());
        patch::put::<{ at::MAGIC }, 1>(&mut header, MAGIC.to_be_bytes());
        patch::put::<{ at::ATTRIBUTES }, 2>(&mut header, self.attributes.to_be_bytes());
        patch::put::<{ at::LAST_OFFSET_DELTA }, 4>(&mut header, self.last_offset_delta.to_be_bytes());
        patch::put::<{ at::BASE_TIMESTAMP }, 8>(&mut header, self.base_timestamp.to_be_bytes());
        patch::put::<{ at::MAX_TIMESTAMP }, 8>(&mut header, self.max_timestamp.to_be_bytes());
        patch::put::<{ at::PRODUCER_ID }, 8>(&mut header, self.producer_id.to_be_bytes());
        patch::put::<{ at::PRODUCER_EPOCH }, 2>(&mut header, self.producer_epoch.to_be_bytes());
        patch::put::<{ at::BASE_SEQUENCE }, 4>(&mut header, self.base_sequence.to_be_bytes());
        patch::put::<{ at::RECORD_COUNT }, 4>(&mut header, self.record_count.to_be_bytes());
        patch::seal(&mut header, payload);
        header
    }
}

/// A batch with a small payload that is known when this is compiled.
pub(super) fn encode<const N: usize>(fields: &Fields, payload: [u8; N]) -> Bytes {
    const { assert!(HEADER_LEN + N <= LEN_MAX, "the payload is small") };
    let mut bytes = Vec::with_capacity(HEADER_LEN + N);
    bytes.extend_from_slice(&fields.header(&payload));
    bytes.extend_from_slice(&payload);
    Bytes::from(bytes)
}

/// The length of a record's body, as the format writes it and as memory counts it.
fn body_len<'h>(
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: impl Iterator<Item = Header<'h>>,
) -> Result<(i32, usize), BuildError> {
    let mut len = 1 + varlong_len(timestamp_delta) + varlong_len(i64::from(offset_delta));
    len += nullable_len(key)? + nullable_len(value)?;
    let mut count = 0;
    for header in headers {
        count += 1;
        let header_len = nullable_len(Some(header.key.as_bytes()))? + nullable_len(header.value)?;
        len = len.checked_add(header_len).ok_or(TOO_LARGE)?;
    }
    len += varlong_len(count);
    Ok((i32::try_from(len).map_err(|_| TOO_LARGE)?, len))
}

/// The length of bytes with their length in front.
fn nullable_len(bytes: Option<&[u8]>) -> Result<usize, BuildError> {
    let Some(bytes) = bytes else { return Ok(1) };
    let len = i32::try_from(bytes.len()).map_err(|_| TOO_LARGE)?;
    Ok(varlong_len(i64::from(len)) + bytes.len())
}

/// Appends bytes, whose length is known to fit, with their length in front.
fn put_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else { return put_varint(out, -1) };
    put_varint(out, i32::try_from(bytes.len()).unwrap_or(i32::MAX));
    out.extend_from_slice(bytes);
}

/// The longest batch whose length field can say its length.
const LEN_MAX: usize = 0x7fff_ffff;
const TOO_LARGE: BuildError = BuildError::new(BuildErrorKind::TooLarge);
