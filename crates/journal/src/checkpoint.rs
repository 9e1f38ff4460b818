//! Writing checkpoints so that a whole one always exists, and finding the newest.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::block::aligned;
use crate::disk::{Disk, DiskFile};
use crate::error::OpenError;
use crate::format::Malformed;
use crate::format::checkpoint::{CHECKPOINT_HEADER_LEN, CheckpointHeader};
use crate::format::names::Name;
use crate::position::{BLOCK_U64, in_memory, round_up};
use crate::recover::{Identity, malformed};

/// A checkpoint that was read and verified.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) header: CheckpointHeader,
    pub(crate) payload: Bytes,
}

/// The newest checkpoint that is whole, and the positions of newer ones that are not.
pub(crate) fn newest(
    disk: &Arc<dyn Disk>,
    names: &[Name],
    identity: &mut Identity,
) -> Result<(Option<Found>, Vec<u64>), OpenError> {
    let mut skipped = Vec::new();
    for name in names.iter().rev() {
        let Name::Checkpoint(position) = *name else { continue };
        let bytes = read_whole(disk, &name.to_string())
            .map_err(|error| OpenError::io(format!("reading `{name}` failed"), error))?;
        match CheckpointHeader::decode(&bytes) {
            Ok((header, payload)) if header.position == position => {
                identity.agree(*name, header.log_id, header.tenant)?;
                return Ok((Some(Found { header, payload: bytes.slice(payload) }), skipped));
            }
            Err(error @ Malformed::Newer(_)) => return Err(malformed(*name, position, &error)),
            Ok(_) | Err(Malformed::Damaged(_)) => skipped.push(position),
        }
    }
    Ok((None, skipped))
}

fn read_whole(disk: &Arc<dyn Disk>, name: &str) -> io::Result<Bytes> {
    let file = disk.open(name)?;
    let mut bytes = aligned(in_memory(round_up(file.len()?)));
    let filled = file.read_at(0, &mut bytes)?;
    bytes.truncate(filled);
    Ok(bytes.freeze())
}

/// Writes a checkpoint: draft, sync, rename, sync of the directory; keeps the one before it and removes older ones.
pub(crate) fn write(
    disk: &Arc<dyn Disk>,
    header: &CheckpointHeader,
    payload: &[u8],
    previous: Option<u64>,
    reserve_len_min: u64,
) -> io::Result<()> {
    let draft = Name::CheckpointDraft.to_string();
    remove_if_there(disk, &draft)?;
    let file = disk.create(&draft)?;
    let len = round_up(CHECKPOINT_HEADER_LEN as u64 + payload.len() as u64);
    make_room(disk, &*file, len, previous)?;
    write_blocks(&*file, &header.encode(payload), payload)?;
    file.sync()?;
    drop(file);
    disk.rename(&draft, &Name::Checkpoint(header.position).to_string())?;
    disk.sync_dir()?;
    remove_but(disk, &[Some(header.position), previous])?;
    keep_reserve(disk, len.saturating_mul(2).max(reserve_len_min))
}

/// Allocates the draft. On a full disk first the reserve is given up for it, then the checkpoint before the newest.
fn make_room(disk: &Arc<dyn Disk>, draft: &dyn DiskFile, len: u64, newest: Option<u64>) -> io::Result<()> {
    let still_full = |result: &io::Result<()>| result.as_ref().is_err_and(is_full);
    let mut result = draft.preallocate(len);
    if still_full(&result) {
        remove_if_there(disk, &Name::Reserve.to_string())?;
        result = draft.preallocate(len);
    }
    if still_full(&result) {
        remove_but(disk, &[newest])?;
        result = draft.preallocate(len);
    }
    result
}

/// Removes all checkpoints but these.
fn remove_but(disk: &Arc<dyn Disk>, kept: &[Option<u64>]) -> io::Result<()> {
    for name in disk.list()? {
        if let Some(Name::Checkpoint(position)) = Name::parse(&name)
            && !kept.contains(&Some(position))
        {
            disk.remove(&name)?;
        }
    }
    Ok(())
}

/// Makes sure that the next checkpoint finds room on a full disk. Having none is no fault as long as the disk is not
/// full, so a full disk is not told here.
pub(crate) fn keep_reserve(disk: &Arc<dyn Disk>, len: u64) -> io::Result<()> {
    let name = Name::Reserve.to_string();
    let file = match disk.open(&name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => disk.create(&name)?,
        other => other?,
    };
    match file.preallocate(round_up(len)) {
        Err(error) if is_full(&error) => Ok(()),
        other => other,
    }
}

pub(crate) fn remove_if_there(disk: &Arc<dyn Disk>, name: &str) -> io::Result<()> {
    match disk.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Writes header and payload through one aligned buffer, so that a large payload does not double in memory.
fn write_blocks(file: &dyn DiskFile, header: &[u8], payload: &[u8]) -> io::Result<()> {
    let mut buffer = aligned(COPY_LEN);
    let (mut offset, mut rest) = (0, payload);
    let mut head = header;
    while !head.is_empty() || !rest.is_empty() {
        let room = COPY_LEN - head.len();
        let (now, later) = rest.split_at(rest.len().min(room));
        let filled = head.len() + now.len();
        let padded = in_memory(round_up(filled as u64));
        buffer.clear();
        buffer.extend_from_slice(head);
        buffer.extend_from_slice(now);
        buffer.resize(padded, 0);
        file.write_at(offset, &buffer)?;
        offset += padded as u64;
        (head, rest) = (&[], later);
    }
    debug_assert!(offset % BLOCK_U64 == 0, "checkpoints are whole blocks");
    Ok(())
}

const COPY_LEN: usize = 256 << 10;
