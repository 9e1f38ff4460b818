//! What readers ask for and get: offsets, whole batches as slices of the journal, records found by time.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::FilePin;

use crate::core::Core;
use crate::error::{ReadError, ReadErrorKind};
use crate::ids::{LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicId};

/// A partition's offsets, taken at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionOffsets {
    /// The first record that can be read.
    pub log_start: Offset,
    /// The offset after the last durable record: what the next one gets.
    pub high_watermark: Offset,
    /// Up to where no transaction is open; without transactions the high watermark.
    pub last_stable: Offset,
    /// The epoch under which records are appended now.
    pub leader_epoch: LeaderEpoch,
}

/// A request to read from one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers build it field by field")]
pub struct ReadRequest {
    /// The topic.
    pub topic: TopicId,
    /// The partition.
    pub partition: PartitionIndex,
    /// The first record wanted; the batch that holds it comes whole.
    pub offset: Offset,
    /// How many bytes, at most.
    pub max_len: usize,
    /// Whether the first batch comes even if it is larger.
    pub at_least_one_batch: bool,
}

/// What [`Store::try_read`](crate::Store::try_read) found without touching the disk.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "the two ways in which a call that never blocks can end")]
pub enum ReadOutcome {
    /// The answer.
    Ready(Read),
    /// The index has been thinned there: [`Store::read`](crate::Store::read) finds the batches by scanning.
    NeedsDisk,
}

/// Whole batches, one after the other, none above the high watermark.
#[derive(Debug)]
#[non_exhaustive]
pub struct Read {
    /// The partition's offsets when the batches were chosen.
    pub offsets: PartitionOffsets,
    /// The offset after the last batch; the one asked for if there is none. Below the high watermark, more is there
    /// than the limits of the request allowed.
    pub next_offset: Offset,
    /// The sum of the slices' lengths.
    pub len: usize,
    /// The batches in order.
    pub slices: Vec<Slice>,
}

/// One batch as it lies in the journal. Holds no memory of it: only its place, and the file so that it stays.
pub struct Slice {
    core: Arc<Core>,
    pin: FilePin,
    position: u64,
    len: usize,
}

impl Slice {
    pub(crate) const fn new(core: Arc<Core>, pin: FilePin, position: u64, len: usize) -> Self {
        Self { core, pin, position, len }
    }

    /// Its length in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// All of it, if it is still in memory. Never blocks on the disk.
    #[must_use]
    pub fn try_bytes(&self) -> Option<Bytes> {
        let in_tail = self.core.tail.read().get(self.position, self.len);
        in_tail.or_else(|| self.core.ahead.known(self.position, self.len))
    }

    /// Whether it is among the newest batches, which memory holds anyhow.
    #[must_use]
    pub fn is_recent(&self) -> bool {
        self.core.tail.read().get(self.position, self.len).is_some()
    }

    pub(crate) fn place(&self) -> (&FilePin, Range<u64>) {
        (&self.pin, self.position..self.position.saturating_add(self.len as u64))
    }

    /// A part of it, from memory or, blocking, from the file.
    ///
    /// # Errors
    /// If the range does not lie in the slice, or the disk refuses.
    pub fn read(&self, range: Range<usize>) -> Result<Bytes, ReadError> {
        let len = range.end.checked_sub(range.start).filter(|_| range.end <= self.len);
        let Some(len) = len else {
            return Err(ReadError::new(ReadErrorKind::Io, "the range does not lie in the slice"));
        };
        let position = self.position.saturating_add(range.start as u64);
        self.core.bytes(&self.pin, position, len)
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slice")
            .field("position", &self.position)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// A record found by its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeIndexHit {
    /// Its offset.
    pub offset: Offset,
    /// Its timestamp.
    pub timestamp: Timestamp,
    /// The epoch under which it was appended.
    pub leader_epoch: LeaderEpoch,
}
