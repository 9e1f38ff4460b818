//! The entry of a batch: its head, and what the state needs to know of the batch.

use bytes::BufMut;
use kolumn_kafka_wire::records::Batch;

use crate::ids::{PartitionIndex, ProducerId, Timestamp, TopicId};

use super::{APPENDED, CARRIED, VERSION};

/// What the state needs to know of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchMeta {
    pub(crate) topic: TopicId,
    pub(crate) partition: PartitionIndex,
    /// The store's clock when it was appended.
    pub(crate) appended: Timestamp,
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) producer: Option<ProducerRun>,
    pub(crate) len: usize,
}

/// The producer's side of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProducerRun {
    pub(crate) id: ProducerId,
    pub(crate) epoch: i16,
    pub(crate) first: i32,
    pub(crate) last: i32,
}

impl ProducerRun {
    /// The run of a batch of `count` records; `None` if the batch has no producer.
    pub(crate) fn of(batch: &Batch<'_>) -> Option<Self> {
        if batch.producer_id() < 0 {
            return None;
        }
        let first = batch.base_sequence();
        Some(Self {
            id: ProducerId::new(batch.producer_id()),
            epoch: batch.producer_epoch(),
            first,
            last: sequence_after(first, batch.last_offset_delta()),
        })
    }
}

/// The sequence `count` steps on: after 2^31-1 comes 0.
pub(crate) const fn sequence_after(sequence: i32, count: i32) -> i32 {
    match sequence.checked_add(count) {
        Some(next) => next,
        None => count.wrapping_sub(i32::MAX.wrapping_sub(sequence)).wrapping_sub(1),
    }
}

impl BatchMeta {
    /// Reads what the state needs from the bytes of a batch as it is stored.
    pub(crate) fn of(
        topic: TopicId,
        partition: PartitionIndex,
        appended: Timestamp,
        batch: &Batch<'_>,
    ) -> Self {
        Self {
            topic,
            partition,
            appended,
            base_offset: batch.base_offset(),
            last_offset: batch.last_offset(),
            max_timestamp: batch.max_timestamp(),
            leader_epoch: batch.partition_leader_epoch(),
            producer: ProducerRun::of(batch),
            len: batch.bytes().len(),
        }
    }
}

/// What stands before a batch in its entry.
///
/// ```text
/// | kind 1 | version 1 | zero 2 | topic 16 | partition 4 | appended 8 | batch ... |
/// ```
pub(crate) fn batch_head(
    carried: bool,
    topic: TopicId,
    partition: PartitionIndex,
    appended: Timestamp,
) -> [u8; BATCH_AT] {
    let mut head = [0_u8; BATCH_AT];
    {
        let mut out = head.as_mut_slice();
        out.put_slice(&[if carried { CARRIED } else { APPENDED }, VERSION, 0, 0]);
        out.put_slice(topic.value().as_bytes());
        out.put_i32(partition.value());
        out.put_i64(appended.value());
    }
    head
}

/// Where the batch begins in its entry.
pub(crate) const BATCH_AT: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_from_the_greatest_number_to_zero() {
        assert_eq!(sequence_after(0, 4), 4);
        assert_eq!(sequence_after(i32::MAX, 0), i32::MAX);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 2, 5), 2);
    }
}
