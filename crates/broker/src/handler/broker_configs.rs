//! The settings of this broker under the names that Kafka's tools look for. None of them changes while it runs.

use kolumn_kafka_wire::Str;
use kolumn_topic_store::TopicConfig;

use super::config_rows::{Kind, Row, Source};
use super::describe_topic_partitions;
use crate::context::Session;
use crate::settings::{HostPort, Settings};

/// A setting of ours and the name that Kafka has for it.
struct Key {
    name: &'static str,
    kind: Kind,
    value: fn(&Settings) -> String,
    documentation: &'static str,
}

/// All settings, sorted by name.
pub(super) fn rows(session: &Session) -> Vec<Row> {
    let settings = &session.context.validated.settings;
    let defaults = Settings::default();
    let told = KEYS.iter().map(|key| {
        let (value, default) = ((key.value)(settings), (key.value)(&defaults));
        let source = if value == default { Source::DEFAULT } else { Source::STATIC_BROKER };
        let default = Some((key.name, Str::from(default)));
        Row {
            name: key.name,
            value: Str::from(value),
            kind: key.kind,
            source,
            default,
            documentation: key.documentation,
        }
    });
    let mut rows: Vec<_> = identity(session).into_iter().chain(told).chain(of_topics()).collect();
    rows.sort_by_key(|row| row.name);
    rows
}

/// What tells this broker from others. It has no default.
fn identity(session: &Session) -> [Row; 5] {
    let context = &session.context;
    let row = |name, kind, value: String, documentation| Row {
        name,
        value: Str::from(value),
        kind,
        source: Source::STATIC_BROKER,
        default: None,
        documentation,
    };
    let settings = &context.validated.settings;
    let listeners: Vec<_> = settings.listen.iter().map(|address| format!("PLAINTEXT://{address}")).collect();
    let node_id = context.node_id().to_string();
    [
        row(
            "advertised.listeners",
            Kind::STRING,
            advertised(&session.endpoint),
            "The address that clients are told to connect to.",
        ),
        row("broker.id", Kind::INT, node_id.clone(), "The number by which clients know this broker."),
        row("listeners", Kind::STRING, listeners.join(","), "The addresses that the broker listens on."),
        row("log.dirs", Kind::STRING, context.log_dir.clone(), "The directory of the log."),
        row("node.id", Kind::INT, node_id, "The number by which clients know this broker."),
    ]
}

fn advertised(HostPort { host, port }: &HostPort) -> String {
    if host.contains(':') {
        format!("PLAINTEXT://[{host}]:{port}")
    } else {
        format!("PLAINTEXT://{host}:{port}")
    }
}

/// What topics have that were given nothing else.
fn of_topics() -> impl Iterator<Item = Row> {
    TopicConfig::keys().filter_map(|key| {
        let name = key.synonym()?;
        let value = Str::from_static(key.default_value());
        Some(Row {
            name,
            value: value.clone(),
            kind: Kind::of(key.config_type()),
            source: Source::DEFAULT,
            default: Some((name, value)),
            documentation: key.documentation(),
        })
    })
}

const fn key(
    name: &'static str,
    kind: Kind,
    value: fn(&Settings) -> String,
    documentation: &'static str,
) -> Key {
    Key { name, kind, value, documentation }
}

const KEYS: &[Key] = &[
    key("authorizer.class.name", Kind::STRING, |_| String::new(), "Who decides what clients may do: nobody."),
    key(
        "auto.create.topics.enable",
        Kind::BOOLEAN,
        |settings| settings.topics.auto_create.to_string(),
        "Whether asking for an unknown topic creates it.",
    ),
    key(
        "connections.max.idle.ms",
        Kind::LONG,
        |settings| settings.limits.connection_idle_timeout_ms.to_string(),
        "Silence after which a connection is closed.",
    ),
    key("default.replication.factor", Kind::INT, |_| "1".to_owned(), "Copies of a partition: the one."),
    key("delete.topic.enable", Kind::BOOLEAN, |_| "true".to_owned(), "Whether topics can be deleted."),
    key(
        "fetch.max.bytes",
        Kind::INT,
        |settings| settings.limits.fetch_len_max.to_string(),
        "Bytes of records in one answer to a fetch, at most.",
    ),
    key(
        "group.initial.rebalance.delay.ms",
        Kind::INT,
        |settings| settings.groups.initial_rebalance_delay_ms.to_string(),
        "How long an empty group waits for further members before its first generation.",
    ),
    key(
        "group.max.session.timeout.ms",
        Kind::INT,
        |settings| settings.groups.session_timeout_max_ms.to_string(),
        "The longest session timeout that a member may ask for.",
    ),
    key(
        "group.max.size",
        Kind::INT,
        |settings| settings.groups.members_max.to_string(),
        "Members of one group, at most.",
    ),
    key(
        "group.min.session.timeout.ms",
        Kind::INT,
        |settings| settings.groups.session_timeout_min_ms.to_string(),
        "The shortest session timeout that a member may ask for.",
    ),
    key(
        "inter.broker.protocol.version",
        Kind::STRING,
        |_| "4.2-IV1".to_owned(),
        "The release of Kafka whose protocol is spoken; tools read the version of a cluster from it.",
    ),
    key(
        "max.connections",
        Kind::INT,
        |settings| settings.limits.connections_max.to_string(),
        "Open connections, at most.",
    ),
    key(
        "max.incremental.fetch.session.cache.slots",
        Kind::INT,
        |settings| settings.limits.fetch_sessions_max.to_string(),
        "Incremental fetch sessions, at most.",
    ),
    key(
        "max.request.partition.size.limit",
        Kind::INT,
        |_| describe_topic_partitions::PARTITIONS_MAX.to_string(),
        "Partitions in one answer that describes topics page by page, at most.",
    ),
    key(
        "num.partitions",
        Kind::INT,
        |settings| settings.topics.default_partitions.to_string(),
        "Partitions of a topic whose creator did not say how many.",
    ),
    key(
        "offset.metadata.max.bytes",
        Kind::INT,
        |settings| settings.groups.offset_metadata_len_max.to_string(),
        "Bytes of metadata in one committed offset, at most.",
    ),
    key(
        "offsets.retention.minutes",
        Kind::INT,
        |settings| settings.groups.offsets_retention_minutes.to_string(),
        "How long the committed offsets of a group without members are kept.",
    ),
    key(
        "offsets.topic.replication.factor",
        Kind::SHORT,
        |_| "1".to_owned(),
        "Copies of committed offsets: the one.",
    ),
    key(
        "socket.request.max.bytes",
        Kind::INT,
        |settings| settings.limits.frame_len_max.to_string(),
        "The longest request, in bytes.",
    ),
];
