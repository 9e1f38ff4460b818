//! Compares SQL over topics with its rivals on Parquet files; prints Markdown.

use std::process::ExitCode;

fn main() -> ExitCode {
    benches::main(benches::sql)
}
