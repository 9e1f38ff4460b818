//! `cargo xtask suites`: test suites of foreign clients, each run against a broker of its own.
//!
//! ```text
//! registry --download, build once--> target/suites/<suite> --one process a test--> outcomes
//! tests/suites/<suite>.txt ------------------------------------- compared with ------^
//! ```
//!
//! The checked-in list says of every test whether it passes, and of one that does not what is missing. A test that
//! does worse than its line says fails the run, and so does one that does better: then the list is out of date.

mod crates;
mod home;
mod kafka_python;
mod librdkafka;
mod list;
mod outcome;
mod process;

use std::{
    process::Command,
    time::{Duration, Instant},
};

use self::{
    home::Home,
    list::{List, Verdict},
    outcome::Outcome,
};
use crate::{broker::Broker, tools, workspace::Workspace};

/// Runs the suites; `options` are `--only SUITE` and `--test NAME`, which may be repeated, and `--against HOST:PORT`.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let plan = Plan::parse(options)?;
    let workspace = Workspace::load()?;
    let mut faults = Vec::new();
    for suite in SUITES.iter().filter(|suite| plan.wants_suite(suite.name())) {
        println!("\n==> {}", suite.name());
        let home = Home::new(&workspace, suite.name())?;
        suite.prepare(&home)?;
        faults.extend(judge(*suite, &home, &plan)?);
    }
    if faults.is_empty() {
        return Ok(());
    }
    println!();
    for fault in &faults {
        println!("{fault}");
    }
    Err(format!("{} differences from the lists in tests/suites", faults.len()))
}

/// A foreign test suite.
///
/// # Contract
/// `prepare` is called first and may take minutes the first time. Every test that `runs` names is in exactly one run,
/// and `outcomes` says something of each test of its run, also when the process died or was stopped.
trait Suite: Sync {
    /// The name of its list, and what `--only` takes.
    fn name(&self) -> &'static str;

    /// How many tests must pass, of how many.
    fn threshold(&self) -> (usize, usize);

    /// Downloads and builds what is not there yet.
    fn prepare(&self, home: &Home<'_>) -> Result<(), String>;

    /// What there is to run, in the order in which it runs.
    fn runs(&self, home: &Home<'_>, list: &List) -> Result<Vec<Run>, String>;

    /// The program of one run, which finds its broker at `address`.
    fn command(&self, home: &Home<'_>, run: &Run, address: &str) -> Result<Command, String>;

    /// What became of each test of a run that has ended.
    fn outcomes(&self, home: &Home<'_>, run: &Run, ended: &process::Ended) -> Vec<(String, Outcome)>;
}

/// One process, for one test or for a few that the suite cannot tell apart.
#[derive(Debug, Clone)]
struct Run {
    /// What the suite needs to find it again.
    id: String,
    /// The names of its tests, as in the list.
    tests: Vec<String>,
    /// The broker's settings; a run with other settings than the one before gets a new broker.
    settings: &'static str,
    /// The port of that broker, if it must be a certain one.
    port: Option<u16>,
    /// The process is stopped after this time.
    timeout: Duration,
}

const SUITES: &[&dyn Suite] =
    &[&crates::RSKAFKA, &kafka_python::KafkaPython, &crates::RUST_RDKAFKA, &librdkafka::Librdkafka];

/// How often a flaky test is run before it counts as failed.
const ATTEMPTS_MAX: usize = 3;

/// Runs a suite and returns what differs from its list.
fn judge(suite: &dyn Suite, home: &Home<'_>, plan: &Plan) -> Result<Vec<String>, String> {
    let list = List::load(&home.list())?;
    let program = if plan.against.is_none() { Some(tools::broker(home.workspace)?) } else { None };
    let mut verdict = Verdict::default();
    let mut broker: Option<Broker> = None;
    for run in suite.runs(home, &list)? {
        if !run.tests.iter().any(|test| plan.wants_test(test)) {
            continue;
        }
        if let Some(program) = &program
            && broker.as_ref().is_none_or(|running| running.settings() != run.settings)
        {
            if let Some(before) = broker.take() {
                before.stop()?;
            }
            broker = Some(Broker::start(program, &home.scratch()?, run.settings, run.port)?);
        }
        let address = broker.as_ref().map(Broker::address).or(plan.against.as_deref()).unwrap_or_default();
        let began = Instant::now();
        for (test, outcome) in outcomes(suite, home, &list, &run, address)? {
            println!("{:>7.1} s  {test:<60} {outcome}", began.elapsed().as_secs_f64());
            verdict.add(test, outcome);
        }
        if let Some(running) = &mut broker {
            running.still_runs()?;
        }
    }
    if let Some(running) = broker {
        running.stop()?;
    }
    home.keep("seen.txt", &verdict.as_list(&list))?;
    let (passed, known) = verdict.totals();
    let (wanted, of) = suite.threshold();
    println!("{}: {passed} of {known} passed; {wanted} of {of} must", suite.name());
    let mut faults = verdict.differences(&list, plan.tests.is_empty());
    if plan.tests.is_empty() && passed < wanted {
        faults.push(format!("{passed} passed, and {wanted} must"));
    }
    Ok(faults.into_iter().map(|fault| format!("{}: {fault}", suite.name())).collect())
}

/// Runs a process; again, a few times, while a test fails that is listed as flaky.
fn outcomes(
    suite: &dyn Suite,
    home: &Home<'_>,
    list: &List,
    run: &Run,
    address: &str,
) -> Result<Vec<(String, Outcome)>, String> {
    let mut outcomes = Vec::new();
    for _ in 0..ATTEMPTS_MAX {
        let mut command = suite.command(home, run, address)?;
        let ended = process::run(&mut command, &home.log(&run.id)?, run.timeout)?;
        outcomes = suite.outcomes(home, run, &ended);
        let again = |(test, outcome): &(String, Outcome)| *outcome != Outcome::Passed && list.is_flaky(test);
        if !outcomes.iter().any(again) {
            break;
        }
    }
    Ok(outcomes)
}

/// What the command line asks for.
#[derive(Debug, Default)]
struct Plan {
    suites: Vec<String>,
    tests: Vec<String>,
    against: Option<String>,
}

impl Plan {
    fn parse(options: &[&str]) -> Result<Self, String> {
        let mut plan = Self::default();
        let mut words = options.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("`{word}` lacks its value"))?;
            match *word {
                "--only" if SUITES.iter().any(|suite| suite.name() == *value) => {
                    plan.suites.push((*value).to_owned());
                }
                "--only" => {
                    let known: Vec<&str> = SUITES.iter().map(|suite| suite.name()).collect();
                    return Err(format!("`{value}` is not a suite; the suites are {}", known.join(", ")));
                }
                "--test" => plan.tests.push((*value).to_owned()),
                "--against" => plan.against = Some((*value).to_owned()),
                other => return Err(format!("`{other}` is not an option of `suites`")),
            }
        }
        Ok(plan)
    }

    fn wants_suite(&self, name: &str) -> bool {
        self.suites.is_empty() || self.suites.iter().any(|wanted| wanted == name)
    }

    fn wants_test(&self, name: &str) -> bool {
        self.tests.is_empty() || self.tests.iter().any(|wanted| name.contains(wanted.as_str()))
    }
}
