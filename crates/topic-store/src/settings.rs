//! What an owner of a store can choose.

use uuid::Uuid;

use crate::error::{OpenError, OpenErrorKind};

/// When a write counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing between these two")]
pub enum Durability {
    /// After the disk said that it is synced.
    #[default]
    Sync,
    /// After the operating system has it: survives a killed process, not a power cut.
    Os,
}

/// Plain data; start from [`Settings::default`] and change what you need.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers use struct update syntax")]
pub struct Settings {
    /// Memory for the newest blocks, from which consumers that keep up are served.
    pub tail_len_max: usize,
    /// Memory for rows that scans have decoded, kept for the next scan of the same rows. It fills with scans alone.
    pub decoded_len_max: usize,
    /// Memory for the index of one copy of the state (readers' and checkpoint's); above it the older half is thinned.
    pub index_len_max: usize,
    /// Largest batch that any topic may allow.
    pub batch_len_max: usize,
    /// How far one batch may inflate.
    pub inflated_len_max: usize,
    /// Partitions of one topic, at most.
    pub partitions_max: i32,
    /// Partitions of all topics together, at most.
    pub all_partitions_max: i32,
    /// Windows of idempotent producers, counted per partition. Above it those that have been silent longest are dropped
    /// in the next round of maintenance.
    pub producers_max: usize,
    /// Memory for the groups of one copy of the state: ids, memories, committed offsets with their metadata, and about 128
    /// bytes for each group and each offset. What would let it grow beyond is refused.
    pub groups_len_max: usize,
    /// Bytes that may wait for the disk before appends are answered `Busy`.
    pub queue_len_max: usize,
    /// Length of one journal file.
    pub file_len: u64,
    /// Bytes that the journal may occupy; `None`: three quarters of what is free at open plus what it has.
    pub size_limit: Option<u64>,
    /// Journal bytes after which a checkpoint is due.
    pub checkpoint_distance: u64,
    /// Bytes carried to the head in one round of maintenance, at most.
    pub carry_len_max: u64,
    /// Pause between two looks at what retention may delete; without one while space is short or after an open.
    pub retention_interval_ms: i64,
    /// How long the window of a silent producer is kept.
    pub producer_expiration_ms: i64,
    /// When a write counts as done.
    pub durability: Durability,
    /// Whose log this is; in its formats from the first version.
    pub tenant: Uuid,
    /// A fault of the journal put in on purpose, so that tests can show that they would see it.
    #[cfg(feature = "test-util")]
    pub mutant: kolumn_journal::Mutant,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tail_len_max: 24 << 20,
            decoded_len_max: 128 << 20,
            index_len_max: 8 << 20,
            batch_len_max: 16 << 20,
            inflated_len_max: 128 << 20,
            partitions_max: 10_000,
            all_partitions_max: 200_000,
            producers_max: 100_000,
            groups_len_max: 256 << 20,
            queue_len_max: 32 << 20,
            file_len: 64 << 20,
            size_limit: None,
            checkpoint_distance: 64 << 20,
            carry_len_max: 16 << 20,
            retention_interval_ms: 300_000,
            producer_expiration_ms: 86_400_000,
            durability: Durability::Sync,
            tenant: Uuid::nil(),
            #[cfg(feature = "test-util")]
            mutant: kolumn_journal::Mutant::None,
        }
    }
}

impl Settings {
    /// Refuses what cannot work, by name.
    pub(crate) fn validate(&self) -> Result<(), OpenError> {
        let refuse = |text: &str| Err(OpenError::new(OpenErrorKind::Settings, text));
        if !self.file_len.is_multiple_of(FILE_LEN_UNIT) || self.file_len == 0 {
            return refuse("`file_len` has to be a multiple of 64 KiB");
        }
        if self.batch_len_max as u64 + ENTRY_ROOM > self.file_len / 2 {
            return refuse("`batch_len_max` has to be 16 KiB less than half of `file_len`, or smaller");
        }
        if self.partitions_max < 1 {
            return refuse("`partitions_max` has to be at least 1");
        }
        if self.producer_expiration_ms < 1 {
            return refuse("`producer_expiration_ms` has to be at least 1");
        }
        Ok(())
    }
}

/// What an entry, its group and its file need besides the batch.
const ENTRY_ROOM: u64 = 16 << 10;
const FILE_LEN_UNIT: u64 = 64 << 10;
