//! What readers and the journal's writer share: the applied state, the tail, the fold, and everybody who waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use kolumn_journal::{CommittedGroup, Consumer, Failure, FilePin};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::ahead::Ahead;
use crate::commit::Waiting;
use crate::entry::{BATCH_AT, Entry};
use crate::error::{CommitError, ReadError, ReadErrorKind};
use crate::fold::Fold;
use crate::ids::{PartitionIndex, TopicId};
use crate::observer::{Event, Observer};
use crate::state::{Place, State};
use crate::tail::Tail;
use crate::watch::Waiters;

/// Lock order, where several are held: prepared (in `store`), `applied`, then the journal's own or any other here.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) applied: RwLock<State>,
    pub(crate) tail: RwLock<Tail>,
    pub(crate) ahead: Ahead,
    pub(crate) fold: Fold,
    pub(crate) waiting: Waiting,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) space_news: Arc<Notify>,
    /// Data was refused for want of space, and nothing has been freed since.
    pub(crate) is_full: AtomicBool,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) scratch: Mutex<Scratch>,
}

/// Memory for one group after the other. Only the journal's writer locks it, before anything else.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    entries: Vec<(Entry, Option<Place>)>,
    /// The partitions whose readers the group concerns.
    moved: Vec<(TopicId, PartitionIndex)>,
}

impl Scratch {
    fn clear(&mut self) {
        self.entries.clear();
        self.moved.clear();
        // A group of very many entries is an exception.
        self.entries.shrink_to(SCRATCH_LEN_MAX);
        self.moved.shrink_to(SCRATCH_LEN_MAX);
    }
}

impl Consumer for Core {
    fn committed(&self, group: &CommittedGroup) {
        let scratch = &mut *self.scratch.lock();
        scratch.clear();
        let Scratch { entries, moved } = scratch;
        for entry in &group.entries {
            match decode(group.position.value(), entry.position.value(), &entry.bytes) {
                Ok(decoded) => entries.push(decoded),
                Err(error) => return self.fail(&format!("an entry cannot be read back: {error}")),
            }
        }
        self.tail.write().push(group);
        {
            let mut applied = self.applied.write();
            for (entry, place) in entries.iter() {
                note_news(&applied, entry, moved);
                applied.apply(entry, *place);
            }
        }
        self.fold.push(entries, group.end.value());
        let after = group.first_sequence.saturating_add(group.entries.len() as u64);
        self.waiting.resolve_below(after);
        moved.sort_unstable();
        moved.dedup();
        self.waiters.wake(moved.iter().copied());
    }

    fn failed(&self, failure: &Failure) {
        self.fail(&failure.to_string());
    }

    fn room(&self) {
        self.is_full.store(false, Ordering::Release);
        self.space_news.notify_waiters();
    }
}

impl Core {
    /// Stored bytes, from memory or, blocking, from their file.
    pub(crate) fn bytes(&self, pin: &FilePin, position: u64, len: usize) -> Result<Bytes, ReadError> {
        if let Some(bytes) = self.tail.read().get(position, len) {
            return Ok(bytes);
        }
        self.ahead.read(pin, position, len).map_err(|error| ReadError::new(ReadErrorKind::Io, error))
    }

    fn fail(&self, cause: &str) {
        self.waiting.fail(&CommitError::new(cause));
        self.observer.event(&Event::Failed { cause });
        // Who waits for space learns on trying again that there will be none.
        self.space_news.notify_waiters();
    }
}

/// Decodes an entry of a group; batches get the place of their bytes.
pub(crate) fn decode(
    group: u64,
    position: u64,
    bytes: &[u8],
) -> Result<(Entry, Option<Place>), crate::cursor::Malformed> {
    let entry = Entry::decode(bytes)?;
    let place = match &entry {
        Entry::Appended(_) | Entry::Carried(_) => {
            Some(Place::new(group, position.saturating_add(BATCH_AT as u64)))
        }
        _ => None,
    };
    Ok((entry, place))
}

/// The partitions whose readers an entry concerns.
fn note_news(state: &State, entry: &Entry, moved: &mut Vec<(TopicId, PartitionIndex)>) {
    match entry {
        Entry::Appended(meta) => {
            let place = (meta.topic, meta.partition);
            // Batches of one partition often come one upon the other.
            if moved.last() != Some(&place) {
                moved.push(place);
            }
        }
        Entry::TopicDeleted { topic } => {
            let count = state.topic(*topic).map_or(0, |found| found.topic.partitions);
            moved.extend((0..count).map(|index| (*topic, PartitionIndex::new(index))));
        }
        _ => {}
    }
}

/// Entries of a group that memory is kept for.
const SCRATCH_LEN_MAX: usize = 4096;
