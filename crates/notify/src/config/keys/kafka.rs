//! The keys of `notify_kafka`, in the order in which `MinIO` prints them.

use super::super::value::ValueType;
use super::{COMMENT, ENABLE, Key, QUEUE_DIR, QUEUE_LIMIT};

pub(in crate::config) const TOPIC: Key =
    Key::new("topic", ValueType::Topic, "", "topic that events are sent to, unless a rule names another");
pub(in crate::config) const BROKERS: Key =
    Key::new("brokers", ValueType::Brokers, "", "comma-separated list of brokers, `host:port`").required();
pub(in crate::config) const SASL_USERNAME: Key =
    Key::new("sasl_username", ValueType::Text, "", "user for SASL").sensitive();
pub(in crate::config) const SASL_PASSWORD: Key =
    Key::new("sasl_password", ValueType::Text, "", "password for SASL").secret();
pub(in crate::config) const SASL_MECHANISM: Key =
    Key::new("sasl_mechanism", ValueType::Mechanism, "plain", "`plain`, `sha256` or `sha512`");
pub(in crate::config) const CLIENT_TLS_CERT: Key =
    Key::new("client_tls_cert", ValueType::File, "", "PEM file of the client's certificate").sensitive();
pub(in crate::config) const CLIENT_TLS_KEY: Key =
    Key::new("client_tls_key", ValueType::File, "", "PEM file of the key of the client's certificate")
        .sensitive();
pub(in crate::config) const TLS_CLIENT_AUTH: Key = Key::new(
    "tls_client_auth",
    ValueType::ClientAuth,
    "0",
    "0 to 4; what a server asks of its clients, without effect here",
);
pub(in crate::config) const SASL: Key =
    Key::new("sasl", ValueType::Flag, "off", "whether to authenticate with SASL");
pub(in crate::config) const TLS: Key = Key::new("tls", ValueType::Flag, "off", "whether to connect with TLS");
pub(in crate::config) const TLS_SKIP_VERIFY: Key =
    Key::new("tls_skip_verify", ValueType::Flag, "off", "whether to accept any certificate of a broker");
pub(in crate::config) const VERSION: Key =
    Key::new("version", ValueType::Version, "", "version of the brokers, such as `2.8.0`");
pub(in crate::config) const BATCH_SIZE: Key = Key::new(
    "batch_size",
    ValueType::Count { max: u32::MAX as u64 },
    "0",
    "how many events are sent together at most; more than 1 needs `queue_dir`",
);
pub(in crate::config) const BATCH_COMMIT_TIMEOUT: Key = Key::new(
    "batch_commit_timeout",
    ValueType::Duration,
    "0s",
    "how long a batch may wait to be filled; 0s stands for 30s",
);
pub(in crate::config) const COMPRESSION_CODEC: Key =
    Key::new("compression_codec", ValueType::Codec, "", "`none`, `gzip`, `snappy`, `lz4` or `zstd`")
        .variable("PRODUCER_COMPRESSION_CODEC");
pub(in crate::config) const COMPRESSION_LEVEL: Key = Key::new(
    "compression_level",
    ValueType::Integer,
    "",
    "level of the codec; without one the codec's own default",
)
.variable("PRODUCER_COMPRESSION_LEVEL");
pub(in crate::config) const TLS_CA: Key = Key::new(
    "tls_ca",
    ValueType::File,
    "",
    "PEM file of the authorities that signed the brokers' certificates; without one the system's are trusted",
)
.own();

pub(super) const KAFKA: &[Key] = &[
    ENABLE,
    TOPIC,
    BROKERS,
    SASL_USERNAME,
    SASL_PASSWORD,
    SASL_MECHANISM,
    CLIENT_TLS_CERT,
    CLIENT_TLS_KEY,
    TLS_CLIENT_AUTH,
    SASL,
    TLS,
    TLS_SKIP_VERIFY,
    QUEUE_LIMIT,
    QUEUE_DIR,
    VERSION,
    BATCH_SIZE,
    BATCH_COMMIT_TIMEOUT,
    COMPRESSION_CODEC,
    COMPRESSION_LEVEL,
    COMMENT,
    TLS_CA,
];
