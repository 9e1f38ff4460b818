//! The table of Kafka's topic settings: names, types, defaults, ranges, and which of them act on this store.

/// What Kafka says the type of a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigType {
    /// `true` or `false`.
    Boolean,
    /// One word.
    String,
    /// A whole number of 32 bits.
    Int,
    /// A whole number of 64 bits.
    Long,
    /// A number with a fraction.
    Double,
    /// Words with commas between them.
    List,
}

/// One of the settings that a topic has.
#[derive(Debug)]
pub struct ConfigKey {
    name: &'static str,
    config_type: ConfigType,
    default: &'static str,
    pub(super) rule: Rule,
    acts: bool,
    synonym: Option<&'static str>,
    documentation: &'static str,
}

impl ConfigKey {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The type of its values.
    #[must_use]
    pub const fn config_type(&self) -> ConfigType {
        self.config_type
    }

    /// The value of topics that were given none.
    #[must_use]
    pub const fn default_value(&self) -> &'static str {
        self.default
    }

    /// Whether it changes what the store does. The others are accepted, kept and shown.
    #[must_use]
    pub const fn acts(&self) -> bool {
        self.acts
    }

    /// The broker's setting of which Kafka takes the default, if there is one.
    #[must_use]
    pub const fn synonym(&self) -> Option<&'static str> {
        self.synonym
    }

    /// What it is for, in a sentence.
    #[must_use]
    pub const fn documentation(&self) -> &'static str {
        self.documentation
    }

    const fn new(
        name: &'static str,
        config_type: ConfigType,
        default: &'static str,
        rule: Rule,
        documentation: &'static str,
    ) -> Self {
        Self { name, config_type, default, rule, acts: false, synonym: None, documentation }
    }

    const fn acting(self) -> Self {
        Self { acts: true, ..self }
    }

    const fn like(self, synonym: &'static str) -> Self {
        Self { synonym: Some(synonym), ..self }
    }

    /// The broker's setting has the same name.
    const fn like_itself(self) -> Self {
        let name = self.name;
        self.like(name)
    }
}

/// Which values are legal.
#[derive(Debug)]
pub(super) enum Rule {
    Number { min: i64, max: i64 },
    Words(&'static [&'static str]),
    Policy,
    Ratio,
    Text,
}

pub(super) fn find(name: &str) -> Option<&'static ConfigKey> {
    KEYS.binary_search_by(|key| key.name.cmp(name)).ok().and_then(|at| KEYS.get(at))
}

const fn int(
    name: &'static str,
    default: &'static str,
    (min, max): (i64, i64),
    documentation: &'static str,
) -> ConfigKey {
    ConfigKey::new(name, ConfigType::Int, default, Rule::Number { min, max }, documentation)
}

const fn long(name: &'static str, default: &'static str, min: i64, documentation: &'static str) -> ConfigKey {
    ConfigKey::new(name, ConfigType::Long, default, Rule::Number { min, max: i64::MAX }, documentation)
}

const fn flag(name: &'static str, words: &'static [&'static str], documentation: &'static str) -> ConfigKey {
    ConfigKey::new(name, ConfigType::Boolean, "false", Rule::Words(words), documentation)
}

const fn word(
    name: &'static str,
    default: &'static str,
    words: &'static [&'static str],
    documentation: &'static str,
) -> ConfigKey {
    ConfigKey::new(name, ConfigType::String, default, Rule::Words(words), documentation)
}

const fn list(
    name: &'static str,
    default: &'static str,
    rule: Rule,
    documentation: &'static str,
) -> ConfigKey {
    ConfigKey::new(name, ConfigType::List, default, rule, documentation)
}

const INT_MAX: i64 = i32::MAX as i64;
const MAX: &str = "9223372036854775807";
const EITHER: &[&str] = &["false", "true"];
const OFF: &[&str] = &["false"];

/// Sorted by name, as they are shown.
pub(super) const KEYS: &[ConfigKey] = &[
    list(
        "cleanup.policy",
        "delete",
        Rule::Policy,
        "What happens to old records: `delete` drops them by age and size, `compact` makes the topic keyed.",
    )
    .acting()
    .like("log.cleanup.policy"),
    int(
        "compression.gzip.level",
        "-1",
        (-1, 9),
        "The level of gzip; kept, because batches stay as they were sent.",
    )
    .like_itself(),
    int(
        "compression.lz4.level",
        "9",
        (1, 17),
        "The level of lz4; kept, because batches stay as they were sent.",
    )
    .like_itself(),
    word(
        "compression.type",
        "producer",
        &["producer"],
        "The codec of stored batches: always the one that the producer chose.",
    )
    .like_itself(),
    int(
        "compression.zstd.level",
        "3",
        (-131_072, 22),
        "The level of zstd; kept, because batches stay as they were sent.",
    )
    .like_itself(),
    long(
        "delete.retention.ms",
        "86400000",
        0,
        "How long a compacted topic keeps a record that says that its key is gone; kept without effect.",
    )
    .like("log.cleaner.delete.retention.ms"),
    long(
        "file.delete.delay.ms",
        "60000",
        0,
        "The pause before the file of a deleted segment goes; kept without effect.",
    )
    .like("log.segment.delete.delay.ms"),
    long(
        "flush.messages",
        MAX,
        1,
        "Records between two syncs of a segment; kept without effect, every write is synced.",
    )
    .like("log.flush.interval.messages"),
    long(
        "flush.ms",
        MAX,
        0,
        "Time between two syncs of a segment; kept without effect, every write is synced.",
    )
    .like("log.flush.interval.ms"),
    list(
        "follower.replication.throttled.replicas",
        "",
        Rule::Text,
        "Replicas whose copying is slowed on the follower's side; kept without effect, there is one copy.",
    ),
    int(
        "index.interval.bytes",
        "4096",
        (0, INT_MAX),
        "Bytes between two entries of a segment's index; kept without effect.",
    )
    .like("log.index.interval.bytes"),
    list(
        "leader.replication.throttled.replicas",
        "",
        Rule::Text,
        "Replicas whose copying is slowed on the leader's side; kept without effect, there is one copy.",
    ),
    long(
        "local.retention.bytes",
        "-2",
        -2,
        "Bytes of a partition that stay local beside remote storage; kept without effect.",
    )
    .like("log.local.retention.bytes"),
    long(
        "local.retention.ms",
        "-2",
        -2,
        "How long records stay local beside remote storage; kept without effect.",
    )
    .like("log.local.retention.ms"),
    long(
        "max.compaction.lag.ms",
        MAX,
        1,
        "The longest time for which a record escapes compaction; kept without effect.",
    )
    .like("log.cleaner.max.compaction.lag.ms"),
    int("max.message.bytes", "1048588", (0, INT_MAX), "The largest batch that is accepted, in bytes.")
        .acting()
        .like("message.max.bytes"),
    long(
        "message.timestamp.after.max.ms",
        "3600000",
        0,
        "How far a producer's timestamp may lie ahead of the broker's clock.",
    )
    .acting()
    .like("log.message.timestamp.after.max.ms"),
    long(
        "message.timestamp.before.max.ms",
        MAX,
        0,
        "How far a producer's timestamp may lie behind the broker's clock.",
    )
    .acting()
    .like("log.message.timestamp.before.max.ms"),
    word(
        "message.timestamp.type",
        "CreateTime",
        &["CreateTime", "LogAppendTime"],
        "Who gives records their timestamps: the producer or, at the append, the broker.",
    )
    .acting()
    .like("log.message.timestamp.type"),
    ConfigKey::new(
        "min.cleanable.dirty.ratio",
        ConfigType::Double,
        "0.5",
        Rule::Ratio,
        "The share of a log that has to be uncompacted before it is compacted; kept without effect.",
    )
    .like("log.cleaner.min.cleanable.ratio"),
    long(
        "min.compaction.lag.ms",
        "0",
        0,
        "The shortest time for which a record escapes compaction; kept without effect.",
    )
    .like("log.cleaner.min.compaction.lag.ms"),
    int(
        "min.insync.replicas",
        "1",
        (1, 1),
        "Copies that have to have a batch before it is answered: the one.",
    )
    .like_itself(),
    flag("preallocate", EITHER, "Whether segments are allocated beforehand; kept without effect.")
        .like("log.preallocate"),
    flag("remote.log.copy.disable", EITHER, "Whether copying to remote storage is off; kept without effect."),
    flag(
        "remote.log.delete.on.disable",
        EITHER,
        "Whether remote records go when remote storage is switched off; kept without effect.",
    ),
    flag("remote.storage.enable", OFF, "Whether old segments go to remote storage, which there is none of."),
    long(
        "retention.bytes",
        "-1",
        -1,
        "Bytes of a partition above which its oldest batches are deleted; -1 is no limit.",
    )
    .acting()
    .like("log.retention.bytes"),
    long("retention.ms", "604800000", -1, "The age at which batches are deleted; -1 is never.")
        .acting()
        .like("log.retention.ms"),
    int("segment.bytes", "1073741824", (14, INT_MAX), "The size of a segment's file; kept without effect.")
        .like("log.segment.bytes"),
    int(
        "segment.index.bytes",
        "10485760",
        (4, INT_MAX),
        "The size of the index of a segment; kept without effect.",
    )
    .like("log.index.size.max.bytes"),
    long(
        "segment.jitter.ms",
        "0",
        0,
        "How much earlier, by chance, a segment may be ended; kept without effect.",
    )
    .like("log.roll.jitter.ms"),
    long("segment.ms", "604800000", 1, "The time after which a segment is ended; kept without effect.")
        .like("log.roll.ms"),
    flag(
        "unclean.leader.election.enable",
        EITHER,
        "Whether a copy that lags may become the leader; kept without effect, there is one copy.",
    )
    .like_itself(),
];
