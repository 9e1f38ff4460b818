//! The report as Markdown.

use super::aims::{Aim, Asked, aims};
use super::case::{Case, Client};
use super::machine::{self, Machine};
use super::side::Side;
use super::spread::figure;
use super::summary::{NULL_TO_STREAM_MIN, Summary};
use super::tables;

/// What the report says besides what was measured.
#[derive(Debug)]
pub(super) struct About<'a> {
    pub(super) machine: &'a Machine,
    pub(super) seconds: f64,
    /// What was not done, with the reason.
    pub(super) left_out: &'a [(String, String)],
    /// The file name of the picture, if there is one.
    pub(super) plot: Option<String>,
}

/// The whole report.
pub(super) fn markdown(about: &About<'_>, summary: &Summary) -> String {
    let mut text = String::from(
        "# System benchmark\n\nMedians over the rounds, `min..max` in brackets. Ratios are taken inside each round, and only they are \
         worth comparing between runs.\n\n",
    );
    run(&mut text, about, summary);
    if let Some(plot) = &about.plot {
        line(&mut text, &format!("![Throughput and latency by side]({plot})\n"));
    }
    aim_table(&mut text, summary);
    tables::loads(&mut text, summary);
    tables::numbers(&mut text, summary);
    verification(&mut text, summary);
    left_out(&mut text, about, summary);
    settings(&mut text, summary);
    tables::calibration(&mut text, summary);
    text
}

/// A report in place of the one in a file, with what is written by hand there: the causes, and the part about SQL.
pub(super) fn merged(old: &str, report: &str) -> String {
    let (system, sql) = old.find(SQL).map_or((old, ""), |at| old.split_at(at));
    let mut text = report.trim_end().to_owned();
    text.push('\n');
    if let Some((_, causes)) = system.find(CAUSES).map(|at| system.split_at(at)) {
        text.push('\n');
        text.push_str(causes.trim());
        text.push('\n');
    }
    if !sql.is_empty() {
        text.push('\n');
        text.push_str(sql);
    }
    text
}

const CAUSES: &str = "## Causes";
const SQL: &str = "# SQL benchmark";

fn run(text: &mut String, about: &About<'_>, summary: &Summary) {
    line(text, "## Run\n\n| | |\n| --- | --- |");
    for (name, value) in &about.machine.rows {
        line(text, &format!("| {name} | {value} |"));
    }
    line(text, &format!("| load average after | {} |", machine::load_average()));
    let left_out: Vec<String> = summary.left_out.iter().map(u32::to_string).collect();
    let left_out = if left_out.is_empty() { "none".into() } else { left_out.join(", ") };
    let rounds = summary.all().count();
    let seconds = about.seconds;
    line(
        text,
        &format!(
            "| rounds | {rounds} of {seconds} s a load, a third of it warm-up; left out for their calibration: {left_out} |"
        ),
    );
    let verdict = if summary.is_void() { "**void**" } else { "valid" };
    let share = summary.null_to_stream().map_or_else(
        || "not measured".into(),
        |spread| format!("{}, at least {NULL_TO_STREAM_MIN} asked", figure(Some(spread))),
    );
    line(text, &format!("| null broker to the loopback stream | {share} |\n| the run is | {verdict} |\n"));
}

fn aim_table(text: &mut String, summary: &Summary) {
    line(text, "## Aims\n\n| figure | asked | seen | met |\n| --- | --- | --- | --- |");
    for aim in aims(summary) {
        let Aim { title, unit, asked, seen } = aim;
        let asked = match asked {
            Asked::AtLeast(value) => format!("at least {value} {unit}"),
            Asked::AtMost(value) => format!("at most {value} {unit}"),
        };
        let met = match aim.is_met() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "not measured",
        };
        let unit = if seen.is_some() { unit } else { "" };
        let seen = format!("{} {unit}", figure(seen));
        line(text, &format!("| {title} | {} | {} | {met} |", asked.trim_end(), seen.trim_end()));
    }
    line(text, "");
}

fn verification(text: &mut String, summary: &Summary) {
    line(text, "## Verification\n");
    line(text, VERIFICATION);
    line(
        text,
        "| side | verified | read to the end | records acknowledged | records read | clean stops | faults |",
    );
    line(text, "| --- | --- | --- | --- | --- | --- | --- |");
    let mut faults = Vec::new();
    for side in Side::ALL {
        let of_side = || {
            summary.all().flat_map(|(number, round)| {
                round
                    .measured
                    .iter()
                    .filter(|((_, of), _)| *of == side)
                    .map(move |(key, seen)| (number, key.0, seen))
            })
        };
        let trials = of_side().count();
        if trials == 0 {
            continue;
        }
        let seen = || of_side().flat_map(|(_, _, measured)| &measured.verified);
        let before = faults.len();
        for (number, case, measured) in of_side() {
            let told = |fault| format!("- **{}, {}, round {number}**: {fault}", side.title(), case.name());
            faults.extend(measured.faults().into_iter().map(told));
        }
        let clean = of_side().filter(|(_, _, measured)| measured.stopped_well).count();
        // The limits know no stop but the signal's own.
        let stops = if side.is_limit() { "–".into() } else { format!("{clean} of {trials}") };
        let cells = [
            seen().count().to_string(),
            seen().filter(|verified| verified.is_complete).count().to_string(),
            seen().filter_map(|verified| verified.acknowledged).sum::<u64>().to_string(),
            seen().map(|verified| verified.read).sum::<u64>().to_string(),
            stops,
            (faults.len() - before).to_string(),
        ];
        line(text, &format!("| {} | {} |", side.title(), cells.join(" | ")));
    }
    line(text, "");
    for fault in &faults {
        line(text, fault);
    }
    if !faults.is_empty() {
        line(text, "");
    }
}

const VERIFICATION: &str = "After each case where the log ends is compared with what was acknowledged, and a consumer reads the log from its start (from where \
retention has left it), for a limited time: no offset may be missing.\n";

fn left_out(text: &mut String, about: &About<'_>, summary: &Summary) {
    let mut rows: Vec<(String, String)> = about.left_out.to_vec();
    for (number, round) in summary.all() {
        for ((case, side), why) in &round.failed {
            let what = format!("{} on {}, round {number}", case.name(), side.title());
            rows.push((what, format!("failed: {}", why.replace('\n', " ").replace('|', "/"))));
        }
        for ((case, side), measured) in &round.measured {
            for note in &measured.notes {
                let row = (format!("{} on {}", case.name(), side.title()), note.replace('|', "/"));
                if !rows.contains(&row) {
                    rows.push(row);
                }
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    line(text, "## Left out, failed, or done otherwise\n\n| what | why |\n| --- | --- |");
    for (what, why) in rows {
        line(text, &format!("| {what} | {why} |"));
    }
    line(text, "");
}

fn settings(text: &mut String, summary: &Summary) {
    line(
        text,
        "## Settings\n\nAs the sides tell them where they answer such questions; all else is a side's default.\n",
    );
    line(text, "| side | setting | value |\n| --- | --- | --- |");
    for side in Side::ALL {
        let of_side = summary.all().flat_map(|(_, round)| &round.measured).filter(|((_, of), _)| *of == side);
        // The first case has what most of the others have.
        if let Some((_, measured)) = of_side.min_by_key(|((case, _), _)| *case) {
            for (name, value) in &measured.settings {
                line(text, &format!("| {} | {name} | `{}` |", side.title(), value.trim()));
            }
        }
    }
    let clients = "| all | librdkafka, producer | `linger.ms=5, acks=all, no compression; end to end: linger.ms=0` |\n\
        | all | Kafka's tools, producer | `linger.ms=5, acks=all, buffer.memory=67108864, max.request.size=2000000` |";
    line(text, clients);
    line(text, "");
}

/// Which client does a case, for what is left out for the lack of one.
pub(super) const fn client(case: Case) -> &'static str {
    match case.client() {
        Client::Librdkafka => "librdkafka",
        Client::Raw => "the blaster",
        Client::Java => "Kafka's tools",
    }
}

pub(crate) fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, Sample, lines};
    use super::*;

    fn report(summary: &Summary) -> String {
        let machine = Machine { rows: vec![("commit", "abc".into())] };
        let left_out = [("W7 on null".to_owned(), "it stores nothing".to_owned())];
        let about =
            About { machine: &machine, seconds: 15.0, left_out: &left_out, plot: Some("plot.svg".into()) };
        markdown(&about, summary)
    }

    /// Between two headings, or to the end.
    fn section<'t>(text: &'t str, heading: &str) -> &'t str {
        let (_, after) = text.split_once(&format!("\n## {heading}")).unwrap();
        after.split("\n## ").next().unwrap()
    }

    #[test]
    fn a_report_has_all_tables_and_their_rows_are_whole() {
        let text = report(&Summary::new(&lines(&[4.0, 4.1, 3.9])));
        assert!(text.contains("| the run is | valid |") && text.contains("](plot.svg)"));
        let mut bars = None;
        for row in text.lines() {
            let count = row.matches('|').count();
            match bars {
                Some(expected) if count > 0 => assert_eq!(count, expected, "{row}"),
                _ => bars = Some(count).filter(|count| *count > 0),
            }
        }
        assert!(section(&text, "Left out").contains("| W7 on null | it stores nothing |"));
        assert!(section(&text, "Settings").contains("| Tansu | retention.bytes | `4294967296` |"));
    }

    #[test]
    fn classes_are_separate_tables() {
        let text = report(&Summary::new(&lines(&[4.0])));
        for (heading, has, others) in [
            (
                "Durable",
                ["Kolumn sync", "Kafka, flush each message", "floor"],
                ["Kolumn os", "Tansu", "null"],
            ),
            ("Not synced", ["Kolumn os", "Kafka", "Tansu"], ["Kolumn sync", "floor", "null"]),
        ] {
            let table = section(&text, heading);
            for side in has {
                assert_eq!(table.matches(&format!("| {side} |")).count(), 3, "{heading}: {side}");
            }
            for side in others {
                assert!(!table.contains(&format!("| {side} |")), "{heading}: {side}");
            }
        }
        let sync = section(&text, "Durable").lines().find(|row| row.contains("Kolumn sync")).unwrap();
        assert!(sync.ends_with("| 1.10 | 500 | 0.500 | 1.25 |"), "{sync}");
    }

    #[test]
    fn what_failed_is_told_with_its_reason() {
        let mut lines = lines(&[4.0]);
        lines.push(samples::failed(1, Case::W4, Side::Tansu));
        let text = report(&Summary::new(&lines));
        assert!(section(&text, "Left out").contains("| W4 on Tansu, round 1 | failed: it has ended |"));
    }

    #[test]
    fn what_a_consumer_missed_is_a_fault() {
        let mut lines = lines(&[4.0]);
        let mut lost = samples::trial(2, Case::W1, Side::Kafka, Sample::default());
        if let super::super::results::Line::Tried(trial) = &mut lost
            && let super::super::results::Outcome::Measured(measured) = &mut trial.outcome
        {
            measured.verified[0].read -= 1;
        }
        lines.push(lost);
        let text = report(&Summary::new(&lines));
        assert!(
            section(&text, "Verification").contains("- **Kafka, W1, round 2**: 1999999 records were read")
        );
    }

    #[test]
    fn a_new_report_keeps_the_causes_and_the_part_about_sql() {
        let old = "# System benchmark\n\nold\n\n## Causes\n\nBecause.\n\n### A graph\n\n# SQL benchmark\n\n## Causes\n\nOther.\n";
        let expect = "# System benchmark\n\nnew\n\n## Causes\n\nBecause.\n\n### A graph\n\n# SQL benchmark\n\n## Causes\n\nOther.\n";
        assert_eq!(merged(old, "# System benchmark\n\nnew\n\n"), expect);
        assert_eq!(merged(expect, "# System benchmark\n\nnew\n\n"), expect);
        assert_eq!(merged("", "new\n"), "new\n");
        assert_eq!(merged("# SQL benchmark\n", "new\n"), "new\n\n# SQL benchmark\n");
    }
}
