//! What a broker can be told: plain data, read from TOML or written in Rust, checked before anything starts.
//!
//! ```text
//! text --from_toml--> Settings --validate--> Validated (crate-private) --start--> Broker
//! ```

mod error;
mod groups;
mod sql;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

pub use self::error::SettingsError;
pub use self::groups::GroupSettings;
pub use self::sql::SqlSettings;
use crate::connection::ConnectionLimits;

/// Settings of a broker. Unknown keys are errors.
///
/// ```
/// use kolumn_broker::Settings;
///
/// let settings = Settings::from_toml("listen = ['127.0.0.1:0']\n[limits]\nconnections_max = 100")?;
/// assert_eq!(settings.limits.connections_max, 100);
///
/// let error = Settings::from_toml("view = 'kafka'\nlisten_on = []").unwrap_err();
/// assert_eq!((error.line(), error.column()), (Some(2), Some(1)));
/// # Ok::<(), kolumn_broker::SettingsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Settings {
    /// Directory of the log. Default `./kolumn-data`.
    pub data_dir: PathBuf,
    /// Addresses to listen on; port 0 lets the system choose. Default `127.0.0.1:9092`.
    pub listen: Vec<SocketAddr>,
    /// `host:port` that clients are told to connect to; by default the address that they connected to.
    pub advertised: Option<String>,
    /// The bucket whose topics are served: what clients see as one Kafka cluster. Default `kafka`.
    pub view: String,
    /// The number by which clients know this broker. Default 1.
    pub node_id: i32,
    /// Topics.
    pub topics: TopicSettings,
    /// Bounds on what clients can make the broker hold or wait for.
    pub limits: LimitSettings,
    /// Consumer groups.
    pub groups: GroupSettings,
    /// The log.
    pub storage: StorageSettings,
    /// SQL over the topics, for the program that starts the broker.
    pub sql: SqlSettings,
}

/// How topics come into being. What a topic keeps, and for how long, is chosen by its creator (`retention.ms`, by default
/// 7 days, and Kafka's other topic settings).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TopicSettings {
    /// Whether asking for an unknown topic creates it, if the client allows it. Default true.
    pub auto_create: bool,
    /// Partitions of a topic whose creator did not say how many. Default 1.
    pub default_partitions: i32,
    /// Partitions of one topic, at most. Default 10 000.
    pub partitions_max: i32,
}

/// Bounds on what clients can make the broker hold or wait for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LimitSettings {
    /// Open connections, at most; fewer if the limit of open files allows fewer. Default 20 000.
    pub connections_max: usize,
    /// Silence after which a connection is closed. Default 600 000, ten minutes.
    pub connection_idle_timeout_ms: u64,
    /// Longest request, in bytes. Default 104 857 600, 100 MiB.
    pub frame_len_max: usize,
    /// Requests of one connection that are being answered, at most; then it is not read. Default 64.
    pub in_flight_max: usize,
    /// Bytes of requests of all connections that are arriving or being answered, at most. Default 67 108 864, 64 MiB.
    pub in_flight_len_max: usize,
    /// Bytes of answers of all connections that wait for their peers, at most, records and small answers not counted. A
    /// connection whose answer does not fit is closed. Default 268 435 456, 256 MiB.
    pub answers_len_max: usize,
    /// How long one request may arrive slowly while others wait for its memory. Default 5 000.
    pub slow_frame_timeout_ms: u64,
    /// Bytes of records in one fetch response, at most. Default 57 671 680, 55 MiB.
    pub fetch_len_max: usize,
    /// Incremental fetch sessions, at most; a client that gets none fetches in full. Default 1 000.
    pub fetch_sessions_max: usize,
    /// Partitions that all fetch sessions together remember, at most. Default 500 000.
    pub fetch_session_partitions_max: usize,
    /// How long shutdown waits for answers that are being written. Default 10 000.
    pub drain_timeout_ms: u64,
}

/// The log on disk.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct StorageSettings {
    /// When a write is acknowledged: after the disk synced it, or after the system took it. Default sync.
    pub durability: Durability,
    /// Bytes that the log may take on disk, at least 256 MiB; by default what it has at start and three quarters of
    /// what is free then.
    pub size_limit: Option<u64>,
    /// Bytes of newest records kept in memory. Default 25 165 824, 24 MiB.
    pub tail_len_max: usize,
    /// Bytes of rows that SQL has decoded, kept in memory for the next query of the same rows. Default 134 217 728, 128 MiB.
    pub decoded_len_max: usize,
    /// Bytes of the index over the log in memory. Default 8 388 608, 8 MiB.
    pub index_len_max: usize,
    /// Pause between rounds of maintenance: checkpoints and reclaiming of files in each, retention every five minutes or
    /// while space is short. Default 1 000.
    pub maintenance_interval_ms: u64,
}

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "there is nothing between these two")]
pub enum Durability {
    /// After the disk synced it: survives a power cut.
    #[default]
    Sync,
    /// After the operating system took it: survives a crash of the process.
    Os,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("./kolumn-data"),
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 9092))],
            advertised: None,
            view: "kafka".to_owned(),
            node_id: 1,
            topics: TopicSettings::default(),
            limits: LimitSettings::default(),
            groups: GroupSettings::default(),
            storage: StorageSettings::default(),
            sql: SqlSettings::default(),
        }
    }
}

impl Default for TopicSettings {
    fn default() -> Self {
        Self { auto_create: true, default_partitions: 1, partitions_max: 10_000 }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            connection_idle_timeout_ms: 600_000,
            frame_len_max: 100 << 20,
            in_flight_max: 64,
            in_flight_len_max: 64 << 20,
            answers_len_max: 256 << 20,
            slow_frame_timeout_ms: 5_000,
            fetch_len_max: 55 << 20,
            fetch_sessions_max: 1_000,
            fetch_session_partitions_max: 500_000,
            drain_timeout_ms: 10_000,
        }
    }
}

impl Default for StorageSettings {
    fn default() -> Self {
        let store = kolumn_topic_store::Settings::default();
        Self {
            durability: Durability::Sync,
            size_limit: None,
            tail_len_max: store.tail_len_max,
            decoded_len_max: store.decoded_len_max,
            index_len_max: store.index_len_max,
            maintenance_interval_ms: 1_000,
        }
    }
}

impl Settings {
    /// Reads settings; what is not given has its default.
    ///
    /// # Errors
    /// The text is not TOML, has an unknown key or a value of the wrong type; with line and column.
    pub fn from_toml(text: &str) -> Result<Self, SettingsError> {
        toml::from_str(text).map_err(|error| SettingsError::from_toml(text, &error))
    }

    /// Checks what types cannot say.
    ///
    /// # Errors
    /// The first key whose value cannot work.
    pub fn validate(&self) -> Result<(), SettingsError> {
        self.validated().map(drop)
    }

    pub(crate) fn validated(&self) -> Result<Validated, SettingsError> {
        let check = |good: bool, key: &'static str, rule: &'static str| {
            if good { Ok(()) } else { Err(SettingsError::invalid(key, rule)) }
        };
        check(!self.listen.is_empty(), "listen", "at least one address is needed")?;
        check(self.node_id >= 0, "node_id", "must not be negative")?;
        let twice = (1..).zip(&self.listen).any(|(next, address)| {
            address.port() != 0 && self.listen.iter().skip(next).any(|other| other == address)
        });
        check(!twice, "listen", "an address must not be named twice")?;
        let plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
        check(
            (1..=249).contains(&self.view.len()) && self.view.chars().all(plain),
            "view",
            "must have 1 to 249 characters of a-z, A-Z, 0-9, `.`, `_` and `-`",
        )?;
        let topics = &self.topics;
        check(
            (1..=PARTITIONS_MAX).contains(&topics.partitions_max),
            "topics.partitions_max",
            "must be from 1 to 200000",
        )?;
        check(
            (1..=topics.partitions_max).contains(&topics.default_partitions),
            "topics.default_partitions",
            "must be from 1 to `topics.partitions_max`",
        )?;
        let limits = &self.limits;
        check(limits.connections_max >= 1, "limits.connections_max", "must be at least 1")?;
        check(
            limits.connection_idle_timeout_ms >= 1_000,
            "limits.connection_idle_timeout_ms",
            "must be at least 1000",
        )?;
        check(
            (1 << 10..=1 << 30).contains(&limits.frame_len_max),
            "limits.frame_len_max",
            "must be from 1024 to 1073741824",
        )?;
        check(limits.in_flight_max >= 1, "limits.in_flight_max", "must be at least 1")?;
        check(limits.in_flight_len_max >= 1 << 20, "limits.in_flight_len_max", "must be at least 1048576")?;
        check(limits.answers_len_max >= 1 << 20, "limits.answers_len_max", "must be at least 1048576")?;
        check(limits.slow_frame_timeout_ms >= 1, "limits.slow_frame_timeout_ms", "must be at least 1")?;
        check(limits.fetch_len_max <= 1 << 30, "limits.fetch_len_max", "must be at most 1073741824")?;
        check(
            self.storage.size_limit.is_none_or(|limit| limit >= SIZE_LIMIT_MIN),
            "storage.size_limit",
            "must be at least 268435456, the room of four files of the log",
        )?;
        check(
            self.storage.maintenance_interval_ms >= 1,
            "storage.maintenance_interval_ms",
            "must be at least 1",
        )?;
        self.groups.check()?;
        self.sql.check(&self.listen)?;
        let advertised = self.advertised.as_deref().map(HostPort::parse).transpose()?;
        Ok(Validated { settings: self.clone(), advertised })
    }
}

/// Partitions that a store has in all, at most.
const PARTITIONS_MAX: i32 = 200_000;
/// The log needs four files: one that is written, the next, one in reserve and one that can be freed.
const SIZE_LIMIT_MIN: u64 = 256 << 20;

/// Settings that can work.
#[derive(Debug, Clone)]
pub(crate) struct Validated {
    pub(crate) settings: Settings,
    pub(crate) advertised: Option<HostPort>,
}

impl Validated {
    pub(crate) fn connection_limits(&self) -> ConnectionLimits {
        let limits = &self.settings.limits;
        ConnectionLimits {
            frame_len_max: limits.frame_len_max,
            in_flight_max: limits.in_flight_max,
            idle_timeout: Duration::from_millis(limits.connection_idle_timeout_ms),
            ..ConnectionLimits::default()
        }
    }

    pub(crate) fn store_settings(&self) -> kolumn_topic_store::Settings {
        let Settings { topics, storage, .. } = &self.settings;
        kolumn_topic_store::Settings {
            tail_len_max: storage.tail_len_max,
            decoded_len_max: storage.decoded_len_max,
            index_len_max: storage.index_len_max,
            size_limit: storage.size_limit,
            partitions_max: topics.partitions_max,
            durability: match storage.durability {
                Durability::Sync => kolumn_topic_store::Durability::Sync,
                Durability::Os => kolumn_topic_store::Durability::Os,
            },
            ..kolumn_topic_store::Settings::default()
        }
    }
}

/// A host name or address, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl HostPort {
    /// `host ":" port`, an IPv6 address in brackets.
    fn parse(text: &str) -> Result<Self, SettingsError> {
        let invalid = || SettingsError::invalid("advertised", "must be `host:port`");
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bracketed.unwrap_or(host);
        if host.is_empty() || host.len() > 255 || (bracketed.is_none() && host.contains(':')) {
            return Err(invalid());
        }
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(invalid)?;
        Ok(Self { host: host.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, message: &str) {
        let settings = Settings::from_toml(text).expect("readable");
        assert_eq!(settings.validate().unwrap_err().to_string(), message);
    }

    #[test]
    fn values_that_cannot_work_are_refused_with_their_key() {
        refused("listen = []", "`listen`: at least one address is needed");
        refused("node_id = -1", "`node_id`: must not be negative");
        for view in ["''", "'ü'", "'a/b'", "\"a\\u0000\""] {
            let rule = "`view`: must have 1 to 249 characters of a-z, A-Z, 0-9, `.`, `_` and `-`";
            refused(&format!("view = {view}"), rule);
        }
        let twice = "listen = ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:1']";
        refused(twice, "`listen`: an address must not be named twice");
        refused("topics.partitions_max = 200001", "`topics.partitions_max`: must be from 1 to 200000");
        let rule = "`storage.size_limit`: must be at least 268435456, the room of four files of the log";
        refused("storage.size_limit = 268435455", rule);
        refused("advertised = 'somewhere'", "`advertised`: must be `host:port`");
        refused("advertised = '::1:9092'", "`advertised`: must be `host:port`");
        refused("limits.frame_len_max = 10", "`limits.frame_len_max`: must be from 1024 to 1073741824");
        refused(
            "topics.default_partitions = 0",
            "`topics.default_partitions`: must be from 1 to `topics.partitions_max`",
        );
    }

    #[test]
    fn an_advertised_address_may_be_ipv6() {
        let parsed = HostPort::parse("[::1]:9092").expect("an address");
        assert_eq!(parsed, HostPort { host: "::1".to_owned(), port: 9092 });
    }

    #[test]
    fn bounds_are_those_of_the_store() {
        let store = kolumn_topic_store::Settings::default();
        assert_eq!(PARTITIONS_MAX, store.all_partitions_max);
        assert_eq!(SIZE_LIMIT_MIN, 4 * store.file_len);
    }

    #[test]
    fn the_defaults_are_valid_and_an_empty_text_gives_them() {
        assert_eq!(Settings::from_toml("").expect("defaults"), Settings::default());
        Settings::default().validate().expect("valid");
    }

    #[test]
    fn values_of_the_wrong_type_are_errors_with_their_place() {
        let error = Settings::from_toml("[limits]\nconnections_max = 'many'").unwrap_err();
        assert_eq!((error.line(), error.column()), (Some(2), Some(19)));
        assert!(error.to_string().starts_with("line 2, column 19: "), "{error}");
    }
}
