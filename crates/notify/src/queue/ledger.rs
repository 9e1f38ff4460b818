//! What a queue knows of its journal: how far it goes, what of it is done with, and where to find what is not. Pure.

use std::collections::VecDeque;

use bytes::Bytes;

use super::done::DoneSet;
use super::message::{Cut, MESSAGE, Malformed};

/// A place in the journal, and how many messages lie before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Where a group begins or ends.
    pub(super) position: u64,
    /// Number of the first message behind it.
    pub(super) number: u64,
    /// Bytes of all messages with lower numbers.
    pub(super) bytes: u64,
}

/// The state of a queue, folded from its journal. It takes a few bytes for each 256 KiB of journal, however many
/// messages wait: all that is known of a single one is its place in the order.
///
/// INVARIANT: marks ascend in position and number; the first is at or before the first message that is not done with,
/// and there is none if there is no such message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    end: Mark,
    done: DoneSet,
    marks: VecDeque<Mark>,
}

/// A group of entries, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Where it begins.
    pub(super) position: u64,
    pub(super) end: u64,
    pub(super) messages: u64,
    /// Bytes of these messages.
    pub(super) bytes: u64,
}

impl Ledger {
    /// Behind everything that was ever put.
    pub(super) const fn end(&self) -> Mark {
        self.end
    }

    /// The lowest number that is not done with; the next to be given if there is none.
    #[cfg(test)]
    pub(super) const fn head(&self) -> u64 {
        self.done.head()
    }

    /// How many messages are not done with, and their bytes.
    pub(super) fn live(&self) -> (u64, u64) {
        let (count, bytes) = self.done.totals();
        (self.end.number.saturating_sub(count), self.end.bytes.saturating_sub(bytes))
    }

    pub(super) fn is_done(&self, number: u64) -> bool {
        self.done.contains(number)
    }

    /// Where reading has to begin to find the first message that is not done with.
    pub(super) fn start(&self) -> Mark {
        self.marks.front().copied().unwrap_or(self.end)
    }

    /// The next place after this one from which reading can begin.
    pub(super) fn mark_after(&self, position: u64) -> Mark {
        let at = self.marks.partition_point(|mark| mark.position <= position);
        self.marks.get(at).copied().unwrap_or(self.end)
    }

    /// A group has been written. Marks are at least so many bytes apart.
    pub(super) fn wrote(&mut self, group: Group, mark_distance: u64) {
        let is_due = self
            .marks
            .back()
            .is_none_or(|last| group.position >= last.position.saturating_add(mark_distance));
        if group.messages > 0 && is_due {
            self.marks.push_back(Mark { position: group.position, ..self.end });
        }
        self.end = Mark {
            position: group.end,
            number: self.end.number.saturating_add(group.messages),
            bytes: self.end.bytes.saturating_add(group.bytes),
        };
    }

    /// Nothing more has to be done with this message. Tells whether that is news.
    pub(super) fn finish(&mut self, number: u64, bytes: u64) -> bool {
        let is_new = number < self.end.number && self.done.insert(number, bytes);
        self.forget_marks();
        is_new
    }

    /// Nothing can be done with the messages from one mark to another.
    pub(super) fn give_up(&mut self, from: Mark, to: Mark) {
        if from.number <= self.done.head() {
            self.done.raise_head(to.number, to.bytes);
        } else {
            self.done.insert_run(from.number, to.number, to.bytes.saturating_sub(from.bytes));
        }
        self.forget_marks();
    }

    /// What was written earlier of what is done with.
    pub(super) fn merge(&mut self, done: &DoneSet) {
        self.done.merge(done);
    }

    /// After replay: drops what no longer matters. A checkpoint stands for this opening's owner epoch, so it may not lie
    /// before groups of earlier ones that nobody was told of.
    pub(super) fn settle(&mut self, end: u64) {
        self.end.position = end;
        if self.done.totals().0 > self.end.number {
            // The log was cut before what it says is done with: there is nothing left of it.
            self.done = DoneSet::default();
            self.done.raise_head(self.end.number, self.end.bytes);
        }
        self.forget_marks();
    }

    fn forget_marks(&mut self) {
        let head = self.done.head();
        if head >= self.end.number {
            self.marks.clear();
        }
        while self.marks.get(1).is_some_and(|second| second.number <= head) {
            self.marks.pop_front();
        }
    }

    /// The entry that tells what is done with.
    pub(super) fn encode_done(&self) -> Vec<u8> {
        let mut out = vec![DONE];
        self.done.encode(RUNS_MAX, &mut out);
        out
    }

    /// The content of a checkpoint.
    ///
    /// ```text
    /// version u8 | end mark | done | count u32 | count times mark        mark: position u64 | number u64 | bytes u64
    /// ```
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        encode_mark(&self.end, &mut out);
        self.done.encode(usize::MAX, &mut out);
        out.extend_from_slice(&u32::try_from(self.marks.len()).unwrap_or(u32::MAX).to_le_bytes());
        for mark in self.marks.iter().take(u32::MAX as usize) {
            encode_mark(mark, &mut out);
        }
        out
    }

    pub(super) fn decode(checkpoint: &Bytes) -> Result<Self, Malformed> {
        let mut cut = Cut::new(checkpoint);
        let version = cut.u8("version")?;
        if version != VERSION {
            return Err(Malformed(format!("version {version} of a queue's checkpoint is not known")));
        }
        let end = decode_mark(&mut cut)?;
        let done = DoneSet::decode(&mut cut)?;
        let mut marks = VecDeque::new();
        for _ in 0..cut.count(24, "count of marks")? {
            let mark = decode_mark(&mut cut)?;
            let ascends = marks.back().is_none_or(|last: &Mark| {
                mark.position > last.position && mark.number > last.number && mark.bytes >= last.bytes
            });
            if !ascends || mark.position > end.position || mark.number > end.number {
                return Err(Malformed(format!("the mark at position {} is out of order", mark.position)));
            }
            marks.push_back(mark);
        }
        Ok(Self { end, done, marks })
    }
}

/// Whether an entry of the journal is a message. What is not known counts as one: it is not lost in silence then.
pub(super) fn is_message(entry: &[u8]) -> bool {
    entry.first() != Some(&DONE)
}

/// What an entry says is done with; `None` if it says nothing of that, or nothing that can be read.
pub(super) fn done_of(entry: &Bytes) -> Option<DoneSet> {
    let mut cut = Cut::new(entry);
    (cut.u8("kind").ok()? == DONE).then(|| DoneSet::decode(&mut cut).ok())?
}

fn encode_mark(mark: &Mark, out: &mut Vec<u8>) {
    for number in [mark.position, mark.number, mark.bytes] {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn decode_mark(cut: &mut Cut) -> Result<Mark, Malformed> {
    let position = cut.u64("mark's position")?;
    Ok(Mark { position, number: cut.u64("mark's number")?, bytes: cut.u64("mark's bytes")? })
}

/// Kind of the entries that tell what is done with.
const DONE: u8 = 2;
const _: () = assert!(DONE != MESSAGE, "kinds of entries differ");
const VERSION: u8 = 1;
/// More are told by checkpoints only. They come from messages that were finished out of order.
const RUNS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const MARK_DISTANCE: u64 = 256 << 10;

    /// A ledger beside every message that it should know of.
    #[derive(Debug, Default)]
    struct Twin {
        ledger: Ledger,
        /// Position and bytes of each message.
        messages: Vec<(u64, u64)>,
        done: BTreeSet<u64>,
    }

    impl Twin {
        fn wrote(&mut self, lens: &[u64], blocks: u64) {
            let position = self.ledger.end().position;
            let end = self.ledger.end().position + 4096 * blocks;
            let (messages, bytes) = (lens.len() as u64, lens.iter().sum());
            self.ledger.wrote(Group { position, end, messages, bytes }, MARK_DISTANCE);
            self.messages.extend(lens.iter().map(|len| (position, *len)));
        }

        fn finish(&mut self, number: u64) {
            let Some((_, bytes)) = self.messages.get(usize::try_from(number).unwrap()) else { return };
            assert_eq!(self.ledger.finish(number, *bytes), self.done.insert(number));
        }

        #[track_caller]
        fn check(&self) {
            let live = (0..).zip(&self.messages).filter(|(number, _)| !self.done.contains(number));
            let live: Vec<_> = live.collect();
            let bytes = live.iter().map(|(_, (_, bytes))| bytes).sum();
            assert_eq!(self.ledger.live(), (live.len() as u64, bytes));
            let start = self.ledger.start();
            match live.first() {
                None => assert_eq!(start, self.ledger.end()),
                Some((first, (position, _))) => {
                    assert!(start.number <= *first && start.position <= *position);
                    // No more than the distance of two marks, or one group, has to be read in vain.
                    assert!(position - start.position < 2 * MARK_DISTANCE + 4096 * 100);
                    let before = &self.messages[..usize::try_from(start.number).unwrap()];
                    assert_eq!(start.bytes, before.iter().map(|(_, bytes)| bytes).sum::<u64>());
                }
            }
            let read = Ledger::decode(&self.ledger.encode().into()).unwrap();
            assert_eq!(read, self.ledger);
        }
    }

    proptest! {
        #[test]
        fn it_knows_what_waits_and_where(
            steps in prop::collection::vec((prop::collection::vec(1_u64..5000, 0..6), 1_u64..100, prop::collection::vec(any::<u16>(), 0..6)), 1..60),
        ) {
            let mut twin = Twin::default();
            for (lens, blocks, finished) in steps {
                twin.wrote(&lens, blocks);
                for pick in finished {
                    // Mostly the oldest.
                    let back = if pick % 4 == 0 { u64::from(pick) % (twin.messages.len() as u64 + 1) } else { 0 };
                    twin.finish(twin.ledger.head() + back);
                }
                twin.check();
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_given_up_to_the_next_mark() {
        let mut twin = Twin::default();
        for _ in 0..3 {
            twin.wrote(&[10, 20], 64);
        }
        let first = twin.ledger.start();
        let second = twin.ledger.mark_after(first.position);
        assert_eq!((second.number, second.bytes), (2, 30));
        twin.finish(4);
        twin.ledger.give_up(second, twin.ledger.mark_after(second.position));
        assert_eq!(twin.ledger.live(), (3, 50), "0, 1 and 5");
        twin.ledger.give_up(first, second);
        assert_eq!(twin.ledger.live(), (1, 20));
        assert_eq!(twin.ledger.start().number, 4);
        twin.ledger.give_up(twin.ledger.start(), twin.ledger.end());
        assert_eq!((twin.ledger.live(), twin.ledger.start()), ((0, 0), twin.ledger.end()));
    }

    #[test]
    fn a_log_that_was_cut_before_what_is_done_with_has_nothing_left() {
        let mut twin = Twin::default();
        twin.wrote(&[10, 20], 1);
        twin.finish(0);
        twin.finish(1);
        let done = done_of(&twin.ledger.encode_done().into()).unwrap();
        let mut ledger = Ledger::default();
        ledger.wrote(Group { position: 0, end: 4096, messages: 1, bytes: 10 }, MARK_DISTANCE);
        ledger.merge(&done);
        ledger.settle(4096);
        assert_eq!((ledger.live(), ledger.head()), ((0, 0), 1));
    }

    #[test]
    fn entries_are_told_apart_by_their_kind() {
        let done = Ledger::default().encode_done();
        assert!(!is_message(&done) && is_message(&[MESSAGE]) && is_message(&[77]) && is_message(&[]));
        assert_eq!(done_of(&Bytes::from_static(&[MESSAGE])), None);
        assert_eq!(done_of(&Bytes::copy_from_slice(&done[..5])), None);
    }
}
