//! Compares a broker with the null broker and the machine; prints Markdown.

use std::process::ExitCode;

fn main() -> ExitCode {
    benches::main(benches::system)
}
