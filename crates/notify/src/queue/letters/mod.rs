//! Messages that a target will never take: kept to be looked at, put again, or removed.

mod core;
mod letter;

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::{AdmitErrorKind, BLOCK, Class, Disk, Journal, Position};
use parking_lot::Mutex;

pub use self::letter::Letter;

use self::core::{Core, State};
use self::letter::{Entry, Kind};
use super::batch::Batch;
use super::error::{LetterError, OpenError, OpenErrorKind, PutError, PutErrorKind};
use super::handle::Queue;
use super::message::Malformed;

/// How dead letters are kept. Start from `LetterOptions::default()` and set fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LetterOptions {
    /// How many there may be. 10,000.
    pub letters_max: u64,
    /// How many bytes they may have. 64 MiB.
    pub bytes_max: u64,
    /// The longest of them in bytes, with its reason. 1 MiB and 64 KiB.
    pub letter_len_max: usize,
    /// The length of a file of their journal. Three or four of them are allocated ahead. 4 MiB.
    pub file_len: u64,
    /// Where a new journal's identity comes from: random numbers of the operating system.
    pub seed: u64,
}

impl Default for LetterOptions {
    fn default() -> Self {
        Self {
            letters_max: 10_000,
            bytes_max: 64 << 20,
            letter_len_max: (1 << 20) + (64 << 10),
            file_len: 4 << 20,
            seed: 0,
        }
    }
}

impl LetterOptions {
    fn journal(&self) -> kolumn_journal::Options {
        let mut options = kolumn_journal::Options::default();
        options.seed = self.seed;
        options.file_len = self.file_len;
        options.entry_len_max = self.letter_len_max;
        options.queue_len_max = self.letter_len_max.saturating_mul(2);
        options.group_len_max = 1 << 20;
        options.block_len = 64 << 10;
        options.pool_len_max = 1 << 20;
        options.checkpoint_reserve_len = options.checkpoint_reserve_len.min(self.file_len);
        options
    }
}

/// The dead letters of a target, on a journal of their own; each is synced. Clones are the same letters.
///
/// When they are full they refuse more: a target that refuses everything, because its topic is gone for instance, holds
/// its queue up then instead of emptying it into here.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    core: Arc<Core>,
    journal: Journal,
    options: LetterOptions,
    /// Only one looks after the files at a time.
    upkeep: Mutex<Upkeep>,
}

#[derive(Debug)]
struct Upkeep {
    checkpointed: u64,
    /// Where the journal ended when the files were last looked at.
    seen: u64,
    /// The last entry that was carried. Until it is durable nothing more is.
    carried: Option<u64>,
    /// The journal is closed; the directory may be somebody else's.
    ended: bool,
}

/// How many dead letters there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LetterStats {
    /// Letters.
    pub letters: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl DeadLetters {
    /// Opens the dead letters in a directory, or begins them. Blocks.
    ///
    /// # Errors
    /// See [`OpenErrorKind`].
    pub fn open(disk: Arc<dyn Disk>, options: LetterOptions) -> Result<Self, OpenError> {
        let opening = Journal::open(disk, options.journal())?;
        let (mut state, checkpointed) = match opening.checkpoint() {
            None => (State::default(), 0),
            Some((position, payload)) => {
                let state = State::decode(&payload, position.value()).map_err(|error| {
                    OpenError::new(OpenErrorKind::Damaged, format!("the checkpoint: {error}"))
                })?;
                (state, position.value())
            }
        };
        opening
            .replay(|entry| {
                state.apply(entry.position.value(), &entry.bytes);
                state.end = entry.group_end.value();
                state.next_sequence = entry.sequence + 1;
                Ok::<(), Malformed>(())
            })
            .map_err(OpenError::replay)?;
        state.end = opening.end().value();
        let core = Core::new(state);
        let journal = opening.start(Arc::clone(&core) as _)?;
        let upkeep = Mutex::new(Upkeep { checkpointed, seen: 0, carried: None, ended: false });
        Ok(Self { inner: Arc::new(Inner { core, journal, options, upkeep }) })
    }

    /// How many there are.
    #[must_use]
    pub fn stats(&self) -> LetterStats {
        let state = self.inner.core.state.lock();
        LetterStats { letters: state.live.len() as u64, bytes: state.bytes }
    }

    /// The numbers of letters, ascending: so many at most, those after `after`, or the first ones.
    #[must_use]
    pub fn numbers(&self, after: Option<u64>, most: usize) -> Vec<u64> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.inner
            .core
            .state
            .lock()
            .live
            .range((from, Bound::Unbounded))
            .take(most)
            .map(|(number, _)| *number)
            .collect()
    }

    /// Reads a letter. Blocks.
    ///
    /// # Errors
    /// There is none with this number, or it cannot be read.
    pub fn read(&self, number: u64) -> Result<Letter, LetterError> {
        let entry = self.inner.entry(number)?;
        Letter::decode(&entry).map_err(|error| LetterError::Damaged(number, error.to_string()))
    }

    /// Puts a letter's message into a queue again, behind what waits there, and removes the letter. After a crash in
    /// between there is both.
    ///
    /// # Errors
    /// There is none with this number, it cannot be read, or the queue or the disk refuse.
    pub async fn replay(&self, number: u64, queue: &Queue) -> Result<(), LetterError> {
        let letter = self.read(number)?;
        queue.put(letter.message).await?;
        self.remove(number).await
    }

    /// Removes a letter. Ready when that is durable.
    ///
    /// # Errors
    /// There is none with this number, or the disk refuses.
    pub async fn remove(&self, number: u64) -> Result<(), LetterError> {
        let inner = &self.inner;
        if !inner.core.state.lock().live.contains_key(&number) {
            return Err(LetterError::Unknown(number));
        }
        let entry = Entry::removed(number);
        let admission =
            inner.journal.admit(entry.len(), Class::Reclaim).map_err(|error| refused(error.kind()))?;
        let written = inner
            .core
            .commits
            .append(&inner.journal, admission, &entry, Bytes::new())
            .map_err(|_| PutError::failed())?;
        written.await.map_err(|_| PutError::failed())?;
        Ok(())
    }

    /// Writes what was set aside, and ends. Blocks.
    pub fn close(&self) {
        {
            let mut upkeep = self.inner.upkeep.lock();
            if std::mem::replace(&mut upkeep.ended, true) {
                return;
            }
            self.inner.tidy(&mut upkeep);
        }
        self.inner.journal.close();
        self.inner.core.give_back();
        self.inner.core.commits.fail();
    }

    /// Takes over a message; it is done with in its queue when it is durable here.
    pub(super) fn append_delivery(&self, one: Batch, reason: &str) -> Result<(), (Batch, PutError)> {
        let inner = &self.inner;
        let Some(delivery) = one.deliveries().first() else { return Ok(()) };
        let number = inner.core.take_number();
        let Some(entry) = Entry::letter(number, delivery, reason) else {
            return Err((
                one,
                PutError::new(PutErrorKind::TooLarge, "the topic's name or the key is too long"),
            ));
        };
        let len = entry.len() as u64;
        let pending = inner.core.pending_count();
        {
            let state = inner.core.state.lock();
            let full = pending.saturating_add(state.live.len() as u64) >= inner.options.letters_max
                || state.bytes.saturating_add(len) > inner.options.bytes_max;
            if full {
                let what = format!("there are {} dead letters with {} bytes", state.live.len(), state.bytes);
                return Err((one, PutError::new(PutErrorKind::Full, what)));
            }
        }
        let admission = match inner.journal.admit(entry.len(), Class::Data) {
            Ok(admission) => admission,
            Err(error) => return Err((one, refused(error.kind()))),
        };
        inner.core.append_pending(&inner.journal, admission, Bytes::from(entry), one)
    }

    /// Gives back files without letters, moves the letters of the oldest file if there are too many files, and writes a
    /// checkpoint if one is due. Blocks.
    pub(super) fn tidy(&self) {
        let Some(mut upkeep) = self.inner.upkeep.try_lock() else { return };
        if !upkeep.ended {
            self.inner.tidy(&mut upkeep);
        }
    }
}

impl Inner {
    /// The bytes of a letter, verified.
    fn entry(&self, number: u64) -> Result<Bytes, LetterError> {
        let position = self.core.state.lock().live.get(&number).map(|place| place.position);
        let position = position.ok_or(LetterError::Unknown(number))?;
        let mut found = None;
        // Groups are whole blocks, so that this block is of the letter's own group.
        let from = Position::new(position - position % BLOCK as u64);
        self.journal
            .scan(from, Position::new(position.saturating_add(1)), |entry| {
                if entry.position.value() == position {
                    found = Some(entry.bytes);
                }
                std::ops::ControlFlow::Continue(())
            })
            .map_err(|error| LetterError::Read(number, error))?;
        found.ok_or_else(|| LetterError::Damaged(number, "no entry lies where it should be".to_owned()))
    }

    fn tidy(&self, upkeep: &mut Upkeep) {
        let end = self.core.state.lock().end;
        if std::mem::replace(&mut upkeep.seen, end) == end {
            return;
        }
        let files = self.journal.files();
        let (places, end, next_sequence) = {
            let state = self.core.state.lock();
            (state.places(), state.end, state.next_sequence)
        };
        let within = |base: u64, len: u64| {
            let from = places.partition_point(|(position, _)| *position < base);
            places.iter().skip(from).take_while(move |(position, _)| *position < base.saturating_add(len))
        };
        let dead: Vec<_> = files
            .iter()
            .filter(|file| !file.active && file.end_written.value() <= end)
            .filter(|file| within(file.base.value(), file.len).next().is_none())
            .collect();
        let uncovered = dead.iter().any(|file| file.end_written.value() > upkeep.checkpointed);
        if uncovered || end.saturating_sub(upkeep.checkpointed) >= self.options.file_len {
            let (position, payload) = {
                let state = self.core.state.lock();
                (state.end, state.encode())
            };
            if self.journal.write_checkpoint(Position::new(position), &payload).is_ok() {
                upkeep.checkpointed = position;
            }
        }
        for file in &dead {
            if file.end_written.value() <= upkeep.checkpointed {
                // A file that is not given back now is met again.
                self.journal.free(file.base).ok();
            }
        }
        let files_max = FILES_MIN.saturating_add(self.options.bytes_max / self.options.file_len * 2);
        let is_carried = upkeep.carried.is_none_or(|sequence| sequence < next_sequence);
        if let Some(oldest) = files.first().filter(|file| !file.active)
            && files.len() as u64 > files_max
            && is_carried
        {
            let numbers = within(oldest.base.value(), oldest.len).map(|(_, number)| *number);
            upkeep.carried = numbers.filter_map(|number| self.carry(number)).last();
        }
    }

    /// Writes a letter once more, so that the file in which it lies can be given back.
    fn carry(&self, number: u64) -> Option<u64> {
        let mut entry = self.entry(number).ok()?.to_vec();
        *entry.first_mut()? = Kind::CARRIED;
        let admission = self.journal.admit(entry.len(), Class::Reclaim).ok()?;
        self.journal.append(admission, &[], entry.into()).ok()
    }
}

fn refused(kind: AdmitErrorKind) -> PutError {
    match kind {
        AdmitErrorKind::Full | AdmitErrorKind::Busy => {
            PutError::new(PutErrorKind::Full, "the dead letters' disk takes no more now")
        }
        AdmitErrorKind::TooLarge => PutError::new(PutErrorKind::TooLarge, "it is too long for a dead letter"),
        _ => PutError::failed(),
    }
}

/// So many files are no reason to move letters.
const FILES_MIN: u64 = 4;

#[cfg(test)]
mod tests {
    use kolumn_journal::sim::SimDisk;

    use super::*;
    use crate::event::{EventName, Timestamp};
    use crate::queue::{Message, Most, QueueOptions};

    fn open(sim: &SimDisk) -> DeadLetters {
        let options = LetterOptions {
            letter_len_max: 8 << 10,
            file_len: 64 << 10,
            bytes_max: 64 << 10,
            ..LetterOptions::default()
        };
        DeadLetters::open(Arc::new(sim.clone()), options).unwrap()
    }

    #[tokio::test]
    async fn letters_that_are_spread_over_many_files_are_moved_together() {
        let sim = SimDisk::new(2);
        let letters = open(&sim);
        let options = QueueOptions {
            file_len: 64 << 10,
            message_len_max: 4 << 10,
            dead_letters: Some(letters.clone()),
            ..QueueOptions::default()
        };
        let queue = Queue::open(Arc::new(SimDisk::new(1)), options).unwrap();
        let time = Timestamp::from_unix_nanos;
        let message = |id: u64| Message::new(EventName::ObjectCreatedPut, "b/k", vec![7; 3000], time(id));
        // A letter and its removal take a block each, so that about one letter of a file is left.
        let is_left = |id: &u64| id.is_multiple_of(8);
        for id in 0..160 {
            queue.put(message(id)).await.unwrap();
            let mut batch = queue.take(Most::new(1, usize::MAX)).await.unwrap();
            let number = batch.deliveries()[0].number;
            queue.set_aside(&mut batch, number, "no").unwrap();
            while queue.stats().set_aside <= id {
                tokio::task::yield_now().await;
            }
            if !is_left(&id) {
                letters.remove(id).await.unwrap();
            }
            letters.tidy();
        }
        let left: Vec<_> = (0..160).filter(is_left).collect();
        assert_eq!(letters.numbers(None, 100), left);
        let files = letters.inner.journal.files().len() as u64;
        assert!(files <= FILES_MIN + 4, "{files} files for {} letters", left.len());
        queue.close().await;
        letters.close();
        let letters = open(&sim);
        for id in left {
            assert_eq!(letters.read(id).unwrap().message, message(id));
        }
    }
}
