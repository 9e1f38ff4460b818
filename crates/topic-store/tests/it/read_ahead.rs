//! What is read before it is asked for.

use bytes::Bytes;
use kolumn_journal::sim::CallKind;
use kolumn_topic_store::{ReadAhead, ReadRequest, Settings, TopicId};

use crate::support::{P0, Stepped, assert_stored, large, request, small_settings};

/// A store whose batches have all left memory.
fn cold(count: u8, len: usize) -> (Stepped, TopicId, Vec<Bytes>) {
    let settings =
        Settings { tail_len_max: 0, size_limit: Some(256 << 20), file_len: 1 << 20, ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[]);
    let sent: Vec<_> = (0..count).map(|n| large(n, len)).collect();
    for batch in &sent {
        stepped.append(topic.id, batch);
    }
    stepped.disk.forget_calls();
    (stepped, topic.id, sent)
}

fn reads(stepped: &Stepped) -> usize {
    stepped.disk.calls().iter().filter(|call| call.kind == CallKind::Read).count()
}

/// A request for `count` batches of what [`cold`] has with the length 30,000.
fn batches(topic: TopicId, from: i64, count: usize) -> ReadRequest {
    request(topic, P0, from, count * 30_200)
}

#[test]
fn what_was_read_ahead_is_in_memory() {
    let (stepped, topic, sent) = cold(20, 30_000);
    let ahead = stepped.store.read_ahead(batches(topic, 5, 8)).expect("nothing is in memory");
    assert_eq!(reads(&stepped), 0, "claiming does not touch the disk");
    ahead.run();
    assert_eq!(reads(&stepped), 1, "neighbours are read at once");
    let read = stepped.store.read(batches(topic, 5, 8)).expect("in range");
    assert_eq!(read.slices.len(), 8);
    for ((slice, sent), offset) in read.slices.iter().zip(sent.iter().skip(5)).zip(5..) {
        assert!(!slice.is_recent());
        assert_stored(&slice.try_bytes().expect("read ahead"), sent, offset);
    }
    let behind = stepped.store.read(batches(topic, 13, 1)).expect("in range");
    assert!(behind.slices[0].try_bytes().is_none());
    assert_eq!(reads(&stepped), 1);
}

#[test]
fn nothing_is_claimed_twice_nor_what_memory_holds_anyhow() {
    let (stepped, topic, _) = cold(20, 30_000);
    let first = stepped.store.read_ahead(batches(topic, 0, 8)).expect("nothing is in memory");
    assert!(stepped.store.read_ahead(batches(topic, 0, 8)).is_none(), "under way");
    first.run();
    assert!(stepped.store.read_ahead(batches(topic, 0, 8)).is_none(), "known");
    stepped.store.read_ahead(batches(topic, 4, 8)).expect("the second half is not").run();
    assert_eq!(reads(&stepped), 2);

    let mut warm = Stepped::open(small_settings());
    let (_, topic) = warm.topic("t", &[]);
    warm.append(topic.id, &large(1, 10_000));
    assert!(warm.store.read_ahead(request(topic.id, P0, 0, 1 << 20)).is_none());
    assert!(warm.store.read_ahead(request(topic.id, P0, 1, 1 << 20)).is_none(), "nothing is there yet");
    assert!(warm.store.read_ahead(request(topic.id, P0, 2, 1 << 20)).is_none(), "out of range");
}

#[test]
fn who_asks_for_what_is_under_way_waits_for_it() {
    let (stepped, topic, sent) = cold(10, 30_000);
    let ahead = stepped.store.read_ahead(batches(topic, 0, 4)).expect("nothing is in memory");
    let read = stepped.store.read(batches(topic, 3, 1)).expect("in range");
    let (started, starts) = std::sync::mpsc::channel();
    let bytes = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            started.send(()).expect("heard");
            read.slices[0].read(0..read.len)
        });
        starts.recv().expect("told");
        ahead.run();
        reader.join().expect("no panic").expect("readable")
    });
    assert_stored(&bytes, &sent[3], 3);
    assert_eq!(reads(&stepped), 1);
}

#[test]
fn a_claim_that_is_given_up_holds_nobody_up() {
    let (stepped, topic, sent) = cold(10, 30_000);
    drop(stepped.store.read_ahead(batches(topic, 0, 4)).expect("nothing is in memory"));
    let again = stepped.store.read_ahead(batches(topic, 0, 4)).expect("may be claimed again");
    drop(again);
    let read = stepped.store.read(batches(topic, 0, 1)).expect("in range");
    assert_stored(&read.slices[0].read(0..read.len).expect("readable"), &sent[0], 0);
}

#[test]
fn what_is_read_ahead_is_bounded_and_who_does_not_come_for_it_loses_it() {
    const LEN: usize = 900_000;
    let settings = Settings {
        tail_len_max: 0,
        batch_len_max: 1 << 20,
        file_len: 8 << 20,
        queue_len_max: 8 << 20,
        size_limit: Some(256 << 20),
        ..small_settings()
    };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[]);
    for n in 0..20_u8 {
        stepped.append(topic.id, &large(n, LEN));
    }
    let at = |offset| request(topic.id, P0, offset, LEN + 200);
    let claimed =
        (0..20).filter(|offset| stepped.store.read_ahead(at(*offset)).map(ReadAhead::run).is_some());
    let claimed = claimed.count();
    assert_eq!(claimed, 9, "8 MiB");
    let read = stepped.store.read(at(0)).expect("in range");
    assert!(read.slices[0].try_bytes().is_some(), "the first has not come to its end until now");
    stepped.store.read_ahead(at(9)).expect("room for what the first does not need any more").run();
    let tries = (0..1000).position(|_| stepped.store.read_ahead(at(10)).is_some());
    assert!(tries.is_some_and(|tries| tries > 1), "the second never comes: {tries:?}");
}
