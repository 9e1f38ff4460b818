//! The store against its dull twin: a list of records per partition.

use std::collections::BTreeMap;

use kolumn_kafka_wire::records::{Batch, BatchBuilder, Inflater};
use kolumn_topic_store::{Offset, PartitionIndex, ReadErrorKind, Settings, Timestamp};
use proptest::prelude::*;

use crate::support::*;

#[derive(Clone, Debug)]
enum Op {
    Append { partition: i32, times: Vec<i64>, filler: usize },
    Read { partition: i32, offset: i64, max_len: usize },
    Time { partition: i32, time: i64 },
    DeleteRecords { partition: i32, percent: i64 },
    Pass { ms: i64 },
    Maintain,
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let partition = 0..2_i32;
    prop_oneof![
        6 => (partition.clone(), prop::collection::vec(0..5000_i64, 1..4), 0..3000_usize)
            .prop_map(|(partition, times, filler)| Op::Append { partition, times, filler }),
        3 => (partition.clone(), -2..80_i64, 0..9000_usize)
            .prop_map(|(partition, offset, max_len)| Op::Read { partition, offset, max_len }),
        3 => (partition.clone(), 0..6000_i64).prop_map(|(partition, time)| Op::Time { partition, time }),
        1 => (partition, 0..=100_i64)
            .prop_map(|(partition, percent)| Op::DeleteRecords { partition, percent }),
        1 => (0..2000_i64).prop_map(|ms| Op::Pass { ms }),
        2 => Just(Op::Maintain),
        1 => Just(Op::Reopen),
    ]
}

/// (timestamp, value, base offset of its batch) by offset.
type Twin = BTreeMap<i64, (i64, Vec<u8>, i64)>;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_answers_like_a_list_of_records(ops in prop::collection::vec(op(), 1..80)) {
        run(&ops);
    }
}

fn run(ops: &[Op]) {
    let settings = Settings {
        index_len_max: 0,
        tail_len_max: 20 << 10,
        checkpoint_distance: 32 << 10,
        ..small_settings()
    };
    let mut stepped = Stepped::open(settings.clone());
    let (_, topic) = stepped.topic("t", &[("retention.ms", "9000"), ("retention.bytes", "60000")]);
    let mut twins = [(0_i64, Twin::new()), (0, Twin::new())];
    for op in ops {
        match op {
            Op::Append { partition, times, filler } => {
                let twin = &mut twins[usize::try_from(*partition).expect("small")];
                append_to(&mut stepped, topic.id, *partition, times, *filler, twin);
            }
            Op::Read { partition, offset, max_len } => {
                let twin = &twins[usize::try_from(*partition).expect("small")];
                check_read(&stepped, topic.id, *partition, *offset, *max_len, twin);
            }
            Op::Time { partition, time } => {
                let (_, records) = &twins[usize::try_from(*partition).expect("small")];
                let time = NOW.value() + time;
                let index = PartitionIndex::new(*partition);
                let hit =
                    stepped.store.offset_for_time(topic.id, index, Timestamp::new(time)).expect("readable");
                let expect = records.iter().find(|(_, (own, _, _))| *own >= time);
                assert_eq!(
                    hit.map(|hit| (hit.offset.value(), hit.timestamp.value())),
                    expect.map(|(offset, (own, _, _))| (*offset, *own))
                );
                let greatest = records.values().map(|(own, _, _)| *own).max();
                let expect = records.iter().find(|(_, (own, _, _))| Some(*own) == greatest);
                let hit = stepped.store.max_timestamp(topic.id, index).expect("readable");
                assert_eq!(hit.map(|hit| hit.offset.value()), expect.map(|(offset, _)| *offset));
            }
            Op::DeleteRecords { partition, percent } => {
                let (next, records) = &mut twins[usize::try_from(*partition).expect("small")];
                let before = *next * percent / 100;
                let index = PartitionIndex::new(*partition);
                let start = stepped.store.offsets(topic.id, index).expect("known").log_start.value();
                let deleted = stepped.store.delete_records(topic.id, index, Some(Offset::new(before)));
                let deleted = stepped.done(deleted.expect("in range")).value();
                assert_eq!(deleted, start.max(before));
                *records = records.split_off(&deleted);
            }
            Op::Pass { ms } => stepped.later(*ms),
            Op::Maintain => {
                stepped.maintain(2);
                take_over_starts(&stepped, topic.id, &mut twins);
            }
            Op::Reopen => stepped = stepped.reopen(settings.clone()),
        }
    }
}

fn append_to(
    stepped: &mut Stepped,
    topic: kolumn_topic_store::TopicId,
    partition: i32,
    times: &[i64],
    filler: usize,
    (next, records): &mut (i64, Twin),
) {
    let mut builder = BatchBuilder::new();
    let base = *next;
    for time in times {
        let (time, value) = (NOW.value() + time, vec![u8::try_from(*next % 251).expect("small"); filler]);
        builder.append(None, Some(&value), [], time).expect("fits");
        records.insert(*next, (time, value, base));
        *next += 1;
    }
    let sent = builder.build().expect("fits");
    let index = PartitionIndex::new(partition);
    let commit = stepped.store.append(topic, index, sent, stepped.now).expect("accepted");
    assert_eq!(stepped.done(commit).base_offset.value(), base);
}

fn check_read(
    stepped: &Stepped,
    topic: kolumn_topic_store::TopicId,
    partition: i32,
    offset: i64,
    max_len: usize,
    (next, records): &(i64, Twin),
) {
    let index = PartitionIndex::new(partition);
    let start = stepped.store.offsets(topic, index).expect("known").log_start.value();
    let outcome = stepped.store.read(request(topic, index, offset, max_len));
    if offset < start || offset > *next {
        let error = outcome.expect_err("out of range");
        assert!(matches!(error.kind(), ReadErrorKind::OffsetOutOfRange { .. }));
        return;
    }
    let read = outcome.expect("in range");
    assert_eq!(read.offsets.high_watermark.value(), *next);
    assert_eq!(read.slices.is_empty(), offset == *next);
    assert!(read.len <= max_len || read.slices.len() == 1);
    let mut expected = records.get(&offset).map_or(offset, |(_, _, base)| *base);
    assert!(read.slices.is_empty() || records.contains_key(&offset), "what is read is there");
    for bytes in bytes_of(&read) {
        let (batch, _) = Batch::parse(&bytes).expect("a batch");
        let mut inflater = Inflater::new();
        for record in batch.records(&mut inflater, 1 << 20).expect("not compressed") {
            let record = record.expect("well formed");
            let Some((time, value, base)) = records.get(&expected) else {
                assert!(expected < start, "only what was deleted is missing");
                expected += 1;
                continue;
            };
            assert_eq!(batch.base_offset(), *base);
            assert_eq!(batch.base_timestamp() + record.timestamp_delta, *time);
            assert_eq!(record.value, Some(&value[..]));
            expected += 1;
        }
    }
}

/// Retention is the store's decision; its rules: whole batches, oldest first, and only what is too old or too much.
fn take_over_starts(stepped: &Stepped, topic: kolumn_topic_store::TopicId, twins: &mut [(i64, Twin); 2]) {
    for (index, (next, records)) in (0..).map(PartitionIndex::new).zip(twins) {
        let start = stepped.store.offsets(topic, index).expect("known").log_start.value();
        assert!(start <= *next);
        if records.keys().next() == Some(&start) {
            // Retention took nothing; a deletion may have ended within a batch.
            continue;
        }
        let kept = records.split_off(&start);
        assert!(kept.get(&start).is_none_or(|(_, _, base)| *base == start), "whole batches go");
        *records = kept;
    }
}
