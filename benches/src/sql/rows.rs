//! The rows that all sides have: a function of their offset, so that every side gets the same without being sent them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::batch::{Batch, Builder};

/// Keys that occur.
pub(crate) const USERS: u64 = 100_000;

/// Kinds of value that occur.
pub(crate) const TYPES: u64 = 20;

/// The timestamp that the first rows are near to: 21 September 2026, in ms.
pub(crate) const FIRST_TIMESTAMP: i64 = 1_790_000_000_000;

/// From one row to the next, on average.
pub(crate) const STEP_MS: i64 = 10;

/// Records of one batch: about 110 KB, as a producer that is busy sends them.
pub(crate) const BATCH_ROWS: u64 = 1000;

/// Files that the rivals read.
const FILES: u64 = 10;

/// One row, and the place of the next.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) timestamp: i64,
    pub(crate) key: String,
    /// JSON of 84 bytes, or 85.
    pub(crate) value: String,
}

impl Row {
    /// Becomes the row at this offset.
    pub(crate) fn set(&mut self, offset: u64) {
        use std::fmt::Write as _;

        let (chance, more) = (mixed(offset), mixed(!offset));
        let (user, kind, cents) = (chance % USERS, (chance >> 20) % TYPES, (chance >> 28) % 100_000);
        // Later rows may be up to five steps earlier: times of creation are not in order.
        let late = i64::try_from(more % 50).unwrap_or_default();
        self.timestamp = timestamp(offset) + late;
        self.key.clear();
        self.value.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.key, "user-{user:06}");
        let _ = write!(
            self.value,
            "{{\"type\":\"type-{kind:02}\",\"user\":\"user-{user:06}\",\"amount\":{}.{:02},\"session\":\"{more:016x}\"}}",
            cents / 100,
            cents % 100,
        );
    }
}

/// The time at which the row at this offset is due.
pub(crate) fn timestamp(offset: u64) -> i64 {
    FIRST_TIMESTAMP + i64::try_from(offset).unwrap_or_default() * STEP_MS
}

/// The batches of all rows, in order.
pub(crate) fn batches(rows: u64) -> impl Iterator<Item = Batch> {
    let mut row = Row::default();
    (0..rows.div_ceil(BATCH_ROWS)).map(move |index| {
        let first = index * BATCH_ROWS;
        let mut builder = Builder::with_capacity(BATCH_LEN, timestamp(first));
        for offset in first..rows.min(first + BATCH_ROWS) {
            row.set(offset);
            builder.push(row.timestamp, Some(row.key.as_bytes()), row.value.as_bytes());
        }
        builder.finish()
    })
}

/// Writes the rows as tab-separated text, to be turned into Parquet.
pub(crate) fn write_text(rows: u64, dir: &Path) -> io::Result<()> {
    let mut row = Row::default();
    let of_a_file = rows.div_ceil(FILES);
    for file in 0..FILES {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(dir.join(format!("{file:02}.tsv")))?);
        for offset in file * of_a_file..rows.min((file + 1) * of_a_file) {
            row.set(offset);
            writeln!(out, "0\t{offset}\t{}\t{}\t{}", row.timestamp, row.key, row.value)?;
        }
        out.flush()?;
    }
    Ok(())
}

/// `SplitMix64`: the same for ever, and nothing about a row tells the next.
const fn mixed(of: u64) -> u64 {
    let mut mixed = of.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

const BATCH_LEN: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Header;

    #[test]
    fn a_row_is_json_of_about_a_hundred_bytes_and_always_the_same() {
        let (mut row, mut again) = (Row::default(), Row::default());
        for offset in [0, 1, 999_999, 9_999_999] {
            row.set(offset);
            again.set(offset);
            assert_eq!((&row.key, &row.value), (&again.key, &again.value));
            assert!((90..=100).contains(&(row.key.len() + row.value.len())), "{row:?}");
            let value: serde_json::Value = serde_json::from_str(&row.value).unwrap();
            assert_eq!(value["user"], row.key.as_str());
            assert!(value["type"].as_str().unwrap().starts_with("type-"));
        }
    }

    #[test]
    fn batches_and_text_hold_the_same_number_of_rows() {
        let batches: Vec<Batch> = batches(2500).collect();
        let counts: Vec<i32> =
            batches.iter().map(|batch| Header::parse(&batch.bytes).unwrap().count).collect();
        assert_eq!(counts, [1000, 1000, 500]);
        let dir = tempfile::tempdir().unwrap();
        write_text(2501, dir.path()).unwrap();
        let lines = |file: u64| std::fs::read_to_string(dir.path().join(format!("{file:02}.tsv"))).unwrap();
        assert_eq!((0..FILES).map(|file| lines(file).lines().count()).sum::<usize>(), 2501);
        assert!(lines(9).lines().last().unwrap().starts_with("0\t2500\t"));
    }

    #[test]
    fn timestamps_are_near_their_order_and_not_in_it() {
        let mut row = Row::default();
        let times: Vec<i64> = (0..1000)
            .map(|offset| {
                row.set(offset);
                row.timestamp
            })
            .collect();
        assert!(!times.is_sorted());
        assert!(times.iter().zip(0..).all(|(time, offset)| (0..50).contains(&(time - timestamp(offset)))));
    }
}
