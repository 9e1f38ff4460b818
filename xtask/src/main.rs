//! `cargo xtask`: the commands that developers and CI run in this workspace.
//!
//! | command | does |
//! | --- | --- |
//! | `codegen [--check]` | writes the generated messages from the schemas, or checks that they are fresh |
//! | `tidy` | checks what no compiler checks: arrows between crates, file headers, licences, documents |
//! | `test [--long] [--only STEP]…` | everything: format, lints, tests, docs, features, fuzz targets, foreign clients |
//! | `suites [--only SUITE]… [--test NAME]…` | test suites of foreign clients, each test compared with its line in `tests/suites` |
//! | `bench guard [--record]` | compares instructions and allocations a request with the recorded ones, or records them |
//! | `bench <system \| sql> […]` | builds the benchmarks in the release profile and runs one of them |
//! | `bench flames […]` | pictures where the broker's CPU time goes under the benchmark's loads, and counts its system calls |
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a command line tool prints, and measures its own steps"
)]

mod bench;
mod broker;
mod clients;
mod codegen;
mod fuzz;
mod guard;
mod shell;
mod suites;
mod test;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["codegen"] => codegen::run(false),
        ["codegen", "--check"] => codegen::run(true),
        ["tidy"] => tidy::run(),
        ["test", options @ ..] => test::run(options),
        ["suites", options @ ..] => suites::run(options),
        ["bench", "system", options @ ..] => bench::system(options),
        ["bench", "guard", options @ ..] => guard::run(options),
        ["bench", "sql", options @ ..] => bench::sql(options),
        ["bench", "flames", options @ ..] => bench::flames::run(options),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

const USAGE: &str = "usage: cargo xtask <codegen [--check] | tidy | test [--long] [--only STEP]... | suites [--only SUITE]... [--test NAME]... | bench <guard [--record] | system | sql | flames> [OPTION]...>";
