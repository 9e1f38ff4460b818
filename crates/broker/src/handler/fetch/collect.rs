//! Chooses the batches of an answer, under the limits of the request and of its partitions.

use std::time::Duration;

use kolumn_kafka_wire::ErrorCode;
use kolumn_topic_store::{
    Offset, PartitionIndex, PartitionOffsets, Read, ReadError, ReadOutcome, ReadRequest, Slice, Store,
    TopicId,
};
use tokio::time::Instant;

use super::plan::Plan;
use crate::bridge::errors;
use crate::fetch_session::{Bounds, Found, Wanted};
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
    /// The offset behind them.
    pub(super) next_offset: Offset,
    pub(super) len: usize,
    /// More is there than the limits allowed.
    pub(super) is_cut: bool,
}

/// Collects the answer to a plan. `None` if that would touch the disk and `may_block` does not allow it.
///
/// Where batches have to be looked for on the disk, it is asked for a while; partitions that had no turn are left for the
/// next request, if this one has anything.
///
/// The first partition that has records gives at least one batch, even beyond the limits, so that no record is too
/// large to be read. All others obey both limits. Partitions keep the order of the plan.
pub(super) fn collect(store: &Store, plan: &Plan, may_block: bool) -> Option<Collected> {
    let partitions = Vec::with_capacity(plan.partitions.len());
    let mut collected = Collected { partitions, len: 0, settled_len: 0, has_error: false };
    let mut slices = 0;
    let patience = Instant::now() + PATIENCE;
    let source = Source { store, by_id: plan.terms.by_id, may_block, patience };
    for (wanted, topic) in plan.partitions.iter().zip(&plan.topics) {
        let left = if slices < SLICES_MAX { plan.terms.max_len.saturating_sub(collected.len) } else { 0 };
        let found = match *topic {
            Err(code) => FoundPartition::error(code),
            Ok(id) => source.read(id, wanted, left, collected.len == 0)?,
        };
        slices += found.slices.len();
        collected.len += found.len;
        let limit = if found.is_cut { wanted.max_len.min(left) } else { 0 };
        collected.settled_len = collected.settled_len.saturating_add(found.len.max(limit));
        collected.has_error |= found.error_code.is_error();
        collected.partitions.push(found);
    }
    Some(collected)
}

impl FoundPartition {
    fn error(error_code: ErrorCode) -> Self {
        Self {
            error_code,
            offsets: None,
            slices: Vec::new(),
            next_offset: Offset::new(0),
            len: 0,
            is_cut: false,
        }
    }

    /// It has records, which the next request gets.
    fn left_for_later(offsets: PartitionOffsets) -> Self {
        Self { offsets: Some(offsets), is_cut: true, ..Self::error(ErrorCode::NONE) }
    }

    /// What a session has to know of it.
    pub(super) fn outcome(&self) -> Found {
        let bounds = self.offsets.map(|offsets| Bounds {
            high_watermark: offsets.high_watermark.value(),
            last_stable: offsets.last_stable.value(),
            log_start: offsets.log_start.value(),
        });
        Found { bounds, has_records: self.len > 0 }
    }
}

struct Source<'s> {
    store: &'s Store,
    by_id: bool,
    may_block: bool,
    /// Until when the disk is asked for more than something.
    patience: Instant,
}

impl Source<'_> {
    /// `None`: only the disk knows.
    fn read(&self, topic: TopicId, wanted: &Wanted, left: usize, first: bool) -> Option<FoundPartition> {
        let index = PartitionIndex::new(wanted.partition);
        let offsets = match self.store.offsets(topic, index) {
            Ok(offsets) => offsets,
            Err(error) => return Some(self.failed(&error)),
        };
        if let Err(code) = check_epoch(wanted.current_leader_epoch, &offsets) {
            return Some(FoundPartition::error(code));
        }
        let request = ReadRequest {
            topic,
            partition: index,
            offset: Offset::new(wanted.offset),
            max_len: wanted.max_len.min(left),
            at_least_one_batch: first,
        };
        let read = match self.store.try_read(request) {
            Ok(ReadOutcome::Ready(read)) => Ok(read),
            Ok(ReadOutcome::NeedsDisk) if !self.may_block => return None,
            Ok(ReadOutcome::NeedsDisk) if first || Instant::now() < self.patience => self.store.read(request),
            Ok(ReadOutcome::NeedsDisk) => return Some(FoundPartition::left_for_later(offsets)),
            Err(error) => Err(error),
        };
        Some(read.map_or_else(
            |error| self.failed(&error),
            |Read { offsets, next_offset, len, slices, .. }| FoundPartition {
                error_code: ErrorCode::NONE,
                offsets: Some(offsets),
                slices,
                next_offset,
                len,
                is_cut: next_offset < offsets.high_watermark,
            },
        ))
    }

    fn failed(&self, error: &ReadError) -> FoundPartition {
        let unknown =
            if self.by_id { ErrorCode::UNKNOWN_TOPIC_ID } else { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
        FoundPartition::error(errors::read_code(error.kind(), unknown))
    }
}

/// How long a request looks on the disk for more than something.
const PATIENCE: Duration = Duration::from_millis(200);
/// Batches in one answer: beyond it small ones would make much out of little.
const SLICES_MAX: usize = 4096;
