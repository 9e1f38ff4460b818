//! The writer: takes what has queued up, writes it as one group, syncs, tells.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{BufMut, Bytes};

use crate::block::Pool;
use crate::file::LogFile;
use crate::format::{ENTRY_FRAME_LEN, GROUP_HEADER_LEN, GroupHeader};
use crate::gate::Pending;
use crate::journal::{CommittedEntry, CommittedGroup};
use crate::options::{Class, Durability};
use crate::position::{BLOCK, BLOCK_U64, Position, in_memory, round_up};
use crate::shared::{Durable, Shared};

/// The only one who writes to the log. At most one group is on its way to the disk; what is appended meanwhile
/// gathers for the next. There is no timer for gathering.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
    active: Arc<LogFile>,
    /// Where the next group goes, if it fits in the active file.
    at: u64,
    /// Where the last group ends.
    previous: u64,
    next_sequence: u64,
    pool: Pool,
    batch: Vec<Pending>,
    told: CommittedGroup,
    /// Whether something was synced that no group says is synced.
    unstated: bool,
}

/// How long nothing must happen until an empty group tells what was synced.
const IDLE: Duration = Duration::from_millis(100);
/// What is copied is summed up this soon, while the processor's cache still has it.
const SUM_LEN: usize = 32 << 10;
/// How long after the disk refused a file the next is tried.
const GROWTH_RETRY: Duration = Duration::from_secs(1);

impl Writer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        active: Arc<LogFile>,
        at: u64,
        previous: u64,
        next_sequence: u64,
    ) -> Self {
        let pool = Pool::new(shared.options.block_len, shared.options.pool_len_max);
        let told = CommittedGroup::empty(shared.owner_epoch);
        Self { shared, active, at, previous, next_sequence, pool, batch: Vec::new(), told, unstated: false }
    }

    /// Runs until the log is closed and everything appended is written, or until it failed and is closed; then unlocks
    /// the directory.
    pub(crate) fn run(mut self) {
        loop {
            if self.step() {
                continue;
            }
            let shared = self.shared.clone();
            let mut gate = shared.gate.lock();
            let failed = gate.failure.is_some();
            if !gate.queue.is_empty() || (gate.room_made && gate.refused && !failed) {
                continue;
            }
            if gate.closing {
                break;
            }
            let patience = match (failed, self.unstated, gate.growth_wanted) {
                (false, true, _) => Some(IDLE),
                (false, false, true) => Some(GROWTH_RETRY),
                _ => None,
            };
            let timed_out = if let Some(patience) = patience {
                shared.wake.wait_for(&mut gate, patience).timed_out()
            } else {
                shared.wake.wait(&mut gate);
                false
            };
            drop(gate);
            if timed_out {
                self.idle();
            }
        }
        self.idle();
        drop(self.shared.lock.lock().take());
    }

    /// Writes, syncs and commits at most one group, and looks after the files. Tells whether there was anything to do.
    pub(crate) fn step(&mut self) -> bool {
        if self.shared.failure().is_some() {
            return false;
        }
        let wrote = match self.write_batch() {
            Ok(wrote) => wrote,
            Err((doing, error)) => {
                self.batch.clear();
                self.shared.fail(doing, &error);
                return true;
            }
        };
        let grew = self.look_after_files();
        self.tell_room();
        wrote || grew
    }

    /// What is due when nothing has happened for a while: a group without entries that tells what was synced, and
    /// another try at making files.
    pub(crate) fn idle(&mut self) {
        if self.shared.failure().is_some() {
            return;
        }
        {
            let mut gate = self.shared.gate.lock();
            if gate.growth_wanted {
                gate.growth_refused = false;
            }
        }
        let sync = self.shared.options.durability == Durability::Sync;
        if self.unstated
            && self.may_write_empty_group()
            && let Err((doing, error)) = self.write_empty_group(sync)
        {
            self.shared.fail(doing, &error);
            return;
        }
        self.look_after_files();
        self.tell_room();
    }

    /// Writes a group without entries, and syncs it if asked to.
    pub(crate) fn write_empty_group(&mut self, sync: bool) -> Result<(), (&'static str, io::Error)> {
        self.go_on_to_fit(BLOCK_U64)?;
        self.write_group(0, sync)?;
        self.unstated = false;
        Ok(())
    }

    /// Makes files until the room in them suffices for all that may queue up.
    pub(crate) fn make_room(&mut self) {
        while self.look_after_files() {}
    }

    fn may_write_empty_group(&self) -> bool {
        let gate = self.shared.gate.lock();
        gate.reserved + BLOCK_U64 <= gate.room_for(Class::Reclaim, &self.shared.options)
    }

    fn write_batch(&mut self) -> Result<bool, (&'static str, io::Error)> {
        let first_cost = self.shared.gate.lock().first_cost();
        let Some(first_cost) = first_cost else { return Ok(false) };
        self.go_on_to_fit(first_cost)?;
        let rest = self.active.limit() - self.at;
        let payload_len = self.shared.gate.lock().take(&mut self.batch, rest, &self.shared.options);
        self.write_group(payload_len, self.shared.options.durability == Durability::Sync)?;
        self.unstated |= self.shared.options.durability == Durability::Sync;
        Ok(true)
    }

    /// Makes sure that a group of this length fits in the active file, by going on to the next.
    fn go_on_to_fit(&mut self, len: u64) -> Result<(), (&'static str, io::Error)> {
        if self.at.saturating_add(len) <= self.active.limit() {
            return Ok(());
        }
        let failed = |error| ("going on to the next file", error);
        if self.shared.options.durability == Durability::Os {
            // Files that were left are always synced, so that a checkpoint has to care for the active one only.
            self.active.handle.sync().map_err(|error| ("syncing a file", error))?;
            self.note_synced(self.previous);
            self.unstated = true;
        }
        let next = {
            let mut spares = self.shared.spares.lock();
            spares.prepare(&self.shared, self.active.limit()).map_err(failed)?;
            spares.take_next()
        };
        let Some(next) = next else { return Err(failed(io::ErrorKind::StorageFull.into())) };
        self.shared.files.write().insert(next.clone());
        self.shared.durable.lock().active = next.base;
        let mut gate = self.shared.gate.lock();
        gate.prepared = gate.prepared.saturating_sub(1);
        gate.active_rest = next.limit() - next.first();
        self.at = next.first();
        self.active = next;
        Ok(())
    }

    /// Writes what was taken as one group, syncs it if asked to, and commits it.
    fn write_group(&mut self, payload_len: usize, sync: bool) -> Result<(), (&'static str, io::Error)> {
        let (header, group) = self.build_group(payload_len);
        let offset = self.at - self.active.base;
        self.active.handle.write_at(offset, &group).map_err(|error| ("writing a group", error))?;
        if self.answers_before_sync() {
            self.commit(&header, &group);
            self.active.handle.sync().map_err(|error| ("syncing a group", error))?;
            self.note_synced(header.end());
            return Ok(());
        }
        if sync {
            self.active.handle.sync().map_err(|error| ("syncing a group", error))?;
            self.note_synced(header.end());
        }
        self.commit(&header, &group);
        Ok(())
    }

    fn note_synced(&self, position: u64) {
        self.shared.synced.fetch_max(position, Ordering::AcqRel);
    }

    fn build_group(&mut self, payload_len: usize) -> (GroupHeader, Bytes) {
        let covered = GROUP_HEADER_LEN + payload_len;
        let len = in_memory(round_up(covered as u64));
        let header = GroupHeader {
            position: self.at,
            previous: self.previous,
            synced: self.shared.synced.load(Ordering::Acquire),
            first_sequence: self.next_sequence,
            log_id: self.shared.log_id,
            owner_epoch: self.shared.owner_epoch,
            entry_count: u32::try_from(self.batch.len()).unwrap_or(u32::MAX),
            payload_len: u32::try_from(payload_len).unwrap_or(u32::MAX),
        };
        let mut encoder = header.begin_encoding();
        let mut summed = GROUP_HEADER_LEN;
        let block = self.pool.reserve(len);
        block.resize(GROUP_HEADER_LEN, 0);
        for pending in &self.batch {
            let entry_len = pending.framed_len() - ENTRY_FRAME_LEN;
            block.put_u32_le(u32::try_from(entry_len).unwrap_or(u32::MAX));
            block.extend_from_slice(pending.head());
            for piece in pending.body.chunks(SUM_LEN) {
                block.extend_from_slice(piece);
                if block.len() - summed >= SUM_LEN {
                    encoder.payload(block.get(summed..).unwrap_or_default());
                    summed = block.len();
                }
            }
        }
        encoder.payload(block.get(summed..).unwrap_or_default());
        debug_assert_eq!(block.len(), covered, "the payload is as long as was counted");
        if let Some(start) = block.get_mut(..GROUP_HEADER_LEN) {
            start.copy_from_slice(&encoder.finish());
        }
        block.resize(len, 0);
        (header, self.pool.split().freeze())
    }

    fn commit(&mut self, header: &GroupHeader, group: &Bytes) {
        let (start, end) = (self.at, header.end());
        self.at = end;
        self.previous = end;
        self.next_sequence = header.next_sequence();
        self.active.set_end(end);
        *self.shared.durable.lock() =
            Durable { position: end, next_sequence: self.next_sequence, active: self.active.base };
        {
            let mut gate = self.shared.gate.lock();
            let cost: u64 = self.batch.iter().map(|pending| pending.cost).sum();
            gate.reserved = gate.reserved.saturating_sub(cost);
            gate.active_rest = self.active.limit() - end;
            gate.room_made |= cost > 0;
        }
        if self.batch.is_empty() {
            return;
        }
        self.told.position = Position::new(start);
        self.told.end = Position::new(end);
        self.told.first_sequence = header.first_sequence;
        self.told.block_len = group.len();
        let mut at = GROUP_HEADER_LEN;
        for (pending, sequence) in self.batch.drain(..).zip(header.first_sequence..) {
            let from = at + ENTRY_FRAME_LEN;
            at += pending.framed_len();
            let position = Position::new(start + from as u64);
            self.told.entries.push(CommittedEntry { position, sequence, bytes: group.slice(from..at) });
        }
        self.shared.consumer.committed(&self.told);
        self.told.entries.clear();
    }

    /// Prepares the next file, and makes another if the room in the files there are is less than what may queue up.
    /// At most one file a call; tells whether one was made.
    fn look_after_files(&mut self) -> bool {
        let shared = self.shared.clone();
        let short = {
            let mut gate = shared.gate.lock();
            let short = gate.room_for(Class::Data, &shared.options) < shared.options.queue_len_max as u64;
            gate.growth_wanted &= short;
            short && !gate.growth_refused
        };
        let mut spares = shared.spares.lock();
        let grown = short && self.grow(&mut spares);
        let prepared = if spares.has_next() { Ok(()) } else { spares.prepare(&shared, self.active.limit()) };
        drop(spares);
        if let Err(error) = prepared {
            shared.fail("preparing a file", &error);
        }
        grown
    }

    fn grow(&self, spares: &mut crate::spares::Spares) -> bool {
        let shared = &self.shared;
        let count = shared.files.read().len() + spares.len() + 1;
        let within = (count as u64).saturating_mul(shared.options.file_len) <= shared.options.size_limit;
        let made = if within { spares.grow(shared) } else { Ok(false) };
        let grown = matches!(made, Ok(true));
        let mut gate = shared.gate.lock();
        // No failure of the log, which has written all that it admitted: but who has to make room wants to know.
        gate.growth_error = made.err().map(|error| error.to_string());
        gate.growth_wanted = gate.growth_wanted && !grown;
        gate.growth_refused = !grown;
        gate.prepared += u64::from(grown);
        gate.room_made |= grown;
        grown
    }

    /// Tells the consumer of room, if somebody was refused for lack of it.
    fn tell_room(&self) {
        let tell = {
            let mut gate = self.shared.gate.lock();
            let tell = gate.room_made && gate.refused && gate.failure.is_none();
            gate.room_made = false;
            gate.refused &= !tell;
            tell
        };
        if tell {
            self.shared.consumer.room();
        }
    }

    #[cfg(feature = "test-util")]
    fn answers_before_sync(&self) -> bool {
        self.shared.options.has(crate::Mutant::AnswersBeforeSync)
    }

    #[cfg(not(feature = "test-util"))]
    #[expect(clippy::unused_self, reason = "the same signature as with the fault")]
    fn answers_before_sync(&self) -> bool {
        false
    }
}

const _: () = assert!(BLOCK > GROUP_HEADER_LEN, "a group without entries is one block");
