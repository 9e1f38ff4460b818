//! A simulated disk that loses, when the power goes, whatever it may.
//!
//! Everything follows from the seed and the order of calls.
//!
//! ```
//! use std::sync::Arc;
//!
//! use kolumn_journal::Disk;
//! use kolumn_journal::sim::SimDisk;
//!
//! let sim = SimDisk::new(7);
//! let disk: Arc<dyn Disk> = Arc::new(sim.clone());
//! disk.create("a")?;
//! disk.sync_dir()?;
//! disk.remove("a")?; // not synced: the crash may undo it
//! sim.crash();
//! assert!(disk.list()?.len() <= 1);
//! # Ok::<(), std::io::Error>(())
//! ```

mod calls;
mod inode;
mod state;

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use self::inode::Inode;
use self::state::State;
#[cfg(doc)]
use crate::disk::{Disk, DiskFile};

/// A disk in memory. Clones are the same disk.
///
/// Between a [`crash`](SimDisk::crash) and the calls that were durable before it, any subset of the 512-byte sectors
/// written, of the lengths changed and of the names made, changed and removed may be lost, each on its own. Handles
/// from before a crash fail, and locks are gone.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl std::fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimDisk").finish_non_exhaustive()
    }
}

/// A kind of call to a disk or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallKind {
    /// [`Disk::create`]
    Create,
    /// [`Disk::open`]
    Open,
    /// [`Disk::rename`]
    Rename,
    /// [`Disk::remove`]
    Remove,
    /// [`Disk::list`]
    List,
    /// [`Disk::sync_dir`]
    SyncDir,
    /// [`Disk::lock`]
    Lock,
    /// [`Disk::free_space`]
    FreeSpace,
    /// [`DiskFile::preallocate`]
    Preallocate,
    /// [`DiskFile::len`]
    Len,
    /// [`DiskFile::write_at`]
    Write,
    /// [`DiskFile::read_at`]
    Read,
    /// [`DiskFile::sync`]
    Sync,
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// Its kind.
    pub kind: CallKind,
    /// The name that it was about; for calls to a file the name under which it was opened.
    pub name: String,
    /// Where it wrote or read.
    pub offset: u64,
    /// How much it wrote, read or preallocated.
    pub len: u64,
    /// Whether it succeeded.
    pub ok: bool,
}

/// What was done since the disk was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimStats {
    /// Calls of any kind.
    pub calls: u64,
    /// Calls of [`DiskFile::write_at`] that succeeded.
    pub writes: u64,
    /// Calls of [`DiskFile::sync`] that succeeded.
    pub syncs: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

impl SimDisk {
    /// An empty disk without a limit.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(seed))) }
    }

    /// Sets how many bytes of files the disk takes; fewer than there are is allowed.
    pub fn set_capacity(&self, capacity: u64) {
        self.state.lock().capacity = capacity;
    }

    /// Bytes of all files.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// Lets the power go off after this many more calls of any kind: later ones fail, until [`crash`](Self::crash).
    pub fn cut_power_after(&self, calls: u64) {
        self.state.lock().calls_left = Some(calls);
    }

    /// Whether the power is off.
    #[must_use]
    pub fn is_off(&self) -> bool {
        !self.state.lock().powered
    }

    /// Loses the power if it is still on, decides what was lost, and comes back.
    pub fn crash(&self) {
        self.state.lock().crash();
    }

    /// Lets the `nth` call of this kind from now on fail (1 is the next). A write that fails may have written any part;
    /// after a sync that fails, later syncs do not cover what this one should have.
    pub fn fail(&self, kind: CallKind, nth: u64, error: io::ErrorKind) {
        self.state.lock().faults.push((kind, nth, error));
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> SimStats {
        self.state.lock().stats
    }

    /// The calls so far, or since [`forget_calls`](Self::forget_calls); at most 65,536.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.state.lock().log.clone()
    }

    /// Empties the log of calls.
    pub fn forget_calls(&self) {
        self.state.lock().log.clear();
    }

    /// A file's content, as it is read now.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state.lock();
        let id = state.names.get(name)?;
        state.inodes.get(id).map(|inode| inode.data.clone())
    }

    /// Gives a file this content, durably, whether it exists or not.
    pub fn set_content(&self, name: &str, content: Vec<u8>) {
        let mut state = self.state.lock();
        let id = state.names.get(name).copied().unwrap_or_else(|| state.take_inode());
        state.inodes.insert(id, Inode::durable(content));
        state.names.insert(name.to_owned(), id);
        state.names_durable.insert(name.to_owned(), id);
    }

    /// Another disk with the same content, history and future.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        let mut state = self.state.lock().clone();
        state.locked = false;
        state.life += 1;
        Self { state: Arc::new(Mutex::new(state)) }
    }
}
