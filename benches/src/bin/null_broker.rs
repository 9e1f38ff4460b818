//! A broker that parses headers, stores nothing and answers everything.

use std::process::ExitCode;

fn main() -> ExitCode {
    benches::main(benches::null_broker)
}
