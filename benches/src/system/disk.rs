//! The disk below a directory: how much is free, and how often it was told to flush.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor, statvfs};

/// Bytes that may still be written below a directory.
pub(super) fn free(dir: &Path) -> io::Result<u64> {
    let seen = statvfs(dir)?;
    Ok(seen.f_bavail.saturating_mul(seen.f_frsize))
}

/// The disk whose flushes are counted. The counter is the whole disk's: an idle machine is taken for granted.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    name: String,
}

impl Disk {
    /// The disk below a directory; `None` where no disk is, as in memory.
    pub(super) fn below(dir: &Path) -> Option<Self> {
        let device = fs::metadata(dir).ok()?.dev();
        let link = PathBuf::from(format!("/sys/dev/block/{}:{}", major(device), minor(device)));
        let path = fs::canonicalize(link).ok()?;
        // The kernel counts the flushes of a partition at its disk.
        let whole = if path.join("partition").exists() { path.parent()? } else { &path };
        Some(Self { name: whole.file_name()?.to_string_lossy().into_owned() })
    }

    /// How many flushes it has completed.
    pub(super) fn flushes(&self) -> Option<u64> {
        parse(&fs::read_to_string("/proc/diskstats").ok()?, &self.name)
    }
}

/// `major minor name` and seventeen counters, the last but one being the flushes that have completed.
fn parse(diskstats: &str, name: &str) -> Option<u64> {
    let line = diskstats.lines().find(|line| line.split_ascii_whitespace().nth(2) == Some(name))?;
    line.split_ascii_whitespace().nth(FLUSHES)?.parse().ok()
}

const FLUSHES: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    const DISKSTATS: &str = "\
 254       0 vda 100 2 300 4 500 6 700 8 0 900 1000 11 0 12 13 4711 1500
 254       1 vda1 1 2 3 4 5 6 7 8 0 9 10 11 0 12 13 0 0
   7       0 loop0 1 0 2 3 0 0 0 0 0 4 5\n";

    #[track_caller]
    fn check(name: &str, expect: Option<u64>) {
        assert_eq!(parse(DISKSTATS, name), expect, "{name}");
    }

    #[test]
    fn the_flushes_of_a_disk_are_found_by_its_whole_name() {
        check("vda", Some(4711));
        check("vda1", Some(0));
        check("vd", None);
    }

    #[test]
    fn a_kernel_that_does_not_count_flushes_gives_none() {
        check("loop0", None);
    }

    #[test]
    fn a_directory_has_free_space() {
        assert!(free(Path::new("/")).unwrap() > 0);
    }
}
