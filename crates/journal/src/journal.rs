//! The handles of an open log.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::error::{
    AdmitError, AdmitErrorKind, AppendError, AppendErrorKind, CheckpointError, Failure, FreeError, ReadError,
    ReadErrorKind,
};
use crate::file::{FileInfo, FilePin};
use crate::format::names::Name;
use crate::gate::Pending;
use crate::opening::Opening;
use crate::options::{Class, Options};
use crate::position::Position;
use crate::shared::Shared;
use crate::writer::Writer;
use crate::{Disk, OpenError, scan};

/// Who is told what becomes of appended entries.
///
/// # Contract
///
/// The methods are called on the writer's thread (or the stepper's), except that [`failed`](Self::failed) may come
/// from a thread that writes a checkpoint. While one runs, nothing is written: be quick. They may call the journal's
/// methods that do not block, but not [`Journal::close`].
pub trait Consumer: Send + Sync {
    /// A group is durable (or written, for [`Durability::Os`](crate::Durability::Os)). Groups come in order, each once;
    /// groups without entries are not told.
    fn committed(&self, group: &CommittedGroup);

    /// The log is read-only from here, and what was appended and not yet committed never will be. Called at most once.
    fn failed(&self, failure: &Failure);

    /// An append was refused as busy or full, and now there is room again for some of it.
    fn room(&self) {}
}

impl std::fmt::Debug for dyn Consumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Consumer")
    }
}

/// Entries that became durable together.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommittedGroup {
    /// Where the group begins.
    pub position: Position,
    /// Where the group ends; a position for a checkpoint.
    pub end: Position,
    /// The sequence of its first entry.
    pub first_sequence: u64,
    /// The owner epoch that wrote it.
    pub owner_epoch: u32,
    /// The entries, in order.
    pub entries: Vec<CommittedEntry>,
    /// How much block memory lives as long as one of the entries' bytes does.
    pub block_len: usize,
}

impl CommittedGroup {
    pub(crate) fn empty(owner_epoch: u32) -> Self {
        let position = Position::ORIGIN;
        Self { position, end: position, first_sequence: 0, owner_epoch, entries: Vec::new(), block_len: 0 }
    }
}

/// An entry that became durable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommittedEntry {
    /// Where its bytes lie.
    pub position: Position,
    /// Its number in the log.
    pub sequence: u64,
    /// Its bytes, a slice of the block that was written.
    pub bytes: Bytes,
}

/// An entry as replay and scan tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Where its bytes lie.
    pub position: Position,
    /// Its number in the log.
    pub sequence: u64,
    /// The owner epoch that wrote it.
    pub owner_epoch: u32,
    /// Its bytes.
    pub bytes: Bytes,
    /// Where its group ends; a position for a checkpoint, once all entries of the group are dealt with.
    pub group_end: Position,
}

/// How much of the log's space is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Space {
    /// Bytes of the files that hold log. Spare files are not counted.
    pub used: u64,
    /// The most bytes that all files may take.
    pub limit: u64,
    /// What the disk has left beside the files; `None` if it does not tell.
    pub disk_free: Option<u64>,
    /// Bytes admitted and not yet committed, each entry in whole blocks.
    pub queue_len: usize,
    /// Why the disk refused the last file that was to be made, if it was not for a lack of space. It is tried again.
    pub growth_error: Option<String>,
}

/// An open log. Cloning is cheap; all clones are the same log.
#[derive(Clone, Debug)]
pub struct Journal {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Journal {
    /// Locks and reads a directory: the newest checkpoint and the log's end. Blocks. Nothing can be appended until
    /// [`Opening::start`].
    ///
    /// # Errors
    /// Another opening has the log, it is damaged or of a newer version, it is another log than expected, or the disk
    /// fails.
    pub fn open(disk: Arc<dyn Disk>, options: Options) -> Result<Opening, OpenError> {
        Opening::new(disk, options)
    }

    /// Bytes that the files of a log take in a directory, whether it is open or not. What else lies there is neither counted
    /// nor looked at.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn len_on(disk: &dyn Disk) -> io::Result<u64> {
        let mut len = 0_u64;
        for name in disk.list()?.iter().filter(|name| Name::parse(name).is_some()) {
            len = len.saturating_add(disk.open(name)?.len()?);
        }
        Ok(len)
    }

    pub(crate) fn new(shared: Arc<Shared>, thread: Option<JoinHandle<()>>) -> Self {
        Self { handle: Arc::new(Handle { shared, thread: Mutex::new(thread) }) }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Reserves room for an entry of this length, head and body together. Never blocks. What is admitted can be written:
    /// only here is a full disk met.
    ///
    /// # Errors
    /// See [`AdmitErrorKind`].
    pub fn admit(&self, len: usize, class: Class) -> Result<Admission, AdmitError> {
        let shared = self.shared();
        if len > shared.options.entry_len_max {
            return Err(AdmitError::new(AdmitErrorKind::TooLarge));
        }
        let cost = Options::entry_cost(len);
        let mut gate = shared.gate.lock();
        let admitted = gate.admit(cost, class, &shared.options);
        if gate.growth_wanted {
            shared.wake.notify_one();
        }
        drop(gate);
        admitted.map_err(AdmitError::new)?;
        Ok(Admission { shared: shared.clone(), len, cost })
    }

    /// Hands an admitted entry to the writer and returns its sequence. The order of calls is the order in the log. The
    /// head, at most 256 bytes, is copied; the body is kept by reference until the writer copies it into its block.
    ///
    /// From here on the entry can fail only with the file, and then all do: [`Consumer::failed`].
    ///
    /// # Errors
    /// The log is read-only, or head and body are longer than was admitted.
    pub fn append(&self, mut admission: Admission, head: &[u8], body: Bytes) -> Result<u64, AppendError> {
        let too_long = AppendError::new(AppendErrorKind::TooLong);
        if head.len().saturating_add(body.len()) > admission.len {
            return Err(too_long);
        }
        let pending = Pending::new(head, body, admission.cost).ok_or(too_long)?;
        let mut gate = self.shared().gate.lock();
        if gate.is_read_only() {
            return Err(AppendError::new(AppendErrorKind::ReadOnly));
        }
        admission.cost = 0;
        let sequence = gate.next_sequence;
        gate.next_sequence += 1;
        let is_awaited = gate.push(pending);
        drop(gate);
        if is_awaited {
            // Without the lock, which the writer takes first of all.
            self.shared().wake.notify_one();
        }
        Ok(sequence)
    }

    /// Reads committed bytes: an entry's or a part of them. Blocks. They are not verified.
    ///
    /// # Errors
    /// The file was freed, the range is not committed or not in one file, or the disk fails.
    pub fn read(&self, position: Position, len: usize) -> Result<Bytes, ReadError> {
        let pin = self.pin(position).ok_or_else(|| {
            ReadError::new(ReadErrorKind::Freed, format!("no file holds position {position}"))
        })?;
        pin.read(position, len)
    }

    /// Keeps the file that holds this position readable for as long as the pin lives. `None` if there is none.
    #[must_use]
    pub fn pin(&self, position: Position) -> Option<FilePin> {
        let shared = self.shared();
        let file = shared.files.read().containing(position.value()).cloned()?;
        Some(FilePin::new(file, shared.log_id))
    }

    /// Reads and verifies the groups between two positions and hands over their entries, until the function breaks off.
    /// Blocks. `from` is a group boundary, or lies in a group, which is then handed over whole.
    ///
    /// Returns the end of the last group whose entries were all handed over; `from`, if there was none.
    ///
    /// # Errors
    /// A file was freed, is damaged, or the disk fails.
    pub fn scan(
        &self,
        from: Position,
        to: Position,
        f: impl FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<Position, ReadError> {
        scan::scan(self.shared(), from, to, f)
    }

    /// The files that hold log, in order of position.
    #[must_use]
    pub fn files(&self) -> Vec<FileInfo> {
        let files = self.shared().files.read();
        let active = self.shared().durable.lock().active;
        // The table holds one reference, and the writer one more of the active file.
        let at_rest = |base| if base == active { 2 } else { 1 };
        files
            .iter()
            .map(|file| FileInfo {
                base: Position::new(file.base),
                len: file.len,
                end_written: Position::new(file.end()),
                active: file.base == active,
                pinned: Arc::strong_count(file) > at_rest(file.base),
            })
            .collect()
    }

    /// Takes a file out of the log: it is reused, or given back to the disk. Any file but the active one that lies
    /// wholly before the newest checkpoint, in any order. Blocks.
    ///
    /// # Errors
    /// There is no such file, it may not be freed, the log is read-only, or the disk fails.
    pub fn free(&self, base: Position) -> Result<(), FreeError> {
        self.shared().free(base)
    }

    /// Writes a checkpoint: bytes that stand for all entries before this position, which must be a group boundary and
    /// not lie before the newest checkpoint. Blocks. When it returns, the checkpoint is durable; the one before it is
    /// kept as well.
    ///
    /// # Errors
    /// The position is not one, the log is read-only, the disk is full or fails.
    pub fn write_checkpoint(&self, position: Position, payload: &[u8]) -> Result<(), CheckpointError> {
        self.shared().write_checkpoint(position, payload)
    }

    /// How much space is taken. Asks the disk.
    #[must_use]
    pub fn space(&self) -> Space {
        let shared = self.shared();
        let used = shared.files.read().iter().map(|file| file.len).sum();
        let (reserved, growth_error) = {
            let gate = shared.gate.lock();
            (gate.reserved, gate.growth_error.clone())
        };
        Space {
            used,
            limit: shared.options.size_limit,
            disk_free: shared.disk.free_space().ok(),
            queue_len: crate::position::in_memory(reserved),
            growth_error,
        }
    }

    /// [`Space::growth_error`] alone, which asks nobody: what tells a log without files from one without space when
    /// [`admit`](Self::admit) answers [`Full`](AdmitErrorKind::Full).
    #[must_use]
    pub fn growth_error(&self) -> Option<String> {
        self.shared().gate.lock().growth_error.clone()
    }

    /// The end of the last committed group; a position for a checkpoint.
    #[must_use]
    pub fn durable_position(&self) -> Position {
        Position::new(self.shared().durable.lock().position)
    }

    /// The position up to which a sync has returned.
    #[must_use]
    pub fn synced_position(&self) -> Position {
        Position::new(self.shared().synced.load(std::sync::atomic::Ordering::Acquire))
    }

    /// The position of the newest durable checkpoint.
    #[must_use]
    pub fn checkpoint_position(&self) -> Option<Position> {
        self.shared().checkpoint.lock().newest.map(Position::new)
    }

    /// Why the log is read-only, if it failed.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.shared().failure()
    }

    /// Writes what was appended, ends the writer and unlocks the directory. Blocks. Reading goes on to work; nothing
    /// can be appended any more. Closing twice does nothing.
    ///
    /// In a log with a [`Stepper`] the stepper writes what was appended, and it is to be dropped before the directory
    /// is opened again.
    pub fn close(&self) {
        self.handle.begin_close();
        let thread = self.handle.thread.lock().take();
        if let Some(thread) = thread {
            // A panic of the writer's thread was told where it happened.
            drop(thread.join());
        }
    }
}

impl Handle {
    fn begin_close(&self) {
        self.shared.gate.lock().closing = true;
        self.shared.wake.notify_one();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.begin_close();
    }
}

/// Room reserved for one entry. Dropped unused, it gives the room back.
#[derive(Debug)]
pub struct Admission {
    shared: Arc<Shared>,
    len: usize,
    cost: u64,
}

impl Admission {
    /// The longest entry that this room is for.
    #[must_use]
    pub fn len_max(&self) -> usize {
        self.len
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if self.cost > 0 {
            let mut gate = self.shared.gate.lock();
            if gate.failure.is_none() {
                gate.release(self.cost);
                if gate.refused {
                    self.shared.wake.notify_one();
                }
            }
        }
    }
}

/// The writer of a log without a thread: everything happens within its methods, in an order that the caller decides.
#[derive(Debug)]
pub struct Stepper {
    writer: Writer,
    shared: Arc<Shared>,
}

impl Stepper {
    pub(crate) fn new(writer: Writer, shared: Arc<Shared>) -> Self {
        Self { writer, shared }
    }

    /// Writes, syncs and commits at most one group, and makes at most one file. Tells whether there was anything to do.
    pub fn step(&mut self) -> bool {
        self.writer.step()
    }

    /// What the writer does when nothing has happened for 100 ms: it writes a group without entries that tells what was
    /// synced, and tries again to make files that the disk refused.
    pub fn idle(&mut self) {
        self.writer.idle();
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        self.shared.gate.lock().closing = true;
        drop(self.shared.lock.lock().take());
    }
}
