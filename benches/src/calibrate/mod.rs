//! The machine without a broker: what nothing on it can beat.

mod disk;
mod network;

use std::ffi::OsString;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::histogram::Percentiles;

#[cfg(feature = "sql")]
pub(crate) use disk::Block;

/// Measures what this machine can do without a broker and prints it as JSON.
#[derive(Debug, Parser)]
#[command(name = "calibrate")]
struct Arguments {
    /// A directory on the disk that the broker would use.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// How long each measurement takes.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Mebibytes appended to a fresh file; below 256 or so it flatters the page cache.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    append_mib: u64,
}

/// One row of calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calibration {
    /// Copying 1 MiB on one core.
    pub(crate) memory_copy_gb_per_s: f64,
    /// One TCP stream over loopback, one thread on each side.
    pub(crate) loopback: Transfer,
    /// A byte there and a byte back.
    pub(crate) ping_pong_us: Percentiles,
    /// 4 KiB written to an allocated file and synced, one after the other.
    pub(crate) sync_us: Percentiles,
    /// The same, 1,000 times a second, sleeping between.
    pub(crate) sync_paced_us: Percentiles,
    /// Appending to a fresh file through the page cache, without a sync.
    pub(crate) fresh_append: Transfer,
    /// Aligned writes of 1 MiB to an allocated file, a sync after each.
    pub(crate) write_and_sync: Transfer,
    /// The same to blocks that are allocated and were never written, as a new log's are.
    pub(crate) fresh_write_and_sync: Transfer,
    /// The former with the bytes received from loopback before: the least that a durable broker does.
    pub(crate) receive_write_and_sync: Transfer,
    /// Whether those three went past the page cache.
    pub(crate) direct: bool,
}

/// A rate and what it cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Transfer {
    pub(crate) gb_per_s: f64,
    /// Of the measured side alone, where there are two.
    pub(crate) cpu_s_per_gb: f64,
}

impl Transfer {
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits than an f64 has")]
    fn new(bytes: u64, time: Duration, cpu: Duration) -> Self {
        let gb = (bytes as f64 / 1e9).max(1e-9);
        Self { gb_per_s: gb / time.as_secs_f64().max(1e-9), cpu_s_per_gb: cpu.as_secs_f64() / gb }
    }
}

/// Runs the calibration and prints one line of JSON.
pub fn calibrate(arguments: &[OsString], out: &mut dyn Write) -> io::Result<()> {
    let arguments: Arguments = crate::arguments(arguments)?;
    let duration = Duration::try_from_secs_f64(arguments.seconds)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "`--seconds` is not a number of seconds"))?;
    let calibration = run(&arguments, duration)?;
    serde_json::to_writer(&mut *out, &calibration)?;
    writeln!(out)
}

fn run(arguments: &Arguments, duration: Duration) -> io::Result<Calibration> {
    let file = disk::ScratchFile::create(&arguments.dir)?;
    Ok(Calibration {
        memory_copy_gb_per_s: memory_copy(duration),
        loopback: network::stream(duration)?,
        ping_pong_us: network::ping_pong(duration)?,
        sync_us: file.sync_latency(duration, None)?,
        sync_paced_us: file.sync_latency(duration, Some(Duration::from_millis(1)))?,
        fresh_append: disk::fresh_append(&arguments.dir, arguments.append_mib)?,
        write_and_sync: file.write_and_sync(duration)?,
        fresh_write_and_sync: disk::ScratchFile::fresh_write_and_sync(&arguments.dir, duration)?,
        receive_write_and_sync: file.receive_write_and_sync(duration)?,
        direct: file.direct,
    })
}

/// Copies 1 MiB again and again on one core; in GB/s.
pub(crate) fn memory_copy(duration: Duration) -> f64 {
    let from = vec![1_u8; MIB];
    let mut to = vec![0_u8; MIB];
    let (start, cpu) = (clock::now(), clock::thread_cpu());
    let mut bytes = 0;
    while start.elapsed() < duration {
        for _ in 0..64 {
            black_box(&mut to).copy_from_slice(black_box(&from));
            bytes += MIB_U64;
        }
    }
    Transfer::new(bytes, start.elapsed(), clock::thread_cpu().saturating_sub(cpu)).gb_per_s
}

const MIB: usize = 1024 * 1024;
const MIB_U64: u64 = 1024 * 1024;
