//! One partition: where its batches lie, by offset.

use std::collections::VecDeque;
use std::ops::Range;

use crate::batch::Header;

/// One batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    base_offset: i64,
    /// Its position in the log.
    pub(super) at: u64,
    pub(super) len: usize,
}

/// The batches of one partition. They end where the log's circle has come round.
#[derive(Debug, Default)]
pub(super) struct Partition {
    entries: VecDeque<Entry>,
    /// The offset after the last batch that was gathered, and after the last that is durable.
    next: i64,
    end: i64,
}

impl Partition {
    /// Notes a batch and gives it its offset.
    pub(super) fn push(&mut self, at: u64, len: usize, header: &Header) -> i64 {
        let base_offset = self.next;
        self.entries.push_back(Entry { base_offset, at, len });
        self.next += i64::from(header.last_offset_delta) + 1;
        base_offset
    }

    /// All that was gathered is durable; what lies before `oldest` is forgotten.
    pub(super) fn commit(&mut self, oldest: u64) {
        self.end = self.next;
        while self.entries.front().is_some_and(|entry| entry.at < oldest) {
            self.entries.pop_front();
        }
    }

    /// The offsets that can be read, with what lies at `oldest` or later.
    pub(super) fn offsets(&self, oldest: u64) -> Range<i64> {
        let first = self.entries.get(self.entries.partition_point(|entry| entry.at < oldest));
        first.map_or(self.end, |entry| entry.base_offset).min(self.end)..self.end
    }

    /// The durable batches from the one that covers `offset` on.
    pub(super) fn from(&self, offset: i64) -> impl Iterator<Item = &Entry> {
        let after = self.entries.partition_point(|entry| entry.base_offset <= offset);
        let end = self.entries.partition_point(|entry| entry.base_offset < self.end);
        let from = if offset < self.end { after.saturating_sub(1) } else { end };
        self.entries.range(from.min(end)..end)
    }
}
