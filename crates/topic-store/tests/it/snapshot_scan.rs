//! Scans against their dull twin: a list of rows, filtered by a loop.

use std::sync::Arc;

use bytes::Bytes;
use kolumn_kafka_wire::records::Compression;
use kolumn_topic_store::{Column, Offset, RowFilter, ScanRequest, Settings, TableSnapshot, TopicId};
use proptest::prelude::*;

use crate::rows::*;
use crate::support::*;

#[derive(Clone, Debug)]
enum Op {
    Append { rows: Vec<PlainRow>, codec: Compression },
    Between { len: usize },
    DeleteRecords { percent: i64 },
    Maintain,
    Snapshot,
    Scan(Ask),
}

/// A request, relative to what is there.
#[derive(Clone, Debug)]
struct Ask {
    snapshot: prop::sample::Index,
    from: i64,
    len: i64,
    columns: Vec<Column>,
    times: Option<(Option<i64>, Option<i64>)>,
    keys: Option<Vec<u8>>,
    descending: bool,
    limit: Option<usize>,
    rows_max: usize,
    ahead: bool,
}

fn row() -> impl Strategy<Value = PlainRow> {
    let blob = |len| prop::option::weighted(0.9, prop::collection::vec(any::<u8>(), 0..len));
    let key = prop::option::weighted(0.9, (0..4_u8).prop_map(|key| vec![key]));
    let header = (prop::sample::select(vec!["", "x", "y"]), blob(4));
    let headers = prop::collection::vec(header.prop_map(|(key, value)| (key.to_owned(), value)), 0..3);
    let time = prop_oneof![4 => 0..1000_i64, 1 => Just(-1)];
    (time, key, blob(200), headers).prop_map(|(time, key, value, headers)| {
        PlainRow::new(time, key.as_deref(), value.as_deref(), headers)
    })
}

fn ask() -> impl Strategy<Value = Ask> {
    let range = (-3..160_i64, prop_oneof![1 => Just(i64::MAX), 1 => 0..90_i64]);
    let columns = prop_oneof![
        1 => Just(Column::ALL.to_vec()),
        2 => prop::sample::subsequence(Column::ALL.to_vec(), 0..=6).prop_shuffle(),
    ];
    let time = || prop::option::of(-5..1005_i64);
    let times = prop::option::weighted(0.3, (time(), time()));
    let keys = prop::option::weighted(0.3, prop::collection::vec(0..5_u8, 0..3));
    let size = (prop::option::weighted(0.4, 0..40_usize), 1..60_usize);
    (any::<prop::sample::Index>(), range, columns, times, keys, any::<bool>(), size, any::<bool>()).prop_map(
        |(snapshot, (from, len), columns, times, keys, descending, (limit, rows_max), ahead)| Ask {
            snapshot,
            from,
            len,
            columns,
            times,
            keys,
            descending,
            limit,
            rows_max,
            ahead,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let codecs =
        vec![Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    let codec = prop_oneof![2 => Just(Compression::None), 1 => prop::sample::select(codecs)];
    prop_oneof![
        8 => (prop::collection::vec(row(), 1..12), codec).prop_map(|(rows, codec)| Op::Append { rows, codec }),
        2 => (0..20_000_usize).prop_map(|len| Op::Between { len }),
        1 => (0..=60_i64).prop_map(|percent| Op::DeleteRecords { percent }),
        1 => Just(Op::Maintain),
        2 => Just(Op::Snapshot),
        6 => ask().prop_map(Op::Scan),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let memory = |some: Vec<usize>| prop::sample::select(some);
    let tails = memory(vec![0, 12 << 10, 1 << 20]);
    (tails, memory(vec![0, 8 << 20]), memory(vec![0, 6 << 10, 1 << 20])).prop_map(
        |(tail_len_max, index_len_max, decoded_len_max)| Settings {
            tail_len_max,
            index_len_max,
            decoded_len_max,
            carry_len_max: 4 << 10,
            ..small_settings()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scans_answer_like_a_list_of_rows(settings in settings(), ops in prop::collection::vec(op(), 1..120)) {
        run(settings, &ops);
    }
}

struct Held {
    table: Arc<TableSnapshot>,
    rows: Vec<PlainRow>,
}

fn hold(stepped: &Stepped, topic: TopicId, rows: &[PlainRow]) -> Held {
    let snapshot = stepped.store.snapshot(&[topic]).expect("held");
    let table = Arc::clone(snapshot.table(topic).expect("there"));
    let offsets = table.partitions()[0].offsets();
    let rows: Vec<_> = rows.iter().filter(|row| offsets.contains(&row.offset.unwrap())).cloned().collect();
    assert_eq!(i64::try_from(rows.len()).unwrap(), offsets.end - offsets.start, "every offset is a row");
    Held { table, rows }
}

fn run(settings: Settings, ops: &[Op]) {
    let decoded_len_max = settings.decoded_len_max;
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[("retention.ms", "-1")]);
    let (_, other) = stepped.topic("other", &[("retention.ms", "1000")]);
    let mut rows: Vec<PlainRow> = Vec::new();
    let mut held = vec![hold(&stepped, topic.id, &rows)];
    for op in ops {
        match op {
            Op::Append { rows: new, codec } => {
                let base = stepped.append(topic.id, &batch_of_rows(new, *codec)).base_offset.value();
                rows.extend(
                    new.iter()
                        .zip(base..)
                        .map(|(row, offset)| PlainRow { offset: Some(offset), ..row.clone() }),
                );
            }
            Op::Between { len } => drop(stepped.append(other.id, &large(1, *len))),
            Op::DeleteRecords { percent } => {
                let offsets = stepped.store.offsets(topic.id, P0).expect("known");
                let len = offsets.high_watermark.value() - offsets.log_start.value();
                let before = Offset::new(offsets.log_start.value() + len * percent / 100);
                let commit = stepped.store.delete_records(topic.id, P0, Some(before)).expect("legal");
                stepped.done(commit);
            }
            Op::Maintain => {
                stepped.later(2000);
                stepped.maintain(2);
            }
            Op::Snapshot => {
                held.push(hold(&stepped, topic.id, &rows));
                if held.len() > 4 {
                    held.remove(0);
                }
            }
            Op::Scan(ask) => check(ask, &held),
        }
        assert!(stepped.store.stats().decoded_len <= decoded_len_max);
    }
    held.push(hold(&stepped, topic.id, &rows));
    for one in &held {
        for _ in 0..2 {
            assert_same(&read_rows(&one.table, all(&Column::ALL)), &one.rows, &"all");
        }
    }
}

fn check(ask: &Ask, held: &[Held]) {
    let Held { table, rows } = ask.snapshot.get(held);
    let start = table.partitions()[0].offsets().start + ask.from;
    let (timestamp_min, timestamp_max) = ask.times.unwrap_or_default();
    let keys = ask.keys.as_ref().map(|keys| keys.iter().map(|key| Bytes::copy_from_slice(&[*key])).collect());
    let request = ScanRequest {
        partition: P0,
        offsets: start..start.saturating_add(ask.len),
        columns: ask.columns.clone(),
        filter: RowFilter { timestamp_min, timestamp_max, keys },
        descending: ask.descending,
        limit: ask.limit,
        rows_max: ask.rows_max,
    };
    let expect = expected(rows, &request);
    let (found, counters) = count_rows(table, request.clone());
    assert_same(&found, &expect, &request);
    let is_read = !request.filter.is_open()
        || request.columns.iter().any(|column| !matches!(column, Column::Partition | Column::Offset));
    let taken = count(&counters.rows_decoded) + count(&counters.rows_cached);
    assert_eq!(taken, if is_read { expect.len() as u64 } else { 0 }, "{request:?}");
    if ask.ahead {
        assert_same(&read_rows_ahead(table, request.clone()), &expect, &request);
    }
}
