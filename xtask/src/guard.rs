//! The regression guard: what one request costs in instructions and allocations, compared with what was recorded.
//!
//! Valgrind runs the program `guard` of the benchmarks on a simulated processor, so neither other processes nor the
//! machine's speed have a part in the numbers. A case runs with some requests and with twice as many; the difference,
//! divided by the requests, is what one costs, without starting and stopping.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{shell, test::Tally, tools, workspace::Workspace};

/// `cargo xtask bench guard [--record]`.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let workspace = Workspace::load()?;
    match options {
        [] => check(&workspace, &mut Tally::default()),
        ["--record"] => record(&workspace),
        _ => Err("usage: cargo xtask bench guard [--record]".to_owned()),
    }
}

/// Measures every case and compares it with the recorded figures.
pub(crate) fn check(workspace: &Workspace, tally: &mut Tally) -> Result<(), String> {
    let recorded = Recorded::read(&workspace.root.join(RECORDED))?;
    let measured = measure(workspace)?;
    let mut faults = Vec::new();
    for (name, cost) in &measured.cases {
        let case = CASES.iter().find(|case| case.name == name);
        let margin = case.map_or(Margin::NONE, |case| case.margin);
        let verdict = recorded.cases.get(name).map_or(Verdict::Unknown, |known| judge(*known, *cost, margin));
        println!("{name:<15} {cost}: {verdict}");
        if verdict.is_fault() {
            tally.failed += 1;
            faults.push(format!("{name}: {cost}: {verdict}"));
        } else {
            tally.passed += 1;
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    if recorded.compiler != measured.compiler {
        faults.push(format!(
            "recorded with {}, measured with {}: if the compiler is the cause, record anew",
            recorded.compiler, measured.compiler
        ));
    }
    faults.push("what is meant to cost more is recorded with `cargo xtask bench guard --record`".to_owned());
    Err(faults.join("\n"))
}

/// Measures every case and writes the figures down.
fn record(workspace: &Workspace) -> Result<(), String> {
    let file = workspace.root.join(RECORDED);
    let measured = measure(workspace)?;
    let before = Recorded::read(&file).ok();
    for (name, cost) in &measured.cases {
        let known = before.as_ref().and_then(|before| before.cases.get(name));
        let known = known.map_or_else(|| "nothing".to_owned(), ToString::to_string);
        println!("{name:<15} {cost}; before: {known}");
    }
    std::fs::write(&file, measured.text()).map_err(|error| format!("{}: {error}", file.display()))
}

/// What one request costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cost {
    instructions: u64,
    /// Hundredths: what happens once in many requests, such as a list that grows, is a part of one.
    allocations_hundredths: u64,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.allocations_hundredths / 100, self.allocations_hundredths % 100);
        write!(f, "{} instructions and {whole}.{part:02} allocations a request", self.instructions)
    }
}

/// How a cost compares with what was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    AsRecorded,
    Less { known: Cost },
    More { known: Cost, allowed: Cost },
    Unknown,
}

impl Verdict {
    fn is_fault(self) -> bool {
        matches!(self, Verdict::More { .. } | Verdict::Unknown)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::AsRecorded => f.write_str("as recorded"),
            Verdict::Less { known } => write!(f, "less than recorded ({known}); record it"),
            Verdict::More { known, allowed } => write!(f, "recorded are {known}, allowed {allowed}"),
            Verdict::Unknown => f.write_str("nothing is recorded"),
        }
    }
}

/// More than the margin of either figure is a fault; less than it is worth recording.
fn judge(known: Cost, now: Cost, margin: Margin) -> Verdict {
    let instructions = known.instructions.saturating_mul(margin.instructions_percent) / 100;
    let allowed = Cost {
        instructions: known.instructions.saturating_add(instructions),
        allocations_hundredths: known.allocations_hundredths.saturating_add(margin.allocations_hundredths),
    };
    if now.instructions > allowed.instructions || now.allocations_hundredths > allowed.allocations_hundredths
    {
        return Verdict::More { known, allowed };
    }
    let fewer_allocations = now.allocations_hundredths.saturating_add(margin.allocations_hundredths)
        < known.allocations_hundredths;
    if now.instructions < known.instructions.saturating_sub(instructions) || fewer_allocations {
        return Verdict::Less { known };
    }
    Verdict::AsRecorded
}

/// The figures of all cases, and the compiler that they are of.
#[derive(Debug, PartialEq, Eq)]
struct Recorded {
    compiler: String,
    cases: BTreeMap<String, Cost>,
}

impl Recorded {
    fn read(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Self::parse(&text).ok_or_else(|| format!("{}: not as `--record` writes it", file.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let compiler = value.get("compiler")?.as_str()?.to_owned();
        let mut cases = BTreeMap::new();
        for (name, cost) in value.get("cases")?.as_object()? {
            let figure = |field: &str| cost.get(field)?.as_u64();
            let instructions = figure("instructions")?;
            let allocations_hundredths = figure("allocations_hundredths")?;
            cases.insert(name.clone(), Cost { instructions, allocations_hundredths });
        }
        Some(Self { compiler, cases })
    }

    fn text(&self) -> String {
        let cost = |cost: &Cost| {
            json!({
                "instructions": cost.instructions,
                "allocations_hundredths": cost.allocations_hundredths,
            })
        };
        let cases: serde_json::Map<String, Value> =
            self.cases.iter().map(|(name, figures)| (name.clone(), cost(figures))).collect();
        format!("{:#}\n", json!({ "compiler": self.compiler, "cases": cases }))
    }
}

/// Builds the program and runs every case.
fn measure(workspace: &Workspace) -> Result<Recorded, String> {
    tools::debian(&["taskset", "valgrind"])?;
    let built =
        ["build", "--release", "--package", "benches", "--no-default-features", "--features", "guard"];
    shell::run(shell::cargo(&workspace.root, &built).args(["--bin", "guard"]))?;
    let rig = Rig { program: workspace.target.join("release/guard"), folder: workspace.target.join("guard") };
    let processors = processors()?;
    let measured = std::thread::scope(|scope| {
        let start = |(worker, processor): (usize, &String)| {
            let (rig, step) = (&rig, processors.len());
            let processor = processor.clone();
            scope.spawn(move || rig.costs(&processor, CASES.iter().skip(worker).step_by(step)))
        };
        let workers: Vec<_> = processors.iter().enumerate().map(start).collect();
        let panicked = |_| Err("a thread that measures panicked".to_owned());
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(panicked))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let cases = measured.into_iter().flatten().collect();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiler = shell::collect(Command::new(rustc).arg("--version"))?.trim().to_owned();
    Ok(Recorded { compiler, cases })
}

/// Processors that this process may use, as many as there are workers at most.
fn processors() -> Result<Vec<String>, String> {
    let status = std::fs::read_to_string("/proc/self/status")
        .map_err(|error| format!("/proc/self/status: {error}"))?;
    let found = processors_in(&status);
    if found.is_empty() { Err("/proc/self/status: no list of processors".to_owned()) } else { Ok(found) }
}

/// The first numbers of a line such as `Cpus_allowed_list: 0-3,8`.
fn processors_in(status: &str) -> Vec<String> {
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let ranges = allowed.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().take(WORKERS).map(|number| number.to_string()).collect()
}

/// The program and where its runs leave what they count.
struct Rig {
    program: PathBuf,
    folder: PathBuf,
}

impl Rig {
    fn costs<'c>(
        &self,
        processor: &str,
        cases: impl Iterator<Item = &'c Case>,
    ) -> Result<Vec<(String, Cost)>, String> {
        cases.map(|case| Ok((case.name.to_owned(), self.cost(processor, case)?))).collect()
    }

    /// Of each figure the least that any repetition gave.
    fn cost(&self, processor: &str, case: &Case) -> Result<Cost, String> {
        let (name, requests) = (case.name, case.requests);
        let instructions = |requests| self.instructions(processor, name, requests);
        let allocations = |requests| self.allocations(processor, name, requests);
        let mut least = Cost { instructions: u64::MAX, allocations_hundredths: u64::MAX };
        for _ in 0..REPETITIONS {
            let (once, twice) = (instructions(requests)?, instructions(2 * requests)?);
            least.instructions = least.instructions.min(twice.saturating_sub(once) / requests);
            let (once, twice) = (allocations(requests)?, allocations(2 * requests)?);
            let hundredths = twice.saturating_sub(once).saturating_mul(100) / requests;
            least.allocations_hundredths = least.allocations_hundredths.min(hundredths);
        }
        Ok(least)
    }

    fn instructions(&self, processor: &str, case: &str, requests: u64) -> Result<u64, String> {
        let told = self.folder.join(case).join("callgrind.out");
        let flag = format!("--callgrind-out-file={}", told.display());
        self.run(case, requests, &[processor, "valgrind", "--tool=callgrind", &flag], &told, instructions_in)
    }

    fn allocations(&self, processor: &str, case: &str, requests: u64) -> Result<u64, String> {
        let told = self.folder.join(case).join("memcheck.log");
        let flag = format!("--log-file={}", told.display());
        let flags =
            [processor, "valgrind", "--tool=memcheck", "--leak-check=no", "--undef-value-errors=no", &flag];
        self.run(case, requests, &flags, &told, allocations_in)
    }

    /// Runs a case under a tool of Valgrind, on one processor, and reads what that left in a file. On several, the threads of
    /// the journal and of the broker meet in another order each time.
    fn run(
        &self,
        case: &str,
        requests: u64,
        flags: &[&str],
        told: &Path,
        figure: fn(&str) -> Option<u64>,
    ) -> Result<u64, String> {
        let folder = self.folder.join(case);
        let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
        // A log of an earlier run must not be found, nor its figures.
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(fault)?;
        }
        std::fs::create_dir_all(&folder).map_err(fault)?;
        let mut command = Command::new("taskset");
        command.env("GLIBC_TUNABLES", PLAIN_COPIES).arg("--cpu-list");
        command.args(flags).arg(&self.program).arg(case).arg(format!("--requests={requests}"));
        shell::run_quietly(command.arg("--dir").arg(folder.join("log")))?;
        let text = std::fs::read_to_string(told).map_err(fault)?;
        std::fs::remove_dir_all(&folder).map_err(fault)?;
        figure(&text).ok_or_else(|| format!("{}: without the figure that is looked for", told.display()))
    }
}

/// The line `totals: 123` of what callgrind writes.
fn instructions_in(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("totals:"))?.trim().parse().ok()
}

/// `total heap usage: 1,234 allocs, …` of what memcheck writes.
fn allocations_in(text: &str) -> Option<u64> {
    let (_, after) = text.split_once("total heap usage:")?;
    let (count, _) = after.split_once("allocs")?;
    count.trim().replace(',', "").parse().ok()
}

/// Where the figures are recorded.
const RECORDED: &str = "benches/guard.json";
/// A case of the program.
struct Case {
    name: &'static str,
    /// How many make a difference that is worth dividing.
    requests: u64,
    margin: Margin,
}

/// What may be more than recorded: some depends on which thread is first.
#[derive(Debug, Clone, Copy)]
struct Margin {
    instructions_percent: u64,
    allocations_hundredths: u64,
}

impl Margin {
    /// For what one thread does alone.
    const NONE: Self = Self { instructions_percent: 1, allocations_hundredths: 0 };
}

const fn case(
    name: &'static str,
    requests: u64,
    instructions_percent: u64,
    allocations_hundredths: u64,
) -> Case {
    Case { name, requests, margin: Margin { instructions_percent, allocations_hundredths } }
}

const CASES: &[Case] = &[
    case("decode-record", 1000, 1, 0),
    case("decode-batch", 50, 1, 0),
    case("append-record", 1000, 6, 50),
    case("append-batch", 50, 3, 80),
    case("produce-record", 1000, 10, 200),
    case("produce-batch", 50, 3, 200),
    case("fetch", 200, 5, 50),
];
/// Cases that are measured at a time, at most.
const WORKERS: usize = 2;
/// Of each case the lowest figures count.
const REPETITIONS: u32 = 2;
/// Long copies as loops: the instruction that copies a string of bytes counts once for each byte and would hide the rest.
const PLAIN_COPIES: &str =
    "glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000";

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Cost = Cost { instructions: 10_000, allocations_hundredths: 300 };

    #[track_caller]
    fn check(instructions: u64, allocations_hundredths: u64, is_fault: bool, told: &str) {
        let margin = Margin { instructions_percent: 3, allocations_hundredths: 50 };
        let verdict = judge(KNOWN, Cost { instructions, allocations_hundredths }, margin);
        assert_eq!(verdict.is_fault(), is_fault, "{verdict}");
        assert!(verdict.to_string().contains(told), "{verdict}");
    }

    #[test]
    fn more_than_the_margin_is_a_fault_that_names_what_is_recorded_and_allowed() {
        check(10_000, 300, false, "as recorded");
        check(10_300, 350, false, "as recorded");
        check(10_301, 300, true, "recorded are 10000 instructions and 3.00 allocations a request");
        check(10_301, 300, true, "allowed 10300 instructions and 3.50 allocations a request");
        check(10_000, 400, true, "allowed 10300");
        check(9_000, 400, true, "allowed 10300");
        assert!(Verdict::Unknown.is_fault());
    }

    #[test]
    fn what_has_become_cheaper_is_to_be_recorded() {
        check(9_699, 300, false, "record it");
        check(10_000, 200, false, "record it");
        check(9_701, 290, false, "as recorded");
    }

    #[test]
    fn figures_are_read_as_they_are_written() {
        let cases = BTreeMap::from([("fetch".to_owned(), KNOWN)]);
        let recorded = Recorded { compiler: "rustc 1.95.0".to_owned(), cases };
        assert_eq!(Recorded::parse(&recorded.text()), Some(recorded));
        assert_eq!(Recorded::parse("{}"), None);
    }

    #[test]
    fn the_first_processors_that_may_be_used_are_found() {
        assert_eq!(processors_in("Cpus_allowed:\tf\nCpus_allowed_list:\t0-3\n"), ["0", "1"]);
        assert_eq!(processors_in("Cpus_allowed_list:\t5,7-8\n"), ["5", "7"]);
        assert_eq!(processors_in("Cpus_allowed_list:\t2\n"), ["2"]);
        assert!(processors_in("Name: x\n").is_empty());
    }

    #[test]
    fn the_figures_of_the_tools_are_found() {
        assert_eq!(instructions_in("events: Ir\nfn=(1) main\n5 77\ntotals: 123456\n"), Some(123_456));
        assert_eq!(instructions_in("events: Ir\n"), None);
        let log =
            "==7== HEAP SUMMARY:\n==7==   total heap usage: 12,345 allocs, 12,000 frees, 9 bytes allocated\n";
        assert_eq!(allocations_in(log), Some(12_345));
        assert_eq!(allocations_in("==7== killed"), None);
    }
}
