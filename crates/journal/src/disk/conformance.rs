//! Checks of the [`Disk`] contract that every implementation can run in its own tests.
//!
//! They cannot take the power away: what is lost then is the simulated disk's to show.

use std::io;
use std::sync::Arc;

use super::{Disk, DiskFile};
use crate::block::aligned;
use crate::position::BLOCK;

/// Runs every check on this disk, which must be empty. The error names the first that failed.
///
/// # Errors
/// A check failed, or the disk did.
pub fn check(disk: &Arc<dyn Disk>) -> io::Result<()> {
    let checks: [(&str, Check); 6] = [
        ("names", check_names),
        ("preallocated files read as zeros", check_preallocation),
        ("what is written is read", check_content),
        ("reads stop at the end", check_end),
        ("removed files stay readable", check_removed),
        ("locks exclude", check_lock),
    ];
    for (name, check) in checks {
        check(disk).map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    }
    Ok(())
}

type Check = fn(&Arc<dyn Disk>) -> io::Result<()>;

fn require(holds: bool, what: &str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(io::Error::other(what.to_owned())) }
}

fn kind_of<T>(result: io::Result<T>) -> Option<io::ErrorKind> {
    result.err().map(|error| error.kind())
}

fn block(fill: u8) -> bytes::BytesMut {
    let mut block = aligned(BLOCK);
    block.fill(fill);
    block
}

fn read(file: &Arc<dyn DiskFile>, block: u64) -> io::Result<bytes::BytesMut> {
    let mut into = aligned(BLOCK);
    let filled = file.read_at(block * BLOCK as u64, &mut into)?;
    into.truncate(filled);
    Ok(into)
}

fn check_names(disk: &Arc<dyn Disk>) -> io::Result<()> {
    drop(disk.create("a")?);
    require(kind_of(disk.create("a")) == Some(io::ErrorKind::AlreadyExists), "a name is made once")?;
    require(kind_of(disk.open("b")) == Some(io::ErrorKind::NotFound), "a missing file cannot be opened")?;
    require(kind_of(disk.remove("b")) == Some(io::ErrorKind::NotFound), "a missing file cannot be removed")?;
    require(
        kind_of(disk.rename("b", "c")) == Some(io::ErrorKind::NotFound),
        "a missing file cannot be renamed",
    )?;
    let file = disk.create("b")?;
    file.write_at(0, &block(7))?;
    disk.rename("b", "a")?;
    disk.sync_dir()?;
    let names = disk.list()?;
    require(
        names.iter().any(|name| name == "a") && !names.iter().any(|name| name == "b"),
        "a rename replaces",
    )?;
    require(read(&disk.open("a")?, 0)? == block(7), "the renamed file is the one")?;
    disk.remove("a")?;
    require(!disk.list()?.iter().any(|name| name == "a"), "a removed name is gone")
}

fn check_preallocation(disk: &Arc<dyn Disk>) -> io::Result<()> {
    let file = disk.create("p")?;
    require(file.is_empty()?, "a new file is empty")?;
    file.preallocate(4 * BLOCK as u64)?;
    require(file.len()? == 4 * BLOCK as u64, "preallocation sets the length")?;
    require(read(&file, 3)? == block(0), "what is preallocated reads as zeros")?;
    file.write_at(0, &block(9))?;
    file.preallocate(2 * BLOCK as u64)?;
    require(file.len()? == 4 * BLOCK as u64, "preallocation does not shorten")?;
    require(read(&file, 0)? == block(9), "preallocation keeps content")?;
    disk.remove("p")
}

fn check_content(disk: &Arc<dyn Disk>) -> io::Result<()> {
    let file = disk.create("w")?;
    file.preallocate(3 * BLOCK as u64)?;
    file.write_at(BLOCK as u64, &block(1))?;
    file.write_at(2 * BLOCK as u64, &block(2))?;
    file.write_at(BLOCK as u64, &block(3))?;
    file.sync()?;
    let again = disk.open("w")?;
    require(read(&again, 0)? == block(0), "a write changes nothing else")?;
    require(read(&again, 1)? == block(3), "the last write counts")?;
    require(read(&again, 2)? == block(2), "another handle sees what was written")?;
    file.write_cached_at(0, &block(4))?;
    file.write_cached_at(BLOCK as u64, &block(5))?;
    require(read(&file, 0)? == block(4), "a cached write is seen")?;
    file.write_at(BLOCK as u64, &block(6))?;
    file.write_cached_at(2 * BLOCK as u64, &block(7))?;
    require(read(&again, 1)? == block(6), "a later write replaces a cached one")?;
    require(read(&again, 2)? == block(7), "a cached write replaces an earlier one, for another handle, too")?;
    file.sync()?;
    file.write_cached_at(0, &block(8))?;
    require(read(&disk.open("w")?, 0)? == block(8), "there are cached writes after a sync")?;
    disk.remove("w")
}

fn check_end(disk: &Arc<dyn Disk>) -> io::Result<()> {
    let file = disk.create("e")?;
    file.write_at(0, &block(5))?;
    let mut into = aligned(2 * BLOCK);
    require(file.read_at(0, &mut into)? == BLOCK, "a read stops at the end")?;
    require(file.read_at(BLOCK as u64, &mut into)? == 0, "behind the end there is nothing")?;
    disk.remove("e")
}

fn check_removed(disk: &Arc<dyn Disk>) -> io::Result<()> {
    let file = disk.create("r")?;
    file.write_at(0, &block(6))?;
    disk.remove("r")?;
    disk.sync_dir()?;
    require(read(&file, 0)? == block(6), "a removed file is read through its handle")
}

fn check_lock(disk: &Arc<dyn Disk>) -> io::Result<()> {
    let lock = disk.lock()?;
    require(kind_of(disk.lock()) == Some(io::ErrorKind::WouldBlock), "a lock excludes a second one")?;
    drop(lock);
    drop(disk.lock()?);
    require(disk.free_space()? > 0, "an empty disk has room")
}
