//! The hub: what outlives a restart, what is refused before it is too late, and who is told.

use std::sync::Arc;
use std::time::Duration;

use kolumn_notify::config::{Config, Environment, QueueConfig, StoredConfig};
use kolumn_notify::event::{Event, EventName, EventSelector, Style, Timestamp};
use kolumn_notify::hub::{Hub, HubError, HubOptions, Listen, Opened, Operation};
use kolumn_notify::intent::Intent;
use kolumn_notify::rules::{BucketRules, KeyFilter, Rule};
use kolumn_notify::target::memory::{MemoryTarget, OtherSide};
use tempfile::TempDir;

const ARN: &str = "arn:minio:sqs::primary:kafka";

async fn open(folder: &TempDir) -> Opened {
    open_with(folder, &[]).await
}

async fn open_with(folder: &TempDir, variables: &[(&str, &str)]) -> Opened {
    let config = Config::resolve(&Environment::new(variables.iter().copied()), &StoredConfig::default());
    Hub::open(HubOptions::new(folder.path()), &config).await.unwrap()
}

/// A target in memory, whose queue has room for so many.
async fn add(hub: &Hub, limit: u64) -> Arc<OtherSide> {
    let (target, side) = MemoryTarget::new(ARN.parse().unwrap());
    let mut queue = QueueConfig::default();
    queue.limit = limit;
    hub.add_target(Arc::new(target), &queue, Style::Minio).await.unwrap();
    side
}

fn rule() -> Rule {
    Rule::new(ARN.parse().unwrap(), ["s3:ObjectCreated:*".parse().unwrap()]).unwrap()
}

async fn tell_all(hub: &Hub) {
    hub.set_global_rules(BucketRules::new(vec![rule()])).await.unwrap();
}

fn intent(key: &str) -> Intent {
    Intent::new(EventName::ObjectCreatedPut, "photos", key, Timestamp::from_unix_nanos(7))
}

fn event(hub: &Hub, key: &str) -> Event {
    let builder = Event::builder(hub.origin(), EventName::ObjectCreatedPut, "photos", key);
    builder.build(Timestamp::from_unix_nanos(7)).unwrap()
}

async fn begin(hub: &Hub, key: &str) -> Operation {
    hub.begin(intent(key)).await.unwrap().unwrap()
}

fn keys(side: &OtherSide) -> Vec<String> {
    side.received().iter().map(|message| String::from_utf8(message.key.to_vec()).unwrap()).collect()
}

async fn close(hub: Hub) {
    hub.close(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn rules_outlive_a_restart_whatever_a_bucket_is_called_and_go_with_their_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder).await.hub;
    let filtered = rule().with_filter(KeyFilter::new("a b/", "\u{e9}&<").unwrap()).with_id("one").unwrap();
    let with_topic = rule().with_topic("special").unwrap();
    let rules = BucketRules::new(vec![filtered, with_topic]);
    let odd = ["photos", "../up", "A/B", "\u{65e5}\u{672c}", "a%2Fb", "global", ".."];
    for bucket in odd {
        hub.set_rules(bucket, rules.clone()).await.unwrap();
    }
    tell_all(&hub).await;
    hub.forget_bucket("A/B").await.unwrap();
    hub.forget_bucket("was never there").await.unwrap();
    close(hub).await;

    let hub = open(&folder).await.hub;
    for bucket in odd {
        let expect = (bucket != "A/B").then_some(&rules);
        assert_eq!(hub.rules().bucket(bucket), expect, "{bucket}");
    }
    assert_eq!(hub.rules().global().rules().len(), 1);
    for bucket in ["", &"x".repeat(300)] {
        let error = hub.set_rules(bucket, rules.clone()).await.unwrap_err();
        assert!(matches!(error, HubError::BucketName { .. }), "{error}");
    }
    close(hub).await;
}

#[tokio::test]
async fn rules_that_were_half_written_do_not_count_and_damaged_ones_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder).await.hub;
    tell_all(&hub).await;
    close(hub).await;
    let rules = folder.path().join("rules");
    std::fs::write(rules.join("bucket-photos.tmp"), "{\"bucket\":").unwrap();
    let hub = open(&folder).await.hub;
    assert_eq!((hub.rules().global().rules().len(), hub.rules().buckets().count()), (1, 0));
    assert!(!rules.join("bucket-photos.tmp").exists());
    close(hub).await;
    std::fs::write(rules.join("global.json"), "{}").unwrap();
    let config = Config::resolve(&Environment::default(), &StoredConfig::default());
    let error = Hub::open(HubOptions::new(folder.path()), &config).await.unwrap_err();
    assert!(error.to_string().contains("global.json"), "{error}");
}

#[tokio::test]
async fn a_folder_has_one_hub() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder).await.hub;
    let config = Config::resolve(&Environment::default(), &StoredConfig::default());
    let error = Hub::open(HubOptions::new(folder.path()), &config).await.unwrap_err();
    assert!(matches!(error, HubError::Intents(_)), "{error}");
    close(hub).await;
    close(open(&folder).await.hub).await;
}

#[tokio::test]
async fn what_nobody_wants_costs_nothing_and_what_happened_arrives() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder).await.hub;
    let side = add(&hub, 10).await;
    assert!(hub.begin(intent("a")).await.unwrap().is_none());
    tell_all(&hub).await;
    let refused = begin(&hub, "refused").await;
    refused.did_not_happen();
    begin(&hub, "a").await.happened(&event(&hub, "a")).await.unwrap();
    assert_eq!(hub.unresolved_count(), 0);
    close(hub).await;
    assert_eq!(keys(&side), ["photos/a"]);
}

#[tokio::test]
async fn a_full_queue_refuses_operations_and_no_event_of_one_that_began() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder).await.hub;
    let side = add(&hub, 3).await;
    side.set_down(true);
    tell_all(&hub).await;
    let mut begun = Vec::new();
    for key in ["a", "b", "c"] {
        begun.push((key, begin(&hub, key).await));
    }
    let full = |error: HubError| assert!(matches!(error, HubError::Full { .. }), "{error}");
    full(hub.begin(intent("d")).await.unwrap_err());
    let (_, last) = begun.pop().unwrap();
    last.did_not_happen();
    begun.push(("e", begin(&hub, "e").await));
    for (key, operation) in begun {
        operation.happened(&event(&hub, key)).await.unwrap();
    }
    full(hub.begin(intent("f")).await.unwrap_err());
    assert_eq!(hub.unresolved_count(), 0);
    side.set_down(false);
    close(hub).await;
    assert_eq!(keys(&side), ["photos/a", "photos/b", "photos/e"]);
}

#[tokio::test]
async fn an_operation_that_ends_without_a_word_is_given_back_now_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder).await.hub;
    let _side = add(&hub, 10).await;
    tell_all(&hub).await;
    drop(begin(&hub, "a").await);
    drop(begin(&hub, "b").await);
    let doubtful = hub.doubtful().await;
    assert_eq!(doubtful.intent, intent("a"));
    hub.recover(doubtful, None).await.unwrap();
    close(hub).await;

    let opened = open(&folder).await;
    let side = add(&opened.hub, 10).await;
    let left: Vec<_> = opened.unresolved.iter().map(|one| one.intent.key.as_str()).collect();
    assert_eq!(left, ["b"]);
    for one in opened.unresolved {
        let event = event(&opened.hub, &one.intent.key);
        opened.hub.recover(one, Some(event)).await.unwrap();
    }
    assert_eq!(opened.hub.unresolved_count(), 0);
    close(opened.hub).await;
    assert_eq!(keys(&side), ["photos/b"]);
}

#[tokio::test]
async fn what_a_closed_queue_does_not_take_is_unresolved_at_the_next_opening() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder).await.hub;
    let _side = add(&hub, 10).await;
    tell_all(&hub).await;
    let operation = begin(&hub, "late").await;
    let event = event(&hub, "late");
    close(hub).await;
    // The queue is gone with its target, so that nobody is missed but those who will be there again.
    drop(operation.happened(&event).await);
    let opened = open(&folder).await;
    assert_eq!(opened.unresolved.len(), 1, "{:?}", opened.unresolved);
    close(opened.hub).await;
}

#[tokio::test]
async fn a_target_that_cannot_be_made_is_told_of_and_its_events_wait() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [
        ("MINIO_NOTIFY_WEBHOOK_ENABLE_AUDIT", "on"),
        ("MINIO_NOTIFY_WEBHOOK_ENDPOINT_AUDIT", "https://localhost:1/"),
        ("MINIO_NOTIFY_WEBHOOK_CLIENT_CERT_AUDIT", "/nowhere/cert.pem"),
        ("MINIO_NOTIFY_WEBHOOK_CLIENT_KEY_AUDIT", "/nowhere/key.pem"),
        ("MINIO_NOTIFY_KAFKA_ENABLE_WRONG", "on"),
        ("MINIO_NOTIFY_KAFKA_BROKERS_WRONG", "a:b:c"),
    ];
    let opened = open_with(&folder, &variables).await;
    let mut faults: Vec<String> = opened.faults.iter().map(ToString::to_string).collect();
    faults.sort();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(
        faults[0].starts_with("`arn:minio:sqs::audit:webhook`") && faults[0].contains("/nowhere"),
        "{faults:?}"
    );
    assert!(faults[1].contains("wrong") && faults[1].contains("BROKERS"), "{faults:?}");
    let hub = opened.hub;
    assert_eq!(hub.arns_line().as_deref(), Some("SQS ARNs: arn:minio:sqs::audit:webhook"));
    let arn = "arn:minio:sqs::audit:webhook".parse().unwrap();
    let rule = Rule::new(arn, ["s3:ObjectCreated:*".parse().unwrap()]).unwrap();
    hub.set_global_rules(BucketRules::new(vec![rule])).await.unwrap();
    begin(&hub, "a").await.happened(&event(&hub, "a")).await.unwrap();
    assert_eq!(hub.notifier().status(Timestamp::default())[0].queued, 1);
    hub.close(Duration::ZERO).await;
}

#[tokio::test]
async fn rules_of_one_target_with_topics_of_their_own_are_told_each() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder).await.hub;
    let side = add(&hub, 10).await;
    let special = rule().with_topic("special").unwrap();
    hub.set_global_rules(BucketRules::new(vec![rule(), special.clone(), special])).await.unwrap();
    begin(&hub, "a").await.happened(&event(&hub, "a")).await.unwrap();
    close(hub).await;
    let topics: Vec<Option<String>> =
        side.received().iter().map(|message| message.topic.as_deref().map(Into::into)).collect();
    assert_eq!(topics, [None, Some("special".into())]);
    for topic in ["", "..", "a/b", "a b"] {
        assert!(rule().with_topic(topic).is_err(), "{topic}");
    }
}

#[tokio::test]
async fn listeners_hear_what_they_asked_for_without_any_rule() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder).await.hub;
    let created = "s3:ObjectCreated:*".parse::<EventSelector>().unwrap().events();
    let mut listen = Listen::new(created);
    listen.bucket = Some("photos".into());
    listen.prefix = "a".into();
    listen.suffix = ".jpg".into();
    let mut listener = hub.listen(listen).unwrap();
    assert!(hub.wants("photos", EventName::ObjectCreatedPut));
    assert!(!hub.wants("others", EventName::ObjectCreatedPut));
    for key in ["a.jpg", "b.jpg", "a.png"] {
        begin(&hub, key).await.happened(&event(&hub, key)).await.unwrap();
    }
    assert_eq!(listener.next().await.unwrap().key(), "a.jpg");
    hub.close(Duration::ZERO).await;
    assert!(listener.next().await.is_none());
}

#[tokio::test]
async fn a_listener_that_does_not_keep_up_loses_the_newest_and_there_are_so_many_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::resolve(&Environment::default(), &StoredConfig::default());
    let mut options = HubOptions::new(folder.path());
    options.listeners_max = 1;
    let hub = Hub::open(options, &config).await.unwrap().hub;
    let all = "s3:*".parse::<EventSelector>().unwrap().events();
    let mut listener = hub.listen(Listen::new(all)).unwrap();
    let error = hub.listen(Listen::new(all)).unwrap_err();
    assert!(matches!(error, HubError::TooManyListeners { max: 1 }), "{error}");
    for number in 0..1_005 {
        let key = number.to_string();
        begin(&hub, &key).await.happened(&event(&hub, &key)).await.unwrap();
    }
    assert_eq!(listener.lost(), 5);
    assert_eq!(listener.next().await.unwrap().key(), "0");
    drop(listener);
    assert_eq!(hub.listener_count(), 0);
    assert!(!hub.wants("photos", EventName::ObjectCreatedPut));
    close(hub).await;
}

#[tokio::test]
async fn a_queue_and_its_dead_letters_may_be_configured_to_be_in_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let both = folder.path().join("both");
    let variables = [
        ("MINIO_NOTIFY_WEBHOOK_ENABLE_A", "on"),
        ("MINIO_NOTIFY_WEBHOOK_ENDPOINT_A", "http://127.0.0.1:1/"),
        ("MINIO_NOTIFY_WEBHOOK_QUEUE_DIR_A", both.to_str().unwrap()),
        ("MINIO_NOTIFY_WEBHOOK_DEAD_LETTER_DIR_A", both.to_str().unwrap()),
    ];
    let opened = open_with(&folder, &variables).await;
    assert!(opened.faults.is_empty(), "{:?}", opened.faults);
    assert_eq!(opened.hub.notifier().status(Timestamp::default()).len(), 1);
    opened.hub.close(Duration::ZERO).await;
}

#[tokio::test]
async fn what_a_queue_that_cannot_be_opened_should_have_is_unresolved_until_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let in_the_way = folder.path().join("file");
    std::fs::write(&in_the_way, "").unwrap();
    let variables = [
        ("MINIO_NOTIFY_WEBHOOK_ENABLE_A", "on"),
        ("MINIO_NOTIFY_WEBHOOK_ENDPOINT_A", "http://127.0.0.1:1/"),
        ("MINIO_NOTIFY_WEBHOOK_QUEUE_DIR_A", in_the_way.to_str().unwrap()),
    ];
    let Opened { hub, faults, .. } = open_with(&folder, &variables).await;
    assert!(faults[0].to_string().contains("arn:minio:sqs::a:webhook"), "{faults:?}");
    let rule = |arn: &str| Rule::new(arn.parse().unwrap(), ["s3:ObjectCreated:*".parse().unwrap()]).unwrap();
    let rules = |arn: &str| BucketRules::new(vec![rule(arn)]);
    // A target that is not configured at all is nobody to wait for.
    hub.set_global_rules(rules(ARN)).await.unwrap();
    begin(&hub, "a").await.happened(&event(&hub, "a")).await.unwrap_err();
    assert_eq!(hub.unresolved_count(), 0);
    hub.set_global_rules(rules("arn:minio:sqs::a:webhook")).await.unwrap();
    begin(&hub, "b").await.happened(&event(&hub, "b")).await.unwrap_err();
    assert_eq!(hub.unresolved_count(), 1);
    hub.close(Duration::ZERO).await;
    std::fs::remove_file(&in_the_way).unwrap();

    let Opened { hub, unresolved, faults, .. } = open_with(&folder, &variables).await;
    assert!(faults.is_empty(), "{faults:?}");
    for one in unresolved {
        let event = event(&hub, &one.intent.key);
        hub.recover(one, Some(event)).await.unwrap();
    }
    assert_eq!(hub.notifier().status(Timestamp::default())[0].queued, 1);
    hub.close(Duration::ZERO).await;
}
