//! Files with bytes that could not be read back, kept for whoever wants to look at them.

use std::io;

use bytes::{Buf, BytesMut};
use kolumn_journal::{BLOCK, Disk};

/// Keeps these bytes in a file of their own, `<16 hex digits of the position>.damaged`, behind a line that says why. A
/// disk that takes no more does not keep the queue from going on; at most [`KEPT`] files are kept, the oldest make room.
pub(super) fn keep(disk: &dyn Disk, position: u64, bytes: &[u8], why: &str) {
    let mut content = BytesMut::from(why.as_bytes());
    content.extend_from_slice(b"\n");
    content.extend_from_slice(bytes);
    // What is lost by a failure is what could not be read anyhow; how much that is, the queue counts.
    let _ = write(disk, &format!("{position:016x}{SUFFIX}"), &content);
}

fn write(disk: &dyn Disk, name: &str, content: &[u8]) -> io::Result<()> {
    let mut names: Vec<_> = disk.list()?.into_iter().filter(|name| name.ends_with(SUFFIX)).collect();
    if names.iter().any(|other| other == name) {
        return Ok(());
    }
    names.sort_unstable();
    for old in names.iter().take((names.len() + 1).saturating_sub(KEPT)) {
        disk.remove(old)?;
    }
    let blocks = aligned(content);
    let file = disk.create(name)?;
    if let Err(error) = file.preallocate(blocks.len() as u64) {
        disk.remove(name)?;
        return Err(error);
    }
    file.write_at(0, &blocks)?;
    file.sync()?;
    disk.sync_dir()
}

/// The bytes in memory that may be written around the page cache: whole blocks that begin at one.
fn aligned(bytes: &[u8]) -> BytesMut {
    let len = bytes.len().next_multiple_of(BLOCK);
    let mut memory = BytesMut::zeroed(len + BLOCK);
    let skip = memory.as_ptr().addr().next_multiple_of(BLOCK) - memory.as_ptr().addr();
    memory.advance(skip);
    memory.truncate(len);
    for (into, byte) in memory.iter_mut().zip(bytes) {
        *into = *byte;
    }
    memory
}

const SUFFIX: &str = ".damaged";
const KEPT: usize = 16;

#[cfg(test)]
mod tests {
    use kolumn_journal::sim::SimDisk;

    use super::*;

    #[test]
    fn what_is_kept_can_be_looked_at_and_is_bounded() {
        let sim = SimDisk::new(1);
        for position in 0..20_u64 {
            keep(&sim, position * 4096, &[7; 5000], "no valid group");
        }
        let mut names = sim.list().unwrap();
        names.sort_unstable();
        assert_eq!(names.len(), KEPT);
        assert_eq!(names[0], "0000000000004000.damaged");
        let content = sim.content(&names[0]).unwrap();
        assert!(content.starts_with(b"no valid group\n\x07\x07") && content.len() == 8192);
    }

    #[test]
    fn a_full_disk_keeps_nothing_and_stops_nobody() {
        let sim = SimDisk::new(1);
        sim.set_capacity(4096);
        keep(&sim, 0, &[7; 5000], "no valid group");
        assert_eq!(sim.list().unwrap(), [""; 0]);
    }
}
