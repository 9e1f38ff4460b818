//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// An S3 server that tells Kafka, webhooks and its listeners what happens to objects.
#[derive(Debug, Parser)]
#[command(name = "notifier", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows or changes the targets that are stored: `get notify_kafka`, `set notify_kafka:id key=value …`,
    /// `reset notify_kafka:id`.
    Config(Words),
    /// Says what is wrong with the targets of environment and stored configuration.
    Check,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Words {
    /// `get`, `set` or `reset`, and what to.
    #[arg(required = true, num_args = 1..)]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Flags {
    /// Where everything is kept: objects, rules, queues, the broker's log, keys.
    #[arg(long, global = true, value_name = "FOLDER", default_value = "./notifier-data")]
    pub(crate) data: PathBuf,
    /// Where S3 is served.
    #[arg(long, global = true, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9000")]
    pub(crate) s3: SocketAddr,
    /// Where the broker of this program is served, or `none`.
    #[arg(long, global = true, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9092", value_parser = place)]
    pub(crate) kafka: Place,
    /// Events that every bucket sends to the broker of this program, whatever its own rules, or `none`.
    #[arg(
        long,
        global = true,
        value_name = "EVENTS",
        default_value = "s3:ObjectCreated:*,s3:ObjectRemoved:*",
        value_delimiter = ','
    )]
    pub(crate) events: Vec<String>,
}

/// An address to listen on, if any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place(pub(crate) Option<SocketAddr>);

fn place(text: &str) -> Result<Place, String> {
    if text == "none" {
        return Ok(Place(None));
    }
    text.parse()
        .map(|address| Place(Some(address)))
        .map_err(|_| "it is neither ADDRESS:PORT nor `none`".into())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
        let arguments =
            Arguments::parse_from(["notifier", "--kafka", "none", "--events", "s3:ObjectCreated:Put"]);
        assert!(arguments.flags.kafka.0.is_none());
        assert_eq!(arguments.flags.events, ["s3:ObjectCreated:Put"]);
    }
}
