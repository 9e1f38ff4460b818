//! The client's own words for what is configured, and ours for its errors.

use std::num::NonZeroU32;
use std::time::Duration;

use krafka::auth::{AuthConfig, TlsConfig};
use krafka::error::ErrorCode;
use krafka::producer::{Acks, Partitioner, ProducerBuilder};
use krafka::{Compression, Kafka, KafkaBuilder, KrafkaError, PartitionId};

use super::KafkaOptions;
use crate::config::{self, Codec, KafkaConfig, Mechanism};
use crate::event::fnv1a_partition;
use crate::target::SendErrorKind;

/// How to connect.
pub(super) fn kafka(options: &KafkaOptions) -> KafkaBuilder {
    let request_timeout = REQUEST_TIMEOUT.max(options.connect_timeout);
    Kafka::builder(brokers(&options.config))
        .client_id(options.client_id.clone())
        .security(security(&options.config))
        .connect_timeout(options.connect_timeout)
        .request_timeout(request_timeout)
        .allow_auto_create_topics(options.create_topic)
}

/// How to produce.
pub(super) fn producer(options: &KafkaOptions, kafka: &Kafka) -> ProducerBuilder {
    let compression = options.config.compression;
    let codec = compression.map_or(Compression::None, |compression| match compression.codec {
        Codec::Gzip => Compression::Gzip,
        Codec::Snappy => Compression::Snappy,
        Codec::Lz4 => Compression::Lz4,
        Codec::Zstd => Compression::Zstd,
    });
    // The client has no levels of lz4, and would refuse to start if it were given one.
    let level =
        compression.filter(|compression| compression.codec != Codec::Lz4).and_then(|found| found.level);
    kafka
        .producer()
        .acks(Acks::All)
        .idempotent(options.idempotent)
        .partitioner(Fnv1a)
        .compression(codec)
        .compression_level(level)
        .batch_size(BATCH_LEN)
        .linger(Duration::ZERO)
        .max_block(options.wait)
        .delivery_timeout(DELIVERY_TIMEOUT)
        .metrics_push(false)
}

/// `host:port,host:port`.
pub(super) fn brokers(config: &KafkaConfig) -> String {
    let brokers: Vec<String> = config.brokers.iter().map(ToString::to_string).collect();
    brokers.join(",")
}

fn security(config: &KafkaConfig) -> AuthConfig {
    let security = match &config.sasl {
        None => AuthConfig::plaintext(),
        Some(sasl) => {
            let (user, password) = (sasl.user.as_str(), sasl.password.expose());
            match sasl.mechanism {
                Mechanism::Plain => AuthConfig::sasl_plain(user, password),
                Mechanism::ScramSha256 => AuthConfig::sasl_scram_sha256(user, password),
                Mechanism::ScramSha512 => AuthConfig::sasl_scram_sha512(user, password),
            }
        }
    };
    match &config.tls {
        Some(found) => security.with_tls(tls(found)),
        None => security,
    }
}

fn tls(config: &config::TlsConfig) -> TlsConfig {
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let mut tls = if config.verify { TlsConfig::new() } else { TlsConfig::insecure() };
    tls = match &config.ca {
        Some(ca) => tls.with_ca_cert(path(ca)),
        None => tls.with_native_roots(),
    };
    if let Some(client) = &config.client {
        tls = tls.with_client_cert(path(&client.cert), path(&client.key));
    }
    tls
}

/// Whether an error is about one record, which will never be taken.
pub(super) fn kind(error: &KrafkaError) -> SendErrorKind {
    match error {
        KrafkaError::Broker {
            code:
                ErrorCode::MessageTooLarge
                | ErrorCode::RecordListTooLarge
                | ErrorCode::InvalidRecord
                | ErrorCode::InvalidTimestamp,
            ..
        }
        | KrafkaError::Serialization { .. } => SendErrorKind::Permanent,
        _ => SendErrorKind::Temporary,
    }
}

/// Partitions as `MinIO`'s client has them.
#[derive(Debug)]
struct Fnv1a;

impl Partitioner for Fnv1a {
    fn partition(&self, _topic: &str, key: Option<&[u8]>, partition_count: usize) -> PartitionId {
        let count = u32::try_from(partition_count).ok().and_then(NonZeroU32::new);
        let partition = count.map_or(0, |count| fnv1a_partition(key.unwrap_or_default(), count));
        // Fewer than the number of partitions, which the protocol has as an `i32`.
        PartitionId::try_from(partition).unwrap_or_default()
    }
}

/// Long enough for a broker that waits for its replicas.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// In effect without an end; it is added to a clock.
const DELIVERY_TIMEOUT: Duration = Duration::from_hours(30 * 24);
/// The client sends one batch of a partition at a time, so that it has to be worth a round trip.
const BATCH_LEN: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, partitions: [PartitionId; 3]) {
        let of = |count| Fnv1a.partition("any", Some(key.as_bytes()), count);
        assert_eq!([of(3), of(8), of(12)], partitions, "{key}");
    }

    #[test]
    fn partitions_are_those_of_minio() {
        check("bucket/object", [2, 7, 11]);
        check("images/myphoto.jpg", [0, 7, 3]);
        check("test-bucket/image.jpg", [2, 3, 11]);
        check("a/b c", [0, 0, 0]);
        assert_eq!(Fnv1a.partition("any", None, 0), 0);
    }

    #[test]
    fn only_errors_about_a_record_are_permanent() {
        let broker = |code| kind(&KrafkaError::broker(code, "no"));
        for code in [ErrorCode::MessageTooLarge, ErrorCode::RecordListTooLarge, ErrorCode::InvalidRecord] {
            assert_eq!(broker(code), SendErrorKind::Permanent, "{code:?}");
        }
        for code in [
            ErrorCode::UnknownTopicOrPartition,
            ErrorCode::InvalidTopic,
            ErrorCode::TopicAuthorizationFailed,
            ErrorCode::SaslAuthenticationFailed,
            ErrorCode::NotEnoughReplicas,
            ErrorCode::UnsupportedCompressionType,
            ErrorCode::UnknownServerError,
        ] {
            assert_eq!(broker(code), SendErrorKind::Temporary, "{code:?}");
        }
        assert_eq!(kind(&KrafkaError::timeout("produce")), SendErrorKind::Temporary);
        assert_eq!(kind(&KrafkaError::auth("no")), SendErrorKind::Temporary);
    }
}
