//! The seam to the disk: one directory that a log lives in.

#[cfg(feature = "test-util")]
pub mod conformance;
mod local;

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

pub use local::{DiskKind, buffered, probe};

/// One directory of files.
///
/// # Contract
///
/// Calls block and may come from several threads at once. Names are plain file names made by the journal.
///
/// What is *certain* after the loss of power: the content and length of a file up to its last [`DiskFile::sync`] that
/// returned `Ok` and that began after the writes in question had returned; and the names in the directory as of the
/// last [`Disk::sync_dir`] likewise. Anything later may have happened wholly, partly or not at all, in any order, in
/// units of 512 bytes for content and of one call for names. [`Disk::rename`] is atomic: its target is either the old
/// or the new file, never missing.
///
/// A full disk is told by [`io::ErrorKind::StorageFull`], from [`Disk::create`] and [`DiskFile::preallocate`] only
/// as long as every file was preallocated before it is written to.
pub trait Disk: Send + Sync + Debug {
    /// Makes an empty file; fails with [`io::ErrorKind::AlreadyExists`] if there is one.
    ///
    /// # Errors
    /// Those of the disk.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file; fails with [`io::ErrorKind::NotFound`] if there is none.
    ///
    /// # Errors
    /// Those of the disk.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, in the place of a file that may have it.
    ///
    /// # Errors
    /// Those of the disk.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Takes a name away. Handles to the file stay usable, its room is given back with the last of them.
    ///
    /// # Errors
    /// Those of the disk.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The names in the directory, in any order.
    ///
    /// # Errors
    /// Those of the disk.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes all earlier calls of `create`, `rename` and `remove` durable.
    ///
    /// # Errors
    /// Those of the disk.
    fn sync_dir(&self) -> io::Result<()>;

    /// Takes the directory for its only user; fails with [`io::ErrorKind::WouldBlock`] while somebody has it. The
    /// lock ends when the value is dropped, or with the process.
    ///
    /// # Errors
    /// Those of the disk.
    fn lock(&self) -> io::Result<DiskLock>;

    /// Bytes that can still be allocated.
    ///
    /// # Errors
    /// Those of the disk.
    fn free_space(&self) -> io::Result<u64>;
}

/// An open file.
///
/// # Contract
///
/// `write_at` and `read_at` are called with offsets, lengths and memory aligned to [`BLOCK`](crate::BLOCK), so that an
/// implementation may go around the page cache. No two calls that overlap run at once, unless both read.
pub trait DiskFile: Send + Sync + Debug {
    /// Makes the file at least this long, durably, with room on the disk for all of it; what is new reads as zeros.
    ///
    /// # Errors
    /// Those of the disk; then the length may be anything between the old and the new one.
    fn preallocate(&self, len: u64) -> io::Result<()>;

    /// The file's length.
    ///
    /// # Errors
    /// Those of the disk.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// Those of the disk.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Writes all of these bytes.
    ///
    /// # Errors
    /// Those of the disk; then any part of the bytes may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// As [`write_at`](Self::write_at), by the way that returns soonest: for short writes that nobody syncs soon. All later
    /// calls see them, and they survive the end of the process.
    ///
    /// # Errors
    /// Those of the disk; then any part of the bytes may have been written.
    fn write_cached_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_at(offset, bytes)
    }

    /// Fills the memory from the file and tells how many bytes there were: fewer than asked only at the file's end.
    ///
    /// # Errors
    /// Those of the disk.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Returns when everything written to the file before is durable, with the length needed to read it back. After
    /// an error nothing is known about what was written since the last sync, and a later sync proves nothing.
    ///
    /// # Errors
    /// Those of the disk.
    fn sync(&self) -> io::Result<()>;
}

/// Proof that this opening of a directory is the only one, until it is dropped.
pub struct DiskLock {
    _held: Box<dyn Send + Sync>,
}

impl DiskLock {
    /// A lock that ends when this value is dropped.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl Debug for DiskLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DiskLock")
    }
}
