//! Answers statements over the rows of the SQL benchmark in this process, by lines of JSON.

use std::process::ExitCode;

fn main() -> ExitCode {
    benches::main(benches::sql_engine)
}
