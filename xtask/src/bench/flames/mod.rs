//! `cargo xtask bench flames`: where the broker's CPU time goes, and what it asks of the kernel, under the benchmark's loads.
//!
//! `perf` samples the broker's stacks by the processor's clock (virtual machines have no hardware counters) and follows frame
//! pointers; another run counts system calls and context switches by the kernel's trace points. Pictures go to
//! `benches/flames`, tables to standard output.

mod calls;
mod picture;
mod rig;
mod stacks;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use calls::Counted;
use rig::{Client, Load, Programs, Rig};
use stacks::{Frame, Stacks};

use crate::workspace::Workspace;

/// Builds the programs, records all cases or those of `--only`, and prints their tables.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let asked = Asked::parse(options)?;
    let workspace = Workspace::load()?;
    let programs = Programs::build(&workspace)?;
    let into = asked.into.unwrap_or_else(|| workspace.root.join("benches/flames"));
    std::fs::create_dir_all(&into).map_err(|error| format!("{}: {error}", into.display()))?;
    let folder = workspace.target.join("bench/flames-run");
    let (mut report, mut loads) = (String::new(), Vec::new());
    for case in asked.cases {
        println!("==> {}: {}", case.name, case.title);
        let (stacks, counted) = measure(case, &programs, &folder, asked.seconds)?;
        let file = into.join(format!("{}.svg", case.name));
        let title = format!("{}: the broker's CPU time", case.title);
        std::fs::write(&file, picture::svg(&title, &stacks))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        describe(&mut report, case, &stacks);
        loads.push(counted);
    }
    println!("\n{report}### Calls a request\n\n{}", calls::table(&loads));
    Ok(())
}

/// One broker under the load that is pictured, and then under the one whose requests are known.
fn measure(
    case: &Case,
    programs: &Programs,
    folder: &Path,
    seconds: f64,
) -> Result<(Stacks, Counted), String> {
    let rig = Rig::start(programs, folder, case.settings)?;
    if let Some(batches) = case.fill {
        rig.fill(batches)?;
    }
    let stacks = Stacks::parse(&rig.record(case.pictured, seconds)?);
    if stacks.total() == 0 {
        return Err(format!("{}: `perf` has seen nothing", case.name));
    }
    let (counts, outcome) = rig.count(case.counted, seconds)?;
    let units_per_s = match case.unit {
        Unit::Request => outcome.requests_per_s,
        Unit::Record => outcome.records_per_s,
    };
    Ok((stacks, Counted { title: case.counted_title, seconds, units_per_s, counts }))
}

/// The heaviest functions by their own time.
fn describe(text: &mut String, case: &Case, stacks: &Stacks) {
    let total = stacks.total();
    let threads: Vec<String> = stacks
        .threads()
        .iter()
        .map(|(frame, count)| format!("`{}` {}", frame.name, percent(*count, total)))
        .collect();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "### {}\n\n{total} samples, {} of them in the kernel; by thread: {}. Own time:\n",
        case.title,
        percent(stacks.in_kernel(), total),
        threads.join(", ")
    );
    text.push_str("| share | function | in |\n| --- | --- | --- |\n");
    for (Frame { name, place }, count) in stacks.own().into_iter().take(HEAVIEST) {
        let _ = writeln!(
            text,
            "| {} | `{}` | {} |",
            percent(count, total),
            name.replace('|', "\\|"),
            place.name()
        );
    }
    text.push('\n');
}

/// A share with one decimal.
fn percent(part: u64, total: u64) -> String {
    let thousandths = (part.saturating_mul(2000) / total.max(1)).div_ceil(2);
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

/// What the command line asks for.
#[derive(Debug)]
struct Asked {
    cases: Vec<&'static Case>,
    /// Of each of the two measurements of a case.
    seconds: f64,
    /// Where the pictures go, if not among the benchmark's files.
    into: Option<PathBuf>,
}

impl Asked {
    fn parse(options: &[&str]) -> Result<Self, String> {
        let mut asked = Self { cases: CASES.iter().collect(), seconds: 10.0, into: None };
        let mut words = options.iter();
        while let Some(word) = words.next() {
            let value = words.next().copied().ok_or_else(|| USAGE.to_owned())?;
            match *word {
                "--seconds" => {
                    let seconds = value.parse().ok().filter(|seconds| (1.0..=600.0).contains(seconds));
                    asked.seconds =
                        seconds.ok_or_else(|| format!("`--seconds {value}`: not from 1 to 600"))?;
                }
                "--only" => asked.cases = value.split(',').map(Case::named).collect::<Result<_, _>>()?,
                "--into" => asked.into = Some(PathBuf::from(value)),
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(asked)
    }
}

/// A picture.
#[derive(Debug)]
struct Case {
    name: &'static str,
    title: &'static str,
    /// Of the broker.
    settings: &'static str,
    /// Batches of 1 MB that are there before.
    fill: Option<&'static str>,
    pictured: Load,
    counted: Load,
    counted_title: &'static str,
    unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Request,
    Record,
}

impl Case {
    fn named(name: &str) -> Result<&'static Self, String> {
        CASES.iter().find(|case| case.name == name).ok_or_else(|| {
            let all: Vec<&str> = CASES.iter().map(|case| case.name).collect();
            format!("`{name}` is none of the pictures: {}", all.join(", "))
        })
    }
}

const fn librdkafka(arguments: &'static [&'static str]) -> Load {
    Load { client: Client::Librdkafka, arguments }
}

const fn blaster(arguments: &'static [&'static str]) -> Load {
    Load { client: Client::Blaster, arguments }
}

/// As the system benchmark has them. librdkafka does not tell how many requests it sends, so where they matter the blaster's
/// are counted.
const CASES: &[Case] = &[
    Case {
        name: "w1",
        title: "W1, synced: 1 KiB, batches of 1 MB",
        settings: SYNCED,
        fill: None,
        pictured: librdkafka(&["produce", "--batch-bytes", "1000000"]),
        counted: blaster(&["produce", "--in-flight", "5"]),
        counted_title: "W1 raw, a request",
        unit: Unit::Request,
    },
    Case {
        name: "w2",
        title: "W2, synced: 1 KiB, batches of 16 KiB",
        settings: SYNCED,
        fill: None,
        pictured: librdkafka(&["produce", "--batch-bytes", "16384"]),
        counted: blaster(&["produce", "--batch-bytes", "16384", "--in-flight", "64"]),
        counted_title: "W2 raw, a request",
        unit: Unit::Request,
    },
    Case {
        name: "w7-os",
        title: "W7, not synced: end to end at 1,000/s",
        settings: NOT_SYNCED,
        fill: None,
        pictured: librdkafka(&["end-to-end", "--rate", "1000", "--consumers", "1"]),
        counted: librdkafka(&["end-to-end", "--rate", "1000", "--consumers", "1"]),
        counted_title: "W7 os, a record",
        unit: Unit::Record,
    },
    Case {
        name: "fetch-memory",
        title: "fetch raw, 24 MB in memory",
        settings: SYNCED,
        fill: Some("24"),
        pictured: blaster(&["drain"]),
        counted: blaster(&["drain"]),
        counted_title: "fetch from memory, a request",
        unit: Unit::Request,
    },
    Case {
        name: "fetch-disk",
        title: "fetch raw, 2 GB on the disk",
        settings: SYNCED,
        fill: Some("2000"),
        pictured: blaster(&["drain"]),
        counted: blaster(&["drain"]),
        counted_title: "fetch from the disk, a request",
        unit: Unit::Request,
    },
];

const SYNCED: &str = "[storage]\ndurability = \"sync\"\n";
const NOT_SYNCED: &str = "[storage]\ndurability = \"os\"\n";
/// Rows of a table of functions.
const HEAVIEST: usize = 15;

const USAGE: &str = "usage: cargo xtask bench flames [--only NAME,...] [--seconds SECONDS] [--into FOLDER]";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_names_pictures_and_their_length() {
        let asked = Asked::parse(&[]).unwrap();
        assert_eq!((asked.cases.len(), asked.into), (CASES.len(), None));
        let asked = Asked::parse(&["--seconds", "2.5", "--only", "w7-os,w1", "--into", "f"]).unwrap();
        let names: Vec<_> = asked.cases.iter().map(|case| case.name).collect();
        assert_eq!((names, asked.into), (vec!["w7-os", "w1"], Some("f".into())));
        assert!((asked.seconds - 2.5).abs() < 1e-9);
        for (wrong, expect) in [
            (&["--only", "w99"][..], "fetch-memory"),
            (&["--seconds", "NaN"], "--seconds"),
            (&["--seconds", "0"], "--seconds"),
            (&["--seconds"], "usage"),
            (&["--other", "1"], "usage"),
        ] {
            assert!(Asked::parse(wrong).unwrap_err().contains(expect), "{wrong:?}");
        }
    }

    #[test]
    fn requests_are_counted_where_the_client_knows_them() {
        for case in CASES {
            let knows = case.counted.client == Client::Blaster;
            assert!(knows || case.unit == Unit::Record, "{}", case.name);
        }
    }

    #[test]
    fn a_table_has_the_heaviest_functions_with_their_share() {
        let stacks = Stacks::parse("t\n\tffffffff81000000 copy\n\t 10 a\n\nt\n\t 10 a\n\nt\n\t 10 a\n\n");
        let mut text = String::new();
        describe(&mut text, &CASES[0], &stacks);
        assert!(text.contains("3 samples, 33.3 % of them in the kernel; by thread: `t` 100.0 %."), "{text}");
        assert!(text.contains("| 66.7 % | `a` | user |\n| 33.3 % | `copy` | kernel |\n"), "{text}");
    }

    #[test]
    fn shares_are_rounded_to_the_nearest() {
        for (part, total, expect) in
            [(1, 3, "33.3 %"), (2, 3, "66.7 %"), (5, 5, "100.0 %"), (0, 0, "0.0 %"), (1, 10_000, "0.0 %")]
        {
            assert_eq!(percent(part, total), expect);
        }
    }
}
