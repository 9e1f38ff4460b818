//! The command line.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Loads a broker with librdkafka and prints what it saw as JSON.
#[derive(Debug, Parser)]
#[command(name = "librdkafka_load", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) mode: Mode,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// Sends records, as fast as they are acknowledged or at a fixed rate.
    Produce(Produce),
    /// Reads partitions from their beginning and checks that their offsets follow each other.
    Consume(Consume),
    /// Sends records at a fixed rate and measures from the intended time of sending to their receipt by consumers.
    EndToEnd(EndToEnd),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Target {
    /// The broker's address.
    #[arg(long)]
    pub(crate) broker: String,
    /// The topic, which exists.
    #[arg(long)]
    pub(crate) topic: String,
    /// The topic's partitions that take part, from 0.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) partitions: u16,
}

#[derive(Debug, Args)]
pub(crate) struct Produce {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) span: Span,
    #[command(flatten)]
    pub(crate) sending: Sending,
    /// Clients, each with a thread and connections of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) producers: u16,
    /// How long a client waits for a batch to fill, in milliseconds.
    #[arg(long, default_value_t = 5.0)]
    pub(crate) linger_ms: f64,
    /// Records a second of all clients together; 0: as fast as they are acknowledged.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub(crate) rate: u32,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("end").required(true).multiple(true).args(["until", "seconds"]))]
pub(crate) struct Consume {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Where to start.
    #[arg(long, value_enum, default_value_t = Start::Beginning)]
    pub(crate) from_offsets: Start,
    /// Stop at these next offsets, as `{"0":100}` or in a file as `@FILE`, or after so many records.
    #[arg(long, value_parser = until)]
    pub(crate) until: Option<Until>,
    /// Stop after so long; what `--until` names must have been read by then.
    #[arg(long, value_parser = seconds)]
    pub(crate) seconds: Option<Duration>,
    /// Bytes asked for by each fetch.
    #[arg(long, default_value_t = 1_048_576, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    pub(crate) fetch_bytes: u32,
}

#[derive(Debug, Args)]
pub(crate) struct EndToEnd {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) span: Span,
    #[command(flatten)]
    pub(crate) sending: Sending,
    /// Consumers, each of which reads all records.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) consumers: u16,
    /// How long the producer waits for a batch to fill, in milliseconds.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) linger_ms: f64,
    /// Records a second.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) rate: u32,
}

/// How long a load sends.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Span {
    /// How long to send, the warm-up included.
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// What arrives before this is not measured.
    #[arg(long, default_value = "0", value_parser = seconds)]
    pub(crate) warm_up: Duration,
}

/// What a producer is told.
#[derive(Debug, Clone, Args)]
pub(crate) struct Sending {
    /// Bytes of value in a record.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=32_000_000))]
    pub(crate) record_bytes: u32,
    /// Bytes that a batch has at most.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(crate) batch_bytes: u32,
    /// Whose acknowledgement counts.
    #[arg(long, default_value = "all", value_parser = ["all", "-1", "1", "0"], allow_hyphen_values = true)]
    pub(crate) acks: String,
    /// How batches are compressed.
    #[arg(long, default_value = "none", value_parser = ["none", "lz4", "zstd"])]
    pub(crate) codec: String,
    /// Whether batches are numbered, so that none is stored twice.
    #[arg(long)]
    pub(crate) idempotent: bool,
}

/// Where a consumer starts.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Start {
    /// At the first record that a partition still has.
    Beginning,
}

/// What a consumer has to read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Until {
    /// So many records.
    Count(u64),
    /// Everything below these offsets.
    Offsets(BTreeMap<i32, i64>),
}

fn until(text: &str) -> Result<Until, String> {
    if let Ok(count) = text.parse() {
        return Ok(Until::Count(count));
    }
    let offsets = match text.strip_prefix('@') {
        None => serde_json::from_str(text),
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
            serde_json::from_str(&text)
        }
    };
    offsets.map(Until::Offsets).map_err(|error| format!("neither a number nor offsets: {error}"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let value: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<&Until>) {
        assert_eq!(until(text).ok().as_ref(), expect, "{text}");
    }

    #[test]
    fn the_end_of_a_consumer_is_a_count_or_offsets() {
        check("100", Some(&Until::Count(100)));
        check(r#"{"0":5,"17":9}"#, Some(&Until::Offsets(BTreeMap::from([(0, 5), (17, 9)]))));
        check("{}", Some(&Until::Offsets(BTreeMap::new())));
        check("-1", None);
        check(r#"{"x":5}"#, None);
        check("@/nowhere/at/all", None);
    }

    #[test]
    fn the_command_line_is_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_consumer_needs_an_end() {
        let words = ["load", "consume", "--broker", "a:1", "--topic", "t"];
        assert!(Arguments::try_parse_from(words).is_err());
        assert!(Arguments::try_parse_from(words.into_iter().chain(["--seconds", "1"])).is_ok());
        assert!(
            Arguments::try_parse_from(words.into_iter().chain(["--seconds", "1", "--until", "5"])).is_ok()
        );
    }
}
