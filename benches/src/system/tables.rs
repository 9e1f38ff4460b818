//! The tables of figures in the report.

use std::fmt::Write;

use super::case::Case;
use super::report::line;
use super::side::{Class, Side};
use super::spread::{Spread, figure};
use super::stage::Row;
use super::summary::{
    Summary, client_cpu_per_gb, cpu_per_gb, cpu_to_floor, megabytes, share_of_null, syncs_per_s,
    written_per_byte,
};
use crate::calibrate::Calibration;

/// A table for each class, with what each case came to on each side.
pub(super) fn loads(text: &mut String, summary: &Summary) {
    let about = [
        (Class::Durable, "## Durable: acknowledged after a sync"),
        (Class::PageCache, "## Not synced: acknowledged from the machine's memory"),
        (Class::Limit, "## Limits: what stores nothing"),
    ];
    let rows = summary.rows();
    for (class, heading) in about {
        line(text, heading);
        if class == Class::Durable {
            line(text, LOADS);
        }
        line(text, "");
        let columns: Vec<&str> = ["case", "side"].into_iter().chain(COLUMNS.map(|(name, _)| name)).collect();
        let columns = columns.into_iter().chain(["rate of null", "CPU of floor"]).collect::<Vec<_>>();
        line(text, &format!("| {} |", columns.join(" | ")));
        line(text, &format!("|{}", " --- |".repeat(columns.len())));
        for (case, name) in &rows {
            for side in Side::ALL.into_iter().filter(|side| side.class() == class) {
                load(text, summary, *case, name, side);
            }
        }
        line(text, "");
    }
}

fn load(text: &mut String, summary: &Summary, case: Case, name: &str, side: Side) {
    let seen = |figure: fn(&Row) -> f64| summary.of(|round| Some(figure(round.row(case, name, side)?)));
    if seen(|row| row.used.wall_s).is_none() {
        return;
    }
    let title = if name.is_empty() { case.title().into() } else { format!("{}, {name}", case.title()) };
    let _ = write!(text, "| {title} | {} |", side.title());
    for (_, column) in COLUMNS {
        // Writing to a string cannot fail.
        let _ = write!(text, " {} |", figure(seen(column)));
    }
    let shares = [
        summary.of(|round| share_of_null(round, case, name, side)),
        summary.of(|round| cpu_to_floor(round, case, name, side)),
    ];
    for share in shares {
        let _ = write!(text, " {} |", figure(share));
    }
    line(text, "");
}

type Column = (&'static str, fn(&Row) -> f64);

const COLUMNS: [Column; 11] = [
    ("GB/s", |row| row.seen.outcome.gb_per_s),
    ("records/s", |row| row.seen.outcome.records_per_s.round()),
    ("p50", |row| ms(row, |seen| seen.p50)),
    ("p99", |row| ms(row, |seen| seen.p99)),
    ("p99.9", |row| ms(row, |seen| seen.p999)),
    ("max", |row| ms(row, |seen| seen.max)),
    ("CPU-s/GB", cpu_per_gb),
    ("client CPU-s/GB", client_cpu_per_gb),
    ("memory max, MB", |row| megabytes(row.used.resident_max)),
    ("written/byte", written_per_byte),
    ("syncs/s", syncs_per_s),
];

/// Not a number where nothing was timed.
fn ms(row: &Row, of: fn(&crate::histogram::Percentiles) -> f64) -> f64 {
    let seen = &row.seen.outcome.latency_us;
    if seen.count == 0 { f64::NAN } else { of(seen) / 1e3 }
}

const LOADS: &str = "\nBy librdkafka where nothing else is said; raw is the blaster, whose batches are encoded before the clock starts. Latency is in ms: \
of W7 from the intended time of sending to the consumer, of the others from the client's taking of a record (raw: from sending) to its \
acknowledgement, so where a client sends as fast as it can it is the length of its own queue. CPU and memory are the server's. Syncs are all \
flushes of the disk. The last columns are the share of the limit, in the same round: the rate to that of the null broker, the CPU of a GB to that of the \
floor, the smallest broker that stores.";

/// What no load gives.
pub(super) fn numbers(text: &mut String, summary: &Summary) {
    let mut names: Vec<(String, String)> = Vec::new();
    let all = || summary.counted().flat_map(|round| round.measured.iter());
    for number in all().flat_map(|(_, measured)| &measured.numbers) {
        let key = (number.name.clone(), number.unit.clone());
        if !names.contains(&key) {
            names.push(key);
        }
    }
    if names.is_empty() {
        return;
    }
    let sides: Vec<Side> = Side::ALL
        .into_iter()
        .filter(|side| all().any(|((_, of), measured)| of == side && !measured.numbers.is_empty()))
        .collect();
    let titles: Vec<&str> = sides.iter().map(|side| side.title()).collect();
    line(text, "## Starts and memory\n\nA start ends when Metadata is answered.\n");
    line(text, &format!("| | {} |\n|{}", titles.join(" | "), " --- |".repeat(sides.len() + 1)));
    for (name, unit) in names {
        let _ = write!(text, "| {name}, {unit} |");
        for side in &sides {
            let values = all().filter(|((_, of), _)| of == side).flat_map(|(_, measured)| &measured.numbers);
            let values = values.filter(|number| number.name == name).map(|number| number.value);
            let _ = write!(text, " {} |", figure(Spread::new(values)));
        }
        line(text, "");
    }
    line(text, "");
}

/// What the machine does without a broker.
pub(super) fn calibration(text: &mut String, summary: &Summary) {
    let direct =
        summary.counted().flat_map(|round| &round.calibrations).all(|calibration| calibration.direct);
    let how =
        if direct { "past the page cache" } else { "through the page cache, because it cannot be passed" };
    line(text, &format!("## The machine without a broker\n\nAligned writes go {how}.\n"));
    line(text, "| what | seen | CPU-s/GB |\n| --- | --- | --- |");
    for (title, unit, value, cpu) in CALIBRATION {
        let seen = figure(summary.of(|round| round.calibration(value)));
        let cpu = cpu.map_or_else(String::new, |cpu| figure(summary.of(|round| round.calibration(cpu))));
        line(text, &format!("| {title} | {seen} {unit} | {cpu} |"));
    }
}

type Of = fn(&Calibration) -> f64;

const CALIBRATION: [(&str, &str, Of, Option<Of>); 12] = [
    ("memory copy of 1 MiB", "GB/s", |row| row.memory_copy_gb_per_s, None),
    ("loopback stream", "GB/s", |row| row.loopback.gb_per_s, Some(|row| row.loopback.cpu_s_per_gb)),
    ("loopback ping-pong p50", "µs", |row| row.ping_pong_us.p50, None),
    ("loopback ping-pong p99", "µs", |row| row.ping_pong_us.p99, None),
    ("write of 4 KiB + sync p50", "µs", |row| row.sync_us.p50, None),
    ("write of 4 KiB + sync p99", "µs", |row| row.sync_us.p99, None),
    ("the same at 1,000/s p50", "µs", |row| row.sync_paced_us.p50, None),
    ("the same at 1,000/s p99", "µs", |row| row.sync_paced_us.p99, None),
    (
        "append to a fresh file, no sync",
        "GB/s",
        |row| row.fresh_append.gb_per_s,
        Some(|row| row.fresh_append.cpu_s_per_gb),
    ),
    (
        "aligned write of 1 MiB + sync",
        "GB/s",
        |row| row.write_and_sync.gb_per_s,
        Some(|row| row.write_and_sync.cpu_s_per_gb),
    ),
    (
        "the same to blocks never written before",
        "GB/s",
        |row| row.fresh_write_and_sync.gb_per_s,
        Some(|row| row.fresh_write_and_sync.cpu_s_per_gb),
    ),
    (
        "receive + aligned write of 1 MiB + sync",
        "GB/s",
        |row| row.receive_write_and_sync.gb_per_s,
        Some(|row| row.receive_write_and_sync.cpu_s_per_gb),
    ),
];
