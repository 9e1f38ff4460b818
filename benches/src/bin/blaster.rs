//! Loads a broker with pre-encoded batches; prints what it saw as JSON.

use std::process::ExitCode;

fn main() -> ExitCode {
    benches::main(benches::blaster)
}
