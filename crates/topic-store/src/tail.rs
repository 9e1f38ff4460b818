//! The newest blocks in memory, from which readers that keep up are served without a look at the disk.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use kolumn_journal::CommittedGroup;

/// INVARIANT: groups and the entries in them ascend by position; `len` is the sum of the groups' costs and at most
/// `len_max`.
#[derive(Debug)]
pub(crate) struct Tail {
    groups: VecDeque<Group>,
    len: usize,
    len_max: usize,
}

#[derive(Debug)]
struct Group {
    position: u64,
    end: u64,
    cost: usize,
    /// (position of the first byte, bytes) of each entry.
    entries: Vec<(u64, Bytes)>,
}

impl Tail {
    pub(crate) const fn new(len_max: usize) -> Self {
        Self { groups: VecDeque::new(), len: 0, len_max }
    }

    /// Takes a group in and lets the oldest ones go that no longer fit.
    pub(crate) fn push(&mut self, group: &CommittedGroup) {
        let entries: Vec<_> =
            group.entries.iter().map(|entry| (entry.position.value(), entry.bytes.clone())).collect();
        let bookkeeping = size_of::<Group>() + entries.len() * size_of::<(u64, Bytes)>();
        let cost = group.block_len.saturating_add(bookkeeping);
        self.len = self.len.saturating_add(cost);
        let (position, end) = (group.position.value(), group.end.value());
        self.groups.push_back(Group { position, end, cost, entries });
        while self.len > self.len_max {
            let Some(oldest) = self.groups.pop_front() else { break };
            self.len = self.len.saturating_sub(oldest.cost);
        }
    }

    /// The bytes at a position, if they are still here and lie within one entry.
    pub(crate) fn get(&self, position: u64, len: usize) -> Option<Bytes> {
        let after = self.groups.partition_point(|group| group.position <= position);
        let group = self.groups.get(after.checked_sub(1)?).filter(|group| position < group.end)?;
        let after = group.entries.partition_point(|(start, _)| *start <= position);
        let (start, bytes) = group.entries.get(after.checked_sub(1)?)?;
        let from = usize::try_from(position - start).ok()?;
        let to = from.checked_add(len)?;
        (to <= bytes.len()).then(|| bytes.slice(from..to))
    }

    /// The entries that begin in a range of positions, if none of what was written there has left.
    pub(crate) fn entries(&self, range: Range<u64>) -> Option<impl Iterator<Item = (u64, &Bytes)>> {
        let after = self.groups.partition_point(|group| group.position <= range.start);
        let first = after.checked_sub(1)?;
        let groups = self.groups.range(first..).take_while(move |group| group.position < range.end);
        let entries = groups.flat_map(|group| &group.entries);
        let inside = entries.filter(move |(start, _)| (range.start..range.end).contains(start));
        Some(inside.map(|(start, bytes)| (*start, bytes)))
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}
