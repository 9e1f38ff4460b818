//! The command line, and the settings that it and the file make.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand, ValueEnum};
use kolumn_broker::{Settings, SqlSettings};

/// A Kafka-protocol event broker whose acknowledged records are on the disk.
#[derive(Debug, Parser)]
#[command(name = "broker", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Checks the settings without touching disk or network.
    Check,
    /// Asks a running broker in SQL.
    Sql(Query),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Query {
    /// What to ask, one or more statements; without it, they are read from standard input.
    pub(crate) statement: Option<String>,
    /// How rows are printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// The broker's address for SQL [default: that of the settings, 127.0.0.1:8815].
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) address: Option<String>,
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    #[default]
    Table,
    /// Comma-separated values with a line of names.
    Csv,
    /// A JSON object a line.
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Flags {
    /// Settings as TOML; unknown keys are errors.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Addresses to listen on [default: 127.0.0.1:9092].
    #[arg(long, global = true, value_name = "ADDRESS:PORT", value_delimiter = ',')]
    listen: Vec<SocketAddr>,
    /// What clients are told to connect to, if it is not the address that they used.
    #[arg(long, global = true, value_name = "HOST:PORT")]
    advertised: Option<String>,
    /// Where the log lives [default: ./kolumn-data].
    #[arg(long, global = true, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// The bucket whose topics are served [default: kafka].
    #[arg(long, global = true, value_name = "BUCKET")]
    view: Option<String>,
    /// Where Arrow Flight SQL is served, or `none` [default: 127.0.0.1:8815].
    #[arg(long, global = true, value_name = "ADDRESS:PORT", value_parser = place)]
    sql: Option<Place>,
    /// Where PostgreSQL's wire protocol is served, or `none` [default: none].
    #[arg(long, global = true, value_name = "ADDRESS:PORT", value_parser = place)]
    postgres: Option<Place>,
}

/// An address to listen on, if any.
#[derive(Debug, Clone)]
struct Place(Option<SocketAddr>);

fn place(text: &str) -> Result<Place, &'static str> {
    SqlSettings::parse_listen(text).map(Place)
}

impl Flags {
    /// The file's settings, then the flags over them.
    pub(crate) fn settings(self) -> Result<Settings, String> {
        let mut settings = match &self.config {
            Some(file) => read(file)?,
            None => Settings::default(),
        };
        if !self.listen.is_empty() {
            settings.listen = self.listen;
        }
        if self.advertised.is_some() {
            settings.advertised = self.advertised;
        }
        settings.data_dir = self.data_dir.unwrap_or(settings.data_dir);
        settings.view = self.view.unwrap_or(settings.view);
        if let Some(Place(listen)) = self.sql {
            settings.sql.listen = listen;
        }
        if let Some(Place(listen)) = self.postgres {
            settings.sql.postgres_listen = listen;
        }
        settings.validate().map_err(|error| format!("settings: {error}"))?;
        Ok(settings)
    }
}

fn read(file: &Path) -> Result<Settings, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Settings::from_toml(&text).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_settings_in_the_readme_are_the_defaults() {
        let readme = include_str!("../README.md");
        let text = readme
            .split("```toml")
            .nth(1)
            .and_then(|rest| rest.split("```").next())
            .expect("a block of TOML");
        assert_eq!(Settings::from_toml(text).expect("valid"), Settings::default());
    }

    #[test]
    fn flags_win_over_defaults_and_the_command_line_is_consistent() {
        Arguments::command().debug_assert();
        let line = "broker check --listen 127.0.0.1:1,127.0.0.1:2 --view v --sql none --postgres 127.0.0.1:3";
        let arguments = Arguments::parse_from(line.split(' '));
        let settings = arguments.flags.settings().expect("valid");
        assert_eq!((settings.listen.len(), settings.view.as_str()), (2, "v"));
        let postgres = SocketAddr::from(([127, 0, 0, 1], 3));
        assert_eq!((settings.sql.listen, settings.sql.postgres_listen), (None, Some(postgres)));
    }
}
