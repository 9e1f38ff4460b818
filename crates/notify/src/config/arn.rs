//! Names of targets: their kinds, their identifiers and their ARNs.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::region::is_region;

/// The name of a target in bucket rules: `arn:minio:sqs:<region>:<id>:<kind>`.
///
/// ```
/// use kolumn_notify::config::{Arn, TargetKind};
///
/// let arn: Arn = "arn:minio:sqs::PRIMARY:kafka".parse()?;
/// assert_eq!(arn.kind, TargetKind::Kafka);
/// assert_eq!(arn.to_string(), "arn:minio:sqs::primary:kafka");
/// # Ok::<(), kolumn_notify::config::ParseArnError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Arn {
    /// The server's region; empty if none is configured.
    pub region: String,
    /// Which target of its kind.
    pub id: TargetId,
    /// What the target is.
    pub kind: TargetKind,
}

impl Arn {
    /// The ARN of a target of a server in `region`, which may be empty.
    #[must_use]
    pub fn new(region: impl Into<String>, id: TargetId, kind: TargetKind) -> Self {
        Self { region: region.into(), id, kind }
    }
}

impl fmt::Display for Arn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}:{}:{}", self.region, self.id, self.kind)
    }
}

/// `arn:minio:sqs:<region>:<id>:<kind>`: exactly six fields. The id is taken in any case; the rest as it is printed.
impl FromStr for Arn {
    type Err = ParseArnError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix(PREFIX).ok_or(ParseArnError::Prefix)?;
        let mut fields = rest.split(':');
        let (Some(region), Some(id), Some(kind), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(ParseArnError::Fields);
        };
        if !region.is_empty() && !is_region(region) {
            return Err(ParseArnError::Region);
        }
        Ok(Self::new(region, id.parse()?, kind.parse()?))
    }
}

/// Why a text is not the ARN of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseArnError {
    /// It is the name of something else.
    #[error("an ARN of a target begins with `{PREFIX}`")]
    Prefix,
    /// It has too few or too many fields.
    #[error("an ARN has the form `{PREFIX}<region>:<id>:<kind>`")]
    Fields,
    /// The region has characters that no region has.
    #[error("a region is letters, digits, `-` and `_`, and begins with a letter")]
    Region,
    /// The identifier could not be that of a target.
    #[error(transparent)]
    Id(#[from] ParseTargetIdError),
    /// There are no targets of that kind.
    #[error(transparent)]
    Kind(#[from] UnknownTargetKind),
}

/// Tells apart the targets of one kind. Equal whatever the case in which it was written; printed in lower case.
///
/// It is a field of an ARN and a part of a folder's name, so it has no `:`, `/`, `\`, blanks or control characters; it
/// is a word of the configuration's text, so it has no `=`, `,` or quotes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TargetId(Arc<str>);

impl TargetId {
    /// The most bytes that an identifier has: it is a part of a folder's name.
    pub const LEN_MAX: usize = 128;

    /// The target that is configured without an identifier, `_`.
    #[must_use]
    pub fn default_target() -> Self {
        Self(DEFAULT_ID.into())
    }

    /// Whether this is the target that is configured without an identifier.
    #[must_use]
    pub fn is_default(&self) -> bool {
        &*self.0 == DEFAULT_ID
    }

    /// The identifier in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TargetId({})", self.0)
    }
}

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The default target first, then by text: the order in which configuration is printed.
impl Ord for TargetId {
    fn cmp(&self, other: &Self) -> Ordering {
        (!self.is_default(), &self.0).cmp(&(!other.is_default(), &other.0))
    }
}

impl PartialOrd for TargetId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for TargetId {
    type Err = ParseTargetIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(ParseTargetIdError::Empty);
        }
        if text.len() > Self::LEN_MAX {
            return Err(ParseTargetIdError::TooLong);
        }
        if text == "." || text == ".." {
            return Err(ParseTargetIdError::Dots);
        }
        let refused = |c: &char| c.is_whitespace() || c.is_control() || ":/\\=,\"'`".contains(*c);
        if let Some(c) = text.chars().find(refused) {
            return Err(ParseTargetIdError::Character(c));
        }
        Ok(Self(text.to_lowercase().into()))
    }
}

/// Why a text is not the identifier of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseTargetIdError {
    /// It has no characters.
    #[error("the identifier of a target is empty")]
    Empty,
    /// It has more than [`TargetId::LEN_MAX`] bytes.
    #[error("the identifier of a target has more than {} bytes", TargetId::LEN_MAX)]
    TooLong,
    /// It is the name of a folder that every folder has.
    #[error("the identifier of a target is neither `.` nor `..`")]
    Dots,
    /// It has a character that would end it where it is used.
    #[error("the identifier of a target cannot have {0:?}")]
    Character(char),
}

/// What a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TargetKind {
    /// An exchange of an AMQP 0-9-1 server.
    Amqp,
    /// An index of Elasticsearch.
    Elasticsearch,
    /// A topic of Kafka.
    Kafka,
    /// A topic of an MQTT server.
    Mqtt,
    /// A table of `MySQL`.
    Mysql,
    /// A subject of NATS.
    Nats,
    /// A topic of NSQ.
    Nsq,
    /// A table of PostgreSQL.
    Postgresql,
    /// A key of Redis.
    Redis,
    /// An HTTP endpoint.
    Webhook,
}

impl TargetKind {
    /// All kinds, in the order of their names.
    pub const ALL: &'static [Self] = &[
        Self::Amqp,
        Self::Elasticsearch,
        Self::Kafka,
        Self::Mqtt,
        Self::Mysql,
        Self::Nats,
        Self::Nsq,
        Self::Postgresql,
        Self::Redis,
        Self::Webhook,
    ];

    /// The last field of an ARN.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amqp => "amqp",
            Self::Elasticsearch => "elasticsearch",
            Self::Kafka => "kafka",
            Self::Mqtt => "mqtt",
            Self::Mysql => "mysql",
            Self::Nats => "nats",
            Self::Nsq => "nsq",
            Self::Postgresql => "postgresql",
            Self::Redis => "redis",
            Self::Webhook => "webhook",
        }
    }

    /// The name in configuration: `notify_` and the kind, but `notify_postgres`.
    #[must_use]
    pub fn subsystem(self) -> &'static str {
        match self {
            Self::Amqp => "notify_amqp",
            Self::Elasticsearch => "notify_elasticsearch",
            Self::Kafka => "notify_kafka",
            Self::Mqtt => "notify_mqtt",
            Self::Mysql => "notify_mysql",
            Self::Nats => "notify_nats",
            Self::Nsq => "notify_nsq",
            Self::Postgresql => "notify_postgres",
            Self::Redis => "notify_redis",
            Self::Webhook => "notify_webhook",
        }
    }
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for TargetKind {
    type Err = UnknownTargetKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text).ok_or(UnknownTargetKind)
    }
}

/// The text names no kind of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the kinds of targets are amqp, elasticsearch, kafka, mqtt, mysql, nats, nsq, postgresql, redis and webhook"
)]
#[non_exhaustive]
pub struct UnknownTargetKind;

const PREFIX: &str = "arn:minio:sqs:";
const DEFAULT_ID: &str = "_";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<&str, ParseArnError>) {
        let printed = text.parse::<Arn>().map(|arn| arn.to_string());
        assert_eq!(printed.as_deref(), expect.as_ref().copied(), "{text}");
        if let Ok(printed) = printed {
            assert_eq!(printed.parse::<Arn>().unwrap(), text.parse().unwrap());
        }
    }

    #[test]
    fn an_arn_has_six_fields_and_prints_as_it_was_read_but_for_the_ids_case() {
        check("arn:minio:sqs::primary:kafka", Ok("arn:minio:sqs::primary:kafka"));
        check("arn:minio:sqs::PRIMARY:kafka", Ok("arn:minio:sqs::primary:kafka"));
        check("arn:minio:sqs:eu-central-1:_:postgresql", Ok("arn:minio:sqs:eu-central-1:_:postgresql"));
        check("arn:aws:sqs:eu-central-1:1:q", Err(ParseArnError::Prefix));
        check("arn:minio:sqs::primary", Err(ParseArnError::Fields));
        check("arn:minio:sqs::primary:kafka:x", Err(ParseArnError::Fields));
        check("arn:minio:sqs:9:primary:kafka", Err(ParseArnError::Region));
        check("arn:minio:sqs:::kafka", Err(ParseTargetIdError::Empty.into()));
        check("arn:minio:sqs::primary:", Err(UnknownTargetKind.into()));
        check("arn:minio:sqs::primary:postgres", Err(UnknownTargetKind.into()));
        check("arn:minio:sqs::a b:kafka", Err(ParseTargetIdError::Character(' ').into()));
    }

    #[test]
    fn an_identifier_is_one_word_that_can_name_a_folder() {
        let parse = str::parse::<TargetId>;
        assert_eq!(parse("Eu_Main-1.x").unwrap().as_str(), "eu_main-1.x");
        assert_eq!(parse("_").unwrap(), TargetId::default_target());
        for c in [':', '/', '\\', ' ', '\t', '\n', '\0', '=', ',', '"', '\''] {
            assert_eq!(parse(&format!("a{c}b")), Err(ParseTargetIdError::Character(c)));
        }
        assert_eq!(parse(".."), Err(ParseTargetIdError::Dots));
        assert!(parse(&"x".repeat(TargetId::LEN_MAX)).is_ok());
        assert_eq!(parse(&"x".repeat(TargetId::LEN_MAX + 1)), Err(ParseTargetIdError::TooLong));
    }

    #[test]
    fn the_default_target_comes_first() {
        let mut ids: Vec<TargetId> = ["b", "_", "1", "A"].map(|id| id.parse().unwrap()).to_vec();
        ids.sort();
        assert_eq!(ids.iter().map(TargetId::as_str).collect::<Vec<_>>(), ["_", "1", "a", "b"]);
    }

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        for &kind in TargetKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert!(kind.subsystem().starts_with("notify_"));
        }
    }
}
