//! Which keys there are: one table for each sub-system, which the readers of text and of the environment share.

mod common;
pub(super) mod kafka;
mod others;

use std::fmt;

pub(super) use self::common::{
    COMMENT, DEAD_LETTER_DIR, DURABILITY, ENABLE, QUEUE_DIR, QUEUE_FULL, QUEUE_LIMIT, QUEUE_LIMIT_BYTES,
    STYLE,
};
pub(super) use self::others::{API_SYNC_EVENTS, SITE_REGION, pairs};
use super::value::ValueType;
use super::{TargetId, TargetKind};

/// A part of the configuration that has keys of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Subsystem {
    /// Targets of one kind; each has an identifier.
    Target(TargetKind),
    /// What is told of the server: `site`.
    Site,
    /// How the server answers: `api`.
    Api,
}

impl Subsystem {
    /// All of them, in the order in which they are printed.
    pub fn all() -> impl Iterator<Item = Self> {
        TargetKind::ALL.iter().map(|kind| Self::Target(*kind)).chain([Self::Site, Self::Api])
    }

    /// The first word of a line of configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Target(kind) => kind.subsystem(),
            Self::Site => "site",
            Self::Api => "api",
        }
    }

    /// The sub-system of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().find(|subsystem| subsystem.name() == name)
    }

    /// One sentence of help.
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            Self::Target(TargetKind::Amqp) => "publish bucket notifications to AMQP servers",
            Self::Target(TargetKind::Elasticsearch) => "publish bucket notifications to Elasticsearch",
            Self::Target(TargetKind::Kafka) => "publish bucket notifications to Kafka brokers",
            Self::Target(TargetKind::Mqtt) => "publish bucket notifications to MQTT servers",
            Self::Target(TargetKind::Mysql) => "publish bucket notifications to MySQL databases",
            Self::Target(TargetKind::Nats) => "publish bucket notifications to NATS servers",
            Self::Target(TargetKind::Nsq) => "publish bucket notifications to NSQ servers",
            Self::Target(TargetKind::Postgresql) => "publish bucket notifications to PostgreSQL databases",
            Self::Target(TargetKind::Redis) => "publish bucket notifications to Redis",
            Self::Target(TargetKind::Webhook) => "publish bucket notifications to HTTP endpoints",
            Self::Site => "name the server's region",
            Self::Api => "set how requests are answered",
        }
    }

    /// Its keys, in the order in which they are printed; those that only Kolumn has come last.
    pub fn keys(self) -> impl Iterator<Item = &'static Key> + Clone {
        let (own, shared): (&[Key], &[Key]) = match self {
            Self::Target(kind) => (others::of_kind(kind), common::OWN),
            Self::Site => (others::SITE, &[]),
            Self::Api => (others::API, &[]),
        };
        own.iter().chain(shared)
    }

    /// The key of this name.
    #[must_use]
    pub fn key(self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }

    /// The environment variables that set a key, without their prefix: the one that counts most comes first.
    ///
    /// With an identifier, `_` and the identifier follow.
    pub fn variables(self, key: &'static Key) -> impl Iterator<Item = String> {
        let stem = self.variable_stem();
        let usual = format!("{stem}{}", key.name.to_uppercase());
        let extra = key.variable.map(|name| format!("{stem}{name}"));
        extra.into_iter().chain([usual]).chain(key.old_variable.map(String::from))
    }

    /// What the names of its variables begin with, after their prefix.
    pub(super) fn variable_stem(self) -> String {
        self.name().to_uppercase() + "_"
    }

    /// `notify_kafka:primary`; without an identifier where it is the default.
    pub(super) fn with_id(self, id: &TargetId) -> String {
        if id.is_default() { self.name().into() } else { format!("{self}:{id}") }
    }
}

impl fmt::Display for Subsystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A key: what it is called and what it may be set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Key {
    /// The name in text.
    pub name: &'static str,
    /// What values it can have.
    pub value: ValueType,
    /// The value of a target that does not set it, as text; empty if there is none.
    pub default: &'static str,
    /// Whether an enabled target has to set it.
    pub is_required: bool,
    /// Who may see its value.
    pub sensitivity: Sensitivity,
    /// Whether `MinIO` does not have it.
    pub is_own: bool,
    /// What it is for, in a sentence.
    pub help: &'static str,
    /// Another end of the name of its variable, which counts more than the usual one.
    variable: Option<&'static str>,
    /// Another whole name of its variable, which counts less.
    old_variable: Option<&'static str>,
}

impl Key {
    const fn new(name: &'static str, value: ValueType, default: &'static str, help: &'static str) -> Self {
        Self {
            name,
            value,
            default,
            is_required: false,
            sensitivity: Sensitivity::Plain,
            is_own: false,
            help,
            variable: None,
            old_variable: None,
        }
    }

    const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    const fn sensitive(mut self) -> Self {
        self.sensitivity = Sensitivity::Sensitive;
        self
    }

    const fn secret(mut self) -> Self {
        self.sensitivity = Sensitivity::Secret;
        self
    }

    const fn own(mut self) -> Self {
        self.is_own = true;
        self
    }

    const fn variable(mut self, name: &'static str) -> Self {
        self.variable = Some(name);
        self
    }

    const fn old_variable(mut self, name: &'static str) -> Self {
        self.old_variable = Some(name);
        self
    }
}

/// Who may see a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sensitivity {
    /// Everybody.
    Plain,
    /// Who may read the configuration; it stands in no error and no warning.
    Sensitive,
    /// Nobody; it is only in the stored text.
    Secret,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_default_is_a_value_and_every_name_is_used_once() {
        for subsystem in Subsystem::all() {
            assert_eq!(Subsystem::by_name(subsystem.name()), Some(subsystem));
            let mut names = BTreeSet::new();
            let mut variables = BTreeSet::new();
            for key in subsystem.keys() {
                assert!(names.insert(key.name), "{subsystem} {}", key.name);
                assert!(
                    key.default.is_empty() || key.value.check(key.default).is_ok(),
                    "{subsystem} {}",
                    key.name
                );
                assert!(!key.is_required || key.default.is_empty(), "{subsystem} {}", key.name);
                assert!(!key.help.is_empty());
                for variable in subsystem.variables(key) {
                    assert!(variables.insert(variable.clone()), "{variable}");
                }
            }
        }
    }

    #[test]
    fn every_target_has_the_keys_of_all() {
        for &kind in TargetKind::ALL {
            for name in ["enable", "queue_dir", "queue_limit", "comment", "durability"] {
                assert!(Subsystem::Target(kind).key(name).is_some(), "{kind} {name}");
            }
        }
    }

    #[track_caller]
    fn check(subsystem: Subsystem, key: &str, expect: &[&str]) {
        let key = subsystem.key(key).unwrap();
        assert_eq!(subsystem.variables(key).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn variables_are_named_after_kind_and_key_with_the_exceptions_that_minio_has() {
        let kafka = Subsystem::Target(TargetKind::Kafka);
        check(kafka, "tls_skip_verify", &["NOTIFY_KAFKA_TLS_SKIP_VERIFY"]);
        check(
            kafka,
            "compression_codec",
            &["NOTIFY_KAFKA_PRODUCER_COMPRESSION_CODEC", "NOTIFY_KAFKA_COMPRESSION_CODEC"],
        );
        check(
            kafka,
            "compression_level",
            &["NOTIFY_KAFKA_PRODUCER_COMPRESSION_LEVEL", "NOTIFY_KAFKA_COMPRESSION_LEVEL"],
        );
        let amqp = Subsystem::Target(TargetKind::Amqp);
        check(
            amqp,
            "publisher_confirms",
            &["NOTIFY_AMQP_PUBLISHING_CONFIRMS", "NOTIFY_AMQP_PUBLISHER_CONFIRMS"],
        );
        check(Subsystem::Target(TargetKind::Postgresql), "table", &["NOTIFY_POSTGRES_TABLE"]);
        check(Subsystem::Site, "region", &["SITE_REGION", "REGION"]);
        check(Subsystem::Api, "sync_events", &["API_SYNC_EVENTS"]);
    }
}
