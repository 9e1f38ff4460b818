//! Upkeep from outside, again and again: retention, expiry, carrying, freeing, checkpoints, pressure.
//!
//! What a round decides is written as entries and takes effect when they are durable; the next round builds on it.

use std::collections::BTreeMap;

use bytes::Bytes;
use kolumn_journal::{CheckpointErrorKind, Class, FileInfo, Position};

use crate::checkpoint;
use crate::commit::Commit;
use crate::entry::{BATCH_AT, Entry, batch_head};
use crate::error::{MaintenanceError, MaintenanceErrorKind, ReadError, ReadErrorKind};
use crate::ids::{Offset, PartitionIndex, ProducerId, Timestamp, TopicId};
use crate::observer::{Event, PressureLevel};
use crate::retention;
use crate::settings::Settings;
use crate::state::State;
use crate::state::index::Span;
use crate::state::producers::Producer;

use super::open::describe;
use super::{Prepared, Refusal, Store};

/// What upkeep remembers between rounds.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// What the newest checkpoint covers.
    checkpoint: u64,
    /// When retention is looked at again.
    retention_due: Timestamp,
    /// When producers are looked through again.
    expiry_due: Timestamp,
    level: PressureLevel,
    /// Why the log gets no further file, as it was told.
    growth_error: Option<String>,
    /// The last entry of the last carrying; until it is durable nothing more is carried.
    carried: Option<u64>,
}

impl Upkeep {
    /// The first round looks at everything: a store that is opened often would come to nothing if each opening began
    /// with a pause.
    pub(super) const fn new(checkpoint: u64, now: Timestamp) -> Self {
        Self {
            checkpoint,
            retention_due: now,
            expiry_due: now,
            level: PressureLevel::Normal,
            growth_error: None,
            carried: None,
        }
    }
}

impl Store {
    /// One round of upkeep; call it every second or so. Blocks on the disk.
    ///
    /// # Errors
    /// If the log has failed, or the disk refused a read or a checkpoint; the next round tries again.
    pub fn maintain(&self, now: Timestamp) -> Result<(), MaintenanceError> {
        if self.is_read_only() {
            return Err(MaintenanceError::new(MaintenanceErrorKind::ReadOnly, Refusal::ReadOnly.text()));
        }
        let mut upkeep = self.inner.upkeep.lock();
        self.inner.refresh_space();
        let pressure = self.pressure();
        if now >= upkeep.retention_due || pressure.level > PressureLevel::Normal {
            upkeep.retention_due = retention_after(now, &self.inner.settings);
            self.retain(now);
        }
        self.expire_producers(&mut upkeep, now);
        // Before the state is looked at: what is in a file that is no longer written has been applied.
        let files = self.inner.journal.files();
        let live = self.live_bytes(&files);
        let is_dead =
            |file: &&FileInfo| !file.active && live.get(&file.base.value()).is_none_or(|len| *len == 0);
        let dead: Vec<_> = files.iter().filter(is_dead).collect();
        let written = self.inner.core.fold.end().saturating_sub(upkeep.checkpoint);
        let uncovered = dead.iter().any(|file| file.end_written.value() > upkeep.checkpoint);
        if uncovered || written >= self.inner.settings.checkpoint_distance {
            self.write_checkpoint(&mut upkeep)?;
        }
        for file in dead {
            if file.end_written.value() <= upkeep.checkpoint {
                self.inner.journal.free(file.base).map_err(|error| io_error(&error))?;
                self.inner.core.observer.event(&Event::Freed { file: file.base.value() });
            }
        }
        if let Some(file) = retention::file_to_carry(&files, &live, pressure.level) {
            self.carry(&mut upkeep, &file)?;
        }
        self.tell_space(&mut upkeep);
        Ok(())
    }

    /// Tells what has changed about the log's space.
    fn tell_space(&self, upkeep: &mut Upkeep) {
        let space = self.inner.refresh_space();
        if space.growth_error != upkeep.growth_error {
            upkeep.growth_error = space.growth_error;
            if let Some(cause) = &upkeep.growth_error {
                self.inner.core.observer.event(&Event::GrowthFailed { cause });
            }
        }
        let pressure = self.pressure();
        if pressure.level != upkeep.level {
            upkeep.level = pressure.level;
            self.inner.core.observer.event(&Event::Pressure(pressure));
        }
    }

    /// Writes a checkpoint of everything that is durable. Blocks.
    ///
    /// # Errors
    /// If the disk refuses or the log has failed.
    pub fn checkpoint(&self) -> Result<(), MaintenanceError> {
        self.write_checkpoint(&mut self.inner.upkeep.lock())
    }

    /// Waits for what is under way, writes a checkpoint and closes the log. Blocks. Appends are refused from then on,
    /// reads go on.
    ///
    /// # Errors
    /// If the disk refused the checkpoint; the log is closed and whole all the same.
    pub fn close(&self) -> Result<(), MaintenanceError> {
        if self.inner.has_writer {
            let last = {
                let prepared = self.inner.prepared.lock();
                prepared.last_sequence.map(|sequence| self.inner.core.waiting.commit(sequence, ()))
            };
            // A failure is told by the checkpoint.
            let _ = last.map(Commit::wait);
        }
        let checkpoint = self.checkpoint();
        self.inner.journal.close();
        self.inner.source.decoded.close();
        self.inner.core.waiting.fail(&crate::error::CommitError::new("the store was closed"));
        self.inner.core.space_news.notify_waiters();
        checkpoint
    }

    fn write_checkpoint(&self, upkeep: &mut Upkeep) -> Result<(), MaintenanceError> {
        // Encoded under the fold's lock, written without it: the journal's writer may need the fold meanwhile.
        let due = self.inner.core.fold.with(|state, end| {
            state.check();
            (end > upkeep.checkpoint).then(|| (end, checkpoint::encode(state)))
        });
        if let Some((position, payload)) = due {
            let written = self.inner.journal.write_checkpoint(Position::new(position), &payload);
            written.map_err(|error| match error.kind() {
                CheckpointErrorKind::ReadOnly => MaintenanceError::new(MaintenanceErrorKind::ReadOnly, error),
                _ => io_error(&error),
            })?;
            upkeep.checkpoint = position;
            self.inner.core.observer.event(&Event::Checkpoint { position, len: payload.len() });
        }
        Ok(())
    }

    /// Moves log starts as the topics' settings say.
    fn retain(&self, now: Timestamp) {
        let due: Vec<(TopicId, PartitionIndex, i64)> = {
            let applied = self.inner.core.applied.read();
            let topics = applied.topics.iter().filter(|(_, found)| found.topic.config.deletes());
            let partitions = topics.flat_map(|(id, found)| {
                (0_i32..).map(PartitionIndex::new).zip(&found.partitions).map(move |at| (*id, found, at))
            });
            partitions
                .filter_map(|(id, found, (index, partition))| {
                    let log_start = retention::log_start(partition, &found.topic.config, now)?;
                    Some((id, index, log_start))
                })
                .collect()
        };
        for (topic, partition, offset) in due {
            let mut prepared = self.inner.prepared.lock();
            let known = prepared.state.partition(topic, partition);
            if known.is_none_or(|known| known.log_start >= offset) {
                continue;
            }
            let entry = Entry::LogStart { topic, partition, offset };
            if self.inner.write(&mut prepared, &entry, Class::Reclaim).is_err() {
                return;
            }
            drop(prepared);
            let log_start = Offset::new(offset);
            self.inner.core.observer.event(&Event::Retained { topic, partition, log_start });
        }
    }

    /// Drops the windows of producers that have been silent for long, or longest if there are too many.
    fn expire_producers(&self, upkeep: &mut Upkeep, now: Timestamp) {
        let settings = &self.inner.settings;
        let mut prepared = self.inner.prepared.lock();
        let excess = windows(&prepared.state).count().saturating_sub(settings.producers_max);
        if excess == 0 && now < upkeep.expiry_due {
            return;
        }
        upkeep.expiry_due = expiry_after(now, settings);
        let mut oldest = now.value().saturating_sub(settings.producer_expiration_ms);
        if let Some(last) = excess.checked_sub(1) {
            let mut ages: Vec<_> =
                windows(&prepared.state).map(|known| known.last_appended().value()).collect();
            oldest = oldest.max(*ages.select_nth_unstable(last).1);
        }
        for (topic, partition, producers) in silent_producers(&prepared, oldest) {
            let count = producers.len();
            let entry = Entry::ProducersExpired { topic, partition, producers };
            if self.inner.write(&mut prepared, &entry, Class::Reclaim).is_err() {
                return;
            }
            self.inner.core.observer.event(&Event::ProducersExpired { topic, partition, count });
        }
    }

    /// Bytes of live batches in each file, by the file's base.
    fn live_bytes(&self, files: &[FileInfo]) -> BTreeMap<u64, u64> {
        let mut live: BTreeMap<u64, u64> = files.iter().map(|file| (file.base.value(), 0)).collect();
        let applied = self.inner.core.applied.read();
        for span in applied.topics.values().flat_map(|topic| &topic.partitions).flat_map(|found| &found.spans)
        {
            // A thinned span may reach into files after its first: they are in use, though the bytes count in the first.
            let mut len = span.len;
            let first = live.range(..=span.position).next_back().map_or(span.position, |(base, _)| *base);
            for in_file in live.range_mut(first..span.end.max(first.saturating_add(1))) {
                *in_file.1 = in_file.1.saturating_add(std::mem::replace(&mut len, 1));
            }
        }
        live
    }

    /// Appends the live batches of a file again, with their old offsets, up to the limit of one round.
    fn carry(&self, upkeep: &mut Upkeep, file: &FileInfo) -> Result<(), MaintenanceError> {
        if upkeep.carried.is_some_and(|sequence| !self.inner.core.waiting.is_durable(sequence)) {
            return Ok(());
        }
        let (mut batches, mut carried_len) = (0, 0_u64);
        'spans: for (topic, partition, span) in self.spans_in(file) {
            let outcome = self.copies_of(topic, partition, &span);
            let copies = match outcome {
                Ok(copies) => copies,
                // Deleted in the meantime.
                Err(error) if error.kind() != ReadErrorKind::Io => continue,
                Err(error) => return Err(io_error(&error)),
            };
            for copy in copies {
                let copy = copy.map_err(|error| io_error(&error))?;
                let len = copy.len() as u64;
                match self.append_copy(topic, partition, &span, copy) {
                    Ok(Some(sequence)) => {
                        upkeep.carried = Some(sequence);
                        batches += 1;
                        carried_len = carried_len.saturating_add(len);
                    }
                    Ok(None) => {}
                    Err(_) => break 'spans,
                }
                if carried_len >= self.inner.settings.carry_len_max {
                    break 'spans;
                }
            }
        }
        if batches > 0 {
            let file = file.base.value();
            self.inner.core.observer.event(&Event::Carried { file, batches, len: carried_len });
        }
        Ok(())
    }

    fn spans_in(&self, file: &FileInfo) -> Vec<(TopicId, PartitionIndex, Span)> {
        let range = file.base.value()..file.base.value().saturating_add(file.len);
        let applied = self.inner.core.applied.read();
        let mut spans = Vec::new();
        for (id, topic) in &applied.topics {
            for (index, partition) in (0_i32..).map(PartitionIndex::new).zip(&topic.partitions) {
                let inside = partition.spans.iter().filter(|span| range.contains(&span.position));
                spans.extend(inside.map(|span| (*id, index, span.clone())));
            }
        }
        spans
    }

    /// The bytes of a span's batches, read one by one.
    fn copies_of(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        span: &Span,
    ) -> Result<impl Iterator<Item = Result<Bytes, ReadError>>, ReadError> {
        let pin = self.inner.journal.pin(Position::new(span.position));
        let pin = pin.ok_or_else(|| ReadError::new(ReadErrorKind::Gone, "the file has been freed"))?;
        let batches = self.batches_of(topic, partition, span, pin)?;
        Ok(batches.into_iter().map(|found| self.bytes_of(&found)))
    }

    /// Appends a copy of a batch, unless it has been deleted in the meantime.
    fn append_copy(
        &self,
        topic: TopicId,
        partition: PartitionIndex,
        span: &Span,
        batch: Bytes,
    ) -> Result<Option<u64>, Refusal> {
        let mut prepared = self.inner.prepared.lock();
        if prepared.state.partition(topic, partition).is_none_or(|found| span.last < found.log_start) {
            return Ok(None);
        }
        let admission = self.inner.admit(BATCH_AT + batch.len(), Class::Reclaim)?;
        let head = batch_head(true, topic, partition, Timestamp::new(span.aged_from));
        let sequence = self.inner.journal.append(admission, &head, batch).map_err(|_| Refusal::ReadOnly)?;
        prepared.last_sequence = Some(sequence);
        Ok(Some(sequence))
    }
}

fn windows(state: &State) -> impl Iterator<Item = &Producer> {
    state.topics.values().flat_map(|topic| &topic.partitions).flat_map(|found| found.producers.values())
}

fn silent_producers(prepared: &Prepared, oldest: i64) -> Vec<(TopicId, PartitionIndex, Vec<ProducerId>)> {
    let mut silent = Vec::new();
    for (topic, found) in &prepared.state.topics {
        for (index, partition) in (0_i32..).map(PartitionIndex::new).zip(&found.partitions) {
            let expired =
                partition.producers.iter().filter(|(_, known)| known.last_appended().value() <= oldest);
            let ids: Vec<ProducerId> = expired.map(|(id, _)| *id).collect();
            silent.extend(ids.chunks(EXPIRED_PER_ENTRY).map(|ids| (*topic, index, ids.to_vec())));
        }
    }
    silent
}

fn retention_after(now: Timestamp, settings: &Settings) -> Timestamp {
    Timestamp::new(now.value().saturating_add(settings.retention_interval_ms))
}

fn expiry_after(now: Timestamp, settings: &Settings) -> Timestamp {
    let pause = (settings.producer_expiration_ms / 10).clamp(1, EXPIRY_PAUSE_MS_MAX);
    Timestamp::new(now.value().saturating_add(pause))
}

fn io_error(error: &dyn std::error::Error) -> MaintenanceError {
    MaintenanceError::new(MaintenanceErrorKind::Io, describe(error))
}

const EXPIRED_PER_ENTRY: usize = 512;
const EXPIRY_PAUSE_MS_MAX: i64 = 600_000;
