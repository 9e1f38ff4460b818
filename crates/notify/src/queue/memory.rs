//! A disk of memory: for queues that are configured without a folder.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kolumn_journal::{Disk, DiskFile, DiskLock};
use parking_lot::{Mutex, RwLock};

/// A disk in memory, under a limit. What is on it is gone with the process; a queue on it does everything else that a
/// queue does.
///
/// Files that are allocated ahead take memory only as far as they were written once.
#[derive(Clone, Debug)]
pub struct MemoryDisk {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    files: Mutex<BTreeMap<String, Arc<MemoryFile>>>,
    room: Arc<Room>,
    locked: Arc<AtomicBool>,
}

/// How much of the memory is taken.
#[derive(Debug)]
struct Room {
    capacity: u64,
    used: Mutex<u64>,
}

impl Room {
    fn take(&self, len: u64) -> io::Result<()> {
        let mut used = self.used.lock();
        let grown = used.checked_add(len).filter(|used| *used <= self.capacity);
        *used = grown.ok_or(io::ErrorKind::StorageFull)?;
        Ok(())
    }

    fn free(&self) -> u64 {
        self.capacity.saturating_sub(*self.used.lock())
    }
}

impl MemoryDisk {
    /// An empty disk for so many bytes.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        let room = Arc::new(Room { capacity, used: Mutex::new(0) });
        Self { shared: Arc::new(Shared { files: Mutex::default(), room, locked: Arc::default() }) }
    }
}

impl Disk for MemoryDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        match self.shared.files.lock().entry(name.to_owned()) {
            Entry::Occupied(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Entry::Vacant(entry) => {
                let room = Arc::clone(&self.shared.room);
                let file = Arc::new(MemoryFile { content: RwLock::default(), room });
                entry.insert(Arc::clone(&file));
                Ok(file)
            }
        }
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        match self.shared.files.lock().get(name) {
            Some(file) => Ok(Arc::clone(file) as _),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.shared.files.lock();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.shared.files.lock().remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.shared.files.lock().keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<DiskLock> {
        if self.shared.locked.swap(true, Ordering::AcqRel) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(DiskLock::new(Unlock(Arc::clone(&self.shared.locked))))
    }

    fn free_space(&self) -> io::Result<u64> {
        Ok(self.shared.room.free())
    }
}

/// Ends a lock when it is dropped.
#[derive(Debug)]
struct Unlock(Arc<AtomicBool>);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[derive(Debug)]
struct MemoryFile {
    content: RwLock<Vec<u8>>,
    room: Arc<Room>,
}

impl DiskFile for MemoryFile {
    fn preallocate(&self, len: u64) -> io::Result<()> {
        let mut content = self.content.write();
        let old_len = content.len() as u64;
        if len <= old_len {
            return Ok(());
        }
        let new_len = usize::try_from(len).map_err(|_| io::ErrorKind::StorageFull)?;
        self.room.take(len - old_len)?;
        if content.is_empty() {
            // Zeros that the system gives are no memory until they are written to.
            *content = vec![0; new_len];
        } else {
            content.resize(new_len, 0);
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.read().len() as u64)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset.saturating_add(bytes.len() as u64);
        // Room is taken by allocation alone.
        self.preallocate(end)?;
        let from = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut content = self.content.write();
        let into =
            content.get_mut(from..from.saturating_add(bytes.len())).ok_or(io::ErrorKind::InvalidInput)?;
        into.copy_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let content = self.content.read();
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let there = content.get(from..).unwrap_or_default();
        let filled = there.len().min(into.len());
        for (to, byte) in into.iter_mut().zip(there) {
            *to = *byte;
        }
        Ok(filled)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let len = self.content.get_mut().len() as u64;
        *self.room.used.lock() -= len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_contract_of_disks() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new(u64::MAX));
        kolumn_journal::disk::conformance::check(&disk).unwrap();
    }

    #[test]
    fn room_is_given_back_with_the_last_handle() {
        let disk = MemoryDisk::new(8192);
        let file = disk.create("a").unwrap();
        file.preallocate(8192).unwrap();
        let full = disk.create("b").unwrap().preallocate(4096).unwrap_err();
        assert_eq!((full.kind(), disk.free_space().unwrap()), (io::ErrorKind::StorageFull, 0));
        disk.remove("a").unwrap();
        assert_eq!(disk.free_space().unwrap(), 0);
        drop(file);
        assert_eq!(disk.free_space().unwrap(), 8192);
    }
}
