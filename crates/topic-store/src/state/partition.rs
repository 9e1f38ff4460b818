//! One partition: its offsets, epochs, producers and the index of its live batches.

use std::collections::{BTreeMap, VecDeque};

use crate::entry::BatchMeta;
use crate::ids::ProducerId;

use super::index::{Place, Span};
use super::producers::Producer;

/// INVARIANT: `log_start <= next`; spans are sorted by offset without overlap, end at or after `log_start` and before
/// `next`; `len` is the sum of theirs; epochs are strictly ascending in both fields but the first start.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Partition {
    pub(crate) log_start: i64,
    /// The offset that the next record gets; in the applied state the high watermark.
    pub(crate) next: i64,
    /// Bytes of the batches in the index.
    pub(crate) len: u64,
    pub(crate) epochs: Vec<EpochStart>,
    pub(crate) producers: BTreeMap<ProducerId, Producer>,
    pub(crate) spans: VecDeque<Span>,
}

/// The first offset of a leader epoch under which records exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EpochStart {
    pub(crate) epoch: i32,
    pub(crate) start: i64,
}

impl Partition {
    pub(crate) fn append(&mut self, meta: &BatchMeta, place: Option<Place>) {
        debug_assert_eq!(meta.base_offset, self.next, "offsets are assigned without gaps");
        self.next = self.next.max(meta.last_offset.saturating_add(1));
        if self.epochs.last().is_none_or(|last| last.epoch < meta.leader_epoch) {
            self.epochs.push(EpochStart { epoch: meta.leader_epoch, start: meta.base_offset });
        }
        if let Some(run) = &meta.producer {
            let producer = self.producers.entry(run.id).or_insert_with(|| Producer::new(run.epoch));
            producer.push(run, meta.base_offset, meta.appended);
        }
        if let Some(place) = place {
            let running = self.spans.back().map_or(i64::MIN, |span| span.running_max);
            let span = Span::of(meta, place, running);
            self.len = self.len.saturating_add(span.len);
            self.spans.push_back(span);
        }
    }

    pub(crate) fn advance_log_start(&mut self, offset: i64) {
        self.log_start = self.log_start.max(offset.min(self.next));
        while let Some(span) = self.spans.front().filter(|span| span.last < self.log_start) {
            self.len = self.len.saturating_sub(span.len);
            self.spans.pop_front();
        }
        let gone = self.epochs.partition_point(|epoch| epoch.start <= self.log_start).saturating_sub(1);
        self.epochs.drain(..gone);
    }

    /// The batch has a new place. Says whether that took one more span: the front of a span of several is split off.
    ///
    /// Batches are carried in the order of their offsets, so that it can only be the front.
    pub(crate) fn carry(&mut self, meta: &BatchMeta, place: Place) -> bool {
        let at = self.span_at(meta.base_offset);
        let Some(span) = self.spans.get_mut(at).filter(|span| span.base == meta.base_offset) else {
            return false;
        };
        if span.last == meta.last_offset {
            span.place_at(place);
            return false;
        }
        let front = Span::of(meta, place, span.running_max);
        span.base = meta.last_offset.saturating_add(1);
        span.len = span.len.saturating_sub(front.len);
        span.batches = span.batches.saturating_sub(1);
        self.spans.insert(at, front);
        true
    }

    /// The index of the first span that ends at or after `offset`.
    pub(crate) fn span_at(&self, offset: i64) -> usize {
        self.spans.partition_point(|span| span.last < offset)
    }

    /// The epoch under which `offset` was written, as far as it is remembered.
    pub(crate) fn epoch_of(&self, offset: i64) -> Option<i32> {
        let after = self.epochs.partition_point(|epoch| epoch.start <= offset);
        self.epochs.get(after.saturating_sub(1)).map(|found| found.epoch)
    }

    /// The greatest epoch up to `epoch`, and the first offset after its records.
    pub(crate) fn epoch_end(&self, epoch: i32) -> Option<(i32, i64)> {
        let after = self.epochs.partition_point(|known| known.epoch <= epoch);
        let found = self.epochs.get(after.checked_sub(1)?)?;
        Some((found.epoch, self.epochs.get(after).map_or(self.next, |next| next.start)))
    }

    pub(crate) fn check(&self) {
        debug_assert!(self.log_start <= self.next, "the log starts before its end");
        debug_assert!(
            self.spans.iter().zip(self.spans.iter().skip(1)).all(|(one, two)| one.last < two.base),
            "spans are sorted"
        );
        debug_assert!(
            self.spans.iter().all(|span| span.last >= self.log_start && span.last < self.next),
            "spans are live"
        );
        debug_assert_eq!(self.len, self.spans.iter().map(|span| span.len).sum::<u64>(), "bytes are counted");
    }
}
