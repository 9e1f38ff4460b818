//! The least that reading a log from its files takes: its bytes, past the page cache, in pieces of 1 MiB.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::calibrate::Block;
use crate::clock;

/// Reads the log's files in this directory, in their order, until `len` bytes have been read; how long it took.
pub(super) fn read(dir: &Path, len: u64) -> io::Result<Duration> {
    let files = log_files(dir)?;
    let mut block = Block::new();
    let (start, mut left) = (clock::now(), len);
    for path in files {
        let mut file = open(&path)?;
        while left > 0 {
            let read = file.read(block.bytes_mut()?)?;
            if read == 0 {
                break;
            }
            left = left.saturating_sub(u64::try_from(read).unwrap_or(u64::MAX));
        }
    }
    if left > 0 { Err(io::Error::other("the log is shorter than its rows")) } else { Ok(start.elapsed()) }
}

/// The names are positions in hexadecimal digits, so their order is the log's.
fn log_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in dir.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "journal") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn open(path: &Path) -> io::Result<File> {
    let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(direct).open(path).or_else(|_| File::open(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_files_of_the_log_are_read_and_no_more_than_asked() {
        let dir = tempfile::tempdir().unwrap();
        for (name, len) in [("01.journal", 3 << 20), ("02.journal", 2 << 20), ("03.spare", 1 << 20)] {
            std::fs::write(dir.path().join(name), vec![1; len]).unwrap();
        }
        assert!(read(dir.path(), 5 << 20).is_ok());
        assert!(read(dir.path(), (5 << 20) + 1).is_err());
        std::fs::remove_file(dir.path().join("02.journal")).unwrap();
        assert!(read(dir.path(), 3 << 20).is_ok());
    }
}
