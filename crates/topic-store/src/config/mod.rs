//! A topic's settings: Kafka's keys, parsed once into what the store acts on.
//!
//! A key is acting (it changes what the store does), stored (accepted within its range, shown, without effect on a store
//! of one copy) or unknown (refused by name). What was not given has Kafka's default.

mod keys;

use std::collections::BTreeMap;

use crate::error::ConfigError;

pub use keys::{ConfigKey, ConfigType};
use keys::{KEYS, Rule, find};

/// Who gives a record its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the format has one bit for it")]
pub enum TimestampKind {
    /// The producer, within the topic's bounds.
    CreateTime,
    /// The store, at append.
    LogAppendTime,
}

/// A change to a topic's settings; see [`TopicConfig::with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol knows these four")]
pub enum ConfigChange<'a> {
    /// The key gets this value.
    Set {
        /// The key.
        key: &'a str,
        /// Its value.
        value: &'a str,
    },
    /// The key gets its default.
    Unset {
        /// The key.
        key: &'a str,
    },
    /// Words are added to a list.
    Append {
        /// The list's key.
        key: &'a str,
        /// The words, with commas between them. One that is there already is not repeated.
        value: &'a str,
    },
    /// Words are taken from a list.
    Subtract {
        /// The list's key.
        key: &'a str,
        /// The words, with commas between them. One that is not there is not missed.
        value: &'a str,
    },
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

    /// These settings after some changes, which take effect in their order and are judged as a whole.
    ///
    /// # Errors
    /// The key that is unknown, no list where it has to be one, or whose value is out of its range then.
    ///
    /// ```
    /// use kolumn_topic_store::{ConfigChange, TopicConfig};
    /// let config = TopicConfig::parse([("retention.ms", "1000")])?;
    /// let config = config.with([
    ///     ConfigChange::Unset { key: "retention.ms" },
    ///     ConfigChange::Append { key: "cleanup.policy", value: "compact" },
    /// ])?;
    /// assert_eq!(config.given().collect::<Vec<_>>(), [("cleanup.policy", "delete,compact")]);
    /// # Ok::<(), kolumn_topic_store::ConfigError>(())
    /// ```
    pub fn with<'a>(&self, changes: impl IntoIterator<Item = ConfigChange<'a>>) -> Result<Self, ConfigError> {
        let mut given = self.given.clone();
        for change in changes {
            match change {
                ConfigChange::Set { key, value } => {
                    given.insert(key.to_owned(), value.to_owned());
                }
                ConfigChange::Unset { key } => {
                    known(key, "")?;
                    given.remove(key);
                }
                ConfigChange::Append { key, value } => {
                    let words = list_words(&given, key, value)?;
                    let added = words_of(value).filter(|word| !words.contains(word));
                    let joined = words.iter().copied().chain(added).collect::<Vec<_>>().join(",");
                    given.insert(key.to_owned(), joined);
                }
                ConfigChange::Subtract { key, value } => {
                    let mut words = list_words(&given, key, value)?;
                    words.retain(|word| !words_of(value).any(|gone| gone == *word));
                    let joined = words.join(",");
                    given.insert(key.to_owned(), joined);
                }
            }
        }
        Self::parse(given.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let found = known(key, value)?;
        if value.len() > VALUE_LEN_MAX {
            let text = format!("expected at most {VALUE_LEN_MAX} bytes, not {}", value.len());
            return Err(ConfigError::new(key, "...", text));
        }
        let trimmed = value.trim();
        match found.rule {
            Rule::Number { min, max } => self.set_number(key, number(key, trimmed, min, max)?),
            Rule::Words(words) => one_of(key, trimmed, words)?,
            Rule::Policy => self.set_policy(trimmed)?,
            Rule::Ratio => ratio(key, trimmed)?,
            Rule::Text => {}
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

    /// Every setting that there is, sorted by name.
    pub fn keys() -> impl Iterator<Item = &'static ConfigKey> {
        KEYS.iter()
    }

    /// The value of a setting: the one given or the default; `None` if there is no such setting.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(String::as_str).or_else(|| find(key).map(ConfigKey::default_value))
    }

    /// Whether the setting was given; else it has its default.
    #[must_use]
    pub fn is_given(&self, key: &str) -> bool {
        self.given.contains_key(key)
    }

    /// Every setting for display: key, value, and whether the value is the default. Sorted by key.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        KEYS.iter().map(|key| match self.given.get(key.name()) {
            Some(value) => (key.name(), value.as_str(), false),
            None => (key.name(), key.default_value(), true),
        })
    }
}

fn known(key: &str, value: &str) -> Result<&'static ConfigKey, ConfigError> {
    find(key).ok_or_else(|| ConfigError::unknown(key, value))
}

/// The words of a list as it stands.
fn list_words<'g>(
    given: &'g BTreeMap<String, String>,
    key: &str,
    value: &str,
) -> Result<Vec<&'g str>, ConfigError> {
    let found = known(key, value)?;
    if found.config_type() != ConfigType::List {
        return Err(ConfigError::new(key, value, "only a list can be added to or taken from"));
    }
    Ok(words_of(given.get(key).map_or(found.default_value(), String::as_str)).collect())
}

fn words_of(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn number(key: &str, value: &str, min: i64, max: i64) -> Result<i64, ConfigError> {
    let parsed: i64 = value.parse().map_err(|_| ConfigError::new(key, value, "not a whole number"))?;
    if parsed < min || parsed > max {
        let range = if min == max { format!("expected {min}") } else { format!("expected {min} to {max}") };
        return Err(ConfigError::new(key, value, range));
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

/// What fits into our formats.
const VALUE_LEN_MAX: usize = u16::MAX as usize;

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
        let pairs: Vec<_> = KEYS.iter().map(|key| (key.name(), key.default_value())).collect();
        let parsed = TopicConfig::parse(pairs).expect("defaults are legal");
        assert_eq!(TopicConfig { given: BTreeMap::new(), ..parsed }, TopicConfig::default());
        assert!(KEYS.is_sorted_by_key(ConfigKey::name));
    }

    #[test]
    fn what_is_unknown_or_out_of_range_is_refused_by_name() {
        let text = |key, value| TopicConfig::parse([(key, value)]).expect_err("refused").to_string();
        assert_eq!(text("retention.hour", "1"), "there is no topic setting `retention.hour`");
        assert_eq!(
            text("min.insync.replicas", "2"),
            "invalid value `2` for `min.insync.replicas`: expected 1"
        );
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

    #[track_caller]
    fn check(given: &[(&str, &str)], changes: &[ConfigChange<'_>], expect: Result<&[(&str, &str)], &str>) {
        let config = TopicConfig::parse(given.iter().copied()).expect("legal");
        let outcome = config.with(changes.iter().copied());
        let pairs = outcome.as_ref().map(|config| config.given().collect::<Vec<_>>());
        match (pairs, expect) {
            (Ok(pairs), Ok(expect)) => assert_eq!(pairs, expect),
            (Err(error), Err(key)) => assert_eq!(error.key(), key),
            (outcome, _) => panic!("{outcome:?} instead of {expect:?}"),
        }
    }

    #[test]
    fn changes_take_effect_in_their_order_and_leave_the_rest() {
        use ConfigChange::{Set, Unset};
        let given = [("retention.bytes", "5"), ("retention.ms", "7")];
        let retention_ms = |value| Set { key: "retention.ms", value };
        check(&given, &[], Ok(&given));
        check(&given, &[retention_ms("9")], Ok(&[("retention.bytes", "5"), ("retention.ms", "9")]));
        check(&given, &[retention_ms("9"), Unset { key: "retention.ms" }], Ok(&[("retention.bytes", "5")]));
        check(&given, &[retention_ms("8"), retention_ms("-2")], Err("retention.ms"));
        check(&given, &[retention_ms("-2"), retention_ms("8")], Ok(&[given[0], ("retention.ms", "8")]));
        check(&given, &[Set { key: "no.such.key", value: "1" }], Err("no.such.key"));
        check(&given, &[Unset { key: "no.such.key" }], Err("no.such.key"));
        check(&given, &[Unset { key: "segment.ms" }], Ok(&given));
    }

    #[test]
    fn words_are_added_to_lists_once_and_taken_from_them() {
        use ConfigChange::{Append, Subtract};
        let add = |value| Append { key: "cleanup.policy", value };
        let take = |value| Subtract { key: "cleanup.policy", value };
        check(&[], &[add("compact")], Ok(&[("cleanup.policy", "delete,compact")]));
        check(&[], &[add("delete, compact")], Ok(&[("cleanup.policy", "delete,compact")]));
        let both = [("cleanup.policy", "compact, delete")];
        check(&both, &[take("delete")], Ok(&[("cleanup.policy", "compact")]));
        check(&both, &[take("shred")], Ok(&[("cleanup.policy", "compact,delete")]));
        check(&both, &[take("delete,compact")], Err("cleanup.policy"));
        check(&both, &[add("shred")], Err("cleanup.policy"));
        let replicas = "leader.replication.throttled.replicas";
        let added = Append { key: replicas, value: "0:1,1:1" };
        check(&[], &[added, Subtract { key: replicas, value: "0:1" }], Ok(&[(replicas, "1:1")]));
        check(&[], &[Append { key: "retention.ms", value: "1" }], Err("retention.ms"));
        check(&[], &[Subtract { key: "retention.ms", value: "1" }], Err("retention.ms"));
    }

    #[test]
    fn a_value_that_the_formats_could_not_hold_is_refused() {
        let key = "leader.replication.throttled.replicas";
        let longest = "x".repeat(65_535);
        assert!(TopicConfig::parse([(key, longest.as_str())]).is_ok());
        let config = TopicConfig::parse([(key, longest.as_str())]).expect("legal");
        let error = config.with([ConfigChange::Append { key, value: "y" }]).expect_err("too long");
        assert_eq!(error.key(), key);
        assert!(error.to_string().len() < 200, "the value is not repeated");
    }

    #[test]
    fn every_key_is_described_and_has_a_value() {
        let config = TopicConfig::parse([("retention.ms", "7")]).expect("legal");
        for key in TopicConfig::keys() {
            assert!(key.documentation().ends_with('.'), "{}", key.name());
            let is_list = key.config_type() == ConfigType::List;
            assert_eq!(matches!(key.rule, Rule::Policy | Rule::Text), is_list, "{}", key.name());
            assert_eq!(config.is_given(key.name()), key.name() == "retention.ms");
        }
        assert_eq!(
            (config.value("retention.ms"), config.value("segment.ms")),
            (Some("7"), Some("604800000"))
        );
        assert_eq!(config.value("no.such.key"), None);
    }
}
