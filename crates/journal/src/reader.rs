//! Walking from group to group through files, believing nothing.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use crate::file::{FileTable, LogFile};
use crate::format::{GROUP_HEADER_LEN, GroupHeader};
use crate::position::{BLOCK_U64, in_memory, round_up};

/// Where a walk stands, and with it what the next group must say of itself.
///
/// INVARIANT: owner epochs do not fall. A group that was written before the log's end was cut may lie just where a new
/// one ends, and only its epoch tells that it does not belong there.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) log_id: Uuid,
    /// The end of the last group.
    pub(crate) end: u64,
    pub(crate) next_sequence: u64,
    pub(crate) owner_epoch: u32,
    /// The mutant that takes a recycled group for valid.
    pub(crate) trusting: bool,
}

/// A group that was read and verified.
#[derive(Clone, Debug)]
pub(crate) struct ReadGroup {
    pub(crate) at: u64,
    pub(crate) header: GroupHeader,
    pub(crate) bytes: Bytes,
}

impl ReadGroup {
    pub(crate) fn end(&self) -> u64 {
        self.at.saturating_add(self.header.group_len())
    }
}

impl Chain {
    /// Whether a group with this header may come next, at this position.
    fn accepts(&self, header: &GroupHeader, at: u64) -> bool {
        if self.trusting {
            return header.log_id == self.log_id;
        }
        header.position == at
            && header.previous == self.end
            && header.first_sequence == self.next_sequence
            && header.log_id == self.log_id
            && header.owner_epoch >= self.owner_epoch
    }

    /// The group that follows, wherever it lies: in the same file, or at the beginning of the next.
    pub(crate) fn next(&mut self, files: &FileTable, window: &mut Window) -> io::Result<Option<ReadGroup>> {
        let here = files.containing(self.end).map(|file| (file, self.end.max(file.first())));
        let after = files.from(self.end.saturating_add(1)).map(|file| (file, file.first()));
        for (file, at) in [here, after].into_iter().flatten() {
            let found = window.group(file, at, |header| self.accepts(header, at))?;
            if let Some(group) = found {
                self.end = group.end();
                self.next_sequence = group.header.next_sequence();
                self.owner_epoch = group.header.owner_epoch;
                return Ok(Some(group));
            }
        }
        Ok(None)
    }
}

/// A stretch of a file in memory, so that small groups are not read one by one.
#[derive(Debug, Default)]
pub(crate) struct Window {
    file: Option<Arc<LogFile>>,
    start: u64,
    bytes: Bytes,
}

const WINDOW_LEN: u64 = 256 << 10;

impl Window {
    /// The header of a possible group at this position; its checksum is not checked.
    pub(crate) fn header(&mut self, file: &Arc<LogFile>, at: u64) -> io::Result<Option<GroupHeader>> {
        let bytes = self.bytes(file, at, GROUP_HEADER_LEN as u64)?;
        Ok(GroupHeader::decode(&bytes))
    }

    /// The group at this position, if its header is wanted and its checksum right.
    pub(crate) fn group(
        &mut self,
        file: &Arc<LogFile>,
        at: u64,
        wanted: impl FnOnce(&GroupHeader) -> bool,
    ) -> io::Result<Option<ReadGroup>> {
        let Some(header) = self.header(file, at)?.filter(wanted) else { return Ok(None) };
        if at.saturating_add(header.group_len()) > file.limit() {
            return Ok(None);
        }
        // What the header claims is at most what the file has room for, and is read only as far as the file goes.
        let bytes = self.bytes(file, at, GROUP_HEADER_LEN as u64 + u64::from(header.payload_len))?;
        Ok(header.verify(&bytes).then_some(ReadGroup { at, header, bytes }))
    }

    /// Whether the block at this position has anything but zeros.
    pub(crate) fn has_content(&mut self, file: &Arc<LogFile>, at: u64) -> io::Result<bool> {
        // All bytes are looked at, without a branch for each: this is many times faster than stopping at the first.
        Ok(self.bytes(file, at, BLOCK_U64)?.iter().fold(0, |all, byte| all | byte) != 0)
    }

    /// The bytes from `at`, a multiple of the block; fewer than asked where the file ends.
    fn bytes(&mut self, file: &Arc<LogFile>, at: u64, len: u64) -> io::Result<Bytes> {
        let same = self.file.as_ref().is_some_and(|held| Arc::ptr_eq(held, file));
        let held_end = self.start + self.bytes.len() as u64;
        if !same || at < self.start || at.saturating_add(len) > held_end {
            let len = round_up(len).max(WINDOW_LEN).min(file.limit().saturating_sub(at));
            // Nobody holds a group of the window before, when blocks are only looked at: then its memory serves again.
            let memory = std::mem::take(&mut self.bytes).try_into_mut().unwrap_or_default();
            self.bytes = file.read_blocks_into(at, in_memory(len), memory)?.freeze();
            self.start = at;
            self.file = Some(file.clone());
        }
        let from = in_memory(at - self.start).min(self.bytes.len());
        let to = from.saturating_add(in_memory(len)).min(self.bytes.len());
        Ok(self.bytes.slice(from..to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_follows_only_if_everything_it_says_fits() {
        let chain = Chain {
            log_id: Uuid::from_u128(1),
            end: 8192,
            next_sequence: 5,
            owner_epoch: 3,
            trusting: false,
        };
        let header = GroupHeader {
            position: 8192,
            previous: 8192,
            synced: 4096,
            first_sequence: 5,
            log_id: Uuid::from_u128(1),
            owner_epoch: 3,
            entry_count: 1,
            payload_len: 10,
        };
        assert!(chain.accepts(&header, 8192));
        assert!(chain.accepts(&GroupHeader { owner_epoch: 4, ..header.clone() }, 8192));
        let others = [
            GroupHeader { position: 12288, ..header.clone() },
            GroupHeader { previous: 4096, ..header.clone() },
            GroupHeader { first_sequence: 6, ..header.clone() },
            GroupHeader { log_id: Uuid::from_u128(2), ..header.clone() },
            GroupHeader { owner_epoch: 2, ..header.clone() },
        ];
        for other in others {
            assert!(!chain.accepts(&other, 8192), "{other:?}");
        }
    }
}
