//! The second fold, from which checkpoints are written, so that writing one holds up no reader.
//!
//! The writer leaves decoded entries in a queue; the fold takes them in when a checkpoint is due, or when the queue has
//! grown, in number or in bytes. Batches are not in it, and it is bounded: at its end the writer folds itself.

use parking_lot::Mutex;

use crate::entry::Entry;
use crate::state::{Place, State};

#[derive(Debug)]
pub(crate) struct Fold {
    folded: Mutex<Folded>,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Folded {
    state: State,
    /// Everything before this position of the journal is in `state`.
    end: u64,
}

#[derive(Debug)]
struct Queue {
    entries: Vec<(Entry, Option<Place>)>,
    /// Bytes that the entries hold besides themselves.
    held_len: usize,
    end: u64,
}

impl Queue {
    /// Whether it has this share of what it may have.
    const fn is_filled(&self, share: usize) -> bool {
        self.entries.len() >= QUEUE_LEN_DUE * share || self.held_len >= HELD_LEN_DUE * share
    }
}

impl Fold {
    pub(crate) const fn new(state: State, end: u64) -> Self {
        let queue = Queue { entries: Vec::new(), held_len: 0, end };
        Self { folded: Mutex::new(Folded { state, end }), queue: Mutex::new(queue) }
    }

    /// Takes the entries of a group that ends at `end`. Called in the journal's order.
    pub(crate) fn push(&self, entries: &mut Vec<(Entry, Option<Place>)>, end: u64) {
        let held_len = entries.iter().map(|(entry, _)| entry.held_len()).sum::<usize>();
        let (is_due, is_full) = {
            let mut queue = self.queue.lock();
            queue.entries.append(entries);
            queue.held_len = queue.held_len.saturating_add(held_len);
            queue.end = end;
            (queue.is_filled(1), queue.is_filled(SHARES))
        };
        if is_full {
            self.take_in(&mut self.folded.lock());
        } else if is_due && let Some(mut folded) = self.folded.try_lock() {
            self.take_in(&mut folded);
        }
    }

    /// Gives the state as of the newest group, and where that group ends.
    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&State, u64) -> T) -> T {
        let mut folded = self.folded.lock();
        self.take_in(&mut folded);
        use_it(&folded.state, folded.end)
    }

    /// Where the newest group ends.
    pub(crate) fn end(&self) -> u64 {
        self.queue.lock().end
    }

    fn take_in(&self, folded: &mut Folded) {
        let (entries, end) = {
            let mut queue = self.queue.lock();
            queue.held_len = 0;
            (std::mem::take(&mut queue.entries), queue.end)
        };
        for (entry, place) in entries {
            folded.state.apply(&entry, place);
        }
        folded.end = end;
    }
}

const QUEUE_LEN_DUE: usize = 4096;
const HELD_LEN_DUE: usize = 1 << 20;
/// It is full at so many times of what makes it due.
const SHARES: usize = 16;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use uuid::Uuid;

    use super::*;
    use crate::entry::GroupRef;
    use crate::ids::ViewId;

    #[test]
    fn what_the_queue_holds_is_bounded_in_number_and_in_bytes() {
        let stored = |len: usize| {
            let group = GroupRef { view: ViewId::new(Uuid::nil()), id: "g".into() };
            (Entry::GroupStored { group, memory: Bytes::from(vec![0; len]) }, None)
        };
        let fold = Fold::new(State::new(None), 0);
        let queued = || {
            let queue = fold.queue.lock();
            (queue.entries.len(), queue.held_len)
        };
        fold.push(&mut vec![stored(1000)], 1);
        assert_eq!(queued(), (1, 1001));
        fold.push(&mut vec![stored(HELD_LEN_DUE)], 2);
        assert_eq!(queued(), (0, 0), "few that hold much");
        fold.push(&mut (0..QUEUE_LEN_DUE).map(|_| stored(0)).collect(), 3);
        assert_eq!(queued(), (0, 0), "many that hold little");
        let busy = fold.folded.lock();
        fold.push(&mut vec![stored(HELD_LEN_DUE)], 4);
        assert_eq!(queued().0, 1, "nobody waits for a checkpoint that is being encoded");
        drop(busy);
        assert_eq!(fold.with(|_, end| end), 4);
    }
}
