//! SQL in this process, without a network: a store with the benchmark's rows, and an engine over it.

mod answer;
mod load;

use std::ffi::OsString;
use std::fmt::Display;
use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Parser;
use futures::TryStreamExt as _;
use kolumn_sql::{Engine, Principal, Session};
use kolumn_topic_store::{Column, PartitionIndex, RowFilter, ScanRequest};
use tokio::runtime::{Builder, Runtime};

use crate::ask::{Answer, Ready, Request, Response, RowCounts, What};
use crate::clock;
use load::Loaded;

/// Appends the rows of the SQL benchmark to a store, then answers a line of JSON for each one that it is given.
#[derive(Debug, Parser)]
#[command(name = "sql_engine")]
struct Arguments {
    /// An empty directory for the log.
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    rows: u64,
    /// Memory for the newest blocks.
    #[arg(long)]
    tail_len_max: usize,
    /// Memory for decoded rows.
    #[arg(long)]
    decoded_len_max: usize,
    #[arg(long, default_value = "2")]
    threads: NonZeroUsize,
}

/// Answers what comes on standard input.
pub fn sql_engine(arguments: &[OsString], out: &mut dyn Write) -> io::Result<()> {
    serve(arguments, &mut io::stdin().lock(), out)
}

fn serve(arguments: &[OsString], input: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<()> {
    let arguments: Arguments = crate::arguments(arguments)?;
    let side = Side::start(&arguments)?;
    let ready = Ready {
        version: format!("kolumn-sql in this process, {} disk", side.loaded.disk),
        journal_len: side.loaded.journal_len()?,
        loaded_s: side.loaded.time.as_secs_f64(),
    };
    say(out, &ready)?;
    for line in input.lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let response = match side.answer(&request) {
            Ok(answer) => Response::Answered(answer),
            Err(error) => Response::Failed { error },
        };
        say(out, &response)?;
    }
    side.loaded.store.close().map_err(failed)
}

struct Side {
    loaded: Loaded,
    session: Session,
    runtime: Runtime,
}

impl Side {
    fn start(arguments: &Arguments) -> io::Result<Self> {
        let loaded = Loaded::new(arguments)?;
        let threads = arguments.threads.get();
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        let settings = kolumn_sql::Settings { parallelism: threads, ..kolumn_sql::Settings::default() };
        let engine = Engine::builder(loaded.store.clone()).settings(settings).build().map_err(failed)?;
        Ok(Self { session: engine.session(Principal::anonymous()), loaded, runtime })
    }

    fn answer(&self, request: &Request) -> Result<Answer, String> {
        let mut ms = Vec::new();
        loop {
            let mut answer = match &request.what {
                What::Sql(statement) => self.statement(statement)?,
                What::Scan(columns) => self.scan(columns)?,
            };
            ms.append(&mut answer.ms);
            if ms.len() >= usize::try_from(request.times).unwrap_or(usize::MAX) {
                return Ok(Answer { ms, ..answer });
            }
        }
    }

    /// Runs a statement once, up to its last batch.
    fn statement(&self, statement: &str) -> Result<Answer, String> {
        let start = clock::now();
        let (batches, scans) = self.runtime.block_on(async {
            let answer = self.session.execute(statement).await.map_err(|error| error.to_string())?;
            let batches = answer.rows.try_collect::<Vec<_>>().await.map_err(|error| error.to_string())?;
            Ok::<_, String>((batches, answer.scans.totals()))
        })?;
        let ms = vec![start.elapsed().as_secs_f64() * 1e3];
        let work =
            RowCounts { walked: scans.rows_walked, decoded: scans.rows_decoded, cached: scans.rows_cached };
        Ok(Answer { ms, rows: answer::plain(&batches)?, work: Some(work) })
    }

    /// Decodes these columns of all rows once, on this thread. Answers with how many rows there were.
    fn scan(&self, columns: &[String]) -> Result<Answer, String> {
        let start = clock::now();
        let found = |name: &String| {
            let column = Column::ALL.into_iter().find(|column| column.name() == name);
            column.ok_or_else(|| format!("there is no column `{name}`"))
        };
        let columns = columns.iter().map(found).collect::<Result<Vec<_>, _>>()?;
        let topic = self.loaded.topic.id;
        let snapshot = self.loaded.store.snapshot(&[topic]).map_err(|error| error.to_string())?;
        let table = snapshot.table(topic).ok_or("the topic is not in its snapshot")?;
        let mut scan = table.scan(ScanRequest {
            partition: PartitionIndex::new(0),
            offsets: 0..i64::MAX,
            columns,
            filter: RowFilter::default(),
            descending: false,
            limit: None,
            rows_max: self.session.engine().settings().rows_max,
        });
        let mut rows = 0;
        while let Some(batch) = scan.next_blocking().map_err(|error| error.to_string())? {
            rows += black_box(batch).num_rows();
        }
        let ms = vec![start.elapsed().as_secs_f64() * 1e3];
        Ok(Answer { ms, rows: vec![vec![rows.into()]], work: None })
    }
}

fn say(out: &mut dyn Write, message: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, message)?;
    writeln!(out)?;
    out.flush()
}

fn failed(error: impl Display) -> io::Error {
    io::Error::other(error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sql::{BATCH_ROWS, Row};

    /// What the program answers to these lines over so many rows.
    fn answers(rows: u64, tail_len_max: u64, lines: &[Value]) -> Vec<Value> {
        let dir = tempfile::tempdir().unwrap();
        let arguments = [
            "sql_engine".to_owned(),
            format!("--dir={}", dir.path().display()),
            format!("--rows={rows}"),
            format!("--tail-len-max={tail_len_max}"),
            "--decoded-len-max=0".to_owned(),
        ];
        let mut input = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        input.push('\n');
        let mut out = Vec::new();
        serve(&arguments.map(Into::into), &mut input.as_bytes(), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let mut said: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ready = said.remove(0);
        assert!(ready["journal_len"].as_u64().unwrap() > rows * 80, "{ready}");
        said.into_iter().map(|answer| answer.get("rows").unwrap_or(&answer).clone()).collect()
    }

    #[test]
    fn statements_and_scans_see_the_rows_in_memory_and_in_files() {
        let rows = 3 * BATCH_ROWS - 1;
        let mut last = Row::default();
        last.set(rows - 1);
        let lines = [
            json!({"sql": "SELECT count(*) FROM events", "times": 2}),
            json!({"sql": r#"SELECT "offset", key, value FROM events ORDER BY "offset" DESC LIMIT 1"#, "times": 1}),
            json!({"scan": ["key", "value"], "times": 1}),
            json!({"scan": ["colour"], "times": 1}),
        ];
        for tail_len_max in [1 << 30, 0] {
            let seen = answers(rows, tail_len_max, &lines);
            assert_eq!(seen[0], json!([[rows]]));
            assert_eq!(seen[1], json!([[rows - 1, last.key, last.value]]));
            assert_eq!(seen[2], json!([[rows]]));
            assert_eq!(seen[3], json!({"error": "there is no column `colour`"}));
        }
    }
}
