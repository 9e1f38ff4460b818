//! Responses in the order of their requests, and the place up to which they were written.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use smallvec::SmallVec;

/// A response's bytes, length prefix included: pieces in memory and ranges that are fetched while sending.
#[derive(Debug)]
pub struct Response<S> {
    /// One, unless it has ranges.
    parts: SmallVec<[Part<S>; 1]>,
}

impl<S> Response<S> {
    /// A response without content yet.
    #[must_use]
    pub fn new() -> Self {
        Self { parts: SmallVec::new() }
    }

    /// Adds bytes.
    pub fn push_bytes(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.parts.push(Part::Bytes(bytes));
        }
    }

    /// Adds a range of `len` bytes that the shell resolves while it sends.
    pub fn push_range(&mut self, source: S, len: usize) {
        if len > 0 {
            self.parts.push(Part::Range { source, len, start: 0 });
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    fn owned_len(&self) -> usize {
        self.parts.iter().map(Part::owned_len).sum()
    }
}

impl<S> Default for Response<S> {
    fn default() -> Self {
        Self::new()
    }
}

/// Something to write.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a writer must know every kind")]
pub enum Chunk<'c, S> {
    /// Bytes in memory.
    Bytes(Bytes),
    /// `len` bytes of `source`, from `start` on.
    Range {
        /// Where the bytes come from.
        source: &'c S,
        /// First byte within the source.
        start: usize,
        /// Number of bytes.
        len: usize,
    },
}

/// INVARIANT: `parts` holds the unsent rest of the oldest responses, `handed <= parts.len()`;
/// `slots` holds the requests behind them, the first one without an answer.
#[derive(Debug)]
pub(super) struct Output<S> {
    parts: VecDeque<Sending<S>>,
    /// Where transmit goes on: an index in `parts` and a byte within that part.
    handed: (usize, usize),
    slots: VecDeque<Slot<S>>,
    next_slot: u64,
    responses_unsent: usize,
    unsent_len: usize,
    owned_len: usize,
    frames_len: usize,
}

#[derive(Debug)]
struct Slot<S> {
    frame_len: usize,
    state: SlotState<S>,
}

#[derive(Debug)]
enum SlotState<S> {
    Waiting,
    Answered(Response<S>),
    Skipped,
}

#[derive(Debug)]
struct Sending<S> {
    part: Part<S>,
    ends_response: bool,
}

#[derive(Debug)]
enum Part<S> {
    Bytes(Bytes),
    Range { source: S, len: usize, start: usize },
}

impl<S> Part<S> {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Range { len, .. } => *len,
        }
    }

    fn owned_len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Range { .. } => 0,
        }
    }
}

impl<S> Output<S> {
    pub(super) fn new() -> Self {
        Self {
            parts: VecDeque::new(),
            handed: (0, 0),
            slots: VecDeque::new(),
            next_slot: 0,
            responses_unsent: 0,
            unsent_len: 0,
            owned_len: 0,
            frames_len: 0,
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.slots.len() + self.responses_unsent
    }

    /// Bytes of answers in memory, ranges not counted.
    pub(super) fn answer_len(&self) -> usize {
        self.owned_len
    }

    /// Bytes that may be written now.
    pub(super) fn unsent_len(&self) -> usize {
        self.unsent_len
    }

    pub(super) fn frames_len(&self) -> usize {
        self.frames_len
    }

    /// Whether the peer waits for us, not the other way round.
    pub(super) fn is_answering(&self) -> bool {
        !self.slots.is_empty() && self.unsent_len == 0
    }

    pub(super) fn open_slot(&mut self, frame_len: usize) -> u64 {
        let id = self.next_slot;
        self.next_slot += 1;
        self.frames_len += frame_len;
        self.slots.push_back(Slot { frame_len, state: SlotState::Waiting });
        id
    }

    /// Sets the answer of a slot; a slot that was answered before, or never opened, is left alone.
    pub(super) fn fill(&mut self, id: u64, response: Option<Response<S>>) {
        let first = self.next_slot - self.slots.len() as u64;
        let index = id.checked_sub(first).and_then(|index| usize::try_from(index).ok());
        let Some(slot) = index.and_then(|index| self.slots.get_mut(index)) else { return };
        if !matches!(slot.state, SlotState::Waiting) {
            return;
        }
        self.frames_len -= slot.frame_len;
        slot.state = match response.filter(|response| !response.is_empty()) {
            Some(response) => {
                self.owned_len += response.owned_len();
                SlotState::Answered(response)
            }
            None => SlotState::Skipped,
        };
        self.release_answered();
    }

    pub(super) fn transmit(&mut self, budget: usize) -> Option<Chunk<'_, S>> {
        let (index, within) = self.handed;
        let part = &self.parts.get(index)?.part;
        let len = (part.len() - within).min(budget);
        if len == 0 {
            return None;
        }
        self.handed = if within + len == part.len() { (index + 1, 0) } else { (index, within + len) };
        Some(match part {
            Part::Bytes(bytes) => Chunk::Bytes(bytes.slice(within..within + len)),
            Part::Range { source, start, .. } => Chunk::Range { source, start: start + within, len },
        })
    }

    pub(super) fn sent(&mut self, mut len: usize) {
        len = len.min(self.unsent_len);
        self.unsent_len -= len;
        while len > 0 {
            let Some(front) = self.parts.front_mut() else { break };
            let taken = front.part.len().min(len);
            len -= taken;
            match &mut front.part {
                Part::Bytes(bytes) => {
                    self.owned_len -= taken;
                    bytes.advance(taken);
                }
                Part::Range { len, start, .. } => {
                    *len -= taken;
                    *start += taken;
                }
            }
            if front.part.len() == 0 {
                self.responses_unsent -= usize::from(front.ends_response);
                self.parts.pop_front();
            }
        }
        self.rewind();
        self.check();
    }

    pub(super) fn rewind(&mut self) {
        self.handed = (0, 0);
    }

    fn release_answered(&mut self) {
        while let Some(slot) = self.slots.pop_front_if(|slot| !matches!(slot.state, SlotState::Waiting)) {
            let SlotState::Answered(response) = slot.state else { continue };
            self.unsent_len += response.len();
            self.responses_unsent += 1;
            let count = response.parts.len();
            self.parts.extend(
                response
                    .parts
                    .into_iter()
                    .enumerate()
                    .map(|(index, part)| Sending { part, ends_response: index + 1 == count }),
            );
        }
        self.check();
    }

    fn check(&self) {
        debug_assert!(self.handed.0 <= self.parts.len(), "handed out beyond the parts");
        debug_assert!(self.responses_unsent <= self.parts.len(), "every unsent response has a part");
        debug_assert!(
            self.slots.front().is_none_or(|slot| matches!(slot.state, SlotState::Waiting)),
            "an answered response is held back"
        );
    }
}
