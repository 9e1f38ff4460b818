//! Finding the batches of a partition among the entries of a part of the journal.

use std::ops::ControlFlow;

use bytes::Bytes;
use kolumn_journal::{FilePin, Position};

use super::decode::{damaged, misplaced};
use crate::core::decode;
use crate::entry::{BATCH_AT, Entry};
use crate::error::ReadError;
use crate::ids::{PartitionIndex, TopicId};
use crate::state::Place;
use crate::state::index::Span;

/// Batches with consecutive offsets, as far as they were found.
#[derive(Debug)]
pub(super) struct Search {
    topic: TopicId,
    partition: PartitionIndex,
    expected: i64,
    last: i64,
    found: Vec<(Span, Bytes)>,
}

impl Search {
    pub(super) const fn new(topic: TopicId, partition: PartitionIndex, base: i64, last: i64) -> Self {
        Self { topic, partition, expected: base, last, found: Vec::new() }
    }

    /// Looks at an entry; says whether all batches are found.
    pub(super) fn visit(&mut self, position: u64, bytes: &Bytes) -> Result<bool, ReadError> {
        let (entry, place) = decode(position, position, bytes).map_err(damaged)?;
        if let (Entry::Appended(meta) | Entry::Carried(meta), Some(Place { group, position })) =
            (entry, place)
            && (meta.topic, meta.partition) == (self.topic, self.partition)
            && meta.base_offset == self.expected
        {
            self.expected = meta.last_offset.saturating_add(1);
            let span = Span::of(&meta, Place::new(group, position), meta.max_timestamp);
            self.found.push((span, bytes.slice(BATCH_AT.min(bytes.len())..)));
        }
        Ok(self.expected > self.last)
    }

    /// The batches, if all were found.
    pub(super) fn finish(self) -> Result<Vec<(Span, Bytes)>, ReadError> {
        if self.expected > self.last { Ok(self.found) } else { Err(misplaced(self.expected)) }
    }
}

/// The batches of joined spans that lie in one file; blocks. The bytes of those beyond a limit are not kept.
pub(super) fn search_file(
    topic: TopicId,
    partition: PartitionIndex,
    spans: &[Span],
    pin: &FilePin,
) -> Result<Vec<(Span, Option<Bytes>)>, ReadError> {
    let Some((first, last)) = spans.first().zip(spans.last()) else { return Ok(Vec::new()) };
    // From its group a scan begins without looking for one. Where the front was carried away, that is not its group any
    // more, but one before it.
    let mut search = Search::new(topic, partition, first.base, last.last);
    let mut found = Vec::new();
    let mut held_len = 0_usize;
    let mut fault = None;
    pin.scan(Position::new(first.group), Position::new(last.end), |entry| {
        match search.visit(entry.position.value(), &entry.bytes) {
            Ok(is_done) => {
                for (span, bytes) in search.found.drain(..) {
                    let is_kept = held_len < HELD_LEN_MAX;
                    held_len = held_len.saturating_add(bytes.len());
                    found.push((span, is_kept.then_some(bytes)));
                }
                if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
            Err(error) => {
                fault = Some(error);
                ControlFlow::Break(())
            }
        }
    })
    .map_err(damaged)?;
    match fault {
        Some(fault) => Err(fault),
        None => search.finish().map(|_| found),
    }
}

/// Bytes of batches that a search of a file keeps; the others are read again.
const HELD_LEN_MAX: usize = 4 << 20;
