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

mod inode;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use self::inode::Inode;
use crate::chance;
use crate::disk::{Disk, DiskFile, DiskLock};
use crate::position::{BLOCK, in_memory};

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

#[derive(Debug, Clone)]
enum NameChange {
    Set(String, u64),
    Moved(String, String, u64),
    Gone(String),
}

#[derive(Clone, Debug)]
struct State {
    chance: u64,
    capacity: u64,
    /// How often the power was lost. Handles belong to one life.
    life: u64,
    locked: bool,
    powered: bool,
    calls_left: Option<u64>,
    faults: Vec<(CallKind, u64, io::ErrorKind)>,
    inodes: BTreeMap<u64, Inode>,
    inode_next: u64,
    names: BTreeMap<String, u64>,
    names_durable: BTreeMap<String, u64>,
    name_changes: Vec<NameChange>,
    stats: SimStats,
    log: Vec<Call>,
}

/// The log of calls is kept this long; tests that look at it are short.
const LOG_LEN_MAX: usize = 1 << 16;

impl SimDisk {
    /// An empty disk without a limit.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = State {
            chance: seed,
            capacity: u64::MAX,
            life: 0,
            locked: false,
            powered: true,
            calls_left: None,
            faults: Vec::new(),
            inodes: BTreeMap::new(),
            inode_next: 0,
            names: BTreeMap::new(),
            names_durable: BTreeMap::new(),
            name_changes: Vec::new(),
            stats: SimStats::default(),
            log: Vec::new(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
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

    /// Begins a call: counts and logs it, and fails it if it shall.
    fn call<T>(
        &self,
        life: Option<u64>,
        call: Call,
        f: impl FnOnce(&mut State, Option<io::Error>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.state.lock();
        state.stats.calls += 1;
        if !state.powered || life.is_some_and(|life| life != state.life) {
            return Err(io::Error::other("the power is off"));
        }
        let mut fault = state.due_fault(call.kind);
        if let Some(left) = state.calls_left.as_mut() {
            *left = left.saturating_sub(1);
            if *left == 0 {
                state.calls_left = None;
                state.powered = false;
                fault = Some(io::Error::other("the power is off"));
            }
        }
        let result = f(&mut state, fault);
        if state.log.len() < LOG_LEN_MAX {
            state.log.push(Call { ok: result.is_ok(), ..call });
        }
        result
    }
}

fn named(kind: CallKind, name: &str) -> Call {
    Call { kind, name: name.to_owned(), offset: 0, len: 0, ok: false }
}

fn failing(fault: Option<io::Error>) -> io::Result<()> {
    fault.map_or(Ok(()), Err)
}

impl State {
    fn due_fault(&mut self, kind: CallKind) -> Option<io::Error> {
        let mut due = None;
        self.faults.retain_mut(|(of, nth, error)| {
            if *of == kind {
                *nth = nth.saturating_sub(1);
                if *nth == 0 {
                    due = Some(io::Error::from(*error));
                }
            }
            *nth > 0
        });
        due
    }

    fn take_inode(&mut self) -> u64 {
        self.inode_next += 1;
        self.inode_next
    }

    fn used(&self) -> u64 {
        let named: std::collections::BTreeSet<_> = self.names.values().collect();
        let counted = self.inodes.iter().filter(|(id, inode)| inode.handles > 0 || named.contains(id));
        counted.map(|(_, inode)| inode.data.len() as u64).sum()
    }

    fn lookup(&self, name: &str) -> io::Result<u64> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn inode(&mut self, id: u64) -> io::Result<&mut Inode> {
        self.inodes.get_mut(&id).ok_or_else(|| io::Error::other("the file is gone"))
    }

    fn grow(&mut self, id: u64, len: u64) -> io::Result<()> {
        let old = self.inode(id)?.data.len() as u64;
        if len <= old {
            return Ok(());
        }
        if self.used().saturating_add(len - old) > self.capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.inode(id)?.data.resize(in_memory(len), 0);
        Ok(())
    }

    fn crash(&mut self) {
        self.life += 1;
        self.locked = false;
        self.powered = true;
        self.calls_left = None;
        self.faults.clear();
        // Sometimes nearly all is lost, sometimes nearly nothing, mostly something in between.
        let kept_percent = chance::next(&mut self.chance) % 101;
        for change in std::mem::take(&mut self.name_changes) {
            if chance::next(&mut self.chance) % 100 >= kept_percent {
                continue;
            }
            match change {
                NameChange::Set(name, id) => drop(self.names_durable.insert(name, id)),
                NameChange::Gone(name) => drop(self.names_durable.remove(&name)),
                NameChange::Moved(from, to, id) => {
                    self.names_durable.remove(&from);
                    self.names_durable.insert(to, id);
                }
            }
        }
        self.names = self.names_durable.clone();
        let named: std::collections::BTreeSet<_> = self.names.values().copied().collect();
        self.inodes.retain(|id, _| named.contains(id));
        for inode in self.inodes.values_mut() {
            inode.crash(&mut self.chance, kept_percent);
        }
    }
}

impl Disk for SimDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.call(None, named(CallKind::Create, name), |state, fault| {
            failing(fault)?;
            if state.names.contains_key(name) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let id = state.take_inode();
            state.inodes.insert(id, Inode::opened());
            state.names.insert(name.to_owned(), id);
            state.name_changes.push(NameChange::Set(name.to_owned(), id));
            Ok(self.file(state.life, id, name))
        })
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.call(None, named(CallKind::Open, name), |state, fault| {
            failing(fault)?;
            let id = state.lookup(name)?;
            state.inode(id)?.handles += 1;
            Ok(self.file(state.life, id, name))
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.call(None, named(CallKind::Rename, from), |state, fault| {
            let id = state.lookup(from)?;
            if fault.is_none() {
                state.names.remove(from);
                state.names.insert(to.to_owned(), id);
            }
            state.name_changes.push(NameChange::Moved(from.to_owned(), to.to_owned(), id));
            failing(fault)
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call(None, named(CallKind::Remove, name), |state, fault| {
            state.lookup(name)?;
            if fault.is_none() {
                state.names.remove(name);
            }
            state.name_changes.push(NameChange::Gone(name.to_owned()));
            failing(fault)
        })
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.call(None, named(CallKind::List, ""), |state, fault| {
            failing(fault)?;
            Ok(state.names.keys().cloned().collect())
        })
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.call(None, named(CallKind::SyncDir, ""), |state, fault| {
            failing(fault)?;
            state.name_changes.clear();
            state.names_durable = state.names.clone();
            let named: std::collections::BTreeSet<_> = state.names.values().copied().collect();
            state.inodes.retain(|id, inode| inode.handles > 0 || named.contains(id));
            Ok(())
        })
    }

    fn lock(&self) -> io::Result<DiskLock> {
        self.call(None, named(CallKind::Lock, ""), |state, fault| {
            failing(fault)?;
            if std::mem::replace(&mut state.locked, true) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(DiskLock::new(SimLock { disk: self.clone(), life: state.life }))
        })
    }

    fn free_space(&self) -> io::Result<u64> {
        self.call(None, named(CallKind::FreeSpace, ""), |state, fault| {
            failing(fault)?;
            Ok(state.capacity.saturating_sub(state.used()))
        })
    }
}

impl SimDisk {
    fn file(&self, life: u64, id: u64, name: &str) -> Arc<dyn DiskFile> {
        Arc::new(SimFile { disk: self.clone(), life, id, name: name.to_owned() })
    }
}

#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    life: u64,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if state.life == self.life {
            state.locked = false;
        }
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    life: u64,
    id: u64,
    name: String,
}

impl SimFile {
    fn call<T>(
        &self,
        kind: CallKind,
        offset: u64,
        len: u64,
        f: impl FnOnce(&mut State, Option<io::Error>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.disk.call(Some(self.life), Call { kind, name: self.name.clone(), offset, len, ok: false }, f)
    }
}

/// The contract of [`DiskFile`] is kept by the caller, and checked here.
fn check_aligned(offset: u64, memory: &[u8]) -> io::Result<()> {
    let aligned = offset.is_multiple_of(BLOCK as u64)
        && memory.len().is_multiple_of(BLOCK)
        && memory.as_ptr().addr().is_multiple_of(BLOCK);
    if aligned { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "the call is not aligned")) }
}

impl DiskFile for SimFile {
    fn preallocate(&self, len: u64) -> io::Result<()> {
        self.call(CallKind::Preallocate, 0, len, |state, fault| {
            failing(fault)?;
            state.grow(self.id, len)?;
            let inode = state.inode(self.id)?;
            inode.durable_len = inode.data.len();
            Ok(())
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.call(CallKind::Len, 0, 0, |state, fault| {
            failing(fault)?;
            Ok(state.inode(self.id)?.data.len() as u64)
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        check_aligned(offset, bytes)?;
        let len = bytes.len() as u64;
        self.call(CallKind::Write, offset, len, |state, fault| {
            let partly = fault.is_some() && state.powered;
            state.grow(self.id, offset.saturating_add(len))?;
            let mut chance = state.chance;
            let inode = state.inode(self.id)?;
            inode.write(in_memory(offset), bytes, || !partly || chance::next(&mut chance).is_multiple_of(2));
            state.chance = chance;
            failing(fault)?;
            state.stats.writes += 1;
            state.stats.bytes_written += len;
            Ok(())
        })
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        check_aligned(offset, into)?;
        self.call(CallKind::Read, offset, into.len() as u64, |state, fault| {
            failing(fault)?;
            let data = &state.inode(self.id)?.data;
            let rest = data.get(in_memory(offset).min(data.len())..).unwrap_or_default();
            for (to, from) in into.iter_mut().zip(rest) {
                *to = *from;
            }
            Ok(rest.len().min(into.len()))
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.call(CallKind::Sync, 0, 0, |state, fault| {
            let powered = state.powered;
            let inode = state.inode(self.id)?;
            if let Some(fault) = fault {
                if powered {
                    inode.doom();
                }
                return Err(fault);
            }
            inode.sync();
            state.stats.syncs += 1;
            Ok(())
        })
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if state.life == self.life
            && let Ok(inode) = state.inode(self.id)
        {
            inode.handles = inode.handles.saturating_sub(1);
        }
    }
}
