//! Many rows in the tail: `KOLUMN_ROWS` of them. The long run sets ten million, which are more than a gigabyte.

use std::fs;
use std::path::Path;

use datafusion::arrow::array::{AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use futures::StreamExt as _;
use kolumn_sql::{Engine, Principal, ScanTotals, Session, Settings};
use kolumn_topic_store::TopicConfig;

use crate::ask::{ask, runtime};
use crate::support::{Fixture, Row};

#[test]
fn what_is_asked_of_many_rows_decodes_only_what_is_answered() {
    let rows = rows();
    let fixture = filled(rows);
    let session = fixture.session();
    let check = |text: &str, expected: &[String]| {
        let told = runtime().block_on(ask(&session, text)).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(told.rows, expected, "{text}");
        told.scans
    };
    let untouched = ScanTotals::default();
    assert_eq!(check("SELECT count(*) FROM large", &[format!("{rows}")]), untouched);
    let bounds = "SELECT min(\"offset\"), max(\"offset\") FROM large";
    assert_eq!(check(bounds, &[format!("0|{}", rows - 1)]), untouched);

    let offset = rows / 3;
    let text =
        format!("SELECT arrow_cast(timestamp, 'Int64'), key, value FROM large WHERE \"offset\" = {offset}");
    let scans = check(&text, &[format!("{offset}|{}|{}", hex(&key(offset, rows)), hex(&value(offset)))]);
    assert_eq!(scans.rows_decoded, 1);
    assert!(scans.rows_walked <= BATCH_ROWS.unsigned_abs(), "{scans:?}");

    let last: Vec<_> = (rows - 100..rows).rev().map(|offset| offset.to_string()).collect();
    let text = "SELECT \"offset\" FROM large ORDER BY \"offset\" DESC LIMIT 100";
    let scans = check(text, &last);
    assert_eq!(scans.rows_decoded, 0, "offsets are known without decoding");
    assert!(scans.rows_walked <= BATCH_ROWS.unsigned_abs(), "{scans:?}");
    let last: Vec<_> =
        (rows - 100..rows).rev().map(|offset| format!("{offset}|{}", hex(&value(offset)))).collect();
    let scans = check("SELECT \"offset\", value FROM large ORDER BY \"offset\" DESC LIMIT 100", &last);
    assert_eq!(scans.rows_decoded, 100);
}

#[test]
fn a_sort_and_a_group_of_many_rows_stay_in_the_memory_pool() {
    let rows = rows();
    let fixture = filled(rows);
    let spill = fixture.directory.path().join("spill");
    let memory_len_max = if rows < 5_000_000 { 16 << 20 } else { 64 << 20 };
    let settings =
        Settings { memory_len_max, spill_dir: Some(spill.clone()), parallelism: 2, ..Settings::default() };
    let engine = fixture.engine(|builder| builder.settings(settings));
    let session = engine.session(Principal::anonymous());

    let (mut seen, mut before) = (Seen::default(), None);
    stream(&session, &spill, "SELECT \"offset\", value FROM large ORDER BY value", |batch| {
        let offsets = batch.column(0).as_primitive::<Int64Type>();
        for (offset, found) in offsets.iter().zip(batch.column(1).as_binary::<i32>()) {
            let (offset, found) = (offset.unwrap(), found.unwrap());
            let number = number(&found[..16]);
            assert_eq!(number, scrambled(offset), "the value of offset {offset} is another one's");
            assert!(before < Some(number), "offset {offset} is not in its place");
            before = Some(number);
            seen.add(1, offset);
        }
    });
    assert_eq!(seen, Seen::all(rows));
    check_given_back(&engine, &spill, memory_len_max);

    let (mut seen, mut groups) = (Seen::default(), 0);
    let text = "SELECT key, count(*), sum(\"offset\"), max(octet_length(value)) FROM large GROUP BY key";
    stream(&session, &spill, text, |batch| {
        let (counts, sums) =
            (batch.column(1).as_primitive::<Int64Type>(), batch.column(2).as_primitive::<Int64Type>());
        for (row, found) in batch.column(0).as_binary::<i32>().iter().enumerate() {
            // Its members are two: `group` and `group` plus half of the rows.
            let group = i64::try_from(number(found.unwrap())).unwrap();
            assert_eq!((counts.value(row), sums.value(row)), (2, 2 * group + rows / 2), "group {group}");
            seen.add(2, sums.value(row));
            groups += 1;
        }
    });
    assert_eq!((groups, seen), (rows / 2, Seen::all(rows)));
    check_given_back(&engine, &spill, memory_len_max);
    drop((session, engine));
    assert_eq!(fs::read_dir(&spill).unwrap().count(), 0);
}

/// How many rows were seen, and the sum of their offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    rows: i64,
    offsets: i64,
}

impl Seen {
    /// Each of so many rows once.
    const fn all(rows: i64) -> Self {
        Self { rows, offsets: rows * (rows - 1) / 2 }
    }

    const fn add(&mut self, rows: i64, offsets: i64) {
        self.rows += rows;
        self.offsets += offsets;
    }
}

/// Reads an answer batch by batch. The statement has to spill.
fn stream(session: &Session, spill: &Path, text: &str, mut read: impl FnMut(&RecordBatch)) {
    let mut has_spilled = false;
    runtime().block_on(async {
        let mut answer = session.execute(text).await.unwrap();
        while let Some(batch) = answer.rows.next().await {
            has_spilled |= files(spill) > 0;
            read(&batch.unwrap_or_else(|error| panic!("{text}: {error}")));
        }
    });
    assert!(has_spilled, "{text} did not spill");
}

/// Nothing is left of a statement that has ended, and it never had more than it may.
#[track_caller]
fn check_given_back(engine: &Engine, spill: &Path, memory_len_max: usize) {
    let memory = engine.memory();
    assert!(memory.reserved_max <= memory_len_max, "{memory:?}");
    assert_eq!((memory.reserved, files(spill)), (0, 0));
}

/// How many files there are below a folder.
fn files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

/// A topic `large` with one partition, whose tail is in memory.
fn filled(rows: i64) -> Fixture {
    let fixture = Fixture::with(|settings| {
        settings.tail_len_max = 2 << 30;
        settings.size_limit = Some(8 << 30);
        settings.decoded_len_max = 0;
    });
    let config = TopicConfig::parse([("max.message.bytes", "2097152")]).unwrap();
    let topic = fixture.topic_with("large", 1, config);
    for first in (0..rows).step_by(usize::try_from(BATCH_ROWS).unwrap()) {
        let offsets = first..rows.min(first + BATCH_ROWS);
        let records: Vec<_> = offsets.map(|offset| (offset, key(offset, rows), value(offset))).collect();
        let records: Vec<_> =
            records.iter().map(|(offset, key, value)| Row::text(*offset, key, value)).collect();
        fixture.append(&topic, 0, &records);
    }
    fixture
}

/// Eight digits that another row has as well.
fn key(offset: i64, rows: i64) -> String {
    format!("{:08x}", offset % (rows / 2))
}

/// 92 bytes that begin with a number which no other row has. Their order is not that of the offsets.
fn value(offset: i64) -> String {
    format!("{:016x}{:76}", scrambled(offset), "")
}

const fn scrambled(offset: i64) -> u64 {
    offset.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn number(digits: &[u8]) -> u64 {
    u64::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap()
}

fn hex(text: &str) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).expect("a digit");
    text.bytes().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// An even number of rows.
fn rows() -> i64 {
    let rows = std::env::var("KOLUMN_ROWS").ok().and_then(|text| text.parse().ok());
    rows.map_or(200_000, |rows: i64| rows.max(20_000) / 2 * 2)
}

const BATCH_ROWS: i64 = 10_000;
