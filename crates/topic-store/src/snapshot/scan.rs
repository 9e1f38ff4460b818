//! Reading the rows of one partition of a snapshot, chunk by chunk, without blocking by itself.
//!
//! ```text
//! step() -> Rows(batch)       what was asked for, up to `rows_max` rows
//!        -> NeedsDisk(read)   the next rows are not in memory: run `read` where blocking is allowed,
//!                             give its outcome to `supply`, go on with `step`
//!        -> End
//! ```

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;

use super::decode::{Sieve, damaged, misplaced, parse, walk};
use super::decoded::RowKey;
use super::fetch::{DiskRead, Extent, Fetched, What};
use super::partition::PartitionSnapshot;
use super::plan::{Plan, State, Stretch};
use super::rows::{Chunk, Row, Rows};
use super::{Column, RowFilter, Source, TableSnapshot};
use crate::error::ReadError;
use crate::ids::PartitionIndex;
use crate::state::index::Span;

/// What a scan reads.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers build it field by field")]
pub struct ScanRequest {
    /// The partition; one that the topic does not have has no rows.
    pub partition: PartitionIndex,
    /// The offsets; what lies outside of the partition has no rows.
    pub offsets: Range<i64>,
    /// The columns of the batches, in this order. Without any, batches have only a number of rows.
    pub columns: Vec<Column>,
    /// Which rows are wanted.
    pub filter: RowFilter,
    /// Whether the rows come from the last to the first.
    pub descending: bool,
    /// How many rows, at most.
    pub limit: Option<usize>,
    /// Rows of one batch, at most; at least 1.
    pub rows_max: usize,
}

/// What a scan comes to next.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "the three ways in which a step can end")]
pub enum ScanStep {
    /// Rows, at least one.
    Rows(RecordBatch),
    /// A read of the disk comes first.
    NeedsDisk(DiskRead),
    /// There are no more.
    End,
}

/// What scans did; shared by as many as wanted. All counts.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ScanCounters {
    /// Records whose bytes were walked through.
    pub rows_walked: AtomicU64,
    /// Rows whose columns were copied into arrays.
    pub rows_decoded: AtomicU64,
    /// Rows that came from the cache of decoded rows.
    pub rows_cached: AtomicU64,
    /// Batches that were looked at.
    pub batches: AtomicU64,
    /// Bytes that were read from files.
    pub bytes_read: AtomicU64,
}

/// A scan over a partition of a snapshot.
#[derive(Debug)]
pub struct Scan {
    request: ScanRequest,
    schema: SchemaRef,
    sieve: Sieve,
    counters: Arc<ScanCounters>,
    plan: Plan,
    /// What is planned: the stretch that is next, one that may be read meanwhile, and what a search left to be read.
    work: VecDeque<Stretch>,
    /// The read that is out.
    out: Option<u64>,
    rows_left: usize,
    rows: Rows,
    ready: VecDeque<RecordBatch>,
    /// Bytes that were walked since there were rows, or a pause.
    walked_len: usize,
}

impl Scan {
    pub(super) fn new(table: Arc<TableSnapshot>, request: ScanRequest) -> Self {
        let offsets = table.partition(request.partition).map_or(0..0, PartitionSnapshot::offsets);
        let mut wanted = offsets.start.max(request.offsets.start)..offsets.end.min(request.offsets.end);
        let sieve = Sieve::new(&request.filter);
        let rows_left = request.limit.unwrap_or(usize::MAX);
        if sieve.is_open() {
            // Every offset is a row.
            let limit = i64::try_from(rows_left).unwrap_or(i64::MAX);
            if request.descending {
                wanted.start = wanted.start.max(wanted.end.saturating_sub(limit));
            } else {
                wanted.end = wanted.end.min(wanted.start.saturating_add(limit));
            }
        }
        let fields: Vec<_> = request.columns.iter().map(|column| column.field()).collect();
        let plan = Plan {
            partition: request.partition,
            rest: wanted.clone(),
            wanted,
            descending: request.descending,
            columns: columns_of_use(&table.source, &request, &sieve),
            keeps: sieve.is_open() && !request.descending && table.source.decoded.is_open(),
            rows_max: request.rows_max.max(1),
            tickets: 0,
            table,
        };
        Self {
            schema: Arc::new(Schema::new(fields)),
            rows: Rows::new(&request.columns),
            request,
            sieve,
            counters: Arc::default(),
            plan,
            work: VecDeque::new(),
            out: None,
            rows_left,
            ready: VecDeque::new(),
            walked_len: 0,
        }
    }

    /// Counts into these from now on.
    #[must_use]
    pub fn counting(mut self, counters: Arc<ScanCounters>) -> Self {
        self.counters = counters;
        self
    }

    /// Goes on until there are rows, or a reason to stop. Does not block.
    ///
    /// While a read is out that is needed first, it is asked for again: waiting for either will do.
    ///
    /// # Errors
    /// If a batch cannot be decoded, which is damage.
    pub fn step(&mut self) -> Result<ScanStep, ReadError> {
        loop {
            if let Some(rows) = self.ready.pop_front() {
                self.walked_len = 0;
                return Ok(ScanStep::Rows(rows));
            }
            if self.rows_left == 0 {
                self.plan.rest = 0..0;
                self.work.clear();
            }
            if self.walked_len > WALKED_LEN_MAX {
                self.walked_len = 0;
                let counters = Arc::clone(&self.counters);
                return Ok(ScanStep::NeedsDisk(DiskRead { ticket: 0, what: What::Nothing, counters }));
            }
            if self.needs_no_reading() {
                if self.plan.rest.is_empty() {
                    return Ok(ScanStep::End);
                }
                self.count_offsets()?;
                continue;
            }
            let Some(mut stretch) = self.work.pop_front() else {
                match self.plan.next(&self.sieve)? {
                    Some(stretch) => self.work.push_back(stretch),
                    None if self.rows.count() > 0 => self.flush()?,
                    None => return Ok(ScanStep::End),
                }
                continue;
            };
            match &mut stretch.state {
                State::Decoded(chunk) => {
                    let chunk = Arc::clone(chunk);
                    self.copy_decoded(stretch.first, &chunk)?;
                }
                State::Held(batches) if stretch.is_whole => {
                    let batches = std::mem::take(batches);
                    self.decode_whole(stretch.first, &batches)?;
                }
                State::Held(batches) => {
                    let next = if self.request.descending { batches.pop_back() } else { batches.pop_front() };
                    if let Some((span, bytes)) = next {
                        let first = stretch.first;
                        self.work.push_front(stretch);
                        let chunks = self.decode(first, &span, &bytes, self.plan.rows_max)?;
                        chunks.iter().try_for_each(|chunk| self.emit(chunk))?;
                    }
                }
                State::Known(_) | State::Joined(_) => {
                    let read = self.read_of(&stretch)?;
                    self.work.push_front(stretch);
                    return Ok(ScanStep::NeedsDisk(read));
                }
            }
        }
    }

    /// The read that will be needed after the present rows, if it is known; so that it can run while they are decoded. At
    /// most one is out at a time: while it has not been supplied, there is no other.
    pub fn read_ahead(&mut self) -> Option<DiskRead> {
        if self.out.is_some() || self.rows_left == 0 || self.needs_no_reading() {
            return None;
        }
        if !self.work.iter().any(Stretch::waits) && self.work.len() < WORK_MAX {
            // What is wrong with the plan shows when it is its turn.
            let stretch = self.plan.next(&self.sieve).ok().flatten()?;
            self.work.push_back(stretch);
        }
        let at = self.work.iter().position(Stretch::waits)?;
        let stretch = self.work.remove(at)?;
        let read = self.read_of(&stretch).ok();
        self.work.insert(at, stretch);
        read
    }

    /// Takes what was read.
    pub fn supply(&mut self, fetched: Fetched) {
        let Fetched { ticket, batches } = fetched;
        if self.out == Some(ticket) {
            self.out = None;
        }
        let Some(at) = self.work.iter().position(|stretch| stretch.ticket == ticket) else { return };
        let Some(stretch) = self.work.get_mut(at) else { return };
        if !stretch.waits() {
            return;
        }
        let mut held = VecDeque::new();
        let mut unread = Vec::new();
        for (span, bytes) in batches {
            match bytes {
                Some(bytes) => held.push_back((span, bytes)),
                None => unread.push(span),
            }
        }
        stretch.is_whole &= unread.is_empty();
        stretch.state = State::Held(held);
        let is_descending = self.request.descending;
        for (nth, rest) in self.plan.of_found(unread).into_iter().enumerate() {
            self.work.insert(if is_descending { at } else { at + 1 + nth }, rest);
        }
    }

    /// The next rows, blocking on the disk where needed; `None` after the last.
    ///
    /// # Errors
    /// As [`step`](Self::step), and if the disk refuses.
    pub fn next_blocking(&mut self) -> Result<Option<RecordBatch>, ReadError> {
        loop {
            match self.step()? {
                ScanStep::Rows(rows) => return Ok(Some(rows)),
                ScanStep::NeedsDisk(read) => {
                    let fetched = read.run()?;
                    self.supply(fetched);
                }
                ScanStep::End => return Ok(None),
            }
        }
    }

    fn source(&self) -> Arc<Source> {
        Arc::clone(&self.plan.table.source)
    }

    /// The read that a stretch waits for; from now on it is out.
    fn read_of(&mut self, stretch: &Stretch) -> Result<DiskRead, ReadError> {
        let partition = self.plan.table.partition(self.request.partition);
        let partition = partition.ok_or_else(|| misplaced(stretch.first))?;
        let what = match &stretch.state {
            State::Decoded(_) | State::Held(_) => What::Nothing,
            State::Known(spans) => What::Batches(Extent::of(partition, spans)?),
            State::Joined(spans) => {
                let pin = spans.first().and_then(|span| partition.pin(span.position)).cloned();
                What::Joined {
                    topic: self.plan.table.topic.id,
                    partition: self.request.partition,
                    spans: spans.clone(),
                    pin: pin.ok_or_else(|| misplaced(stretch.first))?,
                }
            }
        };
        self.out = Some(stretch.ticket);
        Ok(DiskRead { ticket: stretch.ticket, what, counters: Arc::clone(&self.counters) })
    }

    fn needs_no_reading(&self) -> bool {
        let is_known = |column: &Column| matches!(column, Column::Partition | Column::Offset);
        self.sieve.is_open() && self.request.columns.iter().all(is_known)
    }

    /// Rows of which only partition and offset are wanted.
    fn count_offsets(&mut self) -> Result<(), ReadError> {
        let step = i64::try_from(self.plan.rows_max).unwrap_or(i64::MAX);
        let rest = self.plan.rest.clone();
        let (first, count, offsets) = if self.request.descending {
            let start = rest.start.max(rest.end.saturating_sub(step));
            self.plan.rest.end = start;
            let has_offsets = self.request.columns.contains(&Column::Offset);
            (start, rest.end - start, has_offsets.then(|| super::rows::offsets((start..rest.end).rev())))
        } else {
            let end = rest.end.min(rest.start.saturating_add(step));
            self.plan.rest.start = end;
            (rest.start, end - rest.start, None)
        };
        let rows = usize::try_from(count).unwrap_or(0);
        self.emit(&Chunk { rows, first, offsets, ..Chunk::default() })
    }

    /// Takes rows that were decoded before: as they are, or those that pass.
    fn copy_decoded(&mut self, first: i64, chunk: &Chunk) -> Result<(), ReadError> {
        let rows = i64::try_from(chunk.rows).unwrap_or(i64::MAX);
        let wanted = self.plan.wanted.start.max(first)..self.plan.wanted.end.min(first.saturating_add(rows));
        let at = usize::try_from(wanted.start.saturating_sub(first)).unwrap_or(usize::MAX);
        let count = usize::try_from(wanted.end.saturating_sub(wanted.start)).unwrap_or(0);
        if at.saturating_add(count) > chunk.rows {
            return Ok(());
        }
        if self.sieve.is_open() {
            self.flush()?;
            self.counters.rows_cached.fetch_add(count as u64, Ordering::Relaxed);
            self.rows_left = self.rows_left.saturating_sub(count);
            return self.emit(&chunk.slice(at, count));
        }
        let mut sink = Sink::new(&mut self.rows, self.plan.rows_max, &mut self.rows_left);
        for at in at..at.saturating_add(count) {
            let row = chunk.row(at);
            if self.sieve.passes(row.timestamp, row.key) && sink.push(&row)?.is_break() {
                break;
            }
        }
        let (copied, chunks) = sink.into_parts();
        self.counters.rows_cached.fetch_add(copied, Ordering::Relaxed);
        chunks.iter().try_for_each(|chunk| self.emit(chunk))
    }

    /// Decodes a stretch of which all rows are wanted, and keeps it for the next scan.
    fn decode_whole(&mut self, first: i64, batches: &VecDeque<(Span, Bytes)>) -> Result<(), ReadError> {
        self.flush()?;
        let mut chunks = Vec::new();
        for (span, bytes) in batches {
            chunks.extend(self.decode(first, span, bytes, KEPT_ROWS_MAX.min(self.plan.rows_max))?);
        }
        if self.rows.count() > 0 {
            chunks.push(self.rows.finish().map_err(damaged)?);
        }
        let mut at = first;
        for chunk in &mut chunks {
            chunk.first = at;
            at = at.saturating_add(i64::try_from(chunk.rows).unwrap_or(i64::MAX));
        }
        let (topic, partition) = (self.plan.table.topic.id, self.request.partition);
        for chunk in &chunks {
            let key = RowKey { topic, partition, offset: chunk.first };
            self.plan.table.source.decoded.put(key, Chunk { offsets: None, ..chunk.clone() });
        }
        chunks.iter().try_for_each(|chunk| self.emit(chunk))
    }

    /// Takes the rows of a batch that are wanted, from the first one of its stretch on. Gives back the chunks that are full.
    fn decode(
        &mut self,
        first: i64,
        span: &Span,
        bytes: &Bytes,
        rows_max: usize,
    ) -> Result<Vec<Chunk>, ReadError> {
        let wanted = first.max(self.plan.wanted.start)..self.plan.wanted.end;
        let is_outside = span.last < wanted.start || span.base >= wanted.end;
        if is_outside || !self.sieve.may_pass(span.own_max) {
            return Ok(Vec::new());
        }
        let batch = parse(span, bytes)?;
        if self.sieve.is_open() {
            let rows = span.last.saturating_sub(span.base).saturating_add(1);
            self.rows.reserve(usize::try_from(rows).unwrap_or(0), batch.payload().len());
        }
        let source = self.source();
        let (wanted, sieve) = (&wanted, &self.sieve);
        let mut sink = Sink::new(&mut self.rows, rows_max, &mut self.rows_left);
        let walked = source.inflaters.with(|inflater| {
            let len_max = source.inflated_len_max;
            if self.request.descending {
                let mut held = Vec::new();
                let walked = walk(&batch, inflater, len_max, wanted, sieve, |row| {
                    held.push(row);
                    Ok(ControlFlow::Continue(()))
                })?;
                for row in held.iter().rev() {
                    if sink.push(row)?.is_break() {
                        break;
                    }
                }
                return Ok(walked);
            }
            walk(&batch, inflater, len_max, wanted, sieve, |row| sink.push(&row))
        })?;
        let (decoded, chunks) = sink.into_parts();
        self.walked_len = self.walked_len.saturating_add(bytes.len());
        self.counters.batches.fetch_add(1, Ordering::Relaxed);
        self.counters.rows_walked.fetch_add(walked, Ordering::Relaxed);
        self.counters.rows_decoded.fetch_add(decoded, Ordering::Relaxed);
        Ok(chunks)
    }

    fn flush(&mut self) -> Result<(), ReadError> {
        if self.rows.count() == 0 {
            return Ok(());
        }
        let chunk = self.rows.finish().map_err(damaged)?;
        self.emit(&chunk)
    }

    fn emit(&mut self, chunk: &Chunk) -> Result<(), ReadError> {
        let partition = self.request.partition.value();
        let columns = self.request.columns.iter().map(|column| chunk.array(*column, partition));
        let columns: Option<Vec<_>> = columns.collect();
        let columns = columns.ok_or_else(|| damaged("a column was not decoded"))?;
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        let rows = rows.map_err(damaged)?;
        let rows_max = self.plan.rows_max;
        for at in (0..chunk.rows).step_by(rows_max) {
            self.ready.push_back(rows.slice(at, rows_max.min(chunk.rows - at)));
        }
        Ok(())
    }
}

/// The columns that rows decoded before need to have for this request; `None` if they are of no use for it.
fn columns_of_use(source: &Source, request: &ScanRequest, sieve: &Sieve) -> Option<Vec<Column>> {
    let copies_headers = !sieve.is_open() && request.columns.contains(&Column::Headers);
    if request.descending || copies_headers || !source.decoded.is_open() {
        return None;
    }
    let mut columns = request.columns.clone();
    if request.filter.timestamp_min.is_some() || request.filter.timestamp_max.is_some() {
        columns.push(Column::Timestamp);
    }
    if request.filter.keys.is_some() {
        columns.push(Column::Key);
    }
    Some(columns)
}

/// Where rows go: into columns, and with them into chunks.
struct Sink<'a> {
    rows: &'a mut Rows,
    rows_max: usize,
    left: &'a mut usize,
    taken: u64,
    chunks: Vec<Chunk>,
}

impl<'a> Sink<'a> {
    const fn new(rows: &'a mut Rows, rows_max: usize, left: &'a mut usize) -> Self {
        Self { rows, rows_max, left, taken: 0, chunks: Vec::new() }
    }

    #[inline]
    fn push(&mut self, row: &Row<'_>) -> Result<ControlFlow<()>, ReadError> {
        self.rows.push(row);
        self.taken += 1;
        *self.left = self.left.saturating_sub(1);
        if self.rows.count() >= self.rows_max || self.rows.len() >= CHUNK_LEN_MAX {
            self.chunks.push(self.rows.finish().map_err(damaged)?);
        }
        Ok(if *self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// How many rows were taken, and the chunks that are full.
    fn into_parts(self) -> (u64, Vec<Chunk>) {
        (self.taken, self.chunks)
    }
}

/// Bytes of keys, values and headers in one chunk; one more record may come on top.
const CHUNK_LEN_MAX: usize = 8 << 20;
/// Rows of a chunk that is kept: slices of a longer one would each count as the whole where memory is accounted for.
const KEPT_ROWS_MAX: usize = 8192;
/// Bytes that are walked before others get their turn.
const WALKED_LEN_MAX: usize = 8 << 20;
/// Stretches that are planned ahead.
const WORK_MAX: usize = 2;
