//! The index of a partition: where its live batches are, one span a batch until memory is short, then one for several.
//!
//! A span of several batches names the stretch of the journal in which they lie, among entries of others; who reads
//! there scans. Thinning joins neighbours in the older half of every index, never across a *stride* of the journal's
//! positions. Strides grow only as far as a journal file, so that a span never crosses files. All of this follows from
//! the order of entries alone: two folds of the same entries thin alike.

use std::collections::VecDeque;

use crate::entry::BatchMeta;

/// Where a batch was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where its group begins, or one before it ends: a scan begins there without searching.
    pub(crate) group: u64,
    /// Where its bytes begin.
    pub(crate) position: u64,
}

impl Place {
    pub(crate) const fn new(group: u64, position: u64) -> Self {
        Self { group, position }
    }
}

/// One or several batches that follow each other in offset and position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) base: i64,
    pub(crate) last: i64,
    pub(crate) group: u64,
    pub(crate) position: u64,
    /// Where the last batch ends.
    pub(crate) end: u64,
    /// Bytes of the batches alone.
    pub(crate) len: u64,
    pub(crate) batches: u32,
    /// The greatest timestamp in it; where the front was carried away, an upper bound.
    pub(crate) own_max: i64,
    /// The greatest timestamp in it or before it: never falls from one span to the next.
    pub(crate) running_max: i64,
    /// The age that retention goes by: the greatest timestamp, or when it was appended if records have none.
    pub(crate) aged_from: i64,
}

impl Span {
    pub(crate) fn of(meta: &BatchMeta, place: Place, running_max: i64) -> Self {
        let len = meta.len as u64;
        let aged_from = if meta.max_timestamp < 0 { meta.appended.value() } else { meta.max_timestamp };
        Self {
            base: meta.base_offset,
            last: meta.last_offset,
            group: place.group,
            position: place.position,
            end: place.position.saturating_add(len),
            len,
            batches: 1,
            own_max: meta.max_timestamp,
            running_max: running_max.max(meta.max_timestamp),
            aged_from,
        }
    }

    /// Whether it has to be scanned to be read.
    pub(crate) const fn is_thinned(&self) -> bool {
        self.end - self.position != self.len
    }

    pub(crate) const fn place_at(&mut self, place: Place) {
        self.group = place.group;
        self.position = place.position;
        self.end = place.position.saturating_add(self.len);
        self.batches = 1;
    }

    /// Takes in the span that follows in the same file.
    pub(crate) fn join(&mut self, next: &Self) {
        self.last = next.last;
        self.end = next.end;
        self.len = self.len.saturating_add(next.len);
        self.batches = self.batches.saturating_add(next.batches);
        self.own_max = self.own_max.max(next.own_max);
        self.running_max = self.running_max.max(next.running_max);
        self.aged_from = self.aged_from.max(next.aged_from);
    }
}

/// How much index one state may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexLimits {
    /// Above this the older half is thinned.
    pub(crate) spans_max: usize,
    /// The largest stride, as a power of two.
    pub(crate) stride_bits_max: u32,
}

impl IndexLimits {
    pub(crate) fn new(len_max: usize, file_len: u64) -> Self {
        Self {
            spans_max: (len_max / size_of::<Span>()).max(SPANS_MIN),
            stride_bits_max: file_len.trailing_zeros().clamp(STRIDE_BITS_MIN, 63),
        }
    }
}

/// Where thinning stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Thinning {
    pub(crate) limits: IndexLimits,
    /// Spans in all partitions.
    pub(crate) spans: usize,
    /// The next run is due above this.
    pub(crate) due_above: usize,
    /// The present stride, as a power of two.
    pub(crate) stride_bits: u32,
}

impl Thinning {
    pub(crate) const fn new(limits: IndexLimits) -> Self {
        let stride_bits = if limits.stride_bits_max < FIRST_STRIDE_BITS {
            limits.stride_bits_max
        } else {
            FIRST_STRIDE_BITS
        };
        Self { limits, spans: 0, due_above: limits.spans_max, stride_bits }
    }

    pub(crate) const fn is_due(&self) -> bool {
        self.spans > self.due_above
    }

    /// Joins spans in the older half of each index until an eighth is gained, or nothing more can be.
    pub(crate) fn run<'a>(&mut self, indexes: impl Iterator<Item = &'a mut VecDeque<Span>>) {
        let mut indexes: Vec<_> = indexes.collect();
        let gain = (self.limits.spans_max / 8).max(1);
        let target = self.limits.spans_max.saturating_sub(gain);
        loop {
            let joined: usize = indexes.iter_mut().map(|spans| thin(spans, self.stride_bits)).sum();
            self.spans = self.spans.saturating_sub(joined);
            if self.spans <= target {
                break;
            }
            if joined == 0 {
                if self.stride_bits >= self.limits.stride_bits_max {
                    break;
                }
                self.stride_bits += 1;
            }
        }
        self.due_above = self.limits.spans_max.max(self.spans.saturating_add(gain));
    }
}

/// Joins neighbouring pairs in the older half; says how many spans fewer there are.
fn thin(spans: &mut VecDeque<Span>, stride_bits: u32) -> usize {
    let before = spans.len();
    let newer = spans.split_off(before / 2);
    let mut thinned: VecDeque<Span> = VecDeque::with_capacity(before / 2);
    let mut may_join = false;
    for span in spans.drain(..) {
        match thinned.back_mut() {
            Some(previous) if may_join && are_neighbours(previous, &span, stride_bits) => {
                previous.join(&span);
                may_join = false;
            }
            _ => {
                thinned.push_back(span);
                may_join = true;
            }
        }
    }
    *spans = thinned;
    spans.extend(newer);
    before.saturating_sub(spans.len())
}

const fn are_neighbours(one: &Span, two: &Span, stride_bits: u32) -> bool {
    one.last + 1 == two.base
        && two.position >= one.end
        && one.position >> stride_bits == two.position >> stride_bits
}

const SPANS_MIN: usize = 16;
const STRIDE_BITS_MIN: u32 = 12;
/// 1 MiB: what a reader of a thinned stretch scans at first, at most.
const FIRST_STRIDE_BITS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn span(base: i64, position: u64) -> Span {
        Span {
            base,
            last: base,
            group: position,
            position,
            end: position + 100,
            len: 100,
            batches: 1,
            own_max: base,
            running_max: base,
            aged_from: base,
        }
    }

    #[test]
    fn thinning_joins_pairs_of_the_older_half_within_a_stride() {
        let mut spans: VecDeque<_> = (0..8_u8).map(|n| span(n.into(), u64::from(n) * 1000)).collect();
        assert_eq!(thin(&mut spans, 20), 2);
        let bounds: Vec<_> = spans.iter().map(|span| (span.base, span.last, span.batches)).collect();
        assert_eq!(bounds[..3], [(0, 1, 2), (2, 3, 2), (4, 4, 1)]);
        assert!(spans[0].is_thinned() && !spans[2].is_thinned());

        let mut apart: VecDeque<_> = (0..8_u8).map(|n| span(n.into(), u64::from(n) << 20)).collect();
        assert_eq!(thin(&mut apart, 20), 0);
        assert_eq!(thin(&mut apart, 21), 2);
    }

    #[test]
    fn thinning_stays_below_its_limit_while_strides_can_grow() {
        let limits = IndexLimits { spans_max: 64, stride_bits_max: 26 };
        let mut thinning = Thinning::new(limits);
        let mut index = VecDeque::new();
        for n in 0..2000_u16 {
            index.push_back(span(n.into(), u64::from(n) * 4096));
            thinning.spans += 1;
            if thinning.is_due() {
                thinning.run(std::iter::once(&mut index));
            }
            assert!(index.len() <= 65);
            assert_eq!(thinning.spans, index.len());
        }
        assert_eq!(index.iter().map(|span| span.batches).sum::<u32>(), 2000);
        assert!(index.iter().zip(index.iter().skip(1)).all(|(one, two)| one.last + 1 == two.base));
    }
}
