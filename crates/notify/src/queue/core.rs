//! What the handles of a queue, its keeper and the journal's writer have in common.

use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::{CommittedGroup, Consumer, Failure};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::commits::Commits;
use super::error::{PutError, PutErrorKind};
use super::keeper::Bell;
use super::ledger::{Group, Ledger, Mark, is_message};
use super::message::{Delivery, Malformed, Message};
use super::options::QueueOptions;
use super::window::{Cost, Window};
use crate::config::QueueFull;

/// Lock order: `state`, then the journal's own; `commits` is locked while none of these is.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) options: QueueOptions,
    pub(super) state: Mutex<State>,
    pub(super) commits: Commits,
    /// Something may be there to be taken.
    pub(super) arrivals: Notify,
    /// There may be room.
    pub(super) space: Notify,
    pub(super) bell: Bell,
}

/// INVARIANT: the window has every message before the cursor that is neither done with nor under way.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) ledger: Ledger,
    pub(super) window: Window,
    /// Up to here messages were read.
    pub(super) cursor: Mark,
    /// The cursor is at the end, and what is written next goes into the window at once.
    pub(super) caught_up: bool,
    /// Appended and not yet written: messages and bytes.
    admitted: (u64, u64),
    pub(super) life: Life,
    /// What the newest checkpoint covers.
    pub(super) checkpointed: u64,
    /// More is done with than the journal was told.
    pub(super) unwritten: bool,
    pub(super) counts: Counts,
    /// Where the disk refused to read, and how often it did in a row.
    refused_reads: (u64, u32),
    /// The journal is closed; the directory may be somebody else's.
    pub(super) ended: bool,
    /// Where the last message in the window lies.
    last_position: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Life {
    #[default]
    Open,
    /// Nothing more is put.
    Sealed,
    /// Nothing more is put or taken.
    Closed,
    /// The journal takes nothing more.
    Failed,
}

/// Since the queue was opened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) put: u64,
    pub(super) done: u64,
    pub(super) dropped: u64,
    pub(super) refused: u64,
    pub(super) set_aside: u64,
    pub(super) damaged: u64,
}

/// A message as it was found in the journal.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) position: u64,
    pub(super) number: u64,
    pub(super) entry: Bytes,
    pub(super) message: Result<Message, Malformed>,
}

impl Consumer for Core {
    fn committed(&self, group: &CommittedGroup) {
        let messages = || group.entries.iter().filter(|entry| is_message(&entry.bytes));
        let sum = |bytes: u64, len: usize| bytes.saturating_add(len as u64);
        let written = Group {
            position: group.position.value(),
            end: group.end.value(),
            messages: messages().count() as u64,
            bytes: messages().map(|entry| entry.bytes.len()).fold(0, sum),
        };
        let first = {
            let state = self.state.lock();
            (state.caught_up && state.window.held() < self.options.window_len)
                .then(|| state.ledger.end().number)
        };
        // Read without the lock. The journal's writer is the only one who moves the end.
        let found: Option<Vec<Found>> = first.map(|first| {
            messages()
                .zip(first..)
                .map(|(entry, number)| Found::new(entry.position.value(), number, entry.bytes.clone()))
                .collect()
        });
        let rings = self.state.lock().wrote(written, found, &self.options);
        self.commits.resolve_below(group.first_sequence.saturating_add(group.entries.len() as u64));
        if written.messages > 0 {
            self.arrivals.notify_waiters();
            self.space.notify_waiters();
        }
        if rings {
            self.bell.ring();
        }
    }

    fn failed(&self, _: &Failure) {
        {
            let mut state = self.state.lock();
            state.admitted = (0, 0);
            if state.life != Life::Closed {
                state.life = Life::Failed;
            }
        }
        self.commits.fail();
        self.arrivals.notify_waiters();
        self.space.notify_waiters();
    }

    fn room(&self) {
        self.space.notify_waiters();
        if self.state.lock().unwritten {
            self.bell.ring();
        }
    }
}

impl Found {
    pub(super) fn new(position: u64, number: u64, entry: Bytes) -> Self {
        let message = Message::decode(&entry);
        Self { position, number, entry, message }
    }
}

impl State {
    /// A queue as it was found when it was opened.
    pub(super) fn opened(ledger: Ledger, checkpointed: u64) -> Self {
        let cursor = ledger.start();
        let caught_up = cursor == ledger.end();
        Self { ledger, cursor, caught_up, checkpointed, last_position: cursor.position, ..Self::default() }
    }

    /// The journal has written a group; `found` is what it has if it may go into the window. Tells whether the keeper has
    /// something to do.
    fn wrote(&mut self, group: Group, found: Option<Vec<Found>>, options: &QueueOptions) -> bool {
        self.ledger.wrote(group, options.mark_distance());
        self.admitted.0 = self.admitted.0.saturating_sub(group.messages);
        self.admitted.1 = self.admitted.1.saturating_sub(group.bytes);
        self.counts.put = self.counts.put.saturating_add(group.messages);
        // What cannot be read is the keeper's, who keeps it aside.
        let is_whole = found.as_ref().is_some_and(|found| found.iter().all(|found| found.message.is_ok()));
        self.caught_up &= is_whole || group.messages == 0;
        if self.caught_up {
            for found in found.unwrap_or_default() {
                self.admit_to_window(found);
            }
            self.cursor = self.ledger.end();
        }
        !self.caught_up
            || self.unwritten
            || group.end.saturating_sub(self.checkpointed) >= options.checkpoint_distance
    }

    /// A message that was read goes into the window, if there is still something to be done with it. Gives back what
    /// could not be read.
    pub(super) fn admit_to_window(&mut self, found: Found) -> Option<(Found, Malformed)> {
        let Found { position, number, entry, message } = found;
        if self.ledger.is_done(number) {
            return None;
        }
        match message {
            Ok(message) => {
                // What lies between two messages in a file also does in memory.
                let gap = position.saturating_sub(self.last_position).min(GAP_MAX);
                let held = entry.len().max(usize::try_from(gap).unwrap_or(usize::MAX));
                self.last_position = position;
                let cost = Cost { len: entry.len() as u64, held };
                self.window.insert(Delivery { number, message, attempts: 0 }, cost);
                None
            }
            Err(error) => {
                let message = Err(error.clone());
                Some((Found { position, number, entry, message }, error))
            }
        }
    }

    /// Room for a message of this length: `true` if it was reserved, `false` if it has to be waited for.
    pub(super) fn reserve(&mut self, len: u64, options: &QueueOptions) -> Result<bool, PutError> {
        self.check_open()?;
        if len > options.bytes_max {
            return Err(PutError::new(
                PutErrorKind::TooLarge,
                format!(
                    "a message of {len} bytes is more than the {} bytes that may wait",
                    options.bytes_max
                ),
            ));
        }
        while !self.has_room(len, options) {
            match options.full {
                QueueFull::Refuse => {
                    self.counts.refused += 1;
                    let (count, bytes) = self.queued();
                    let message = format!("the queue is full: {count} messages with {bytes} bytes wait");
                    return Err(PutError::new(PutErrorKind::Full, message));
                }
                QueueFull::DropOldest if self.drop_oldest() => {}
                // What is to be dropped has yet to be read.
                QueueFull::DropOldest | QueueFull::Block => return Ok(false),
            }
        }
        self.admitted = (self.admitted.0.saturating_add(1), self.admitted.1.saturating_add(len));
        Ok(true)
    }

    /// The disk refused to read at this position; how often now in a row.
    pub(super) fn count_refused_read(&mut self, position: u64) -> u32 {
        let (last, times) = self.refused_reads;
        let times = if last == position { times.saturating_add(1) } else { 1 };
        self.refused_reads = (position, times);
        times
    }

    /// A reservation came to nothing.
    pub(super) fn release(&mut self, len: u64) {
        self.admitted = (self.admitted.0.saturating_sub(1), self.admitted.1.saturating_sub(len));
    }

    /// Nothing was appended that is not yet written.
    pub(super) fn is_settled(&self) -> bool {
        self.admitted.0 == 0
    }

    pub(super) fn check_open(&self) -> Result<(), PutError> {
        match self.life {
            Life::Open => Ok(()),
            Life::Sealed | Life::Closed => Err(PutError::closed()),
            Life::Failed => Err(PutError::failed()),
        }
    }

    /// The disk is full: drops what lies in the oldest file, as far as it waits in the window. `false` if nothing does.
    pub(super) fn drop_oldest_file(&mut self, options: &QueueOptions) -> bool {
        let goal = self.ledger.start().position.saturating_add(options.file_len);
        let mut dropped = false;
        while self.ledger.start().position < goal && self.drop_oldest() {
            dropped = true;
        }
        dropped
    }

    fn drop_oldest(&mut self) -> bool {
        let Some((number, cost)) = self.window.remove_oldest() else { return false };
        self.finish(number, cost.len);
        self.counts.dropped += 1;
        true
    }

    /// A message is done with.
    pub(super) fn finish(&mut self, number: u64, len: u64) {
        self.unwritten |= self.ledger.finish(number, len);
    }

    /// Messages and bytes that wait or are under way, written or not.
    pub(super) fn queued(&self) -> (u64, u64) {
        let (count, bytes) = self.ledger.live();
        (count.saturating_add(self.admitted.0), bytes.saturating_add(self.admitted.1))
    }

    fn has_room(&self, len: u64, options: &QueueOptions) -> bool {
        let (mut count, bytes) = self.queued();
        if options.full == QueueFull::DropOldest {
            // What is under way cannot be dropped, and a target that does not answer must not hold up what is put.
            let under_way = self.window.under_way() as u64;
            if count <= under_way {
                return true;
            }
            count -= under_way;
        }
        count < options.messages_max.max(1) && bytes.saturating_add(len) <= options.bytes_max
    }
}

impl Core {
    pub(super) fn new(options: QueueOptions, state: State) -> Arc<Self> {
        Arc::new(Self {
            options,
            state: Mutex::new(state),
            commits: Commits::default(),
            arrivals: Notify::new(),
            space: Notify::new(),
            bell: Bell::default(),
        })
    }
}

/// The most memory that lies unused before a message: blocks are shared from here on.
const GAP_MAX: u64 = 256 << 10;
