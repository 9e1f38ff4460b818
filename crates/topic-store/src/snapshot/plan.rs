//! Which batches a scan comes to next: consecutive ones, gathered into stretches that are read and decoded together.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::Position;

use super::decode::Sieve;
use super::decoded::RowKey;
use super::partition::PartitionSnapshot;
use super::rows::Chunk;
use super::search::Search;
use super::{Column, Source, TableSnapshot};
use crate::entry::BATCH_AT;
use crate::error::ReadError;
use crate::ids::PartitionIndex;
use crate::state::index::Span;

/// A run of consecutive rows.
#[derive(Debug)]
pub(super) struct Stretch {
    /// Names it to the read that it waits for.
    pub(super) ticket: u64,
    /// Its first row, and whether the rows from there are all of its batches, so that they may be kept.
    pub(super) first: i64,
    pub(super) is_whole: bool,
    pub(super) state: State,
}

/// How far a stretch is. Batches are in the order of their offsets.
#[derive(Debug)]
pub(super) enum State {
    /// Decoded before.
    Decoded(Arc<Chunk>),
    /// In memory.
    Held(VecDeque<(Span, Bytes)>),
    /// In files, each batch at a known place.
    Known(Vec<Span>),
    /// In a file, in spans of several batches.
    Joined(Vec<Span>),
}

impl Stretch {
    /// Whether it has to be read from files.
    pub(super) const fn waits(&self) -> bool {
        matches!(self.state, State::Known(_) | State::Joined(_))
    }
}

/// What is left to be planned of a scan.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) table: Arc<TableSnapshot>,
    pub(super) partition: PartitionIndex,
    /// The rows that can be wanted, whatever the filter says.
    pub(super) wanted: Range<i64>,
    /// Those of them that are not planned yet.
    pub(super) rest: Range<i64>,
    pub(super) descending: bool,
    /// The columns that a stretch decoded before has to have; `None` if such stretches are of no use.
    pub(super) columns: Option<Vec<Column>>,
    /// The rows of a batch. What was decoded in longer pieces is of no use: each slice of it would count as the whole where
    /// memory is accounted for.
    pub(super) rows_max: usize,
    /// Whether what is decoded may be kept.
    pub(super) keeps: bool,
    pub(super) tickets: u64,
}

impl Plan {
    /// The next stretch of which rows can pass.
    pub(super) fn next(&mut self, sieve: &Sieve) -> Result<Option<Stretch>, ReadError> {
        let table = Arc::clone(&self.table);
        let Some(partition) = table.partition(self.partition) else { return Ok(None) };
        while !self.rest.is_empty() {
            if let Some(stretch) = self.decoded_before() {
                return Ok(Some(stretch));
            }
            let edge = if self.descending { self.rest.end.saturating_sub(1) } else { self.rest.start };
            let at = partition.span_at(edge);
            let Some(span) = partition.spans().get(at) else { break };
            if !sieve.may_pass(span.own_max) {
                self.pass(span.base, span.last);
                continue;
            }
            let spans = self.gather(partition, at, sieve);
            let (Some(base), Some(last)) =
                (spans.first().map(|span| span.base), spans.last().map(|span| span.last))
            else {
                break;
            };
            let start = if self.descending { base } else { self.rest.start };
            self.pass(base, last);
            return self.stretch(partition, spans, start).map(Some);
        }
        Ok(None)
    }

    /// Stretches for batches of which a search found the places and did not keep the bytes.
    pub(super) fn of_found(&mut self, spans: Vec<Span>) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let mut spans = spans.into_iter().peekable();
        while spans.peek().is_some() {
            let mut size = Size::default();
            let mut part = Vec::new();
            while let Some(span) = spans.next_if(|span| part.is_empty() || size.takes(span)) {
                size.add(&span);
                part.push(span);
            }
            let first = part.first().map_or(0, |span| span.base);
            stretches.push(Stretch {
                ticket: self.ticket(),
                first,
                is_whole: false,
                state: State::Known(part),
            });
        }
        stretches
    }

    fn source(&self) -> &Source {
        &self.table.source
    }

    fn key(&self, offset: i64) -> RowKey {
        RowKey { topic: self.table.topic.id, partition: self.partition, offset }
    }

    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Goes on behind these offsets.
    fn pass(&mut self, base: i64, last: i64) {
        if self.descending {
            self.rest.end = self.rest.end.min(base);
        } else {
            self.rest.start = self.rest.start.max(last.saturating_add(1));
        }
    }

    fn decoded_before(&mut self) -> Option<Stretch> {
        let (columns, first) = (self.columns.as_deref()?, self.rest.start);
        let chunk = self.source().decoded.get(&self.key(first))?;
        if chunk.rows > self.rows_max || !chunk.has_all(columns) {
            return None;
        }
        let after = first.saturating_add(i64::try_from(chunk.rows).ok()?);
        self.rest.start = after;
        Some(Stretch { ticket: self.ticket(), first, is_whole: false, state: State::Decoded(chunk) })
    }

    fn stretch(
        &mut self,
        partition: &PartitionSnapshot,
        spans: Vec<Span>,
        start: i64,
    ) -> Result<Stretch, ReadError> {
        let base = spans.first().map_or(start, |span| span.base);
        let last = spans.last().map_or(start, |span| span.last);
        // Where the request cuts into a batch, or the search for it was, the rest of it is not decoded.
        let is_cut = start == self.wanted.start && start > base.max(partition.offsets().start);
        let is_whole = self.keeps && !is_cut && last < self.wanted.end;
        let state = self.place(spans)?;
        Ok(Stretch { ticket: self.ticket(), first: start, is_whole, state })
    }

    fn place(&self, spans: Vec<Span>) -> Result<State, ReadError> {
        let tail = self.source().core.tail.read();
        if spans.iter().any(Span::is_thinned) {
            let Some((first, last)) = spans.first().zip(spans.last()) else {
                return Ok(State::Joined(spans));
            };
            let entries = first.position.saturating_sub(BATCH_AT as u64)..last.end;
            let Some(entries) = tail.entries(entries) else { return Ok(State::Joined(spans)) };
            let mut search = Search::new(self.table.topic.id, self.partition, first.base, last.last);
            for (position, bytes) in entries {
                if search.visit(position, bytes)? {
                    break;
                }
            }
            return Ok(match search.finish() {
                Ok(found) => State::Held(found.into()),
                Err(_) => State::Joined(spans),
            });
        }
        let held: Option<VecDeque<_>> =
            spans.iter().map(|span| Some((span.clone(), tail.get(span.position, len_of(span))?))).collect();
        Ok(held.map_or(State::Known(spans), State::Held))
    }

    /// Consecutive spans from this one on, in the direction of the scan, that belong together; in the order of offsets.
    fn gather(&self, partition: &PartitionSnapshot, at: usize, sieve: &Sieve) -> Vec<Span> {
        let mut size = Size::default();
        let mut gathered: Vec<Span> = Vec::new();
        // A stretch that is kept without some of the columns ends where it ended.
        let end = self.columns.as_ref().and_then(|_| self.source().decoded.get(&self.key(self.rest.start)));
        let end = end.and_then(|chunk| self.rest.start.checked_add(i64::try_from(chunk.rows).ok()?));
        let tail = self.source().core.tail.read();
        let is_held = |span: &Span| tail.get(span.position, len_of(span)).is_some();
        let mut first_is_held = None;
        let mut take = |span: &Span| {
            let Some(first) = gathered.first() else {
                first_is_held = Some(is_held(span));
                size.add(span);
                gathered.push(span.clone());
                return true;
            };
            let is_outside = span.base >= self.wanted.end || span.last < self.wanted.start;
            let previous = gathered.last().unwrap_or(first);
            let belongs = if first.is_thinned() {
                follows(partition, previous, span, self.descending) && extent(first, span) <= EXTENT_LEN_MAX
            } else {
                !span.is_thinned() && first_is_held == Some(is_held(span))
            };
            let is_kept = || {
                let columns = self.columns.as_deref().filter(|_| !self.descending);
                columns.is_some_and(|columns| self.source().decoded.has(&self.key(span.base), columns))
            };
            let is_beyond = end.is_some_and(|end| span.base >= end);
            if is_outside
                || is_beyond
                || !belongs
                || !size.takes(span)
                || !sieve.may_pass(span.own_max)
                || is_kept()
            {
                return false;
            }
            size.add(span);
            gathered.push(span.clone());
            true
        };
        let (before, from) = partition.spans().split_at_checked(at).unwrap_or_default();
        if self.descending {
            let first = from.iter().take(1);
            let _ = first.chain(before.iter().rev()).take_while(|span| take(span)).count();
            gathered.reverse();
        } else {
            let _ = from.iter().take_while(|span| take(span)).count();
        }
        gathered
    }
}

/// How much a stretch has so far.
#[derive(Debug, Default)]
struct Size {
    spans: usize,
    rows: i64,
    len: u64,
}

impl Size {
    const fn takes(&self, span: &Span) -> bool {
        let rows = self.rows.saturating_add(span.last.saturating_sub(span.base)).saturating_add(1);
        self.spans < SPANS_MAX && rows <= ROWS_MAX && self.len.saturating_add(span.len) <= LEN_MAX
    }

    const fn add(&mut self, span: &Span) {
        self.spans += 1;
        self.rows = self.rows.saturating_add(span.last.saturating_sub(span.base)).saturating_add(1);
        self.len = self.len.saturating_add(span.len);
    }
}

/// Whether one search finds both: they lie in one file in the order of their offsets.
fn follows(partition: &PartitionSnapshot, previous: &Span, span: &Span, descending: bool) -> bool {
    let (one, two) = if descending { (span, previous) } else { (previous, span) };
    let is_same = partition.pin(one.position).is_some_and(|pin| pin.holds(Position::new(two.position)));
    is_same && two.position >= one.end
}

const fn extent(one: &Span, two: &Span) -> u64 {
    let start = if one.position < two.position { one.position } else { two.position };
    let end = if one.end > two.end { one.end } else { two.end };
    end.saturating_sub(start)
}

pub(super) fn len_of(span: &Span) -> usize {
    usize::try_from(span.len).unwrap_or(usize::MAX)
}

/// Rows of a stretch, if it is more than one batch: what executors take at a time.
const ROWS_MAX: i64 = 8192;
/// Bytes of a stretch, if it is more than one batch.
const LEN_MAX: u64 = 1 << 20;
const SPANS_MAX: usize = 4096;
/// The part of a file that is searched at once, if it is more than one span.
const EXTENT_LEN_MAX: u64 = 4 << 20;
