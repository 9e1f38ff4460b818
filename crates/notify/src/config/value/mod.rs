//! The types of values, and how each is read.
//!
//! Every flag is read by one function, every number by another: a value that is good for one key is good for all of its
//! type. A reason does not repeat the value; whoever reports it decides whether the value may be shown.

mod broker;
mod duration;
mod kafka;

pub(super) use self::broker::brokers;
pub use self::broker::{HostPort, ParseHostPortError};
pub(super) use self::duration::duration;
pub(crate) use self::kafka::topic;
pub use self::kafka::{ClientAuth, Codec, Mechanism, Version};
pub(super) use self::kafka::{codec, compression_level};

use std::path::{Path, PathBuf};

use super::region::is_region;

/// What values a key can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueType {
    /// `on`, `true`, `t`, `1`, `enabled`, or `off`, `false`, `f`, `0`, `disabled`, in any case.
    Flag,
    /// Any text.
    Text,
    /// Text that may itself have words of the form `name=`, as the connection strings of databases do.
    NestedText,
    /// The absolute path of a folder.
    Folder,
    /// The path of a file.
    File,
    /// A whole number from 0 to the bound.
    Count {
        /// The greatest that is accepted.
        max: u64,
    },
    /// A whole number of either sign.
    Integer,
    /// A span of time in the syntax of Go, such as `1m30s` or `250ms`.
    Duration,
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// A list of Kafka brokers, `host:port,host:port`.
    Brokers,
    /// The name of a Kafka topic.
    Topic,
    /// A mechanism of SASL: see [`Mechanism`].
    Mechanism,
    /// A number or name of [`ClientAuth`].
    ClientAuth,
    /// A version of Kafka: see [`Version`].
    Version,
    /// A compression codec: see [`Codec`].
    Codec,
    /// A region: `[a-zA-Z][a-zA-Z0-9_-]+`.
    Region,
}

impl ValueType {
    /// A word for lists of keys.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Flag => "on|off",
            Self::Text | Self::NestedText | Self::Topic | Self::Region => "string",
            Self::Folder | Self::File => "path",
            Self::Count { .. } | Self::Integer | Self::ClientAuth => "number",
            Self::Duration => "duration",
            Self::Choice(_) | Self::Mechanism | Self::Codec => "word",
            Self::Brokers => "csv",
            Self::Version => "version",
        }
    }

    /// Whether a value that is not empty is of this type, or the reason why not.
    pub(super) fn check(self, value: &str) -> Result<(), String> {
        match self {
            Self::Flag => flag(value).map(drop),
            Self::Text | Self::NestedText | Self::File => Ok(()),
            Self::Folder => folder(value).map(drop),
            Self::Count { max } => count(value, max).map(drop),
            Self::Integer => integer(value).map(drop),
            Self::Duration => duration(value).map(drop),
            Self::Choice(words) => choice(value, words).map(drop),
            Self::Brokers => brokers(value).map(drop),
            Self::Topic => kafka::topic(value).map(drop),
            Self::Mechanism => value.parse::<Mechanism>().map(drop),
            Self::ClientAuth => value.parse::<ClientAuth>().map(drop),
            Self::Version => value.parse::<Version>().map(drop),
            Self::Codec => kafka::codec(value).map(drop),
            Self::Region => region(value).map(drop),
        }
    }
}

/// `1 t true on enabled` and `0 f false off disabled`, in any case.
pub(super) fn flag(value: &str) -> Result<bool, String> {
    let is_any = |words: [&str; 5]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    if is_any(["on", "true", "1", "t", "enabled"]) {
        Ok(true)
    } else if is_any(["off", "false", "0", "f", "disabled"]) {
        Ok(false)
    } else {
        Err("is neither `on` nor `off`".into())
    }
}

pub(super) fn count(value: &str, max: u64) -> Result<u64, String> {
    match value.parse::<u64>() {
        Ok(number) if number <= max => Ok(number),
        _ => Err(format!("is not a whole number from 0 to {max}")),
    }
}

pub(super) fn integer(value: &str) -> Result<i32, String> {
    value.parse().map_err(|_| "is not a whole number".into())
}

/// The word of the list that is meant.
pub(super) fn choice(value: &str, words: &'static [&'static str]) -> Result<&'static str, String> {
    let found = words.iter().find(|word| word.eq_ignore_ascii_case(value));
    found.copied().ok_or_else(|| format!("is none of `{}`", words.join("`, `")))
}

pub(super) fn folder(value: &str) -> Result<PathBuf, String> {
    if Path::new(value).is_absolute() { Ok(value.into()) } else { Err("is not an absolute path".into()) }
}

pub(super) fn region(value: &str) -> Result<String, String> {
    if is_region(value) {
        Ok(value.into())
    } else {
        Err("is no region: two or more letters, digits, `-` and `_`, beginning with a letter".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_flag_is_read() {
        for value in
            ["1", "t", "T", "true", "TRUE", "True", "on", "ON", "On", "enabled", "ENABLED", "Enabled"]
        {
            assert_eq!(flag(value), Ok(true), "{value}");
        }
        for value in ["0", "f", "F", "false", "FALSE", "False", "off", "OFF", "Off", "disabled", "Disabled"] {
            assert_eq!(flag(value), Ok(false), "{value}");
        }
        for value in ["", "yes", "no", "y", "2", "o n", "\"on\"", "on,", "truetrue"] {
            assert!(flag(value).is_err(), "{value}");
        }
    }

    #[test]
    fn numbers_have_bounds_and_nothing_around_them() {
        assert_eq!(count("0", 10), Ok(0));
        assert_eq!(count("18446744073709551615", u64::MAX), Ok(u64::MAX));
        for value in ["", "-1", "11", "1.0", " 1", "0x1", "1e1", "18446744073709551616"] {
            assert!(count(value, 10).is_err(), "{value}");
        }
        assert_eq!(integer("-3"), Ok(-3));
        assert!(integer("3k").is_err());
    }

    #[test]
    fn a_word_is_one_of_a_list_and_a_folder_is_absolute() {
        assert_eq!(choice("Access", &["namespace", "access"]), Ok("access"));
        assert_eq!(choice("", &["namespace", "access"]), Err("is none of `namespace`, `access`".into()));
        assert_eq!(folder("/var/queue"), Ok("/var/queue".into()));
        for value in ["queue", "./queue", "~/queue", ""] {
            assert!(folder(value).is_err(), "{value}");
        }
    }
}
