//! The regression guard: does one thing so many times, for a tool that counts instructions and allocations.
//!
//! Whoever runs it compares two numbers of requests: what starting takes is in both and cancels out. Nothing here reads a
//! clock or spins, so that on a simulated processor the same program gives the same count, however busy the machine is.
//!
//! | case | is |
//! | --- | --- |
//! | `decode` | the connection engine takes the bytes of a Produce request, and the codec reads header, body and the batch's header |
//! | `append` | the store takes a batch, the journal writes it into a file of the system's cache, without a sync |
//! | `produce` | the whole broker: socket, engine, handler, store, journal, answer; and the client, which hands over ready bytes |
//! | `fetch` | the same for a fetch of 1 MiB that memory has, with a client that throws the bytes away |
//!
//! `…-record` has one record of 1 KiB in a request, `…-batch` a batch of 1 MB. One request is under way at a time.

mod append;
mod broker;
mod decode;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::{batch, client};

/// Does one thing to the broker again and again; prints nothing.
#[derive(Debug, Parser)]
#[command(name = "guard")]
struct Arguments {
    /// What to do.
    case: Case,
    /// How often.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    requests: u32,
    /// An empty directory for the log.
    #[arg(long)]
    dir: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Case {
    DecodeRecord,
    DecodeBatch,
    AppendRecord,
    AppendBatch,
    ProduceRecord,
    ProduceBatch,
    Fetch,
}

/// Runs a case of the guard.
pub fn guard(arguments: &[OsString], _out: &mut dyn Write) -> io::Result<()> {
    let Arguments { case, requests, dir } = crate::arguments(arguments)?;
    match case {
        Case::DecodeRecord => decode::run(&produce_request(RECORD), requests),
        Case::DecodeBatch => decode::run(&produce_request(BATCH_LEN), requests),
        Case::AppendRecord => append::run(&dir, one_batch(RECORD), requests),
        Case::AppendBatch => append::run(&dir, one_batch(BATCH_LEN), requests),
        Case::ProduceRecord => broker::produce(&dir, &produce_request(RECORD), requests),
        Case::ProduceBatch => broker::produce(&dir, &produce_request(BATCH_LEN), requests),
        Case::Fetch => broker::fetch(&dir, &produce_request(BATCH_LEN), requests),
    }
}

/// The batch that every request carries; the store gives each its own offset.
fn one_batch(len_max: usize) -> Vec<u8> {
    batch::build(VALUE_LEN, len_max, TIMESTAMP).bytes
}

fn produce_request(len_max: usize) -> Vec<u8> {
    client::produce_request(TOPIC, 0, -1, &one_batch(len_max))
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

const TOPIC: &str = "guard";
const VALUE_LEN: usize = 1024;
/// Too short for two records, so that the batch has one.
const RECORD: usize = VALUE_LEN;
const BATCH_LEN: usize = 1_000_000;
const TIMESTAMP: i64 = 1_700_000_000_000;
