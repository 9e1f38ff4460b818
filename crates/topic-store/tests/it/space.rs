//! The limit of the log's space: warned of, throttled for, met, and left again.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use kolumn_journal::sim::CallKind;
use kolumn_topic_store::{AppendErrorKind, PressureLevel, Settings, TopicErrorKind};

use crate::support::*;

const FILE: u64 = 128 << 10;

fn limited(files: u64) -> Settings {
    Settings { size_limit: Some(files * FILE), ..small_settings() }
}

fn is_ready(future: impl Future<Output = ()>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(future).poll(&mut context) == Poll::Ready(())
}

#[test]
fn the_limit_is_reached_in_steps_and_a_deletion_reopens_the_log() {
    let mut stepped = Stepped::open(limited(8));
    let (view, bulk) = stepped.topic("bulk", &[]);
    let (_, other) = stepped.topic("other", &[]);
    let sent = large(1, 30_000);
    let mut levels = vec![PressureLevel::Normal];
    let refused = loop {
        match stepped.store.append(bulk.id, P0, sent.clone(), NOW) {
            Ok(commit) => drop(stepped.done(commit)),
            Err(error) => break error,
        }
        stepped.maintain(1);
        let level = stepped.store.pressure().level;
        if levels.last() != Some(&level) {
            levels.push(level);
        }
    };
    assert_eq!(refused.kind(), AppendErrorKind::Full);
    levels.push(stepped.store.pressure().level);
    assert_eq!(
        levels,
        [PressureLevel::Normal, PressureLevel::Half, PressureLevel::Throttled, PressureLevel::Full]
    );
    assert!(stepped.store.pressure().throttle.as_millis() > 0);
    let reopened = stepped.store.space_changed();
    let kept = read_all(&stepped.store, bulk.id, P0, 100_000);
    assert!(kept.len() > 10);

    let deleted = stepped.store.delete_topic(view.id, bulk.id).expect("deletions go on");
    stepped.done(deleted);
    stepped.maintain(3);
    assert!(is_ready(reopened), "who waited for space is told");
    assert_eq!(stepped.store.pressure().level, PressureLevel::Normal);
    assert_eq!(stepped.append(other.id, &sent).base_offset.value(), 0);
    assert!(stepped.recorder.count("Pressure") >= 3);
}

#[test]
fn retention_reopens_a_full_log_too() {
    let mut stepped = Stepped::open(limited(6));
    let (_, topic) = stepped.topic("t", &[("retention.ms", "1000")]);
    let fill = |stepped: &mut Stepped| {
        let mut count = 0;
        loop {
            let sent = batch_at(stepped.now.value(), &[&vec![1; 30_000]]);
            match stepped.store.append(topic.id, P0, sent, stepped.now) {
                Ok(commit) => drop(stepped.done(commit)),
                Err(error) => {
                    assert_eq!(error.kind(), AppendErrorKind::Full);
                    return count;
                }
            }
            count += 1;
        }
    };
    let first = fill(&mut stepped);
    for _ in 0..3 {
        stepped.later(5000);
        stepped.maintain(3);
        assert!(fill(&mut stepped) >= first / 2, "the space comes back each time");
    }
}

#[test]
fn live_batches_of_a_mostly_dead_file_are_carried_with_their_offsets() {
    let settings = Settings { tail_len_max: 0, ..limited(10) };
    let mut stepped = Stepped::open(settings.clone());
    let (view, bulk) = stepped.topic("bulk", &[]);
    let (_, kept) = stepped.topic("kept", &[("retention.ms", "-1")]);
    let mut sent = Vec::new();
    for n in 0..22_u8 {
        stepped.append(bulk.id, &large(n, 28_000));
        let small = batch_of(1, 0, i32::from(n), 1);
        stepped.append(kept.id, &small);
        sent.push(small);
    }
    let deleted = stepped.store.delete_topic(view.id, bulk.id).expect("known");
    stepped.done(deleted);
    stepped.maintain(20);
    assert!(stepped.recorder.count("Carried") >= 1);
    assert!(stepped.recorder.count("Freed") >= 4, "{:?}", stepped.recorder.events);
    for _ in 0..2 {
        let stored = read_all(&stepped.store, kept.id, P0, 1000);
        assert_eq!(stored.len(), sent.len());
        for ((stored, sent), offset) in stored.iter().zip(&sent).zip(0..) {
            assert_stored(stored, sent, offset);
        }
        let again = stepped.append(kept.id, &sent[21]);
        assert_eq!(again.base_offset.value(), 21);
        stepped = stepped.reopen(settings.clone());
    }
}

#[test]
fn a_queue_that_is_full_answers_busy_and_tells_when_there_is_room() {
    let settings = Settings { queue_len_max: 1, ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[]);
    let sent = large(1, 20_000);
    let refused = loop {
        if let Err(error) = stepped.store.append(topic.id, P0, sent.clone(), NOW) {
            break error;
        }
    };
    assert_eq!(refused.kind(), AppendErrorKind::Busy);
    let room = stepped.store.space_changed();
    stepped.settle();
    assert!(is_ready(room));
    stepped.append(topic.id, &sent);
}

#[test]
fn a_failed_sync_fails_what_is_pending_and_leaves_a_log_that_only_reads() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[]);
    stepped.append(topic.id, &batch(&[b"safe"]));
    stepped.disk.fail(CallKind::Sync, 1, std::io::ErrorKind::Other);
    let mut commit = stepped.store.append(topic.id, P0, batch(&[b"lost"]), NOW).expect("accepted");
    let space = stepped.store.space_changed();
    stepped.settle();
    assert!(is_ready(space), "who waits for space is told that there will be none");
    assert!(commit.try_take().expect("answered").is_err());
    assert!(stepped.store.is_read_only());
    assert_eq!(stepped.recorder.count("Failed"), 1);
    let error = stepped.store.append(topic.id, P0, batch(&[b"later"]), NOW).expect_err("read-only");
    assert_eq!(error.kind(), AppendErrorKind::ReadOnly);
    let error = stepped.store.delete_topic(view.id, topic.id).expect_err("read-only");
    assert_eq!(error.kind(), TopicErrorKind::ReadOnly);
    assert!(stepped.store.maintain(NOW).is_err());
    assert_eq!(read_all(&stepped.store, topic.id, P0, 1000).len(), 1);
    let mut stepped = stepped.reopen(small_settings());
    assert!(read_all(&stepped.store, topic.id, P0, 1000).len() <= 2);
    stepped.append(topic.id, &batch(&[b"again"]));
}

#[test]
fn a_round_carries_no_more_than_its_limit() {
    let settings = Settings { carry_len_max: 1, ..limited(10) };
    let mut stepped = Stepped::open(settings);
    let (view, bulk) = stepped.topic("bulk", &[]);
    let (_, kept) = stepped.topic("kept", &[("retention.ms", "-1")]);
    for n in 0..22_u8 {
        stepped.append(bulk.id, &large(n, 28_000));
        stepped.append(kept.id, &batch(&[&[n]]));
    }
    let deleted = stepped.store.delete_topic(view.id, bulk.id).expect("known");
    stepped.done(deleted);
    for round in 1..4 {
        stepped.maintain(1);
        assert_eq!(stepped.recorder.count("Carried"), round);
    }
    let events = stepped.recorder.events.lock().clone();
    let carried: Vec<_> = events.iter().filter(|event| event.starts_with("Carried")).collect();
    assert!(carried.iter().all(|event| event.contains("batches: 1,")), "{carried:?}");
}

#[test]
fn a_disk_that_refuses_files_for_another_reason_is_quoted() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    stepped.disk.fail(CallKind::Create, 1, std::io::ErrorKind::NotFound);
    let cause = std::io::Error::from(std::io::ErrorKind::NotFound).to_string();
    let sent = large(1, 30_000);
    let refused = loop {
        match stepped.store.append(topic.id, P0, sent.clone(), NOW) {
            Ok(commit) => drop(stepped.done(commit)),
            Err(error) if error.kind() == AppendErrorKind::Busy => stepped.settle(),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), AppendErrorKind::Full, "which clients retry");
    assert!(refused.message().contains(&cause), "{refused}");
    for _ in 0..2 {
        stepped.store.maintain(stepped.now).expect("the log has not failed");
    }
    assert_eq!(stepped.recorder.count("GrowthFailed"), 1, "told once");
    let told = stepped.recorder.events.lock().join(" ");
    assert!(told.contains(&cause), "{told}");
    stepped.stepper.idle();
    stepped.maintain(1);
    assert_eq!(stepped.append(topic.id, &sent).log_start_offset.value(), 0);
    assert_eq!(stepped.recorder.count("GrowthFailed"), 1);
}
