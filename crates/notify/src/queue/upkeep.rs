//! What the keeper of a queue does: reading ahead, freeing files, checkpoints, and keeping aside what cannot be read.

use std::ops::ControlFlow;

use bytes::Bytes;
use kolumn_journal::{BLOCK, Position, ReadErrorKind};

use super::core::{Found, Life};
use super::inner::Inner;
use super::ledger::{Mark, is_message};
use super::quarantine;

impl Inner {
    /// Does what there is to do; tells whether there may be more.
    pub(super) fn work(&self) -> bool {
        let closing = self.closing.lock().take();
        if let Some(closed) = closing {
            self.finish_closing();
            closed.send(()).ok();
            return false;
        }
        if self.core.state.lock().life == Life::Closed {
            return false;
        }
        let read = self.read_ahead();
        self.write_done();
        let freed = self.tidy(false);
        if let Some(letters) = &self.core.options.dead_letters {
            letters.tidy();
        }
        read || freed
    }

    /// Reads messages into the window until it is full or nothing is left to be read.
    fn read_ahead(&self) -> bool {
        let core = &self.core;
        let (cursor, to, room) = {
            let mut state = core.state.lock();
            let room = core.options.window_len.saturating_sub(state.window.held());
            if state.caught_up || room < core.options.window_len / 2 {
                return false;
            }
            let end = state.ledger.end();
            if state.cursor.position >= end.position {
                state.caught_up = true;
                return false;
            }
            (state.cursor, end, room)
        };
        let mut at = cursor;
        let mut found = Vec::new();
        let mut group_end = None;
        let scanned =
            self.journal.scan(Position::new(cursor.position), Position::new(to.position), |entry| {
                let begins = group_end != Some(entry.group_end);
                let read = entry.position.value().saturating_sub(cursor.position);
                if begins && group_end.is_some() && read > room as u64 {
                    return ControlFlow::Break(());
                }
                group_end = Some(entry.group_end);
                at.position = entry.group_end.value();
                if is_message(&entry.bytes) {
                    let len = entry.bytes.len() as u64;
                    found.push(Found::new(entry.position.value(), at.number, entry.bytes));
                    at.number = at.number.saturating_add(1);
                    at.bytes = at.bytes.saturating_add(len);
                }
                ControlFlow::Continue(())
            });
        match scanned {
            Ok(end) => at.position = end.value(),
            Err(error) if group_end.is_none() => {
                let is_refused = error.kind() == ReadErrorKind::Io;
                if is_refused && core.state.lock().count_refused_read(cursor.position) < READ_TRIES {
                    return true;
                }
                return self.give_up(cursor, &error.to_string(), is_refused);
            }
            // What was read before it is whole.
            Err(_) => {}
        }
        self.take_in(found, at);
        true
    }

    fn take_in(&self, found: Vec<Found>, at: Mark) {
        let core = &self.core;
        let mut unread = Vec::new();
        {
            let mut state = core.state.lock();
            unread.extend(found.into_iter().filter_map(|found| state.admit_to_window(found)));
            state.cursor = at;
            state.caught_up = at.position >= state.ledger.end().position;
        }
        for (found, error) in unread {
            quarantine::keep(&*self.disk, found.position, &found.entry, &error.to_string());
            let mut state = core.state.lock();
            state.finish(found.number, found.entry.len() as u64);
            state.counts.damaged += 1;
        }
        core.arrivals.notify_waiters();
        core.space.notify_waiters();
    }

    /// What follows the cursor cannot be read: keeps its bytes aside and goes on behind it. Unless it is the disk that
    /// refuses, there and elsewhere: then it may come back, and the next who takes or puts has it tried again.
    fn give_up(&self, cursor: Mark, why: &str, is_refused: bool) -> bool {
        let next = self.core.state.lock().ledger.mark_after(cursor.position);
        let (hole_end, found) = self.salvage(cursor, next);
        if is_refused && found.is_empty() && !self.can_read(next) {
            return false;
        }
        if hole_end.number > cursor.number {
            let bytes = self.raw(cursor.position, hole_end.position);
            quarantine::keep(&*self.disk, cursor.position, &bytes, why);
        }
        {
            let mut state = self.core.state.lock();
            let before = state.ledger.live().0;
            state.ledger.give_up(cursor, hole_end);
            let lost = before.saturating_sub(state.ledger.live().0);
            state.counts.damaged = state.counts.damaged.saturating_add(lost);
            state.unwritten = true;
        }
        self.take_in(found, next);
        true
    }

    /// The first place between these marks from which everything up to the second can be read, and what lies there. How
    /// many messages lie before it nobody knows, so they are numbered back from the second mark.
    fn salvage(&self, cursor: Mark, next: Mark) -> (Mark, Vec<Found>) {
        let block = BLOCK as u64;
        let first = cursor.position - cursor.position % block + block;
        for position in (0..SALVAGE_BLOCKS_MAX).map(|nth| first.saturating_add(nth * block)) {
            if position >= next.position {
                break;
            }
            let mut entries = Vec::new();
            let (from, to) = (Position::new(position), Position::new(next.position));
            let scanned = self.journal.scan(from, to, |entry| {
                if is_message(&entry.bytes) {
                    entries.push((entry.position.value(), entry.bytes));
                }
                ControlFlow::Continue(())
            });
            if scanned.is_ok() {
                let bytes: u64 = entries.iter().map(|(_, entry)| entry.len() as u64).sum();
                let number = next.number.saturating_sub(entries.len() as u64);
                let found = (number..).zip(entries);
                let found = found.map(|(number, (position, entry))| Found::new(position, number, entry));
                let hole_end = Mark { position, number, bytes: next.bytes.saturating_sub(bytes) };
                return (hole_end, found.collect());
            }
        }
        (next, Vec::new())
    }

    /// Whether there is an entry behind this mark that can be read.
    fn can_read(&self, from: Mark) -> bool {
        let end = self.core.state.lock().ledger.end();
        let mut is_read = false;
        let scanned = self.journal.scan(Position::new(from.position), Position::new(end.position), |_| {
            is_read = true;
            ControlFlow::Break(())
        });
        scanned.is_ok() && is_read
    }

    /// The bytes between two positions, as far as they lie in the file of the first and can be read.
    fn raw(&self, from: u64, to: u64) -> Bytes {
        let files = self.journal.files();
        let Some(file) = files.iter().rev().find(|file| file.base.value() <= from) else {
            return Bytes::new();
        };
        let from = from.max(file.base.value() + BLOCK as u64);
        let len = to.min(file.end_written.value()).saturating_sub(from).min(RAW_LEN_MAX);
        let len = usize::try_from(len).unwrap_or(0);
        self.journal.read(Position::new(from), len).unwrap_or_default()
    }

    /// Writes a checkpoint if one is due, and frees the files that hold nothing that matters. Tells whether one was freed.
    fn tidy(&self, at_the_end: bool) -> bool {
        let (needed, end, checkpointed) = {
            let state = self.core.state.lock();
            (state.ledger.start().position, state.ledger.end().position, state.checkpointed)
        };
        let files = self.journal.files();
        let dead: Vec<_> =
            files.iter().filter(|file| !file.active && file.end_written.value() <= needed).collect();
        let is_far = end.saturating_sub(checkpointed) >= self.core.options.checkpoint_distance;
        let uncovered = dead.iter().any(|file| file.end_written.value() > checkpointed);
        if at_the_end || is_far || (uncovered && end > checkpointed) {
            self.write_checkpoint();
        }
        let covered = self.core.state.lock().checkpointed;
        let mut freed = false;
        for file in dead {
            if file.end_written.value() <= covered {
                freed |= self.journal.free(file.base).is_ok();
            }
        }
        freed
    }

    /// A checkpoint that fails is tried again when the next is due.
    fn write_checkpoint(&self) {
        let (position, payload) = {
            let state = self.core.state.lock();
            (state.ledger.end().position, state.ledger.encode())
        };
        if self.journal.write_checkpoint(Position::new(position), &payload).is_ok() {
            self.core.state.lock().checkpointed = position;
        }
    }

    pub(super) fn finish_closing(&self) {
        if std::mem::replace(&mut self.core.state.lock().ended, true) {
            return;
        }
        self.tidy(true);
        self.journal.close();
        self.core.commits.fail();
    }
}

/// A read that the disk refuses is tried so often, at once, before the place is suspected.
const READ_TRIES: u32 = 3;
/// Behind so many blocks that cannot be read, the rest up to the next mark is given up as well: each try reads again what
/// lies before it.
const SALVAGE_BLOCKS_MAX: u64 = 64;
/// The most bytes of one hole that are kept aside.
const RAW_LEN_MAX: u64 = 4 << 20;
