//! What is old or too much goes, and its files with it; what is not, stays.

use crate::support::*;

fn filled(pairs: &[(&str, &str)], batches: usize) -> (Stepped, kolumn_topic_store::TopicId) {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", pairs);
    for _ in 0..batches {
        let sent = batch_at(stepped.now.value(), &[&[5; 10_000]]);
        stepped.append(topic.id, &sent);
        stepped.later(1000);
    }
    (stepped, topic.id)
}

#[test]
fn batches_older_than_retention_ms_go_and_their_files_are_freed() {
    let (mut stepped, topic) = filled(&[("retention.ms", "10000")], 50);
    stepped.maintain(3);
    let offsets = stepped.store.offsets(topic, P0).expect("known");
    assert_eq!((offsets.log_start.value(), offsets.high_watermark.value()), (40, 50));
    assert!(stepped.recorder.count("Freed") >= 2, "{:?}", stepped.recorder.events);
    stepped.later(60_000);
    stepped.maintain(3);
    let offsets = stepped.store.offsets(topic, P0).expect("known");
    assert_eq!((offsets.log_start.value(), offsets.high_watermark.value()), (50, 50));
    let mut stepped = stepped.reopen(small_settings());
    assert_eq!(stepped.store.offsets(topic, P0).expect("known").log_start.value(), 50);
    let appended = stepped.append(topic, &batch(&[b"next"]));
    assert_eq!((appended.base_offset.value(), appended.log_start_offset.value()), (50, 50));
}

#[test]
fn a_partition_above_retention_bytes_loses_its_oldest_batches() {
    let (mut stepped, topic) = filled(&[("retention.ms", "-1"), ("retention.bytes", "200000")], 50);
    stepped.maintain(3);
    let kept = read_all(&stepped.store, topic, P0, 1 << 20);
    let len: usize = kept.iter().map(bytes::Bytes::len).sum();
    assert!((200_000..211_000).contains(&len), "{len}");
    assert!(stepped.recorder.count("Freed") >= 1);
}

#[test]
fn nothing_goes_without_a_policy_that_says_so() {
    for pairs in [&[("retention.ms", "-1")][..], &[("cleanup.policy", "compact"), ("retention.ms", "1")], &[]]
    {
        let (mut stepped, topic) = filled(pairs, 20);
        stepped.later(3_600_000);
        stepped.maintain(3);
        assert_eq!(stepped.store.offsets(topic, P0).expect("known").log_start.value(), 0, "{pairs:?}");
        assert_eq!(read_all(&stepped.store, topic, P0, 1 << 20).len(), 20);
    }
}

#[test]
fn retention_looks_after_its_pause_or_when_space_is_short() {
    let settings = kolumn_topic_store::Settings {
        retention_interval_ms: 60_000,
        size_limit: Some(6 * (128 << 10)),
        ..small_settings()
    };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[("retention.ms", "1000")]);
    stepped.maintain(1);
    stepped.append(topic.id, &batch_at(5, &[b"old already"]));
    let start = |stepped: &Stepped| stepped.store.offsets(topic.id, P0).expect("known").log_start.value();
    stepped.later(59_000);
    stepped.maintain(2);
    assert_eq!(start(&stepped), 0);
    stepped.later(1000);
    stepped.maintain(2);
    assert_eq!(start(&stepped), 1);
    while stepped.store.pressure().level == kolumn_topic_store::PressureLevel::Normal {
        stepped.append(topic.id, &batch_at(5, &[&[1; 15_000]]));
        stepped.store.maintain(stepped.now).expect("maintained");
    }
    stepped.maintain(2);
    assert!(start(&stepped) > 1);
}

#[test]
fn retention_looks_in_the_first_round_after_an_open() {
    let settings = || kolumn_topic_store::Settings {
        retention_interval_ms: i64::MAX,
        producer_expiration_ms: 1_000_000,
        ..small_settings()
    };
    let mut stepped = Stepped::open(settings());
    let (_, topic) = stepped.topic("t", &[("retention.ms", "1000")]);
    stepped.maintain(1);
    for round in 0..3 {
        let sent = batch_at(stepped.now.value(), &[b"will be old"]);
        stepped.append(topic.id, &sent);
        stepped.later(2000);
        stepped = stepped.reopen(settings());
        stepped.maintain(1);
        let offsets = stepped.store.offsets(topic.id, P0).expect("known");
        assert_eq!(offsets.log_start.value(), round + 1, "however short each life is");
    }
}

#[test]
fn records_without_a_timestamp_age_from_their_append() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[("retention.ms", "10000")]);
    stepped.append(topic.id, &batch_at(-1, &[b"timeless"]));
    stepped.later(5000);
    stepped.maintain(2);
    assert_eq!(stepped.store.offsets(topic.id, P0).expect("known").log_start.value(), 0);
    stepped.later(6000);
    stepped.maintain(2);
    assert_eq!(stepped.store.offsets(topic.id, P0).expect("known").log_start.value(), 1);
}

#[test]
fn what_a_reader_holds_stays_readable_after_its_file_was_freed() {
    let settings = kolumn_topic_store::Settings { tail_len_max: 0, ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[("retention.ms", "1000")]);
    let sent: Vec<_> = (0..40_u8).map(|n| batch(&[&[n; 10_000]])).collect();
    for batch in &sent {
        stepped.append(topic.id, batch);
    }
    let read = stepped.store.read(request(topic.id, P0, 0, 50_000)).expect("in range");
    stepped.later(10_000);
    stepped.maintain(3);
    assert!(stepped.recorder.count("Freed") >= 2);
    for ((bytes, sent), offset) in bytes_of(&read).iter().zip(&sent).zip(0..) {
        assert_stored(bytes, sent, offset);
    }
}

#[test]
fn a_young_batch_is_kept_though_the_index_has_joined_it_with_an_old_one() {
    let settings = kolumn_topic_store::Settings { index_len_max: 0, ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[("retention.ms", "10000")]);
    for n in 0..100 {
        let age = if n % 2 == 0 { 60_000 } else { 0 };
        stepped.append(topic.id, &batch_at(stepped.now.value() - age, &[b"x"]));
    }
    assert!(stepped.store.stats().index_entries < 50, "{:?}", stepped.store.stats());
    stepped.maintain(3);
    let start = stepped.store.offsets(topic.id, P0).expect("known").log_start.value();
    assert!(start <= 1, "{start}");
}

#[test]
fn what_was_carried_ages_from_its_first_append() {
    let settings = kolumn_topic_store::Settings {
        index_len_max: 0,
        size_limit: Some(10 * (128 << 10)),
        ..small_settings()
    };
    let mut stepped = Stepped::open(settings);
    let (view, bulk) = stepped.topic("bulk", &[]);
    let (_, kept) = stepped.topic("kept", &[("retention.ms", "10000")]);
    for n in 0..22_u8 {
        stepped.append(bulk.id, &large(n, 28_000));
        stepped.append(kept.id, &batch_at(-1, &[b"timeless"]));
    }
    let deleted = stepped.store.delete_topic(view.id, bulk.id).expect("known");
    stepped.done(deleted);
    stepped.later(5000);
    stepped.maintain(20);
    assert!(stepped.recorder.count("Carried") >= 1);
    let start = |stepped: &Stepped| stepped.store.offsets(kept.id, P0).expect("known").log_start.value();
    assert_eq!(start(&stepped), 0);
    stepped.later(6000);
    stepped.maintain(2);
    assert_eq!(start(&stepped), 22);
}

#[test]
fn a_checkpoint_follows_its_distance_also_when_nothing_is_freed() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[("retention.ms", "-1")]);
    stepped.append(topic.id, &large(1, 20_000));
    stepped.maintain(2);
    assert_eq!(stepped.recorder.count("Checkpoint"), 0, "too early");
    for n in 2..9 {
        stepped.append(topic.id, &large(n, 20_000));
    }
    stepped.maintain(2);
    assert_eq!((stepped.recorder.count("Checkpoint"), stepped.recorder.count("Freed")), (1, 0));
}
