//! The report as Markdown.

use super::query::Query;
use super::round::{Columns, Round, Work};
use super::rows::BATCH_ROWS;
use super::side::{Place, Side};
use super::summary::{Aim, Summary, ms, ratio};
use crate::ask::RowCounts;
use crate::system::{Machine, Spread, figure, line, load_average};

/// What is said of a side besides its times.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub(super) side: Side,
    pub(super) version: String,
    pub(super) loaded_s: f64,
    pub(super) resident_max: u64,
}

/// The whole report.
pub(super) fn markdown(
    machine: &Machine,
    place: &Place,
    sides: &[About],
    rounds: &[Round],
    summary: &Summary,
) -> String {
    let counted: Vec<&Round> = summary.counted.iter().filter_map(|index| rounds.get(*index)).collect();
    let mut text = String::from(
        "# SQL benchmark\n\nMedians over the rounds, `min..max` in brackets. Ratios are taken inside each round. All sides gave the same\nanswers to the same statements.\n\n",
    );
    run(&mut text, machine, place, rounds, summary);
    about(&mut text, sides);
    aims(&mut text, summary);
    let sides: Vec<Side> = sides.iter().map(|about| about.side).collect();
    times(&mut text, &sides, &counted);
    ratios(&mut text, &sides, &counted);
    row_counts(&mut text, &sides, &counted);
    scans(&mut text, &sides, &counted, place.rows);
    text
}

fn run(text: &mut String, machine: &Machine, place: &Place, rounds: &[Round], summary: &Summary) {
    line(text, "## Run\n\n| | |\n| --- | --- |");
    for (name, value) in &machine.rows {
        line(text, &format!("| {name} | {value} |"));
    }
    line(text, &format!("| load average after | {} |", load_average()));
    let left_out: Vec<String> = summary.left_out.iter().map(|index| (index + 1).to_string()).collect();
    let left_out = if left_out.is_empty() { "none".into() } else { left_out.join(", ") };
    let verdict = if summary.is_void() { "**void**" } else { "valid" };
    line(
        text,
        &format!("| rounds | {}; left out for their calibration: {left_out}; {verdict} |", rounds.len()),
    );
    let copy = Spread::new(rounds.iter().map(|round| round.memory_copy_gb_per_s));
    line(text, &format!("| memory copy of 1 MiB | {} GB/s |", figure(copy)));
    line(
        text,
        &format!(
            "| rows | {} of about 95 bytes of key and value, one partition, {BATCH_ROWS} in a batch, not compressed |",
            place.rows
        ),
    );
    line(text, &format!("| threads of each side | {} |\n", place.threads));
}

fn about(text: &mut String, sides: &[About]) {
    line(
        text,
        "## Sides\n\n| side | is | rows appended in, s | memory at most, MB |\n| --- | --- | --- | --- |",
    );
    for About { side, version, loaded_s, resident_max } in sides {
        let what = match side {
            Side::DataFusion | Side::DuckDb => {
                "on 10 Parquet files, zstd, with page index, in the page cache"
            }
            Side::Memory => "batches in memory, no decoded rows kept",
            Side::Cached => "batches in memory, all decoded rows kept",
            Side::Files => "nothing in memory, the journal's files are read each time",
            Side::Broker => "the broker program through Flight SQL, otherwise as memory",
        };
        let loaded = if *loaded_s > 0.0 { format!("{loaded_s:.1}") } else { String::new() };
        line(
            text,
            &format!("| {} | {version}: {what} | {loaded} | {} |", side.title(), resident_max / 1_000_000),
        );
    }
    line(text, "");
}

fn aims(text: &mut String, summary: &Summary) {
    line(text, "## Aims\n\n| figure | asked | seen | met |\n| --- | --- | --- | --- |");
    for aim in &summary.aims {
        let Aim { title, unit, at_most, seen } = aim;
        let asked = at_most.map_or_else(String::new, |most| format!("at most {most} {unit}"));
        let met = match aim.is_met() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        let seen = format!("{} {unit}", figure(*seen));
        line(text, &format!("| {title} | {} | {} | {met} |", asked.trim_end(), seen.trim_end()));
    }
    line(text, "");
}

fn times(text: &mut String, sides: &[Side], rounds: &[&Round]) {
    line(text, "## Times, in ms\n");
    head(text, "statement", sides);
    for query in Query::ALL {
        row(text, query.title(), sides.iter().map(|side| ms(rounds, *side, Work::Query(query))));
    }
    line(text, "");
}

fn ratios(text: &mut String, sides: &[Side], rounds: &[&Round]) {
    if !sides.contains(&Side::DataFusion) {
        return;
    }
    line(text, "## The same in units of DataFusion's time\n");
    let others: Vec<Side> = sides.iter().copied().filter(|side| *side != Side::DataFusion).collect();
    head(text, "statement", &others);
    for query in Query::ALL {
        let work = Work::Query(query);
        let of = |side: &Side| ratio(rounds, (*side, work), (Side::DataFusion, work));
        row(text, query.title(), others.iter().map(of));
    }
    line(text, "");
}

/// They explain the times; each round looks elsewhere, so the last one's stand for all.
fn row_counts(text: &mut String, sides: &[Side], rounds: &[&Round]) {
    let known: Vec<Side> = sides.iter().copied().filter(|side| side.scans()).collect();
    let Some(last) = rounds.last().filter(|_| !known.is_empty()) else { return };
    line(text, "## Rows walked through / decoded / taken from the cache, in the last round\n");
    head(text, "statement", &known);
    for query in Query::ALL {
        let cell = |side: &Side| {
            let counts = last.row_counts(*side, Work::Query(query));
            counts.map_or_else(
                || "–".into(),
                |RowCounts { walked, decoded, cached }| format!("{walked} / {decoded} / {cached}"),
            )
        };
        let cells: Vec<String> = known.iter().map(cell).collect();
        line(text, &format!("| {} | {} |", query.title(), cells.join(" | ")));
    }
    line(text, "");
}

fn scans(text: &mut String, sides: &[Side], rounds: &[&Round], rows: u64) {
    let scanning: Vec<Side> = sides.iter().copied().filter(|side| side.scans()).collect();
    if scanning.is_empty() {
        return;
    }
    line(text, "## Decoding without SQL, on one thread, in ns a row\n");
    head(text, "columns", &scanning);
    let ns = 1e6 / float(rows.max(1));
    let per_row = |of: Spread| Spread { median: of.median * ns, min: of.min * ns, max: of.max * ns };
    for columns in Columns::ALL {
        let of = |side: &Side| ms(rounds, *side, Work::Scan(columns)).map(per_row);
        row(text, columns.title(), scanning.iter().map(of));
    }
    let of = |side: &Side| ms(rounds, *side, Work::Bytes).map(per_row);
    row(text, "none: the bytes are read", scanning.iter().map(of));
    line(text, "");
}

fn head(text: &mut String, what: &str, sides: &[Side]) {
    let titles: Vec<&str> = sides.iter().map(|side| side.title()).collect();
    line(text, &format!("| {what} | {} |\n| --- |{}", titles.join(" | "), " --- |".repeat(sides.len())));
}

fn row(text: &mut String, what: &str, seen: impl Iterator<Item = Option<Spread>>) {
    let cells: Vec<String> = seen.map(figure).collect();
    line(text, &format!("| {what} | {} |", cells.join(" | ")));
}

#[expect(clippy::cast_precision_loss, reason = "a ratio needs no more digits than an f64 has")]
fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::round::tests::round;

    fn report(sides: &[Side]) -> String {
        let rounds = [round(|side, _| sides.contains(&side).then_some(2.0), 10.0)];
        let about = |side: &Side| About { side: *side, version: "v1".into(), loaded_s: 0.0, resident_max: 0 };
        let sides: Vec<About> = sides.iter().map(about).collect();
        let place = Place {
            rows: 1_000_000,
            threads: 2,
            python: "python".into(),
            broker: "broker".into(),
            programs: ".".into(),
            dir: ".".into(),
        };
        let machine = Machine { rows: vec![("commit", "abc".into())] };
        markdown(&machine, &place, &sides, &rounds, &Summary::new(&rounds))
    }

    #[test]
    fn a_report_has_every_statement_aim_and_side_and_whole_rows() {
        let text = report(&Side::ALL);
        for query in Query::ALL {
            assert!(text.matches(&format!("\n| {} |", query.title())).count() >= 2, "{}", query.title());
        }
        for side in Side::ALL {
            assert!(text.contains(&format!("| {} | v1: ", side.title())), "{}", side.title());
        }
        assert!(
            text.contains("| all columns | 2.00 | 2.00 | 2.00 |"),
            "2 ms for a million rows are 2 ns: {text}"
        );
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
    fn sides_that_were_left_out_are_no_columns() {
        let text = report(&[Side::DuckDb]);
        assert!(text.contains("| statement | DuckDB |\n"));
        assert!(!text.contains("units of DataFusion") && !text.contains("Decoding"));
    }
}
