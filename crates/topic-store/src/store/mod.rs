//! The store: what its parts share, and the calls that are answered from memory.

mod append;
mod delete_records;
mod groups;
mod maintain;
mod open;
mod reader;
mod time;
mod topic_changes;
mod topics;

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kolumn_journal::{AdmitErrorKind, Class, Journal, Space};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::commit::Commit;
use crate::core::Core;
use crate::entry::Entry;
use crate::error::{AppendError, AppendErrorKind, ReadError, ReadErrorKind, TopicError, TopicErrorKind};
use crate::ids::{LeaderEpoch, Offset, PartitionIndex, ProducerId, TopicId};
use crate::inflaters::Inflaters;
use crate::observer::{Pressure, PressureLevel};
use crate::read::PartitionOffsets;
use crate::settings::Settings;
use crate::snapshot::Source;
use crate::state::State;
use crate::state::partition::Partition;
use crate::watch::Watch;

pub use append::Appended;
use maintain::Upkeep;
pub(crate) use reader::again_if_gone;

/// A log of topics in one directory, open. Cheap to clone; all clones are the same store.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) core: Arc<Core>,
    pub(crate) journal: Journal,
    prepared: Mutex<Prepared>,
    upkeep: Mutex<Upkeep>,
    inflaters: Arc<Inflaters>,
    /// What snapshots take with them.
    pub(crate) source: Arc<Source>,
    settings: Settings,
    epoch: LeaderEpoch,
    /// Used and limit, as last looked at.
    space: Mutex<(u64, u64)>,
    /// Whether a thread writes; else somebody steps.
    has_writer: bool,
}

/// What the next entry is prepared against: the state with everything that is on its way to the disk.
#[derive(Debug)]
struct Prepared {
    state: State,
    /// The newest entry's sequence; whoever depends on something prepared waits for it.
    last_sequence: Option<u64>,
    ids: IdSource,
    /// Producer ids up to `state.next_producer_id` may be given out from here.
    next_producer_id: i64,
}

/// How much a store holds at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Topics in all views.
    pub topics: usize,
    /// What the groups of all views take, as [`Settings::groups_len_max`] counts it.
    pub groups_len: usize,
    /// Bytes of memory that the tail takes.
    pub tail_len: usize,
    /// Bytes of memory that rows take which scans have decoded, as [`Settings::decoded_len_max`] counts it.
    pub decoded_len: usize,
    /// Entries of the readers' index, one for a batch or, where it has been thinned, for several.
    pub index_entries: usize,
    /// Partitions that somebody watches, counted once for each watch.
    pub watched: usize,
}

impl Store {
    /// A partition's offsets.
    ///
    /// # Errors
    /// If there is no such topic or partition.
    pub fn offsets(&self, topic: TopicId, partition: PartitionIndex) -> Result<PartitionOffsets, ReadError> {
        let applied = self.inner.core.applied.read();
        Ok(self.offsets_of(partition_of(&applied, topic, partition)?))
    }

    /// The epoch under which the record at `offset` was appended; for offsets without a record the present one.
    ///
    /// # Errors
    /// If there is no such topic or partition.
    pub fn epoch_of(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        offset: Offset,
    ) -> Result<LeaderEpoch, ReadError> {
        let applied = self.inner.core.applied.read();
        let found = partition_of(&applied, topic, partition)?;
        let known = (offset.value() < found.next).then(|| found.epoch_of(offset.value())).flatten();
        Ok(known.map_or(self.inner.epoch, LeaderEpoch::new))
    }

    /// The greatest epoch up to `epoch` that has records, and the offset after its last one. The present epoch ends at
    /// the high watermark, whether it has records or not.
    ///
    /// # Errors
    /// If there is no such topic or partition.
    pub fn epoch_end(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        epoch: LeaderEpoch,
    ) -> Result<Option<(LeaderEpoch, Offset)>, ReadError> {
        let applied = self.inner.core.applied.read();
        let found = partition_of(&applied, topic, partition)?;
        if epoch == self.inner.epoch {
            return Ok(Some((epoch, Offset::new(found.next))));
        }
        if epoch > self.inner.epoch {
            return Ok(None);
        }
        Ok(found.epoch_end(epoch.value()).map(|(known, end)| (LeaderEpoch::new(known), Offset::new(end))))
    }

    /// Bytes of a partition's live batches; `None` if there is no such partition. Batches that reach below the log start
    /// count whole.
    #[must_use]
    pub fn partition_len(&self, topic: TopicId, partition: PartitionIndex) -> Option<u64> {
        self.inner.core.applied.read().partition(topic, partition).map(|found| found.len)
    }

    /// Gives out an identity for an idempotent producer, with its first epoch, 0. No two calls get the same one, also
    /// after a restart.
    ///
    /// # Errors
    /// If the log is full, busy or has failed.
    pub fn init_producer_id(&self) -> Result<Commit<(ProducerId, i16)>, TopicError> {
        let mut prepared = self.inner.prepared.lock();
        let id = prepared.next_producer_id;
        if id >= prepared.state.next_producer_id {
            let next = id.saturating_add(PRODUCER_ID_BLOCK);
            self.inner.write(&mut prepared, &Entry::ProducerIds { next }, Class::Data)?;
        }
        prepared.next_producer_id = id.saturating_add(1);
        let given = (ProducerId::new(id), 0);
        let is_durable = self.inner.core.applied.read().next_producer_id > id;
        Ok(self.inner.commit(&prepared, is_durable, given))
    }

    /// Registers for news of these partitions: a higher high watermark, or the end of a topic. Only the waiters of a
    /// partition are woken by it. Register first, read then, and wait only if there was too little: nothing is missed.
    pub fn watch(&self, partitions: &[(TopicId, PartitionIndex)]) -> Watch {
        self.inner.core.waiters.watch(partitions)
    }

    /// Resolves after space was made (or the log has failed), counted from this call on; for those whose append was
    /// answered `Full` or `Busy`.
    pub fn space_changed(&self) -> impl Future<Output = ()> + Send + 'static {
        Arc::clone(&self.inner.core.space_news).notified_owned()
    }

    /// How far the log's space was used at the last round of maintenance, and how long producers should be held back for
    /// it. A refused append shows at once. Cheap.
    #[must_use]
    pub fn pressure(&self) -> Pressure {
        let (used, limit) = *self.inner.space.lock();
        pressure_of(used, limit, self.inner.core.is_full.load(Ordering::Acquire))
    }

    /// Whether the log has failed: reads go on, nothing is written any more.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.inner.core.waiting.failure().is_some()
    }

    /// The epoch under which this opening appends.
    #[must_use]
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.inner.epoch
    }

    /// How much the store holds at the moment.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let core = &self.inner.core;
        let (topics, groups_len, index_entries) = {
            let applied = core.applied.read();
            let index_entries = applied.thinning.as_ref().map_or(0, |thinning| thinning.spans);
            (applied.topics.len(), applied.groups_cost(), index_entries)
        };
        let (tail_len, watched) = (core.tail.read().len(), core.waiters.len());
        let decoded_len = self.inner.source.decoded.len();
        Stats { topics, groups_len, tail_len, decoded_len, index_entries, watched }
    }

    /// The settings that the store was opened with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    fn offsets_of(&self, partition: &Partition) -> PartitionOffsets {
        PartitionOffsets {
            log_start: Offset::new(partition.log_start),
            high_watermark: Offset::new(partition.next),
            last_stable: Offset::new(partition.next),
            leader_epoch: self.inner.epoch,
        }
    }
}

impl Inner {
    /// Writes an entry that is not a batch, and prepares it.
    fn write(&self, prepared: &mut Prepared, entry: &Entry, class: Class) -> Result<u64, Refusal> {
        let bytes = entry.encode();
        let admission = self.admit(bytes.len(), class)?;
        let sequence = self.journal.append(admission, &[], bytes.into()).map_err(|_| Refusal::ReadOnly)?;
        prepared.state.apply(entry, None);
        prepared.last_sequence = Some(sequence);
        Ok(sequence)
    }

    fn admit(&self, len: usize, class: Class) -> Result<kolumn_journal::Admission, Refusal> {
        if self.core.waiting.failure().is_some() {
            return Err(Refusal::ReadOnly);
        }
        self.journal.admit(len, class).map_err(|error| match error.kind() {
            AdmitErrorKind::Full => {
                self.core.is_full.store(true, Ordering::Release);
                Refusal::Full { growth_error: self.journal.growth_error() }
            }
            AdmitErrorKind::Busy => Refusal::Busy,
            AdmitErrorKind::TooLarge => Refusal::TooLarge,
            _ => Refusal::ReadOnly,
        })
    }

    /// Looks at the log's space anew.
    fn refresh_space(&self) -> Space {
        let space = self.journal.space();
        *self.space.lock() = (space.used, space.limit);
        space
    }

    /// A commit of something that is durable already, or will be with the newest entry at the latest.
    fn commit<T>(&self, prepared: &Prepared, is_durable: bool, value: T) -> Commit<T> {
        match prepared.last_sequence {
            Some(sequence) if !is_durable => self.core.waiting.commit(sequence, value),
            _ => Commit::ready(value),
        }
    }
}

/// The journal does not take an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Refusal {
    Full {
        /// Why there is no further file, if not for want of space.
        growth_error: Option<String>,
    },
    Busy,
    TooLarge,
    ReadOnly,
}

impl Refusal {
    fn text(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Full { growth_error: Some(cause) } => {
                return Cow::Owned(format!("the disk refuses the log another file: {cause}"));
            }
            Self::Full { growth_error: None } => "the log's space is used up",
            Self::Busy => "too much is waiting for the disk",
            Self::TooLarge => "the entry is larger than the log takes",
            Self::ReadOnly => "the log has failed and is read-only",
        })
    }
}

impl From<Refusal> for TopicError {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::Full { .. } | Refusal::TooLarge => TopicErrorKind::Full,
            Refusal::Busy => TopicErrorKind::Busy,
            Refusal::ReadOnly => TopicErrorKind::ReadOnly,
        };
        Self::new(kind, refusal.text())
    }
}

impl AppendError {
    fn refused(refusal: &Refusal, len: usize, max: usize) -> Self {
        let kind = match refusal {
            Refusal::Full { .. } => AppendErrorKind::Full,
            Refusal::TooLarge => AppendErrorKind::TooLarge { len, max },
            Refusal::Busy => AppendErrorKind::Busy,
            Refusal::ReadOnly => AppendErrorKind::ReadOnly,
        };
        Self::new(kind, refusal.text())
    }
}

/// Draws identities from a seed; other ones in each opening of each log.
#[derive(Debug)]
struct IdSource {
    state: u64,
}

impl IdSource {
    fn new(seed: u64, log_id: Uuid, epoch: u32) -> Self {
        let (high, low) = log_id.as_u64_pair();
        let mut source = Self { state: seed };
        for salt in [high, low, u64::from(epoch)] {
            source.state ^= salt;
            source.state = source.next();
        }
        source
    }

    /// `SplitMix64`.
    const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn uuid(&mut self) -> Uuid {
        let (high, low) = (self.next(), self.next());
        let bits = u128::from(high) << 64 | u128::from(low);
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }
}

fn partition_of(state: &State, topic: TopicId, partition: PartitionIndex) -> Result<&Partition, ReadError> {
    let found = state
        .topic(topic)
        .ok_or_else(|| ReadError::new(ReadErrorKind::UnknownTopic, "there is no such topic"))?;
    found.partition(partition).ok_or_else(|| {
        let text = format!("topic `{}` has no partition {partition}", found.topic.name);
        ReadError::new(ReadErrorKind::UnknownPartition, text)
    })
}

/// The marks are at half and three quarters; between three quarters and the limit producers are held back longer and
/// longer, up to a second.
fn pressure_of(used: u64, limit: u64, is_full: bool) -> Pressure {
    let limit = limit.max(1);
    let (half, throttled) = (limit / 2, limit - limit / 4);
    let level = if is_full || used >= limit {
        PressureLevel::Full
    } else if used >= throttled {
        PressureLevel::Throttled
    } else if used >= half {
        PressureLevel::Half
    } else {
        PressureLevel::Normal
    };
    let above = u128::from(used.min(limit).saturating_sub(throttled));
    let share = above * u128::from(THROTTLE_MS_MAX) / u128::from(limit.saturating_sub(throttled).max(1));
    let throttle = match level {
        PressureLevel::Normal | PressureLevel::Half => 0,
        PressureLevel::Throttled => u64::try_from(share).unwrap_or(0).max(1),
        PressureLevel::Full => THROTTLE_MS_MAX,
    };
    Pressure { level, used, limit, throttle: Duration::from_millis(throttle) }
}

const PRODUCER_ID_BLOCK: i64 = 1000;
const THROTTLE_MS_MAX: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(used: u64, level: PressureLevel, throttle_ms: u64) {
        let pressure = pressure_of(used, 1000, false);
        assert_eq!((pressure.level, pressure.throttle), (level, Duration::from_millis(throttle_ms)));
    }

    #[test]
    fn pressure_rises_at_half_at_three_quarters_and_at_the_limit() {
        check(0, PressureLevel::Normal, 0);
        check(499, PressureLevel::Normal, 0);
        check(500, PressureLevel::Half, 0);
        check(749, PressureLevel::Half, 0);
        check(750, PressureLevel::Throttled, 1);
        check(875, PressureLevel::Throttled, 500);
        check(999, PressureLevel::Throttled, 996);
        check(1000, PressureLevel::Full, 1000);
        assert_eq!(pressure_of(1, 1000, true).level, PressureLevel::Full);
    }

    #[test]
    fn ids_differ_between_openings_and_repeat_for_the_same_seed() {
        let log = Uuid::from_u128(1);
        assert_eq!(IdSource::new(1, log, 0).uuid(), IdSource::new(1, log, 0).uuid());
        assert_ne!(IdSource::new(1, log, 0).uuid(), IdSource::new(1, log, 1).uuid());
        assert_ne!(IdSource::new(1, log, 0).uuid(), IdSource::new(1, Uuid::from_u128(2), 0).uuid());
    }
}
