//! Producers that send again: the same offset, no gap, no doubling, fencing by epoch.

use kolumn_topic_store::{AppendErrorKind, Settings};

use crate::support::*;

#[track_caller]
fn refused(
    stepped: &Stepped,
    topic: kolumn_topic_store::TopicId,
    batch: &bytes::Bytes,
    kind: AppendErrorKind,
) {
    let error = stepped.store.append(topic, P0, batch.clone(), stepped.now).expect_err("refused");
    assert_eq!(error.kind(), kind, "{error}");
}

#[test]
fn a_batch_sent_again_gets_its_first_offset_while_it_is_among_the_last_five() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    let sent: Vec<_> = (0..7).map(|n| batch_of(1, 0, n * 2, 2)).collect();
    for batch in &sent {
        stepped.append(topic.id, batch);
    }
    for (n, batch) in sent.iter().enumerate().skip(2) {
        let again = stepped.append(topic.id, batch);
        assert_eq!(again.base_offset.value(), i64::try_from(n * 2).expect("small"));
    }
    refused(&stepped, topic.id, &sent[1], AppendErrorKind::OutOfOrderSequence);
    let offsets = stepped.store.offsets(topic.id, P0).expect("known");
    assert_eq!(offsets.high_watermark.value(), 14, "nothing was doubled");
}

#[test]
fn a_batch_sent_again_before_it_is_durable_is_answered_when_it_is() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    let sent = batch_of(1, 0, 0, 3);
    let mut first = stepped.store.append(topic.id, P0, sent.clone(), NOW).expect("accepted");
    let mut second = stepped.store.append(topic.id, P0, sent, NOW).expect("a duplicate");
    assert!(first.try_take().is_none() && second.try_take().is_none());
    assert_eq!(stepped.store.offsets(topic.id, P0).expect("known").high_watermark.value(), 0);
    stepped.settle();
    let (first, second) = (first.try_take().expect("durable"), second.try_take().expect("durable"));
    assert_eq!(first.expect("no failure"), second.expect("no failure"));
}

#[test]
fn gaps_and_old_epochs_are_refused_and_assign_nothing() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    stepped.append(topic.id, &batch_of(1, 0, 0, 3));
    refused(&stepped, topic.id, &batch_of(1, 0, 4, 1), AppendErrorKind::OutOfOrderSequence);
    refused(&stepped, topic.id, &batch_of(1, 0, 0, 2), AppendErrorKind::OutOfOrderSequence);
    refused(&stepped, topic.id, &batch_of(1, 1, 3, 1), AppendErrorKind::OutOfOrderSequence);
    assert_eq!(stepped.append(topic.id, &batch_of(1, 1, 0, 1)).base_offset.value(), 3);
    refused(&stepped, topic.id, &batch_of(1, 0, 3, 1), AppendErrorKind::InvalidProducerEpoch);
    assert_eq!(stepped.append(topic.id, &batch_of(2, 0, 900, 1)).base_offset.value(), 4);
}

#[test]
fn a_new_epoch_forgets_the_batches_of_the_old_one() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    stepped.append(topic.id, &batch_of(1, 0, 0, 1));
    stepped.append(topic.id, &batch_of(1, 0, 1, 1));
    assert_eq!(stepped.append(topic.id, &batch_of(1, 1, 0, 1)).base_offset.value(), 2);
    assert_eq!(stepped.append(topic.id, &batch_of(1, 1, 0, 1)).base_offset.value(), 2, "sent again");
    assert_eq!(stepped.append(topic.id, &batch_of(1, 1, 1, 1)).base_offset.value(), 3, "not sent before");
}

#[test]
fn a_batch_sent_again_gets_its_first_log_append_time() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[("message.timestamp.type", "LogAppendTime")]);
    let first = stepped.append(topic.id, &batch_of(1, 0, 0, 2));
    stepped.later(5000);
    assert_eq!(stepped.append(topic.id, &batch_of(1, 0, 0, 2)), first);
    let mut stepped = stepped.reopen(small_settings());
    assert_eq!(stepped.append(topic.id, &batch_of(1, 0, 0, 2)), first);
}

#[test]
fn sequences_wrap_to_zero_also_inside_a_batch_and_across_a_restart() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    stepped.append(topic.id, &batch_of(1, 0, i32::MAX - 3, 2));
    stepped.append(topic.id, &batch_of(1, 0, i32::MAX - 1, 4));
    let mut stepped = stepped.reopen(small_settings());
    refused(&stepped, topic.id, &batch_of(1, 0, 3, 1), AppendErrorKind::OutOfOrderSequence);
    assert_eq!(stepped.append(topic.id, &batch_of(1, 0, 2, 1)).base_offset.value(), 6);
    assert_eq!(stepped.append(topic.id, &batch_of(1, 0, i32::MAX - 1, 4)).base_offset.value(), 2);
}

#[test]
fn silent_producers_are_looked_for_in_the_first_round_after_an_open() {
    let settings = || Settings { producer_expiration_ms: 1_000_000, ..small_settings() };
    let mut stepped = Stepped::open(settings());
    let (_, topic) = stepped.topic("t", &[]);
    stepped.append(topic.id, &batch_of(1, 0, 0, 1));
    stepped.later(1_000_001);
    let mut stepped = stepped.reopen(settings());
    stepped.maintain(1);
    assert_eq!(stepped.recorder.count("ProducersExpired"), 1);
}

#[test]
fn a_silent_producers_window_expires_and_it_may_begin_anywhere() {
    let settings = Settings { producer_expiration_ms: 1000, ..small_settings() };
    let mut stepped = Stepped::open(settings.clone());
    let (_, topic) = stepped.topic("t", &[]);
    stepped.append(topic.id, &batch_of(1, 0, 0, 3));
    stepped.later(600);
    stepped.append(topic.id, &batch_of(2, 0, 0, 1));
    stepped.later(600);
    stepped.maintain(1);
    assert_eq!(stepped.recorder.count("ProducersExpired"), 1);
    let mut stepped = stepped.reopen(settings);
    assert_eq!(stepped.append(topic.id, &batch_of(1, 0, 77, 1)).base_offset.value(), 4);
    refused(&stepped, topic.id, &batch_of(2, 0, 5, 1), AppendErrorKind::OutOfOrderSequence);
}

#[test]
fn above_the_limit_of_windows_those_silent_longest_are_dropped() {
    let settings = Settings { producers_max: 10, ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[]);
    for producer in 0..25 {
        stepped.append(topic.id, &batch_of(producer, 0, 0, 1));
        stepped.later(1);
    }
    stepped.maintain(1);
    for producer in 15..25 {
        refused(&stepped, topic.id, &batch_of(producer, 0, 7, 1), AppendErrorKind::OutOfOrderSequence);
    }
    assert_eq!(stepped.append(topic.id, &batch_of(14, 0, 7, 1)).base_offset.value(), 25);
}

#[test]
fn producer_state_dies_with_its_topic() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[]);
    stepped.append(topic.id, &batch_of(1, 0, 0, 3));
    let deleted = stepped.store.delete_topic(view.id, topic.id).expect("known");
    stepped.done(deleted);
    let (_, again) = stepped.topic("t", &[]);
    assert_eq!(stepped.append(again.id, &batch_of(1, 0, 0, 3)).base_offset.value(), 0);
    assert_eq!(stepped.append(again.id, &batch_of(1, 0, 3, 3)).base_offset.value(), 3);
}

#[test]
fn producer_ids_are_never_given_twice_also_after_a_restart() {
    let mut stepped = Stepped::open(small_settings());
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..3 {
        for _ in 0..1500 {
            let commit = stepped.store.init_producer_id().expect("admitted");
            let (id, epoch) = stepped.done(commit);
            assert_eq!(epoch, 0);
            assert!(seen.insert(id));
        }
        stepped = stepped.reopen(small_settings());
    }
}

#[test]
fn a_refused_append_changes_no_window() {
    let settings = Settings { size_limit: Some(4 * (128 << 10)), ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (view, topic) = stepped.topic("t", &[]);
    let (_, other) = stepped.topic("u", &[]);
    let filler = large(7, 20_000);
    while let Ok(commit) = stepped.store.append(other.id, P0, filler.clone(), NOW) {
        stepped.done(commit);
    }
    while let Ok(commit) = stepped.store.append(other.id, P0, batch(&[b"x"]), NOW) {
        stepped.done(commit);
    }
    refused(&stepped, topic.id, &batch_of(1, 0, 0, 3), AppendErrorKind::Full);
    let deleted = stepped.store.delete_topic(view.id, other.id).expect("deletions go on");
    stepped.done(deleted);
    stepped.maintain(3);
    assert_eq!(stepped.append(topic.id, &batch_of(1, 0, 0, 3)).base_offset.value(), 0);
    // Stored, not taken for the batch that was refused.
    assert_eq!(stepped.store.offsets(topic.id, P0).expect("known").high_watermark.value(), 3);
}
