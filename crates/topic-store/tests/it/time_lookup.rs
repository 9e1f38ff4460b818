//! Records found by their time.

use kolumn_kafka_wire::records::{BatchBuilder, Compression};
use kolumn_topic_store::{Offset, PartitionIndex, Timestamp, TopicId};

use crate::support::*;

const CONFIG: &[(&str, &str)] = &[("retention.ms", "-1")];

#[track_caller]
fn check(stepped: &Stepped, topic: TopicId, time: i64, expect: Option<(i64, i64)>) {
    let hit = stepped.store.offset_for_time(topic, P0, Timestamp::new(time)).expect("readable");
    assert_eq!(hit.map(|hit| (hit.offset.value(), hit.timestamp.value())), expect, "time {time}");
}

#[test]
fn the_first_record_at_or_after_a_time_is_found_and_nothing_after_the_last() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", CONFIG);
    check(&stepped, topic.id, 3, None);
    for time in [2, 4, 6, 8] {
        stepped.append(topic.id, &batch_at(time, &[b"x"]));
    }
    check(&stepped, topic.id, 0, Some((0, 2)));
    check(&stepped, topic.id, 3, Some((1, 4)));
    check(&stepped, topic.id, 8, Some((3, 8)));
    check(&stepped, topic.id, 9, None);
    let hit = stepped.store.max_timestamp(topic.id, P0).expect("readable").expect("found");
    assert_eq!((hit.offset.value(), hit.timestamp.value(), hit.leader_epoch.value()), (3, 8, 0));
    assert!(stepped.store.max_timestamp(topic.id, PartitionIndex::new(1)).expect("readable").is_none());
}

#[test]
fn timestamps_that_do_not_rise_are_found_in_order_of_offsets() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", CONFIG);
    for times in [&[50, 10][..], &[20, 30], &[70, 5], &[60]] {
        let mut builder = BatchBuilder::new().with_compression(Compression::Lz4);
        for time in times {
            builder.append(Some(b"k"), None, [], *time).expect("fits");
        }
        stepped.append(topic.id, &builder.build().expect("fits"));
    }
    check(&stepped, topic.id, 5, Some((0, 50)));
    check(&stepped, topic.id, 51, Some((4, 70)));
    check(&stepped, topic.id, 70, Some((4, 70)));
    check(&stepped, topic.id, 71, None);
    let hit = stepped.store.max_timestamp(topic.id, P0).expect("readable").expect("found");
    assert_eq!((hit.offset.value(), hit.timestamp.value()), (4, 70));
    stepped.append(topic.id, &batch_at(70, &[b"as late as the latest"]));
    let hit = stepped.store.max_timestamp(topic.id, P0).expect("readable").expect("found");
    assert_eq!((hit.offset.value(), hit.timestamp.value()), (4, 70), "the first of equals");
}

#[test]
fn nothing_below_a_log_start_within_a_thinned_span_is_found() {
    let settings = kolumn_topic_store::Settings { index_len_max: 0, ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[("retention.ms", "1000")]);
    let (old, young) = (NOW.value() - 60_000, NOW.value());
    for time in [old, old, old].into_iter().chain([young; 9]) {
        stepped.append(topic.id, &batch_at(time, &[b"x"]));
    }
    // What is on its way thins the index before the log start that is decided on now.
    let under_way: Vec<_> = (0..10)
        .map(|_| stepped.store.append(topic.id, P0, batch_at(young, &[b"x"]), NOW).expect("accepted"))
        .collect();
    stepped.maintain(1);
    for mut commit in under_way {
        commit.try_take().expect("settled").expect("durable");
    }
    assert!(stepped.store.stats().index_entries < 20, "{:?}", stepped.store.stats());
    assert_eq!(stepped.store.offsets(topic.id, P0).expect("known").log_start.value(), 3);
    check(&stepped, topic.id, old, Some((3, young)));
    assert_eq!(read_all(&stepped.store, topic.id, P0, 1000).len(), 19);
}

#[test]
fn under_log_append_time_every_record_has_the_time_of_its_batch() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[("message.timestamp.type", "LogAppendTime")]);
    stepped.append(topic.id, &batch_at(5, &[b"a", b"b"]));
    stepped.later(100);
    stepped.append(topic.id, &batch_at(5, &[b"c", b"d"]));
    check(&stepped, topic.id, NOW.value(), Some((0, NOW.value())));
    check(&stepped, topic.id, NOW.value() + 1, Some((2, NOW.value() + 100)));
    check(&stepped, topic.id, NOW.value() + 101, None);
}

#[test]
fn epochs_end_where_the_next_one_begins() {
    use kolumn_topic_store::{LeaderEpoch, Offset};
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", CONFIG);
    stepped.append(topic.id, &batch(&[b"a", b"b"]));
    let mut stepped = stepped.reopen(small_settings()).reopen(small_settings());
    let present = stepped.store.epoch_end(topic.id, P0, LeaderEpoch::new(2)).expect("known");
    assert_eq!(present, Some((LeaderEpoch::new(2), Offset::new(2))), "it has no records yet");
    stepped.append(topic.id, &batch(&[b"c"]));
    let end = |epoch| {
        let end = stepped.store.epoch_end(topic.id, P0, LeaderEpoch::new(epoch)).expect("known");
        end.map(|(epoch, offset)| (epoch.value(), offset.value()))
    };
    assert_eq!(
        [end(-1), end(0), end(1), end(2), end(3)],
        [None, Some((0, 2)), Some((0, 2)), Some((2, 3)), None]
    );
    let epoch = |offset| stepped.store.epoch_of(topic.id, P0, Offset::new(offset)).expect("known").value();
    assert_eq!([epoch(0), epoch(1), epoch(2), epoch(3)], [0, 0, 2, 2]);
    let hit = |time| {
        let hit = stepped.store.offset_for_time(topic.id, P0, Timestamp::new(time)).expect("readable");
        hit.map(|hit| (hit.offset.value(), hit.leader_epoch.value()))
    };
    assert_eq!(hit(NOW.value()), Some((0, 0)));
    assert_eq!(hit(NOW.value() + 1), Some((1, 0)));
}

#[test]
fn deleted_records_are_not_the_ones_with_the_greatest_timestamp() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    let mut builder = BatchBuilder::new();
    for time in [900, 300, 500, 500] {
        builder.append(None, Some(b"v"), [], time).expect("fits");
    }
    stepped.append(topic.id, &builder.build().expect("fits"));
    stepped.append(topic.id, &batch_at(400, &[b"w"]));
    let greatest = |stepped: &Stepped| {
        let hit = stepped.store.max_timestamp(topic.id, P0).expect("readable").expect("there is one");
        (hit.offset.value(), hit.timestamp.value())
    };
    for (before, expected) in [(0, (0, 900)), (1, (2, 500)), (3, (3, 500)), (4, (4, 400))] {
        let deleted = stepped.store.delete_records(topic.id, P0, Some(Offset::new(before)));
        stepped.done(deleted.expect("in range"));
        assert_eq!(greatest(&stepped), expected, "from {before} on");
    }
}
