//! The disk: sync latency, fresh append, aligned writes past the page cache.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::network;
use super::{MIB, MIB_U64, Transfer};
use crate::clock;
use crate::histogram::{Histogram, Percentiles};
use crate::wire::truncated;

/// A file that is removed when dropped.
#[derive(Debug)]
pub(super) struct ScratchFile {
    file: File,
    path: PathBuf,
    len: u64,
    /// Whether it is written past the page cache.
    pub(super) direct: bool,
}

const FILE_LEN: u64 = 64 * MIB_U64;

/// Larger, so that a second of writing does not come round.
const FRESH_LEN: u64 = 1024 * MIB_U64;

/// What direct writes must start at, in memory and in the file.
const ALIGNMENT: usize = 4096;

impl ScratchFile {
    /// An allocated file that has been written once, as a log's recycled files are.
    pub(super) fn create(dir: &Path) -> io::Result<Self> {
        let scratch = Self::allocate(dir, "scratch", FILE_LEN)?;
        let block = Block::new();
        for at in (0..FILE_LEN).step_by(MIB) {
            scratch.file.write_all_at(block.bytes()?, at)?;
        }
        scratch.file.sync_all()?;
        Ok(scratch)
    }

    /// A file whose blocks are allocated and were never written: the first write of each also has to note that.
    fn allocate(dir: &Path, name: &str, len: u64) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let path = dir.join(format!("calibrate-{}.{name}", std::process::id()));
        let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or_default();
        let scratch = match open(&path, flags) {
            Ok(file) => Self { file, path, len, direct: true },
            Err(_) => Self { file: open(&path, 0)?, path, len, direct: false },
        };
        fallocate(&scratch.file, FallocateFlags::empty(), 0, len)?;
        scratch.file.sync_all()?;
        Ok(scratch)
    }

    /// Writes 4 KiB and syncs, again and again or once a period.
    pub(super) fn sync_latency(
        &self,
        duration: Duration,
        period: Option<Duration>,
    ) -> io::Result<Percentiles> {
        clock::sharpen_sleep();
        let block = Block::new();
        let page = block.bytes()?.get(..ALIGNMENT).ok_or_else(truncated)?;
        let mut seen = Histogram::new();
        let start = clock::now();
        let (mut next, mut at) = (start, 0);
        while start.elapsed() < duration {
            if let Some(period) = period {
                next += period;
                clock::sleep_until(next);
            }
            let before = clock::now();
            self.file.write_all_at(page, at)?;
            self.file.sync_data()?;
            seen.record(before.elapsed());
            at = (at + 4096) % self.len;
        }
        Ok(seen.percentiles())
    }

    /// Writes 1 MiB and syncs, again and again over the whole file.
    pub(super) fn write_and_sync(&self, duration: Duration) -> io::Result<Transfer> {
        let mut block = Block::new();
        self.write_loop(duration, &mut block, |_| Ok(()))
    }

    /// The same into a file whose blocks were never written.
    pub(super) fn fresh_write_and_sync(dir: &Path, duration: Duration) -> io::Result<Transfer> {
        Self::allocate(dir, "fresh", FRESH_LEN)?.write_and_sync(duration)
    }

    /// The same with every MiB received over loopback, straight into what is written.
    pub(super) fn receive_write_and_sync(&self, duration: Duration) -> io::Result<Transfer> {
        let (sender, mut receiver) = network::pair()?;
        let sending = thread::spawn(move || network::flood(sender));
        let mut block = Block::new();
        let transfer = self.write_loop(duration, &mut block, |bytes| receiver.read_exact(bytes))?;
        drop(receiver);
        sending.join().map_err(|_| io::Error::other("the sender panicked"))?;
        Ok(transfer)
    }

    fn write_loop(
        &self,
        duration: Duration,
        block: &mut Block,
        mut fill: impl FnMut(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<Transfer> {
        let (start, cpu) = (clock::now(), clock::thread_cpu());
        let (mut bytes, mut at) = (0, 0);
        while start.elapsed() < duration {
            fill(block.bytes_mut()?)?;
            self.file.write_all_at(block.bytes()?, at)?;
            self.file.sync_data()?;
            bytes += MIB_U64;
            at = (at + MIB_U64) % self.len;
        }
        Ok(Transfer::new(bytes, start.elapsed(), clock::thread_cpu().saturating_sub(cpu)))
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        // A file left behind is a nuisance, not a wrong measurement.
        let _ = fs::remove_file(&self.path);
    }
}

/// Appends through the page cache to a file that did not exist, without a sync.
pub(super) fn fresh_append(dir: &Path, mib: u64) -> io::Result<Transfer> {
    let path = dir.join(format!("calibrate-{}.append", std::process::id()));
    let bytes = vec![5; MIB];
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let (start, cpu) = (clock::now(), clock::thread_cpu());
    let written = (0..mib).try_for_each(|_| file.write_all(&bytes));
    let transfer = Transfer::new(mib * MIB_U64, start.elapsed(), clock::thread_cpu().saturating_sub(cpu));
    drop(file);
    fs::remove_file(&path)?;
    written.map(|()| transfer)
}

fn open(path: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).custom_flags(flags).open(path)
}

/// A MiB at an aligned address: more is allocated, and the aligned part is used.
pub(crate) struct Block {
    allocated: Vec<u8>,
    from: usize,
}

impl Block {
    pub(crate) fn new() -> Self {
        let allocated = vec![3; MIB + ALIGNMENT];
        let from = allocated.as_ptr().align_offset(ALIGNMENT);
        Self { allocated, from }
    }

    fn bytes(&self) -> io::Result<&[u8]> {
        self.allocated.get(self.from..self.from + MIB).ok_or_else(truncated)
    }

    pub(crate) fn bytes_mut(&mut self) -> io::Result<&mut [u8]> {
        self.allocated.get_mut(self.from..self.from + MIB).ok_or_else(truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_aligned_and_whole() {
        let block = Block::new();
        let bytes = block.bytes().unwrap();
        assert_eq!(bytes.len(), MIB);
        assert_eq!(bytes.as_ptr().align_offset(ALIGNMENT), 0);
    }
}
