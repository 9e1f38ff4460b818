//! Finding records by time.
//!
//! Timestamps need not rise with offsets. The running maximum does: a binary search on it finds the first batch that can
//! hold a record of the time or later, from there the batches' own maxima say which one does, and its records are walked.

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
                        let hit = self.first_in_batch(topic, partition, &found, found.max_timestamp)?;
                        best = hit.or(best);
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
            let is_live = offset <= batch.last_offset() && batch.max_timestamp() >= time;
            return Ok(is_live.then(|| hit(offset, batch.max_timestamp())));
        }
        self.inner.inflaters.with(|inflater| {
            let limit = self.inner.settings.inflated_len_max;
            let records = batch.records(inflater, limit).map_err(|error| damaged(error.to_string()))?;
            for record in records {
                let record = record.map_err(|error| damaged(error.to_string()))?;
                let offset = batch.base_offset().saturating_add(i64::from(record.offset_delta));
                let timestamp = batch.base_timestamp().saturating_add(record.timestamp_delta);
                if timestamp >= time && offset >= log_start {
                    return Ok(Some(hit(offset, timestamp)));
                }
            }
            Ok(None)
        })
    }
}
