//! Settings as rows of name, value and source: what `DescribeConfigs` and `CreateTopics` show.

use kolumn_kafka_wire::Str;
use kolumn_kafka_wire::messages::create_topics_response::CreatableTopicConfigs;
use kolumn_kafka_wire::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsSynonym,
};
use kolumn_topic_store::{ConfigKey, ConfigType, TopicConfig};

/// One setting with its value.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) value: Str<'static>,
    pub(super) kind: Kind,
    pub(super) source: Source,
    /// The setting of the broker that gives the default, and the default.
    pub(super) default: Option<(&'static str, Str<'static>)>,
    pub(super) documentation: &'static str,
}

/// Where a value comes from, as Kafka numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Source(i8);

impl Source {
    pub(super) const TOPIC: Self = Self(1);
    /// Given to the broker when it was started; nobody changes it while it runs.
    pub(super) const STATIC_BROKER: Self = Self(4);
    pub(super) const DEFAULT: Self = Self(5);
}

/// What values look like, as Kafka numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind(i8);

impl Kind {
    const UNKNOWN: Self = Self(0);
    pub(super) const BOOLEAN: Self = Self(1);
    pub(super) const STRING: Self = Self(2);
    pub(super) const INT: Self = Self(3);
    pub(super) const SHORT: Self = Self(4);
    pub(super) const LONG: Self = Self(5);
    const DOUBLE: Self = Self(6);
    const LIST: Self = Self(7);

    pub(super) const fn of(config_type: ConfigType) -> Self {
        match config_type {
            ConfigType::Boolean => Self::BOOLEAN,
            ConfigType::String => Self::STRING,
            ConfigType::Int => Self::INT,
            ConfigType::Long => Self::LONG,
            ConfigType::Double => Self::DOUBLE,
            ConfigType::List => Self::LIST,
            // Types that a later version of the store may have.
            _ => Self::UNKNOWN,
        }
    }
}

/// What is shown of a row besides its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Detail {
    pub(super) read_only: bool,
    pub(super) synonyms: bool,
    pub(super) documentation: bool,
}

/// All settings of a topic, sorted by name.
pub(super) fn of_topic(config: &TopicConfig) -> impl Iterator<Item = Row> {
    TopicConfig::keys().map(|key| topic_row(key, config))
}

fn topic_row(key: &'static ConfigKey, config: &TopicConfig) -> Row {
    let default = Str::from_static(key.default_value());
    let given = if config.is_given(key.name()) { config.value(key.name()) } else { None };
    Row {
        name: key.name(),
        value: given.map_or_else(|| default.clone(), |value| Str::from(value.to_owned())),
        kind: Kind::of(key.config_type()),
        source: if given.is_some() { Source::TOPIC } else { Source::DEFAULT },
        default: key.synonym().map(|synonym| (synonym, default)),
        documentation: key.documentation(),
    }
}

impl Row {
    pub(super) fn describe(self, detail: Detail) -> DescribeConfigsResourceResult<'static> {
        DescribeConfigsResourceResult {
            name: Str::from_static(self.name),
            read_only: detail.read_only,
            config_source: self.source.0,
            synonyms: if detail.synonyms { self.synonyms().into() } else { [].as_slice().into() },
            config_type: self.kind.0,
            documentation: detail.documentation.then(|| Str::from_static(self.documentation)),
            value: Some(self.value),
            ..DescribeConfigsResourceResult::default()
        }
    }

    pub(super) fn created(self) -> CreatableTopicConfigs<'static> {
        CreatableTopicConfigs {
            name: Str::from_static(self.name),
            config_source: self.source.0,
            value: Some(self.value),
            ..CreatableTopicConfigs::default()
        }
    }

    /// The value and what would take its place, in the order in which Kafka looks for one.
    fn synonyms(&self) -> Vec<DescribeConfigsSynonym<'static>> {
        let synonym = |name: &'static str, value: &Str<'static>, source: Source| DescribeConfigsSynonym {
            name: Str::from_static(name),
            value: Some(value.clone()),
            source: source.0,
            ..DescribeConfigsSynonym::default()
        };
        let given = (self.source != Source::DEFAULT).then(|| synonym(self.name, &self.value, self.source));
        let default = self.default.as_ref().map(|(name, value)| synonym(name, value, Source::DEFAULT));
        given.into_iter().chain(default).collect()
    }
}
