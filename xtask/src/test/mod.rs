//! `cargo xtask test`: every check of the project, one step after the other, with the seconds that each took.
//!
//! A step that fails does not stop the later ones; the closing table and the exit code say what failed.

mod report;

use std::time::Instant;

pub(crate) use report::Tally;
use report::{Outcome, Report};

use crate::{bench::rivals, clients, codegen, fuzz, guard, shell, tidy, workspace::Workspace};

/// Runs the steps; `options` are `--long` and `--only STEP`, which may be repeated.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let plan = Plan::parse(options)?;
    let workspace = Workspace::load()?;
    let mut report = Report::default();
    for (name, step) in STEPS {
        if !plan.wants(name) {
            continue;
        }
        println!("\n==> {name}");
        let started = Instant::now();
        let mut tally = Tally::default();
        let outcome = step(&Context { workspace: &workspace, long: plan.long }, &mut tally);
        report.add(Outcome::new(name, started.elapsed(), tally, outcome.err()));
    }
    report.print();
    report.keep(&workspace.target)?;
    if report.passed() { Ok(()) } else { Err("some steps failed".to_owned()) }
}

/// What the command line asks for.
struct Plan {
    long: bool,
    only: Vec<String>,
}

impl Plan {
    fn parse(options: &[&str]) -> Result<Self, String> {
        let mut plan = Self { long: false, only: Vec::new() };
        let mut words = options.iter();
        while let Some(word) = words.next() {
            match *word {
                "--long" => plan.long = true,
                "--only" => plan.only.push(words.next().map(ToString::to_string).unwrap_or_default()),
                other => return Err(format!("`{other}` is not an option of `test`")),
            }
        }
        match plan.only.iter().find(|name| !STEPS.iter().any(|(step, _)| step == name)) {
            None => Ok(plan),
            Some(name) => {
                let known: Vec<&str> = STEPS.iter().map(|(step, _)| *step).collect();
                Err(format!("`{name}` is not a step; the steps are {}", known.join(", ")))
            }
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == name)
    }
}

/// What every step is given.
struct Context<'w> {
    workspace: &'w Workspace,
    long: bool,
}

impl Context<'_> {
    fn cargo(&self, arguments: &[&str]) -> std::process::Command {
        shell::cargo(&self.workspace.root, arguments)
    }
}

type Step = fn(&Context<'_>, &mut Tally) -> Result<(), String>;

/// The steps, in the order in which they run: the quick ones that fail often come first.
const STEPS: &[(&str, Step)] = &[
    ("format", format),
    ("codegen", |_, _| codegen::run(true)),
    ("tidy", |_, _| tidy::run()),
    ("clippy", clippy),
    ("test", test),
    ("doc", doc),
    ("features", features),
    ("round-trip", |context, tally| clients::ROUND_TRIP.run(context.workspace, context.long, tally)),
    ("clients", |context, tally| {
        tally.passed = clients::install::all(context.workspace)?;
        Ok(())
    }),
    ("seed", |context, tally| clients::SEED.run(context.workspace, context.long, tally)),
    ("matrix", |context, tally| clients::MATRIX.run(context.workspace, context.long, tally)),
    ("rebalance", |context, tally| clients::REBALANCE.run(context.workspace, context.long, tally)),
    ("restart", |context, tally| clients::RESTART.run(context.workspace, context.long, tally)),
    ("kill", |context, tally| clients::KILL.run(context.workspace, context.long, tally)),
    ("sync-order", |context, tally| clients::SYNC_ORDER.run(context.workspace, context.long, tally)),
    ("hostile", |context, tally| clients::HOSTILE.run(context.workspace, context.long, tally)),
    ("great-log", |context, tally| clients::GREAT_LOG.run(context.workspace, context.long, tally)),
    ("sql", |context, tally| clients::SQL.run(context.workspace, context.long, tally)),
    ("fresh", |context, tally| clients::FRESH.run(context.workspace, context.long, tally)),
    ("lean", |context, tally| clients::lean::run(context.workspace, tally)),
    ("notifier", |context, tally| clients::notifier::run(context.workspace, tally)),
    ("kafka", kafka),
    ("instructions", |context, tally| guard::check(context.workspace, tally)),
    ("fuzz", |context, tally| fuzz::smoke(context.workspace, if context.long { 60 } else { 5 }, tally)),
];

fn format(context: &Context<'_>, _: &mut Tally) -> Result<(), String> {
    shell::run(&mut context.cargo(&["fmt", "--all", "--check"]))
}

/// What is built together, and what apart: the clients of notify's targets and what the notifier is made of ask for features
/// that would have the query engine built once more.
const BUILDS: [&[&str]; 2] = [
    &["--workspace", "--exclude", "kolumn-notify", "--exclude", "notifier"],
    &["--package", "kolumn-notify", "--package", "notifier", "--all-features"],
];

fn clippy(context: &Context<'_>, _: &mut Tally) -> Result<(), String> {
    for build in BUILDS {
        let mut command = context.cargo(&["clippy", "--all-targets"]);
        shell::run(command.args(build).args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}

/// `cargo test` over the workspace; the long run folds 10,000 seeds of simulated power loss, asks ten million rows, and holds
/// a snapshot for a minute.
fn test(context: &Context<'_>, tally: &mut Tally) -> Result<(), String> {
    let mut outcomes = Vec::new();
    for build in BUILDS {
        let mut command = context.cargo(&["test", "--no-fail-fast"]);
        command.args(build);
        if context.long {
            command.env("KOLUMN_SEEDS", "10000").env("KOLUMN_ROWS", "10000000").env("KOLUMN_HOLD_S", "60");
        }
        outcomes.push(shell::run_scanned(&mut command, |line| tally.count(line)));
    }
    outcomes.into_iter().collect()
}

/// Notify's Kafka target against Apache Kafka; the long run kills it thirty times.
fn kafka(context: &Context<'_>, tally: &mut Tally) -> Result<(), String> {
    let jars = rivals::kafka(context.workspace)?;
    let mut command =
        context.cargo(&["test", "--package", "kolumn-notify", "--all-features", "--test", "kafka"]);
    // Each test has a node of its own, and two processors are enough for one.
    command.args(["--", "--nocapture", "--test-threads=1"]).env("KOLUMN_KAFKA_CLASSPATH", jars);
    if context.long {
        command.env("KOLUMN_KILLS", "30");
    }
    shell::run_scanned(&mut command, |line| tally.count(line))
}

fn doc(context: &Context<'_>, _: &mut Tally) -> Result<(), String> {
    for build in BUILDS {
        let mut command = context.cargo(&["doc", "--no-deps"]);
        shell::run(command.args(build).env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(())
}

/// Each library with each of its features alone, and with none.
fn features(context: &Context<'_>, tally: &mut Tally) -> Result<(), String> {
    for package in context.workspace.members() {
        if !package.manifest.starts_with(context.workspace.root.join("crates")) {
            continue;
        }
        let alone = package.features.iter().filter(|feature| *feature != "default");
        for feature in std::iter::once("").chain(alone.map(String::as_str)) {
            let mut command = context.cargo(&["check", "--quiet", "--package", &package.name]);
            command.args(["--no-default-features", "--features", feature]);
            if package.dependencies.iter().any(|(to, _)| to == "datafusion") {
                // Its tests bring the features that all builds have, so that the engine is not checked for each feature.
                command.args(["--lib", "--test", "it"]);
            }
            shell::run(&mut command)?;
            tally.passed += 1;
        }
    }
    Ok(())
}
