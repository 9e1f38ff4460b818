//! Does one thing to the broker again and again, so that a simulated processor can count what it takes.

use std::process::ExitCode;

fn main() -> ExitCode {
    benches::main(benches::guard)
}
