//! Measures what this machine can do without a broker; prints it as JSON.

use std::process::ExitCode;

fn main() -> ExitCode {
    benches::main(benches::calibrate)
}
