//! Who is measured when: round after round, in each round case after case, in each case side after side.

use std::io::{self, Write};
use std::process::Command;
use std::time::Duration;

use super::case::{Case, Client};
use super::launch::Programs;
use super::report;
use super::results::{Line, Outcome, Results, Trial};
use super::side::Side;
use super::stage::{Plan, remove_dir};
use super::summary::Summary;
use super::trial;
use crate::calibrate::Calibration;
use crate::process;

/// What is to be done, and what is not.
#[derive(Debug)]
pub(super) struct Schedule {
    rounds: u32,
    /// In the order of the cases; each with the sides in their usual order.
    trials: Vec<(Case, Vec<Side>)>,
    /// With the reason.
    pub(super) left_out: Vec<(String, String)>,
}

impl Schedule {
    /// Leaves out what cannot be started and what makes no sense.
    pub(super) fn new(programs: &Programs, cases: &[Case], sides: &[Side], rounds: u32) -> Self {
        let mut left_out = Vec::new();
        let mut there = Vec::new();
        for side in sides {
            match programs.missing(*side) {
                None => there.push(*side),
                Some(why) => left_out.push((side.title().to_owned(), why)),
            }
        }
        let mut trials = Vec::new();
        for case in cases {
            if let Some(why) = no_client(programs, *case) {
                left_out.push((case.name().to_owned(), why));
                continue;
            }
            let (without, with): (Vec<_>, Vec<_>) =
                there.iter().partition(|side| case.makes_no_sense(**side).is_some());
            for side in without {
                let why = case.makes_no_sense(side).unwrap_or_default();
                left_out.push((format!("{} on {}", case.name(), side.title()), why.to_owned()));
            }
            trials.push((*case, with));
        }
        Self { rounds, trials, left_out }
    }

    /// Does what the results do not have yet.
    pub(super) fn run(&mut self, plan: &Plan, results: &mut Results) -> io::Result<()> {
        let Self { rounds, trials, left_out } = self;
        for round in 1..=*rounds {
            let mut calibrated = false;
            for (case, sides) in trials.iter() {
                for side in rotated(sides, round) {
                    if results.has(round, *case, side) {
                        continue;
                    }
                    let rate = case.rate_from().map(|from| (from, rate(results, round, from, side)));
                    if let Some((from, None)) = rate {
                        let what = format!("{} on {}, round {round}", case.name(), side.title());
                        left_out
                            .push((what, format!("its rate in {} of this round is not known", from.name())));
                        continue;
                    }
                    let rate = rate.and_then(|(_, rate)| rate);
                    if !calibrated {
                        tell(&format!("round {round} of {rounds}: the machine"));
                        results.push(Line::Calibrated { round, calibration: calibrate(plan)? })?;
                        calibrated = true;
                    }
                    tell(&format!("round {round} of {rounds}: {} on {}", case.name(), side.title()));
                    let outcome = attempt(plan, *case, side, rate)?;
                    results.push(Line::Tried(Box::new(Trial { round, case: *case, side, outcome })))?;
                }
            }
        }
        Ok(())
    }
}

/// What a side has reached in another case of the round, in records a second.
fn rate(results: &Results, round: u32, from: Case, side: Side) -> Option<f64> {
    let summary = Summary::new(&results.lines);
    summary.all().find(|(number, _)| *number == round).and_then(|(_, round)| round.rate(from, side))
}

fn attempt(plan: &Plan, case: Case, side: Side, rate: Option<f64>) -> io::Result<Outcome> {
    let outcome = match trial::run(plan, case, side, rate) {
        Ok(measured) => Outcome::Measured(measured),
        // The next case would find it no better.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => return Err(error),
        Err(error) => {
            tell(&format!("{} on {} failed: {error}", case.name(), side.title()));
            Outcome::Failed(error.to_string())
        }
    };
    remove_dir(&plan.dir.join("data"))?;
    Ok(outcome)
}

fn no_client(programs: &Programs, case: Case) -> Option<String> {
    let missing = match case.client() {
        Client::Librdkafka if programs.load.is_none() => "`--load` was not given",
        Client::Java if programs.kafka.is_none() => "`--kafka-classpath` was not given",
        _ => return None,
    };
    Some(format!("it is done by {}, and {missing}", report::client(case)))
}

/// Each round another side is the first.
fn rotated(sides: &[Side], round: u32) -> impl Iterator<Item = Side> {
    let by = usize::try_from(round - 1).unwrap_or_default() % sides.len().max(1);
    sides.iter().cycle().skip(by).take(sides.len()).copied()
}

fn calibrate(plan: &Plan) -> io::Result<Calibration> {
    let mut command = Command::new(plan.programs.dir.join("calibrate"));
    command.arg("--dir").arg(&plan.dir);
    command.args(["--seconds", &(plan.seconds / 15.0).clamp(0.05, 2.0).to_string()]);
    command.args(["--append-mib", &plan.append_mib.to_string()]);
    let line = process::run(command, CALIBRATION_MAX)?.success()?;
    Ok(serde_json::from_slice(&line)?)
}

/// Progress goes to standard error, where a closed pipe is no reason to stop measuring.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

const CALIBRATION_MAX: Duration = Duration::from_mins(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_begins_with_another_side_and_has_all() {
        let sides = [Side::Sync, Side::Os, Side::Null];
        let firsts: Vec<_> = (1..=4).filter_map(|round| rotated(&sides, round).next()).collect();
        assert_eq!(firsts, [Side::Sync, Side::Os, Side::Null, Side::Sync]);
        assert_eq!(rotated(&sides, 3).collect::<Vec<_>>(), [Side::Null, Side::Sync, Side::Os]);
        assert_eq!(rotated(&[], 2).count(), 0);
    }

    #[test]
    fn what_cannot_be_done_is_left_out_with_the_reason() {
        let this = std::env::current_exe().unwrap();
        let programs = Programs {
            dir: "nowhere".into(),
            broker: this.clone(),
            broker_args: Vec::new(),
            kafka: None,
            tansu: Some(this),
            load: None,
        };
        let sides = [Side::Sync, Side::Kafka, Side::Tansu];
        let schedule = Schedule::new(&programs, &[Case::W1, Case::W1Raw, Case::W13, Case::W9], &sides, 1);
        let done: Vec<_> = schedule.trials.iter().map(|(case, sides)| (case.name(), sides.len())).collect();
        assert_eq!(done, [("W1-raw", 2), ("W13", 2)]);
        let left_out: Vec<_> = schedule.left_out.iter().map(|(what, _)| what.as_str()).collect();
        assert_eq!(left_out, ["Kafka", "W1", "W9"]);
        assert!(schedule.left_out[1].1.contains("`--load` was not given"));
    }
}
