//! `broker sql`: a client of the Flight SQL server that prints what it is answered.

mod cell;
mod client;
mod print;
mod probe;
mod script;

use std::io::{self, BufRead, Read, Write};
use std::net::SocketAddr;

use client::Client;

/// How rows are printed.
///
/// Values look the same in all formats: dates and times as ISO 8601 has them, lists and structs as JSON, and bytes as the text
/// that they are if they are UTF-8 without control characters, else as `\x` and hexadecimal digits. Control characters other
/// than tab and line ends never come out as they are but as `\u001b`, so that no record can command a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a program offers them as a choice")]
pub enum Format {
    /// A table for people: null is `NULL`, tabs and line ends are escaped as well, and the number of rows follows. The first
    /// thousand rows choose the widths of the columns.
    #[default]
    Table,
    /// Comma-separated values with a line of names, quoted as RFC 4180 says; lines end with a line feed. Null is nothing, and
    /// an empty text is `""`.
    Csv,
    /// A JSON object a line. Numbers are written with all their digits. Columns of the same name stay columns of the same name.
    Json,
}

/// Runs statements on the server at an address: the one given, or those that are read, until the end of the input. Either
/// text may hold several, with semicolons between them.
///
/// While it reads and writes, the thread that it runs on is blocked: start it with `block_on`, on a runtime that has worker
/// threads.
///
/// # Errors
/// The server cannot be reached, a statement fails (those after it are not run), or nothing can be written. That nobody reads
/// the output to its end is no error.
pub async fn run(
    address: SocketAddr,
    statement: Option<&str>,
    format: Format,
    input: &mut (dyn BufRead + Send),
    output: &mut (dyn Write + Send),
) -> io::Result<()> {
    let mut client = Client::connect(address).await?;
    let outcome = match statement {
        Some(text) => run_text(&mut client, text, format, output).await,
        None => run_input(&mut client, format, input, output).await,
    };
    unless_unread(outcome)
}

/// A shell for somebody at a terminal: prompts for statements, which end with a semicolon, runs them, and prints errors too.
/// `help` tells the rest. It ends with `quit`, `exit`, `\q` or the end of the input. Blocks its thread, as [`run`] does.
///
/// # Errors
/// The server cannot be reached, or nothing can be written.
pub async fn interact(
    address: SocketAddr,
    format: Format,
    input: &mut (dyn BufRead + Send),
    output: &mut (dyn Write + Send),
) -> io::Result<()> {
    let mut client = Client::connect(address).await?;
    unless_unread(converse(&mut client, format, input, output).await)
}

async fn run_text(
    client: &mut Client,
    text: &str,
    format: Format,
    output: &mut (dyn Write + Send),
) -> io::Result<()> {
    let (statements, rest) = script::split(text);
    for statement in statements.into_iter().chain([rest]) {
        if !script::is_blank(statement) {
            client.run(statement, format, output).await?;
            output.flush()?;
        }
    }
    Ok(())
}

async fn run_input(
    client: &mut Client,
    format: Format,
    input: &mut (dyn BufRead + Send),
    output: &mut (dyn Write + Send),
) -> io::Result<()> {
    let mut pending = String::new();
    while read_line(input, &mut pending)? {
        let (statements, rest) = script::split(&pending);
        for statement in statements {
            client.run(statement, format, output).await?;
            output.flush()?;
        }
        pending = rest.to_owned();
    }
    run_text(client, &pending, format, output).await
}

async fn converse(
    client: &mut Client,
    format: Format,
    input: &mut (dyn BufRead + Send),
    output: &mut (dyn Write + Send),
) -> io::Result<()> {
    writeln!(output, "Statements end with a semicolon. `help` says more, `quit` ends.")?;
    let mut pending = String::new();
    loop {
        let first = script::is_blank(&pending);
        output.write_all(if first { b"sql> " } else { b"  -> " })?;
        output.flush()?;
        let before = pending.len();
        match read_line(input, &mut pending) {
            Ok(true) => {}
            Ok(false) => return writeln!(output),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                writeln!(output, "error: {error}")?;
                pending.clear();
                continue;
            }
            Err(error) => return Err(error),
        }
        if first {
            let line = pending.get(before..).unwrap_or_default().trim().trim_end_matches(';').trim_end();
            match line.to_ascii_lowercase().as_str() {
                "quit" | "exit" | "\\q" => return Ok(()),
                "help" | "\\h" | "\\?" => {
                    output.write_all(HELP.as_bytes())?;
                    pending.clear();
                    continue;
                }
                _ => {}
            }
        }
        let (statements, rest) = script::split(&pending);
        for statement in statements {
            match client.run(statement, format, output).await {
                Err(error) if client::is_refusal(&error) => writeln!(output, "error: {error}")?,
                outcome => outcome?,
            }
        }
        pending = rest.to_owned();
    }
}

/// Appends a line, with its end, to what is pending; false at the end of the input.
fn read_line(input: &mut (dyn BufRead + Send), pending: &mut String) -> io::Result<bool> {
    let mut line = Vec::new();
    let left = SCRIPT_LEN_MAX.saturating_sub(pending.len());
    let read = input.take(u64::try_from(left).unwrap_or(u64::MAX)).read_until(b'\n', &mut line)?;
    if read == left {
        let text = format!("a statement is longer than {SCRIPT_LEN_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let line = String::from_utf8(line)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the statement is not UTF-8"))?;
    pending.push_str(&line);
    Ok(read > 0)
}

fn unless_unread(outcome: io::Result<()>) -> io::Result<()> {
    outcome.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}

/// No server takes a longer statement.
const SCRIPT_LEN_MAX: usize = 16 << 20;

const HELP: &str = "\
A statement may span lines; it ends with a semicolon.
  SHOW SCHEMAS;  SHOW TABLES;     what there is
  DESCRIBE my_topic;              the columns of a topic
  SELECT * FROM my_topic LIMIT 5; its records
  SELECT * FROM \"orders.v1\";     names with dots, dashes or capitals need double quotes
  SELECT * FROM system.groups;    consumer groups and their lag; also system.topics, system.partitions
  quit                            ends, as do exit, \\q and Ctrl-D
";
