//! The report as Markdown.

use std::fmt::Write;

use super::machine::{self, Machine};
use super::round::{Load, Round, Sample, Side};
use super::summary::{
    Aim, Asked, Spread, Summary, cpu_per_gb, cpu_us_per_record, megabytes, written_per_byte,
};
use crate::calibrate::Calibration;

type Of<T> = fn(&Round) -> &T;

/// The whole report.
pub(super) fn markdown(machine: &Machine, seconds: f64, rounds: &[Round], summary: &Summary) -> String {
    let counted: Vec<&Round> = summary.counted.iter().filter_map(|index| rounds.get(*index)).collect();
    let mut text = String::from(
        "# System benchmark\n\nMedians over the rounds, `min..max` in brackets. Ratios are taken inside each round.\n\n",
    );
    run(&mut text, machine, seconds, rounds, summary);
    aims(&mut text, summary);
    loads(&mut text, &counted);
    calibration(&mut text, &counted);
    text
}

fn run(text: &mut String, machine: &Machine, seconds: f64, rounds: &[Round], summary: &Summary) {
    line(text, "## Run\n\n| | |\n| --- | --- |");
    for (name, value) in &machine.rows {
        line(text, &format!("| {name} | {value} |"));
    }
    line(text, &format!("| load average after | {} |", machine::load_average()));
    let left_out: Vec<String> = summary.left_out.iter().map(|index| (index + 1).to_string()).collect();
    let left_out = if left_out.is_empty() { "none".into() } else { left_out.join(", ") };
    line(
        text,
        &format!(
            "| rounds | {} of {seconds} s a load; left out for their calibration: {left_out} |",
            rounds.len()
        ),
    );
    let stopped = rounds.iter().filter(|round| round.broker.stopped_well).count();
    line(text, &format!("| clean stops of the broker | {stopped} of {} |", rounds.len()));
    let share = summary.null_to_stream.map_or_else(|| "unknown".into(), |spread| figure(Some(spread)));
    let verdict = if summary.is_void() { "**void**" } else { "valid" };
    line(
        text,
        &format!(
            "| null broker to the loopback stream | {share}, at least 0.6 asked: the run is {verdict} |\n"
        ),
    );
}

fn aims(text: &mut String, summary: &Summary) {
    line(text, "## Aims\n\n| figure | asked | seen | met |\n| --- | --- | --- | --- |");
    for aim in &summary.aims {
        let Aim { title, unit, asked, seen } = aim;
        let asked = match asked {
            Asked::AtLeast(value) => format!("at least {value} {unit}"),
            Asked::AtMost(value) => format!("at most {value} {unit}"),
            Asked::Nothing => String::new(),
        };
        let met = match aim.is_met() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        line(
            text,
            &format!(
                "| {title} | {} | {} | {met} |",
                asked.trim_end(),
                format!("{} {unit}", figure(*seen)).trim_end()
            ),
        );
    }
    line(text, "");
}

fn loads(text: &mut String, rounds: &[&Round]) {
    line(
        text,
        "## Loads\n\nLatency is from sending (acknowledgement at 1,000/s: from the intended time of it) to the response, in ms.\n",
    );
    line(
        text,
        "| load | side | GB/s | records/s | p50 | p99 | p99.9 | max | CPU-s/GB | CPU-µs/record | memory max, MB | written/byte |",
    );
    line(text, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let null: Of<Side> = |round| &round.null;
    let broker: Of<Side> = |round| &round.broker;
    for load in Load::ALL {
        for (name, side) in [("null", null), ("broker", broker)] {
            let samples: Vec<&Sample> = rounds.iter().filter_map(|round| side(round).sample(load)).collect();
            if !samples.is_empty() {
                line(text, &format!("| {} | {name} |{}", load.title(), cells(&samples)));
            }
        }
    }
    line(text, "");
}

fn cells(samples: &[&Sample]) -> String {
    let columns: [fn(&Sample) -> f64; 10] = [
        |sample| sample.outcome.gb_per_s,
        |sample| sample.outcome.records_per_s.round(),
        |sample| sample.outcome.latency_us.p50 / 1e3,
        |sample| sample.outcome.latency_us.p99 / 1e3,
        |sample| sample.outcome.latency_us.p999 / 1e3,
        |sample| sample.outcome.latency_us.max / 1e3,
        cpu_per_gb,
        cpu_us_per_record,
        |sample| megabytes(sample.resident_max),
        written_per_byte,
    ];
    columns.iter().fold(String::new(), |mut cells, column| {
        let spread = Spread::new(samples.iter().map(|sample| column(sample)));
        // Writing to a string cannot fail.
        let _ = write!(cells, " {} |", figure(spread));
        cells
    })
}

fn calibration(text: &mut String, rounds: &[&Round]) {
    let direct = rounds.iter().all(|round| round.calibration.direct);
    let how =
        if direct { "past the page cache" } else { "through the page cache, because it cannot be passed" };
    line(
        text,
        &format!(
            "## The machine without a broker\n\nAligned writes go {how}.\n\n| what | seen | CPU-s/GB |\n| --- | --- | --- |"
        ),
    );
    let mut row =
        |title: &str, unit: &str, value: fn(&Calibration) -> f64, cpu: Option<fn(&Calibration) -> f64>| {
            let seen = Spread::new(rounds.iter().map(|round| value(&round.calibration)));
            let cpu = cpu.map_or_else(String::new, |cpu| {
                figure(Spread::new(rounds.iter().map(|round| cpu(&round.calibration))))
            });
            line(text, &format!("| {title} | {} {unit} | {cpu} |", figure(seen)));
        };
    row("memory copy of 1 MiB", "GB/s", |row| row.memory_copy_gb_per_s, None);
    row("loopback stream", "GB/s", |row| row.loopback.gb_per_s, Some(|row| row.loopback.cpu_s_per_gb));
    row("loopback ping-pong p50", "µs", |row| row.ping_pong_us.p50, None);
    row("loopback ping-pong p99", "µs", |row| row.ping_pong_us.p99, None);
    row("write of 4 KiB + sync p50", "µs", |row| row.sync_us.p50, None);
    row("write of 4 KiB + sync p99", "µs", |row| row.sync_us.p99, None);
    row("the same at 1,000/s p50", "µs", |row| row.sync_paced_us.p50, None);
    row("the same at 1,000/s p99", "µs", |row| row.sync_paced_us.p99, None);
    row(
        "append to a fresh file, no sync",
        "GB/s",
        |row| row.fresh_append.gb_per_s,
        Some(|row| row.fresh_append.cpu_s_per_gb),
    );
    row(
        "aligned write of 1 MiB + sync",
        "GB/s",
        |row| row.write_and_sync.gb_per_s,
        Some(|row| row.write_and_sync.cpu_s_per_gb),
    );
    row(
        "the same to blocks never written before",
        "GB/s",
        |row| row.fresh_write_and_sync.gb_per_s,
        Some(|row| row.fresh_write_and_sync.cpu_s_per_gb),
    );
    row(
        "receive + aligned write of 1 MiB + sync",
        "GB/s",
        |row| row.receive_write_and_sync.gb_per_s,
        Some(|row| row.receive_write_and_sync.cpu_s_per_gb),
    );
}

/// Median and range, with the digits that mean something.
pub(crate) fn figure(spread: Option<Spread>) -> String {
    match spread {
        None => "–".into(),
        Some(Spread { median, min, max }) if (max - min).abs() < f64::EPSILON => digits(median),
        Some(Spread { median, min, max }) => format!("{} ({}..{})", digits(median), digits(min), digits(max)),
    }
}

/// Three digits that mean something, more only before the point.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

pub(crate) fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::summary::tests::round;

    #[test]
    fn a_report_has_every_aim_load_and_side_and_whole_rows() {
        let rounds = [round(4.0), round(4.1), round(3.9)];
        let summary = Summary::new(&rounds);
        let machine = Machine { rows: vec![("commit", "abc".into())] };
        let text = markdown(&machine, 5.0, &rounds, &summary);
        assert!(text.contains("the run is valid"));
        for aim in &summary.aims {
            assert!(text.contains(aim.title), "{}", aim.title);
        }
        for load in Load::ALL {
            assert_eq!(text.matches(load.title()).count(), 2, "{}", load.title());
        }
        let mut bars = None;
        for row in text.lines() {
            let count = row.matches('|').count();
            match bars {
                Some(expected) if count > 0 => assert_eq!(count, expected, "{row}"),
                _ => bars = Some(count).filter(|count| *count > 0),
            }
        }
    }

    #[test]
    fn numbers_have_three_digits_that_mean_something() {
        for (value, text) in [(1234.5, "1234"), (12.34, "12.3"), (1.234, "1.23"), (0.1234, "0.123")] {
            assert_eq!(digits(value), text);
        }
    }
}
