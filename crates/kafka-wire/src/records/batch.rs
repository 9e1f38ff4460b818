//! A view of one record batch: its header's fields and its payload.

use core::iter::FusedIterator;

use super::attributes::Attributes;
use super::compression::Inflater;
use super::crc::crc32c;
use super::error::{BatchError, BatchErrorKind, InflateError};
use super::record::{Records, iter_records};

/// The length of a batch's header, which ends with the record count.
pub const HEADER_LEN: usize = 61;

/// The header's fields: where each begins.
pub(super) mod at {
    pub(crate) const BASE_OFFSET: usize = 0;
    pub(crate) const BATCH_LENGTH: usize = 8;
    pub(crate) const LEADER_EPOCH: usize = 12;
    pub(crate) const MAGIC: usize = 16;
    pub(crate) const CRC: usize = 17;
    /// From here to the end the checksum covers everything.
    pub(crate) const ATTRIBUTES: usize = 21;
    pub(crate) const LAST_OFFSET_DELTA: usize = 23;
    pub(crate) const BASE_TIMESTAMP: usize = 27;
    pub(crate) const MAX_TIMESTAMP: usize = 35;
    pub(crate) const PRODUCER_ID: usize = 43;
    pub(crate) const PRODUCER_EPOCH: usize = 51;
    pub(crate) const BASE_SEQUENCE: usize = 53;
    pub(crate) const RECORD_COUNT: usize = 57;
}

/// The bytes that `batch_length` does not count: base offset and itself.
pub(super) const LENGTH_OVERHEAD: usize = 12;
/// The format version that this module is about.
pub(super) const MAGIC: i8 = 2;

/// One complete batch of format version 2, borrowed.
///
/// Only the frame has been looked at: length and magic are right and all bytes are there. Whether the
/// content deserves trust is for [`computed_crc`](Self::computed_crc) and
/// [`validate`](super::validate) to say.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    bytes: &'a [u8],
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Batch<'a> {
    /// Takes one batch off the front of `input` and returns it with the rest.
    ///
    /// # Errors
    /// [`UnsupportedMagic`](BatchErrorKind::UnsupportedMagic) for another format version,
    /// [`InvalidLength`](BatchErrorKind::InvalidLength) for a length that cannot hold a header,
    /// [`Partial`](BatchErrorKind::Partial) if the batch does not end in `input`.
    pub fn parse(input: &'a [u8]) -> Result<(Self, &'a [u8]), BatchError> {
        let length = declared_len(input)?;
        let (bytes, rest) = input.split_at_checked(length).ok_or(BatchError::new(BatchErrorKind::Partial))?;
        let (header, payload) = bytes.split_first_chunk().ok_or(BatchError::new(BatchErrorKind::Partial))?;
        Ok((Self { bytes, header, payload }, rest))
    }

    /// The whole batch as it is on the wire.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The header as it is on the wire.
    #[must_use]
    pub const fn header(&self) -> &'a [u8; HEADER_LEN] {
        self.header
    }

    /// The records, compressed if the attributes say so.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The offset of the first record. A producer does not know it and sends what it likes.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        i64::from_be_bytes(self.field::<{ at::BASE_OFFSET }, 8>())
    }

    /// The length of what follows this field, at least 49.
    #[must_use]
    pub fn batch_length(&self) -> i32 {
        i32::from_be_bytes(self.field::<{ at::BATCH_LENGTH }, 4>())
    }

    /// The leader epoch in which the batch was appended.
    #[must_use]
    pub fn partition_leader_epoch(&self) -> i32 {
        i32::from_be_bytes(self.field::<{ at::LEADER_EPOCH }, 4>())
    }

    /// The format version, 2.
    #[must_use]
    pub fn magic(&self) -> i8 {
        i8::from_be_bytes(self.field::<{ at::MAGIC }, 1>())
    }

    /// The stored checksum.
    #[must_use]
    pub fn crc(&self) -> u32 {
        u32::from_be_bytes(self.field::<{ at::CRC }, 4>())
    }

    /// The checksum that the batch should have: CRC-32C from the attributes to the end.
    #[must_use]
    pub fn computed_crc(&self) -> u32 {
        crc32c(self.bytes.get(at::ATTRIBUTES..).unwrap_or_default(), &[])
    }

    /// Codec, timestamp type and flags.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        Attributes::from_bits(i16::from_be_bytes(self.field::<{ at::ATTRIBUTES }, 2>()))
    }

    /// The offset of the last record the batch had when it was written, relative to the base offset.
    #[must_use]
    pub fn last_offset_delta(&self) -> i32 {
        i32::from_be_bytes(self.field::<{ at::LAST_OFFSET_DELTA }, 4>())
    }

    /// What the records' timestamps are relative to, in milliseconds since 1970.
    #[must_use]
    pub fn base_timestamp(&self) -> i64 {
        i64::from_be_bytes(self.field::<{ at::BASE_TIMESTAMP }, 8>())
    }

    /// The greatest timestamp, or the time of the append if the type is log append time.
    #[must_use]
    pub fn max_timestamp(&self) -> i64 {
        i64::from_be_bytes(self.field::<{ at::MAX_TIMESTAMP }, 8>())
    }

    /// The producer's id, -1 if it is not idempotent.
    #[must_use]
    pub fn producer_id(&self) -> i64 {
        i64::from_be_bytes(self.field::<{ at::PRODUCER_ID }, 8>())
    }

    /// The producer's epoch, -1 if it is not idempotent.
    #[must_use]
    pub fn producer_epoch(&self) -> i16 {
        i16::from_be_bytes(self.field::<{ at::PRODUCER_EPOCH }, 2>())
    }

    /// The sequence number of the first record, -1 if the producer is not idempotent.
    #[must_use]
    pub fn base_sequence(&self) -> i32 {
        i32::from_be_bytes(self.field::<{ at::BASE_SEQUENCE }, 4>())
    }

    /// How many records the payload has. A batch that compaction emptied has none and keeps its offsets.
    #[must_use]
    pub fn record_count(&self) -> i32 {
        i32::from_be_bytes(self.field::<{ at::RECORD_COUNT }, 4>())
    }

    /// The last offset that the batch covers.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.base_offset().wrapping_add(i64::from(self.last_offset_delta()))
    }

    /// The offset after the batch.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.last_offset().wrapping_add(1)
    }

    /// The payload as records: inflated into the buffers of `inflater`, or itself if it is not compressed.
    ///
    /// # Errors
    /// If the codec is unknown or not built, if the data is damaged, or if it inflates to more than `limit`.
    pub fn decompress<'s>(&self, inflater: &'s mut Inflater, limit: usize) -> Result<&'s [u8], InflateError>
    where
        'a: 's,
    {
        let codec = self.attributes().codec().map_err(InflateError::unknown_codec)?;
        inflater.inflate(codec, self.payload, limit)
    }

    /// Inflates the payload as [`decompress`](Self::decompress) does and walks its records.
    ///
    /// # Errors
    /// Those of [`decompress`](Self::decompress).
    pub fn records<'s>(&self, inflater: &'s mut Inflater, limit: usize) -> Result<Records<'s>, InflateError>
    where
        'a: 's,
    {
        Ok(iter_records(self.decompress(inflater, limit)?, self.record_count()))
    }

    /// The `N` bytes at `AT`, which the compiler checks to be inside the header.
    #[inline]
    fn field<const AT: usize, const N: usize>(&self) -> [u8; N] {
        const { assert!(AT + N <= HEADER_LEN, "a field lies inside the header") };
        self.header.get(AT..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
    }
}

/// The batches of a records field, in order; the first error ends the walk.
#[must_use]
pub const fn batches(records: &[u8]) -> Batches<'_> {
    Batches { rest: records, failed: false }
}

/// The iterator behind [`batches`].
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
    failed: bool,
}

impl<'a> Batches<'a> {
    /// What has not been walked yet: after an error, from where it occurred to the end.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() || self.failed {
            return None;
        }
        match Batch::parse(self.rest) {
            Ok((batch, rest)) => {
                self.rest = rest;
                Some(Ok(batch))
            }
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}

impl FusedIterator for Batches<'_> {}

/// The length that the batch at the front of `input` claims, once its magic and its length are known
/// to be possible.
fn declared_len(input: &[u8]) -> Result<usize, BatchError> {
    let partial = BatchError::new(BatchErrorKind::Partial);
    let [.., l0, l1, l2, l3, _, _, _, _, magic] = *input.first_chunk::<{ at::MAGIC + 1 }>().ok_or(partial)?;
    let magic = magic.cast_signed();
    if magic != MAGIC {
        return Err(BatchError::new(BatchErrorKind::UnsupportedMagic(magic)));
    }
    let claimed = i32::from_be_bytes([l0, l1, l2, l3]);
    let length = usize::try_from(claimed).ok().and_then(|length| length.checked_add(LENGTH_OVERHEAD));
    length
        .filter(|length| *length >= HEADER_LEN)
        .ok_or(BatchError::new(BatchErrorKind::InvalidLength(claimed)))
}
