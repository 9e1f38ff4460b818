//! Records that are deleted on request, and what is left of their partition.

use kolumn_journal::sim::CallKind;
use kolumn_topic_store::{
    AppendErrorKind, DeleteRecordsErrorKind as Kind, Offset, PartitionIndex, ReadErrorKind, Settings,
    Timestamp, TopicId,
};

use crate::support::*;

/// A topic with so many batches of three records.
fn filled(settings: Settings, batches: usize) -> (Stepped, TopicId) {
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[("retention.ms", "-1")]);
    for _ in 0..batches {
        stepped.append(topic.id, &batch(&[b"a", b"b", b"c"]));
    }
    (stepped, topic.id)
}

fn delete(stepped: &mut Stepped, topic: TopicId, before: Option<i64>) -> i64 {
    let commit = stepped.store.delete_records(topic, P0, before.map(Offset::new)).expect("accepted");
    stepped.done(commit).value()
}

fn start_and_end(stepped: &Stepped, topic: TopicId) -> (i64, i64) {
    let offsets = stepped.store.offsets(topic, P0).expect("known");
    (offsets.log_start.value(), offsets.high_watermark.value())
}

#[test]
fn the_log_start_moves_to_the_offset_and_never_back() {
    let (mut stepped, topic) = filled(small_settings(), 4);
    assert_eq!(delete(&mut stepped, topic, Some(0)), 0);
    assert_eq!(delete(&mut stepped, topic, Some(6)), 6);
    assert_eq!(delete(&mut stepped, topic, Some(6)), 6);
    assert_eq!(delete(&mut stepped, topic, Some(2)), 6, "what is gone stays gone, without an error");
    for _ in 0..2 {
        assert_eq!(start_and_end(&stepped, topic), (6, 12));
        assert_eq!(read_all(&stepped.store, topic, P0, 1 << 20).len(), 2);
        let error = stepped.store.read(request(topic, P0, 5, 1000)).expect_err("deleted");
        assert!(matches!(error.kind(), ReadErrorKind::OffsetOutOfRange { .. }));
        stepped = stepped.reopen(small_settings());
    }
    assert_eq!(delete(&mut stepped, topic, Some(12)), 12, "the high watermark itself");
    assert_eq!(stepped.recorder.count("RecordsDeleted"), 1);
}

#[test]
fn an_offset_outside_of_the_partition_is_refused() {
    let (mut stepped, topic) = filled(small_settings(), 2);
    for offset in [7, i64::MAX, -1, i64::MIN] {
        let error = stepped.store.delete_records(topic, P0, Some(Offset::new(offset))).expect_err("refused");
        assert_eq!(error.kind(), Kind::OffsetOutOfRange, "{error}");
    }
    // What is prepared but not durable is not below the high watermark.
    let appended = stepped.store.append(topic, P0, batch(&[b"d"]), NOW).expect("accepted");
    let error = stepped.store.delete_records(topic, P0, Some(Offset::new(7))).expect_err("refused");
    assert_eq!(error.kind(), Kind::OffsetOutOfRange);
    let all = stepped.store.delete_records(topic, P0, None).expect("accepted");
    assert_eq!(stepped.done(all), Offset::new(6));
    stepped.done(appended);
    assert_eq!(start_and_end(&stepped, topic), (6, 7));
}

#[test]
fn after_everything_was_deleted_offsets_go_on_where_they_were() {
    let (mut stepped, topic) = filled(small_settings(), 3);
    assert_eq!(delete(&mut stepped, topic, None), 9);
    assert_eq!(stepped.store.partition_len(topic, P0), Some(0));
    assert_eq!(delete(&mut stepped, topic, None), 9);
    for round in 0..3 {
        assert_eq!(start_and_end(&stepped, topic), (9, 9 + round));
        let appended = stepped.append(topic, &batch(&[b"next"]));
        assert_eq!((appended.base_offset.value(), appended.log_start_offset.value()), (9 + round, 9));
        assert_eq!(read_all(&stepped.store, topic, P0, 1 << 20).len(), usize::try_from(round).unwrap() + 1);
        if round == 1 {
            stepped.store.checkpoint().expect("written");
        }
        stepped = stepped.reopen(small_settings());
    }
}

#[test]
fn a_batch_stays_while_one_of_its_records_does() {
    let (mut stepped, topic) = filled(small_settings(), 2);
    let len = stepped.store.partition_len(topic, P0).expect("known");
    assert_eq!(delete(&mut stepped, topic, Some(2)), 2);
    assert_eq!(stepped.store.partition_len(topic, P0), Some(len));
    let read = stepped.store.read(request(topic, P0, 2, 1 << 20)).expect("in range");
    assert_stored(&bytes_of(&read)[0], &batch(&[b"a", b"b", b"c"]), 0);
    let hit = stepped.store.offset_for_time(topic, P0, Timestamp::new(0)).expect("readable");
    assert_eq!(hit.expect("there is one").offset, Offset::new(2), "records below the start are not found");
    assert_eq!(delete(&mut stepped, topic, Some(3)), 3);
    assert_eq!(stepped.store.partition_len(topic, P0), Some(len / 2));
    assert_eq!(stepped.store.partition_len(topic, PartitionIndex::new(2)), None);
}

#[test]
fn a_deletion_that_is_under_way_already_is_waited_for() {
    let (mut stepped, topic) = filled(small_settings(), 3);
    let mut first = stepped.store.delete_records(topic, P0, Some(Offset::new(6))).expect("accepted");
    let mut second = stepped.store.delete_records(topic, P0, Some(Offset::new(4))).expect("accepted");
    assert!(first.try_take().is_none() && second.try_take().is_none());
    assert_eq!(start_and_end(&stepped, topic).0, 0);
    stepped.settle();
    for commit in [&mut first, &mut second] {
        assert_eq!(commit.try_take().expect("settled").expect("durable"), Offset::new(6));
    }
    let mut third = stepped.store.delete_records(topic, P0, Some(Offset::new(4))).expect("accepted");
    assert!(third.try_take().is_some(), "nothing is under way");
}

#[test]
fn what_is_not_there_or_only_compacts_is_refused_by_its_kind() {
    let (mut stepped, topic) = filled(small_settings(), 1);
    let (view, compacted) = stepped.topic("compacted", &[("cleanup.policy", "compact")]);
    let (_, both) = stepped.topic("both", &[("cleanup.policy", "compact,delete")]);
    let check = |topic: TopicId, partition: i32, kind: Kind| {
        let outcome = stepped.store.delete_records(topic, PartitionIndex::new(partition), None);
        assert_eq!(outcome.expect_err("refused").kind(), kind);
    };
    check(compacted.id, 0, Kind::Policy);
    check(topic, 2, Kind::UnknownPartition);
    check(topic, -1, Kind::UnknownPartition);
    check(TopicId::new(view.id.value()), 0, Kind::UnknownTopic);
    let deleted = stepped.store.delete_topic(view.id, topic).expect("known");
    check(topic, 0, Kind::UnknownTopic);
    stepped.done(deleted);
    assert_eq!(delete(&mut stepped, both.id, None), 0);
    stepped.disk.fail(CallKind::Sync, 1, std::io::ErrorKind::Other);
    drop(stepped.store.append(both.id, P0, batch(&[b"lost"]), NOW));
    stepped.settle();
    assert!(stepped.store.is_read_only());
    // Nothing to write: answered as ever.
    assert!(stepped.store.delete_records(both.id, P0, None).is_ok());
}

#[test]
fn deleted_records_reopen_a_full_log() {
    let settings = Settings { size_limit: Some(8 * (128 << 10)), ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[("retention.ms", "-1")]);
    let fill = |stepped: &mut Stepped| {
        let mut filled = 0;
        // To the last byte: the deletion itself has to fit in what is kept for it.
        for len in [30_000, 3000, 1] {
            loop {
                match stepped.store.append(topic.id, P0, large(1, len), NOW) {
                    Ok(commit) => drop(stepped.done(commit)),
                    Err(error) => {
                        assert_eq!(error.kind(), AppendErrorKind::Full);
                        break;
                    }
                }
                filled += len;
            }
        }
        filled
    };
    let first = fill(&mut stepped);
    for _ in 0..3 {
        let (_, end) = start_and_end(&stepped, topic.id);
        assert_eq!(delete(&mut stepped, topic.id, None), end);
        stepped.maintain(3);
        assert!(fill(&mut stepped) >= first / 2, "the space comes back each time");
    }
    assert!(stepped.recorder.count("Freed") > 3);
    assert_eq!(stepped.recorder.count("Retained"), 0);
}
