//! A topic's settings: Kafka's keys, parsed once into what the store acts on.
//!
//! A key is acting (it changes what the store does), stored (accepted within its range, shown, without effect on a store
//! of one copy) or unknown (refused by name). What was not given has Kafka's default.

use std::collections::BTreeMap;

use crate::error::ConfigError;

/// Who gives a record its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the format has one bit for it")]
pub enum TimestampKind {
    /// The producer, within the topic's bounds.
    CreateTime,
    /// The store, at append.
    LogAppendTime,
}

/// The settings of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicConfig {
    given: BTreeMap<String, String>,
    max_message_bytes: usize,
    timestamp_kind: TimestampKind,
    before_max_ms: i64,
    after_max_ms: i64,
    retention_ms: Option<i64>,
    retention_bytes: Option<u64>,
    deletes: bool,
    compacts: bool,
}

impl Default for TopicConfig {
    fn default() -> Self {
        Self {
            given: BTreeMap::new(),
            max_message_bytes: 1_048_588,
            timestamp_kind: TimestampKind::CreateTime,
            before_max_ms: i64::MAX,
            after_max_ms: 3_600_000,
            retention_ms: Some(604_800_000),
            retention_bytes: None,
            deletes: true,
            compacts: false,
        }
    }
}

impl TopicConfig {
    /// Parses pairs as a client sends them; the last one of a key wins.
    ///
    /// # Errors
    /// The first key that is unknown, or whose value is out of its range.
    ///
    /// ```
    /// use kolumn_topic_store::TopicConfig;
    /// let config = TopicConfig::parse([("retention.ms", "1000")])?;
    /// assert_eq!(config.retention_ms(), Some(1000));
    /// let error = TopicConfig::parse([("retention.ms", "soon")]).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid value `soon` for `retention.ms`: not a whole number");
    /// # Ok::<(), kolumn_topic_store::ConfigError>(())
    /// ```
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for (key, value) in pairs {
            config.set(key, value)?;
            config.given.insert(key.to_owned(), value.trim().to_owned());
        }
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let rule = KEYS
            .iter()
            .find(|rule| rule.name == key)
            .ok_or_else(|| ConfigError::new(key, value, "there is no topic setting of this name"))?;
        let trimmed = value.trim();
        match rule.shape {
            Shape::Number { min, max } => self.set_number(key, number(key, trimmed, min, max)?),
            Shape::Words(words) => one_of(key, trimmed, words)?,
            Shape::Policy => self.set_policy(trimmed)?,
            Shape::Ratio => ratio(key, trimmed)?,
            Shape::Text => {}
        }
        if key == "message.timestamp.type" {
            let appended = trimmed == "LogAppendTime";
            self.timestamp_kind =
                if appended { TimestampKind::LogAppendTime } else { TimestampKind::CreateTime };
        }
        Ok(())
    }

    fn set_number(&mut self, key: &str, value: i64) {
        match key {
            "max.message.bytes" => self.max_message_bytes = usize::try_from(value).unwrap_or(0),
            "message.timestamp.before.max.ms" => self.before_max_ms = value,
            "message.timestamp.after.max.ms" => self.after_max_ms = value,
            "retention.ms" => self.retention_ms = (value >= 0).then_some(value),
            "retention.bytes" => self.retention_bytes = u64::try_from(value).ok(),
            _ => {}
        }
    }

    fn set_policy(&mut self, value: &str) -> Result<(), ConfigError> {
        let (mut deletes, mut compacts) = (false, false);
        for word in value.split(',').map(str::trim) {
            match word {
                "delete" => deletes = true,
                "compact" => compacts = true,
                _ => {
                    return Err(ConfigError::new(
                        "cleanup.policy",
                        value,
                        "expected `delete`, `compact` or both",
                    ));
                }
            }
        }
        (self.deletes, self.compacts) = (deletes, compacts);
        Ok(())
    }

    /// Largest batch that is accepted, in bytes.
    #[must_use]
    pub const fn max_message_bytes(&self) -> usize {
        self.max_message_bytes
    }

    /// Who gives records their timestamps.
    #[must_use]
    pub const fn timestamp_kind(&self) -> TimestampKind {
        self.timestamp_kind
    }

    /// How far a producer's timestamp may lie before the store's clock.
    #[must_use]
    pub const fn before_max_ms(&self) -> i64 {
        self.before_max_ms
    }

    /// How far a producer's timestamp may lie after the store's clock.
    #[must_use]
    pub const fn after_max_ms(&self) -> i64 {
        self.after_max_ms
    }

    /// Age after which batches are deleted; `None`: never.
    #[must_use]
    pub const fn retention_ms(&self) -> Option<i64> {
        self.retention_ms
    }

    /// Bytes of a partition above which its oldest batches are deleted; `None`: no limit.
    #[must_use]
    pub const fn retention_bytes(&self) -> Option<u64> {
        self.retention_bytes
    }

    /// Whether old batches are deleted (`cleanup.policy` has `delete`).
    #[must_use]
    pub const fn deletes(&self) -> bool {
        self.deletes
    }

    /// Whether the topic is keyed (`cleanup.policy` has `compact`): records without a key are refused.
    #[must_use]
    pub const fn compacts(&self) -> bool {
        self.compacts
    }

    /// The pairs that were given, sorted by key.
    pub fn given(&self) -> impl Iterator<Item = (&str, &str)> {
        self.given.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Every setting for display: key, value, and whether the value is the default. Sorted by key.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        KEYS.iter().map(|rule| match self.given.get(rule.name) {
            Some(value) => (rule.name, value.as_str(), false),
            None => (rule.name, rule.default, true),
        })
    }
}

fn number(key: &str, value: &str, min: i64, max: i64) -> Result<i64, ConfigError> {
    let parsed: i64 = value.parse().map_err(|_| ConfigError::new(key, value, "not a whole number"))?;
    if parsed < min || parsed > max {
        return Err(ConfigError::new(key, value, format!("expected {min} to {max}")));
    }
    Ok(parsed)
}

fn one_of(key: &str, value: &str, words: &[&str]) -> Result<(), ConfigError> {
    if words.contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(key, value, format!("expected {}", words.join(" or "))))
}

fn ratio(key: &str, value: &str) -> Result<(), ConfigError> {
    match value.parse::<f64>() {
        Ok(parsed) if (0.0..=1.0).contains(&parsed) => Ok(()),
        _ => Err(ConfigError::new(key, value, "expected a number from 0 to 1")),
    }
}

struct Key {
    name: &'static str,
    default: &'static str,
    shape: Shape,
}

enum Shape {
    Number { min: i64, max: i64 },
    Words(&'static [&'static str]),
    Policy,
    Ratio,
    Text,
}

const fn key(name: &'static str, default: &'static str, shape: Shape) -> Key {
    Key { name, default, shape }
}

const INT: i64 = i32::MAX as i64;
const FLAG: Shape = Shape::Words(&["false", "true"]);
const OFF: Shape = Shape::Words(&["false"]);
const NOT_NEGATIVE: Shape = Shape::Number { min: 0, max: i64::MAX };
const OR_UNLIMITED: Shape = Shape::Number { min: -1, max: i64::MAX };

/// Sorted by name, as they are shown.
const KEYS: &[Key] = &[
    key("cleanup.policy", "delete", Shape::Policy),
    key("compression.gzip.level", "-1", Shape::Number { min: -1, max: 9 }),
    key("compression.lz4.level", "9", Shape::Number { min: 1, max: 17 }),
    key("compression.type", "producer", Shape::Words(&["producer"])),
    key("compression.zstd.level", "3", Shape::Number { min: -131_072, max: 22 }),
    key("delete.retention.ms", "86400000", NOT_NEGATIVE),
    key("file.delete.delay.ms", "60000", NOT_NEGATIVE),
    key("flush.messages", "9223372036854775807", Shape::Number { min: 1, max: i64::MAX }),
    key("flush.ms", "9223372036854775807", NOT_NEGATIVE),
    key("follower.replication.throttled.replicas", "", Shape::Text),
    key("index.interval.bytes", "4096", Shape::Number { min: 0, max: INT }),
    key("leader.replication.throttled.replicas", "", Shape::Text),
    key("local.retention.bytes", "-2", Shape::Number { min: -2, max: i64::MAX }),
    key("local.retention.ms", "-2", Shape::Number { min: -2, max: i64::MAX }),
    key("max.compaction.lag.ms", "9223372036854775807", Shape::Number { min: 1, max: i64::MAX }),
    key("max.message.bytes", "1048588", Shape::Number { min: 0, max: INT }),
    key("message.timestamp.after.max.ms", "3600000", NOT_NEGATIVE),
    key("message.timestamp.before.max.ms", "9223372036854775807", NOT_NEGATIVE),
    key("message.timestamp.type", "CreateTime", Shape::Words(&["CreateTime", "LogAppendTime"])),
    key("min.cleanable.dirty.ratio", "0.5", Shape::Ratio),
    key("min.compaction.lag.ms", "0", NOT_NEGATIVE),
    key("min.insync.replicas", "1", Shape::Number { min: 1, max: 1 }),
    key("preallocate", "false", FLAG),
    key("remote.log.copy.disable", "false", FLAG),
    key("remote.log.delete.on.disable", "false", FLAG),
    key("remote.storage.enable", "false", OFF),
    key("retention.bytes", "-1", OR_UNLIMITED),
    key("retention.ms", "604800000", OR_UNLIMITED),
    key("segment.bytes", "1073741824", Shape::Number { min: 14, max: INT }),
    key("segment.index.bytes", "10485760", Shape::Number { min: 4, max: INT }),
    key("segment.jitter.ms", "0", NOT_NEGATIVE),
    key("segment.ms", "604800000", Shape::Number { min: 1, max: i64::MAX }),
    key("unclean.leader.election.enable", "false", FLAG),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(key: &str, value: &str) {
        let error = TopicConfig::parse([(key, value)]).expect_err("refused");
        assert_eq!((error.key(), error.value()), (key, value));
    }

    #[test]
    fn every_default_is_legal_and_parses_to_the_default_config() {
        let pairs: Vec<_> = KEYS.iter().map(|rule| (rule.name, rule.default)).collect();
        let parsed = TopicConfig::parse(pairs).expect("defaults are legal");
        assert_eq!(TopicConfig { given: BTreeMap::new(), ..parsed }, TopicConfig::default());
        assert!(KEYS.is_sorted_by_key(|rule| rule.name));
    }

    #[test]
    fn what_is_unknown_or_out_of_range_is_refused_by_name() {
        refused("retention.mss", "1");
        refused("retention.ms", "-2");
        refused("retention.ms", "");
        refused("compression.type", "zstd");
        refused("cleanup.policy", "");
        refused("cleanup.policy", "delete,shred");
        refused("min.insync.replicas", "2");
        refused("message.timestamp.type", "createtime");
        refused("min.cleanable.dirty.ratio", "NaN");
        refused("max.message.bytes", "2147483648");
    }

    #[test]
    fn policies_combine_and_minus_one_means_no_limit() {
        let config = TopicConfig::parse([
            ("cleanup.policy", "compact, delete"),
            ("retention.ms", "-1"),
            ("retention.bytes", "5"),
        ])
        .expect("legal");
        assert!(config.deletes() && config.compacts());
        assert_eq!((config.retention_ms(), config.retention_bytes()), (None, Some(5)));
        assert_eq!(config.pairs().filter(|(_, _, default)| !default).count(), 3);
    }
}
