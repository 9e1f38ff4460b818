//! What each case does to a side.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};

use super::case::Case;
use super::load::{Load, Seen};
use super::side::Side;
use super::stage::{Measured, Plan, Stage};
use super::verify;
use crate::clock;

/// Does a case to a side; `rate` is what the side reached in [`Case::rate_from`], in records a second.
pub(super) fn run(plan: &Plan, case: Case, side: Side, rate: Option<f64>) -> io::Result<Measured> {
    let known = || rate.ok_or_else(|| io::Error::other("the rate of the case that it follows is not known"));
    let mut stage = Stage::open(plan, case, side)?;
    match case {
        Case::W1 => produce(&mut stage, &MB)?,
        Case::W2 => produce(&mut stage, &["--batch-bytes", "16384"])?,
        Case::W3 => produce(&mut stage, &["--batch-bytes", "1000000", "--record-bytes", "100"])?,
        Case::W4 => produce(&mut stage, &["--batch-bytes", "1000000", "--record-bytes", "65536"])?,
        Case::W5x1 | Case::W5x10 | Case::W5x1000 | Case::W5x16000 => {
            produce(&mut stage, &["--batch-bytes", "1000000", "--producers", "16"])?;
        }
        Case::W6None => produce(&mut stage, &["--batch-bytes", "1000000", "--acks", "0"])?,
        Case::W6Leader => produce(&mut stage, &["--batch-bytes", "1000000", "--acks", "1"])?,
        Case::W1Raw => raw(&mut stage, "produce", &["--in-flight", "5"])?,
        Case::W2Raw => raw(&mut stage, "produce", &SMALL_BATCHES)?,
        Case::W5Rawx1 | Case::W5Rawx1000 | Case::W5Rawx16000 => raw_to_partitions(&mut stage)?,
        Case::W7Ack => raw(&mut stage, "latency", &["--rate", "1000"])?,
        Case::W7 => end_to_end(&mut stage, 1_000.0, "1")?,
        Case::W7Half => end_to_end(&mut stage, known()? / 2.0, "1")?,
        Case::W8 => end_to_end(&mut stage, known()? / 2.0, "3")?,
        Case::FetchRaw => fetch_raw(&mut stage)?,
        Case::Fetch => fetch(&mut stage)?,
        Case::W1Java => java(&mut stage, known()?, 1_000_000)?,
        Case::W2Java => java(&mut stage, known()?, 16_384)?,
        Case::W9 => catch_up(&mut stage)?,
        Case::W12 => idle_connections(&mut stage)?,
        Case::W13 => starts(&mut stage)?,
    }
    stage.close()
}

const MB: [&str; 2] = ["--batch-bytes", "1000000"];
const SMALL_BATCHES: [&str; 4] = ["--batch-bytes", "16384", "--in-flight", "64"];
const TOPIC: &str = "load";

fn produce(stage: &mut Stage<'_>, options: &[&str]) -> io::Result<()> {
    let partitions = stage.case.partitions();
    stage.create_topic(TOPIC, partitions)?;
    let load = stage.load(TOPIC, partitions);
    let records = stage.measure("", || load.librdkafka("produce", options))?;
    stage.verify(TOPIC, Some(records).filter(|_| stage.case != Case::W6None))
}

fn raw(stage: &mut Stage<'_>, mode: &str, options: &[&str]) -> io::Result<()> {
    stage.create_topic(TOPIC, 1)?;
    let load = stage.load(TOPIC, 1);
    let records = stage.measure("", || load.raw(mode, options))?;
    stage.verify(TOPIC, Some(records))
}

/// As many batches as the most partitions are have gone before: otherwise it would be the first batch of each that is measured.
fn raw_to_partitions(stage: &mut Stage<'_>) -> io::Result<()> {
    let partitions = stage.case.partitions();
    stage.create_topic(TOPIC, partitions)?;
    let load = stage.load(TOPIC, partitions);
    let before = Load { seconds: load.seconds.max(FILL_SECONDS), ..load }
        .raw("produce", &[&SMALL_BATCHES[..], &["--batches", "16000"]].concat())?;
    let records = stage.measure("", || load.raw("produce", &SMALL_BATCHES))?;
    stage.verify(TOPIC, Some(before.outcome.records_total + records))
}

fn end_to_end(stage: &mut Stage<'_>, rate: f64, consumers: &str) -> io::Result<()> {
    stage.create_topic(TOPIC, 1)?;
    let load = stage.load(TOPIC, 1);
    let rate = format!("{rate:.0}");
    let options = ["--rate", &rate, "--consumers", consumers];
    // Consumers count what they received: several of them more than there is.
    let _received = stage.measure("", || load.librdkafka("end-to-end", &options))?;
    let end = stage.measured.rows.last().and_then(|row| row.seen.end());
    stage.verify(TOPIC, end)
}

/// 24 MB are well within any memory that a broker keeps for its newest records.
fn fetch_raw(stage: &mut Stage<'_>) -> io::Result<()> {
    stage.create_topic(TOPIC, 1)?;
    let load = stage.load(TOPIC, 1);
    let filled = load.raw("produce", &["--batches", "24"])?;
    let _read = stage.measure("", || load.raw("drain", &[]))?;
    stage.verify(TOPIC, Some(filled.outcome.records_total))
}

fn fetch(stage: &mut Stage<'_>) -> io::Result<()> {
    stage.create_topic(TOPIC, 1)?;
    let mut load = stage.load(TOPIC, 1);
    load.seconds = load.seconds.max(FILL_SECONDS);
    let filled = fill(&load, "2000")?;
    let _read = stage.measure("", || load.consume(filled, &[]))?;
    stage.verify(TOPIC, Some(filled))
}

/// Sends so many batches of 1 MB; the records in them.
fn fill(load: &Load<'_>, batches: &str) -> io::Result<u64> {
    let load = Load { seconds: load.seconds.max(FILL_SECONDS), ..*load };
    Ok(load.raw("produce", &["--batches", batches])?.outcome.records_total)
}

fn java(stage: &mut Stage<'_>, rate: f64, batch_bytes: u32) -> io::Result<()> {
    stage.create_topic(TOPIC, 1)?;
    let load = stage.load(TOPIC, 1);
    let seconds = Duration::try_from_secs_f64(load.seconds * rate / 1e9).unwrap_or_default();
    // By count, not by time: as many as librdkafka sends, and fewer than retention deletes.
    let records = u64::try_from(seconds.as_nanos()).unwrap_or(u64::MAX).clamp(1_000, JAVA_RECORDS_MAX);
    let sent = stage.measure("produce", || load.java_produce(records, batch_bytes))?;
    if stage.side != Side::Null && !stage.side.is_floor() {
        // A group is more than some sides have, and not what is measured.
        let end = verify::end(stage.address(), TOPIC)?;
        if let Err(error) = stage.measure("consume", || load.java_consume(end)) {
            stage.note(format!("Kafka's consumer tool: {error}"));
        }
    }
    stage.verify(TOPIC, Some(sent))
}

/// Reads a log of 10 GB from its start, first as it lies, then without the page cache, while records come in.
fn catch_up(stage: &mut Stage<'_>) -> io::Result<()> {
    stage.create_topic(TOPIC, 1)?;
    let mut load = stage.load(TOPIC, 1);
    load.seconds = load.seconds.max(FILL_SECONDS);
    let mut sent = fill(&load, "10000")?;
    let there = sent;
    for (read, write) in
        [("read, warm", "produce beside it, warm"), ("read, cold", "produce beside it, cold")]
    {
        if read == "read, cold" && !drop_caches() {
            stage.note("the page cache could not be dropped, so nothing was read cold".into());
            break;
        }
        let ((reading, writing), used) = stage.used(|| {
            thread::scope(|scope| {
                let writing = scope.spawn(|| load.librdkafka("produce", &["--rate", CATCH_UP_RATE]));
                let reading = load.consume(there, &[])?;
                let writing = writing.join().map_err(|_| io::Error::other("a thread panicked"))?;
                Ok((reading, writing?))
            })
        })?;
        sent += writing.outcome.records_total;
        push(stage, read, reading, used);
        push(stage, write, writing, used);
    }
    stage.verify(TOPIC, Some(sent))
}

fn push(stage: &mut Stage<'_>, name: &str, seen: Seen, used: super::stage::Used) {
    stage.measured.rows.push(super::stage::Row { name: name.into(), seen, used });
}

/// Whether it was permitted.
fn drop_caches() -> bool {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

fn idle_connections(stage: &mut Stage<'_>) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit })?;
    let before = stage.usage()?.resident;
    let address = stage.address();
    let idle: Vec<TcpStream> =
        (0..CONNECTIONS).map(|_| TcpStream::connect(address)).collect::<io::Result<_>>()?;
    clock::sleep(REST);
    let after = stage.usage()?.resident;
    stage.measured.number("memory with 10,000 idle connections", megabytes(after), "MB");
    let each = megabytes(after.saturating_sub(before)) * 1e6 / f64::from(CONNECTIONS);
    stage.measured.number("memory of an idle connection", each, "B");
    end_to_end(stage, 1_000.0, "1")?;
    drop(idle);
    Ok(())
}

/// Starts on nothing, on many topics, on many partitions, on a long log.
fn starts(stage: &mut Stage<'_>) -> io::Result<()> {
    started(stage, "nothing")?;
    if stage.side == Side::Tansu {
        stage.note("it keeps nothing over a start, so it starts on nothing only".into());
        return Ok(());
    }
    for topic in 0..TOPICS {
        stage.create_topic(&format!("topic-{topic}"), 1)?;
    }
    started(stage, "1,000 topics")?;
    for topic in 0..PARTITIONS / PARTITIONS_OF_A_TOPIC {
        stage.create_topic(&format!("many-{topic}"), PARTITIONS_OF_A_TOPIC)?;
    }
    started(stage, "1,000 topics and 10,000 partitions")?;
    stage.create_topic(TOPIC, 1)?;
    let filled = fill(&stage.load(TOPIC, 1), "10000")?;
    started(stage, "the same and 10 GB")?;
    stage.verify(TOPIC, Some(filled))
}

/// Stops the server, starts it on what it has and looks at it.
fn started(stage: &mut Stage<'_>, on: &str) -> io::Result<()> {
    stage.stop()?;
    let ready = stage.start()?;
    clock::sleep(REST);
    let resident = stage.usage()?.resident;
    stage.measured.number(&format!("start on {on}"), ready.as_secs_f64() * 1e3, "ms");
    stage.measured.number(&format!("memory after a start on {on}"), megabytes(resident), "MB");
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a figure for a table needs no more digits than an f64 has")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// 200 MB a second.
const CATCH_UP_RATE: &str = "195312";
const JAVA_RECORDS_MAX: u64 = 3_000_000;
const CONNECTIONS: u32 = 10_000;
const TOPICS: u32 = 1_000;
const PARTITIONS: i32 = 10_000;
/// Apache Kafka's controller takes fewer than 10,000 new partitions at a time (error 44).
const PARTITIONS_OF_A_TOPIC: i32 = 5_000;

/// Filling has a count, not a time; this bounds it.
const FILL_SECONDS: f64 = 120.0;

/// Between a start and a look at the memory.
const REST: Duration = Duration::from_secs(1);
