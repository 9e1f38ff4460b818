//! Topics that others delete, and records that a topic does not take.

use kolumn_notify::target::{SendErrorKind, Target, chain};

use crate::server::{Kafka, PATIENCE, TOPIC, Way, deliveries};

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_too_large_for_its_topic_is_permanent_and_what_is_around_it_arrives() {
    let kafka = Kafka::start().await;
    kafka.create_topic("narrow", &[("max.message.bytes", "2000")]).await;
    let mut way = Way::open();
    way.keys.push(("TOPIC", "narrow".into()));
    let target = kafka.target(&way);
    // One key, so that all are of one partition.
    let mut batch = deliveries(["k"; 5].map(str::to_owned));
    batch[2].message.value = vec![b'x'; 10_000].into();
    let mut rest = &batch[..];
    let mut permanent = Vec::new();
    while let Err(error) = target.send(rest).await {
        rest = &rest[error.delivered()..];
        if error.kind() == SendErrorKind::Permanent {
            permanent.push(rest[0].number);
            rest = &rest[1..];
        }
    }
    assert_eq!(permanent, [2]);
    let values = values(&kafka, "narrow", 4).await;
    assert_eq!(values, ["0", "1", "3", "4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_wait_for_a_topic_that_was_deleted_and_go_on_when_it_is_there_again() {
    let kafka = Kafka::start().await;
    let mut options = kafka.options(&Way::open());
    options.create_topic = false;
    let arn = "arn:minio:sqs::primary:kafka".parse().unwrap();
    let target =
        kolumn_notify::target::kafka::KafkaTarget::new(arn, options, kolumn_notify::event::Style::Minio)
            .unwrap();
    target.send(&deliveries(["before".to_owned()])).await.unwrap();
    kafka.delete_topic(TOPIC).await;
    let batch = deliveries((0..20).map(|number| format!("k{number}")));
    let mut rest = &batch[..];
    let mut is_there = false;
    let started = std::time::Instant::now();
    loop {
        match target.send(rest).await {
            Ok(()) => break,
            Err(error) => {
                assert_eq!(error.kind(), SendErrorKind::Temporary, "{}", chain(&error));
                assert!(started.elapsed() < PATIENCE, "{}", chain(&error));
                rest = &rest[error.delivered()..];
            }
        }
        if !is_there {
            kafka.create_topic(TOPIC, &[]).await;
            is_there = true;
        }
    }
    // What the old topic took just before it was gone is gone with it; what the new one has, it has once.
    let found = kafka.records(TOPIC, rest.len()).await;
    let mut keys: Vec<&str> = found.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    let count = keys.len();
    keys.dedup();
    assert_eq!(keys.len(), count);
    assert!(is_there, "the deletion was noticed");
}

async fn values(kafka: &Kafka, topic: &str, count: usize) -> Vec<String> {
    kafka.records(topic, count).await.into_iter().map(|(_, value)| value).collect()
}
