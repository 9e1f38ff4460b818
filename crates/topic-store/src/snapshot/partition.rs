//! One partition in a snapshot: a copy of its index, and holds on the files that it points into.

use std::collections::BTreeMap;
use std::ops::Range;

use kolumn_journal::{FilePin, Journal, Position};

use crate::error::{ReadError, ReadErrorKind};
use crate::ids::{PartitionIndex, Timestamp};
use crate::state::index::Span;
use crate::state::partition::Partition;

/// One partition in a snapshot.
///
/// INVARIANT: spans follow each other in offset without gaps, cover `offsets`, and each has a pin that holds its position.
#[derive(Debug)]
pub struct PartitionSnapshot {
    index: PartitionIndex,
    offsets: Range<i64>,
    len: u64,
    spans: Vec<Span>,
    /// By position, each file once.
    pins: Vec<FilePin>,
}

/// What is known of the greatest timestamp of a partition without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is exact or a bound")]
pub enum MaxTimestamp {
    /// It is this one; `None` if no record has a timestamp.
    Exact(Option<Timestamp>),
    /// It is not greater than this one.
    AtMost(Timestamp),
}

impl PartitionSnapshot {
    /// Copies a partition. To be called under the readers' lock: what the state points at has not been freed then.
    pub(super) fn of(
        index: PartitionIndex,
        partition: &Partition,
        journal: &Journal,
    ) -> Result<Self, ReadError> {
        let offsets = partition.log_start..partition.next;
        let spans: Vec<Span> = partition.spans.iter().cloned().collect();
        let mut pins: BTreeMap<u64, FilePin> = BTreeMap::new();
        let mut last: Option<FilePin> = None;
        for span in &spans {
            let position = Position::new(span.position);
            if last.as_ref().is_some_and(|pin| pin.holds(position)) {
                continue;
            }
            let pin = journal.pin(position);
            let pin = pin.ok_or_else(|| ReadError::new(ReadErrorKind::Gone, "the file has been freed"))?;
            pins.entry(pin.base().value()).or_insert_with(|| pin.clone());
            last = Some(pin);
        }
        let found = Self { index, offsets, len: partition.len, spans, pins: pins.into_values().collect() };
        found.check();
        Ok(found)
    }

    /// Its index.
    #[must_use]
    pub const fn index(&self) -> PartitionIndex {
        self.index
    }

    /// The offsets of its rows, first to after the last. Every offset in it is a row.
    #[must_use]
    pub const fn offsets(&self) -> Range<i64> {
        self.offsets.start..self.offsets.end
    }

    /// Bytes of its batches as they lie in the journal. Batches that reach below the log start count whole.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.len
    }

    /// The greatest timestamp, as far as it is known without reading.
    #[must_use]
    pub fn max_timestamp(&self) -> MaxTimestamp {
        let greatest = self.spans.iter().map(|span| span.own_max).max().filter(|greatest| *greatest >= 0);
        let Some(greatest) = greatest else { return MaxTimestamp::Exact(None) };
        // What was joined keeps the maximum of a batch that was carried away from it, and what reaches below the log start
        // that of a record that is not a row.
        let attains =
            |span: &Span| span.own_max == greatest && !span.is_thinned() && span.base >= self.offsets.start;
        if self.spans.iter().any(attains) {
            MaxTimestamp::Exact(Some(Timestamp::new(greatest)))
        } else {
            MaxTimestamp::AtMost(Timestamp::new(greatest))
        }
    }

    /// Cuts a range of offsets into at most `parts` ranges of about the same number of bytes, at borders of batches. What
    /// lies outside of the partition is left out; where nothing is left, there are no ranges.
    #[must_use]
    pub fn split(&self, offsets: Range<i64>, parts: usize) -> Vec<Range<i64>> {
        let wanted = offsets.start.max(self.offsets.start)..offsets.end.min(self.offsets.end);
        if wanted.is_empty() {
            return Vec::new();
        }
        let first = self.span_at(wanted.start);
        let spans = self.spans.iter().skip(first).take_while(|span| span.base < wanted.end);
        let total: u64 = spans.clone().map(|span| span.len).sum();
        let parts = u64::try_from(parts.max(1)).unwrap_or(u64::MAX);
        let part_len = total.div_ceil(parts).max(1);
        let mut ranges = Vec::new();
        let (mut start, mut done, mut due) = (wanted.start, 0_u64, part_len);
        for span in spans {
            done = done.saturating_add(span.len);
            let end = span.last.saturating_add(1).min(wanted.end);
            if done >= due || end == wanted.end {
                ranges.push(start..end);
                start = end;
                due = (done / part_len).saturating_add(1).saturating_mul(part_len);
            }
        }
        ranges
    }

    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The index of the first span that ends at or after `offset`.
    pub(super) fn span_at(&self, offset: i64) -> usize {
        self.spans.partition_point(|span| span.last < offset)
    }

    /// The hold on the file in which a position lies.
    pub(super) fn pin(&self, position: u64) -> Option<&FilePin> {
        let after = self.pins.partition_point(|pin| pin.base().value() <= position);
        self.pins.get(after.checked_sub(1)?).filter(|pin| pin.holds(Position::new(position)))
    }

    /// Appends take only batches whose records have the offsets 0, 1, 2, ... from their base, and only where the batch before
    /// ended; nothing takes records out of the middle. Compaction will end this, and then a snapshot has to know the gaps.
    fn check(&self) {
        debug_assert!(
            self.spans.iter().zip(self.spans.iter().skip(1)).all(|(one, two)| one.last + 1 == two.base),
            "offsets have no gaps"
        );
        debug_assert!(
            self.offsets.is_empty()
                || self.spans.first().is_some_and(|span| span.base <= self.offsets.start)
                    && self.spans.last().is_some_and(|span| span.last + 1 == self.offsets.end),
            "every offset is a row"
        );
    }
}
