//! Snapshots: the rows as of one moment, the same however often they are read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use kolumn_kafka_wire::records::{BatchBuilder, Compression};
use kolumn_topic_store::{
    Column, MaxTimestamp, Offset, PartitionIndex, RowFilter, ScanRequest, ScanStep, Settings, TableSnapshot,
    Timestamp, TopicId,
};

use crate::rows::*;
use crate::support::*;

const FILE: u64 = 128 << 10;

fn table_of(stepped: &Stepped, topic: TopicId) -> Arc<TableSnapshot> {
    let snapshot = stepped.store.snapshot(&[topic]).expect("held");
    Arc::clone(snapshot.table(topic).expect("there"))
}

/// `batches` of `rows` rows each: the key is the row's number in its batch, the value the batch's.
fn filled(settings: Settings, batches: i64, rows: i64) -> (Stepped, TopicId, Vec<PlainRow>) {
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[("retention.ms", "-1")]);
    let mut all = Vec::new();
    for batch in 0..batches {
        let new: Vec<_> = (0..rows)
            .map(|row| {
                let (key, value) = (row.to_string(), batch.to_string());
                PlainRow::new(batch * 10 + row, Some(key.as_bytes()), Some(value.as_bytes()), Vec::new())
            })
            .collect();
        stepped.append(topic.id, &batch_of_rows(&new, Compression::None));
        all.extend(new);
    }
    for (row, offset) in all.iter_mut().zip(0..) {
        row.offset = Some(offset);
    }
    (stepped, topic.id, all)
}

#[test]
fn null_keys_null_values_and_repeated_headers_are_in_the_columns_as_they_were_sent() {
    let header = |key: &str, value: Option<&[u8]>| (key.to_owned(), value.map(<[u8]>::to_vec));
    let rows = [
        PlainRow::new(5, None, None, vec![]),
        PlainRow::new(-1, Some(b""), Some(b""), vec![header("x", Some(b"1")), header("x", Some(b"2"))]),
        PlainRow::new(
            3,
            Some(b"k"),
            None,
            vec![header("", None), header("x", Some(b"")), header("", Some(b"2"))],
        ),
        PlainRow::new(0, None, Some(b"v"), vec![]),
    ];
    for (codec, tail_len_max) in [(Compression::None, 0), (Compression::Zstd, 64 << 10)] {
        let mut stepped = Stepped::open(Settings { tail_len_max, ..small_settings() });
        let (_, topic) = stepped.topic("t", &[]);
        stepped.append(topic.id, &batch_of_rows(&rows, codec));
        let expect: Vec<_> =
            rows.iter().zip(0..).map(|(row, at)| PlainRow { offset: Some(at), ..row.clone() }).collect();
        let table = table_of(&stepped, topic.id);
        for _ in 0..2 {
            assert_same(&read_rows(&table, all(&Column::ALL)), &expect, &codec);
        }
    }
}

#[test]
fn where_the_store_gives_the_timestamps_every_row_has_the_one_of_its_batch() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[("message.timestamp.type", "LogAppendTime")]);
    stepped.append(topic.id, &batch_at(5, &[b"a", b"b"]));
    stepped.later(7);
    stepped.append(topic.id, &batch_at(3, &[b"c"]));
    let table = table_of(&stepped, topic.id);
    let now = NOW.value();
    let times =
        |request| -> Vec<_> { read_rows(&table, request).iter().map(|row| row.timestamp.unwrap()).collect() };
    assert_eq!(times(all(&[Column::Timestamp])), [Some(now), Some(now), Some(now + 7)]);
    let filter = RowFilter { timestamp_max: Some(now), ..RowFilter::default() };
    assert_eq!(times(ScanRequest { filter, ..all(&[Column::Timestamp]) }), [Some(now), Some(now)]);
}

#[test]
fn a_filter_on_time_finds_every_row_though_timestamps_are_in_no_order() {
    let mut stepped = Stepped::open(Settings { decoded_len_max: 0, ..small_settings() });
    let (_, topic) = stepped.topic("t", &[]);
    for time in [500, 100, 900, -1, 300] {
        let rows =
            [time, if time < 0 { -1 } else { time - 50 }].map(|time| PlainRow::new(time, None, None, vec![]));
        stepped.append(topic.id, &batch_of_rows(&rows, Compression::None));
    }
    let table = table_of(&stepped, topic.id);
    let check = |min: Option<i64>, max: Option<i64>, expect: &[i64], batches: u64| {
        let filter = RowFilter { timestamp_min: min, timestamp_max: max, keys: None };
        let (rows, counters) = count_rows(&table, ScanRequest { filter, ..all(&[Column::Offset]) });
        assert_eq!(rows.iter().map(|row| row.offset.unwrap()).collect::<Vec<_>>(), expect, "{min:?} {max:?}");
        assert_eq!(
            count(&counters.batches),
            batches,
            "{min:?} {max:?}: batches that end before are not looked at"
        );
    };
    check(Some(300), None, &[0, 1, 4, 5, 8], 3);
    check(Some(300), Some(500), &[0, 1, 8], 3);
    check(None, Some(100), &[2, 3], 4);
    check(Some(-5), None, &[0, 1, 2, 3, 4, 5, 8, 9], 4);
    check(Some(901), None, &[], 0);
    check(Some(500), Some(300), &[], 0);
}

#[test]
fn no_more_rows_are_decoded_than_are_asked_for() {
    let settings = Settings { tail_len_max: 1 << 20, ..small_settings() };
    let (stepped, topic, rows) = filled(settings, 30, 40);
    let table = table_of(&stepped, topic);
    let check = |request: ScanRequest, decoded: u64, walked_max: u64| {
        let (found, counters) = count_rows(&table, request.clone());
        assert_same(&found, &expected(&rows, &request), &request);
        assert_eq!(count(&counters.rows_decoded), decoded, "{request:?}");
        assert!(count(&counters.rows_walked) <= walked_max, "{request:?}: {counters:?}");
        assert_eq!((count(&counters.rows_cached), count(&counters.bytes_read)), (0, 0), "{request:?}");
    };
    let everything = || all(&Column::ALL);
    check(ScanRequest { offsets: 617..618, ..everything() }, 1, 18);
    check(ScanRequest { offsets: 0..1, ..everything() }, 1, 1);
    check(ScanRequest { offsets: -5..0, ..everything() }, 0, 0);
    check(ScanRequest { offsets: 1200..i64::MAX, ..everything() }, 0, 0);
    check(ScanRequest { descending: true, limit: Some(100), ..everything() }, 100, 120);
    check(ScanRequest { limit: Some(50), ..everything() }, 50, 50);
    check(ScanRequest { limit: Some(0), ..everything() }, 0, 0);
    let filter = || RowFilter { keys: Some(vec![Bytes::from("7")]), ..RowFilter::default() };
    check(ScanRequest { filter: filter(), ..everything() }, 30, 1200);
    check(ScanRequest { filter: filter(), limit: Some(2), ..everything() }, 2, 48);
    check(ScanRequest { filter: filter(), limit: Some(2), descending: true, ..everything() }, 2, 80);
    let filter = RowFilter { keys: Some(Vec::new()), ..RowFilter::default() };
    check(ScanRequest { filter, ..everything() }, 0, 1200);
    check(all(&[]), 0, 0);
    check(all(&[Column::Offset, Column::Partition]), 0, 0);
    check(ScanRequest { descending: true, ..all(&[Column::Offset]) }, 0, 0);
    let missing = ScanRequest { partition: PartitionIndex::new(9), ..everything() };
    assert_eq!(read_rows(&table, missing), []);
}

#[test]
fn counting_gives_the_number_of_rows_without_a_column() {
    let (stepped, topic, _) = filled(small_settings(), 30, 40);
    let mut scan = table_of(&stepped, topic).scan(all(&[]));
    let mut rows = 0;
    while let Some(batch) = scan.next_blocking().expect("readable") {
        assert_eq!(batch.num_columns(), 0);
        rows += batch.num_rows();
    }
    assert_eq!(rows, 1200);
}

#[test]
fn a_snapshot_reads_the_same_rows_whatever_goes_on_behind_it_and_gives_files_back_in_the_end() {
    for index_len_max in [0, 8 << 20] {
        let settings = Settings {
            tail_len_max: 0,
            index_len_max,
            decoded_len_max: 0,
            carry_len_max: 1 << 20,
            ..small_settings()
        };
        let mut stepped = Stepped::open(Settings { size_limit: Some(40 * FILE), ..settings });
        let (view, bulk) = stepped.topic("bulk", &[]);
        let (_, kept) = stepped.topic("kept", &[("retention.ms", "-1")]);
        let (_, old) = stepped.topic("old", &[("retention.ms", "10000")]);
        for n in 0..60_u8 {
            stepped.append(bulk.id, &large(n, 20_000));
            stepped.append(kept.id, &batch_at(i64::from(n), &[&[n], b"kept"]));
            let sent = batch_at(stepped.now.value(), &[&[n], b"old"]);
            stepped.append(old.id, &sent);
        }
        let topics = [kept.id, bulk.id, old.id];
        let snapshot = stepped.store.snapshot(&topics).expect("held");
        let read = || -> Vec<Vec<PlainRow>> {
            snapshot.tables().iter().map(|table| read_rows(table, all(&Column::ALL))).collect()
        };
        let before = read();
        assert_eq!(before.iter().map(Vec::len).collect::<Vec<_>>(), [120, 60, 120]);

        let deleted = stepped.store.delete_topic(view.id, bulk.id).expect("known");
        stepped.done(deleted);
        let deleted = stepped.store.delete_records(kept.id, P0, Some(Offset::new(31))).expect("legal");
        stepped.done(deleted);
        stepped.later(60_000);
        for n in 0..20_u8 {
            stepped.append(kept.id, &large(n, 20_000));
            stepped.maintain(1);
        }
        stepped.maintain(5);
        for event in ["Carried", "Freed", "Retained", "Checkpoint"] {
            assert!(stepped.recorder.count(event) >= 1, "{event} {:?}", stepped.recorder.events);
        }
        for _ in 0..2 {
            for (found, expect) in read().iter().zip(&before) {
                assert_same(found, expect, &index_len_max);
            }
        }
        let held = stepped.disk.used();
        drop(snapshot);
        let after = stepped.disk.used();
        assert!(
            held >= after + 5 * FILE,
            "the files that only the snapshot held are given back: {held} {after}"
        );
        let now = table_of(&stepped, kept.id);
        assert_eq!(now.partitions()[0].offsets(), 31..140);
        assert_eq!(read_rows(&now, all(&[Column::Value])).len(), 109);
        assert!(stepped.store.snapshot(&[bulk.id]).expect("held").table(bulk.id).is_none());
    }
}

#[test]
fn what_was_acknowledged_before_is_in_a_snapshot_and_all_its_topics_are_of_one_position() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open_at(directory.path(), Settings { decoded_len_max: 1 << 20, ..small_settings() });
    let (_, first) = make_topic(&store, "first", 1, &[]);
    let (_, second) = make_topic(&store, "second", 1, &[]);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                append(&store, first.id, P0, &batch(&[b"one"]));
                append(&store, second.id, P0, &batch(&[b"two"]));
            }
        });
        let (_, own) = make_topic(&store, "own", 1, &[]);
        for round in 1..=100_i64 {
            append(&store, own.id, P0, &batch(&[round.to_string().as_bytes()]));
            let snapshot = store.snapshot(&[first.id, own.id, second.id]).expect("held");
            let lens: Vec<_> =
                snapshot.tables().iter().map(|table| table.partitions()[0].offsets().end).collect();
            assert_eq!(lens[1], round);
            assert!((lens[2]..=lens[2] + 1).contains(&lens[0]), "{lens:?}");
            let rows = snapshot.tables().iter().map(|table| read_rows(table, all(&[Column::Value])));
            let rows: Vec<_> = rows.collect();
            assert_eq!(
                rows.iter().map(|rows| i64::try_from(rows.len()).expect("few")).collect::<Vec<_>>(),
                lens
            );
            let last = rows[1].last().expect("a row").value.clone().flatten();
            assert_eq!(last, Some(round.to_string().into_bytes()));
        }
        is_done.store(true, Ordering::Relaxed);
    });
    store.close().expect("closed");
}

#[test]
fn rows_that_were_decoded_are_not_decoded_again_while_there_is_memory_for_them() {
    let settings = Settings { tail_len_max: 1 << 20, decoded_len_max: 1 << 20, ..small_settings() };
    let (mut stepped, topic, rows) = filled(settings, 100, 20);
    let check = |stepped: &Stepped, request: ScanRequest, decoded: u64, cached: u64| {
        let request = ScanRequest { rows_max: 8192, ..request };
        let (found, counters) = count_rows(&table_of(stepped, topic), request.clone());
        let table = table_of(stepped, topic);
        let start = table.partitions()[0].offsets().start;
        let rows: Vec<_> = rows.iter().filter(|row| row.offset.unwrap() >= start).cloned().collect();
        assert_same(&found, &expected(&rows, &request), &request);
        let counts = (count(&counters.rows_decoded), count(&counters.rows_cached));
        assert_eq!(counts, (decoded, cached), "{request:?}");
    };
    let times = || all(&[Column::Offset, Column::Timestamp]);
    check(&stepped, ScanRequest { limit: Some(1999), ..times() }, 1999, 0);
    assert_eq!(stepped.store.stats().decoded_len, 0, "what is cut is not kept");
    check(&stepped, times(), 2000, 0);
    let small = stepped.store.stats().decoded_len;
    assert!(small >= 2000 * 8, "{small}");
    check(&stepped, times(), 0, 2000);
    check(&stepped, all(&[Column::Value]), 2000, 0);
    check(&stepped, all(&[Column::Value, Column::Timestamp]), 0, 2000);
    assert!(stepped.store.stats().decoded_len > small);
    check(&stepped, ScanRequest { offsets: 0..1990, ..times() }, 0, 1990);
    let filter = || RowFilter { timestamp_min: Some(990), timestamp_max: Some(1000), keys: None };
    check(&stepped, ScanRequest { filter: filter(), ..all(&[Column::Value]) }, 0, 21);
    let keys = RowFilter { keys: Some(vec![Bytes::from("3"), Bytes::from("5")]), ..RowFilter::default() };
    check(&stepped, ScanRequest { filter: keys.clone(), ..all(&[Column::Value]) }, 200, 0);
    check(&stepped, all(&[Column::Key]), 2000, 0);
    check(&stepped, ScanRequest { filter: keys.clone(), ..all(&[Column::Value]) }, 0, 200);
    check(&stepped, ScanRequest { filter: keys, limit: Some(3), ..all(&[Column::Value]) }, 0, 3);

    let deleted = stepped.store.delete_records(topic, P0, Some(Offset::new(1010))).expect("legal");
    stepped.done(deleted);
    check(&stepped, all(&[Column::Value]), 990, 0);
    check(&stepped, all(&[Column::Value]), 0, 990);
    let held = table_of(&stepped, topic);
    stepped.store.close().expect("closed");
    assert_eq!(stepped.store.stats().decoded_len, 0);
    assert_eq!(read_rows(&held, all(&[Column::Value])).len(), 990);
    assert_eq!(stepped.store.stats().decoded_len, 0, "after the end nothing is kept");
}

#[test]
fn from_a_new_log_start_rows_are_decoded_up_to_where_others_are_kept() {
    let settings = Settings { decoded_len_max: 8 << 20, ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (_, topic) = stepped.topic("t", &[]);
    for n in 0..100_u8 {
        stepped.append(topic.id, &large(n, 30_000));
    }
    let check = |stepped: &Stepped, decoded: u64, cached: u64| {
        let (rows, counters) = count_rows(&table_of(stepped, topic.id), all(&Column::ALL));
        let last = rows.last().and_then(|row| row.value.clone()).flatten();
        assert_eq!(last, Some(vec![99; 30_000]));
        assert_eq!((count(&counters.rows_decoded), count(&counters.rows_cached)), (decoded, cached));
    };
    check(&stepped, 100, 0);
    let deleted = stepped.store.delete_records(topic.id, P0, Some(Offset::new(5))).expect("legal");
    stepped.done(deleted);
    check(&stepped, 29, 66);
    check(&stepped, 0, 95);
}

#[test]
fn a_batch_of_many_rows_is_kept_in_parts() {
    let settings = Settings { batch_len_max: 1 << 20, file_len: 4 << 20, ..small_settings() };
    let (stepped, topic, rows) = filled(settings, 2, 20_000);
    let table = table_of(&stepped, topic);
    for (decoded, cached) in [(40_000, 0), (0, 40_000)] {
        let request = ScanRequest { rows_max: 8192, ..all(&Column::ALL) };
        let (found, counters) = count_rows(&table, request.clone());
        assert_same(&found, &rows, &"all");
        assert_eq!((count(&counters.rows_decoded), count(&counters.rows_cached)), (decoded, cached));
        let mut scan = table.scan(request);
        let batch = scan.next_blocking().expect("readable").expect("rows");
        assert_eq!(batch.num_rows(), 8192);
        assert!(batch.get_array_memory_size() < 8192 * 64, "{}", batch.get_array_memory_size());
    }
    let middle = ScanRequest { offsets: 8192..40_000, rows_max: 8192, ..all(&[Column::Value]) };
    assert_eq!(count(&count_rows(&table, middle).1.rows_cached), 31_808);
    // A slice of what is kept would take as much memory as the whole of it.
    for (decoded, cached) in [(40_000, 0), (0, 40_000)] {
        let request = ScanRequest { rows_max: 1000, ..all(&[Column::Value]) };
        let (found, counters) = count_rows(&table, request.clone());
        assert_same(&found, &expected(&rows, &request), &"in short batches");
        assert_eq!((count(&counters.rows_decoded), count(&counters.rows_cached)), (decoded, cached));
        let batch = table.scan(request).next_blocking().expect("readable").expect("rows");
        assert!(batch.get_array_memory_size() < 1000 * 64, "{}", batch.get_array_memory_size());
    }
}

#[test]
fn decoded_rows_stay_within_their_memory() {
    for decoded_len_max in [0, 20 << 10, 200 << 10] {
        let (stepped, topic, _) = filled(Settings { decoded_len_max, ..small_settings() }, 4, 20);
        let mut stepped = stepped;
        for n in 0..100_u8 {
            stepped.append(topic, &large(n, 10_000));
            let rows = read_rows(&table_of(&stepped, topic), all(&Column::ALL));
            assert_eq!(rows.len(), 81 + usize::from(n));
            assert!(stepped.store.stats().decoded_len <= decoded_len_max);
        }
        assert_eq!(stepped.store.stats().decoded_len > 0, decoded_len_max > 0);
    }
}

#[test]
fn columns_come_in_batches_of_bounded_length() {
    let settings =
        Settings { batch_len_max: 16 << 20, file_len: 64 << 20, size_limit: None, ..Settings::default() };
    let mut stepped = Stepped::open(Settings { size_limit: Some(512 << 20), ..settings });
    let (_, topic) = stepped.topic("t", &[("max.message.bytes", "16777216")]);
    let mut builder = BatchBuilder::new().with_compression(Compression::Zstd);
    for _ in 0..20 {
        builder.append(None, Some(&vec![7; 1 << 20]), [], 0).expect("fits");
    }
    builder.append(None, Some(&vec![8; 12 << 20]), [], 0).expect("fits");
    stepped.append(topic.id, &builder.build().expect("fits"));
    for descending in [false, true] {
        let request = ScanRequest { descending, rows_max: 8192, ..all(&[Column::Value]) };
        let mut scan = table_of(&stepped, topic.id).scan(request);
        let (mut rows, mut lens) = (0, Vec::new());
        while let Some(batch) = scan.next_blocking().expect("readable") {
            rows += batch.num_rows();
            lens.push(batch.get_array_memory_size());
        }
        assert_eq!(rows, 21);
        assert!(lens.len() >= 3, "{lens:?}");
        assert!(lens.iter().all(|len| *len < (12 << 20) + (8 << 20) + (1 << 20)), "{lens:?}");
    }
}

#[test]
fn a_partition_is_cut_at_borders_of_batches_into_parts_of_about_the_same_length() {
    for index_len_max in [0, 8 << 20] {
        let (stepped, topic, _) = filled(Settings { index_len_max, ..small_settings() }, 100, 10);
        let table = table_of(&stepped, topic);
        let partition = &table.partitions()[0];
        for parts in [1, 2, 3, 7, 1000] {
            for offsets in [0..1000, 5..995, 990..i64::MAX] {
                let ranges = partition.split(offsets.clone(), parts);
                assert!((1..=parts).contains(&ranges.len()));
                assert_eq!(
                    (ranges[0].start, ranges[ranges.len() - 1].end),
                    (offsets.start, offsets.end.min(1000))
                );
                assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].end % 10 == 0));
                assert!(ranges.iter().all(|range| !range.is_empty()));
            }
        }
        if index_len_max > 0 {
            let ranges = partition.split(0..1000, 4);
            assert!(ranges.iter().all(|range| (range.end - range.start - 250).abs() <= 20), "{ranges:?}");
            assert_eq!(partition.split(0..1000, 1000).len(), 100);
        }
        assert!(partition.split(1000..2000, 4).is_empty());
        assert_eq!(partition.bytes(), stepped.store.partition_len(topic, P0).expect("known"));
    }
}

#[test]
fn the_greatest_timestamp_is_exact_where_a_whole_batch_has_it_and_a_bound_elsewhere() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    let max = |stepped: &Stepped| table_of(stepped, topic.id).partitions()[0].max_timestamp();
    assert_eq!(max(&stepped), MaxTimestamp::Exact(None));
    let mut append = |times: &[i64]| {
        let rows: Vec<_> = times.iter().map(|time| PlainRow::new(*time, None, None, vec![])).collect();
        stepped.append(topic.id, &batch_of_rows(&rows, Compression::None));
        max(&stepped)
    };
    assert_eq!(append(&[-1, -1]), MaxTimestamp::Exact(None));
    assert_eq!(append(&[700, 30]), MaxTimestamp::Exact(Some(Timestamp::new(700))));
    assert_eq!(append(&[600]), MaxTimestamp::Exact(Some(Timestamp::new(700))));
    let deleted = stepped.store.delete_records(topic.id, P0, Some(Offset::new(3))).expect("legal");
    stepped.done(deleted);
    assert_eq!(max(&stepped), MaxTimestamp::AtMost(Timestamp::new(700)));
    let deleted = stepped.store.delete_records(topic.id, P0, Some(Offset::new(4))).expect("legal");
    stepped.done(deleted);
    assert_eq!(max(&stepped), MaxTimestamp::Exact(Some(Timestamp::new(600))));
}

#[test]
fn batches_that_end_before_a_time_are_not_read_from_files() {
    let settings = Settings { tail_len_max: 0, decoded_len_max: 0, ..small_settings() };
    let (stepped, topic, rows) = filled(settings, 100, 5);
    let filter = RowFilter { timestamp_min: Some(985), ..RowFilter::default() };
    let request = ScanRequest { filter, ..all(&Column::ALL) };
    let (found, counters) = count_rows(&table_of(&stepped, topic), request.clone());
    assert_same(&found, &expected(&rows, &request), &request);
    assert_eq!(count(&counters.batches), 1);
    assert!(count(&counters.bytes_read) < 1000, "{counters:?}");
}

#[test]
fn many_small_batches_that_lie_side_by_side_cost_one_read() {
    let settings = Settings { tail_len_max: 0, decoded_len_max: 0, ..small_settings() };
    let (stepped, topic, rows) = filled(settings, 20, 5);
    let mut scan = table_of(&stepped, topic).scan(all(&[Column::Value]));
    let (mut reads, mut found) = (0, 0);
    loop {
        match scan.step().expect("readable") {
            ScanStep::Rows(batch) => found += batch.num_rows(),
            ScanStep::NeedsDisk(read) => {
                reads += 1;
                scan.supply(read.run().expect("readable"));
            }
            ScanStep::End => break,
        }
    }
    assert_eq!((found, reads), (rows.len(), 1));
}

#[test]
fn what_a_file_gives_back_is_what_was_written_or_an_error() {
    let settings = Settings { tail_len_max: 0, decoded_len_max: 0, ..small_settings() };
    let (stepped, topic, rows) = filled(settings, 10, 5);
    let table = table_of(&stepped, topic);
    // The last key and value, each after its length.
    let is_last = |bytes: &[u8]| bytes == b"\x024\x029";
    let names = kolumn_journal::Disk::list(&stepped.disk).expect("a list");
    let (name, content, last) = names
        .into_iter()
        .find_map(|name| {
            let content = stepped.disk.content(&name)?;
            let last = content.windows(4).position(is_last)?;
            Some((name, content, last))
        })
        .expect("the file is there");
    let mut faults = 0;
    for at in last - 6000..last + 10 {
        let mut damaged = content.clone();
        damaged[at] ^= 0x55;
        stepped.disk.set_content(&name, damaged);
        let mut scan = table.scan(all(&Column::ALL));
        match scan.next_blocking() {
            Ok(first) => {
                stepped.disk.set_content(&name, content.clone());
                assert_eq!(first.expect("rows").num_rows(), rows.len());
            }
            Err(_) => faults += 1,
        }
    }
    assert!(faults > 200, "{faults}");
}

#[test]
fn views_are_told_in_the_order_of_their_buckets() {
    let mut stepped = Stepped::open(small_settings());
    for bucket in ["zoo", "apple", "kafka"] {
        let view = stepped.store.ensure_view(bucket, NOW).expect("admitted");
        stepped.done(view);
    }
    let buckets: Vec<_> = stepped.store.views().iter().map(|view| view.bucket.to_string()).collect();
    assert_eq!(buckets, ["apple", "kafka", "zoo"]);
}

#[test]
fn a_scan_that_finds_nothing_gives_others_a_turn_now_and_then() {
    let settings = Settings { tail_len_max: 64 << 20, decoded_len_max: 0, ..small_settings() };
    let (mut stepped, topic, _) = filled(settings, 1, 1);
    let keys = Some(vec![Bytes::from("none")]);
    let request = ScanRequest { filter: RowFilter { keys, ..RowFilter::default() }, ..all(&[Column::Value]) };
    for (batches, expect) in [(20, 0), (600, 2)] {
        for _ in 0..batches {
            stepped.append(topic, &large(1, 30_000));
        }
        assert_eq!(turns(&stepped, topic, request.clone()), expect, "what is walked at once is bounded");
    }
}

/// How often a scan stops before its end, without rows.
fn turns(stepped: &Stepped, topic: TopicId, request: ScanRequest) -> usize {
    let mut scan = table_of(stepped, topic).scan(request);
    let mut turns = 0;
    loop {
        match scan.step().expect("readable") {
            ScanStep::Rows(_) => panic!("no row passes"),
            ScanStep::NeedsDisk(read) => {
                turns += 1;
                scan.supply(read.run().expect("nothing to read"));
            }
            ScanStep::End => return turns,
        }
    }
}
