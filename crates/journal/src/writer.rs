//! The writer: takes what has queued up, writes it as one group, syncs, tells.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::block::Pool;
use crate::file::LogFile;
use crate::flights::{Fault, Flights, Write};
use crate::format::{ENTRY_FRAME_LEN, GROUP_HEADER_LEN, GroupHeader};
use crate::gate::{Gate, Pending};
use crate::gathering::{Gathering, Sealed};
use crate::journal::{CommittedEntry, CommittedGroup};
use crate::options::{Class, Durability};
use crate::position::{BLOCK_U64, Position};
use crate::shared::{Durable, Shared};

/// The only one who writes to the log. What is appended while groups are on their way to the disk gathers for the next.
/// There is no timer for gathering.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
    active: Arc<LogFile>,
    /// Where the next group goes, if it fits in the active file.
    at: u64,
    /// Where the last group ends.
    previous: u64,
    next_sequence: u64,
    gathering: Gathering,
    /// Nothing more fits in the group that gathers, though more waits.
    is_full: bool,
    flights: Flights,
    batch: Vec<Pending>,
    told: CommittedGroup,
    /// Whether something was synced that no group says is synced.
    unstated: bool,
}

/// How long nothing must happen until an empty group tells what was synced.
const IDLE: Duration = Duration::from_millis(100);
/// The longest group that is written through the page cache where nothing is synced: around it a short write takes longer
/// than all else that an entry needs, a long one costs less of the processor.
const CACHED_LEN_MAX: usize = 8 << 10;
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
        Self {
            shared,
            active,
            at,
            previous,
            next_sequence,
            gathering: Gathering::new(pool),
            is_full: false,
            flights: Flights::default(),
            batch: Vec::new(),
            told,
            unstated: false,
        }
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
            let at_rest = self.flights.is_empty();
            if !failed && (self.has_news(&mut gate) || (gate.room_made && gate.refused)) {
                continue;
            }
            if gate.closing && (failed || at_rest) {
                break;
            }
            let patience = match (failed || !at_rest, self.unstated, gate.growth_wanted) {
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
        self.flights = Flights::default();
        drop(self.shared.lock.lock().take());
    }

    /// Gives long groups a thread to be written on; without one, each is on the disk before the next gathers.
    pub(crate) fn let_groups_overlap(&mut self) -> io::Result<()> {
        self.flights = Flights::start(&self.shared)?;
        Ok(())
    }

    /// Whether there is something to do for [`step`](Self::step). If not, the writer is woken when there is.
    fn has_news(&self, gate: &mut Gate) -> bool {
        let wake_len = if self.flights.is_empty() {
            0
        } else if self.is_full {
            // Only an arrival makes room.
            usize::MAX
        } else {
            self.shared.options.overlap_len()
        };
        let landed = gate.landed.count > 0 || gate.landed.error.is_some();
        gate.has_more_than(wake_len) || landed
    }

    /// Commits what has arrived on the disk, gathers what was appended, sends off at most one group, and looks after the
    /// files. Tells whether there was anything to do.
    pub(crate) fn step(&mut self) -> bool {
        if self.shared.failure().is_some() {
            self.gathering.clear();
            return false;
        }
        let worked = match self.work() {
            Ok(worked) => worked,
            Err((doing, error)) => {
                self.batch.clear();
                self.gathering.clear();
                self.shared.fail(doing, &error);
                return true;
            }
        };
        let grew = self.look_after_files();
        self.tell_room();
        worked || grew
    }

    fn work(&mut self) -> Result<bool, Fault> {
        let landed = self.land()?;
        let gathered = self.gather()?;
        let launched = self.launch()?;
        Ok(landed || gathered || launched)
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
            && self.flights.is_empty()
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
    pub(crate) fn write_empty_group(&mut self, sync: bool) -> Result<(), Fault> {
        self.go_on_to_fit(BLOCK_U64)?;
        self.gathering.begin(Some(self.header(0, 0)), 0, 0);
        let (sealed, write) = self.seal(sync);
        self.write(sealed, &write)?;
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

    /// Commits the groups that have arrived on the disk.
    fn land(&mut self) -> Result<bool, Fault> {
        if self.flights.is_empty() {
            return Ok(false);
        }
        let (count, error) = {
            let mut gate = self.shared.gate.lock();
            (std::mem::take(&mut gate.landed.count), gate.landed.error.take())
        };
        for _ in 0..count {
            let Some(group) = self.flights.land() else { break };
            if self.shared.options.durability == Durability::Sync {
                self.note_synced(group.header.end());
            }
            self.commit(group);
        }
        match error {
            Some(fault) => Err(fault),
            None => Ok(count > 0),
        }
    }

    /// Copies what waits into the group that gathers, as far as it fits.
    fn gather(&mut self) -> Result<bool, Fault> {
        let first_cost = self.shared.gate.lock().first_cost();
        let Some(first_cost) = first_cost else {
            self.is_full = false;
            return Ok(false);
        };
        let begins = self.gathering.is_empty();
        if begins && !self.fits(first_cost) {
            // The rest of the file is left only when all that was sent there has arrived.
            self.is_full = !self.flights.is_empty();
            if self.is_full {
                return Ok(false);
            }
            self.go_on_to_fit(first_cost)?;
        }
        let rest = (self.active.limit() - self.at).min(self.gathering.len_max());
        let gathered_len = self.gathering.payload_len();
        let (payload_len, is_full) = {
            let mut gate = self.shared.gate.lock();
            let payload_len = gate.take(&mut self.batch, gathered_len, rest, &self.shared.options);
            (payload_len, !gate.is_empty())
        };
        self.is_full = is_full;
        if begins {
            // With nothing under way the group leaves as it is now.
            let alone = self.flights.is_empty();
            let header = alone.then(|| self.header(self.batch.len(), payload_len));
            let len_wanted = if alone { 0 } else { self.shared.options.overlapping_block_len() };
            self.gathering.begin(header, payload_len, len_wanted);
        }
        let gathered = !self.batch.is_empty();
        for entry in self.batch.drain(..) {
            self.gathering.put(&entry);
        }
        Ok(gathered)
    }

    /// Sends the gathered group to the disk, if it is its turn.
    fn launch(&mut self) -> Result<bool, Fault> {
        let alone = self.flights.is_empty();
        let is_due = self.is_full || self.gathering.payload_len() >= self.shared.options.launch_len();
        if self.gathering.is_empty() || !(alone || is_due && !self.flights.is_full()) {
            return Ok(false);
        }
        let sync = self.shared.options.durability == Durability::Sync;
        self.unstated |= sync;
        let (sealed, write) = self.seal(sync);
        if self.answers_before_sync() {
            self.commit(sealed);
            write.run()?;
            return Ok(true);
        }
        let is_short = sealed.bytes.len() < self.shared.options.overlap_len();
        if alone && is_short {
            self.write(sealed, &write)?;
        } else if let Some((sealed, write)) = self.flights.send(sealed, write)? {
            self.write(sealed, &write)?;
        }
        Ok(true)
    }

    fn fits(&self, len: u64) -> bool {
        self.at.saturating_add(len) <= self.active.limit()
    }

    /// Makes sure that a group of this length fits in the active file, by going on to the next.
    fn go_on_to_fit(&mut self, len: u64) -> Result<(), Fault> {
        if self.fits(len) {
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

    /// The header of the next group.
    fn header(&self, entry_count: usize, payload_len: usize) -> GroupHeader {
        GroupHeader {
            position: self.at,
            previous: self.previous,
            synced: self.shared.synced.load(Ordering::Acquire),
            first_sequence: self.next_sequence,
            log_id: self.shared.log_id,
            owner_epoch: self.shared.owner_epoch,
            entry_count: u32::try_from(entry_count).unwrap_or(u32::MAX),
            payload_len: u32::try_from(payload_len).unwrap_or(u32::MAX),
        }
    }

    /// Ends the gathered group; the next one goes behind it.
    fn seal(&mut self, sync: bool) -> (Sealed, Write) {
        let offset = self.at - self.active.base;
        let begun = self.gathering.take_header();
        let header =
            begun.unwrap_or_else(|| self.header(self.gathering.count(), self.gathering.payload_len()));
        let sealed = self.gathering.seal(header);
        self.at = sealed.header.end();
        self.previous = self.at;
        self.next_sequence = sealed.header.next_sequence();
        self.is_full = false;
        let cached = self.shared.options.durability == Durability::Os && sealed.bytes.len() <= CACHED_LEN_MAX;
        let write =
            Write { file: self.active.handle.clone(), offset, bytes: sealed.bytes.clone(), sync, cached };
        (sealed, write)
    }

    /// Writes a group here and now, and commits it.
    fn write(&mut self, group: Sealed, write: &Write) -> Result<(), Fault> {
        write.run()?;
        if write.sync {
            self.note_synced(group.header.end());
        }
        self.commit(group);
        Ok(())
    }

    fn note_synced(&self, position: u64) {
        self.shared.synced.fetch_max(position, Ordering::AcqRel);
    }

    fn commit(&mut self, group: Sealed) {
        let Sealed { header, bytes, lens, cost } = group;
        let (start, end) = (header.position, header.end());
        self.active.set_end(end);
        *self.shared.durable.lock() =
            Durable { position: end, next_sequence: header.next_sequence(), active: self.active.base };
        {
            let mut gate = self.shared.gate.lock();
            gate.reserved = gate.reserved.saturating_sub(cost);
            gate.active_rest = self.active.limit() - end;
            gate.room_made |= cost > 0;
        }
        if lens.is_empty() {
            return;
        }
        self.told.position = Position::new(start);
        self.told.end = Position::new(end);
        self.told.first_sequence = header.first_sequence;
        self.told.block_len = bytes.len();
        let mut at = GROUP_HEADER_LEN;
        for (framed_len, sequence) in lens.iter().zip(header.first_sequence..) {
            let from = at + ENTRY_FRAME_LEN;
            at += framed_len;
            let position = Position::new(start + from as u64);
            self.told.entries.push(CommittedEntry { position, sequence, bytes: bytes.slice(from..at) });
        }
        self.gathering.reuse(lens);
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
