//! Finding records by time.
//!
//! Timestamps need not rise with offsets. The running maximum does: a binary search on it finds the first batch that can
//! hold a record of the time or later, from there the batches' own maxima say which one does, and its records are walked.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use kolumn_journal::FilePin;
use kolumn_kafka_wire::records::{Batch, TimestampType};

use crate::error::{ReadError, ReadErrorKind};
use crate::ids::{LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicId};
use crate::read::TimeIndexHit;
use crate::state::index::Span;
use crate::state::partition::Partition;

use super::reader::{Found, again_if_gone};
use super::{Store, partition_of};

impl Store {
    /// The first record whose timestamp is at or after `time`. Blocks on the disk.
    ///
    /// # Errors
    /// If there is no such topic or partition, or the disk refuses.
    pub fn offset_for_time(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        time: Timestamp,
    ) -> Result<Option<TimeIndexHit>, ReadError> {
        again_if_gone(|| self.first_from(topic, partition, time))
    }

    /// The first of the records with the greatest timestamp. Blocks on the disk.
    ///
    /// # Errors
    /// If there is no such topic or partition, or the disk refuses.
    pub fn max_timestamp(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
    ) -> Result<Option<TimeIndexHit>, ReadError> {
        again_if_gone(|| self.first_of_greatest(topic, partition))
    }

    fn first_from(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        time: Timestamp,
    ) -> Result<Option<TimeIndexHit>, ReadError> {
        let end = self.offsets(topic, partition)?.high_watermark.value();
        let time = time.value();
        let mut from = None;
        loop {
            let start = |found: &Partition| match from {
                None => found.spans.partition_point(|span| span.running_max < time),
                Some(offset) => found.span_at(offset),
            };
            let wanted = |span: &Span| span.own_max >= time;
            let Some((span, pin)) = self.find_span(topic, partition, start, end, wanted)? else {
                return Ok(None);
            };
            from = Some(span.last.saturating_add(1));
            let hit = self.first_in_span(topic, partition, &span, pin, time)?;
            if hit.is_some() {
                return Ok(hit);
            }
        }
    }

    fn first_of_greatest(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
    ) -> Result<Option<TimeIndexHit>, ReadError> {
        let end = self.offsets(topic, partition)?.high_watermark.value();
        let mut best: Option<TimeIndexHit> = None;
        let mut below = None;
        // A span's maximum may be that of a batch that is gone from it: then the next smaller one may be the answer.
        while let Some(time) = self.greatest_below(topic, partition, end, below)? {
            if best.is_some_and(|best| best.timestamp.value() >= time) {
                break;
            }
            below = Some(time);
            let mut from = i64::MIN;
            let wanted = |span: &Span| span.own_max == time;
            while let Some((span, pin)) =
                self.find_span(topic, partition, |found| found.span_at(from), end, wanted)?
            {
                from = span.last.saturating_add(1);
                for found in self.batches_of(topic, partition, &span, pin)? {
                    if best.is_none_or(|best| found.max_timestamp > best.timestamp.value()) {
                        let hit = self.greatest_in_batch(topic, partition, &found)?;
                        // Of a batch that reaches below the log start, less than its maximum may be left.
                        let is_better = |hit: &TimeIndexHit| best.is_none_or(|best| rank(hit) > rank(&best));
                        best = hit.filter(is_better).or(best);
                    }
                }
            }
        }
        Ok(best)
    }

    /// The greatest maximum of a span below offset `end` that is less than `bound`.
    fn greatest_below(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        end: i64,
        bound: Option<i64>,
    ) -> Result<Option<i64>, ReadError> {
        let applied = self.inner.core.applied.read();
        let spans = partition_of(&applied, topic, partition)?.spans.iter();
        let maxima = spans.take_while(|span| span.base < end).map(|span| span.own_max);
        Ok(maxima.filter(|own_max| bound.is_none_or(|bound| *own_max < bound)).max())
    }

    fn first_in_span(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        span: &Span,
        pin: FilePin,
        time: i64,
    ) -> Result<Option<TimeIndexHit>, ReadError> {
        for found in self.batches_of(topic, partition, span, pin)? {
            if found.max_timestamp < time {
                continue;
            }
            let hit = self.first_in_batch(topic, partition, &found, time)?;
            if hit.is_some() {
                return Ok(hit);
            }
        }
        Ok(None)
    }

    /// The first live record of a batch with a timestamp of at least `time`.
    fn first_in_batch(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        found: &Found,
        time: i64,
    ) -> Result<Option<TimeIndexHit>, ReadError> {
        let mut first = None;
        self.live_records(topic, partition, found, |hit| {
            if hit.timestamp.value() < time {
                return ControlFlow::Continue(());
            }
            first = Some(hit);
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    /// The first of the live records of a batch with the greatest timestamp.
    fn greatest_in_batch(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        found: &Found,
    ) -> Result<Option<TimeIndexHit>, ReadError> {
        let mut best: Option<TimeIndexHit> = None;
        self.live_records(topic, partition, found, |hit| {
            if best.is_none_or(|best| hit.timestamp > best.timestamp) {
                best = Some(hit);
            }
            if hit.timestamp.value() < found.max_timestamp {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        Ok(best)
    }

    /// Walks the records of a batch from the log start on. Where the store gave the timestamps, one stands for all.
    fn live_records(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        found: &Found,
        mut each: impl FnMut(TimeIndexHit) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let damaged = |text: String| ReadError::new(ReadErrorKind::Io, text);
        let bytes = self.bytes_of(found)?;
        let (batch, _) = Batch::parse(&bytes).map_err(|error| damaged(error.to_string()))?;
        let log_start = self.offsets(topic, partition)?.log_start.value();
        let hit = |offset: i64, timestamp: i64| TimeIndexHit {
            offset: Offset::new(offset),
            timestamp: Timestamp::new(timestamp),
            leader_epoch: LeaderEpoch::new(batch.partition_leader_epoch()),
        };
        if batch.attributes().timestamp_type() == TimestampType::LogAppendTime {
            let offset = batch.base_offset().max(log_start);
            if offset <= batch.last_offset() {
                let _ = each(hit(offset, batch.max_timestamp()));
            }
            return Ok(());
        }
        self.inner.inflaters.with(|inflater| {
            let limit = self.inner.settings.inflated_len_max;
            let records = batch.records(inflater, limit).map_err(|error| damaged(error.to_string()))?;
            for record in records {
                let record = record.map_err(|error| damaged(error.to_string()))?;
                let offset = batch.base_offset().saturating_add(i64::from(record.offset_delta));
                let timestamp = batch.base_timestamp().saturating_add(record.timestamp_delta);
                if offset >= log_start && each(hit(offset, timestamp)).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// Later is better, and of the same time what comes first.
const fn rank(hit: &TimeIndexHit) -> (i64, Reverse<i64>) {
    (hit.timestamp.value(), Reverse(hit.offset.value()))
}
