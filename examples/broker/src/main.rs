//! A Kafka-protocol broker as a program: flags and a TOML file become settings, signals become an orderly stop.
//!
//! ```sh
//! broker                               # 127.0.0.1:9092, SQL on 127.0.0.1:8815, data in ./kolumn-data
//! broker --config broker.toml          # flags win over the file
//! broker check --config broker.toml    # validates the file and exits
//! broker sql 'SELECT * FROM greetings' # asks the running broker
//! ```
#![forbid(unsafe_code)]

mod arguments;
#[cfg_attr(not(feature = "sql"), path = "no_sql.rs")]
mod sql;

use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use clap::Parser as _;
use kolumn_broker::{Broker, Settings};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::arguments::{Arguments, Command};
use crate::sql::Servers;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = arguments.flags.settings().and_then(|settings| match arguments.command {
        Some(Command::Check) => {
            say("the settings are valid");
            Ok(())
        }
        Some(Command::Sql(query)) => sql::ask(&query, &settings),
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
    let servers = Servers::start(&shown, &broker).await;
    let served = match servers {
        Ok(servers) => {
            welcome(&shown, &broker, &servers);
            tokio::select! {
                _ = terminated.recv() => {}
                _ = interrupted.recv() => {}
            }
            say("stopping");
            servers.stop().await;
            Ok(())
        }
        Err(message) => Err(message),
    };
    broker.shutdown().await.map_err(|error| describe(&error))?;
    served?;
    say("stopped");
    Ok(())
}

fn welcome(settings: &Settings, broker: &Broker, servers: &Servers) {
    let data = std::path::absolute(&settings.data_dir).unwrap_or_else(|_| settings.data_dir.clone());
    for address in broker.local_addrs() {
        say(format_args!("ready on {address} (view `{}`), data in {}", settings.view, data.display()));
    }
    for line in servers.places() {
        say(line);
    }
    if settings.topics.auto_create {
        let address = reachable(broker.local_addr());
        say(format_args!("try:  echo hello | kcat -b {address} -t greetings -P"));
        say(format_args!("      kcat -b {address} -t greetings -C -e"));
        if let Some(line) = servers.example() {
            say(format_args!("      {line}"));
        }
    }
    say("stop with Ctrl-C");
}

/// The address by which a listener is reached from this machine.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    address
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
