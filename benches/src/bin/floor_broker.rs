//! The smallest broker that writes past the page cache and syncs before it acknowledges.

use std::process::ExitCode;

fn main() -> ExitCode {
    benches::main(benches::floor_broker)
}
