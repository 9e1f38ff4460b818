//! What consumer groups leave behind: the offsets that they have committed.

use std::sync::Arc;

use crate::ids::{LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicId};

/// How far a group has come in a partition, as it was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers build it field by field")]
pub struct CommittedOffset {
    /// The record that the group wants next. The store does not interpret it: it may lie outside of the partition.
    pub offset: Offset,
    /// The epoch of the last record that was consumed, if the consumer told.
    pub leader_epoch: Option<LeaderEpoch>,
    /// Whatever the consumer wants back with the offset.
    pub metadata: Arc<str>,
    /// When it was committed, by the caller's clock. Who expires offsets counts from here: give the present time.
    pub committed: Timestamp,
}

/// A committed offset and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers build it field by field")]
pub struct OffsetCommit {
    /// The topic.
    pub topic: TopicId,
    /// The partition.
    pub partition: PartitionIndex,
    /// What was committed.
    pub committed: CommittedOffset,
}
