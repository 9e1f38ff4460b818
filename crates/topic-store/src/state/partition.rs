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
        // The log start may lie within a span of several: what is carried from before it is only taken off.
        let is_live = front.last >= self.log_start;
        if is_live {
            self.spans.insert(at, front);
        } else {
            self.len = self.len.saturating_sub(front.len);
        }
        is_live
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

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::{PartitionIndex, Timestamp, TopicId};
    use crate::state::index::{IndexLimits, Thinning};

    fn meta(base_offset: i64, epoch: i32) -> BatchMeta {
        BatchMeta {
            topic: TopicId::new(Uuid::nil()),
            partition: PartitionIndex::new(0),
            appended: Timestamp::new(0),
            base_offset,
            last_offset: base_offset + 9,
            max_timestamp: base_offset,
            leader_epoch: epoch,
            producer: None,
            len: 100,
        }
    }

    /// Eight batches of ten records, of which the first four share two spans.
    fn thinned() -> Partition {
        let mut partition = Partition::default();
        for n in 0..8_i32 {
            let place = Place::new(4096, 4096 + 200 * u64::try_from(n).expect("small"));
            partition.append(&meta(i64::from(n) * 10, n / 4), Some(place));
        }
        let mut thinning = Thinning::new(IndexLimits { spans_max: 6, stride_bits_max: 26 });
        thinning.spans = 8;
        thinning.run(std::iter::once(&mut partition.spans));
        partition.check();
        partition
    }

    #[track_caller]
    fn check(partition: &Partition, expect: &[(i64, i64, u64)]) {
        partition.check();
        let spans: Vec<_> = partition
            .spans
            .iter()
            .take(expect.len())
            .map(|span| (span.base, span.last, span.position))
            .collect();
        assert_eq!(spans, expect);
    }

    #[test]
    fn the_front_of_a_thinned_span_is_carried_first_and_the_rest_stays_where_it_was() {
        let mut partition = thinned();
        check(&partition, &[(0, 39, 4096)]);
        assert!(partition.carry(&meta(0, 0), Place::new(8192, 9000)));
        check(&partition, &[(0, 9, 9000), (10, 39, 4096)]);
        assert!(!partition.carry(&meta(20, 0), Place::new(8192, 9500)), "not the front");
        assert!(partition.carry(&meta(10, 0), Place::new(8192, 9200)));
        check(&partition, &[(0, 9, 9000), (10, 19, 9200), (20, 39, 4096)]);
        assert_eq!(partition.len, 800);
    }

    #[test]
    fn what_is_carried_from_before_the_log_start_is_taken_off() {
        let mut partition = thinned();
        partition.advance_log_start(15);
        check(&partition, &[(0, 39, 4096)]);
        assert!(!partition.carry(&meta(0, 0), Place::new(8192, 9000)));
        check(&partition, &[(10, 39, 4096)]);
        assert!(partition.carry(&meta(10, 0), Place::new(8192, 9200)));
        check(&partition, &[(10, 19, 9200), (20, 39, 4096)]);
        assert_eq!(partition.len, 700);
    }

    #[test]
    fn a_log_start_leaves_the_epoch_that_it_lies_in() {
        let mut partition = thinned();
        assert_eq!(partition.epoch_end(0), Some((0, 40)));
        partition.advance_log_start(40);
        assert_eq!(partition.epochs, [EpochStart { epoch: 1, start: 40 }]);
        assert_eq!(partition.epoch_of(45), Some(1));
        partition.advance_log_start(1000);
        assert_eq!((partition.log_start, partition.next, partition.len), (80, 80, 0));
        partition.check();
    }
}
