//! The group coordinator: consumer groups by name, with the clock, the store and the tasks that their state machines
//! ([`crate::group`]) do without.
//!
//! ```text
//! handler --join, sync, ..--> Entry (lock): Group --effects--> answers to those who wait
//!                               ^      |                  \--> storing task --put_group--> store
//!                   timer task -+      +-- commit_offsets, delete_group, .. --> store
//! ```
//! A group is in memory while it has members, or somebody is about to become one; what else there is of groups is in the
//! store alone. Whatever the store is told about a group, it is told under the lock of its entry: what was checked against
//! the group still holds then. No lock is held while something is awaited.

mod census;
mod entry;
mod expiry;
mod identity;
mod memory;
mod offsets;
mod storing;
#[cfg(test)]
mod tests;
mod timers;
mod waiting;

use std::collections::HashMap;
use std::collections::hash_map;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kolumn_kafka_wire::ErrorCode;
use kolumn_topic_store::{Store, ViewId};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use self::census::Census;
use self::entry::{Cell, Entry, Waiter};
pub(crate) use self::entry::{JoinOutcome, SyncOutcome};
pub(crate) use self::expiry::run_expiry;
use self::identity::MemberIds;
pub(crate) use self::identity::SEED_LEN;
pub(crate) use self::offsets::{Deletable, Refused};
use self::timers::Timers;
pub(crate) use self::timers::run_timers;
pub(crate) use self::waiting::Waiting;
use crate::context::Phase;
use crate::group::{
    Description, Effect, Group, GroupLimits, GroupState, Join, Leaver, MemberRef, MemoryError, Sync, Token,
};
use crate::observer::{Event, Observer};

/// All groups of a view.
#[derive(Debug)]
pub(crate) struct Coordinator {
    store: Store,
    view: ViewId,
    limits: Limits,
    cells: Mutex<HashMap<Arc<str>, Arc<Cell>>>,
    census: Census,
    timers: Timers,
    /// What all groups in memory cost.
    cost: AtomicUsize,
    next_token: AtomicU64,
    member_ids: MemberIds,
    phase: watch::Receiver<Phase>,
    observer: Arc<dyn Observer>,
    runtime: Handle,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) group: GroupLimits,
    pub(crate) groups_max: usize,
    /// Bytes of memory that the members of all groups may take.
    pub(crate) cost_max: usize,
    pub(crate) offsets_retention: Duration,
}

/// Which groups a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Those in memory.
    Live,
    /// Those that there are.
    Known,
    /// This one, which comes into being if there is none.
    Any,
}

/// Why there is no group to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    Unknown,
    /// There are as many groups as there may be.
    TooMany,
}

impl Coordinator {
    /// Takes up the groups of the view where they were left. Blocks on a large number of them.
    pub(crate) fn open(
        store: Store,
        view: ViewId,
        limits: Limits,
        seed: [u8; SEED_LEN],
        phase: watch::Receiver<Phase>,
        observer: Arc<dyn Observer>,
        runtime: Handle,
    ) -> Arc<Self> {
        let coordinator = Arc::new(Self {
            store,
            view,
            limits,
            cells: Mutex::default(),
            census: Census::default(),
            timers: Timers::default(),
            cost: AtomicUsize::new(0),
            next_token: AtomicU64::new(0),
            member_ids: MemberIds::new(seed),
            phase,
            observer,
            runtime,
        });
        for id in coordinator.store.groups(view) {
            // Those with members stay in memory, the others leave it again.
            let _ = coordinator.visit(&id, Reach::Known, |_, _| ((), Vec::new()));
        }
        coordinator
    }

    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.clone()
    }

    /// An id for a member that may be new, behind the name by which people know it.
    pub(crate) fn propose_id(&self, name: &str) -> String {
        self.member_ids.draw(name)
    }

    /// Has a member join, which brings about `len` bytes; `wish` makes the request out of the token that names it.
    pub(crate) fn join(
        self: &Arc<Self>,
        group: &str,
        len: usize,
        wish: impl FnOnce(Token) -> Join,
    ) -> Result<Waiting<JoinOutcome>, ErrorCode> {
        self.check_room(len)?;
        let (token, (sender, receiver)) = (self.token(), oneshot::channel());
        let joined = self.visit(group, Reach::Any, |entry, now| {
            entry.wait(token, Waiter::Join(sender));
            ((), entry.group.join(now, wish(token)))
        });
        match joined {
            Ok(()) => Ok(Waiting::new(Arc::clone(self), group, token, receiver)),
            Err(_) => Err(ErrorCode::GROUP_MAX_SIZE_REACHED),
        }
    }

    /// Has a member ask for its assignment, or bring those of all with about `len` bytes.
    pub(crate) fn sync(
        self: &Arc<Self>,
        group: &str,
        len: usize,
        wish: impl FnOnce(Token) -> Sync,
    ) -> Result<Waiting<SyncOutcome>, ErrorCode> {
        self.check_room(len)?;
        let (token, (sender, receiver)) = (self.token(), oneshot::channel());
        let synced = self.visit(group, Reach::Known, |entry, now| {
            entry.wait(token, Waiter::Sync(sender));
            ((), entry.group.sync(now, wish(token)))
        });
        match synced {
            Ok(()) => Ok(Waiting::new(Arc::clone(self), group, token, receiver)),
            Err(_) => Err(ErrorCode::UNKNOWN_MEMBER_ID),
        }
    }

    pub(crate) fn heartbeat(self: &Arc<Self>, group: &str, member: &MemberRef<'_>) -> ErrorCode {
        let beat = self.visit(group, Reach::Known, |entry, now| {
            (entry.group.heartbeat(now, member).err().unwrap_or(ErrorCode::NONE), Vec::new())
        });
        beat.unwrap_or(ErrorCode::UNKNOWN_MEMBER_ID)
    }

    /// Has members leave: a code for each.
    pub(crate) fn leave(self: &Arc<Self>, group: &str, leavers: &[Leaver<'_>]) -> Vec<ErrorCode> {
        let left = self.visit(group, Reach::Known, |entry, now| entry.group.leave(now, leavers));
        left.unwrap_or_else(|_| vec![ErrorCode::UNKNOWN_MEMBER_ID; leavers.len()])
    }

    /// What `DescribeGroups` tells; `None` if there is no such group.
    pub(crate) fn describe(&self, group: &str) -> Option<Description> {
        self.peek(group, Group::describe)
    }

    /// The names of all groups, sorted.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        let mut names = self.store.groups(self.view);
        names.extend(self.cells.lock().keys().cloned());
        names.sort_unstable();
        names.dedup();
        names
    }

    /// All groups by name, with their protocol type and state.
    pub(crate) fn list(&self) -> Vec<(Arc<str>, String, GroupState)> {
        let listed = self.names().into_iter().filter_map(|name| {
            let (protocol_type, state) =
                self.peek(&name, |group| (group.protocol_type().to_owned(), group.state()))?;
            Some((name, protocol_type, state))
        });
        listed.collect()
    }

    fn abandon(self: &Arc<Self>, group: &str, token: Token) {
        // A group that is gone waits for nobody.
        let _ = self.visit(group, Reach::Live, |entry, now| {
            entry.stop_waiting(token);
            ((), entry.group.abandon(now, token))
        });
    }

    /// The timer looks at a group that was queued for `at`.
    fn handle_timeout(self: &Arc<Self>, group: &str, at: Instant) {
        let _ = self.visit(group, Reach::Live, |entry, now| {
            entry.alarm.take_if(|alarm| *alarm == at);
            ((), entry.group.handle_timeout(now))
        });
    }

    /// Sends members away while those who are here take all memory that there is for them; they come again.
    fn check_room(&self, len: usize) -> Result<(), ErrorCode> {
        let cost = self.cost.load(Ordering::Relaxed).saturating_add(len);
        if cost > self.limits.cost_max { Err(ErrorCode::COORDINATOR_NOT_AVAILABLE) } else { Ok(()) }
    }

    fn token(&self) -> Token {
        Token(self.next_token.fetch_add(1, Ordering::Relaxed))
    }

    /// Calls a group, and does what it then wants done.
    fn visit<T>(
        self: &Arc<Self>,
        id: &str,
        reach: Reach,
        act: impl FnOnce(&mut Entry, Instant) -> (T, Vec<Effect>),
    ) -> Result<T, Absent> {
        loop {
            let cell = self.find(id, reach)?;
            let mut entry = cell.entry.lock();
            if entry.is_gone {
                continue;
            }
            let (outcome, effects) = act(&mut entry, tokio::time::Instant::now().into_std());
            self.settle(&cell, &mut entry, effects);
            return Ok(outcome);
        }
    }

    /// The cell of a group, from memory or the store.
    fn find(&self, id: &str, reach: Reach) -> Result<Arc<Cell>, Absent> {
        let mut cells = self.cells.lock();
        if let Some(cell) = cells.get(id) {
            return Ok(Arc::clone(cell));
        }
        if reach == Reach::Live {
            return Err(Absent::Unknown);
        }
        let group = match self.remembered(id) {
            // Its members join again, as those of a new group.
            Some(remembered) => remembered.unwrap_or_else(|error| {
                self.observer.event(&Event::GroupUnreadable { group: id, error: &error });
                Group::new(self.limits.group)
            }),
            None if reach == Reach::Known => return Err(Absent::Unknown),
            None if self.census.admits(self, &cells) => Group::new(self.limits.group),
            None => return Err(Absent::TooMany),
        };
        let id: Arc<str> = id.into();
        let cell = Arc::new(Cell::new(Arc::clone(&id), group));
        cells.insert(id, Arc::clone(&cell));
        Ok(cell)
    }

    /// Looks at a group without taking it into memory.
    fn peek<T>(&self, id: &str, look: impl FnOnce(&Group) -> T) -> Option<T> {
        let cell = self.cells.lock().get(id).cloned();
        if let Some(cell) = cell {
            let entry = cell.entry.lock();
            if !entry.is_gone {
                return Some(look(&entry.group));
            }
        }
        let remembered = self.remembered(id)?;
        Some(look(&remembered.unwrap_or_else(|_| Group::new(self.limits.group))))
    }

    /// A group as the store knows it.
    fn remembered(&self, id: &str) -> Option<Result<Group, MemoryError>> {
        let sealed = self.store.group_memory(self.view, id)?;
        let now = tokio::time::Instant::now().into_std();
        Some(match memory::open(&sealed) {
            Some((_, memory)) => Group::restore(memory, self.limits.group, now),
            None => Ok(Group::new(self.limits.group)),
        })
    }

    /// Does what a group wants done, and lets it leave the memory when nothing holds it there.
    fn settle(self: &Arc<Self>, cell: &Arc<Cell>, entry: &mut Entry, effects: Vec<Effect>) {
        entry.apply(effects);
        self.tell(cell, entry);
        self.count(entry, entry.group.cost().saturating_add(cell.id.len()));
        if entry.unstored.is_some() && !entry.is_storing {
            entry.is_storing = true;
            self.runtime.spawn(storing::store(Arc::clone(self), Arc::clone(cell)));
        }
        if entry.is_idle() {
            self.drop_entry(cell, entry);
        } else {
            self.set_alarm(cell, entry);
        }
    }

    fn tell(&self, cell: &Cell, entry: &mut Entry) {
        let Entry { group, told, .. } = entry;
        if std::mem::replace(told, group.state()) != group.state() {
            self.observer.event(&Event::GroupStateChanged {
                group: &cell.id,
                state: group.state().name(),
                generation: group.generation(),
                members: group.members_len(),
            });
        }
    }

    fn count(&self, entry: &mut Entry, cost: usize) {
        let before = std::mem::replace(&mut entry.cost, cost);
        // Wraps where the cost has become less, which is what the sum then does too.
        self.cost.fetch_add(cost.wrapping_sub(before), Ordering::Relaxed);
    }

    fn set_alarm(&self, cell: &Cell, entry: &mut Entry) {
        let Some(next) = entry.group.next_deadline() else { return };
        if entry.alarm.is_none_or(|alarm| next < alarm) {
            if let Some(later) = entry.alarm.replace(next) {
                self.timers.cancel(later, &cell.id);
            }
            self.timers.set(next, &cell.id);
        }
    }

    fn drop_entry(&self, cell: &Arc<Cell>, entry: &mut Entry) {
        entry.is_gone = true;
        entry.unstored = None;
        self.count(entry, 0);
        if let Some(alarm) = entry.alarm.take() {
            self.timers.cancel(alarm, &cell.id);
        }
        if let hash_map::Entry::Occupied(occupied) = self.cells.lock().entry(Arc::clone(&cell.id))
            && Arc::ptr_eq(occupied.get(), cell)
        {
            occupied.remove();
        }
    }
}
