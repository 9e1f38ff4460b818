//! The log's files while it is open: which there are, how far each is written, reading from them.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use uuid::Uuid;

use crate::block::aligned;
use crate::disk::DiskFile;
use crate::error::{ReadError, ReadErrorKind};
use crate::journal::Entry;
use crate::memory::ReadMemory;
use crate::position::{BLOCK, BLOCK_U64, Position, in_memory, round_down, round_up};
use crate::scan;

/// One file of the log.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) base: u64,
    /// Length of the whole file.
    pub(crate) len: u64,
    pub(crate) generation: u64,
    pub(crate) handle: Arc<dyn DiskFile>,
    memory: Arc<ReadMemory>,
    /// Where its committed groups end.
    end: AtomicU64,
}

impl LogFile {
    /// With the memory that all files of the log are read into.
    pub(crate) fn new(
        base: u64,
        len: u64,
        generation: u64,
        handle: Arc<dyn DiskFile>,
        memory: Arc<ReadMemory>,
        end: u64,
    ) -> Self {
        Self { base, len, generation, handle, memory, end: AtomicU64::new(end) }
    }

    /// The first position in which a group can lie.
    pub(crate) fn first(&self) -> u64 {
        self.base + BLOCK_U64
    }

    /// The position after the file.
    pub(crate) fn limit(&self) -> u64 {
        self.base.saturating_add(self.len)
    }

    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub(crate) fn set_end(&self, end: u64) {
        self.end.store(end, Ordering::Release);
    }

    /// Reads whole blocks from `position`, a multiple of the block. What lies after the file's real end is missing:
    /// the result is then shorter than asked.
    pub(crate) fn read_blocks(&self, position: u64, len: usize) -> io::Result<BytesMut> {
        self.read_blocks_into(position, len, BytesMut::new())
    }

    /// As [`read_blocks`](Self::read_blocks), with memory that is used again if it is aligned and long enough.
    pub(crate) fn read_blocks_into(
        &self,
        position: u64,
        len: usize,
        mut memory: BytesMut,
    ) -> io::Result<BytesMut> {
        if memory.capacity() < len || !memory.as_ptr().addr().is_multiple_of(BLOCK) {
            memory = aligned(len);
        }
        memory.resize(len, 0);
        let filled = self.handle.read_at(position - self.base, &mut memory)?;
        memory.truncate(filled);
        Ok(memory)
    }

    /// Reads committed bytes from anywhere in the file.
    pub(crate) fn read(&self, position: u64, len: usize) -> Result<Bytes, ReadError> {
        let end = position.saturating_add(len as u64);
        if position < self.first() || end > self.end() {
            let message = format!("nothing is committed from position {position} to {end}");
            return Err(ReadError::new(ReadErrorKind::OutOfRange, message));
        }
        let start = round_down(position);
        let wanted = in_memory(round_up(end - start));
        let mut memory = self.memory.take(wanted);
        let read = self.handle.read_at(start - self.base, memory.get_mut(..wanted).unwrap_or_default());
        let blocks = self.memory.freeze(memory);
        let filled = read.map_err(|error| ReadError::io(position, error))?;
        let from = in_memory(position - start);
        if filled < from + len {
            let message = format!("the file with position {position} is cut");
            return Err(ReadError::new(ReadErrorKind::Damaged, message));
        }
        Ok(blocks.slice(from..from + len))
    }
}

/// A file that is neither reused nor lost while this value lives, though it may be freed: then it is deleted from the
/// directory, and its room is given back when the last pin is dropped.
#[derive(Clone, Debug)]
pub struct FilePin {
    file: Arc<LogFile>,
    log_id: Uuid,
}

impl FilePin {
    pub(crate) const fn new(file: Arc<LogFile>, log_id: Uuid) -> Self {
        Self { file, log_id }
    }

    /// The position of the file's first byte.
    #[must_use]
    pub fn base(&self) -> Position {
        Position::new(self.file.base)
    }

    /// Reads committed bytes of the pinned file; blocks. They are not verified.
    ///
    /// # Errors
    /// The range is not wholly committed bytes of this file, or the disk fails.
    pub fn read(&self, position: Position, len: usize) -> Result<Bytes, ReadError> {
        self.file.read(position.value(), len)
    }

    /// Whether the file is the one for this position.
    #[must_use]
    pub fn holds(&self, position: Position) -> bool {
        (self.file.base..self.file.limit()).contains(&position.value())
    }

    /// As [`Journal::scan`](crate::Journal::scan) within the pinned file, whether it has been freed or not: from the
    /// file's first group if `from` lies before the file, to its last one at most.
    ///
    /// # Errors
    /// The file is damaged, or the disk fails.
    pub fn scan(
        &self,
        from: Position,
        to: Position,
        f: impl FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<Position, ReadError> {
        scan::scan_file(&self.file, self.log_id, from, to, f)
    }
}

/// A file as [`Journal::files`](crate::Journal::files) tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileInfo {
    /// The position of its first byte.
    pub base: Position,
    /// Its length in bytes.
    pub len: u64,
    /// Its committed groups end at or before this position.
    pub end_written: Position,
    /// Whether it is the one that is written to.
    pub active: bool,
    /// Whether somebody reads it or has pinned it.
    pub pinned: bool,
}

/// The files that hold log, by base position.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileTable {
    files: BTreeMap<u64, Arc<LogFile>>,
    memory: Arc<ReadMemory>,
}

impl FileTable {
    /// What all files of the log are read into.
    pub(crate) fn memory(&self) -> Arc<ReadMemory> {
        Arc::clone(&self.memory)
    }

    pub(crate) fn insert(&mut self, file: Arc<LogFile>) {
        self.files.insert(file.base, file);
    }

    pub(crate) fn remove(&mut self, base: u64) -> Option<Arc<LogFile>> {
        self.files.remove(&base)
    }

    pub(crate) fn get(&self, base: u64) -> Option<&Arc<LogFile>> {
        self.files.get(&base)
    }

    /// The file that holds this position.
    pub(crate) fn containing(&self, position: u64) -> Option<&Arc<LogFile>> {
        self.files.range(..=position).next_back().map(|(_, file)| file).filter(|file| position < file.limit())
    }

    /// The first file that begins at or after this position.
    pub(crate) fn from(&self, position: u64) -> Option<&Arc<LogFile>> {
        self.files.range(position..).next().map(|(_, file)| file)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<LogFile>> {
        self.files.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }
}
