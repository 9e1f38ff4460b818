//! A client that reads from disk finds in memory what it asks for next.

use kolumn_topic_store::{PartitionIndex, ReadRequest, Store};

use super::collect::Collected;
use super::plan::Plan;

/// Begins to read what lies behind an answer whose batches came from disk, while they are sent and the client is busy with
/// them. How much is read at a time is bounded by the store.
pub(super) fn read_ahead(store: &Store, plan: &Plan, collected: &Collected) {
    if plan.partitions.len() > PARTITIONS_MAX {
        return;
    }
    for ((wanted, topic), found) in plan.partitions.iter().zip(&plan.topics).zip(&collected.partitions) {
        let comes_from_disk = found.slices.last().is_some_and(|slice| !slice.is_recent());
        let Ok(topic) = *topic else { continue };
        if !comes_from_disk || !found.is_cut {
            continue;
        }
        let request = ReadRequest {
            topic,
            partition: PartitionIndex::new(wanted.partition),
            offset: found.next_offset,
            max_len: wanted.max_len.saturating_mul(ANSWERS).min(LEN_MAX),
            at_least_one_batch: true,
        };
        if let Some(ahead) = store.read_ahead(request) {
            drop(tokio::task::spawn_blocking(move || ahead.run()));
        }
    }
}

/// Who reads more partitions at once has enough to be sent meanwhile.
const PARTITIONS_MAX: usize = 8;
/// What is read ahead of one partition: this many answers, and bytes at most.
const ANSWERS: usize = 2;
const LEN_MAX: usize = 2 << 20;
