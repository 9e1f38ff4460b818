//! What the handles of a log, its writer and its readers have in common.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex, RwLock};
use uuid::Uuid;

use crate::checkpoint;
use crate::disk::{Disk, DiskLock};
use crate::error::{CheckpointError, CheckpointErrorKind, Failure, FreeError, FreeErrorKind};
use crate::file::{FileTable, LogFile};
use crate::format::checkpoint::CheckpointHeader;
use crate::gate::Gate;
use crate::journal::Consumer;
use crate::options::{Durability, Options};
use crate::position::{BLOCK_U64, Position};
use crate::reader::Window;
use crate::spares::Spares;

/// Lock order: `checkpoint`, `spares`, `files`, `durable`, `gate`; no callback is called under any of them.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: Options,
    pub(crate) log_id: Uuid,
    pub(crate) tenant: Uuid,
    pub(crate) owner_epoch: u32,
    pub(crate) consumer: Arc<dyn Consumer>,
    pub(crate) checkpoint: Mutex<Checkpoints>,
    pub(crate) spares: Mutex<Spares>,
    pub(crate) files: RwLock<FileTable>,
    pub(crate) durable: Mutex<Durable>,
    /// Everything before this position is on the disk, by a sync that has returned.
    pub(crate) synced: AtomicU64,
    pub(crate) gate: Mutex<Gate>,
    /// Wakes the writer.
    pub(crate) wake: Condvar,
    pub(crate) lock: Mutex<Option<DiskLock>>,
}

/// Where the committed log ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Durable {
    pub(crate) position: u64,
    pub(crate) next_sequence: u64,
    /// Base of the file that is written to.
    pub(crate) active: u64,
}

/// The newest durable checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checkpoints {
    pub(crate) newest: Option<u64>,
    pub(crate) generation: u64,
}

impl Shared {
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.gate.lock().failure.clone()
    }

    /// Turns the log read-only, once, and tells the consumer.
    pub(crate) fn fail(&self, doing: &'static str, error: &io::Error) {
        let position = Position::new(self.durable.lock().position);
        let failure = Failure { doing, position, kind: error.kind(), message: error.to_string() };
        let lost = {
            let mut gate = self.gate.lock();
            if gate.failure.is_some() {
                return;
            }
            gate.failure = Some(failure.clone());
            gate.lose()
        };
        drop(lost);
        self.consumer.failed(&failure);
    }

    pub(crate) fn write_checkpoint(&self, position: Position, payload: &[u8]) -> Result<(), CheckpointError> {
        if let Some(failure) = self.failure() {
            return Err(CheckpointError::new(CheckpointErrorKind::ReadOnly, failure.to_string()));
        }
        let position = position.value();
        if let Err(error) = self.sync_up_to(position) {
            self.fail("syncing a file", &error);
            return Err(CheckpointError::io(error));
        }
        let mut checkpoints = self.checkpoint.lock();
        let next = self
            .next_at(position)
            .map_err(CheckpointError::io)?
            .filter(|_| checkpoints.newest.is_none_or(|newest| position >= newest));
        let Some((next_sequence, owner_epoch)) = next else {
            let message = format!(
                "position {position} is not the end of a committed group after the newest checkpoint"
            );
            return Err(CheckpointError::new(CheckpointErrorKind::InvalidPosition, message));
        };
        let header = CheckpointHeader {
            generation: checkpoints.generation + 1,
            log_id: self.log_id,
            tenant: self.tenant,
            position,
            synced: self.synced.load(Ordering::Acquire).max(position),
            next_sequence,
            owner_epoch,
            payload_len: payload.len() as u64,
        };
        checkpoint::write(
            &self.disk,
            &header,
            payload,
            checkpoints.newest,
            self.options.checkpoint_reserve_len,
        )
        .map_err(CheckpointError::io)?;
        *checkpoints = Checkpoints { newest: Some(position), generation: header.generation };
        drop(checkpoints);
        self.allow_growth();
        Ok(())
    }

    /// The sequence of the first entry at or after this group boundary, and an owner epoch that no group after it is below:
    /// the first one may have been written by an earlier opening. `None` if it is no boundary.
    fn next_at(&self, position: u64) -> io::Result<Option<(u64, u32)>> {
        let durable = *self.durable.lock();
        if position >= durable.position {
            let next = (durable.next_sequence, self.owner_epoch);
            return Ok((position == durable.position).then_some(next));
        }
        let files = self.files.read();
        let here = files.containing(position).map(|file| (file.clone(), position.max(file.first())));
        let after = files.from(position + 1).map(|file| (file.clone(), file.first()));
        drop(files);
        let mut window = Window::default();
        for (file, at) in [here, after].into_iter().flatten() {
            if at % BLOCK_U64 == 0 && at < file.end() {
                let header = window.header(&file, at)?;
                let is_next = |header: &crate::format::GroupHeader| {
                    header.position == at && header.previous == position && header.log_id == self.log_id
                };
                if let Some(header) = header.filter(is_next) {
                    return Ok(Some((header.first_sequence, header.owner_epoch)));
                }
            }
        }
        Ok(None)
    }

    /// Makes sure that a checkpoint is not ahead of its log. Only needed where commits do not sync: files that were
    /// left are synced then, so the one written to is all that is missing.
    fn sync_up_to(&self, position: u64) -> io::Result<()> {
        if self.options.durability == Durability::Sync || checkpoints_ahead(&self.options) {
            return Ok(());
        }
        let durable = *self.durable.lock();
        if self.synced.load(Ordering::Acquire) >= position {
            return Ok(());
        }
        let active: Option<Arc<LogFile>> = self.files.read().get(durable.active).cloned();
        if let Some(file) = active {
            file.handle.sync()?;
            self.synced.fetch_max(durable.position, Ordering::AcqRel);
        }
        Ok(())
    }

    pub(crate) fn free(&self, base: Position) -> Result<(), FreeError> {
        if let Some(failure) = self.failure() {
            return Err(FreeError::new(FreeErrorKind::ReadOnly, failure.to_string()));
        }
        // Recovery goes on from a checkpoint in a freed file only by a group in the next one.
        let durable = self.durable.lock().position;
        if let Err(error) = self.sync_up_to(durable) {
            self.fail("syncing a file", &error);
            return Err(FreeError::io(error));
        }
        let checkpoints = self.checkpoint.lock();
        let mut spares = self.spares.lock();
        let file = {
            let mut files = self.files.write();
            let Some(file) = files.get(base.value()) else {
                return Err(FreeError::new(
                    FreeErrorKind::UnknownFile,
                    format!("no file begins at position {base}"),
                ));
            };
            let active = self.durable.lock().active;
            if file.base == active || checkpoints.newest.is_none_or(|newest| file.end() > newest) {
                let message = format!("the file at position {base} is not wholly covered by a checkpoint");
                return Err(FreeError::new(FreeErrorKind::InUse, message));
            }
            files.remove(base.value())
        };
        let Some(file) = file else { return Ok(()) };
        let recycled = spares.take_back(self, &file).map_err(FreeError::io)?;
        if recycled {
            self.gate.lock().prepared += 1;
        }
        drop(spares);
        drop(checkpoints);
        self.allow_growth();
        Ok(())
    }

    /// After something was given back to the disk: lets the writer try again to make files, and tell of room.
    fn allow_growth(&self) {
        let mut gate = self.gate.lock();
        gate.growth_refused = false;
        gate.room_made = true;
        self.wake.notify_one();
    }
}

#[cfg(feature = "test-util")]
fn checkpoints_ahead(options: &Options) -> bool {
    options.has(crate::Mutant::CheckpointsAhead)
}

#[cfg(not(feature = "test-util"))]
fn checkpoints_ahead(_: &Options) -> bool {
    false
}
