//! What is kept for groups: durable, in the order of calls, bounded, gone with its topic.

use std::sync::Arc;

use bytes::Bytes;
use kolumn_topic_store::{
    AppendErrorKind, CommittedOffset, GroupErrorKind, LeaderEpoch, Offset, OffsetCommit, PartitionIndex,
    Settings, Timestamp, TopicId, ViewId,
};

use crate::support::*;

const P1: PartitionIndex = PartitionIndex::new(1);

fn at(topic: TopicId, partition: PartitionIndex, offset: i64, metadata: &str) -> OffsetCommit {
    let committed = CommittedOffset {
        offset: Offset::new(offset),
        leader_epoch: None,
        metadata: metadata.into(),
        committed: NOW,
    };
    OffsetCommit { topic, partition, committed }
}

fn commit(stepped: &mut Stepped, view: ViewId, group: &str, offsets: Vec<OffsetCommit>) {
    let commit = stepped.store.commit_offsets(view, group, offsets).expect("accepted");
    stepped.done(commit);
}

fn put(stepped: &mut Stepped, view: ViewId, group: &str, memory: &'static [u8]) {
    let commit = stepped.store.put_group(view, group, Bytes::from_static(memory)).expect("accepted");
    stepped.done(commit);
}

fn names(stepped: &Stepped, view: ViewId) -> Vec<String> {
    stepped.store.groups(view).iter().map(ToString::to_string).collect()
}

/// (partition, offset, metadata) of everything that a group has committed.
fn offsets_of(stepped: &Stepped, view: ViewId, group: &str) -> Vec<(i32, i64, String)> {
    let offsets = stepped.store.committed_offsets(view, group).into_iter();
    offsets
        .map(|(_, partition, found)| (partition.value(), found.offset.value(), found.metadata.to_string()))
        .collect()
}

#[test]
fn what_a_group_committed_comes_back_unchanged_after_a_restart() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[]);
    let metadata = ["", "plain", "naïve {\"json\": \"\\u0000\"}\u{0}\n", &"long".repeat(5000)];
    let mut expected = Vec::new();
    for (text, n) in metadata.iter().zip(0..) {
        let committed = CommittedOffset {
            offset: Offset::new(i64::MAX - i64::from(n)),
            leader_epoch: (n > 0).then_some(LeaderEpoch::new(n)),
            metadata: (*text).into(),
            committed: Timestamp::new(1000 + i64::from(n)),
        };
        let new = OffsetCommit { topic: topic.id, partition: P1, committed: committed.clone() };
        commit(&mut stepped, view.id, &format!("group {n} é"), vec![new]);
        expected.push(committed);
    }
    put(&mut stepped, view.id, "group 2 é", b"\x00memory\xff");
    put(&mut stepped, view.id, "", b"of the group without a name");
    // Once from the entries, once from a checkpoint.
    for _ in 0..2 {
        stepped = stepped.reopen(small_settings());
        assert_eq!(names(&stepped, view.id), ["", "group 0 é", "group 1 é", "group 2 é", "group 3 é"]);
        for (committed, n) in expected.iter().zip(0..) {
            let group = format!("group {n} é");
            let found = stepped.store.committed_offset(view.id, &group, topic.id, P1);
            assert_eq!(found.as_ref(), Some(committed));
            assert_eq!(stepped.store.committed_offsets(view.id, &group), [(topic.id, P1, committed.clone())]);
            assert_eq!(stepped.store.committed_offset(view.id, &group, topic.id, P0), None);
            let memory = stepped.store.group_memory(view.id, &group).expect("known");
            assert_eq!(&memory[..], if n == 2 { &b"\x00memory\xff"[..] } else { b"" });
        }
        assert_eq!(
            &stepped.store.group_memory(view.id, "").expect("known")[..],
            b"of the group without a name"
        );
        assert_eq!(stepped.store.group_memory(view.id, "group 4 é"), None);
        stepped.store.checkpoint().expect("written");
    }
}

#[test]
fn a_commit_shows_when_it_is_durable_and_the_later_call_stays() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[]);
    let call = |offset| {
        let offsets = vec![at(topic.id, P0, offset, "")];
        stepped.store.commit_offsets(view.id, "g", offsets).expect("accepted")
    };
    let (mut first, mut second) = (call(7), call(5));
    assert!(first.try_take().is_none() && second.try_take().is_none());
    assert_eq!(names(&stepped, view.id), [""; 0]);
    stepped.settle();
    first.try_take().expect("settled").expect("durable");
    second.try_take().expect("settled").expect("durable");
    assert_eq!(offsets_of(&stepped, view.id, "g"), [(0, 5, String::new())]);
    let negative =
        CommittedOffset { leader_epoch: Some(LeaderEpoch::new(-7)), ..at(topic.id, P0, 6, "").committed };
    let new = OffsetCommit { topic: topic.id, partition: P0, committed: negative };
    commit(&mut stepped, view.id, "g", vec![new]);
    let found = stepped.store.committed_offset(view.id, "g", topic.id, P0).expect("known");
    assert_eq!(found.leader_epoch, None, "a negative epoch is none");
}

#[test]
fn a_commit_without_offsets_succeeds_and_writes_nothing() {
    let mut stepped = Stepped::open(small_settings());
    let (view, _) = stepped.topic("t", &[]);
    let mut empty = stepped.store.commit_offsets(view.id, "g", Vec::new()).expect("accepted");
    assert!(empty.try_take().expect("nothing to wait for").is_ok());
    assert!(!stepped.stepper.step(), "nothing to write");
    assert_eq!(names(&stepped, view.id), [""; 0]);
    let nowhere = ViewId::new(topic_id(0).value());
    let error = stepped.store.commit_offsets(nowhere, "g", Vec::new()).expect_err("no such view");
    assert_eq!(error.kind(), GroupErrorKind::UnknownView);
}

fn topic_id(n: u128) -> TopicId {
    TopicId::new(uuid::Uuid::from_u128(n))
}

#[test]
fn a_commit_is_refused_as_a_whole() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[]);
    let other = stepped.store.ensure_view("other", NOW).expect("admitted");
    let other = stepped.done(other);
    let gone = stepped.topic("gone", &[]).1;
    let deleted = stepped.store.delete_topic(view.id, gone.id).expect("known");
    let check = |view: ViewId, bad: OffsetCommit, kind: GroupErrorKind| {
        let offsets = vec![at(topic.id, P0, 1, ""), bad, at(topic.id, P1, 1, "")];
        let error = stepped.store.commit_offsets(view, "g", offsets).expect_err("refused");
        assert_eq!(error.kind(), kind, "{error}");
    };
    let unknown = GroupErrorKind::UnknownTopic;
    check(view.id, at(topic_id(9), P0, 1, ""), unknown);
    check(view.id, at(gone.id, P0, 1, ""), unknown);
    check(other.id, at(topic.id, P0, 1, ""), unknown);
    for partition in [-1, 2, i32::MAX, i32::MIN] {
        let partition = PartitionIndex::new(partition);
        check(view.id, at(topic.id, partition, 1, ""), GroupErrorKind::UnknownPartition);
    }
    check(view.id, at(topic.id, P0, 1, &"m".repeat(32_768)), GroupErrorKind::TooLarge);
    check(ViewId::new(topic.id.value()), at(topic.id, P0, 1, ""), GroupErrorKind::UnknownView);
    stepped.done(deleted);
    assert_eq!(names(&stepped, view.id), [""; 0]);
}

#[test]
fn what_is_longer_than_the_formats_is_refused() {
    let settings = || Settings { batch_len_max: 48 << 10, ..small_settings() };
    let mut stepped = Stepped::open(settings());
    let (view, topic) = stepped.topic("t", &[]);
    let longest = "n".repeat(32_767);
    put(&mut stepped, view.id, &longest, b"memory");
    commit(&mut stepped, view.id, &longest, vec![at(topic.id, P0, 1, &"m".repeat(1000))]);
    let longer = "n".repeat(32_768);
    let memory = || Bytes::from_static(b"memory");
    let errors = [
        stepped.store.put_group(view.id, &longer, memory()).expect_err("the name"),
        stepped.store.commit_offsets(view.id, &longer, Vec::new()).expect_err("the name"),
        stepped.store.delete_group(view.id, &longer).expect_err("the name"),
        stepped.store.delete_offsets(view.id, &longer, &[]).expect_err("the name"),
        stepped.store.put_group(view.id, "g", vec![0; 64 << 10].into()).expect_err("the memory"),
    ];
    for error in errors {
        assert_eq!(error.kind(), GroupErrorKind::TooLarge, "{error}");
    }
    let stepped = stepped.reopen(settings());
    assert_eq!(names(&stepped, view.id), [longest]);
}

#[test]
fn a_topic_takes_its_offsets_with_it_from_every_group() {
    let mut stepped = Stepped::open(small_settings());
    let (view, kept) = stepped.topic("kept", &[]);
    let (_, gone) = stepped.topic("gone", &[]);
    commit(&mut stepped, view.id, "both", vec![at(kept.id, P0, 1, "k"), at(gone.id, P0, 2, "g")]);
    commit(&mut stepped, view.id, "only", vec![at(gone.id, P0, 3, "g"), at(gone.id, P1, 3, "g")]);
    commit(&mut stepped, view.id, "known", vec![at(gone.id, P1, 4, "g")]);
    put(&mut stepped, view.id, "known", b"memory");
    commit(&mut stepped, view.id, "other", vec![at(kept.id, P1, 5, "k")]);
    // Prepared before the deletion, durable with it.
    let offsets = vec![at(gone.id, P1, 6, "late")];
    let late = stepped.store.commit_offsets(view.id, "late", offsets).expect("accepted");
    let deleted = stepped.store.delete_topic(view.id, gone.id).expect("known");
    stepped.done(late);
    stepped.done(deleted);
    let again = stepped.topic("gone", &[]).1;
    for _ in 0..2 {
        assert_eq!(names(&stepped, view.id), ["both", "known", "other"]);
        assert_eq!(offsets_of(&stepped, view.id, "both"), [(0, 1, "k".to_owned())]);
        assert_eq!(offsets_of(&stepped, view.id, "known"), []);
        assert_eq!(stepped.store.committed_offset(view.id, "both", again.id, P0), None, "a new topic");
        stepped = stepped.reopen(small_settings());
    }
}

#[test]
fn a_group_goes_with_its_memory_and_its_offsets_and_begins_anew() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[]);
    put(&mut stepped, view.id, "g", b"memory");
    commit(&mut stepped, view.id, "g", vec![at(topic.id, P0, 8, "old")]);
    let deleted = stepped.store.delete_group(view.id, "g").expect("known");
    let error = stepped.store.delete_group(view.id, "g").expect_err("deleted a moment ago");
    assert_eq!(error.kind(), GroupErrorKind::UnknownGroup);
    let error = stepped.store.delete_offsets(view.id, "g", &[(topic.id, P0)]).expect_err("likewise");
    assert_eq!(error.kind(), GroupErrorKind::UnknownGroup);
    stepped.done(deleted);
    assert_eq!(names(&stepped, view.id), [""; 0]);
    commit(&mut stepped, view.id, "g", vec![at(topic.id, P1, 1, "new")]);
    let stepped = stepped.reopen(small_settings());
    assert_eq!(offsets_of(&stepped, view.id, "g"), [(1, 1, "new".to_owned())]);
    assert_eq!(stepped.store.group_memory(view.id, "g"), Some(Bytes::new()));
}

#[test]
fn a_group_of_which_nothing_is_left_is_no_longer_there() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[]);
    commit(&mut stepped, view.id, "offsets", vec![at(topic.id, P0, 1, "a"), at(topic.id, P1, 2, "b")]);
    put(&mut stepped, view.id, "memory", b"memory");
    commit(&mut stepped, view.id, "memory", vec![at(topic.id, P0, 1, "")]);
    let delete = |stepped: &mut Stepped, group: &str, places: &[(TopicId, PartitionIndex)]| {
        let commit = stepped.store.delete_offsets(view.id, group, places).expect("known");
        stepped.done(commit);
    };
    delete(&mut stepped, "offsets", &[(topic.id, P0), (topic_id(9), P0), (topic.id, P0)]);
    assert_eq!(offsets_of(&stepped, view.id, "offsets"), [(1, 2, "b".to_owned())]);
    let again = stepped.store.delete_offsets(view.id, "offsets", &[(topic.id, P0)]).expect("known");
    assert!(!stepped.stepper.step(), "what is not there takes no entry");
    stepped.done(again);
    delete(&mut stepped, "offsets", &[(topic.id, P1)]);
    delete(&mut stepped, "memory", &[(topic.id, P0)]);
    assert_eq!(names(&stepped, view.id), ["memory"]);
    put(&mut stepped, view.id, "memory", b"");
    put(&mut stepped, view.id, "never", b"");
    assert_eq!(names(&stepped, view.id), [""; 0]);
    let stepped = stepped.reopen(small_settings());
    assert_eq!((names(&stepped, view.id).len(), stepped.store.stats().groups_len), (0, 0));
}

#[test]
fn more_offsets_than_an_entry_takes_are_deleted_by_one_call() {
    let settings = || Settings { batch_len_max: 8 << 10, ..small_settings() };
    let mut stepped = Stepped::open(settings());
    let view = stepped.topic("t", &[]).0;
    let topic = stepped.store.create_topic(view.id, new_topic("many", 2000, &[]), false, NOW);
    let topic = stepped.done(topic.expect("accepted"));
    let places: Vec<_> = (0..2000).map(|index| (topic.id, PartitionIndex::new(index))).collect();
    for some in places.chunks(300) {
        let offsets = some.iter().map(|(topic, partition)| at(*topic, *partition, 1, "")).collect();
        commit(&mut stepped, view.id, "g", offsets);
    }
    assert_eq!(stepped.store.committed_offsets(view.id, "g").len(), 2000);
    let deleted = stepped.store.delete_offsets(view.id, "g", &places[1..]).expect("known");
    stepped.done(deleted);
    let stepped = stepped.reopen(settings());
    assert_eq!(offsets_of(&stepped, view.id, "g"), [(0, 1, String::new())]);
}

#[test]
fn groups_are_kept_up_to_a_limit_and_what_does_not_grow_goes_on() {
    let settings = || Settings { groups_len_max: 10_000, ..small_settings() };
    let mut stepped = Stepped::open(settings());
    let (view, topic) = stepped.topic("t", &[]);
    let mut made: i32 = 0;
    let refused = loop {
        let offsets = vec![at(topic.id, P0, 1, "four")];
        match stepped.store.commit_offsets(view.id, &format!("group {made}"), offsets) {
            Ok(commit) => stepped.done(commit),
            Err(error) => break error,
        }
        made += 1;
    };
    assert_eq!(refused.kind(), GroupErrorKind::Full);
    assert!((20..60).contains(&made), "{made}");
    let mut stepped = stepped.reopen(settings());
    let full = stepped.store.stats().groups_len;
    assert!((9_500..=10_000).contains(&full), "{full}");
    commit(&mut stepped, view.id, "group 0", vec![at(topic.id, P0, 2, "four")]);
    let grown = vec![at(topic.id, P0, 3, &"more".repeat(200))];
    let error = stepped.store.commit_offsets(view.id, "group 0", grown).expect_err("no room");
    assert_eq!(error.kind(), GroupErrorKind::Full);
    let error = stepped.store.put_group(view.id, "group 0", vec![0; 1000].into()).expect_err("no room");
    assert_eq!(error.kind(), GroupErrorKind::Full);
    let deleted = stepped.store.delete_group(view.id, "group 1").expect("known");
    // What is on its way to be deleted makes room for what comes after it.
    commit(&mut stepped, view.id, "another", vec![at(topic.id, P0, 1, "four")]);
    stepped.done(deleted);
    assert!(stepped.store.stats().groups_len <= 10_000);
    let mut stepped = stepped.reopen(Settings { groups_len_max: 100, ..small_settings() });
    commit(&mut stepped, view.id, "group 0", vec![at(topic.id, P0, 3, "less")]);
    put(&mut stepped, view.id, "group 0", b"");
}

#[test]
fn groups_are_deleted_on_a_full_log_too() {
    let settings = Settings { size_limit: Some(6 * (128 << 10)), ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (view, topic) = stepped.topic("t", &[("retention.ms", "-1")]);
    put(&mut stepped, view.id, "memory", b"memory");
    commit(&mut stepped, view.id, "offsets", vec![at(topic.id, P0, 1, "")]);
    let refused = loop {
        match stepped.store.append(topic.id, P0, large(1, 30_000), NOW) {
            Ok(commit) => drop(stepped.done(commit)),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), AppendErrorKind::Full);
    for len in [10_000, 1000, 1] {
        let refused = loop {
            match stepped.store.put_group(view.id, "memory", vec![1; len].into()) {
                Ok(commit) => stepped.done(commit),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), GroupErrorKind::Full, "{len}");
    }
    let deleted = stepped.store.delete_group(view.id, "memory").expect("deletions go on");
    stepped.done(deleted);
    let deleted = stepped.store.delete_offsets(view.id, "offsets", &[(topic.id, P0)]).expect("likewise");
    stepped.done(deleted);
    assert_eq!(names(&stepped, view.id), [""; 0]);
}

#[test]
fn files_that_hold_nothing_but_commits_are_freed() {
    let mut stepped = Stepped::open(Settings { size_limit: Some(8 * (128 << 10)), ..small_settings() });
    let (view, topic) = stepped.topic("t", &[]);
    let metadata = "m".repeat(10_000);
    for offset in 0..300 {
        commit(&mut stepped, view.id, "g", vec![at(topic.id, P0, offset, &metadata)]);
        stepped.maintain(1);
    }
    assert!(stepped.recorder.count("Freed") > 10);
    let stepped = stepped.reopen(small_settings());
    assert_eq!(offsets_of(&stepped, view.id, "g"), [(0, 299, metadata)]);
}

#[test]
fn nothing_is_kept_of_groups_after_the_log_has_failed() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[]);
    commit(&mut stepped, view.id, "g", vec![at(topic.id, P0, 1, "")]);
    stepped.disk.fail(kolumn_journal::sim::CallKind::Sync, 1, std::io::ErrorKind::Other);
    let lost = vec![at(topic.id, P0, 2, "")];
    let mut lost = stepped.store.commit_offsets(view.id, "g", lost).expect("accepted");
    stepped.settle();
    assert!(lost.try_take().expect("answered").is_err());
    assert_eq!(offsets_of(&stepped, view.id, "g"), [(0, 1, String::new())], "reads go on");
    let error = stepped.store.delete_group(view.id, "g").expect_err("read-only");
    assert_eq!(error.kind(), GroupErrorKind::ReadOnly);
    let queued = Settings { queue_len_max: 1, ..small_settings() };
    let mut stepped = Stepped::open(queued);
    let view = stepped.topic("t", &[]).0;
    let refused = loop {
        if let Err(error) = stepped.store.put_group(view.id, "g", vec![1; 9_000].into()) {
            break error;
        }
    };
    assert_eq!(refused.kind(), GroupErrorKind::Busy);
}

#[test]
fn committers_in_many_threads_never_let_an_offset_go_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(open_at(directory.path(), Settings::default()));
    let (view, topic) = make_topic(&store, "t", 2, &[]);
    let next = Arc::new(parking_lot::Mutex::new(0_i64));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (store, next) = (Arc::clone(&store), Arc::clone(&next));
            let (view, topic) = (view.id, topic.id);
            std::thread::spawn(move || {
                for _ in 0..50 {
                    let (offset, commit) = {
                        let mut next = next.lock();
                        *next += 1;
                        let offsets = vec![at(topic, P0, *next, "")];
                        (*next, store.commit_offsets(view, "g", offsets).expect("accepted"))
                    };
                    commit.wait().expect("durable");
                    let found = store.committed_offset(view, "g", topic, P0).expect("visible when durable");
                    assert!(found.offset.value() >= offset, "{} after {offset}", found.offset);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("no panic");
    }
    store.close().expect("closed");
    drop(store);
    let store = open_at(directory.path(), Settings::default());
    let found = store.committed_offset(view.id, "g", topic.id, P0).expect("kept");
    assert_eq!(found.offset.value(), 200);
}
