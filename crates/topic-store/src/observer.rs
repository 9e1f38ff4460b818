//! What a store tells about its own decisions, as typed events.

use std::fmt;
use std::time::Duration;

use crate::ids::{Offset, PartitionIndex, TopicId};

/// Receives the store's events. Adapters turn them into log lines and metrics.
///
/// # Contract
/// Called on whatever thread the decision was made, partly the journal's writer: an implementation returns quickly, does
/// not call back into the store and does not panic.
pub trait Observer: Send + Sync + fmt::Debug {
    /// Something happened. The default does nothing.
    fn event(&self, event: &Event<'_>) {
        let _ = event;
    }
}

/// An observer that listens to nothing.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Silent;

impl Silent {
    /// An observer that listens to nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Observer for Silent {}

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The log was opened; counts of what it holds.
    #[non_exhaustive]
    Opened {
        /// The owner epoch of this opening.
        epoch: u32,
        /// Topics found.
        topics: usize,
        /// Entries replayed after the checkpoint.
        replayed: u64,
        /// Bytes of a torn tail that were cut and kept aside.
        torn_len: u64,
    },
    /// Retention moved a partition's log start.
    #[non_exhaustive]
    Retained {
        /// The topic.
        topic: TopicId,
        /// The partition.
        partition: PartitionIndex,
        /// Its new first offset.
        log_start: Offset,
    },
    /// A partition's log start was moved because somebody asked for it.
    #[non_exhaustive]
    RecordsDeleted {
        /// The topic.
        topic: TopicId,
        /// The partition.
        partition: PartitionIndex,
        /// Its new first offset.
        log_start: Offset,
    },
    /// Windows of silent producers were dropped.
    #[non_exhaustive]
    ProducersExpired {
        /// The topic.
        topic: TopicId,
        /// The partition.
        partition: PartitionIndex,
        /// How many.
        count: usize,
    },
    /// Live batches of an old file were written again at the head, so that the file can be freed.
    #[non_exhaustive]
    Carried {
        /// The file's first position.
        file: u64,
        /// How many batches.
        batches: usize,
        /// Their bytes.
        len: u64,
    },
    /// A journal file without live batches was given back.
    #[non_exhaustive]
    Freed {
        /// The file's first position.
        file: u64,
    },
    /// A checkpoint is durable.
    #[non_exhaustive]
    Checkpoint {
        /// What it covers.
        position: u64,
        /// Its length.
        len: usize,
    },
    /// The use of space crossed one of its marks.
    Pressure(Pressure),
    /// The disk refuses the log another file, for another reason than a lack of space. It is tried again; when the files
    /// there are have been filled, appends are refused as if the log were full.
    #[non_exhaustive]
    GrowthFailed {
        /// What the disk said.
        cause: &'a str,
    },
    /// The log has failed and only answers reads from now on.
    #[non_exhaustive]
    Failed {
        /// What the disk said.
        cause: &'a str,
    },
}

/// How far the log's space is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pressure {
    /// The mark that was passed last.
    pub level: PressureLevel,
    /// Bytes that the journal occupies.
    pub used: u64,
    /// Bytes that it may occupy.
    pub limit: u64,
    /// How long an answer to a producer should be held back.
    pub throttle: Duration,
}

/// The marks of [`Pressure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "the marks are part of the design")]
pub enum PressureLevel {
    /// Below half.
    Normal,
    /// From half on: worth a warning.
    Half,
    /// From three quarters on: producers are slowed.
    Throttled,
    /// Nothing can be appended until something is deleted.
    Full,
}
