//! A Kafka-protocol broker as a program: flags and a TOML file become settings, signals become an orderly stop.
//!
//! ```sh
//! broker                               # 127.0.0.1:9092, data in ./kolumn-data
//! broker --config broker.toml          # flags win over the file
//! broker check --config broker.toml    # validates the file and exits
//! ```
#![forbid(unsafe_code)]

use std::{
    fmt,
    io::{IsTerminal as _, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use kolumn_broker::{Broker, Settings};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// A Kafka-protocol event broker whose acknowledged records are on the disk.
#[derive(Debug, Parser)]
#[command(name = "broker", version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Checks the settings without touching disk or network.
    Check,
}

#[derive(Debug, clap::Args)]
struct Flags {
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
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = settings(arguments.flags).and_then(|settings| match arguments.command {
        Some(Command::Check) => {
            say("the settings are valid");
            Ok(())
        }
        None => run(settings),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Who does not listen to standard error is told by the exit code.
            let _ = writeln!(std::io::stderr(), "broker: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The file's settings, then the flags over them.
fn settings(flags: Flags) -> Result<Settings, String> {
    let mut settings = match &flags.config {
        Some(file) => read(file)?,
        None => Settings::default(),
    };
    if !flags.listen.is_empty() {
        settings.listen = flags.listen;
    }
    if flags.advertised.is_some() {
        settings.advertised = flags.advertised;
    }
    settings.data_dir = flags.data_dir.unwrap_or(settings.data_dir);
    settings.view = flags.view.unwrap_or(settings.view);
    settings.validate().map_err(|error| format!("settings: {error}"))?;
    Ok(settings)
}

fn read(file: &Path) -> Result<Settings, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Settings::from_toml(&text).map_err(|error| format!("{}: {error}", file.display()))
}

fn run(settings: Settings) -> Result<(), String> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let ansi = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(ansi).init();
    raise_limit_of_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("the runtime: {error}"))?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: Settings) -> Result<(), String> {
    // Before the broker starts, so that no signal ends the process while the log is open.
    let mut terminated = signal(SignalKind::terminate()).map_err(|error| format!("signals: {error}"))?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|error| format!("signals: {error}"))?;
    let shown = settings.clone();
    let broker = Broker::from_settings(settings).start().await.map_err(|error| describe(&error))?;
    welcome(&shown, &broker);
    tokio::select! {
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    say("stopping");
    broker.shutdown().await.map_err(|error| describe(&error))?;
    say("stopped");
    Ok(())
}

fn welcome(settings: &Settings, broker: &Broker) {
    let data = std::path::absolute(&settings.data_dir).unwrap_or_else(|_| settings.data_dir.clone());
    for address in broker.local_addrs() {
        say(format_args!("ready on {address} (view `{}`), data in {}", settings.view, data.display()));
    }
    if settings.topics.auto_create {
        let mut address = broker.local_addr();
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        say(format_args!("try:  echo hello | kcat -b {address} -t greetings -P"));
        say(format_args!("      kcat -b {address} -t greetings -C -e"));
    }
    say("stop with Ctrl-C");
}

/// A line on standard output, if anybody reads it: a broker must not end because nobody does.
fn say(line: impl fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// A connection is an open file. Shells often allow 1024, with permission to ask for more.
fn raise_limit_of_open_files() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

/// An error with its causes, in one line.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
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
        let arguments =
            Arguments::parse_from(["broker", "check", "--listen", "127.0.0.1:1,127.0.0.1:2", "--view", "v"]);
        let settings = settings(arguments.flags).expect("valid");
        assert_eq!((settings.listen.len(), settings.view.as_str()), (2, "v"));
    }
}
