//! Snapshots that are held for long while the log under them is written as fast as it can be and deleted from behind.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use bytes::Bytes;
use kolumn_topic_store::{Column, RowFilter, ScanRequest, Settings, Snapshot, Store, TopicId};

use crate::support::{NOW, P0, batch, make_topic, open_at};

#[test]
fn a_snapshot_held_under_full_load_reads_the_same_rows_twice_and_then_gives_everything_back() {
    let directory = tempfile::tempdir().expect("a folder");
    let store = open_at(
        directory.path(),
        Settings {
            tail_len_max: 4 << 20,
            decoded_len_max: 0,
            batch_len_max: 1 << 20,
            file_len: 4 << 20,
            size_limit: Some(512 << 20),
            checkpoint_distance: 4 << 20,
            retention_interval_ms: 0,
            ..Settings::default()
        },
    );
    let pairs = [("retention.ms", "-1"), ("retention.bytes", "33554432")];
    let (_, topic) = make_topic(&store, "load", 1, &pairs);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stopper = Stopper(&stop);
        scope.spawn(|| produce(&store, topic.id, &stop));
        scope.spawn(|| maintain(&store, &stop));
        wait_until(|| log_start(&store, topic.id) > 0);

        let snapshot = store.snapshot(&[topic.id]).expect("files are held");
        let rows = snapshot.tables()[0].partitions()[0].offsets();
        let first = digest(&snapshot, topic.id);
        assert_eq!(first.rows, rows.end - rows.start);
        pause(hold());
        wait_until(|| log_start(&store, topic.id) > rows.end);
        assert_eq!(
            digest(&snapshot, topic.id),
            first,
            "the rows are the same after all of them were deleted"
        );
        wait_until(|| deleted_and_open(directory.path()) > 0);

        let again = snapshot.clone();
        drop(snapshot);
        assert!(deleted_and_open(directory.path()) > 0, "a clone holds what the snapshot held");
        drop(again);
        wait_until(|| deleted_and_open(directory.path()) == 0);
    });
    store.close().expect("closes");
}

/// What a scan of all rows saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digest {
    rows: i64,
    offsets: i64,
    bytes: u64,
}

fn digest(snapshot: &Snapshot, topic: TopicId) -> Digest {
    let table = snapshot.table(topic).expect("in the snapshot");
    let mut scan = table.scan(ScanRequest {
        partition: P0,
        offsets: 0..i64::MAX,
        columns: vec![Column::Offset, Column::Value],
        filter: RowFilter::default(),
        descending: false,
        limit: None,
        rows_max: 8192,
    });
    let mut digest = Digest { rows: 0, offsets: 0, bytes: 0 };
    while let Some(rows) = scan.next_blocking().expect("readable") {
        for (offset, value) in
            rows.column(0).as_primitive::<Int64Type>().iter().zip(rows.column(1).as_binary::<i32>())
        {
            let (offset, value) = (offset.expect("never null"), value.expect("not null"));
            assert_eq!(value[..8], offset.to_be_bytes(), "each row is the one that was appended there");
            digest.rows += 1;
            digest.offsets = digest.offsets.wrapping_mul(31).wrapping_add(offset);
            digest.bytes = value.iter().fold(digest.bytes, |sum, byte| sum.wrapping_add(u64::from(*byte)));
        }
    }
    digest
}

/// Appends batches of 64 records of 4 KiB, each with its offset at its beginning, a few at a time.
fn produce(store: &Store, topic: TopicId, stop: &AtomicBool) {
    let mut pending = VecDeque::new();
    let mut next = 0_i64;
    while !stop.load(Ordering::Relaxed) {
        let values: Vec<Vec<u8>> = (next..next + 64)
            .map(|offset| {
                let mut value = vec![u8::try_from(offset & 0xff).expect("a byte"); 4096];
                value[..8].copy_from_slice(&offset.to_be_bytes());
                value
            })
            .collect();
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let sent: Bytes = batch(&values);
        // While the log is full or busy, maintenance makes room.
        match store.append(topic, P0, sent, NOW) {
            Ok(commit) => {
                next += 64;
                pending.push_back(commit);
            }
            Err(_) => pause(Duration::from_millis(1)),
        }
        while pending.len() > 8 {
            pending.pop_front().expect("one").wait().expect("durable");
        }
    }
}

fn maintain(store: &Store, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        store.maintain(NOW).expect("maintained");
        pause(Duration::from_millis(5));
    }
}

/// Tells the other threads to end, also when the test fails.
struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn log_start(store: &Store, topic: TopicId) -> i64 {
    store.offsets(topic, P0).expect("known").log_start.value()
}

/// How many files of the folder this process holds open that are no longer in it.
fn deleted_and_open(folder: &Path) -> usize {
    let folder = folder.display().to_string();
    let open = fs::read_dir("/proc/self/fd").expect("Linux");
    let targets = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    targets
        .map(|target| target.display().to_string())
        .filter(|target| target.starts_with(&folder) && target.ends_with(" (deleted)"))
        .count()
}

#[track_caller]
fn wait_until(mut condition: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if condition() {
            return;
        }
        pause(Duration::from_millis(1));
    }
    panic!("it did not happen");
}

fn pause(time: Duration) {
    let (_sender, receiver) = mpsc::channel::<()>();
    let _ = receiver.recv_timeout(time);
}

/// Half a second, or what `KOLUMN_HOLD_S` says.
fn hold() -> Duration {
    let seconds = std::env::var("KOLUMN_HOLD_S").ok().and_then(|text| text.parse().ok());
    seconds.map_or(Duration::from_millis(500), Duration::from_secs)
}
