//! Targets: their configuration, and the hub that delivers to them.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use kolumn_broker::Broker;
use kolumn_notify::config::{Config, Environment, OutputStyle, StoredConfig, TargetState};
use kolumn_notify::delivery::{DeliveryEvent, Observer};
use kolumn_notify::event::Origin;
use kolumn_notify::hub::{Hub, HubOptions, Opened};
use kolumn_notify::rules::{BucketRules, Rule};
use kolumn_notify::s3s::{Notifying, NotifyingOptions, recover};
use kolumn_notify::target::chain;

use crate::arguments::{Flags, Words};
use crate::identity::Identity;
use crate::{describe, say};

/// The target of the broker of this program.
const LOCAL: &str = "arn:minio:sqs::local:kafka";
const TOPIC: &str = "bucket-events";

/// Opens the hub, tells of its targets, and settles what an earlier process has left in doubt.
pub(crate) async fn open(flags: &Flags, identity: &Identity, broker: Option<&Broker>) -> Result<Hub, String> {
    let mut variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    if let Some(broker) = broker {
        // First, so that whoever sets a variable has the last word.
        let own =
            [("ENABLE", "on".into()), ("BROKERS", reachable(broker.local_addr())), ("TOPIC", TOPIC.into())];
        let own =
            own.map(|(key, value)| (format!("MINIO_NOTIFY_KAFKA_{key}_LOCAL").into(), OsString::from(value)));
        variables.splice(0..0, own);
    }
    let environment = Environment::new(variables);
    let config = Config::resolve(&environment, &stored(&flags.data)?);
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let mut options = HubOptions::new(flags.data.join("notify"));
    options.observer = Arc::new(Log);
    options.origin = origin(flags, identity);
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| format!("random numbers: {error}"))?;
    options.seed = u64::from_le_bytes(seed);
    let Opened { hub, unresolved, faults, .. } =
        Hub::open(options, &config).await.map_err(|error| describe(&error))?;
    for fault in faults {
        say(format_args!("target {fault}"));
    }
    if let Some(line) = hub.arns_line() {
        say(line);
    }
    if broker.is_some() {
        let rules = global_rules(&flags.events)?;
        hub.set_global_rules(rules).await.map_err(|error| describe(&error))?;
    }
    let storage = storage(flags, &hub)?;
    let recovery = recover(&storage, &hub, unresolved).await;
    for (left, error) in &recovery.in_doubt {
        tracing::warn!(bucket = left.intent.bucket, key = left.intent.key, %error, "an operation stays in doubt");
    }
    Ok(hub)
}

/// The objects' folder, whose operations are told of.
pub(crate) fn storage(flags: &Flags, hub: &Hub) -> Result<Notifying<s3s_fs::FileSystem>, String> {
    let objects = flags.data.join("objects");
    fs::create_dir_all(&objects).map_err(|error| format!("{}: {error}", objects.display()))?;
    let files =
        s3s_fs::FileSystem::new(&objects).map_err(|error| format!("{}: {error:?}", objects.display()))?;
    let mut options = NotifyingOptions::default();
    options.tags_dir = Some(flags.data.join("tags"));
    Ok(Notifying::new(files, hub.clone(), options))
}

fn origin(flags: &Flags, identity: &Identity) -> Origin {
    let mut origin = Origin::default();
    origin.deployment_id.clone_from(&identity.deployment_id);
    origin.endpoint = format!("http://{}", reachable(flags.s3));
    origin.node = reachable(flags.s3);
    origin
}

fn global_rules(events: &[String]) -> Result<BucketRules, String> {
    if events == ["none"] {
        return Ok(BucketRules::default());
    }
    let events = events.iter().map(|event| event.parse()).collect::<Result<Vec<_>, _>>();
    let events = events.map_err(|error| format!("--events: {error}"))?;
    let target = LOCAL.parse().map_err(|error| format!("{error}"))?;
    let rule = Rule::new(target, events).map_err(|error| format!("--events: {error}"))?;
    Ok(BucketRules::new(vec![rule]))
}

/// An address by which this machine reaches what listens on it.
fn reachable(mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    address.to_string()
}

fn stored(data: &Path) -> Result<StoredConfig, String> {
    let path = data.join("notify.txt");
    match fs::read_to_string(&path) {
        Ok(text) => StoredConfig::from_text(&text).map_err(|error| format!("{}: {error}", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(StoredConfig::default()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// `get`, `set` and `reset`; gives what is to be printed. The running server takes changes up when it starts again.
pub(crate) fn configure(data: &Path, words: &Words) -> Result<String, String> {
    let mut config = stored(data)?;
    let environment = Environment::new(std::env::vars_os());
    let (verb, rest) = words.words.split_first().ok_or("`get`, `set` or `reset` is missing")?;
    // A word of the shell is a value with its blanks.
    let text = rest.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    match verb.as_str() {
        "get" => {
            return config
                .get(&text, &environment, OutputStyle::default())
                .map_err(|error| error.to_string());
        }
        "set" => {
            for warning in config.set(&text, &environment).map_err(|error| error.to_string())? {
                say(format_args!("warning: {warning}"));
            }
        }
        "reset" => config.reset(&text, &environment).map_err(|error| error.to_string())?,
        other => return Err(format!("`{other}` is none of `get`, `set` and `reset`")),
    }
    write(data, &config.to_text())?;
    Ok("the server takes it up when it starts again".into())
}

/// A `key=value` whose value has blanks is quoted for the language of configurations.
fn quoted(word: &str) -> String {
    match word.split_once('=') {
        Some((key, value)) if value.contains(' ') && !value.starts_with('"') => {
            format!("{key}=\"{}\"", value.replace('"', "\"\""))
        }
        _ => word.into(),
    }
}

/// Replaces the file as a whole; it has secrets.
fn write(data: &Path, text: &str) -> Result<(), String> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let (path, temporary) = (data.join("notify.txt"), data.join("notify.txt.tmp"));
    let written = fs::create_dir_all(data).and_then(|()| {
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &path)
    });
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// What is wrong with the targets that are configured, if anything.
pub(crate) fn check(data: &Path) -> Result<(), String> {
    let config = Config::resolve(&Environment::new(std::env::vars_os()), &stored(data)?);
    for warning in config.warnings() {
        say(format_args!("warning: {warning}"));
    }
    let mut wrong: Vec<String> = config.errors().iter().map(ToString::to_string).collect();
    for target in config.targets() {
        match target.state() {
            TargetState::Refused(errors) => wrong.push(errors.to_string()),
            TargetState::Enabled(enabled) => {
                if let Err(error) = kolumn_notify::target::build(config.region(), enabled) {
                    wrong.push(chain(&error));
                }
            }
            _ => {}
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Writes what happens to deliveries to the log.
#[derive(Debug)]
struct Log;

impl Observer for Log {
    fn on(&self, event: &DeliveryEvent<'_>) {
        match event {
            DeliveryEvent::Failed { target, error, failures, retry_in } => {
                tracing::warn!(%target, error = chain(*error), failures, ?retry_in, "events wait");
            }
            DeliveryEvent::Recovered { target, failures } => {
                tracing::info!(%target, failures, "events flow again");
            }
            DeliveryEvent::SetAside { target, number, key, error } => {
                let key = String::from_utf8_lossy(key);
                tracing::error!(%target, number, %key, error = chain(*error), "an event is among the dead letters");
            }
            DeliveryEvent::UnknownTarget { target } => {
                tracing::warn!(%target, "a rule names no target that there is");
            }
            DeliveryEvent::Refused { target, error } => {
                tracing::error!(%target, error = describe(*error), "a queue did not take an event");
            }
            other => tracing::debug!(event = ?other, "delivery"),
        }
    }
}
