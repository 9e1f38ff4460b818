//! The second fold, from which checkpoints are written, so that writing one holds up no reader.
//!
//! The writer leaves decoded entries in a queue; the fold takes them in when a checkpoint is due, or when the queue has
//! grown. Entries are small (batches are not in them), and the queue is bounded: at its end the writer folds itself.

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
    end: u64,
}

impl Fold {
    pub(crate) const fn new(state: State, end: u64) -> Self {
        let queue = Queue { entries: Vec::new(), end };
        Self { folded: Mutex::new(Folded { state, end }), queue: Mutex::new(queue) }
    }

    /// Leaves the entries of a group that ends at `end`. Called in the journal's order.
    pub(crate) fn push(&self, entries: Vec<(Entry, Option<Place>)>, end: u64) {
        let len = {
            let mut queue = self.queue.lock();
            queue.entries.extend(entries);
            queue.end = end;
            queue.entries.len()
        };
        if len >= QUEUE_LEN_MAX {
            self.take_in(&mut self.folded.lock());
        } else if len >= QUEUE_LEN_DUE
            && let Some(mut folded) = self.folded.try_lock()
        {
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
            (std::mem::take(&mut queue.entries), queue.end)
        };
        for (entry, place) in entries {
            folded.state.apply(&entry, place);
        }
        folded.end = end;
    }
}

const QUEUE_LEN_DUE: usize = 4096;
const QUEUE_LEN_MAX: usize = 16 * QUEUE_LEN_DUE;
