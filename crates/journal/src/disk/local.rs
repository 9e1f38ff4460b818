//! A directory of the operating system, with the page cache or around it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, FlockOperation};

use super::{Disk, DiskFile, DiskLock};
use crate::block::aligned;
use crate::position::BLOCK;

/// How the files of a directory are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskKind {
    /// Around the page cache: appending costs a tenth of the processor time and does not slow down with the volume.
    Direct,
    /// Through the page cache: where the file system refuses direct writes.
    Buffered,
}

/// The disk for this directory, which is made if it does not exist: direct if a file there takes a direct write, a
/// sync and a direct read; buffered otherwise.
///
/// # Errors
/// The directory cannot be made or written to.
pub fn probe(dir: &Path) -> io::Result<(Arc<dyn Disk>, DiskKind)> {
    std::fs::create_dir_all(dir)?;
    let kind = if takes_direct_io(dir) { DiskKind::Direct } else { DiskKind::Buffered };
    Ok((Arc::new(LocalDisk::open(dir, kind)?), kind))
}

/// The buffered disk for this directory, which is made if it does not exist.
///
/// # Errors
/// The directory cannot be made or opened.
pub fn buffered(dir: &Path) -> io::Result<Arc<dyn Disk>> {
    std::fs::create_dir_all(dir)?;
    Ok(Arc::new(LocalDisk::open(dir, DiskKind::Buffered)?))
}

#[derive(Debug)]
struct LocalDisk {
    path: PathBuf,
    dir: File,
    kind: DiskKind,
}

#[derive(Debug)]
struct LocalFile {
    file: File,
    cached: Mutex<Cached>,
}

/// A second handle of a file that is written to around the page cache, for writes through it. The kernel keeps the two
/// ways in step: a direct write drops what it covers from the cache, a direct read writes it back first.
#[derive(Debug)]
enum Cached {
    /// The file's own handle is as good, or the only one to be had.
    Same,
    NotOpen,
    /// With the bytes written since the kernel was last asked to bring them to the disk.
    Open(File, usize),
}

/// So much is in the page cache alone at most, nearly: the sync when a file is left would have to wait for all of it.
const CACHED_LEN_MAX: usize = 1 << 20;

impl LocalDisk {
    fn open(path: &Path, kind: DiskKind) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), dir: File::open(path)?, kind })
    }

    fn file(&self, file: File) -> Arc<dyn DiskFile> {
        let cached = match self.kind {
            DiskKind::Direct => Cached::NotOpen,
            DiskKind::Buffered => Cached::Same,
        };
        Arc::new(LocalFile { file, cached: Mutex::new(cached) })
    }

    fn options(&self) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o640);
        if self.kind == DiskKind::Direct {
            options.custom_flags(direct_flag());
        }
        options
    }
}

impl Disk for LocalDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.options().create_new(true).open(self.path.join(name))?;
        Ok(self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(self.options().open(self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.dir.sync_all()
    }

    fn lock(&self) -> io::Result<DiskLock> {
        let path = self.path.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o640).open(path)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(DiskLock::new(file))
    }

    fn free_space(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(&self.dir)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

impl DiskFile for LocalFile {
    fn preallocate(&self, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, len) {
            // Without preallocation a full disk can be met by a write, which ends the log; some file systems leave no choice.
            Err(rustix::io::Errno::OPNOTSUPP) if self.file.metadata()?.len() < len => {
                self.file.set_len(len)?;
            }
            Err(rustix::io::Errno::OPNOTSUPP) => {}
            other => other?,
        }
        self.file.sync_all()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn write_cached_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut cached = self.cached.lock();
        if matches!(*cached, Cached::NotOpen) {
            *cached = reopened(&self.file).map_or(Cached::Same, |file| Cached::Open(file, 0));
        }
        let Cached::Open(file, len) = &mut *cached else { return self.file.write_all_at(bytes, offset) };
        file.write_all_at(bytes, offset)?;
        *len += bytes.len();
        if *len >= CACHED_LEN_MAX {
            *len = 0;
            // Begins to write and waits for nothing. Where it is not heard, the sync takes longer.
            let _ = rustix::fs::fadvise(&*file, 0, None, rustix::fs::Advice::DontNeed);
        }
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(len) => filled += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // A direct read stops within a block only at the file's end, and cannot go on from there.
            if filled % BLOCK != 0 {
                break;
            }
        }
        Ok(filled)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        // Files are synced when they are left: they need no second handle then.
        let mut cached = self.cached.lock();
        if matches!(*cached, Cached::Open(..)) {
            *cached = Cached::NotOpen;
        }
        Ok(())
    }
}

/// The same file through the page cache; by its descriptor, since its name may have changed.
#[cfg(target_os = "linux")]
fn reopened(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd as _;
    OpenOptions::new().write(true).open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(not(target_os = "linux"))]
fn reopened(_: &File) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn direct_flag() -> i32 {
    i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
fn direct_flag() -> i32 {
    0
}

/// Tries what the journal will do. A failure of any kind means no: the buffered disk will meet it again and tell.
fn takes_direct_io(dir: &Path) -> bool {
    let name = "direct.probe";
    let attempt = || -> io::Result<bool> {
        let disk = LocalDisk::open(dir, DiskKind::Direct)?;
        match disk.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = disk.create(name)?;
        let mut block = aligned(BLOCK);
        block.fill(0x5a);
        file.write_at(0, &block)?;
        file.sync()?;
        let mut back = aligned(BLOCK);
        Ok(file.read_at(0, &mut back)? == BLOCK && back == block)
    };
    let works = direct_flag() != 0 && attempt().unwrap_or(false);
    // Left over at worst; the next probe takes it away.
    drop(std::fs::remove_file(dir.join(name)));
    works
}
