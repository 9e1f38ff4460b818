//! What is appended is read: the same bytes, in order, from memory, from files, after a restart.

use kolumn_topic_store::{
    Offset, PartitionIndex, ReadErrorKind, ReadOutcome, Settings, Store, TopicErrorKind,
};

use crate::support::*;

#[test]
fn batches_are_read_byte_for_byte_with_consecutive_offsets() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open_at(directory.path(), small_settings());
    let (_, topic) = make_topic(&store, "fruit", 2, &[]);
    let sent = [batch(&[b"a", b"b", b"c"]), batch(&[b"d"]), batch(&[b"e", b"f"])];
    let offsets: Vec<_> =
        sent.iter().map(|batch| append(&store, topic.id, P0, batch).base_offset.value()).collect();
    assert_eq!(offsets, [0, 3, 4]);
    let stored = read_all(&store, topic.id, P0, 1 << 20);
    assert_eq!(stored.len(), 3);
    for ((stored, sent), offset) in stored.iter().zip(&sent).zip(offsets) {
        assert_stored(stored, sent, offset);
    }
    let other = store.offsets(topic.id, PartitionIndex::new(1)).expect("known");
    assert_eq!(other.high_watermark, Offset::new(0));
}

#[test]
fn everything_is_there_after_a_restart_and_the_epoch_is_one_higher() {
    let directory = tempfile::tempdir().expect("a directory");
    let sent: Vec<_> = (0..20).map(|n| batch_of(9, 0, n * 2, 2)).collect();
    let (id, view) = {
        let store = open_at(directory.path(), small_settings());
        let (view, topic) = make_topic(&store, "fruit", 1, &[("retention.ms", "-1")]);
        for batch in &sent[..10] {
            append(&store, topic.id, P0, batch);
        }
        store.close().expect("closes");
        (topic.id, view)
    };
    for round in 1..3 {
        let store = open_at(directory.path(), small_settings());
        assert_eq!(store.view("kafka"), Some(view.clone()));
        let topic = store.topic(view.id, "fruit").expect("kept");
        assert_eq!((topic.id, topic.config.retention_ms()), (id, None));
        let offsets = store.offsets(id, P0).expect("known");
        assert_eq!(offsets.leader_epoch.value(), round);
        let high = usize::try_from(offsets.high_watermark.value()).expect("positive");
        let stored = read_all(&store, id, P0, 500);
        assert_eq!(stored.len(), high / 2);
        for ((stored, sent), offset) in stored.iter().zip(&sent).zip((0..).step_by(2)) {
            assert_stored(stored, sent, offset);
        }
        // The window is as it was: the last batch is known, the next one is next.
        let again = append(&store, id, P0, &sent[high / 2 - 1]);
        assert_eq!(again.base_offset.value(), i64::try_from(high).expect("small") - 2);
        append(&store, id, P0, &sent[high / 2]);
        assert_eq!(store.epoch_of(id, P0, Offset::new(0)).expect("known").value(), 0);
        let newest = store.epoch_of(id, P0, offsets.high_watermark).expect("known");
        assert_eq!(newest.value(), round);
        if round == 1 {
            store.close().expect("closes");
        }
    }
}

#[test]
fn what_left_memory_is_read_from_the_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = Settings { tail_len_max: 0, ..small_settings() };
    let store = open_at(directory.path(), settings);
    let (_, topic) = make_topic(&store, "fruit", 1, &[]);
    let sent: Vec<_> = (0..40_u8).map(|n| batch(&[&[n; 3000], &[n; 10]])).collect();
    for batch in &sent {
        append(&store, topic.id, P0, batch);
    }
    assert_eq!(store.stats().tail_len, 0);
    let stored = read_all(&store, topic.id, P0, 10_000);
    for ((stored, sent), offset) in stored.iter().zip(&sent).zip((0..).step_by(2)) {
        assert_stored(stored, sent, offset);
    }
    assert_eq!(stored.len(), sent.len());
}

#[test]
fn small_batches_that_left_memory_are_read_many_at_once() {
    let mut stepped = Stepped::open(Settings { tail_len_max: 0, ..small_settings() });
    let (_, topic) = stepped.topic("t", &[]);
    let commits: Vec<_> =
        (0..200).map(|_| stepped.store.append(topic.id, P0, large(1, 100), NOW).expect("accepted")).collect();
    for commit in commits {
        stepped.done(commit);
    }
    stepped.disk.forget_calls();
    assert_eq!(read_all(&stepped.store, topic.id, P0, 1 << 20).len(), 200);
    let calls = stepped.disk.calls();
    let reads = calls.iter().filter(|call| call.kind == kolumn_journal::sim::CallKind::Read).count();
    assert!(reads <= 50, "{reads}");
}

#[test]
fn a_thinned_index_is_read_by_scanning_and_gives_the_same_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = Settings { index_len_max: 0, ..small_settings() };
    let store = open_at(directory.path(), settings);
    let (view, topic) = make_topic(&store, "fruit", 2, &[]);
    let other = store.create_topic(view.id, new_topic("other", 1, &[]), false, NOW).expect("new");
    let other = other.wait().expect("durable");
    let mut sent = Vec::new();
    for n in 0..200_i64 {
        let batch = batch_at(NOW.value() + n, &[n.to_string().as_bytes()]);
        append(&store, topic.id, P0, &batch);
        append(&store, topic.id, PartitionIndex::new(1), &batch);
        if n % 3 == 0 {
            append(&store, other.id, P0, &batch);
        }
        sent.push(batch);
    }
    assert!(store.stats().index_entries < 100, "{:?}", store.stats());
    let outcome = store.try_read(request(topic.id, P0, 0, 1000)).expect("in range");
    assert!(matches!(outcome, ReadOutcome::NeedsDisk));
    for partition in [0, 1] {
        let stored = read_all(&store, topic.id, PartitionIndex::new(partition), 700);
        assert_eq!(stored.len(), sent.len());
        for ((stored, sent), offset) in stored.iter().zip(&sent).zip(0..) {
            assert_stored(stored, sent, offset);
        }
    }
    for n in 0..200_i64 {
        let time = kolumn_topic_store::Timestamp::new(NOW.value() + n);
        let hit = store.offset_for_time(topic.id, P0, time).expect("readable").expect("found");
        assert_eq!((hit.offset.value(), hit.timestamp), (n, time));
    }
}

#[test]
fn an_answer_has_whole_batches_and_at_least_one_if_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open_at(directory.path(), small_settings());
    let (_, topic) = make_topic(&store, "fruit", 1, &[]);
    let sent = batch(&[&[1; 100], b"x"]);
    for _ in 0..3 {
        append(&store, topic.id, P0, &sent);
    }
    let count = |offset, max_len, at_least_one_batch| {
        let request =
            kolumn_topic_store::ReadRequest { at_least_one_batch, ..request(topic.id, P0, offset, max_len) };
        let outcome = store.try_read(request).expect("in range");
        let ReadOutcome::Ready(read) = outcome else { panic!("nothing is thinned") };
        assert_eq!(read.len, read.slices.iter().map(kolumn_topic_store::Slice::len).sum::<usize>());
        read.slices.len()
    };
    assert_eq!(count(0, 0, true), 1);
    assert_eq!(count(0, 0, false), 0);
    assert_eq!(count(1, sent.len() * 2, true), 2);
    assert_eq!(count(2, sent.len() * 3 - 1, false), 2);
    assert_eq!(count(0, sent.len() * 3, false), 3);
    assert_eq!(count(6, usize::MAX, true), 0);
    for offset in [-1, 7, i64::MAX] {
        let error = store.try_read(request(topic.id, P0, offset, 1)).expect_err("out of range");
        assert!(
            matches!(error.kind(), ReadErrorKind::OffsetOutOfRange { offsets } if offsets.high_watermark.value() == 6)
        );
    }
    let error = store.try_read(request(topic.id, PartitionIndex::new(1), 0, 1)).expect_err("unknown");
    assert_eq!(error.kind(), ReadErrorKind::UnknownPartition);
}

#[test]
fn topics_are_found_listed_and_deleted_by_identity() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open_at(directory.path(), small_settings());
    let (view, first) = make_topic(&store, "b.x", 1, &[]);
    let (_, second) = make_topic(&store, "a", 3, &[]);
    let names: Vec<_> = store.topics(view.id).iter().map(|topic| topic.name.to_string()).collect();
    assert_eq!(names, ["a", "b.x"]);
    let kind = |name: &str, partitions| {
        let new = new_topic(name, partitions, &[]);
        store.create_topic(view.id, new, true, NOW).map(|_| ()).map_err(|error| error.kind())
    };
    assert_eq!(kind("b.x", 1), Err(TopicErrorKind::Exists));
    assert_eq!(kind("b_x", 1), Err(TopicErrorKind::Exists));
    assert_eq!(kind("c/d", 1), Err(TopicErrorKind::InvalidName));
    assert_eq!(kind("c", 0), Err(TopicErrorKind::InvalidPartitions));
    assert_eq!(kind("c", i32::MAX), Err(TopicErrorKind::InvalidPartitions));
    assert_eq!(kind("c", 1), Ok(()));
    assert!(store.topic(view.id, "c").is_none(), "only validated");
    assert!(store.topic(view.id, "b_x").is_none(), "found by its own name only");
    append(&store, first.id, P0, &batch(&[b"1"]));
    store.delete_topic(view.id, first.id).expect("known").wait().expect("durable");
    assert!(store.topic(view.id, "b.x").is_none());
    assert_eq!(
        store.append(first.id, P0, batch(&[b"2"]), NOW).expect_err("gone").kind(),
        kolumn_topic_store::AppendErrorKind::UnknownTopic
    );
    assert_eq!(store.delete_topic(view.id, first.id).expect_err("gone").kind(), TopicErrorKind::UnknownTopic);
    let (_, again) = make_topic(&store, "b.x", 1, &[]);
    assert_ne!(again.id, first.id);
    assert_eq!(store.offsets(again.id, P0).expect("new").high_watermark.value(), 0);
    assert_eq!(store.topic_by_id(view.id, second.id), Some(second));
}

#[test]
fn the_newest_batches_are_read_from_memory() {
    let mut stepped = Stepped::open(Settings { tail_len_max: 64 << 10, ..small_settings() });
    let (_, topic) = stepped.topic("t", &[]);
    let sent: Vec<_> = (0..20_u8).map(|n| large(n, 10_000)).collect();
    for batch in &sent {
        stepped.append(topic.id, batch);
    }
    let tail_len = stepped.store.stats().tail_len;
    assert!((1..=64 << 10).contains(&tail_len), "{tail_len}");
    stepped.disk.forget_calls();
    let read = stepped.store.read(request(topic.id, P0, 17, 1 << 20)).expect("in range");
    assert_eq!(read.slices.len(), 3);
    for ((slice, sent), offset) in read.slices.iter().zip(&sent[17..]).zip(17..) {
        assert_stored(&slice.try_bytes().expect("in memory"), sent, offset);
    }
    let reads = |stepped: &Stepped| {
        stepped.disk.calls().iter().filter(|call| call.kind == kolumn_journal::sim::CallKind::Read).count()
    };
    assert_eq!((bytes_of(&read).len(), reads(&stepped)), (3, 0));
    let old = stepped.store.read(request(topic.id, P0, 0, 1)).expect("in range");
    assert!(old.slices[0].try_bytes().is_none(), "left memory");
    assert_stored(&bytes_of(&old)[0], &sent[0], 0);
    assert!(reads(&stepped) > 0);
}

#[test]
fn partitions_are_counted_by_topic_and_in_all() {
    let settings = Settings { partitions_max: 4, all_partitions_max: 10, ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (view, first) = stepped.topic("t", &[]);
    let kind = |stepped: &Stepped, partitions| {
        let new = new_topic("u", partitions, &[]);
        let made = stepped.store.create_topic(view.id, new, true, NOW);
        made.map(|_| ()).map_err(|error| error.kind())
    };
    assert_eq!(kind(&stepped, 4), Ok(()));
    assert_eq!(kind(&stepped, 5), Err(TopicErrorKind::InvalidPartitions));
    for name in ["q", "r", "s"] {
        stepped.topic(name, &[]);
    }
    assert_eq!(kind(&stepped, 2), Ok(()));
    assert_eq!(kind(&stepped, 3), Err(TopicErrorKind::InvalidPartitions));
    let deleted = stepped.store.delete_topic(view.id, first.id).expect("known");
    stepped.done(deleted);
    assert_eq!(kind(&stepped, 4), Ok(()));
}

#[test]
fn closing_waits_for_what_is_under_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open_at(directory.path(), small_settings());
    let (_, topic) = make_topic(&store, "t", 1, &[]);
    let sent = large(1, 20_000);
    let commits: Vec<_> =
        (0..20).map(|_| store.append(topic.id, P0, sent.clone(), NOW).expect("accepted")).collect();
    let space = store.space_changed();
    store.close().expect("closes");
    for commit in commits {
        commit.wait().expect("durable");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let patience = std::time::Duration::from_secs(20);
        tokio::time::timeout(patience, space).await.expect("who waited for space is told");
    });
    let error = store.append(topic.id, P0, sent, NOW).expect_err("closed");
    assert_eq!(error.kind(), kolumn_topic_store::AppendErrorKind::ReadOnly);
    assert_eq!(read_all(&store, topic.id, P0, 1 << 20).len(), 20);
    drop(store);
    let recorder = std::sync::Arc::new(Recorder::default());
    let (disk, _) = kolumn_journal::probe(directory.path()).expect("the directory is there");
    let observer = std::sync::Arc::<Recorder>::clone(&recorder);
    Store::open(disk, small_settings(), 7, observer, NOW).expect("opens");
    let opened = recorder.events.lock()[0].clone();
    assert!(opened.contains("replayed: 0,"), "the checkpoint covers everything: {opened}");
}

#[test]
fn files_may_have_another_length_after_a_restart() {
    for (one, two) in [(64_u64, 256_u64), (256, 64), (64, 192), (192, 256)] {
        let settings = |kib: u64| Settings {
            tail_len_max: 0,
            index_len_max: 0,
            batch_len_max: 8 << 10,
            file_len: kib << 10,
            ..small_settings()
        };
        let mut stepped = Stepped::open(settings(one));
        let (_, topic) = stepped.topic("t", &[("retention.ms", "-1")]);
        let sent: Vec<_> = (0..240_u8).map(|n| large(n, 4000)).collect();
        for batch in &sent[..120] {
            stepped.append(topic.id, batch);
        }
        let mut stepped = stepped.reopen(settings(two));
        for batch in &sent[120..] {
            stepped.append(topic.id, batch);
        }
        for _ in 0..2 {
            stepped.maintain(3);
            let stored = read_all(&stepped.store, topic.id, P0, 20_000);
            assert_eq!(stored.len(), sent.len());
            for ((stored, sent), offset) in stored.iter().zip(&sent).zip(0..) {
                assert_stored(stored, sent, offset);
            }
            stepped = stepped.reopen(settings(two));
        }
    }
}
