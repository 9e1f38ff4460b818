//! The Kafka target against the client's fake broker.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kolumn_notify::config::{Config, EnabledTarget, Environment, KafkaConfig, StoredConfig, TargetState};
use kolumn_notify::event::{EventName, Style, Timestamp};
use kolumn_notify::queue::{Delivery, Message};
use kolumn_notify::target::conformance::{Arrived, Failure, Fixture, check};
use kolumn_notify::target::kafka::{KafkaOptions, KafkaTarget};
use kolumn_notify::target::{BoxFuture, SendErrorKind, Target, chain};
use krafka::error::ErrorCode;
use krafka::testing::{ApiKey, Control, FakeBroker};

const ARN: &str = "arn:minio:sqs::primary:kafka";
const TOPIC: &str = "bucket-events";

/// What an operator would configure, with these keys besides.
fn config(broker: &FakeBroker, more: &[(&str, &str)]) -> KafkaConfig {
    let variable = |key: &str| format!("MINIO_NOTIFY_KAFKA_{key}_PRIMARY");
    let mut variables = vec![
        (variable("ENABLE"), "on".to_owned()),
        (variable("BROKERS"), broker.bootstrap_servers()),
        (variable("TOPIC"), TOPIC.to_owned()),
    ];
    variables.extend(more.iter().map(|(key, value)| (variable(key), (*value).to_owned())));
    let variables = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let config = Config::resolve(&Environment::new(variables), &StoredConfig::default());
    let TargetState::Enabled(enabled) = config.targets()[0].state() else { panic!("{config:?}") };
    let EnabledTarget::Kafka(found) = &**enabled else { panic!("{enabled:?}") };
    found.target.clone()
}

fn target(config: KafkaConfig, style: Style) -> KafkaTarget {
    let mut options = KafkaOptions::new(config);
    options.wait = Duration::from_secs(2);
    KafkaTarget::new(ARN.parse().unwrap(), options, style).unwrap()
}

async fn broker() -> FakeBroker {
    let broker = FakeBroker::start().await.unwrap();
    assert!(broker.create_topic(TOPIC, 3));
    broker
}

fn deliveries<'a>(keys: impl IntoIterator<Item = &'a str>) -> Vec<Delivery> {
    let delivery = |(number, key): (u64, &'a str)| {
        let name = EventName::ObjectCreatedPut;
        Delivery::new(number, Message::new(name, key.to_owned(), format!("{number}"), Timestamp::default()))
    };
    (0..).zip(keys).map(delivery).collect()
}

fn values(broker: &FakeBroker) -> Vec<String> {
    let records = broker.all_records(TOPIC).unwrap();
    records.into_iter().map(|record| String::from_utf8(record.value.unwrap().to_vec()).unwrap()).collect()
}

struct Kafka {
    broker: FakeBroker,
}

impl Fixture for Kafka {
    fn target(&self) -> Result<Arc<dyn Target>, Failure> {
        let sasl = [("SASL", "on"), ("SASL_USERNAME", "alice"), ("SASL_PASSWORD", "the-password")];
        Ok(Arc::new(target(config(&self.broker, &sasl), Style::Minio)))
    }

    fn arrived(&self) -> BoxFuture<'_, Result<Vec<Arrived>, Failure>> {
        Box::pin(async move {
            let records = self.broker.all_records(TOPIC)?;
            let arrived = records.into_iter().map(|record| Arrived {
                key: record.key.unwrap_or_default(),
                value: record.value.unwrap_or_default(),
            });
            Ok(arrived.collect())
        })
    }

    fn set_down(&self, is_down: bool) -> BoxFuture<'_, Result<(), Failure>> {
        if is_down {
            self.broker.crash(0);
        } else {
            self.broker.restart(0);
        }
        Box::pin(async { Ok(()) })
    }

    fn secrets(&self) -> Vec<String> {
        vec!["the-password".into()]
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }
}

#[tokio::test]
async fn the_kafka_target_keeps_the_contract() {
    let fixture = Kafka { broker: broker().await };
    fixture.broker.require_sasl_plain("alice", "the-password");
    check(&fixture).await.unwrap();
}

#[tokio::test]
async fn a_record_has_the_key_of_its_event_and_the_partition_that_minio_would_choose() {
    let broker = broker().await;
    let batch = deliveries(["bucket/object", "images/myphoto.jpg", "a/b c"]);
    target(config(&broker, &[]), Style::Minio).send(&batch).await.unwrap();
    let mut records = broker.all_records(TOPIC).unwrap();
    records.sort_by(|a, b| a.value.cmp(&b.value));
    let found: Vec<_> =
        records.iter().map(|record| (record.key.clone().unwrap(), record.partition)).collect();
    let expect = [("bucket/object", 2), ("images/myphoto.jpg", 0), ("a/b c", 0)];
    assert_eq!(found, expect.map(|(key, partition)| (Bytes::from(key), partition)));
    assert!(records.iter().all(|record| record.headers.is_empty()));
}

#[tokio::test]
async fn a_cloud_event_says_so_in_a_header() {
    let broker = broker().await;
    target(config(&broker, &[]), Style::CloudEvents).send(&deliveries(["a"])).await.unwrap();
    let records = broker.all_records(TOPIC).unwrap();
    let expect =
        ("content-type".to_owned(), Some(Bytes::from("application/cloudevents+json; charset=UTF-8")));
    assert_eq!(records[0].headers, [expect]);
}

#[tokio::test]
async fn every_codec_and_level_is_taken() {
    for (codec, level) in [("gzip", "1"), ("snappy", ""), ("lz4", "9"), ("zstd", "19"), ("none", "")] {
        let broker = broker().await;
        let keys = [("PRODUCER_COMPRESSION_CODEC", codec), ("PRODUCER_COMPRESSION_LEVEL", level)];
        target(config(&broker, &keys), Style::Minio).send(&deliveries(["a"; 100])).await.unwrap();
        assert_eq!(values(&broker).len(), 100, "{codec}");
    }
}

#[tokio::test]
async fn a_rule_can_have_a_topic_of_its_own() {
    let broker = broker().await;
    assert!(broker.create_topic("special", 1));
    let mut batch = deliveries(["a", "b"]);
    batch[1].message.topic = Some("special".into());
    target(config(&broker, &[]), Style::Minio).send(&batch).await.unwrap();
    assert_eq!(values(&broker), ["0"]);
    assert_eq!(broker.all_records("special").unwrap().len(), 1);
}

#[tokio::test]
async fn what_was_given_up_is_waited_for_and_not_written_twice() {
    let broker = broker().await;
    let target = target(config(&broker, &[]), Style::Minio);
    target.send(&deliveries(["before"])).await.unwrap();
    broker.on_times(ApiKey::Produce, 2, |_| Control::Delay(Duration::from_secs(3)));
    let batch = deliveries(["a"; 10]);
    let error = target.send(&batch).await.unwrap_err();
    assert!(error.to_string().starts_with("not confirmed within 2s"), "{error}");
    assert_eq!((error.kind(), error.delivered()), (SendErrorKind::Temporary, 0));
    // So does a worker that has to stop.
    let given_up = tokio::time::timeout(Duration::from_millis(1), target.send(&batch));
    assert!(given_up.await.is_err());
    let mut rest = &batch[..];
    while let Err(error) = target.send(rest).await {
        rest = &rest[error.delivered()..];
    }
    let expect: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    let written: Vec<String> = values(&broker).into_iter().filter(|value| value != "0").collect();
    assert_eq!(written, expect[1..]);
    assert_eq!(values(&broker).len(), 11);
}

#[tokio::test]
async fn a_record_that_is_too_large_is_set_apart_and_others_are_written() {
    let broker = broker().await;
    let target = target(config(&broker, &[]), Style::Minio);
    broker.on_once(ApiKey::Produce, |_| Control::Error(ErrorCode::MessageTooLarge));
    let error = target.send(&deliveries(["a"])).await.unwrap_err();
    assert_eq!((error.kind(), error.delivered()), (SendErrorKind::Permanent, 0), "{}", chain(&error));
    target.send(&deliveries(["b"])).await.unwrap();
    assert_eq!(values(&broker).len(), 1);
}

#[tokio::test]
async fn refused_credentials_are_for_the_operator_to_repair() {
    let broker = broker().await;
    broker.require_sasl_plain("alice", "right");
    let sasl = [("SASL", "on"), ("SASL_USERNAME", "alice"), ("SASL_PASSWORD", "wrong")];
    let target = target(config(&broker, &sasl), Style::Minio);
    for error in [target.send(&deliveries(["a"])).await.unwrap_err(), target.probe().await.unwrap_err()] {
        assert_eq!(error.kind(), SendErrorKind::Temporary);
        assert!(!chain(&error).contains("wrong"), "{}", chain(&error));
    }
    broker.require_sasl_plain("alice", "wrong");
    target.send(&deliveries(["a"])).await.unwrap();
}
