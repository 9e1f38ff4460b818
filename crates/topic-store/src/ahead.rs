//! Stretches of files that were read before somebody asked for their bytes.
//!
//! A reader that catches up asks for one answer after the other, and the files are read past the operating system's
//! cache: without reading ahead it would wait for the disk each time. Who answers it claims what comes next
//! ([`Store::read_ahead`](crate::Store::read_ahead)) and reads it meanwhile; who asks for bytes that are under way waits
//! for them. Small batches that lie near each other cost one read of the disk, not one each.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kolumn_journal::{FilePin, Position, ReadError};
use parking_lot::{Condvar, Mutex};

use crate::core::Core;
use crate::read::Slice;

/// What was read ahead and what is under way. Positions are never reused, so that nothing can be out of date.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    stock: Mutex<Stock>,
    arrived: Condvar,
}

/// INVARIANT: `order` holds the keys of `stretches`, the oldest first; `len` is the sum of their costs and at most
/// [`LEN_MAX`].
#[derive(Debug, Default)]
struct Stock {
    /// By the position of the first byte.
    stretches: BTreeMap<u64, Stretch>,
    order: VecDeque<u64>,
    len: usize,
    /// What is being read.
    claims: Vec<Range<u64>>,
    /// How often no room was left for a claim since somebody's stretch was given up for that.
    refused: u32,
}

#[derive(Debug)]
struct Stretch {
    bytes: Bytes,
    /// Whoever it was read for has come to its end, or nobody in particular.
    is_used: bool,
}

/// Batches that are going to be asked for, claimed so that nobody else reads them.
#[derive(Debug)]
#[must_use = "what is claimed is waited for until it is read or given up"]
pub struct ReadAhead {
    core: Arc<Core>,
    stretches: VecDeque<(FilePin, Range<u64>)>,
}

impl ReadAhead {
    /// Reads what was claimed. Blocks. What the disk refuses, who asks for it is told.
    pub fn run(mut self) {
        let ahead = &self.core.ahead;
        while let Some((pin, range)) = self.stretches.pop_front() {
            // The one before may have reached over it.
            let is_there = ahead.stock.lock().has(range.start, len_of(&range));
            let read = if is_there { None } else { read_widely(&pin, range.start, len_of(&range)).ok() };
            ahead.arrive(&range, read);
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        for (_, range) in &self.stretches {
            self.core.ahead.arrive(range, None);
        }
    }
}

impl Ahead {
    /// Bytes that were read before. Never blocks on the disk.
    pub(crate) fn known(&self, position: u64, len: usize) -> Option<Bytes> {
        self.stock.lock().take(position, len)
    }

    /// Committed bytes of a file: those that are known, else those under way, else by reading them. Blocks.
    pub(crate) fn read(&self, pin: &FilePin, position: u64, len: usize) -> Result<Bytes, ReadError> {
        {
            let mut stock = self.stock.lock();
            // A claim may wait for a thread that those have who wait for it, hence the patience.
            let range = range_of(position, len);
            let is_under_way = |stock: &mut Stock| !stock.has(position, len) && stock.is_claimed(&range);
            self.arrived.wait_while_for(&mut stock, is_under_way, PATIENCE);
            if let Some(bytes) = stock.take(position, len) {
                return Ok(bytes);
            }
        }
        if len > SMALL_LEN_MAX {
            return pin.read(Position::new(position), len);
        }
        let stretch = read_widely(pin, position, len)?;
        let bytes = stretch.slice(..len);
        self.stock.lock().put(position, stretch, true);
        Ok(bytes)
    }

    /// Keeps a batch that somebody came by who read its file for another reason.
    pub(crate) fn keep(&self, position: u64, bytes: &[u8]) {
        let mut stock = self.stock.lock();
        if bytes.len() <= SMALL_LEN_MAX && !stock.has(position, bytes.len()) {
            stock.put(position, Bytes::copy_from_slice(bytes), true);
        }
    }

    /// Claims the batches of an answer that are neither known nor under way. `None` if there are none, or no room is left
    /// for them.
    pub(crate) fn claim(core: &Arc<Core>, slices: &[Slice]) -> Option<ReadAhead> {
        let mut stock = core.ahead.stock.lock();
        let mut stretches: VecDeque<(FilePin, Range<u64>)> = VecDeque::new();
        for slice in slices {
            let (pin, range) = slice.place();
            if stock.has(range.start, len_of(&range)) || stock.is_claimed(&range) {
                continue;
            }
            match stretches.back_mut() {
                Some((before, joined)) if follows(joined, &range) && before.base() == pin.base() => {
                    joined.end = range.end;
                }
                _ => stretches.push_back((pin.clone(), range)),
            }
        }
        let len = stretches.iter().map(|(_, range)| len_of(range)).sum::<usize>();
        let can_be = (1..=LEN_MAX).contains(&len) && stretches.len() <= CLAIMS_MAX;
        if !can_be || !stock.has_room(len, stretches.len()) {
            return None;
        }
        stock.claims.extend(stretches.iter().map(|(_, range)| range.clone()));
        drop(stock);
        Some(ReadAhead { core: Arc::clone(core), stretches })
    }

    /// Ends a claim.
    fn arrive(&self, range: &Range<u64>, bytes: Option<Bytes>) {
        let mut stock = self.stock.lock();
        stock.claims.retain(|claim| claim != range);
        if let Some(bytes) = bytes {
            stock.put(range.start, bytes, false);
        }
        drop(stock);
        self.arrived.notify_all();
    }
}

impl Stock {
    /// The stretch that holds this, by its key. Stretches may overlap.
    fn find(&self, position: u64, len: usize) -> Option<u64> {
        let before = self.stretches.range(..=position).rev().take(OVERLAPS_MAX);
        let mut holding = before.filter(|(start, stretch)| {
            range_of(**start, stretch.bytes.len()).end >= range_of(position, len).end
        });
        holding.next().map(|(start, _)| *start)
    }

    fn has(&self, position: u64, len: usize) -> bool {
        self.find(position, len).is_some()
    }

    fn take(&mut self, position: u64, len: usize) -> Option<Bytes> {
        let start = self.find(position, len)?;
        let stretch = self.stretches.get_mut(&start)?;
        let from = usize::try_from(position - start).ok()?;
        let to = from.checked_add(len)?;
        stretch.is_used |= to.saturating_add(SMALL_LEN_MAX) >= stretch.bytes.len();
        (to <= stretch.bytes.len()).then(|| stretch.bytes.slice(from..to))
    }

    fn is_claimed(&self, range: &Range<u64>) -> bool {
        self.claims.iter().any(|claim| claim.start <= range.start && range.end <= claim.end)
    }

    /// Whether a claim would leave what others have not come to yet. Who never comes loses its stretches in the end.
    fn has_room(&mut self, len: usize, count: usize) -> bool {
        let unused = self.stretches.values().filter(|stretch| !stretch.is_used);
        let held = unused.map(Stretch::cost).sum::<usize>();
        let under_way = self.claims.iter().map(len_of).sum::<usize>();
        if held + under_way + len <= LEN_MAX && self.claims.len() + count <= CLAIMS_MAX {
            return true;
        }
        self.refused += 1;
        if self.refused >= REFUSED_MAX {
            self.refused = 0;
            let mut oldest = self.order.iter();
            let given_up = oldest.find(|start| self.stretches.get(start).is_some_and(|found| !found.is_used));
            if let Some(stretch) = given_up.copied().and_then(|start| self.stretches.get_mut(&start)) {
                stretch.is_used = true;
            }
        }
        false
    }

    /// Takes a stretch in, and lets others go for it: first those that nobody needs any more.
    fn put(&mut self, start: u64, bytes: Bytes, is_used: bool) {
        if self.has(start, bytes.len()) {
            return;
        }
        let stretch = Stretch { bytes, is_used };
        self.len += stretch.cost();
        match self.stretches.insert(start, stretch) {
            Some(shorter) => self.len -= shorter.cost(),
            None => self.order.push_back(start),
        }
        while self.len > LEN_MAX {
            let used = |start: &u64| self.stretches.get(start).is_none_or(|stretch| stretch.is_used);
            let leaving = self.order.iter().position(used).unwrap_or(0);
            let Some(stretch) = self.order.remove(leaving).and_then(|start| self.stretches.remove(&start))
            else {
                break;
            };
            self.len -= stretch.cost();
        }
    }
}

impl Stretch {
    /// What it counts: a short one at least a block, so that there cannot be many.
    fn cost(&self) -> usize {
        self.bytes.len().max(COST_MIN)
    }
}

/// Committed bytes and, if they are few, what follows them: who asks for little asks for the next soon.
fn read_widely(pin: &FilePin, position: u64, len: usize) -> Result<Bytes, ReadError> {
    // Near the end of what is committed a long stretch is refused.
    let wider = STRETCH_LENS.into_iter().filter(|stretch_len| *stretch_len > len);
    let wide = wider.map(|len| pin.read(Position::new(position), len)).find_map(Result::ok);
    wide.map_or_else(|| pin.read(Position::new(position), len), Ok)
}

/// Whether a batch lies so near behind a stretch that both are read at once.
fn follows(stretch: &Range<u64>, batch: &Range<u64>) -> bool {
    batch.start.checked_sub(stretch.end).is_some_and(|gap| gap <= GAP_MAX)
        && batch.end - stretch.start <= CLAIM_LEN_MAX
}

fn range_of(position: u64, len: usize) -> Range<u64> {
    position..position.saturating_add(len as u64)
}

fn len_of(range: &Range<u64>) -> usize {
    usize::try_from(range.end - range.start).unwrap_or(usize::MAX)
}

const STRETCH_LENS: [usize; 2] = [256 << 10, 32 << 10];
const SMALL_LEN_MAX: usize = 64 << 10;
/// Bytes in all.
const LEN_MAX: usize = 8 << 20;
const COST_MIN: usize = 4 << 10;
/// Bytes of one answer that a scan keeps: all of them would push out what is sent first.
pub(crate) const KEPT_LEN_MAX: usize = LEN_MAX / 2;
/// Bytes that one read of the disk joins, and those that are read in vain between two batches.
const CLAIM_LEN_MAX: u64 = 1 << 20;
const GAP_MAX: u64 = 16 << 10;
/// How long what is under way is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// What is read ahead at a time.
const CLAIMS_MAX: usize = 64;
/// Refused claims after which a stretch is given up that nobody came for.
const REFUSED_MAX: u32 = 16;
/// Stretches that are looked at for one that reaches far enough.
const OVERLAPS_MAX: usize = 4;
