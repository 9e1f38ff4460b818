//! The picture of a run: throughput by side, and latency by percentile.

use super::case::Case;
use super::side::{Class, Side};
use super::spread::{Spread, digits};
use super::summary::Summary;
use super::svg::{Anchor, GRID, INK, LABEL, Picture, QUIET, SMALL, Style, TITLE};

/// The picture as SVG.
pub(super) fn svg(summary: &Summary, commit: &str) -> String {
    let throughput = Throughput::new(summary);
    let latency = Latency::new(summary);
    let height = TOP + f64::max(throughput.height(), LATENCY_HEIGHT) + BOTTOM;
    let mut picture =
        Picture::new(WIDTH, rounded_up(height), "Throughput and latency of brokers on one machine");
    throughput.draw(&mut picture);
    latency.draw(&mut picture);
    let about = format!(
        "Medians of {} interleaved rounds, whiskers from least to most; the same librdkafka client for all; commit {commit}.",
        summary.counted().count()
    );
    picture.text(24.0, height - 14.0, Anchor::Start, SMALL, &about);
    picture.finish()
}

const WIDTH: u32 = 1180;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 44.0;

/// Bars, a group for each case, from one axis.
struct Throughput {
    groups: Vec<(&'static str, Vec<(Side, Spread)>)>,
    most: f64,
}

impl Throughput {
    fn new(summary: &Summary) -> Self {
        let groups = [
            ("batches of 1 MB (W1)", [Case::W1, Case::W1Raw]),
            ("batches of 16 KiB (W2)", [Case::W2, Case::W2Raw]),
        ];
        let groups: Vec<_> = groups
            .into_iter()
            .filter_map(|(title, cases)| {
                let bars = cases.into_iter().map(|case| bars(summary, case)).find(|bars| !bars.is_empty())?;
                Some((title, bars))
            })
            .collect();
        let bars = groups.iter().flat_map(|(_, bars)| bars);
        let most = bars.fold(0.001, |most, (_, spread)| f64::max(most, spread.max));
        Self { groups, most }
    }

    fn height(&self) -> f64 {
        self.groups.iter().fold(24.0, |height, (_, bars)| height + BAR * count(bars.len()) + GROUP_GAP)
    }

    fn draw(&self, picture: &mut Picture) {
        picture.text(24.0, 32.0, Anchor::Start, TITLE, "Produce, 1 KiB records: gigabytes a second");
        let bottom = TOP + self.height() - 24.0;
        let step = nice(self.most / 4.0);
        let ticks = (0..8).map(|tick| count(tick) * step).take_while(|value| *value <= self.most * 1.05);
        for value in ticks {
            let x = self.x(value);
            picture.line((x, TOP), (x, bottom), GRID, 1.0);
            picture.text(x, bottom + 16.0, Anchor::Middle, SMALL, &trimmed(value));
        }
        picture.text(
            self.x(self.most / 2.0),
            bottom + 32.0,
            Anchor::Middle,
            SMALL,
            "GB/s (longer is faster)",
        );
        let mut y = TOP;
        for (title, bars) in &self.groups {
            picture.text(24.0, y + 14.0, Anchor::Start, Style { bold: true, ..LABEL }, title);
            y += 22.0;
            for (side, spread) in bars {
                self.bar(picture, y, *side, *spread);
                y += BAR;
            }
            y += GROUP_GAP - 22.0;
        }
    }

    fn bar(&self, picture: &mut Picture, y: f64, side: Side, spread: Spread) {
        let middle = y + BAR / 2.0 - 2.0;
        picture.text(BARS_LEFT - 8.0, middle + 4.0, Anchor::End, LABEL, &named(side));
        let width = (self.x(spread.median) - BARS_LEFT).max(1.0);
        picture.bar(BARS_LEFT, y, width, BAR - 6.0, color(side));
        picture.line((self.x(spread.min), middle), (self.x(spread.max), middle), INK, 1.4);
        for end in [spread.min, spread.max] {
            picture.line((self.x(end), middle - 4.0), (self.x(end), middle + 4.0), INK, 1.4);
        }
        picture.text(self.x(spread.max) + 7.0, middle + 4.0, Anchor::Start, LABEL, &digits(spread.median));
    }

    fn x(&self, value: f64) -> f64 {
        BARS_LEFT + value / self.most * BARS_WIDTH
    }
}

const BARS_LEFT: f64 = 240.0;
const BARS_WIDTH: f64 = 290.0;
const BAR: f64 = 22.0;
const GROUP_GAP: f64 = 38.0;

fn bars(summary: &Summary, case: Case) -> Vec<(Side, Spread)> {
    Side::ALL
        .into_iter()
        .filter_map(|side| {
            let seen = summary.of(|round| Some(round.row(case, "", side)?.seen.outcome.gb_per_s))?;
            Some((side, seen))
        })
        .collect()
}

/// Lines over the percentiles, on a logarithmic axis.
struct Latency {
    title: &'static str,
    lines: Vec<(Side, [f64; 4])>,
}

impl Latency {
    fn new(summary: &Summary) -> Self {
        let of = |case| {
            let lines =
                Side::ALL.into_iter().filter_map(|side| Some((side, percentiles(summary, case, side)?)));
            lines.collect::<Vec<_>>()
        };
        let lines = of(Case::W7);
        if lines.is_empty() {
            return Self { title: "Acknowledgement at 1,000 records a second", lines: of(Case::W7Ack) };
        }
        Self { title: "End to end at 1,000 records a second", lines }
    }

    fn draw(&self, picture: &mut Picture) {
        if self.lines.is_empty() {
            return;
        }
        picture.text(LINES_LEFT - 50.0, 32.0, Anchor::Start, TITLE, self.title);
        let values = || self.lines.iter().flat_map(|(_, values)| values.iter().copied());
        let low = values().fold(f64::MAX, f64::min).max(1e-4).log10().floor();
        let high = values().fold(f64::MIN, f64::max).max(1e-3).log10().ceil().max(low + 1.0);
        let y = |ms: f64| LINES_BOTTOM - (ms.max(1e-4).log10() - low) / (high - low) * (LINES_BOTTOM - TOP);
        let mut power = low;
        while power <= high {
            let at = y(10_f64.powf(power));
            picture.line((LINES_LEFT, at), (LINES_RIGHT, at), GRID, 1.0);
            picture.text(LINES_LEFT - 8.0, at + 4.0, Anchor::End, SMALL, &trimmed(10_f64.powf(power)));
            power += 1.0;
        }
        let middle = f64::midpoint(TOP, LINES_BOTTOM);
        picture.upwards(LINES_LEFT - 46.0, middle, SMALL, "milliseconds, logarithmic (lower is faster)");
        let names = ["p50", "p99", "p99.9", "max"];
        for (at, name) in names.iter().enumerate() {
            picture.text(x(at), LINES_BOTTOM + 18.0, Anchor::Middle, LABEL, name);
        }
        let middle = f64::midpoint(LINES_LEFT, LINES_RIGHT);
        picture.text(
            middle,
            LINES_BOTTOM + 36.0,
            Anchor::Middle,
            SMALL,
            "percentile, from the intended time of sending",
        );
        for (side, values) in &self.lines {
            let points: Vec<_> = values.iter().enumerate().map(|(at, ms)| (x(at), y(*ms))).collect();
            picture.path(&points, color(*side), side.class() != Class::Durable);
        }
        self.legend(picture);
    }

    fn legend(&self, picture: &mut Picture) {
        for (at, (side, values)) in self.lines.iter().enumerate() {
            let y = LINES_BOTTOM + 62.0 + count(at) * 18.0;
            let from = (LINES_LEFT, y - 4.0);
            picture.path(&[from, (LINES_LEFT + 34.0, y - 4.0)], color(*side), side.class() != Class::Durable);
            let [p50, p99, ..] = values;
            let text = format!("{}: p50 {} ms, p99 {} ms", named(*side), digits(*p50), digits(*p99));
            picture.text(LINES_LEFT + 46.0, y, Anchor::Start, LABEL, &text);
        }
    }
}

const LINES_LEFT: f64 = 700.0;
const LINES_RIGHT: f64 = 1150.0;
const LINES_BOTTOM: f64 = 330.0;
const LATENCY_HEIGHT: f64 = LINES_BOTTOM - TOP + 62.0 + 8.0 * 18.0;

/// In milliseconds.
fn percentiles(summary: &Summary, case: Case, side: Side) -> Option<[f64; 4]> {
    let of = |figure: fn(&crate::histogram::Percentiles) -> f64| {
        let seen = summary.of(|round| Some(figure(&round.row(case, "", side)?.seen.outcome.latency_us)))?;
        Some(seen.median / 1e3)
    };
    Some([of(|seen| seen.p50)?, of(|seen| seen.p99)?, of(|seen| seen.p999)?, of(|seen| seen.max)?])
}

fn x(at: usize) -> f64 {
    LINES_LEFT + 40.0 + count(at) * (LINES_RIGHT - LINES_LEFT - 80.0) / 3.0
}

/// A side with what its acknowledgement means.
fn named(side: Side) -> String {
    let class = match side.class() {
        Class::Durable => "synced",
        Class::PageCache if side == Side::Tansu => "in memory",
        Class::PageCache => "not synced",
        Class::Limit => "stores nothing",
    };
    let title = match side {
        Side::Sync | Side::Os => "Kolumn",
        Side::FloorOs => "floor",
        Side::KafkaFlush => "Kafka, flush each",
        other => other.title(),
    };
    format!("{title} ({class})")
}

const fn color(side: Side) -> &'static str {
    match side {
        Side::Sync => "#1d4ed8",
        Side::Os => "#60a5fa",
        Side::Kafka => "#f59e0b",
        Side::KafkaFlush => "#b45309",
        Side::Tansu => "#9333ea",
        Side::Floor => "#0f766e",
        Side::FloorOs => "#5eead4",
        Side::Null => QUIET,
    }
}

/// The next of 1, 2 and 5 with noughts.
fn nice(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1e-6).log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(10.0 * power)
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[expect(clippy::cast_precision_loss, reason = "a handful of bars and lines")]
fn count(len: usize) -> f64 {
    len as f64
}

/// A height of a picture in whole units, at most some thousands.
fn rounded_up(height: f64) -> u32 {
    (0..10_000).find(|units| f64::from(*units) >= height).unwrap_or(10_000)
}

#[cfg(test)]
mod tests {
    use super::super::samples::lines;
    use super::*;

    #[test]
    fn the_picture_has_axes_with_units_a_bar_and_a_line_for_each_side_and_no_script() {
        let summary = Summary::new(&lines(&[4.0, 4.1]));
        let text = svg(&summary, "abc");
        for part in ["GB/s", "milliseconds", "p99.9", "W1", "W2", "commit abc", "2 interleaved rounds"] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("script") && !text.contains("NaN") && !text.contains("inf"));
        let bars = 2 * 7;
        assert_eq!(text.matches("rx=").count(), bars);
        // The null broker has no end-to-end; each other side has a line and its sample in the legend.
        assert_eq!(text.matches("<polyline").count(), 2 * 6);
        assert!(text.contains(">Kolumn (synced): p50 0.400 ms, p99 0.800 ms<"));
    }

    #[test]
    fn nothing_measured_is_a_picture_without_bars() {
        let text = svg(&Summary::new(&[]), "abc");
        assert!(text.ends_with("</svg>\n") && !text.contains("rx="));
    }

    #[test]
    fn steps_of_an_axis_are_round() {
        for (value, step) in [(0.3, 0.5), (1.0, 1.0), (0.11, 0.2), (6.0, 10.0)] {
            assert!((nice(value) - step).abs() < 1e-9, "{value}");
        }
        assert_eq!(trimmed(0.25), "0.25");
        assert_eq!(trimmed(1000.0), "1000");
    }
}
