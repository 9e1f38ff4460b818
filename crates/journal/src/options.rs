//! What a log is opened with: lengths, limits, durability.

use uuid::Uuid;

use crate::error::{OpenError, OpenErrorKind};
use crate::format::{ENTRY_FRAME_LEN, GROUP_HEADER_LEN};
use crate::position::{BLOCK_U64, round_up};

/// When an entry counts as committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// After the write and a sync of the file: what was committed survives the loss of power.
    #[default]
    Sync,
    /// After the write: what was committed survives the end of the process, not of the machine.
    Os,
}

/// What an append is for, which decides whether it may use the reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Class {
    /// Ordinary entries.
    Data,
    /// Entries that lead to files being freed: deletions, retention, carrying. They may fill the reserved file too.
    Reclaim,
}

/// A fault put in on purpose, so that tests can show that they would see it.
#[cfg(feature = "test-util")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Mutant {
    /// No fault.
    #[default]
    None,
    /// Entries are committed before the sync that covers them.
    AnswersBeforeSync,
    /// Recovery takes a group of the file's former life for a group of this one.
    TrustsRecycledGroups,
    /// A checkpoint is written without a sync of the log before it.
    CheckpointsAhead,
    /// Appends are admitted without room being reserved for them.
    AdmitsUnreserved,
}

/// How a log is opened.
///
/// Start from `Options::default()` and set fields. The lengths may differ from one opening to the next, except that
/// entries must still fit: a file keeps the length it was made with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The log that is expected; another one is refused. `None` accepts any, and lets a new log take an id drawn
    /// from `seed`.
    pub log_id: Option<Uuid>,
    /// The tenant that a new log is made for. An existing log keeps its own.
    pub tenant: Uuid,
    /// The source of a new log's id.
    pub seed: u64,
    /// Length of a file; a multiple of [`BLOCK`](crate::BLOCK). 64 MiB.
    pub file_len: u64,
    /// The most bytes that several entries are gathered into; a larger single entry makes its own group. 8 MiB.
    pub group_len_max: usize,
    /// The longest entry. 16 MiB.
    pub entry_len_max: usize,
    /// The most bytes admitted and not yet committed, each entry counted in whole blocks. 32 MiB.
    pub queue_len_max: usize,
    /// Length of the memory blocks that small groups share. 256 KiB.
    pub block_len: usize,
    /// The most block memory kept for reuse. 64 MiB.
    pub pool_len_max: usize,
    /// When an entry counts as committed.
    pub durability: Durability,
    /// The most bytes that all files together take, spare ones included. No limit but the disk by default.
    pub size_limit: u64,
    /// The least room kept for the next checkpoint on a full disk; twice the length of the last one if that is more. 1 MiB.
    pub checkpoint_reserve_len: u64,
    /// Freed files beyond this many are given back to the file system instead of kept for reuse. 4.
    pub spare_files_max: usize,
    /// A fault put in on purpose.
    #[cfg(feature = "test-util")]
    pub mutant: Mutant,
}

/// The longest file.
pub(crate) const FILE_LEN_MAX: u64 = 1 << 32;

impl Default for Options {
    fn default() -> Self {
        Self {
            log_id: None,
            tenant: Uuid::nil(),
            seed: 0,
            file_len: 64 << 20,
            group_len_max: 8 << 20,
            entry_len_max: 16 << 20,
            queue_len_max: 32 << 20,
            block_len: 256 << 10,
            pool_len_max: 64 << 20,
            durability: Durability::Sync,
            size_limit: u64::MAX,
            checkpoint_reserve_len: 1 << 20,
            spare_files_max: 4,
            #[cfg(feature = "test-util")]
            mutant: Mutant::None,
        }
    }
}

impl Options {
    /// The most room that an entry of this length takes: a group of its own.
    pub(crate) fn entry_cost(len: usize) -> u64 {
        round_up((GROUP_HEADER_LEN + ENTRY_FRAME_LEN) as u64 + len as u64)
    }

    /// Room in a fresh file.
    pub(crate) fn file_room(&self) -> u64 {
        self.file_len - BLOCK_U64
    }

    /// The room that `rest` bytes of a file give for certain. At its end a file may lose what is too short for the
    /// next entry, which is at most one block less than the longest one.
    pub(crate) fn certain_room(&self, rest: u64) -> u64 {
        rest.saturating_sub(Self::entry_cost(self.entry_len_max) - BLOCK_U64)
    }

    /// A group of this length is written while the next one gathers; who waits meanwhile is looked after in portions of
    /// this length.
    pub(crate) fn overlap_len(&self) -> usize {
        self.block_len
    }

    /// A group of this length does not wait for the one before it to arrive.
    pub(crate) fn launch_len(&self) -> usize {
        self.block_len.saturating_mul(4).min(self.group_len_max)
    }

    /// The memory for groups that gather while others are on their way.
    pub(crate) fn overlapping_block_len(&self) -> usize {
        self.block_len.saturating_mul(16).min(self.group_len_max)
    }

    /// Whether this fault was put in.
    #[cfg(feature = "test-util")]
    pub(crate) fn has(&self, mutant: Mutant) -> bool {
        self.mutant == mutant
    }

    pub(crate) fn validate(&self) -> Result<(), OpenError> {
        let refuse = |what: &str| Err(OpenError::new(OpenErrorKind::InvalidOptions, what));
        if !self.file_len.is_multiple_of(BLOCK_U64)
            || self.file_len < 4 * BLOCK_U64
            || self.file_len > FILE_LEN_MAX
        {
            return refuse("`file_len` must be a multiple of 4096 between 16 KiB and 4 GiB");
        }
        let cost = Self::entry_cost(self.entry_len_max);
        if self.certain_room(self.file_room()) < cost {
            return refuse("`entry_len_max` must be less than half of `file_len`");
        }
        if (self.queue_len_max as u64) < cost {
            return refuse("`queue_len_max` must hold at least one entry of `entry_len_max`");
        }
        if self.size_limit < self.file_len.saturating_mul(3) {
            return refuse("`size_limit` must hold at least three files");
        }
        Ok(())
    }
}
