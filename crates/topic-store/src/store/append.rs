//! Appending a batch: judged completely, then given its offsets, then written.

use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::Class;
use kolumn_kafka_wire::records::{
    Batch, BatchErrorKind, HEADER_LEN, RecordLimits, Summary, TimestampType, ValidateErrorKind, iter_records,
    patch, validate,
};

use crate::commit::Commit;
use crate::config::{TimestampKind, TopicConfig};
use crate::entry::{BATCH_AT, BatchMeta, Entry, ProducerRun, batch_head};
use crate::error::{AppendError, AppendErrorKind as Kind};
use crate::ids::{Offset, PartitionIndex, Timestamp, TopicId};
use crate::state::producers::{Verdict, judge};
use crate::topic::Topic;

use super::{Prepared, Store};

/// What a batch got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Appended {
    /// The offset of its first record.
    pub base_offset: Offset,
    /// The time that the store gave it, if the topic's timestamps are the store's.
    pub log_append_time: Option<Timestamp>,
    /// The partition's first offset.
    pub log_start_offset: Offset,
}

impl Store {
    /// Appends exactly one batch of format 2 as a producer sent it.
    ///
    /// The order of calls for a partition is the order of its offsets. Everything that can be refused is refused here;
    /// the [`Commit`] then fails only with the log. A batch that a producer sends again is answered with the offset that
    /// it got at first, once that is durable.
    ///
    /// # Errors
    /// See [`AppendErrorKind`](crate::AppendErrorKind). Nothing was assigned then.
    ///
    /// # Blocking
    /// Never on the disk, but for as long as it takes to walk the records: a batch of a kilobyte may inflate to
    /// [`inflated_len_max`](crate::Settings::inflated_len_max). See [`Store::append_bounded`].
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the caller hands its handle on the bytes over to the log"
    )]
    pub fn append(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        batch: Bytes,
        now: Timestamp,
    ) -> Result<Commit<Appended>, AppendError> {
        let target = self.target(topic, partition)?;
        let parsed = target.parse(&batch)?;
        let summary = self.walk(&parsed, self.inner.settings.inflated_len_max)?;
        self.append_walked(&target, &batch, &parsed, &summary, now)
    }

    /// Like [`Store::append`], but walks at most `walk_len` bytes of records, counted as they are when inflated, and takes
    /// what it walked off it; after a batch whose records are refused nothing of it is left.
    ///
    /// `None` if the batch has more: nothing was assigned, and the caller appends it with [`Store::append`] where it may
    /// take its time, before whatever has to come after it.
    ///
    /// # Errors
    /// As [`Store::append`].
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the caller hands its handle on the bytes over to the log"
    )]
    pub fn append_bounded(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        batch: Bytes,
        now: Timestamp,
        walk_len: &mut usize,
    ) -> Result<Option<Commit<Appended>>, AppendError> {
        let target = self.target(topic, partition)?;
        let parsed = target.parse(&batch)?;
        // What inflates to less than it has is nothing that a producer would have compressed.
        if parsed.payload().len() > *walk_len {
            return Ok(None);
        }
        let inflated_len_max = self.inner.settings.inflated_len_max;
        let bound = std::mem::take(walk_len);
        let summary = match self.walk(&parsed, bound.min(inflated_len_max)) {
            Err(error) if bound < inflated_len_max && matches!(error.kind(), Kind::TooLarge { .. }) => {
                return Ok(None);
            }
            walked => walked?,
        };
        *walk_len = bound.saturating_sub(summary.uncompressed_len);
        self.append_walked(&target, &batch, &parsed, &summary, now).map(Some)
    }

    /// Assigns what a batch whose records are well formed gets, and writes it.
    fn append_walked(
        &self,
        target: &Target,
        batch: &Bytes,
        parsed: &Batch<'_>,
        summary: &Summary,
        now: Timestamp,
    ) -> Result<Commit<Appended>, AppendError> {
        let Target { topic, partition, log_start_offset, .. } = *target;
        let config = &target.found.config;
        if summary.null_key_index.is_some() && config.compacts() {
            return Err(self.refuse_null_keys(parsed));
        }
        let (mut header, max_timestamp) = judge_records(parsed, summary, config, now)?;
        let run = ProducerRun::of(parsed);
        let log_append_time =
            |appended| (config.timestamp_kind() == TimestampKind::LogAppendTime).then_some(appended);

        let mut prepared = self.inner.prepared.lock();
        let base_offset = match position_in(&prepared, topic, partition, run.as_ref())? {
            Next::At(offset) => offset,
            Next::Known { base_offset, appended } => {
                let is_durable = self.is_durable(topic, partition, base_offset);
                let base_offset = Offset::new(base_offset);
                let log_append_time = log_append_time(appended);
                let answer = Appended { base_offset, log_append_time, log_start_offset };
                return Ok(self.inner.commit(&prepared, is_durable, answer));
            }
        };
        if base_offset.checked_add(i64::from(parsed.record_count())).is_none() {
            return Err(AppendError::new(Kind::InvalidRecord, "the partition's offsets are used up"));
        }
        let refused = |refusal| AppendError::refused(&refusal, batch.len(), target.len_max);
        let admission = self.inner.admit(BATCH_AT + batch.len(), Class::Data).map_err(refused)?;
        let leader_epoch = self.inner.epoch.value();
        let assigned = patch::set_base_offset(&mut header, base_offset)
            .and_then(|()| patch::set_partition_leader_epoch(&mut header, leader_epoch));
        debug_assert_eq!(assigned, Ok(()), "a header has room for its fields");
        let mut head = [0_u8; BATCH_AT + HEADER_LEN];
        let (entry_head, batch_header) = head.split_at_mut(BATCH_AT);
        entry_head.copy_from_slice(&batch_head(false, topic, partition, now));
        batch_header.copy_from_slice(&header);
        let sequence = self
            .inner
            .journal
            .append(admission, &head, batch.slice(HEADER_LEN..))
            .map_err(|error| AppendError::new(Kind::ReadOnly, error))?;
        let meta = BatchMeta {
            topic,
            partition,
            appended: now,
            base_offset,
            last_offset: base_offset.saturating_add(i64::from(parsed.last_offset_delta())),
            max_timestamp,
            leader_epoch,
            producer: run,
            len: batch.len(),
        };
        prepared.state.apply(&Entry::Appended(meta), None);
        prepared.last_sequence = Some(sequence);
        drop(prepared);
        let base_offset = Offset::new(base_offset);
        let answer = Appended { base_offset, log_append_time: log_append_time(now), log_start_offset };
        Ok(self.inner.core.waiting.commit(sequence, answer))
    }

    /// Names the records that a compacted topic refuses: producers tell their owners which ones, and that the others are
    /// well.
    fn refuse_null_keys(&self, batch: &Batch<'_>) -> AppendError {
        let refused =
            AppendError::new(Kind::InvalidRecord, "a compacted topic takes no record without a key");
        self.inner.inflaters.with(|inflater| {
            // It has been inflated and walked before, so that neither can fail now.
            let payload =
                batch.decompress(inflater, self.inner.settings.inflated_len_max).unwrap_or_default();
            (0..)
                .zip(iter_records(payload, batch.record_count()))
                .filter(|(_, record)| record.as_ref().is_ok_and(|record| record.key.is_none()))
                .take(RECORD_ERRORS_MAX)
                .fold(refused, |refused, (index, _)| refused.at_record(index))
        })
    }

    /// The topic and the partition's start, if both exist.
    fn target(&self, topic: TopicId, partition: PartitionIndex) -> Result<Target, AppendError> {
        let applied = self.inner.core.applied.read();
        let found = applied.topic(topic).ok_or_else(unknown_topic)?;
        let log_start = found.partition(partition).ok_or_else(unknown_partition)?.log_start;
        let found = Arc::clone(&found.topic);
        let len_max = found.config.max_message_bytes().min(self.inner.settings.batch_len_max);
        Ok(Target { topic, partition, found, log_start_offset: Offset::new(log_start), len_max })
    }

    fn is_durable(&self, topic: TopicId, partition: PartitionIndex, offset: i64) -> bool {
        let applied = self.inner.core.applied.read();
        applied.partition(topic, partition).is_some_and(|found| offset < found.next)
    }

    /// Walks every record.
    fn walk(&self, batch: &Batch<'_>, inflated_len_max: usize) -> Result<Summary, AppendError> {
        let limits = RecordLimits::default().with_inflated_len_max(inflated_len_max);
        self.inner.inflaters.with(|inflater| validate(batch, inflater, &limits)).map_err(|error| {
            let kind = match error.kind() {
                ValidateErrorKind::Corrupt => Kind::Corrupt,
                ValidateErrorKind::UnsupportedCompression => Kind::UnsupportedCompression,
                ValidateErrorKind::TooLarge => {
                    Kind::TooLarge { len: batch.bytes().len(), max: inflated_len_max }
                }
                _ => Kind::InvalidRecord,
            };
            let refused = AppendError::new(kind, error);
            match error.record_index() {
                Some(index) => refused.at_record(index),
                None => refused,
            }
        })
    }
}

/// Where a batch shall go.
struct Target {
    topic: TopicId,
    partition: PartitionIndex,
    found: Arc<Topic>,
    log_start_offset: Offset,
    /// The longest batch that it takes.
    len_max: usize,
}

impl Target {
    /// The one batch that these bytes are, if the topic takes one of this length.
    fn parse<'b>(&self, batch: &'b [u8]) -> Result<Batch<'b>, AppendError> {
        let (len, max) = (batch.len(), self.len_max);
        if len > max {
            let text = format!("the batch has {len} bytes, the topic allows {max}");
            return Err(AppendError::new(Kind::TooLarge { len, max }, text));
        }
        parse_single(batch)
    }
}

/// Holds the records against the topic's settings, and gives the header under which the batch is stored with its greatest
/// timestamp.
fn judge_records(
    batch: &Batch<'_>,
    summary: &Summary,
    config: &TopicConfig,
    now: Timestamp,
) -> Result<([u8; HEADER_LEN], i64), AppendError> {
    if batch.attributes().is_transactional() {
        return Err(AppendError::new(Kind::InvalidRecord, "transactions are not supported"));
    }
    match config.timestamp_kind() {
        TimestampKind::LogAppendTime => Ok((patch::log_append_time_header(batch, now.value()), now.value())),
        TimestampKind::CreateTime => {
            judge_times(summary, config, now)?;
            let header = if summary.header_max_timestamp_is_right {
                *batch.header()
            } else {
                patch::max_timestamp_header(batch, summary.max_timestamp)
            };
            Ok((header, summary.max_timestamp))
        }
    }
}

/// Where a batch belongs.
enum Next {
    At(i64),
    Known { base_offset: i64, appended: Timestamp },
}

fn position_in(
    prepared: &Prepared,
    topic: TopicId,
    partition: PartitionIndex,
    run: Option<&ProducerRun>,
) -> Result<Next, AppendError> {
    // Read again: it may have been deleted since.
    let found = prepared.state.topic(topic).ok_or_else(unknown_topic)?;
    let found = found.partition(partition).ok_or_else(unknown_partition)?;
    let Some(run) = run else { return Ok(Next::At(found.next)) };
    match judge(found.producers.get(&run.id), run) {
        Verdict::Next => Ok(Next::At(found.next)),
        Verdict::Duplicate(known) => {
            Ok(Next::Known { base_offset: known.base_offset, appended: known.appended })
        }
        Verdict::OutOfOrder { expected } => {
            let text = format!("producer {} continues with sequence {expected}, not {}", run.id, run.first);
            Err(AppendError::new(Kind::OutOfOrderSequence, text))
        }
        Verdict::Fenced { current } => {
            let text = format!("producer {} has epoch {current}, not {}", run.id, run.epoch);
            Err(AppendError::new(Kind::InvalidProducerEpoch, text))
        }
    }
}

fn parse_single(bytes: &[u8]) -> Result<Batch<'_>, AppendError> {
    let (batch, rest) = Batch::parse(bytes).map_err(|error| {
        let kind = match error.kind() {
            BatchErrorKind::UnsupportedMagic(magic) => Kind::UnsupportedFormat(magic),
            _ => Kind::Corrupt,
        };
        AppendError::new(kind, error)
    })?;
    if !rest.is_empty() {
        return Err(AppendError::new(Kind::InvalidRecord, "there has to be exactly one batch"));
    }
    Ok(batch)
}

fn judge_times(summary: &Summary, config: &TopicConfig, now: Timestamp) -> Result<(), AppendError> {
    let refuse = |text: String| AppendError::new(Kind::InvalidTimestamp, text);
    if summary.timestamp_type == TimestampType::LogAppendTime {
        return Err(refuse("a producer cannot write log append times".into()));
    }
    let (now, oldest, newest) = (now.value(), summary.min_timestamp, summary.max_timestamp);
    if newest.saturating_sub(now) > config.after_max_ms() {
        let text = format!("timestamp {newest} is more than {} ms ahead of {now}", config.after_max_ms());
        return Err(refuse(text).at_record(summary.max_timestamp_offset_delta));
    }
    if oldest != NO_TIMESTAMP && now.saturating_sub(oldest) > config.before_max_ms() {
        return Err(refuse(format!(
            "timestamp {oldest} is more than {} ms behind {now}",
            config.before_max_ms()
        )));
    }
    Ok(())
}

fn unknown_topic() -> AppendError {
    AppendError::new(Kind::UnknownTopic, "there is no such topic")
}

fn unknown_partition() -> AppendError {
    AppendError::new(Kind::UnknownPartition, "the topic has no such partition")
}

const NO_TIMESTAMP: i64 = -1;
/// Records that one refusal names: small ones must not make much out of little.
const RECORD_ERRORS_MAX: usize = 1000;
