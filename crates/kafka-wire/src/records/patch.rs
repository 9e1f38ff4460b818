//! Rewriting the header fields that a broker owns, in place or in a copy of the header alone.
//!
//! Base offset and leader epoch lie outside the checksum, so that assigning offsets costs two stores.
//! Timestamps lie inside: whoever rewrites them reads the whole batch once for the new checksum.

use super::attributes::Attributes;
use super::batch::{Batch, HEADER_LEN, at};
use super::crc::crc32c;
use super::error::{BatchError, BatchErrorKind};

/// Sets the offset of the batch's first record.
///
/// # Errors
/// If `batch` is shorter than the field's end; it may be a header alone.
pub fn set_base_offset(batch: &mut [u8], offset: i64) -> Result<(), BatchError> {
    store::<{ at::BASE_OFFSET }, 8>(batch, offset.to_be_bytes())
}

/// Sets the leader epoch in which the batch is appended.
///
/// # Errors
/// If `batch` is shorter than the field's end; it may be a header alone.
pub fn set_partition_leader_epoch(batch: &mut [u8], epoch: i32) -> Result<(), BatchError> {
    store::<{ at::LEADER_EPOCH }, 4>(batch, epoch.to_be_bytes())
}

/// Makes `timestamp_ms` the log append time of the first batch in `batch`: the timestamp type, the
/// maximum timestamp and the checksum change.
///
/// # Errors
/// If `batch` does not begin with a complete batch.
pub fn set_log_append_time(batch: &mut [u8], timestamp_ms: i64) -> Result<(), BatchError> {
    let header = log_append_time_header(&Batch::parse(batch)?.0, timestamp_ms);
    store::<0, HEADER_LEN>(batch, header)
}

/// Makes `timestamp_ms` the maximum timestamp of the first batch in `batch`, for a producer that
/// computed it wrongly; the checksum follows.
///
/// # Errors
/// If `batch` does not begin with a complete batch.
pub fn set_max_timestamp(batch: &mut [u8], timestamp_ms: i64) -> Result<(), BatchError> {
    let header = max_timestamp_header(&Batch::parse(batch)?.0, timestamp_ms);
    store::<0, HEADER_LEN>(batch, header)
}

/// The header that [`set_log_append_time`] would leave, so that the payload needs no copy.
#[must_use]
pub fn log_append_time_header(batch: &Batch<'_>, timestamp_ms: i64) -> [u8; HEADER_LEN] {
    let attributes = batch.attributes().bits() | Attributes::LOG_APPEND_TIME;
    header_with(batch, Attributes::from_bits(attributes), timestamp_ms)
}

/// The header that [`set_max_timestamp`] would leave, so that the payload needs no copy.
#[must_use]
pub fn max_timestamp_header(batch: &Batch<'_>, timestamp_ms: i64) -> [u8; HEADER_LEN] {
    header_with(batch, batch.attributes(), timestamp_ms)
}

fn header_with(batch: &Batch<'_>, attributes: Attributes, max_timestamp: i64) -> [u8; HEADER_LEN] {
    let mut header = *batch.header();
    put::<{ at::ATTRIBUTES }, 2>(&mut header, attributes.bits().to_be_bytes());
    put::<{ at::MAX_TIMESTAMP }, 8>(&mut header, max_timestamp.to_be_bytes());
    seal(&mut header, batch.payload());
    header
}

/// Computes the checksum of a header and its payload into the header.
pub(super) fn seal(header: &mut [u8; HEADER_LEN], payload: &[u8]) {
    let covered = header.get(at::ATTRIBUTES..).unwrap_or_default();
    let crc = crc32c(covered, payload);
    put::<{ at::CRC }, 4>(header, crc.to_be_bytes());
}

/// Stores a field of the header; the compiler checks that it lies inside.
pub(super) fn put<const AT: usize, const N: usize>(header: &mut [u8; HEADER_LEN], field: [u8; N]) {
    const { assert!(AT + N <= HEADER_LEN, "a field lies inside the header") };
    if let Some(place) = header.get_mut(AT..).and_then(<[u8]>::first_chunk_mut) {
        *place = field;
    }
}

fn store<const AT: usize, const N: usize>(batch: &mut [u8], field: [u8; N]) -> Result<(), BatchError> {
    let place = batch.get_mut(AT..).and_then(<[u8]>::first_chunk_mut);
    *place.ok_or(BatchError::new(BatchErrorKind::Partial))? = field;
    Ok(())
}
