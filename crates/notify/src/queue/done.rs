//! Which messages of a queue are done with.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::message::{Cut, Malformed};

/// A set of numbers that is nearly always a beginning: all below the head, and a few runs above it.
///
/// It also sums the bytes of what is in it, so that what is not in it need not be looked at to know how much it is.
///
/// INVARIANT: runs are not empty, do not touch each other, and begin above the head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DoneSet {
    head: u64,
    /// Bytes of everything below the head.
    head_bytes: u64,
    /// By its first number, where a run ends and how many bytes it has.
    runs: BTreeMap<u64, (u64, u64)>,
    /// Sums over the runs.
    above: (u64, u64),
}

impl DoneSet {
    /// The lowest number that is not in the set.
    pub(super) const fn head(&self) -> u64 {
        self.head
    }

    /// How many numbers are in the set, and their bytes.
    pub(super) const fn totals(&self) -> (u64, u64) {
        (self.head.saturating_add(self.above.0), self.head_bytes.saturating_add(self.above.1))
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        number < self.head || self.run_at(number).is_some()
    }

    /// Adds one number; tells whether it was missing.
    pub(super) fn insert(&mut self, number: u64, bytes: u64) -> bool {
        if self.contains(number) {
            return false;
        }
        self.insert_run(number, number.saturating_add(1), bytes);
        true
    }

    /// Everything below this number is in the set, and has so many bytes.
    pub(super) fn raise_head(&mut self, head: u64, bytes: u64) {
        if head <= self.head {
            return;
        }
        self.head = head;
        self.head_bytes = bytes;
        // A run across the new head is forgotten: how many of its bytes lie below is not known. What was in it is then
        // delivered twice, which may happen anyhow.
        while let Some(entry) = self.runs.first_entry().filter(|entry| *entry.key() < head) {
            let (first, (end, len)) = entry.remove_entry();
            self.above = (self.above.0.saturating_sub(end - first), self.above.1.saturating_sub(len));
        }
        self.absorb();
        self.check();
    }

    /// Adds the numbers from `first` to before `end`, which have so many bytes together. Runs that it reaches into
    /// without lying in them are forgotten, as are those within it.
    pub(super) fn insert_run(&mut self, first: u64, end: u64, bytes: u64) {
        let inside = self.run_at(first).is_some_and(|(_, old_end, _)| end <= old_end);
        if first >= end || first < self.head || inside {
            return;
        }
        if let Some((old, ..)) = self.run_at(first) {
            self.remove(old);
        }
        while let Some((old, _)) = self.runs.range(first..end).next() {
            self.remove(*old);
        }
        self.above = (self.above.0.saturating_add(end - first), self.above.1.saturating_add(bytes));
        let (mut first, mut end, mut bytes) = (first, end, bytes);
        if let Some((below, (below_end, len))) = self.runs.range(..first).next_back()
            && *below_end == first
        {
            (first, bytes) = (*below, bytes.saturating_add(*len));
        }
        if let Some((above_end, len)) = self.runs.remove(&end) {
            (end, bytes) = (above_end, bytes.saturating_add(len));
        }
        self.runs.insert(first, (end, bytes));
        self.absorb();
        self.check();
    }

    /// Adds what is in the other set.
    pub(super) fn merge(&mut self, other: &Self) {
        self.raise_head(other.head, other.head_bytes);
        for (first, (end, bytes)) in &other.runs {
            self.insert_run(*first, *end, *bytes);
        }
    }

    /// Appends the set, with at most so many runs: the lowest.
    ///
    /// ```text
    /// head u64 | bytes u64 | count u32 | count times ( first u64 | end u64 | bytes u64 )
    /// ```
    pub(super) fn encode(&self, runs_max: usize, out: &mut Vec<u8>) {
        let count = self.runs.len().min(runs_max).min(u32::MAX as usize);
        out.extend_from_slice(&self.head.to_le_bytes());
        out.extend_from_slice(&self.head_bytes.to_le_bytes());
        out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
        for (first, (end, bytes)) in self.runs.iter().take(count) {
            for number in [first, end, bytes] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
    }

    pub(super) fn decode(cut: &mut Cut) -> Result<Self, Malformed> {
        let mut set = Self::default();
        let (head, bytes) = (cut.u64("number of the first message")?, cut.u64("bytes before it")?);
        set.raise_head(head, bytes);
        for _ in 0..cut.count(24, "count of runs")? {
            let (first, end) = (cut.u64("run's first number")?, cut.u64("run's end")?);
            set.insert_run(first, end, cut.u64("run's bytes")?);
        }
        Ok(set)
    }

    fn run_at(&self, number: u64) -> Option<(u64, u64, u64)> {
        let (first, (end, bytes)) = self.runs.range(..=number).next_back()?;
        (number < *end).then_some((*first, *end, *bytes))
    }

    fn remove(&mut self, first: u64) {
        if let Some((end, bytes)) = self.runs.remove(&first) {
            self.above = (self.above.0.saturating_sub(end - first), self.above.1.saturating_sub(bytes));
        }
    }

    /// The head moves over a run that begins there.
    fn absorb(&mut self) {
        if let Entry::Occupied(entry) = self.runs.entry(self.head) {
            let (first, (end, bytes)) = entry.remove_entry();
            self.above = (self.above.0.saturating_sub(end - first), self.above.1.saturating_sub(bytes));
            self.head = end;
            self.head_bytes = self.head_bytes.saturating_add(bytes);
        }
    }

    fn check(&self) {
        debug_assert!(self.runs.keys().next().is_none_or(|first| *first > self.head), "{self:?}");
        debug_assert!(self.above.0 == 0 || !self.runs.is_empty(), "{self:?}");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Each number has bytes of its own, so that sums that are off are seen.
    fn bytes_of(number: u64) -> u64 {
        number * number + 1
    }

    fn bytes_in(numbers: impl Iterator<Item = u64>) -> u64 {
        numbers.map(bytes_of).sum()
    }

    fn insert_all(set: &mut DoneSet, numbers: &[u64]) {
        for number in numbers {
            set.insert(*number, bytes_of(*number));
        }
    }

    #[track_caller]
    fn check_same(set: &DoneSet, twin: &BTreeSet<u64>) {
        let head = (0..100).find(|number| !twin.contains(number)).unwrap();
        assert_eq!(set.head(), head);
        assert_eq!(set.totals(), (twin.len() as u64, bytes_in(twin.iter().copied())));
        assert!((0..70).all(|number| set.contains(number) == twin.contains(&number)), "{set:?} {twin:?}");
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_numbers(numbers in prop::collection::vec(0_u64..60, 0..120), heads in prop::collection::vec(0_u64..20, 0..3)) {
            let (mut set, mut twin) = (DoneSet::default(), BTreeSet::new());
            for (nth, number) in numbers.into_iter().enumerate() {
                prop_assert_eq!(set.insert(number, bytes_of(number)), twin.insert(number));
                check_same(&set, &twin);
                if let Some(head) = heads.get(nth / 40).filter(|_| nth % 40 == 39) {
                    // What lies across is forgotten: the twin as well.
                    let across = set.run_at(head.saturating_sub(1)).filter(|(_, end, _)| *head > set.head() && end > head);
                    set.raise_head(*head, bytes_in(0..*head));
                    twin.extend(0..*head);
                    if let Some((_, end, _)) = across {
                        twin.retain(|number| !(*head..end).contains(number));
                    }
                    check_same(&set, &twin);
                }
            }
            let mut out = Vec::new();
            set.encode(usize::MAX, &mut out);
            prop_assert_eq!(DoneSet::decode(&mut Cut::new(&out.into())), Ok(set));
        }

        #[test]
        fn a_set_that_grew_contains_what_it_was(numbers in prop::collection::vec(0_u64..60, 1..80), cut in 0..80_usize, most in 0..4_usize) {
            let mut old = DoneSet::default();
            let (early, late) = numbers.split_at(cut.min(numbers.len()));
            insert_all(&mut old, early);
            let mut new = old.clone();
            insert_all(&mut new, late);
            // However little of the old is written, it is nothing that the new has not.
            let mut out = Vec::new();
            old.encode(most, &mut out);
            let told = DoneSet::decode(&mut Cut::new(&out.into())).unwrap();
            let mut merged = new.clone();
            merged.merge(&told);
            prop_assert_eq!(&merged, &new);
            let mut merged = told;
            merged.merge(&new);
            prop_assert_eq!(merged, new);
        }
    }

    #[test]
    fn a_run_takes_the_place_of_what_it_covers() {
        let mut set = DoneSet::default();
        insert_all(&mut set, &[4, 6, 9]);
        set.insert_run(3, 8, bytes_in(3..8));
        check_same(&set, &[3, 4, 5, 6, 7, 9].into());
        set.raise_head(3, bytes_in(0..3));
        check_same(&set, &[0, 1, 2, 3, 4, 5, 6, 7, 9].into());
    }

    #[test]
    fn a_count_that_the_bytes_cannot_hold_is_refused() {
        let mut out = Vec::new();
        DoneSet::default().encode(0, &mut out);
        out[16] = 1;
        let error = DoneSet::decode(&mut Cut::new(&out.into())).unwrap_err();
        assert_eq!(error.to_string(), "the count of runs is 1, which 0 bytes cannot hold");
    }
}
