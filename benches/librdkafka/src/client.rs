//! The clients of librdkafka: what they are told, and that the topic is as they expect it.

use std::io;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::KafkaError;
use rdkafka::metadata::Metadata;
use rdkafka::producer::{BaseProducer, Producer as _};

use crate::arguments::{Sending, Target};
use crate::reports::Reports;

/// A producer with at most its share of [`QUEUE_KBYTES`] and [`QUEUE_RECORDS`] under way, which has found its partitions.
pub(crate) fn producer(
    target: &Target,
    sending: &Sending,
    linger_ms: f64,
    epoch: Instant,
    share: u32,
) -> io::Result<BaseProducer<Reports>> {
    let message_bytes_max =
        sending.batch_bytes.max(sending.record_bytes.saturating_add(1_000)).max(1_000_000);
    let mut config = common(target);
    config
        .set("acks", &sending.acks)
        .set("batch.size", sending.batch_bytes.to_string())
        // The batch's bytes alone say when it is full.
        .set("batch.num.messages", "1000000")
        .set("compression.codec", &sending.codec)
        .set("enable.idempotence", sending.idempotent.to_string())
        .set("linger.ms", linger_ms.to_string())
        .set("message.max.bytes", message_bytes_max.to_string())
        .set("message.timeout.ms", LOST_AFTER.as_millis().to_string())
        .set("queue.buffering.max.kbytes", (QUEUE_KBYTES / share).max(message_bytes_max / 256).to_string())
        .set("queue.buffering.max.messages", (QUEUE_RECORDS / share).to_string());
    let producer: BaseProducer<Reports> =
        config.create_with_context(Reports::new(epoch, target.partitions)).map_err(io::Error::other)?;
    let found = producer.client().fetch_metadata(Some(&target.topic), PATIENCE).map_err(|error| {
        let cause = producer.context().seen().fault.clone();
        unreachable_broker(target, &error, cause)
    })?;
    check_partitions(target, &found)?;
    Ok(producer)
}

/// A consumer that belongs to no group, with at most 64 MiB fetched ahead.
pub(crate) fn consumer(target: &Target, fetch_bytes: u32) -> io::Result<BaseConsumer> {
    let consumer: BaseConsumer = common(target)
        // The library assigns nothing without a name of a group; the group itself is never joined.
        .set("group.id", "librdkafka_load")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("auto.offset.reset", "earliest")
        .set("fetch.message.max.bytes", fetch_bytes.to_string())
        .set("fetch.max.bytes", fetch_bytes.max(FETCH_BYTES_MAX).to_string())
        .set(
            "receive.message.max.bytes",
            fetch_bytes.max(FETCH_BYTES_MAX).saturating_add(1_000_000).to_string(),
        )
        .set("queued.max.messages.kbytes", QUEUE_KBYTES.to_string())
        .create()
        .map_err(io::Error::other)?;
    let found = rdkafka::consumer::Consumer::fetch_metadata(&consumer, Some(&target.topic), PATIENCE)
        .map_err(|error| unreachable_broker(target, &error, None))?;
    check_partitions(target, &found)?;
    Ok(consumer)
}

fn common(target: &Target) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &target.broker)
        .set("client.id", "librdkafka_load")
        .set("allow.auto.create.topics", "false")
        .set("socket.nagle.disable", "true");
    config
}

fn check_partitions(target: &Target, found: &Metadata) -> io::Result<()> {
    let topic = found.topics().iter().find(|topic| topic.name() == target.topic);
    let (partitions, error) = topic.map_or((0, None), |topic| (topic.partitions().len(), topic.error()));
    if let Some(error) = error {
        let error = KafkaError::MetadataFetch(error.into());
        return Err(io::Error::other(format!("topic `{}`: {error}", target.topic)));
    }
    if partitions < usize::from(target.partitions) {
        let wanted = target.partitions;
        return Err(io::Error::other(format!(
            "topic `{}` has {partitions} partitions, not {wanted}",
            target.topic
        )));
    }
    Ok(())
}

fn unreachable_broker(target: &Target, error: &KafkaError, cause: Option<String>) -> io::Error {
    let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
    io::Error::other(format!("`{}`: {error}{cause}", target.broker))
}

/// Records that have not been acknowledged after this are lost.
pub(crate) const LOST_AFTER: Duration = Duration::from_mins(1);
/// How long a broker may take to say what topics it has.
const PATIENCE: Duration = Duration::from_secs(30);
/// What all producers of a load hold at most, or what a consumer fetches ahead at most.
const QUEUE_KBYTES: u32 = 64 * 1024;
/// The same in records, which matters below 130 bytes.
const QUEUE_RECORDS: u32 = 500_000;
/// What a fetch of all partitions together asks for at most; the library's default.
const FETCH_BYTES_MAX: u32 = 52_428_800;
