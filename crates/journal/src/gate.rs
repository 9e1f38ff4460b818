//! Admission and the queue: what callers and the writer share under one lock, held briefly.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::error::{AdmitErrorKind, Failure};
use crate::flights::Fault;
use crate::format::{ENTRY_FRAME_LEN, GROUP_HEADER_LEN};
use crate::options::{Class, Options};
use crate::position::round_up;

/// The longest part of an entry that is copied when it is appended.
pub(crate) const HEAD_LEN_MAX: usize = 256;

/// An entry that waits for the writer.
#[derive(Debug)]
pub(crate) struct Pending {
    head: [u8; HEAD_LEN_MAX],
    head_len: usize,
    pub(crate) body: Bytes,
    pub(crate) cost: u64,
}

impl Pending {
    /// `None` if the head is too long.
    pub(crate) fn new(head: &[u8], body: Bytes, cost: u64) -> Option<Self> {
        let mut inline = [0; HEAD_LEN_MAX];
        inline.get_mut(..head.len())?.copy_from_slice(head);
        Some(Self { head: inline, head_len: head.len(), body, cost })
    }

    pub(crate) fn head(&self) -> &[u8] {
        self.head.get(..self.head_len).unwrap_or_default()
    }

    /// Length of the entry in a group, with its frame.
    pub(crate) fn framed_len(&self) -> usize {
        ENTRY_FRAME_LEN + self.head_len + self.body.len()
    }
}

/// What callers and the writer share.
///
/// INVARIANT: `reserved <= room()`, except for the mutant without reservations. Writing keeps it: a group is at most as
/// long as the sum of its entries' costs, and a file is left only when the next entry does not fit in its rest, which
/// `certain_room` counts as nothing.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is set and cleared on its own")]
pub(crate) struct Gate {
    pub(crate) queue: VecDeque<Pending>,
    /// The sum of the lengths of what is in the queue, with what stands before each entry.
    pub(crate) queue_len: usize,
    /// The writer is woken when the queue becomes longer than this.
    pub(crate) wake_len: usize,
    /// What has become of groups on their way to the disk since the writer last looked.
    pub(crate) landed: Landed,
    pub(crate) next_sequence: u64,
    /// The sum of the costs of what was admitted and is not yet committed.
    pub(crate) reserved: u64,
    /// What is left of the active file.
    pub(crate) active_rest: u64,
    /// How many preallocated files wait to become active.
    pub(crate) prepared: u64,
    /// Whether the disk or the size limit refused another file.
    pub(crate) growth_refused: bool,
    /// Why it did, if for another reason than a lack of space.
    pub(crate) growth_error: Option<String>,
    /// Whether an append was refused for lack of a file since the writer last tried to make one.
    pub(crate) growth_wanted: bool,
    /// Whether an append was refused since room was last told.
    pub(crate) refused: bool,
    /// Whether room was made that the writer shall tell of.
    pub(crate) room_made: bool,
    pub(crate) failure: Option<Failure>,
    pub(crate) closing: bool,
}

/// The outcome of groups that were written on another thread than the writer's.
#[derive(Debug, Default)]
pub(crate) struct Landed {
    /// How many have arrived.
    pub(crate) count: usize,
    /// Why the next one did not, and what was being done. Nothing arrives after it.
    pub(crate) error: Option<Fault>,
}

impl Gate {
    /// Queues an entry up; tells whether the writer waits for it.
    pub(crate) fn push(&mut self, pending: Pending) -> bool {
        let before = self.queue_len;
        self.queue_len += pending.framed_len();
        self.queue.push_back(pending);
        before <= self.wake_len && self.queue_len > self.wake_len
    }

    /// Whether nothing waits in the queue.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Empties the queue: the entries are lost.
    pub(crate) fn lose(&mut self) -> VecDeque<Pending> {
        self.reserved = 0;
        self.queue_len = 0;
        std::mem::take(&mut self.queue)
    }

    /// Whether the queue is longer than `len`. If not, the writer is woken when it becomes so.
    pub(crate) fn has_more_than(&mut self, len: usize) -> bool {
        self.wake_len = len;
        self.queue_len > len
    }

    /// Bytes of groups that can certainly be written, whatever the lengths of the entries.
    pub(crate) fn room(&self, options: &Options) -> u64 {
        let files = self.prepared.saturating_mul(options.certain_room(options.file_room()));
        options.certain_room(self.active_rest).saturating_add(files)
    }

    /// The room for this class: data leaves one file for what frees files.
    pub(crate) fn room_for(&self, class: Class, options: &Options) -> u64 {
        let kept = match class {
            Class::Data => options.certain_room(options.file_room()),
            Class::Reclaim => 0,
        };
        self.room(options).saturating_sub(kept)
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.failure.is_some() || self.closing
    }

    /// Reserves room for an entry of this cost.
    pub(crate) fn admit(&mut self, cost: u64, class: Class, options: &Options) -> Result<(), AdmitErrorKind> {
        if self.is_read_only() {
            return Err(AdmitErrorKind::ReadOnly);
        }
        let wanted = self.reserved.saturating_add(cost);
        if wanted > options.queue_len_max as u64 {
            self.refused = true;
            return Err(AdmitErrorKind::Busy);
        }
        let room = self.room_for(class, options);
        if wanted > room && !admits_unreserved(options) {
            self.refused = true;
            self.growth_wanted = true;
            // Entries share groups, so writing what waits may give more room than was counted for it.
            let is_full = self.growth_refused && cost > room;
            return Err(if is_full { AdmitErrorKind::Full } else { AdmitErrorKind::Busy });
        }
        self.reserved = wanted;
        Ok(())
    }

    /// Gives back what was reserved and not used.
    pub(crate) fn release(&mut self, cost: u64) {
        debug_assert!(self.reserved >= cost, "what is released was reserved");
        self.reserved = self.reserved.saturating_sub(cost);
        self.room_made = true;
    }

    /// Room that the first waiting entry needs in a file.
    pub(crate) fn first_cost(&self) -> Option<u64> {
        self.queue.front().map(|pending| round_up((GROUP_HEADER_LEN + pending.framed_len()) as u64))
    }

    /// Moves entries out of the queue into a group that has a payload of `payload_len` already: as many as fit in
    /// `rest` and under the limit, and the first of a group in any case. Returns the length of the group's payload.
    pub(crate) fn take(
        &mut self,
        into: &mut Vec<Pending>,
        mut payload_len: usize,
        rest: u64,
        options: &Options,
    ) -> usize {
        let limit = rest.min(options.group_len_max as u64);
        while let Some(pending) = self.queue.front() {
            let grown = payload_len + pending.framed_len();
            if payload_len > 0 && round_up((GROUP_HEADER_LEN + grown) as u64) > limit {
                break;
            }
            self.queue_len -= grown - payload_len;
            payload_len = grown;
            into.extend(self.queue.pop_front());
        }
        payload_len
    }
}

#[cfg(feature = "test-util")]
fn admits_unreserved(options: &Options) -> bool {
    options.has(crate::Mutant::AdmitsUnreserved)
}

#[cfg(not(feature = "test-util"))]
fn admits_unreserved(_: &Options) -> bool {
    false
}
