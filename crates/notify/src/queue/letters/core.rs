//! Which letters there are, and the messages on their way to becoming one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::{Admission, CommittedGroup, Consumer, Failure, Journal};
use parking_lot::Mutex;

use super::super::batch::Batch;
use super::super::commits::Commits;
use super::super::error::PutError;
use super::super::inner::Finished;
use super::super::message::{Cut, Malformed};
use super::letter::Entry;

#[derive(Debug)]
pub(super) struct Core {
    pub(super) state: Mutex<State>,
    pub(super) commits: Commits,
    /// Messages whose letters are not yet durable, in the journal's order, with their sequences.
    pending: Mutex<VecDeque<(u64, Batch)>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) live: BTreeMap<u64, Place>,
    /// Of the letters.
    pub(super) bytes: u64,
    next_number: u64,
    /// Where the last group ends.
    pub(super) end: u64,
    /// Entries below this are durable.
    pub(super) next_sequence: u64,
}

/// Where a letter lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) position: u64,
    len: u64,
}

impl Consumer for Core {
    fn committed(&self, group: &CommittedGroup) {
        let next_sequence = group.first_sequence.saturating_add(group.entries.len() as u64);
        {
            let mut state = self.state.lock();
            for entry in &group.entries {
                state.apply(entry.position.value(), &entry.bytes);
            }
            state.end = group.end.value();
            state.next_sequence = next_sequence;
        }
        let settled: Vec<_> = {
            let mut pending = self.pending.lock();
            let count = pending.partition_point(|(sequence, _)| *sequence < next_sequence);
            pending.drain(..count).collect()
        };
        for (_, mut one) in settled {
            let inner = Arc::clone(&one.inner);
            inner.finish(&mut one, 1, Finished::SetAside);
        }
        self.commits.resolve_below(next_sequence);
    }

    fn failed(&self, _: &Failure) {
        self.give_back();
        self.commits.fail();
    }
}

impl Core {
    pub(super) fn new(state: State) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(state), commits: Commits::default(), pending: Mutex::default() })
    }

    pub(super) fn take_number(&self) -> u64 {
        let mut state = self.state.lock();
        let number = state.next_number;
        state.next_number += 1;
        number
    }

    /// Appends a letter; its message is done with when it is durable.
    pub(super) fn append_pending(
        &self,
        journal: &Journal,
        admission: Admission,
        entry: Bytes,
        one: Batch,
    ) -> Result<(), (Batch, PutError)> {
        // Under the lock, so that the line is in the journal's order.
        let mut pending = self.pending.lock();
        match journal.append(admission, &[], entry) {
            Ok(sequence) => {
                pending.push_back((sequence, one));
                Ok(())
            }
            Err(_) => Err((one, PutError::failed())),
        }
    }

    /// How many letters are not durable yet.
    pub(super) fn pending_count(&self) -> u64 {
        self.pending.lock().len() as u64
    }

    /// What is not durable here will never be: its queues have it again.
    pub(super) fn give_back(&self) {
        let pending = std::mem::take(&mut *self.pending.lock());
        drop(pending);
    }
}

impl State {
    pub(super) fn apply(&mut self, position: u64, entry: &Bytes) {
        let place = Place { position, len: entry.len() as u64 };
        match Entry::of(entry) {
            Entry::Letter(number) => {
                self.next_number = self.next_number.max(number.saturating_add(1));
                self.bytes = self.bytes.saturating_add(place.len);
                if let Some(old) = self.live.insert(number, place) {
                    self.bytes = self.bytes.saturating_sub(old.len);
                }
            }
            Entry::Carried(number) => {
                if let Some(old) = self.live.get_mut(&number) {
                    *old = place;
                }
            }
            Entry::Removed(number) => {
                if let Some(old) = self.live.remove(&number) {
                    self.bytes = self.bytes.saturating_sub(old.len);
                }
            }
            Entry::Unknown => {}
        }
    }

    /// Position and number of each letter, by position.
    pub(super) fn places(&self) -> Vec<(u64, u64)> {
        let mut places: Vec<_> = self.live.iter().map(|(number, place)| (place.position, *number)).collect();
        places.sort_unstable();
        places
    }

    /// ```text
    /// | version u8 | next number u64 | count u32 | count times ( number u64 | position u64 | length u64 )
    /// ```
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.next_number.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.live.len()).unwrap_or(u32::MAX).to_le_bytes());
        for (number, place) in self.live.iter().take(u32::MAX as usize) {
            for field in [*number, place.position, place.len] {
                out.extend_from_slice(&field.to_le_bytes());
            }
        }
        out
    }

    /// The state of a checkpoint at this position.
    pub(super) fn decode(checkpoint: &Bytes, end: u64) -> Result<Self, Malformed> {
        let mut cut = Cut::new(checkpoint);
        let version = cut.u8("version")?;
        if version != VERSION {
            return Err(Malformed(format!("version {version} of a checkpoint of dead letters is not known")));
        }
        let mut state = Self { next_number: cut.u64("next number")?, end, ..Self::default() };
        for _ in 0..cut.count(24, "count of letters")? {
            let number = cut.u64("letter's number")?;
            let place = Place { position: cut.u64("letter's position")?, len: cut.u64("letter's length")? };
            state.bytes = state.bytes.saturating_add(place.len);
            state.live.insert(number, place);
        }
        Ok(state)
    }
}

const VERSION: u8 = 1;
