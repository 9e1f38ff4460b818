//! Reading: which batches answer a request, found in the index and, where it was thinned, by scanning the journal.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::{FilePin, Position};

use crate::ahead::{Ahead, KEPT_LEN_MAX, ReadAhead};
use crate::core::decode;
use crate::entry::{BATCH_AT, Entry};
use crate::error::{ReadError, ReadErrorKind};
use crate::ids::{Offset, PartitionIndex, TopicId};
use crate::read::{PartitionOffsets, Read, ReadOutcome, ReadRequest, Slice};
use crate::state::Place;
use crate::state::index::Span;

use super::{Store, partition_of};

/// One batch and where it lies.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) last: i64,
    pub(super) max_timestamp: i64,
    pub(super) position: u64,
    pub(super) len: usize,
    pub(super) pin: FilePin,
}

/// Spans chosen for an answer, each with a hold on its file.
struct Plan {
    offsets: PartitionOffsets,
    spans: Vec<(Span, FilePin)>,
}

impl Store {
    /// Chooses the batches that answer a request, from memory alone. Never blocks.
    ///
    /// At the high watermark the answer is empty; below the log start and above the high watermark it is an error.
    ///
    /// # Errors
    /// See [`ReadErrorKind`].
    pub fn try_read(&self, request: ReadRequest) -> Result<ReadOutcome, ReadError> {
        let plan = self.plan(&request)?;
        if plan.spans.first().is_some_and(|(span, _)| span.is_thinned()) {
            return Ok(ReadOutcome::NeedsDisk);
        }
        let mut answer = Answer::new(&request);
        for (span, pin) in plan.spans {
            if span.is_thinned() || !answer.take(self, &Found::of(&span, pin)) {
                break;
            }
        }
        Ok(ReadOutcome::Ready(answer.into_read(plan.offsets)))
    }

    /// Chooses the batches that answer a request. May block on the disk where the index was thinned.
    ///
    /// # Errors
    /// See [`ReadErrorKind`].
    pub fn read(&self, request: ReadRequest) -> Result<Read, ReadError> {
        again_if_gone(|| self.read_once(&request))
    }

    /// Claims the batches that answer a request and are not in memory, for a reader that is about to ask for them: from now
    /// on who asks waits until they are [read](ReadAhead::run). `None` if there is nothing to read, the index was thinned
    /// there, or others have read enough ahead. Never blocks on the disk.
    #[must_use]
    pub fn read_ahead(&self, request: ReadRequest) -> Option<ReadAhead> {
        let Ok(ReadOutcome::Ready(read)) = self.try_read(request) else { return None };
        let old = read.slices.iter().take_while(|slice| !slice.is_recent()).count();
        Ahead::claim(&self.inner.core, read.slices.get(..old)?)
    }

    fn read_once(&self, request: &ReadRequest) -> Result<Read, ReadError> {
        let plan = self.plan(request)?;
        let mut answer = Answer::new(request);
        let mut spans = plan.spans.into_iter().peekable();
        let mut scanned = 0_u64;
        let mut kept = request.max_len.min(KEPT_LEN_MAX);
        'spans: while let Some((mut span, pin)) = spans.next() {
            // Where many partitions share the log, a full answer of one could take a scan of all of it.
            if span.is_thinned() && scanned >= SCAN_LEN_MAX && !answer.slices.is_empty() {
                break;
            }
            // One scan for neighbours: groups are longer than spans, and each scan reads whole groups.
            while let Some((next, _)) = spans.next_if(|(next, _)| {
                let follows = next.base == span.last.saturating_add(1) && next.position >= span.end;
                let near = next.end.saturating_sub(span.position) <= SCAN_LEN_MAX;
                let joins = follows && near && pin.holds(Position::new(next.position));
                span.is_thinned() && next.is_thinned() && joins
            }) {
                span.join(&next);
            }
            if span.is_thinned() {
                scanned = scanned.saturating_add(span.end.saturating_sub(span.position));
            }
            for found in self.batches_for(request, &span, pin, &mut kept)? {
                if found.last >= request.offset.value() && !answer.take(self, &found) {
                    break 'spans;
                }
            }
        }
        Ok(answer.into_read(plan.offsets))
    }

    /// The batches of a span, in order; those that a thinned one has for the request stay in memory, since their bytes
    /// are going to be asked for next; `left` is how many more may.
    fn batches_for(
        &self,
        request: &ReadRequest,
        span: &Span,
        pin: FilePin,
        left: &mut usize,
    ) -> Result<Vec<Found>, ReadError> {
        self.look_through(request.topic, request.partition, span, pin, |found, bytes| {
            if found.last >= request.offset.value() && *left >= found.len {
                *left -= found.len;
                self.inner.core.ahead.keep(found.position, bytes);
            }
        })
    }

    /// The batches of a span, in order. Blocks if it was thinned.
    pub(super) fn batches_of(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        span: &Span,
        pin: FilePin,
    ) -> Result<Vec<Found>, ReadError> {
        self.look_through(topic, partition, span, pin, |_, _| {})
    }

    /// As [`batches_of`](Self::batches_of), with the bytes that came by.
    fn look_through(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        span: &Span,
        pin: FilePin,
        mut seen: impl FnMut(&Found, &[u8]),
    ) -> Result<Vec<Found>, ReadError> {
        if !span.is_thinned() {
            return Ok(vec![Found::of(span, pin)]);
        }
        // From its group a scan begins without a search; if that is gone with the file before, from its entry.
        let entry = span.position.saturating_sub(BATCH_AT as u64);
        self.scan_span(topic, partition, span, &pin, span.group, &mut seen)
            .or_else(|_| self.scan_span(topic, partition, span, &pin, entry, &mut seen))
    }

    fn scan_span(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        span: &Span,
        pin: &FilePin,
        from: u64,
        seen: &mut impl FnMut(&Found, &[u8]),
    ) -> Result<Vec<Found>, ReadError> {
        let mut batches = Vec::new();
        let mut expected = span.base;
        let mut fault = None;
        let scanned = self.inner.journal.scan(Position::new(from), Position::new(span.end), |entry| {
            let entry_at = entry.position.value();
            if entry_at >= span.end {
                return ControlFlow::Break(());
            }
            match decode(from, entry_at, &entry.bytes) {
                Ok((Entry::Appended(meta) | Entry::Carried(meta), Some(Place { position, .. })))
                    if meta.topic == topic && meta.partition == partition && meta.base_offset == expected =>
                {
                    expected = meta.last_offset.saturating_add(1);
                    let (last, max_timestamp, len) = (meta.last_offset, meta.max_timestamp, meta.len);
                    let found = Found { last, max_timestamp, position, len, pin: pin.clone() };
                    let at = usize::try_from(position - entry_at).unwrap_or(usize::MAX);
                    seen(&found, entry.bytes.get(at..at.saturating_add(len)).unwrap_or_default());
                    batches.push(found);
                }
                Ok(_) => {}
                Err(error) => fault = Some(error.to_string()),
            }
            if expected > span.last || fault.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        scanned.map_err(|error| ReadError::new(ReadErrorKind::Gone, error))?;
        match fault {
            Some(fault) => Err(ReadError::new(ReadErrorKind::Io, fault)),
            None if expected <= span.last => Err(ReadError::new(
                ReadErrorKind::Io,
                format!("the batch at offset {expected} is not where it was"),
            )),
            None => Ok(batches),
        }
    }

    /// The bytes of a batch, from memory or, blocking, from the file.
    pub(super) fn bytes_of(&self, found: &Found) -> Result<Bytes, ReadError> {
        self.inner.core.bytes(&found.pin, found.position, found.len)
    }

    /// The first span at or after `offset` that `wanted` accepts, below offset `end`, with a hold on its file.
    pub(super) fn find_span(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        from: impl FnOnce(&crate::state::partition::Partition) -> usize,
        end: i64,
        wanted: impl Fn(&Span) -> bool,
    ) -> Result<Option<(Span, FilePin)>, ReadError> {
        let applied = self.inner.core.applied.read();
        let found = partition_of(&applied, topic, partition)?;
        let mut spans = found.spans.range(from(found)..).take_while(|span| span.base < end);
        let Some(span) = spans.find(|span| wanted(span)) else { return Ok(None) };
        let pin = self.pin(span)?;
        Ok(Some((span.clone(), pin)))
    }

    /// Holds the files are taken under the readers' lock: a file is freed only after the state shows no live batch in it,
    /// which cannot happen while the lock is held.
    fn plan(&self, request: &ReadRequest) -> Result<Plan, ReadError> {
        let applied = self.inner.core.applied.read();
        let found = partition_of(&applied, request.topic, request.partition)?;
        let offsets = self.offsets_of(found);
        let offset = request.offset.value();
        if offset < found.log_start || offset > found.next {
            let text = format!("offset {offset} is not in {} to {}", found.log_start, found.next);
            return Err(ReadError::new(ReadErrorKind::OffsetOutOfRange { offsets }, text));
        }
        let mut spans: Vec<(Span, FilePin)> = Vec::new();
        let mut len = 0_u64;
        for span in found.spans.range(found.span_at(offset)..).take(SLICES_MAX) {
            let is_first = spans.is_empty();
            if !is_first && len.saturating_add(span.len) > request.max_len as u64 && !span.is_thinned() {
                break;
            }
            let pin = self.pin(span)?;
            len = len.saturating_add(span.len);
            spans.push((span.clone(), pin));
            if len > request.max_len as u64 {
                break;
            }
        }
        drop(applied);
        Ok(Plan { offsets, spans })
    }

    fn pin(&self, span: &Span) -> Result<FilePin, ReadError> {
        let pin = self.inner.journal.pin(Position::new(span.position));
        pin.ok_or_else(|| ReadError::new(ReadErrorKind::Gone, "the file has been freed"))
    }
}

impl Found {
    fn of(span: &Span, pin: FilePin) -> Self {
        Self {
            last: span.last,
            max_timestamp: span.own_max,
            position: span.position,
            len: usize::try_from(span.len).unwrap_or(usize::MAX),
            pin,
        }
    }
}

/// A batch that was carried to another file while it was looked for is found on looking again.
pub(crate) fn again_if_gone<T>(mut look: impl FnMut() -> Result<T, ReadError>) -> Result<T, ReadError> {
    for _ in 1..LOOKS_MAX {
        match look() {
            Err(error) if error.kind() == ReadErrorKind::Gone => {}
            outcome => return outcome,
        }
    }
    look()
}

/// An answer as it grows.
struct Answer<'a> {
    request: &'a ReadRequest,
    next: i64,
    len: usize,
    slices: Vec<Slice>,
}

impl<'a> Answer<'a> {
    fn new(request: &'a ReadRequest) -> Self {
        Self { request, next: request.offset.value(), len: 0, slices: Vec::new() }
    }

    /// Takes a batch if it fits; says whether the next one may be tried.
    fn take(&mut self, store: &Store, found: &Found) -> bool {
        let len = self.len.saturating_add(found.len);
        let is_free = self.slices.is_empty() && self.request.at_least_one_batch;
        if (len > self.request.max_len && !is_free) || self.slices.len() >= SLICES_MAX {
            return false;
        }
        self.len = len;
        self.next = found.last.saturating_add(1);
        let core = Arc::clone(&store.inner.core);
        self.slices.push(Slice::new(core, found.pin.clone(), found.position, found.len));
        true
    }

    fn into_read(self, offsets: PartitionOffsets) -> Read {
        Read { offsets, next_offset: Offset::new(self.next), len: self.len, slices: self.slices }
    }
}

const LOOKS_MAX: usize = 4;
/// Bytes of the log that are scanned for one answer, once it has something.
const SCAN_LEN_MAX: u64 = 16 << 20;
/// Batches in one answer, at most: what a reader of tiny batches costs in memory.
const SLICES_MAX: usize = 4096;
