//! How a queue is opened.

use super::letters::DeadLetters;
use crate::config::{QueueConfig, QueueDurability, QueueFull};

/// How a queue is opened. Start from [`QueueOptions::default`] or a target's [`QueueConfig`], and set fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueueOptions {
    /// How many messages may wait, those under way included. 100,000.
    pub messages_max: u64,
    /// How many bytes of messages may wait, in the lengths of [`Message::encoded_len`](super::Message::encoded_len). No
    /// limit.
    pub bytes_max: u64,
    /// What becomes of a message for which there is no room. Refused.
    pub full: QueueFull,
    /// What a message outlives once it was put. The process.
    pub durability: QueueDurability,
    /// Where messages go that the target will never take. Nowhere: they cannot be set aside.
    pub dead_letters: Option<DeadLetters>,
    /// The longest message in bytes. 1 MiB.
    pub message_len_max: usize,
    /// The length of a file of the journal. Three to four of them are allocated ahead. 16 MiB.
    pub file_len: u64,
    /// The most bytes of all files together. No limit but the disk.
    pub space_limit: u64,
    /// How many bytes of the journal's blocks are kept in memory for messages that were read ahead. 4 MiB.
    pub window_len: usize,
    /// A checkpoint is written when so much was written since the last. What is behind it is read at opening. 16 MiB.
    pub checkpoint_distance: u64,
    /// Where a new journal's identity comes from: random numbers of the operating system.
    pub seed: u64,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            messages_max: QueueConfig::LIMIT,
            bytes_max: u64::MAX,
            full: QueueFull::default(),
            durability: QueueDurability::default(),
            dead_letters: None,
            message_len_max: 1 << 20,
            file_len: 16 << 20,
            space_limit: u64::MAX,
            window_len: 4 << 20,
            checkpoint_distance: 16 << 20,
            seed: 0,
        }
    }
}

impl QueueOptions {
    /// What an operator has configured for a target. Without a folder the queue is to be opened on a
    /// [`MemoryDisk`](super::MemoryDisk), and its files are shorter.
    #[must_use]
    pub fn of(config: &QueueConfig) -> Self {
        let default = Self::default();
        let file_len = if config.dir.is_some() { default.file_len } else { default.file_len / 4 };
        Self {
            file_len,
            messages_max: config.limit,
            bytes_max: config.limit_bytes.unwrap_or(u64::MAX),
            full: config.full,
            durability: config.durability,
            ..default
        }
    }

    /// How far marks are apart: the journal is read 256 KiB at a time anyway.
    pub(super) fn mark_distance(&self) -> u64 {
        (self.file_len / 8).min(256 << 10)
    }

    pub(super) fn journal(&self) -> kolumn_journal::Options {
        let mut options = kolumn_journal::Options::default();
        options.seed = self.seed;
        options.file_len = self.file_len;
        options.entry_len_max = self.message_len_max.max(ENTRY_LEN_MIN);
        // A group is read as a whole when messages are read ahead.
        options.group_len_max = GROUP_LEN_MAX;
        // The journal counts each entry in whole blocks here: some thousand short messages in a file of 16 MiB.
        let file_len = usize::try_from(self.file_len).unwrap_or(usize::MAX);
        options.queue_len_max = file_len.max(options.entry_len_max.saturating_mul(2));
        options.pool_len_max = self.window_len.saturating_add(POOL_ROOM);
        options.size_limit = self.space_limit.max(self.file_len.saturating_mul(4));
        options.checkpoint_reserve_len = options.checkpoint_reserve_len.min(self.file_len);
        options.durability = journal_durability(self.durability);
        options
    }
}

pub(crate) const fn journal_durability(durability: QueueDurability) -> kolumn_journal::Durability {
    match durability {
        QueueDurability::Os => kolumn_journal::Durability::Os,
        QueueDurability::Sync => kolumn_journal::Durability::Sync,
    }
}

/// How much is taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Most {
    /// At most so many messages, and at least one.
    pub messages: usize,
    /// At most so many bytes of keys and values, if one message is not longer than that.
    pub bytes: usize,
}

impl Most {
    /// At most so many messages with so many bytes together.
    #[must_use]
    pub const fn new(messages: usize, bytes: usize) -> Self {
        Self { messages, bytes }
    }
}

/// Room for what the queue itself writes.
const ENTRY_LEN_MIN: usize = 4 << 10;
const GROUP_LEN_MAX: usize = 1 << 20;
const POOL_ROOM: usize = 8 << 20;
