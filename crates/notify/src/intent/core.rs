//! Which intents are not resolved.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::{CommittedGroup, Consumer, Failure};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::entry::{Entry, Intent};
use crate::queue::commits::Commits;
use crate::queue::keeper::Bell;
use crate::queue::message::{Cut, Malformed};

#[derive(Debug)]
pub(super) struct Core {
    pub(super) state: Mutex<State>,
    pub(super) commits: Commits,
    /// The journal may take more.
    pub(super) room: Notify,
    pub(super) bell: Bell,
    /// A checkpoint is written when so much was written since the last, at least.
    pub(super) checkpoint_distance: u64,
}

/// What the process knows. A checkpoint of it may be ahead of the journal: an intent in it may never have been written, and
/// the server finds then that its operation has not happened.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The entries of the intents that are not resolved, in memory of their own: none may hold a block of the journal.
    pub(super) live: BTreeMap<u64, Bytes>,
    live_len: u64,
    pub(super) next_number: u64,
    /// Resolved, and not yet told to the journal.
    pub(super) resolved: Vec<u64>,
    /// Where the last group ends.
    pub(super) end: u64,
    pub(super) checkpointed: u64,
    /// The journal is closed; the directory may be somebody else's.
    pub(super) ended: bool,
}

impl Consumer for Core {
    fn committed(&self, group: &CommittedGroup) {
        let end = group.end.value();
        let rings = {
            let mut state = self.state.lock();
            state.end = end;
            state.is_checkpoint_due(self.checkpoint_distance)
        };
        self.commits.resolve_below(group.first_sequence.saturating_add(group.entries.len() as u64));
        if rings {
            self.bell.ring();
        }
    }

    fn failed(&self, _: &Failure) {
        self.commits.fail();
        self.room.notify_waiters();
    }

    fn room(&self) {
        self.room.notify_waiters();
        if !self.state.lock().resolved.is_empty() {
            self.bell.ring();
        }
    }
}

impl Core {
    pub(super) fn new(state: State, checkpoint_distance: u64) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(state),
            commits: Commits::default(),
            room: Notify::new(),
            bell: Bell::default(),
            checkpoint_distance,
        })
    }
}

impl State {
    pub(super) fn begin(&mut self, number: u64, entry: Bytes) {
        self.next_number = self.next_number.max(number.saturating_add(1));
        self.live_len = self.live_len.saturating_add(entry.len() as u64);
        if let Some(old) = self.live.insert(number, entry) {
            self.live_len = self.live_len.saturating_sub(old.len() as u64);
        }
    }

    pub(super) fn resolve(&mut self, number: u64) {
        if self.remove(number) {
            self.resolved.push(number);
        }
    }

    /// Takes an intent back that came to nothing.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        let removed = self.live.remove(&number);
        let len = removed.as_ref().map_or(0, Bytes::len);
        self.live_len = self.live_len.saturating_sub(len as u64);
        removed.is_some()
    }

    pub(super) fn take_resolved(&mut self, most: usize) -> Vec<u64> {
        let count = self.resolved.len().min(most);
        self.resolved.drain(..count).collect()
    }

    /// An entry as it is found at opening.
    pub(super) fn replay(&mut self, entry: &Bytes) {
        match Entry::of(entry) {
            Entry::Begun(number) => self.begin(number, Bytes::copy_from_slice(entry)),
            Entry::Resolved(numbers) => {
                for number in numbers {
                    self.remove(number);
                }
            }
            Entry::Unknown => {}
        }
    }

    /// A checkpoint costs what is not resolved: it is written when so much was written since the last, twice over.
    pub(super) fn is_checkpoint_due(&self, distance: u64) -> bool {
        let distance = distance.max(self.live_len.saturating_mul(2));
        self.end.saturating_sub(self.checkpointed) >= distance
    }

    /// ```text
    /// | version u8 | next number u64 | count u32 | count times ( length u32 | entry )
    /// ```
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.next_number.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.live.len()).unwrap_or(u32::MAX).to_le_bytes());
        for entry in self.live.values().take(u32::MAX as usize) {
            out.extend_from_slice(&u32::try_from(entry.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend_from_slice(entry);
        }
        out
    }

    /// The state of a checkpoint at this position.
    pub(super) fn decode(checkpoint: &Bytes, end: u64) -> Result<Self, Malformed> {
        let mut cut = Cut::new(checkpoint);
        let version = cut.u8("version")?;
        if version != VERSION {
            return Err(Malformed(format!("version {version} of a checkpoint of intents is not known")));
        }
        let next_number = cut.u64("next number")?;
        let mut state = Self { next_number, end, checkpointed: end, ..Self::default() };
        for _ in 0..cut.count(4, "count of intents")? {
            let len = cut.u32("length of an intent")?;
            let entry = cut.bytes(usize::try_from(len).unwrap_or(usize::MAX), "intent")?;
            let (number, _) = Intent::decode(&entry)?;
            state.begin(number, Bytes::copy_from_slice(&entry));
        }
        Ok(state)
    }
}

const VERSION: u8 = 1;
