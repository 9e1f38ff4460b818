//! The keys of the other kinds of targets, of `site` and of `api`.

use super::super::value::ValueType;
use super::{COMMENT, ENABLE, Key, QUEUE_DIR, QUEUE_LIMIT, TargetKind, kafka};

pub(super) fn of_kind(kind: TargetKind) -> &'static [Key] {
    match kind {
        TargetKind::Amqp => AMQP,
        TargetKind::Elasticsearch => ELASTICSEARCH,
        TargetKind::Kafka => kafka::KAFKA,
        TargetKind::Mqtt => MQTT,
        TargetKind::Mysql => MYSQL,
        TargetKind::Nats => NATS,
        TargetKind::Nsq => NSQ,
        TargetKind::Postgresql => POSTGRESQL,
        TargetKind::Redis => REDIS,
        TargetKind::Webhook => WEBHOOK,
    }
}

/// Keys that make sense only together: one alone is refused, because `MinIO` ignores it without a word.
pub(in crate::config) fn pairs(kind: TargetKind) -> &'static [(&'static str, &'static str)] {
    match kind {
        TargetKind::Kafka => &[("client_tls_cert", "client_tls_key")],
        TargetKind::Nats => &[("username", "password"), ("client_cert", "client_key")],
        TargetKind::Webhook => &[("client_cert", "client_key")],
        TargetKind::Elasticsearch => &[("username", "password")],
        _ => &[],
    }
}

pub(in crate::config) const SITE_REGION: Key =
    Key::new("region", ValueType::Region, "", "region of the server, a part of every ARN")
        .old_variable("REGION");
pub(in crate::config) const API_SYNC_EVENTS: Key =
    Key::new("sync_events", ValueType::Flag, "off", "whether a request waits until its events are delivered");

pub(super) const SITE: &[Key] = &[
    Key::new("name", ValueType::Text, "", "name of the server, for whoever reads the configuration"),
    SITE_REGION,
];
pub(super) const API: &[Key] = &[API_SYNC_EVENTS];

const fn flag(name: &'static str, help: &'static str) -> Key {
    Key::new(name, ValueType::Flag, "off", help)
}

const fn text(name: &'static str, help: &'static str) -> Key {
    Key::new(name, ValueType::Text, "", help)
}

const fn file(name: &'static str, help: &'static str) -> Key {
    Key::new(name, ValueType::File, "", help).sensitive()
}

const fn duration(name: &'static str, help: &'static str) -> Key {
    Key::new(name, ValueType::Duration, "0s", help)
}

const fn small(name: &'static str, default: &'static str, max: u64, help: &'static str) -> Key {
    Key::new(name, ValueType::Count { max }, default, help)
}

const FORMAT: Key = Key::new(
    "format",
    ValueType::Choice(&["namespace", "access"]),
    "namespace",
    "`namespace` keeps the newest event of each object, `access` all events",
);
const MAX_OPEN_CONNECTIONS: Key =
    small("max_open_connections", "2", 10_000, "how many connections are open at most");

const WEBHOOK: &[Key] = &[
    ENABLE,
    text("endpoint", "URL that events are posted to, such as `http://localhost:8080/events`").required(),
    text("auth_token", "token of the `Authorization` header; one word is sent as `Bearer`").secret(),
    QUEUE_LIMIT,
    QUEUE_DIR,
    file("client_cert", "PEM file of the client's certificate"),
    file("client_key", "PEM file of the key of the client's certificate"),
    COMMENT,
];

const AMQP: &[Key] = &[
    ENABLE,
    text("url", "URL of the server, such as `amqp://user:password@localhost:5672`").required().secret(),
    text("exchange", "name of the exchange"),
    text("exchange_type", "type of the exchange"),
    text("routing_key", "routing key of the messages"),
    flag("mandatory", "whether a message that no queue takes is an error"),
    flag("durable", "whether the exchange outlives the server"),
    flag("no_wait", "whether to publish without waiting for the declaration's answer"),
    flag("internal", "whether only other exchanges can publish to the exchange"),
    flag("auto_deleted", "whether the exchange ends with its last queue"),
    small("delivery_mode", "0", 2, "0 or 1: messages in memory, 2: messages on disk"),
    flag("publisher_confirms", "whether the server confirms each message").variable("PUBLISHING_CONFIRMS"),
    QUEUE_LIMIT,
    QUEUE_DIR,
    COMMENT,
];

const MQTT: &[Key] = &[
    ENABLE,
    text("broker", "URL of the server, such as `tcp://localhost:1883`").required(),
    text("topic", "topic that events are sent to").required(),
    text("username", "user").sensitive(),
    text("password", "password").secret(),
    small("qos", "0", 2, "quality of service; `queue_dir` needs 1 or 2"),
    duration("keep_alive_interval", "time between two pings; 0s stands for 10s"),
    duration("reconnect_interval", "longest time between two attempts to connect"),
    QUEUE_DIR,
    QUEUE_LIMIT,
    COMMENT,
];

const NATS: &[Key] = &[
    ENABLE,
    text("address", "address of the server, such as `localhost:4222`").required(),
    text("subject", "subject that events are sent to").required(),
    text("username", "user").sensitive(),
    text("password", "password").secret(),
    text("token", "token").secret(),
    file("user_credentials", "file of the user's credentials"),
    file("nkey_seed", "file of the seed of the user's key"),
    flag("tls", "whether to connect with TLS"),
    flag("tls_skip_verify", "whether to accept any certificate of the server"),
    flag("tls_handshake_first", "whether TLS begins before the server's greeting"),
    file("cert_authority", "PEM file of the authorities that signed the server's certificate"),
    file("client_cert", "PEM file of the client's certificate"),
    file("client_key", "PEM file of the key of the client's certificate"),
    duration("ping_interval", "time between two pings"),
    flag("jetstream", "whether to publish to JetStream, which confirms each message"),
    flag("streaming", "NATS Streaming, which is no more: use `jetstream`"),
    flag("streaming_async", "NATS Streaming, which is no more"),
    small("streaming_max_pub_acks_in_flight", "0", u32::MAX as u64, "NATS Streaming, which is no more"),
    text("streaming_cluster_id", "NATS Streaming, which is no more"),
    QUEUE_DIR,
    QUEUE_LIMIT,
    COMMENT,
];

const NSQ: &[Key] = &[
    ENABLE,
    text("nsqd_address", "address of nsqd, such as `localhost:4150`").required(),
    text("topic", "topic that events are sent to").required(),
    flag("tls", "whether to connect with TLS"),
    flag("tls_skip_verify", "whether to accept any certificate of the server"),
    QUEUE_DIR,
    QUEUE_LIMIT,
    COMMENT,
];

const REDIS: &[Key] = &[
    ENABLE,
    FORMAT,
    text("address", "address of the server, such as `localhost:6379`").required(),
    text("key", "key of the hash or list that events are kept in").required(),
    text("password", "password").secret(),
    text("user", "user").sensitive(),
    QUEUE_DIR,
    QUEUE_LIMIT,
    COMMENT,
];

const POSTGRESQL: &[Key] = &[
    ENABLE,
    FORMAT,
    Key::new(
        "connection_string",
        ValueType::NestedText,
        "",
        "how to connect, such as `host=localhost port=5432 user=minio dbname=events`",
    )
    .required()
    .secret(),
    text("table", "table that events are kept in").required(),
    QUEUE_DIR,
    QUEUE_LIMIT,
    MAX_OPEN_CONNECTIONS,
    COMMENT,
];

const MYSQL: &[Key] = &[
    ENABLE,
    FORMAT,
    Key::new(
        "dsn_string",
        ValueType::NestedText,
        "",
        "how to connect, such as `user:password@tcp(localhost:3306)/events`",
    )
    .required()
    .secret(),
    text("table", "table that events are kept in").required(),
    QUEUE_DIR,
    QUEUE_LIMIT,
    MAX_OPEN_CONNECTIONS,
    COMMENT,
];

const ELASTICSEARCH: &[Key] = &[
    ENABLE,
    text("url", "URL of the server, such as `http://localhost:9200`").required(),
    text("index", "index that events are kept in").required(),
    FORMAT,
    text("username", "user").sensitive(),
    text("password", "password").secret(),
    QUEUE_DIR,
    QUEUE_LIMIT,
    COMMENT,
];
