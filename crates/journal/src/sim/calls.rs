//! The simulated disk as a disk: each call counted, logged, and failed if it shall be.

use std::io;
use std::sync::Arc;

use super::inode::Inode;
use super::state::{NameChange, State};
use super::{Call, CallKind, SimDisk};
use crate::chance;
use crate::disk::{Disk, DiskFile, DiskLock};
use crate::position::{BLOCK, in_memory};

/// The log of calls is kept this long; tests that look at it are short.
const LOG_LEN_MAX: usize = 1 << 16;

impl SimDisk {
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
