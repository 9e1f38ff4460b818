//! Deleting the oldest records of a partition because somebody asks for it.

use kolumn_journal::Class;

use crate::commit::Commit;
use crate::entry::Entry;
use crate::error::{DeleteRecordsError, DeleteRecordsErrorKind as Kind};
use crate::ids::{Offset, PartitionIndex, TopicId};
use crate::observer::Event;
use crate::state::State;
use crate::state::partition::Partition;

use super::{Refusal, Store};

impl Store {
    /// Deletes the records before an offset; `None`: all up to the high watermark. Gives the partition's first offset
    /// then, which is not lower than it was: what is below it already stays deleted, without an error.
    ///
    /// The records are gone for readers when it is durable; the batch that the offset lies in keeps its space until it
    /// is deleted as a whole. The space itself comes back in a round of [`Store::maintain`].
    ///
    /// # Errors
    /// If there is no such topic or partition, the offset lies above the high watermark, the topic is one that only
    /// compacts, or the log is busy or has failed.
    pub fn delete_records(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        before: Option<Offset>,
    ) -> Result<Commit<Offset>, DeleteRecordsError> {
        let mut prepared = self.inner.prepared.lock();
        let (durable_start, high_watermark) = {
            let applied = self.inner.core.applied.read();
            let found = partition_of(&applied, topic, partition)?;
            (found.log_start, found.next)
        };
        let known = partition_of(&prepared.state, topic, partition)?.log_start;
        let offset = before.map_or(high_watermark, Offset::value);
        if !(0..=high_watermark).contains(&offset) {
            let text = format!("offset {offset} is not from 0 to the high watermark, {high_watermark}");
            return Err(DeleteRecordsError::new(Kind::OffsetOutOfRange, text));
        }
        if offset <= known {
            return Ok(self.inner.commit(&prepared, durable_start >= known, Offset::new(known)));
        }
        self.inner.write(&mut prepared, &Entry::LogStart { topic, partition, offset }, Class::Reclaim)?;
        let log_start = Offset::new(offset);
        let commit = self.inner.commit(&prepared, false, log_start);
        drop(prepared);
        self.inner.core.observer.event(&Event::RecordsDeleted { topic, partition, log_start });
        Ok(commit)
    }
}

impl From<Refusal> for DeleteRecordsError {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::Full { .. } | Refusal::TooLarge => Kind::Full,
            Refusal::Busy => Kind::Busy,
            Refusal::ReadOnly => Kind::ReadOnly,
        };
        Self::new(kind, refusal.text())
    }
}

/// The partition, if there is one from which records may be deleted.
fn partition_of(
    state: &State,
    topic: TopicId,
    partition: PartitionIndex,
) -> Result<&Partition, DeleteRecordsError> {
    let found = state
        .topic(topic)
        .ok_or_else(|| DeleteRecordsError::new(Kind::UnknownTopic, "there is no such topic"))?;
    let known = found.partition(partition).ok_or_else(|| {
        let text = format!("topic `{}` has no partition {partition}", found.topic.name);
        DeleteRecordsError::new(Kind::UnknownPartition, text)
    })?;
    if !found.topic.config.deletes() {
        let text = format!("the `cleanup.policy` of topic `{}` has no `delete`", found.topic.name);
        return Err(DeleteRecordsError::new(Kind::Policy, text));
    }
    Ok(known)
}
