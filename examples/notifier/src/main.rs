//! An S3 server whose buckets tell Kafka what happens to their objects, with a broker of its own to begin with.
//!
//! ```sh
//! notifier                                     # S3 on 127.0.0.1:9000, Kafka on 127.0.0.1:9092, data in ./notifier-data
//! notifier config set notify_kafka:audit brokers=kafka.example:9092 topic=audit
//! notifier config get notify_kafka             # and reset; they count from the next start
//! notifier check                               # says what is wrong with targets, and exits
//! ```
#![forbid(unsafe_code)]

mod arguments;
mod identity;
mod notify;
mod server;

use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use kolumn_broker::{Broker, Settings};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::arguments::{Arguments, Command, Flags};
use crate::identity::Identity;

fn main() -> ExitCode {
    let Arguments { command, flags } = Arguments::parse();
    let outcome = match command {
        None => run(&flags),
        Some(Command::Config(words)) => {
            notify::configure(&flags.data, &words).map(|text| say(text.trim_end()))
        }
        Some(Command::Check) => notify::check(&flags.data).map(|()| say("the targets are configured well")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Who does not listen to standard error is told by the exit code.
            let _ = writeln!(std::io::stderr(), "notifier: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &Flags) -> Result<(), String> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let ansi = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(ansi).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| format!("the runtime: {error}"))?.block_on(serve(flags))
}

async fn serve(flags: &Flags) -> Result<(), String> {
    // Before anything starts, so that no signal ends the process while files are open.
    let mut terminated = signal(SignalKind::terminate()).map_err(|error| format!("signals: {error}"))?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|error| format!("signals: {error}"))?;
    let identity = Identity::of(&flags.data)?;
    let broker = match flags.kafka.0 {
        Some(listen) => {
            let mut settings = Settings::default();
            settings.data_dir = flags.data.join("log");
            settings.listen = vec![listen];
            Some(Broker::from_settings(settings).start().await.map_err(|error| describe(&error))?)
        }
        None => None,
    };
    let stop = async {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
        say("stopping");
    };
    let served = serve_objects(flags, &identity, broker.as_ref(), stop).await;
    if let Some(broker) = broker {
        broker.shutdown().await.map_err(|error| describe(&error))?;
    }
    served?;
    say("stopped");
    Ok(())
}

async fn serve_objects(
    flags: &Flags,
    identity: &Identity,
    broker: Option<&Broker>,
    stop: impl Future<Output = ()>,
) -> Result<(), String> {
    let hub = notify::open(flags, identity, broker).await?;
    let served = server::serve(flags, identity, &hub, stop).await;
    // What is answered is in the queues; what the targets do not take now is sent after the next start.
    hub.close(PATIENCE).await;
    served
}

/// A line on standard output, if anybody reads it: a server must not end because nobody does.
fn say(line: impl fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
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

/// How long targets have for what waits when the server stops.
const PATIENCE: Duration = Duration::from_secs(10);
