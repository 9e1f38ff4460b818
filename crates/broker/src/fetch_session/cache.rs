//! The sessions of all clients: how many there may be, and which one makes room.
//!
//! A session that was not used for a while makes room for any other. One that has existed for a while makes room for one
//! with more partitions, which gains more by it. Where neither is found there is no session, and its client fetches in
//! full.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::session::Session;
use crate::settings::LimitSettings;

/// All sessions. Locks are taken in the order session, cache.
#[derive(Debug)]
pub(crate) struct Cache {
    sessions_max: usize,
    /// Partitions of all sessions together.
    partitions_max: usize,
    state: Mutex<State>,
}

/// A session that several requests may want at once.
#[derive(Debug)]
pub(crate) struct Shared {
    session: Mutex<Session>,
    epoch: watch::Sender<i32>,
}

/// INVARIANT: `by_use` has every session; `by_len` has those that existed for a while when they were last used;
/// `partitions` is the sum of all lengths, each of which is above zero.
#[derive(Debug)]
struct State {
    slots: HashMap<i32, Slot>,
    by_use: BTreeSet<(Instant, i32)>,
    by_len: BTreeSet<(usize, i32)>,
    partitions: usize,
    ids: RandomState,
    drawn: u64,
}

#[derive(Debug)]
struct Slot {
    session: Arc<Shared>,
    len: usize,
    created: Instant,
    used: Instant,
}

impl Cache {
    /// An empty cache. The ids of its sessions are drawn from `ids`, so that nobody can tell the next one.
    pub(crate) fn new(limits: &LimitSettings, ids: RandomState) -> Self {
        let state = State {
            slots: HashMap::new(),
            by_use: BTreeSet::new(),
            by_len: BTreeSet::new(),
            partitions: 0,
            ids,
            drawn: 0,
        };
        Self {
            sessions_max: limits.fetch_sessions_max,
            partitions_max: limits.fetch_session_partitions_max,
            state: Mutex::new(state),
        }
    }

    /// Adds a session, and gives its id; 0 if there is no room for it or it has no partitions.
    pub(super) fn open(&self, session: Session, now: Instant) -> i32 {
        let len = session.len();
        let mut state = self.state.lock();
        let room = len > 0 && state.make_room(len, self.partitions_max, now);
        if !room || !state.make_place(len, self.sessions_max, now) {
            return 0;
        }
        let Some(id) = state.draw_id() else { return 0 };
        let session = Arc::new(Shared::new(session));
        state.insert(id, Slot { session, len, created: now, used: now });
        state.check();
        id
    }

    pub(super) fn find(&self, id: i32) -> Option<Arc<Shared>> {
        self.state.lock().slots.get(&id).map(|slot| Arc::clone(&slot.session))
    }

    pub(super) fn close(&self, id: i32) {
        self.state.lock().remove(id);
    }

    /// Notes that a session was used and how many partitions it has now. It ends, and `false` is given, if it has none
    /// or more than there is room for.
    pub(super) fn keep(&self, id: i32, len: usize, now: Instant) -> bool {
        let mut state = self.state.lock();
        let Some(slot) = state.remove(id) else { return false };
        if len == 0 || !state.make_room(len, self.partitions_max, now) {
            return false;
        }
        state.insert(id, Slot { len, used: now, ..slot });
        state.check();
        true
    }
}

impl Shared {
    fn new(session: Session) -> Self {
        let epoch = watch::Sender::new(session.epoch());
        Self { session: Mutex::new(session), epoch }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock()
    }

    /// Tells those who wait that the epoch of the session is another one.
    pub(super) fn moved(&self, epoch: i32) {
        self.epoch.send_replace(epoch);
    }

    /// Resolves once the epoch of the session is not, or no longer, `epoch`.
    pub(super) async fn left(&self, epoch: i32) {
        // The sender is a field of this: it is not gone.
        let _ = self.epoch.subscribe().wait_for(|current| *current != epoch).await;
    }
}

impl State {
    fn insert(&mut self, id: i32, slot: Slot) {
        self.by_use.insert((slot.used, id));
        if slot.used.saturating_duration_since(slot.created) > EVICTION_AGE {
            self.by_len.insert((slot.len, id));
        }
        self.partitions += slot.len;
        self.slots.insert(id, slot);
    }

    fn remove(&mut self, id: i32) -> Option<Slot> {
        let slot = self.slots.remove(&id)?;
        self.by_use.remove(&(slot.used, id));
        self.by_len.remove(&(slot.len, id));
        self.partitions -= slot.len;
        Some(slot)
    }

    /// Makes room for `len` further partitions.
    fn make_room(&mut self, len: usize, max: usize, now: Instant) -> bool {
        while self.partitions.saturating_add(len) > max {
            if !self.evict_unused(now) {
                return false;
            }
        }
        true
    }

    /// Makes a place for one further session, of `len` partitions.
    fn make_place(&mut self, len: usize, max: usize, now: Instant) -> bool {
        self.slots.len() < max || self.evict_unused(now) || self.evict_smaller(len)
    }

    fn evict_unused(&mut self, now: Instant) -> bool {
        let oldest = self.by_use.first().copied();
        let unused = oldest.filter(|(used, _)| now.saturating_duration_since(*used) > EVICTION_AGE);
        unused.and_then(|(_, id)| self.remove(id)).is_some()
    }

    fn evict_smaller(&mut self, len: usize) -> bool {
        let smallest = self.by_len.first().copied().filter(|(smallest, _)| *smallest < len);
        smallest.and_then(|(_, id)| self.remove(id)).is_some()
    }

    fn draw_id(&mut self) -> Option<i32> {
        let mut ids = (0..DRAWS_MAX).map(|_| {
            self.drawn += 1;
            let [.., a, b, c, d] = self.ids.hash_one(self.drawn).to_be_bytes();
            i32::from_be_bytes([a & 0x7F, b, c, d])
        });
        ids.find(|id| *id > 0 && !self.slots.contains_key(id))
    }

    fn check(&self) {
        debug_assert_eq!(self.slots.len(), self.by_use.len(), "each session has its time");
        debug_assert!(self.by_len.len() <= self.slots.len(), "only sessions have a length");
    }
}

/// How long a session has to be unused, or to have existed, before it can make room for another one.
const EVICTION_AGE: Duration = Duration::from_mins(2);
/// Among so many draws at least one is free.
const DRAWS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use kolumn_kafka_wire::{Str, Uuid};

    use super::super::{Found, TopicRef, Wanted};
    use super::*;

    fn cache(sessions_max: usize, partitions_max: usize) -> Cache {
        let limits = LimitSettings {
            fetch_sessions_max: sessions_max,
            fetch_session_partitions_max: partitions_max,
            ..LimitSettings::default()
        };
        Cache::new(&limits, RandomState::new())
    }

    fn session(len: i32) -> Session {
        let topic = Arc::new(TopicRef { name: Str::from_static("t"), id: Uuid::ZERO });
        let found = Found { bounds: None, has_records: false };
        Session::new(
            false,
            (0..len).map(|partition| {
                let topic = Arc::clone(&topic);
                (Wanted { topic, partition, current_leader_epoch: -1, offset: 0, max_len: 1 }, found)
            }),
        )
    }

    fn start() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    const LATER: Duration = Duration::from_secs(121);
    const SOON: Duration = Duration::from_secs(119);

    #[test]
    fn sessions_are_bounded_and_a_fresh_one_makes_no_room() {
        let (cache, now) = (cache(2, 100), start());
        let (one, two) = (cache.open(session(1), now), cache.open(session(1), now));
        assert!(one > 0 && two > 0 && one != two);
        assert_eq!(cache.open(session(50), now + SOON), 0, "even for a larger one");
        cache.close(one);
        assert!(cache.open(session(1), now) > 0, "a closed one does");
    }

    #[test]
    fn the_one_that_was_unused_for_longest_makes_room() {
        let (cache, now) = (cache(2, 100), start());
        let one = cache.open(session(1), now);
        let two = cache.open(session(1), now + SOON);
        assert!(cache.open(session(1), now + LATER) > 0);
        assert!(cache.find(one).is_none() && cache.find(two).is_some());
        assert_eq!(cache.open(session(1), now + LATER), 0, "the others are in use");
    }

    #[test]
    fn one_that_is_in_use_makes_room_for_a_larger_one_once_it_has_existed_for_a_while() {
        let (cache, now) = (cache(2, 100), start());
        let (small, large) = (cache.open(session(2), now), cache.open(session(5), now));
        for id in [small, large] {
            assert!(cache.keep(id, if id == small { 2 } else { 5 }, now + LATER));
        }
        assert_eq!(cache.open(session(2), now + LATER), 0, "not for one of its own size");
        assert!(cache.open(session(3), now + LATER) > 0);
        assert!(cache.find(small).is_none() && cache.find(large).is_some());
    }

    #[test]
    fn partitions_of_all_sessions_are_bounded_together() {
        let (cache, now) = (cache(100, 10), start());
        assert_eq!(cache.open(session(11), now), 0);
        let (one, two) = (cache.open(session(6), now), cache.open(session(4), now));
        assert!(one > 0 && two > 0);
        assert_eq!(cache.open(session(1), now), 0);
        assert!(cache.keep(one, 5, now), "it shrinks");
        assert!(cache.open(session(1), now) > 0);
        assert!(!cache.keep(two, 5, now), "there is no room to grow");
        assert!(cache.find(two).is_none(), "and so it ends");
        let after = now + LATER;
        assert!(cache.open(session(10), after) > 0, "unused ones make room, as many as it takes");
        assert!(cache.find(one).is_none());
    }

    #[test]
    fn a_session_without_partitions_is_none() {
        let (cache, now) = (cache(2, 10), start());
        assert_eq!(cache.open(session(0), now), 0);
        let id = cache.open(session(1), now);
        assert!(!cache.keep(id, 0, now));
        assert!(cache.find(id).is_none());
        assert!(!cache.keep(id, 1, now), "nor does it come back");
    }

    #[test]
    fn ids_are_positive_and_follow_no_order() {
        let (cache, now) = (cache(1_000, 1_000), start());
        let ids: Vec<_> = (0..1_000).map(|_| cache.open(session(1), now)).collect();
        assert!(ids.iter().all(|id| *id > 0));
        let rises = ids.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((300..700).contains(&rises), "{rises} of 999 ids are above the one before");
        assert_ne!(self::cache(1, 1).open(session(1), now), ids[0], "nor does another broker repeat them");
    }
}
