//! Requests under way on one connection: the sender waits for room, the receiver for something to receive.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A bounded queue of the times from which the requests under way are measured.
#[derive(Debug)]
pub(super) struct Flight {
    state: Mutex<State>,
    changed: Condvar,
    len_max: usize,
}

#[derive(Debug)]
struct State {
    begun: VecDeque<Instant>,
    /// The sender sends nothing more.
    finished: bool,
    /// The receiver has given up.
    broken: bool,
}

impl Flight {
    pub(super) fn new(len_max: usize) -> Self {
        let state = State { begun: VecDeque::with_capacity(len_max), finished: false, broken: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), len_max }
    }

    /// Waits for room, then notes a request that is about to be sent.
    pub(super) fn begin(&self, at: impl FnOnce() -> Instant) -> io::Result<()> {
        let mut state = self.lock();
        while state.begun.len() >= self.len_max && !state.broken {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.broken {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the receiver gave up"));
        }
        let waited_for = state.begun.is_empty();
        state.begun.push_back(at());
        drop(state);
        if waited_for {
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Whether there is a response to wait for; `false` once all have come.
    pub(super) fn expects(&self) -> bool {
        let mut state = self.lock();
        while state.begun.is_empty() && !state.finished {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.begun.is_empty()
    }

    /// Takes the oldest request off, whose response is here.
    pub(super) fn end(&self) -> Option<Instant> {
        let mut state = self.lock();
        let was_full = state.begun.len() >= self.len_max;
        let begun = state.begun.pop_front();
        drop(state);
        if was_full {
            self.changed.notify_all();
        }
        begun
    }

    /// The sender is done.
    pub(super) fn finish(&self) {
        self.lock().finished = true;
        self.changed.notify_all();
    }

    /// The receiver is done for.
    pub(super) fn give_up(&self) {
        self.lock().broken = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn requests_end_in_the_order_in_which_they_began() {
        let flight = Flight::new(2);
        let first = clock::now();
        let second = first + std::time::Duration::from_secs(1);
        flight.begin(|| first).unwrap();
        flight.begin(|| second).unwrap();
        assert!(flight.expects());
        assert_eq!(flight.end(), Some(first));
        flight.finish();
        assert!(flight.expects());
        assert_eq!(flight.end(), Some(second));
        assert!(!flight.expects());
    }

    #[test]
    fn a_sender_that_waits_for_room_is_told_that_the_receiver_gave_up() {
        let flight = Flight::new(1);
        flight.begin(clock::now).unwrap();
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| flight.begin(clock::now));
            flight.give_up();
            assert!(sender.join().unwrap().is_err());
        });
    }
}
