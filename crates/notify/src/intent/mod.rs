//! Operations that have begun and whose outcome is not yet known: what keeps an event from getting lost between an
//! operation and its queue.
//!
//! Before an operation the server writes what it intends ([`Intents::begin`]), after it the events, and then that the
//! intent is resolved. When the process ends in between, the next opening gives the intents that are left: the server looks
//! at each object, puts the event if the operation has happened, and resolves the intent.
//!
//! ```text
//! begin ──> operation ──> put events ──> resolve ──> answer
//!        1             2             3
//! ```
//!
//! A crash at 1 leaves an intent without an operation, which is resolved without an event; at 2 an operation without its
//! event, which is made up for; at 3 both, and the event may be sent twice, with the same sequencer and request id.

mod core;
mod entry;

use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::{AdmitErrorKind, Class, Disk, Journal, Position};
use parking_lot::Mutex;
use tokio::sync::oneshot;

pub use self::entry::Intent;

use self::core::{Core, State};
use self::entry::Entry;
use crate::config::QueueDurability;
use crate::queue::message::Malformed;
use crate::queue::options::journal_durability;
use crate::queue::{OpenError, OpenErrorKind, PutError, PutErrorKind};

/// How intents are kept. Start from `IntentOptions::default()` and set fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IntentOptions {
    /// How many operations may be under way. 100,000.
    pub intents_max: usize,
    /// The longest intent in bytes. 64 KiB.
    pub intent_len_max: usize,
    /// What an intent outlives once it was begun. The process.
    pub durability: QueueDurability,
    /// The length of a file of the journal. Three to four of them are allocated ahead. 4 MiB.
    pub file_len: u64,
    /// Where a new journal's identity comes from: random numbers of the operating system.
    pub seed: u64,
}

impl Default for IntentOptions {
    fn default() -> Self {
        Self {
            intents_max: 100_000,
            intent_len_max: 64 << 10,
            durability: QueueDurability::default(),
            file_len: 4 << 20,
            seed: 0,
        }
    }
}

impl IntentOptions {
    fn journal(&self) -> kolumn_journal::Options {
        let mut options = kolumn_journal::Options::default();
        options.seed = self.seed;
        options.file_len = self.file_len;
        options.entry_len_max = self.intent_len_max.max(ENTRY_LEN_MIN);
        // The journal counts each entry in whole blocks here: two thousand at the same time with files of 4 MiB.
        let file_len = usize::try_from(self.file_len).unwrap_or(usize::MAX);
        options.queue_len_max = file_len.saturating_mul(2).max(options.entry_len_max.saturating_mul(2));
        options.pool_len_max = POOL_LEN_MAX;
        options.checkpoint_reserve_len = options.checkpoint_reserve_len.min(self.file_len);
        options.durability = journal_durability(self.durability);
        options
    }
}

/// Names an intent until it is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentId(u64);

/// An intent that was left by an earlier process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unresolved {
    /// To resolve it by.
    pub id: IntentId,
    /// What was intended.
    pub intent: Intent,
}

/// The intents of a server, on one journal. Clones are the same intents.
#[derive(Clone, Debug)]
pub struct Intents {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    inner: Arc<Inner>,
    /// Otherwise a stepper does its work.
    has_keeper: bool,
}

#[derive(Debug)]
struct Inner {
    core: Arc<Core>,
    journal: Journal,
    options: IntentOptions,
    closing: Mutex<Option<oneshot::Sender<()>>>,
}

impl Intents {
    /// Opens the intents in a directory, or begins them; gives those that were begun and not resolved, in the order in
    /// which they were begun. Blocks.
    ///
    /// # Errors
    /// See [`OpenErrorKind`].
    pub fn open(disk: Arc<dyn Disk>, options: IntentOptions) -> Result<(Self, Vec<Unresolved>), OpenError> {
        let (opening, core, unresolved) = recover(disk, &options)?;
        let journal = opening.start(Arc::clone(&core) as _)?;
        let inner = Arc::new(Inner { core, journal, options, closing: Mutex::default() });
        let kept = Arc::clone(&inner);
        inner.core.bell.keep("kolumn-intents", move || kept.work()).map_err(|error| {
            OpenError::new(OpenErrorKind::Disk, format!("starting the thread of the intents failed: {error}"))
        })?;
        Ok((Self { handle: Arc::new(Handle { inner, has_keeper: true }) }, unresolved))
    }

    /// Opens without threads: nothing is written but by the stepper. For simulations that repeat exactly.
    ///
    /// # Errors
    /// See [`OpenErrorKind`].
    #[cfg(feature = "test-util")]
    pub fn open_stepped(
        disk: Arc<dyn Disk>,
        options: IntentOptions,
    ) -> Result<(Self, Vec<Unresolved>, IntentStepper), OpenError> {
        let (opening, core, unresolved) = recover(disk, &options)?;
        let (journal, stepper) = opening.start_stepped(Arc::clone(&core) as _)?;
        let inner = Arc::new(Inner { core, journal, options, closing: Mutex::default() });
        let stepper = IntentStepper { journal: stepper, inner: Arc::clone(&inner) };
        Ok((Self { handle: Arc::new(Handle { inner, has_keeper: false }) }, unresolved, stepper))
    }

    /// Writes an intent before its operation. Ready when it is written, and synced if the durability says so; waits while
    /// the disk catches up. A future that is dropped resolves what it may have written.
    ///
    /// # Errors
    /// See [`PutErrorKind`].
    pub async fn begin(&self, intent: &Intent) -> Result<IntentId, PutError> {
        let inner = &self.handle.inner;
        let (id, written) = loop {
            let mut room = std::pin::pin!(inner.core.room.notified());
            // From here on no news of room is missed.
            room.as_mut().enable();
            if let Some(begun) = inner.try_begin(intent)? {
                break begun;
            }
            room.await;
        };
        let mut unclaimed = Unclaimed { intents: self, id: Some(id) };
        written.await.map_err(|_| PutError::failed())?;
        unclaimed.id = None;
        Ok(id)
    }

    /// The operation did not happen, or its events are in their queues. This is written soon, but not waited for: what
    /// is lost of it is given at the next opening.
    pub fn resolve(&self, id: IntentId) {
        let inner = &self.handle.inner;
        inner.core.state.lock().resolve(id.0);
        inner.write_resolved();
    }

    /// How many intents are not resolved.
    #[must_use]
    pub fn unresolved_count(&self) -> usize {
        self.handle.inner.core.state.lock().live.len()
    }

    /// Writes what is resolved, and ends. The next opening finds the directory unlocked.
    pub async fn close(self) {
        let inner = &self.handle.inner;
        if !self.handle.has_keeper {
            inner.finish_closing();
            return;
        }
        let (sender, closed) = oneshot::channel();
        *inner.closing.lock() = Some(sender);
        inner.core.bell.ring();
        // The keeper answers, or somebody else has closed the intents.
        closed.await.ok();
    }
}

/// An intent that nobody knows of yet, and that is resolved if nobody comes to know of it.
#[derive(Debug)]
struct Unclaimed<'a> {
    intents: &'a Intents,
    id: Option<IntentId>,
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.intents.resolve(id);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.inner.core.bell.end();
    }
}

fn recover(
    disk: Arc<dyn Disk>,
    options: &IntentOptions,
) -> Result<(kolumn_journal::Opening, Arc<Core>, Vec<Unresolved>), OpenError> {
    let opening = Journal::open(disk, options.journal())?;
    let mut state = match opening.checkpoint() {
        None => State::default(),
        Some((position, payload)) => State::decode(&payload, position.value())
            .map_err(|error| OpenError::new(OpenErrorKind::Damaged, format!("the checkpoint: {error}")))?,
    };
    opening
        .replay(|entry| {
            state.replay(&entry.bytes);
            state.end = entry.group_end.value();
            Ok::<(), Malformed>(())
        })
        .map_err(OpenError::replay)?;
    state.end = opening.end().value();
    let mut unresolved = Vec::new();
    for (number, entry) in &state.live {
        let (_, intent) = Intent::decode(entry)
            .map_err(|error| OpenError::new(OpenErrorKind::Damaged, format!("intent {number}: {error}")))?;
        unresolved.push(Unresolved { id: IntentId(*number), intent });
    }
    Ok((opening, Core::new(state, options.file_len), unresolved))
}

impl Inner {
    fn try_begin(
        &self,
        intent: &Intent,
    ) -> Result<Option<(IntentId, crate::queue::commits::Written)>, PutError> {
        let too_large = |what: &str| PutError::new(PutErrorKind::TooLarge, what);
        let len = intent.encoded_len();
        if len > self.options.intent_len_max {
            return Err(too_large(&format!(
                "an intent takes {} bytes at most, and this one {len}",
                self.options.intent_len_max
            )));
        }
        let admission = match self.journal.admit(len, Class::Data) {
            Ok(admission) => admission,
            Err(error) => {
                return match error.kind() {
                    AdmitErrorKind::Busy => Ok(None),
                    AdmitErrorKind::Full => {
                        Err(PutError::new(PutErrorKind::Full, "the disk of the intents is full"))
                    }
                    AdmitErrorKind::TooLarge => Err(too_large("the intent is too long")),
                    _ => Err(self.ended()),
                };
            }
        };
        let (number, entry) = {
            let mut state = self.core.state.lock();
            if state.live.len() >= self.options.intents_max {
                let what = format!("{} operations are under way", state.live.len());
                return Err(PutError::new(PutErrorKind::Full, what));
            }
            let number = state.next_number;
            let entry = intent.encode(number).ok_or_else(|| too_large("a name is too long"))?;
            let entry = Bytes::from(entry);
            state.begin(number, entry.clone());
            (number, entry)
        };
        if let Ok(written) = self.core.commits.append(&self.journal, admission, &[], entry) {
            return Ok(Some((IntentId(number), written)));
        }
        self.core.state.lock().remove(number);
        Err(self.ended())
    }

    fn ended(&self) -> PutError {
        if self.journal.failure().is_some() { PutError::failed() } else { PutError::closed() }
    }

    fn write_resolved(&self) {
        loop {
            let numbers = self.core.state.lock().take_resolved(RESOLVED_MAX);
            if numbers.is_empty() {
                return;
            }
            let entry = Entry::resolved(&numbers);
            let admitted = self.journal.admit(entry.len(), Class::Reclaim);
            let appended = admitted
                .is_ok_and(|admission| self.journal.append(admission, &[], Bytes::from(entry)).is_ok());
            if !appended {
                // Tried again with the next one, or when there is room.
                self.core.state.lock().resolved.extend(numbers);
                return;
            }
        }
    }

    fn work(&self) -> bool {
        let closing = self.closing.lock().take();
        if let Some(closed) = closing {
            self.finish_closing();
            closed.send(()).ok();
            return false;
        }
        self.write_resolved();
        let is_due = {
            let state = self.core.state.lock();
            !state.ended && state.is_checkpoint_due(self.core.checkpoint_distance)
        };
        if is_due {
            self.tidy();
        }
        false
    }

    /// A checkpoint has every intent that is not resolved: all files before it can go.
    fn tidy(&self) {
        let (position, payload) = {
            let state = self.core.state.lock();
            (state.end, state.encode())
        };
        if self.journal.write_checkpoint(Position::new(position), &payload).is_err() {
            // Tried again when more has been written.
            return;
        }
        self.core.state.lock().checkpointed = position;
        for file in self.journal.files() {
            if !file.active && file.end_written.value() <= position {
                // A file that is not given back now is met again.
                self.journal.free(file.base).ok();
            }
        }
    }

    fn finish_closing(&self) {
        if std::mem::replace(&mut self.core.state.lock().ended, true) {
            return;
        }
        self.write_resolved();
        self.tidy();
        self.journal.close();
        self.core.commits.fail();
    }
}

/// The writer and the keeper of intents without threads.
#[cfg(feature = "test-util")]
#[derive(Debug)]
pub struct IntentStepper {
    journal: kolumn_journal::Stepper,
    inner: Arc<Inner>,
}

#[cfg(feature = "test-util")]
impl IntentStepper {
    /// Writes at most one group; tells whether there was anything to do.
    pub fn write(&mut self) -> bool {
        self.journal.step()
    }

    /// Does what the keeper would do.
    pub fn keep(&mut self) {
        self.inner.work();
    }
}

/// Room for what is written of resolved intents.
const ENTRY_LEN_MIN: usize = 8 << 10;
const RESOLVED_MAX: usize = 500;
const POOL_LEN_MAX: usize = 4 << 20;
