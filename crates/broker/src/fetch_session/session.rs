//! One session: the partitions that a client wants, in the order in which they are served, and what it was told of them.

use std::collections::btree_map::Entry as Place;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kolumn_kafka_wire::ErrorCode;

use super::{Asked, Bounds, Found, TopicRef, Wanted};

/// INVARIANT: `places` has the place of each entry, and no other. Between a `begin` and its `tell` no entry changes:
/// the epoch says so.
#[derive(Debug)]
pub(super) struct Session {
    by_id: bool,
    /// The epoch that the next request must have.
    epoch: i32,
    entries: BTreeMap<u64, Entry>,
    places: HashMap<(Arc<TopicRef>, i32), u64>,
    next_place: u64,
}

#[derive(Debug)]
struct Entry {
    wanted: Wanted,
    /// `None` if it was told nothing, or an error.
    told: Option<Bounds>,
}

impl Session {
    /// The session that begins with an answer in full: what was found is what the client was told.
    pub(super) fn new(by_id: bool, answered: impl Iterator<Item = (Wanted, Found)>) -> Self {
        let mut session = Self {
            by_id,
            epoch: next_epoch(0),
            entries: BTreeMap::new(),
            places: HashMap::new(),
            next_place: 0,
        };
        for (wanted, found) in answered {
            session.put(wanted).told = found.bounds;
        }
        session.check();
        session
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn epoch(&self) -> i32 {
        self.epoch
    }

    /// Takes over what a request changes; gives everything that the client wants now.
    pub(super) fn begin(&mut self, asked: Asked) -> Result<Vec<Wanted>, ErrorCode> {
        if asked.epoch != self.epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        if asked.by_id != self.by_id {
            return Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
        }
        for wanted in asked.partitions {
            self.put(wanted);
        }
        for key in asked.forgotten {
            // What was never there is forgotten too: clients forget topics whose id they never knew.
            if let Some(place) = self.places.remove(&key) {
                self.entries.remove(&place);
            }
        }
        self.epoch = next_epoch(self.epoch);
        self.check();
        Ok(self.entries.values().map(|entry| entry.wanted.clone()).collect())
    }

    /// Says which partitions the answer to the request of this epoch has to name, and counts them as told.
    ///
    /// Those with records go to the end, so that an answer that is full does not starve those behind it.
    pub(super) fn tell(
        &mut self,
        epoch: i32,
        found: impl Iterator<Item = Found>,
    ) -> Result<Vec<bool>, ErrorCode> {
        if next_epoch(epoch) != self.epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        let mut served = Vec::new();
        let news = self.entries.iter_mut().zip(found).map(|((place, entry), found)| {
            let is_news = found.has_records || found.bounds.is_none() || found.bounds != entry.told;
            entry.told = found.bounds;
            if found.has_records {
                served.push(*place);
            }
            is_news
        });
        let news = news.collect();
        for place in served {
            if let Some(entry) = self.entries.remove(&place) {
                let key = (Arc::clone(&entry.wanted.topic), entry.wanted.partition);
                self.places.insert(key, self.next_place);
                self.entries.insert(self.next_place, entry);
                self.next_place += 1;
            }
        }
        self.check();
        Ok(news)
    }

    /// Adds a partition at the end, or changes what is wanted of it where it is.
    fn put(&mut self, wanted: Wanted) -> &mut Entry {
        let key = (Arc::clone(&wanted.topic), wanted.partition);
        let place = *self.places.entry(key).or_insert(self.next_place);
        self.next_place = self.next_place.max(place + 1);
        match self.entries.entry(place) {
            Place::Vacant(place) => place.insert(Entry { wanted, told: None }),
            Place::Occupied(place) => {
                let entry = place.into_mut();
                let topic = Arc::clone(&entry.wanted.topic);
                entry.wanted = Wanted { topic, ..wanted };
                entry
            }
        }
    }

    fn check(&self) {
        debug_assert_eq!(self.entries.len(), self.places.len(), "each entry has one place");
        debug_assert!(
            self.entries.last_key_value().is_none_or(|(last, _)| *last < self.next_place),
            "the next place is behind all others"
        );
    }
}

/// The epoch after another one. Zero and below have meanings of their own.
pub(super) const fn next_epoch(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

#[cfg(test)]
mod tests {
    use kolumn_kafka_wire::{Str, Uuid};

    use super::*;

    fn topic(name: &'static str) -> Arc<TopicRef> {
        Arc::new(TopicRef { name: Str::from_static(name), id: Uuid::ZERO })
    }

    fn wanted(partition: i32, offset: i64) -> Wanted {
        Wanted { topic: topic("t"), partition, current_leader_epoch: -1, offset, max_len: 100 }
    }

    fn found(high_watermark: i64) -> Found {
        let bounds = Bounds { high_watermark, last_stable: high_watermark, log_start: 0 };
        Found { bounds: Some(bounds), has_records: false }
    }

    fn records(high_watermark: i64) -> Found {
        Found { has_records: true, ..found(high_watermark) }
    }

    const FAILED: Found = Found { bounds: None, has_records: false };

    fn session(all: &[Found]) -> Session {
        Session::new(false, (0..).map(|index| wanted(index, 0)).zip(all.iter().copied()))
    }

    fn request(epoch: i32) -> Asked {
        Asked { id: 7, epoch, by_id: false, partitions: Vec::new(), forgotten: Vec::new() }
    }

    /// One request and its answer: the partitions in the order in which they are read, and those that are news.
    #[track_caller]
    fn step(session: &mut Session, change: impl FnOnce(&mut Asked), all: &[Found]) -> (Vec<i32>, Vec<i32>) {
        let mut asked = request(session.epoch());
        change(&mut asked);
        let epoch = asked.epoch;
        let order: Vec<_> =
            session.begin(asked).expect("it begins").iter().map(|one| one.partition).collect();
        let news = session.tell(epoch, all.iter().copied()).expect("it ends");
        let told =
            order.iter().zip(news).filter_map(|(partition, news)| news.then_some(*partition)).collect();
        (order, told)
    }

    #[test]
    fn only_what_changed_is_news_and_only_once() {
        let mut session = session(&[found(5), found(5), found(5), found(5)]);
        let again = [found(5), found(5), found(5), found(5)];
        assert_eq!(step(&mut session, |_| {}, &again), (vec![0, 1, 2, 3], vec![]));
        let bounds = |high_watermark, last_stable, log_start| Found {
            bounds: Some(Bounds { high_watermark, last_stable, log_start }),
            has_records: false,
        };
        let changed = [bounds(6, 5, 0), bounds(5, 4, 0), bounds(5, 5, 1), found(5)];
        assert_eq!(step(&mut session, |_| {}, &changed).1, [0, 1, 2]);
        assert_eq!(step(&mut session, |_| {}, &changed).1, [0; 0]);
    }

    #[test]
    fn an_error_is_news_until_it_is_gone_and_so_is_its_end() {
        let mut session = session(&[found(5)]);
        assert_eq!(step(&mut session, |_| {}, &[FAILED]).1, [0]);
        assert_eq!(step(&mut session, |_| {}, &[FAILED]).1, [0]);
        assert_eq!(
            step(&mut session, |_| {}, &[found(5)]).1,
            [0],
            "though nothing but the error has changed"
        );
        assert_eq!(step(&mut session, |_| {}, &[found(5)]).1, [0; 0]);
    }

    #[test]
    fn partitions_with_records_go_behind_all_others_in_their_order() {
        let mut session = session(&[records(1), found(1), found(1), found(1)]);
        assert_eq!(step(&mut session, |_| {}, &[records(1), found(1), records(1), found(1)]).1, [0, 2]);
        assert_eq!(step(&mut session, |_| {}, &[records(1), FAILED, found(1), found(1)]).0, [1, 3, 0, 2]);
        assert_eq!(step(&mut session, |_| {}, &[FAILED, found(1), found(1), found(1)]).0, [3, 0, 2, 1]);
        assert_eq!(
            step(&mut session, |_| {}, &[found(1), found(1), found(1), found(1)]).0,
            [3, 0, 2, 1],
            "errors and changes move nothing"
        );
    }

    #[test]
    fn partitions_are_added_changed_and_forgotten() {
        let mut session = session(&[found(5), found(5)]);
        let added = |asked: &mut Asked| asked.partitions = vec![wanted(9, 3), wanted(0, 4)];
        let all = [found(5), found(5), found(5)];
        assert_eq!(
            step(&mut session, added, &all),
            (vec![0, 1, 9], vec![9]),
            "a change is no news, a new one is"
        );
        let mut asked = request(session.epoch());
        asked.forgotten = vec![(topic("t"), 1), (topic("t"), 77), (topic("other"), 0)];
        let rest = session.begin(asked).expect("it begins");
        let rest: Vec<_> = rest.iter().map(|one| (one.partition, one.offset)).collect();
        assert_eq!(rest, [(0, 4), (9, 3)]);
    }

    #[test]
    fn a_partition_named_twice_is_remembered_once_as_it_was_told_last() {
        let twice = [(wanted(0, 1), found(5)), (wanted(0, 2), FAILED)];
        let mut session = Session::new(false, twice.into_iter());
        assert_eq!(session.len(), 1);
        assert_eq!(step(&mut session, |_| {}, &[found(5)]).1, [0]);
    }

    #[test]
    fn a_request_of_another_epoch_or_another_kind_changes_nothing() {
        let mut session = session(&[found(5)]);
        let forget = |epoch, by_id| Asked { by_id, forgotten: vec![(topic("t"), 0)], ..request(epoch) };
        for epoch in [0, 2, -1, i32::MAX, i32::MIN] {
            let refused = session.begin(forget(epoch, false)).expect_err("refused");
            assert_eq!(refused, ErrorCode::INVALID_FETCH_SESSION_EPOCH, "{epoch}");
        }
        let refused = session.begin(forget(1, true)).expect_err("refused");
        assert_eq!(refused, ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
        assert_eq!(step(&mut session, |_| {}, &[found(5)]), (vec![0], vec![]));
    }

    #[test]
    fn a_request_that_another_one_overtook_tells_nothing() {
        let mut session = session(&[found(5)]);
        session.begin(request(1)).expect("it begins");
        session.begin(request(2)).expect("it begins");
        let refused = session.tell(1, [found(6)].into_iter()).expect_err("refused");
        assert_eq!(refused, ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        assert_eq!(
            session.tell(2, [found(6)].into_iter()),
            Ok(vec![true]),
            "what was not told is still news"
        );
    }

    #[test]
    fn the_epoch_after_the_last_one_is_one() {
        let mut session = session(&[found(5)]);
        session.epoch = i32::MAX;
        step(&mut session, |_| {}, &[found(5)]);
        assert_eq!(session.epoch(), 1);
        step(&mut session, |_| {}, &[found(5)]);
        assert_eq!(session.epoch(), 2);
    }
}
