//! From a directory that was read to a log that is written to.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex, RwLock};
use uuid::Uuid;

use crate::disk::{Disk, DiskLock};
use crate::error::{OpenError, OpenErrorKind, ReadError, ReplayError};
use crate::file::LogFile;
use crate::format::names::Name;
use crate::gate::Gate;
use crate::journal::{Consumer, Entry, Journal, Stepper};
use crate::options::Options;
use crate::position::{BLOCK_U64, Position};
use crate::reader::Window;
use crate::recover::{OpenReport, Recovered, recover};
use crate::shared::{Checkpoints, Durable, Shared};
use crate::spares::Spares;
use crate::writer::Writer;
use crate::{checkpoint, scan};

/// A log that was read and can be replayed, before it is written to.
#[derive(Debug)]
pub struct Opening {
    disk: Arc<dyn Disk>,
    options: Options,
    lock: DiskLock,
    recovered: Recovered,
}

impl Opening {
    pub(crate) fn new(disk: Arc<dyn Disk>, options: Options) -> Result<Self, OpenError> {
        options.validate()?;
        let lock = disk.lock().map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => OpenError::new(
                OpenErrorKind::Locked,
                "the log is open elsewhere, in another process or in this one",
            ),
            _ => OpenError::io("locking the log's directory failed", error),
        })?;
        let recovered = recover(&disk, &options)?;
        Ok(Self { disk, options, lock, recovered })
    }

    /// The newest checkpoint: the position up to which its bytes stand for the log, and the bytes.
    #[must_use]
    pub fn checkpoint(&self) -> Option<(Position, Bytes)> {
        let found = self.recovered.checkpoint.as_ref()?;
        Some((Position::new(found.header.position), found.payload.clone()))
    }

    /// The owner epoch under which this opening will write: one more than the last, 0 for a new log.
    #[must_use]
    pub fn owner_epoch(&self) -> u32 {
        if self.recovered.report.created { 0 } else { self.recovered.end.owner_epoch.saturating_add(1) }
    }

    /// The log's id, which it keeps for ever.
    #[must_use]
    pub fn log_id(&self) -> Uuid {
        self.recovered.log_id
    }

    /// The tenant that the log was made for.
    #[must_use]
    pub fn tenant(&self) -> Uuid {
        self.recovered.tenant
    }

    /// The log's end.
    #[must_use]
    pub fn end(&self) -> Position {
        Position::new(self.recovered.end.end)
    }

    /// A power of two of which the bounds of all files are multiples, of those that are there and of those to come.
    #[must_use]
    pub fn file_alignment(&self) -> u64 {
        let files = self.recovered.files.iter();
        let bounds = files.fold(self.options.file_len, |bounds, file| bounds | file.base | file.limit());
        1 << bounds.trailing_zeros().min(63)
    }

    /// What was found and done.
    #[must_use]
    pub fn report(&self) -> &OpenReport {
        &self.recovered.report
    }

    /// Hands over the entries after the checkpoint, in order. Blocks.
    ///
    /// # Errors
    /// The disk fails, or the function does.
    pub fn replay<E>(&self, mut f: impl FnMut(Entry) -> Result<(), E>) -> Result<(), ReplayError<E>> {
        let mut chain = self.recovered.start.clone();
        let mut window = Window::default();
        while chain.end < self.recovered.end.end {
            let at = chain.end;
            let next = chain.next(&self.recovered.files, &mut window);
            let group = next.map_err(|error| ReplayError::Read(ReadError::io(at, error)))?;
            let Some(group) = group else {
                let message = format!("the group at position {at} was valid before");
                return Err(ReplayError::Read(ReadError::new(crate::ReadErrorKind::Damaged, message)));
            };
            for entry in scan::entries(&group) {
                f(entry).map_err(ReplayError::Stopped)?;
            }
        }
        Ok(())
    }

    /// Begins to write, on a thread of its own. When it returns, the new owner epoch is durable.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn start(self, consumer: Arc<dyn Consumer>) -> Result<Journal, OpenError> {
        let (mut writer, shared) = self.begin(consumer)?;
        let failed = |error| OpenError::io("starting the writer's threads failed", error);
        writer.let_groups_overlap().map_err(failed)?;
        let thread = std::thread::Builder::new()
            .name("kolumn-journal".to_owned())
            .spawn(move || writer.run())
            .map_err(failed)?;
        Ok(Journal::new(shared, Some(thread)))
    }

    /// Begins to write without a thread: only the stepper's methods do. For deterministic simulation.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn start_stepped(self, consumer: Arc<dyn Consumer>) -> Result<(Journal, Stepper), OpenError> {
        let (writer, shared) = self.begin(consumer)?;
        Ok((Journal::new(shared.clone(), None), Stepper::new(writer, shared)))
    }

    fn begin(mut self, consumer: Arc<dyn Consumer>) -> Result<(Writer, Arc<Shared>), OpenError> {
        let starting = |error| OpenError::io("beginning to write to the log failed", error);
        let owner_epoch = self.owner_epoch();
        let active = self.choose_active().map_err(starting)?;
        let Recovered { log_id, tenant, files, spares, checkpoint, end, .. } = self.recovered;
        let spares = Spares::adopt(&self.disk, &spares, self.options.file_len).map_err(starting)?;
        let at = active.as_ref().map_or(end.end, |file| end.end.max(file.first()));
        let gate = Gate {
            next_sequence: end.next_sequence,
            active_rest: active.as_ref().map_or(0, |file| file.limit() - at),
            prepared: spares.len() as u64,
            ..Gate::default()
        };
        let newest = checkpoint.as_ref().map(|found| found.header.position);
        let generation = checkpoint.as_ref().map_or(0, |found| found.header.generation);
        let next_sequence = end.next_sequence;
        let base = active.as_ref().map_or(0, |file| file.base);
        let shared = Arc::new(Shared {
            disk: self.disk,
            options: self.options,
            log_id,
            tenant,
            owner_epoch,
            consumer,
            checkpoint: Mutex::new(Checkpoints { newest, generation }),
            spares: Mutex::new(spares),
            files: RwLock::new(files),
            durable: Mutex::new(Durable { position: end.end, next_sequence, active: base }),
            synced: AtomicU64::new(end.end),
            gate: Mutex::new(gate),
            wake: Condvar::new(),
            lock: Mutex::new(Some(self.lock)),
        });
        let active = match active {
            Some(active) => active,
            None => first_file(&shared, end.end)?,
        };
        let at = end.end.max(active.first());
        let mut writer = Writer::new(shared.clone(), active, at, end.end, next_sequence);
        checkpoint::keep_reserve(&shared.disk, shared.options.checkpoint_reserve_len).map_err(starting)?;
        writer.make_room();
        writer
            .write_empty_group(true)
            .map_err(|(doing, error)| OpenError::io(format!("{doing} failed"), error))?;
        writer.make_room();
        match shared.failure() {
            Some(failure) => Err(OpenError::new(OpenErrorKind::Io, failure.to_string())),
            None => Ok((writer, shared)),
        }
    }

    /// The file in which the log goes on, synced and of full length; files behind it become spares. `None` if there is
    /// no file yet.
    fn choose_active(&mut self) -> std::io::Result<Option<Arc<LogFile>>> {
        checkpoint::remove_if_there(&self.disk, &Name::CheckpointDraft.to_string())?;
        let end = self.recovered.end.end;
        let files = &mut self.recovered.files;
        let here = files.containing(end).filter(|file| end.max(file.first()) + BLOCK_U64 <= file.limit());
        let last = files.iter().next_back();
        let active = here.or_else(|| files.from(end)).or(last).cloned();
        let Some(active) = active else { return Ok(None) };
        // What was written by a process that ended may be in the page cache only.
        for file in files.iter().filter(|file| file.base <= active.base).rev().take(2) {
            file.handle.sync()?;
        }
        if active.handle.len()? < active.len {
            active.handle.preallocate(active.len)?;
        }
        for range in self.recovered.torn.drain(..) {
            range.blank()?;
        }
        let spare_next = self.recovered.spares.iter().max().map_or(0, |id| id + 1);
        let behind: Vec<u64> =
            files.iter().map(|file| file.base).filter(|base| *base > active.base).collect();
        for (id, base) in (spare_next..).zip(behind) {
            self.disk.rename(&Name::Log(base).to_string(), &Name::Spare(id).to_string())?;
            files.remove(base);
            self.recovered.spares.push(id);
        }
        self.disk.sync_dir()?;
        Ok(Some(active))
    }
}

/// Makes the first file of a log.
fn first_file(shared: &Arc<Shared>, base: u64) -> Result<Arc<LogFile>, OpenError> {
    let starting = |error| OpenError::io("making the log's first file failed", error);
    let mut spares = shared.spares.lock();
    if spares.len() == 0 && !spares.grow(shared).map_err(starting)? {
        return Err(OpenError::new(OpenErrorKind::Full, "there is no room for the log's first file"));
    }
    spares.prepare(shared, base).map_err(starting)?;
    let file = spares.take_next();
    let prepared = spares.len() as u64;
    drop(spares);
    let Some(file) = file else {
        return Err(OpenError::new(OpenErrorKind::Full, "there is no room for the log's first file"));
    };
    shared.files.write().insert(file.clone());
    let mut gate = shared.gate.lock();
    gate.prepared = prepared;
    gate.active_rest = file.limit() - file.first();
    Ok(file)
}
