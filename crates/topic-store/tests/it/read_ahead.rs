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
    let (stepped, topic) = long_batches(20);
    let claimed = (0..20)
        .filter(|offset| stepped.store.read_ahead(long_at(topic, *offset)).map(ReadAhead::run).is_some());
    let claimed = claimed.count();
    assert_eq!(claimed, 9, "8 MiB");
    let read = stepped.store.read(long_at(topic, 0)).expect("in range");
    assert!(read.slices[0].try_bytes().is_some(), "the first has not come to its end until now");
    stepped
        .store
        .read_ahead(long_at(topic, 9))
        .expect("room for what the first does not need any more")
        .run();
    let tries = (0..1000).position(|_| stepped.store.read_ahead(long_at(topic, 10)).is_some());
    assert!(tries.is_some_and(|tries| tries > 1), "the second never comes: {tries:?}");
}

const LONG: usize = 900_000;

/// Batches that nearly fill a megabyte, and all have left memory.
fn long_batches(count: u8) -> (Stepped, TopicId) {
    let settings = Settings {
        tail_len_max: 0,
        batch_len_max: 12 << 20,
        file_len: 32 << 20,
        queue_len_max: 32 << 20,
        size_limit: Some(512 << 20),
        ..small_settings()
    };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[("max.message.bytes", "12000000")]);
    for n in 0..count {
        stepped.append(topic.id, &large(n, LONG));
    }
    stepped.disk.forget_calls();
    (stepped, topic.id)
}

fn long_at(topic: TopicId, offset: i64) -> ReadRequest {
    request(topic, P0, offset, LONG + 200)
}

#[test]
fn who_asks_for_one_small_batch_at_a_time_costs_one_read_for_many() {
    let (stepped, topic, sent) = cold(250, 100);
    for (sent, offset) in sent.iter().zip(0..) {
        let read = stepped.store.read(request(topic, P0, offset, 1)).expect("in range");
        assert_stored(&read.slices[0].read(0..read.len).expect("readable"), sent, offset);
        if let Some(ahead) = stepped.store.read_ahead(request(topic, P0, offset + 1, 2)) {
            ahead.run();
        }
    }
    assert!(reads(&stepped) <= 40, "{}", reads(&stepped));
}

#[test]
fn what_a_slow_reader_has_not_come_to_stays_while_a_fast_one_goes_on() {
    let (stepped, topic) = long_batches(25);
    stepped.store.read_ahead(long_at(topic, 0)).expect("room").run();
    let slow = stepped.store.read(long_at(topic, 0)).expect("in range");
    for offset in 1..25 {
        stepped.store.read_ahead(long_at(topic, offset)).expect("room").run();
        let fast = stepped.store.read(long_at(topic, offset)).expect("in range");
        assert!(fast.slices[0].try_bytes().is_some());
    }
    assert!(slow.slices[0].try_bytes().is_some());
}

#[test]
fn a_claim_for_which_there_is_never_room_takes_nothing_from_others() {
    let (mut stepped, topic) = long_batches(8);
    stepped.append(topic, &large(9, 10_000_000));
    stepped.append(topic, &large(10, LONG));
    for offset in 0..8 {
        stepped.store.read_ahead(long_at(topic, offset)).expect("room").run();
    }
    for _ in 0..100 {
        assert!(stepped.store.read_ahead(long_at(topic, 8)).is_none(), "10 MB in 8 MiB");
    }
    for offset in 0..8 {
        let read = stepped.store.read(long_at(topic, offset)).expect("in range");
        assert!(read.slices[0].try_bytes().is_some());
    }
}

#[test]
fn what_a_scan_keeps_of_a_long_answer_begins_with_what_is_sent_first() {
    let settings =
        Settings { index_len_max: 0, tail_len_max: 0, size_limit: Some(256 << 20), ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[]);
    for n in 0..500_u16 {
        stepped.append(topic.id, &large(u8::try_from(n % 251).expect("less"), 30_000));
    }
    let read = stepped.store.read(request(topic.id, P0, 0, 12 << 20)).expect("in range");
    assert!(read.slices[0].try_bytes().is_some());
    let known = read.slices.iter().filter(|slice| slice.try_bytes().is_some()).count();
    assert!((2..=read.slices.len()).contains(&known), "{known} of {}", read.slices.len());
}
