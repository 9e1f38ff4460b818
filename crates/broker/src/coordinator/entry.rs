//! One group in memory: its state machine, who waits for its answers, what is to be stored.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use kolumn_kafka_wire::ErrorCode;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::group::{Effect, Group, GroupState, JoinRefused, Joined, StoreId, Synced, Token};

pub(crate) type JoinOutcome = Result<Joined, JoinRefused>;
pub(crate) type SyncOutcome = Result<Synced, ErrorCode>;

/// A group under its name.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) id: Arc<str>,
    pub(super) entry: Mutex<Entry>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) group: Group,
    /// The state that the observer was told last.
    pub(super) told: GroupState,
    waiting: HashMap<Token, Waiter>,
    /// The newest memory that the store was not told yet.
    pub(super) unstored: Option<(StoreId, Bytes)>,
    /// There is a task that tells the store.
    pub(super) is_storing: bool,
    /// When the timer looks at this group; not later than the group's own deadline.
    pub(super) alarm: Option<Instant>,
    /// What the coordinator counts for this group.
    pub(super) cost: usize,
    /// It is no longer in the map: who finds it has to look again.
    pub(super) is_gone: bool,
}

#[derive(Debug)]
pub(super) enum Waiter {
    Join(oneshot::Sender<JoinOutcome>),
    Sync(oneshot::Sender<SyncOutcome>),
}

impl Cell {
    pub(super) fn new(id: Arc<str>, group: Group) -> Self {
        let entry = Entry {
            told: group.state(),
            group,
            waiting: HashMap::new(),
            unstored: None,
            is_storing: false,
            alarm: None,
            cost: 0,
            is_gone: false,
        };
        Self { id, entry: Mutex::new(entry) }
    }
}

impl Entry {
    pub(super) fn wait(&mut self, token: Token, waiter: Waiter) {
        self.waiting.insert(token, waiter);
    }

    pub(super) fn stop_waiting(&mut self, token: Token) {
        self.waiting.remove(&token);
    }

    /// Answers who is answered, and keeps what is to be stored.
    pub(super) fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                // Who left in the meantime is not answered.
                Effect::Joined(token, outcome) => {
                    if let Some(Waiter::Join(sender)) = self.waiting.remove(&token) {
                        let _ = sender.send(outcome);
                    }
                }
                Effect::Synced(token, outcome) => {
                    if let Some(Waiter::Sync(sender)) = self.waiting.remove(&token) {
                        let _ = sender.send(outcome);
                    }
                }
                Effect::Store(id, memory) => self.unstored = Some((id, memory)),
            }
        }
    }

    /// Whether the store knows all that is worth knowing about this group.
    pub(super) fn is_idle(&self) -> bool {
        let is_quiet = self.waiting.is_empty() && self.unstored.is_none() && !self.is_storing;
        self.group.state() == GroupState::Dead || self.group.is_empty() && is_quiet
    }
}
