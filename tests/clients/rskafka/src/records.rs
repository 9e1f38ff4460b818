//! What the records of a test are, and how one that was read is printed.

use std::{collections::BTreeMap, error::Error, fmt::Write as _};

use chrono::{DateTime, Utc};
use rskafka::record::{Record, RecordAndOffset};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The name of what rskafka cannot write or read: its headers are a map, so the last value of a name is left.
pub const ONE_VALUE_PER_HEADER: &str = "duplicate-header";

/// Record `i` of a seed, the same in every client's language.
pub fn record(seed: &str, i: usize) -> Result<Record, Box<dyn Error>> {
    let key = (i % 7 != 3).then(|| format!("k-{seed}-{i}").into_bytes());
    let tombstone = key.is_some() && i % 11 == 5;
    let value = (!tombstone).then(|| format!("v-{seed}-{i}-{}", "x".repeat(i * 37 % 300)).into_bytes());
    let headers: &[(&str, &[u8])] = match i % 3 {
        1 => &[("h1", b"a"), ("h1", b"b")],
        2 => &[("empty", b""), ("bin", b"\x00\xff\x80")],
        _ => &[],
    };
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.to_vec())).collect();
    Ok(Record { key, value, headers, timestamp: timestamp(i)? })
}

/// The record that nearly fills a request.
pub fn big(i: usize) -> Result<Record, Box<dyn Error>> {
    let value = Some(vec![b'y'; BIG_BYTES]);
    Ok(Record { key: Some(b"big".to_vec()), value, headers: BTreeMap::new(), timestamp: timestamp(i)? })
}

/// One record as a line of the output tells it; of a long value the hash.
pub fn shown(partition: i32, read: &RecordAndOffset) -> Value {
    let Record { key, value, headers, timestamp } = &read.record;
    let headers: Vec<Value> = headers.iter().map(|(name, value)| json!([name, hex(value)])).collect();
    let (name, value) = match value {
        Some(long) if long.len() > SHOWN_BYTES_MAX => ("vs", Some(hex(&Sha256::digest(long)))),
        value => ("v", value.as_deref().map(hex)),
    };
    json!({
        "p": partition,
        "o": read.offset,
        "t": timestamp.timestamp_millis(),
        "k": key.as_deref().map(hex),
        name: value,
        "h": headers,
    })
}

fn timestamp(i: usize) -> Result<DateTime<Utc>, Box<dyn Error>> {
    let millis = FIRST_TIMESTAMP + i64::try_from(i)?;
    Ok(DateTime::from_timestamp_millis(millis).ok_or("a timestamp is out of range")?)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

const FIRST_TIMESTAMP: i64 = 1_700_000_000_000;
const BIG_BYTES: usize = 900_000;
const SHOWN_BYTES_MAX: usize = 256;
