//! The judgement of a producer's batch before it is stored.

use super::attributes::{Compression, TimestampType};
use super::batch::Batch;
use super::compression::Inflater;
use super::error::ValidateError;
use super::record::{Record, iter_records};

/// What a batch may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordLimits {
    /// How many bytes a compressed payload may inflate to.
    pub inflated_len_max: usize,
    /// Whether control batches are welcome; from clients they are forgeries.
    pub allow_control: bool,
}

impl RecordLimits {
    /// Sets how many bytes a compressed payload may inflate to.
    #[must_use]
    pub const fn with_inflated_len_max(mut self, len: usize) -> Self {
        self.inflated_len_max = len;
        self
    }

    /// Welcomes control batches, which only a broker writes.
    #[must_use]
    pub const fn with_control_allowed(mut self) -> Self {
        self.allow_control = true;
        self
    }
}

impl Default for RecordLimits {
    /// What a client may send, inflated to at most 64 MiB.
    fn default() -> Self {
        Self { inflated_len_max: 64 << 20, allow_control: false }
    }
}

/// What the walk over a batch's records found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The number of records, at least 1.
    pub record_count: i32,
    /// One less than the number of records.
    pub last_offset_delta: i32,
    /// The smallest timestamp of a record.
    pub min_timestamp: i64,
    /// The greatest timestamp of a record.
    pub max_timestamp: i64,
    /// The offset delta of the first record that has the greatest timestamp.
    pub max_timestamp_offset_delta: i32,
    /// Whether the header's maximum is [`max_timestamp`](Self::max_timestamp). If not, the header is to be
    /// corrected ([`patch::max_timestamp_header`](super::patch::max_timestamp_header)) before lookups by
    /// time may trust it.
    pub header_max_timestamp_is_right: bool,
    /// The codec.
    pub compression: Compression,
    /// Whose clock the batch says its timestamps are from; a client should not say the broker's.
    pub timestamp_type: TimestampType,
    /// The first record without a key, which a compacted topic refuses.
    pub null_key_index: Option<i32>,
    /// The length of the records without compression.
    pub uncompressed_len: usize,
}

/// Judges a batch: its checksum first, then its header, then every record.
///
/// A batch that passes can be stored and read by every client: its records inflate within the limit, are
/// well formed, fill the payload exactly and have the offsets 0, 1, 2, ... from its base. What depends on
/// the topic is left to the caller: size, bounds of timestamps, keys (see [`Summary`]), sequence numbers.
///
/// # Errors
/// [`ValidateErrorKind`](super::ValidateErrorKind) says what to tell the producer.
pub fn validate(
    batch: &Batch<'_>,
    inflater: &mut Inflater,
    limits: &RecordLimits,
) -> Result<Summary, ValidateError> {
    let computed = batch.computed_crc();
    if batch.crc() != computed {
        return Err(ValidateError::checksum(batch.crc(), computed));
    }
    check_header(batch, limits)?;
    let payload = batch.decompress(inflater, limits.inflated_len_max)?;
    let attributes = batch.attributes();
    let mut walk = Walk::new(batch.base_timestamp());
    for record in iter_records(payload, batch.record_count()) {
        walk.visit(&record?)?;
    }
    Ok(Summary {
        record_count: batch.record_count(),
        last_offset_delta: batch.last_offset_delta(),
        min_timestamp: walk.min_timestamp,
        max_timestamp: walk.max_timestamp,
        max_timestamp_offset_delta: walk.max_timestamp_at,
        header_max_timestamp_is_right: walk.max_timestamp == batch.max_timestamp(),
        compression: attributes.codec().unwrap_or_default(),
        timestamp_type: attributes.timestamp_type(),
        null_key_index: walk.null_key_index,
        uncompressed_len: payload.len(),
    })
}

/// The rules that the header alone can break.
fn check_header(batch: &Batch<'_>, limits: &RecordLimits) -> Result<(), ValidateError> {
    let attributes = batch.attributes();
    if attributes.is_control() && !limits.allow_control {
        return Err(ValidateError::batch("clients must not write control batches"));
    }
    if attributes.has_delete_horizon() {
        return Err(ValidateError::batch("clients must not set a delete horizon"));
    }
    if batch.record_count() <= 0 {
        return Err(ValidateError::batch("the batch has no records"));
    }
    if batch.record_count().checked_sub(1) != Some(batch.last_offset_delta()) {
        return Err(ValidateError::batch("the batch's last offset does not fit its number of records"));
    }
    if batch.producer_id() >= 0 {
        // Markers have a producer and an epoch, but no place in its sequence.
        if batch.producer_epoch() < 0 || (batch.base_sequence() < 0 && !attributes.is_control()) {
            return Err(ValidateError::batch("the producer's epoch or sequence number is negative"));
        }
    } else if attributes.is_transactional() {
        return Err(ValidateError::batch("the batch is transactional, but has no producer id"));
    }
    Ok(())
}

/// What is known after some of the records.
struct Walk {
    base_timestamp: i64,
    next: i32,
    min_timestamp: i64,
    max_timestamp: i64,
    max_timestamp_at: i32,
    null_key_index: Option<i32>,
}

impl Walk {
    const fn new(base_timestamp: i64) -> Self {
        Self {
            base_timestamp,
            next: 0,
            min_timestamp: i64::MAX,
            max_timestamp: i64::MIN,
            max_timestamp_at: 0,
            null_key_index: None,
        }
    }

    #[inline]
    fn visit(&mut self, record: &Record<'_>) -> Result<(), ValidateError> {
        let index = self.next;
        if record.offset_delta != index {
            return Err(ValidateError::record(index, "the offset does not follow the record before"));
        }
        let timestamp = self
            .base_timestamp
            .checked_add(record.timestamp_delta)
            .ok_or(ValidateError::record(index, "the timestamp does not fit 64 bits"))?;
        self.min_timestamp = self.min_timestamp.min(timestamp);
        if timestamp > self.max_timestamp {
            self.max_timestamp = timestamp;
            self.max_timestamp_at = index;
        }
        if record.key.is_none() && self.null_key_index.is_none() {
            self.null_key_index = Some(index);
        }
        self.next += 1;
        Ok(())
    }
}
