//! Chooses the batches of an answer, under the limits of the request and of its partitions.

use kolumn_kafka_wire::ErrorCode;
use kolumn_topic_store::{
    Offset, PartitionIndex, PartitionOffsets, Read, ReadError, ReadOutcome, ReadRequest, Slice, Store,
    TopicId,
};

use super::{PartitionPlan, Plan};
use crate::bridge::errors;
use crate::handler::list_offsets::check_epoch;

/// What was found, a partition of the plan after the other.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) partitions: Vec<FoundPartition>,
    /// Bytes of records.
    pub(super) len: usize,
    /// Bytes of records that waiting cannot add to: where a limit cut a partition off, its limit counts.
    pub(super) settled_len: usize,
    pub(super) has_error: bool,
}

/// What one partition gives.
#[derive(Debug)]
pub(super) struct FoundPartition {
    pub(super) error_code: ErrorCode,
    pub(super) offsets: Option<PartitionOffsets>,
    pub(super) slices: Vec<Slice>,
    pub(super) len: usize,
    /// More is there than the limits allowed.
    pub(super) is_cut: bool,
}

/// Collects the answer to a plan. `None` if that would touch the disk and `may_block` does not allow it.
///
/// The first partition that has records gives at least one batch, even beyond the limits, so that no record is too
/// large to be read. All others obey both limits. Partitions keep the order in which the client named them.
pub(super) fn collect(store: &Store, plan: &Plan, may_block: bool) -> Option<Collected> {
    let count = plan.topics.iter().map(|topic| topic.partitions.len()).sum();
    let partitions = Vec::with_capacity(count);
    let mut collected = Collected { partitions, len: 0, settled_len: 0, has_error: false };
    let mut slices = 0;
    for topic in &plan.topics {
        for partition in &topic.partitions {
            let left = if slices < SLICES_MAX { plan.max_len.saturating_sub(collected.len) } else { 0 };
            let found = match topic.topic {
                Err(code) => FoundPartition::error(code),
                Ok(id) => {
                    let source = Source { store, plan, may_block };
                    source.read(id, partition, left, collected.len == 0)?
                }
            };
            slices += found.slices.len();
            collected.len += found.len;
            let limit = if found.is_cut { partition.max_len.min(left) } else { 0 };
            collected.settled_len = collected.settled_len.saturating_add(found.len.max(limit));
            collected.has_error |= found.error_code.is_error();
            collected.partitions.push(found);
        }
    }
    Some(collected)
}

impl FoundPartition {
    fn error(error_code: ErrorCode) -> Self {
        Self { error_code, offsets: None, slices: Vec::new(), len: 0, is_cut: false }
    }
}

struct Source<'s> {
    store: &'s Store,
    plan: &'s Plan,
    may_block: bool,
}

impl Source<'_> {
    /// `None`: only the disk knows.
    fn read(
        &self,
        topic: TopicId,
        partition: &PartitionPlan,
        left: usize,
        first: bool,
    ) -> Option<FoundPartition> {
        let index = PartitionIndex::new(partition.index);
        let offsets = match self.store.offsets(topic, index) {
            Ok(offsets) => offsets,
            Err(error) => return Some(self.failed(&error)),
        };
        if let Err(code) = check_epoch(partition.current_leader_epoch, &offsets) {
            return Some(FoundPartition::error(code));
        }
        let request = ReadRequest {
            topic,
            partition: index,
            offset: Offset::new(partition.offset),
            max_len: partition.max_len.min(left),
            at_least_one_batch: first,
        };
        let read = match self.store.try_read(request) {
            Ok(ReadOutcome::Ready(read)) => Ok(read),
            Ok(ReadOutcome::NeedsDisk) if self.may_block => self.store.read(request),
            Ok(ReadOutcome::NeedsDisk) => return None,
            Err(error) => Err(error),
        };
        Some(read.map_or_else(
            |error| self.failed(&error),
            |Read { offsets, next_offset, len, slices, .. }| FoundPartition {
                error_code: ErrorCode::NONE,
                offsets: Some(offsets),
                slices,
                len,
                is_cut: next_offset < offsets.high_watermark,
            },
        ))
    }

    fn failed(&self, error: &ReadError) -> FoundPartition {
        let unknown =
            if self.plan.by_id { ErrorCode::UNKNOWN_TOPIC_ID } else { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
        FoundPartition::error(errors::read_code(error.kind(), unknown))
    }
}

/// Batches in one answer: beyond it small ones would make much out of little.
const SLICES_MAX: usize = 4096;
