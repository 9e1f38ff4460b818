//! `AlterConfigs` and `IncrementalAlterConfigs`: settings that change while clients produce.

use std::net::SocketAddr;
use std::sync::Arc;

use kolumn_broker::{Broker, Observer, Settings};
use kolumn_kafka_wire::messages::{
    AlterConfigsRequest, IncrementalAlterConfigsRequest, alter_configs_request,
    incremental_alter_configs_request,
};
use kolumn_kafka_wire::{ErrorCode, Str};
use kolumn_topic_store::{PartitionIndex, Silent, Store, Timestamp};
use tempfile::TempDir;

use crate::client::{Client, batch, batch_at, values};
use crate::configs::{BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, setting};
use crate::harness::{Recorder, TestBroker, until};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// Key, operation, value.
type Change<'c> = (&'c str, i8, Option<&'c str>);

fn incremental(
    resource_type: i8,
    name: &str,
    changes: &[Change<'_>],
) -> incremental_alter_configs_request::AlterConfigsResource<'static> {
    let configs =
        changes.iter().map(|(key, operation, value)| incremental_alter_configs_request::AlterableConfig {
            name: Str::from((*key).to_owned()),
            config_operation: *operation,
            value: value.map(|value| Str::from(value.to_owned())),
            ..Default::default()
        });
    incremental_alter_configs_request::AlterConfigsResource {
        resource_type,
        resource_name: Str::from(name.to_owned()),
        configs: configs.collect(),
        ..Default::default()
    }
}

fn whole(
    resource_type: i8,
    name: &str,
    pairs: &[(&str, Option<&str>)],
) -> alter_configs_request::AlterConfigsResource<'static> {
    let configs = pairs.iter().map(|(key, value)| alter_configs_request::AlterableConfig {
        name: Str::from((*key).to_owned()),
        value: value.map(|value| Str::from(value.to_owned())),
        ..Default::default()
    });
    alter_configs_request::AlterConfigsResource {
        resource_type,
        resource_name: Str::from(name.to_owned()),
        configs: configs.collect(),
        ..Default::default()
    }
}

/// Code and text of an outcome.
type Outcome = (ErrorCode, Option<String>);

/// Changes a resource; gives the one outcome.
async fn change(client: &mut Client, resource_type: i8, name: &str, changes: &[Change<'_>]) -> Outcome {
    let resources = vec![incremental(resource_type, name, changes)].into();
    let request = IncrementalAlterConfigsRequest { resources, ..Default::default() };
    let response = client.call(1, &request).await;
    assert_eq!(response.responses.len(), 1);
    let result = response.responses.iter().next().expect("a result");
    assert_eq!((result.resource_type, &*result.resource_name), (resource_type, name));
    (result.error_code, result.error_message.as_deref().map(str::to_owned))
}

/// Replaces the settings of a resource; gives the one outcome.
async fn replace(
    client: &mut Client,
    resource_type: i8,
    name: &str,
    pairs: &[(&str, Option<&str>)],
) -> Outcome {
    let resources = vec![whole(resource_type, name, pairs)].into();
    let request = AlterConfigsRequest { resources, ..Default::default() };
    let response = client.call(2, &request).await;
    assert_eq!(response.responses.len(), 1);
    let result = response.responses.iter().next().expect("a result");
    assert_eq!((result.resource_type, &*result.resource_name), (resource_type, name));
    (result.error_code, result.error_message.as_deref().map(str::to_owned))
}

const DONE: Outcome = (ErrorCode::NONE, None);

#[track_caller]
fn check_refused((code, text): Outcome, expected: ErrorCode, part: &str) {
    let text = text.expect("a text");
    assert_eq!(code, expected, "{text}");
    assert!(text.contains(part), "`{part}` is not in `{text}`");
}

fn from_topic(value: &str) -> (String, i8) {
    (value.to_owned(), 1)
}

fn default(value: &str) -> (String, i8) {
    (value.to_owned(), 5)
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_set_and_given_back_one_by_one() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic_with("t", 1, &[("segment.bytes", "2000")]).await;
    let changes = [("retention.ms", SET, Some("5000")), ("segment.bytes", DELETE, None)];
    assert_eq!(change(&mut client, TOPIC, "t", &changes).await, DONE);
    assert_eq!(setting(&mut client, "t", "retention.ms").await, from_topic("5000"));
    assert_eq!(setting(&mut client, "t", "segment.bytes").await, default("1073741824"));
    assert_eq!(change(&mut client, TOPIC, "t", &[("segment.ms", SET, Some("7"))]).await, DONE);
    assert_eq!(setting(&mut client, "t", "retention.ms").await, from_topic("5000"), "the others stay");
    assert_eq!(change(&mut client, TOPIC, "t", &[("flush.ms", DELETE, None)]).await, DONE, "it had none");
    assert_eq!(change(&mut client, TOPIC, "t", &[]).await, DONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn words_are_added_to_a_list_and_taken_from_it() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    for (operation, words, expected) in [
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "delete", "compact"),
        (APPEND, "delete", "compact,delete"),
    ] {
        let outcome = change(&mut client, TOPIC, "t", &[("cleanup.policy", operation, Some(words))]).await;
        assert_eq!(outcome, DONE);
        assert_eq!(setting(&mut client, "t", "cleanup.policy").await, from_topic(expected));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_cannot_be_is_refused_by_name_and_changes_nothing() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let long = "x".repeat(32_000);
    let good = ("segment.ms", SET, Some("7"));
    for (changes, code, part) in [
        (&[good, ("no.such.key", SET, Some("1"))][..], ErrorCode::INVALID_CONFIG, "no.such.key"),
        (&[good, ("no.such.key", DELETE, None)], ErrorCode::INVALID_CONFIG, "no.such.key"),
        (&[good, (&long, SET, Some(&long))], ErrorCode::INVALID_CONFIG, "xxx"),
        (
            &[good, ("retention.ms", SET, Some("soon"))],
            ErrorCode::INVALID_CONFIG,
            "`soon` for `retention.ms`",
        ),
        (&[good, ("retention.ms", APPEND, Some("1"))], ErrorCode::INVALID_CONFIG, "retention.ms"),
        (&[good, ("retention.ms", SUBTRACT, Some("1"))], ErrorCode::INVALID_CONFIG, "retention.ms"),
        (&[good, ("cleanup.policy", APPEND, Some("shred"))], ErrorCode::INVALID_CONFIG, "cleanup.policy"),
        (&[good, ("cleanup.policy", SUBTRACT, Some("delete"))], ErrorCode::INVALID_CONFIG, "cleanup.policy"),
        (&[good, ("min.insync.replicas", SET, Some("2"))], ErrorCode::INVALID_CONFIG, "min.insync.replicas"),
        (&[good, ("compression.type", SET, Some("zstd"))], ErrorCode::INVALID_CONFIG, "compression.type"),
        (&[good, ("retention.ms", SET, None)], ErrorCode::INVALID_REQUEST, "`retention.ms` has no value"),
        (&[good, ("cleanup.policy", APPEND, None)], ErrorCode::INVALID_REQUEST, "`cleanup.policy` has no"),
        (&[good, ("retention.ms", 4, Some("1"))], ErrorCode::INVALID_REQUEST, "operation 4"),
        (&[good, ("retention.ms", -1, Some("1"))], ErrorCode::INVALID_REQUEST, "operation -1"),
        (&[good, good], ErrorCode::INVALID_REQUEST, "`segment.ms` twice"),
        (&[good, ("segment.ms", DELETE, None)], ErrorCode::INVALID_REQUEST, "`segment.ms` twice"),
    ] {
        check_refused(change(&mut client, TOPIC, "t", changes).await, code, part);
        assert_eq!(setting(&mut client, "t", "segment.ms").await, default("604800000"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn alter_configs_replaces_all_settings() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic_with("t", 1, &[("segment.bytes", "2000")]).await;
    let pairs = [("retention.ms", None), ("segment.ms", Some("7"))];
    assert_eq!(replace(&mut client, TOPIC, "t", &pairs).await, DONE);
    assert_eq!(setting(&mut client, "t", "segment.ms").await, from_topic("7"));
    assert_eq!(setting(&mut client, "t", "segment.bytes").await, default("1073741824"), "was not named");
    assert_eq!(setting(&mut client, "t", "retention.ms").await, default("604800000"), "has no value");
    for (pairs, code, part) in [
        (
            &[("flush.ms", Some("1")), ("no.such.key", Some("1"))][..],
            ErrorCode::INVALID_CONFIG,
            "no.such.key",
        ),
        (&[("flush.ms", Some("soon"))], ErrorCode::INVALID_CONFIG, "`soon` for `flush.ms`"),
        (&[("flush.ms", Some("1")), ("flush.ms", Some("1"))], ErrorCode::INVALID_REQUEST, "`flush.ms` twice"),
    ] {
        check_refused(replace(&mut client, TOPIC, "t", pairs).await, code, part);
        assert_eq!(setting(&mut client, "t", "segment.ms").await, from_topic("7"), "nothing has changed");
    }
    assert_eq!(replace(&mut client, TOPIC, "t", &[]).await, DONE);
    assert_eq!(setting(&mut client, "t", "segment.ms").await, default("604800000"));
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_that_cannot_change_say_so() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let value = Some("1");
    for (resource_type, name, key, code, part) in [
        (TOPIC, "unknown", "retention.ms", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "no topic `unknown`"),
        (TOPIC, "not legal", "retention.ms", ErrorCode::INVALID_TOPIC_EXCEPTION, "name"),
        (TOPIC, "", "retention.ms", ErrorCode::INVALID_TOPIC_EXCEPTION, "name"),
        (BROKER, "1", "num.partitions", ErrorCode::INVALID_REQUEST, "`num.partitions` cannot be changed"),
        (BROKER, "", "log.retention.ms", ErrorCode::INVALID_REQUEST, "`log.retention.ms` cannot be changed"),
        (BROKER, "1", "no.such.key", ErrorCode::INVALID_CONFIG, "no broker setting `no.such.key`"),
        (BROKER, "2", "num.partitions", ErrorCode::INVALID_REQUEST, "broker 1, not `2`"),
        (BROKER_LOGGER, "1", "root", ErrorCode::INVALID_CONFIG, "no setting `root`"),
        (CLIENT_METRICS, "all", "metrics", ErrorCode::INVALID_CONFIG, "no setting `metrics`"),
        (GROUP, "g", "share.auto.offset.reset", ErrorCode::INVALID_CONFIG, "no setting `share."),
        (3, "x", "x", ErrorCode::INVALID_REQUEST, "type 3"),
    ] {
        check_refused(change(&mut client, resource_type, name, &[(key, SET, value)]).await, code, part);
        check_refused(replace(&mut client, resource_type, name, &[(key, value)]).await, code, part);
    }
    for (resource_type, name) in [(BROKER, "1"), (BROKER, ""), (BROKER_LOGGER, "1"), (GROUP, "g")] {
        assert_eq!(change(&mut client, resource_type, name, &[]).await, DONE, "no change is granted");
        assert_eq!(replace(&mut client, resource_type, name, &[]).await, DONE);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_is_named_twice_is_refused_and_the_others_change() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("twice", 1).await;
    client.create_topic("once", 1).await;
    let change = [("flush.ms", SET, Some("1"))];
    let names = ["twice", "once", "twice"];
    let resources = names.iter().map(|name| incremental(TOPIC, name, &change)).collect();
    let request = IncrementalAlterConfigsRequest { resources, ..Default::default() };
    let response = client.call(0, &request).await;
    let mut outcomes: Vec<_> = response
        .responses
        .iter()
        .map(|result| (result.resource_name.to_string(), result.error_code))
        .collect();
    outcomes.sort_unstable_by(|(one, _), (two, _)| one.cmp(two));
    let expected = [("once".to_owned(), ErrorCode::NONE), ("twice".to_owned(), ErrorCode::INVALID_REQUEST)];
    assert_eq!(outcomes, expected);
    assert_eq!(setting(&mut client, "twice", "flush.ms").await, default("9223372036854775807"));
    let resources = names.iter().map(|name| whole(TOPIC, name, &[("flush.ms", Some("2"))])).collect();
    let response = client.call(0, &AlterConfigsRequest { resources, ..Default::default() }).await;
    assert_eq!(response.responses.len(), 2);
    assert_eq!(setting(&mut client, "once", "flush.ms").await, from_topic("2"));
    assert_eq!(setting(&mut client, "twice", "flush.ms").await, default("9223372036854775807"));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_are_only_validated_are_judged_and_not_made() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    for (value, code) in [("1", ErrorCode::NONE), ("soon", ErrorCode::INVALID_CONFIG)] {
        let resources = vec![incremental(TOPIC, "t", &[("flush.ms", SET, Some(value))])].into();
        let request = IncrementalAlterConfigsRequest { resources, validate_only: true, ..Default::default() };
        let response = client.call(1, &request).await;
        assert!(response.responses.iter().all(|result| result.error_code == code));
        let resources = vec![whole(TOPIC, "t", &[("flush.ms", Some(value))])].into();
        let request = AlterConfigsRequest { resources, validate_only: true, ..Default::default() };
        let response = client.call(1, &request).await;
        assert!(response.responses.iter().all(|result| result.error_code == code));
        assert_eq!(setting(&mut client, "t", "flush.ms").await, default("9223372036854775807"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_changes_at_the_same_time_none_is_lost() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let tasks = tokio::task::LocalSet::new();
    for task in 0..8 {
        let mut client = broker.client().await;
        tasks.spawn_local(async move {
            for round in 0..5 {
                let word = format!("{task}:{round}");
                let append = [("leader.replication.throttled.replicas", APPEND, Some(&*word))];
                assert_eq!(change(&mut client, TOPIC, "t", &append).await, DONE);
            }
        });
    }
    tasks.await;
    let (words, _) = setting(&mut client, "t", "leader.replication.throttled.replicas").await;
    let mut words: Vec<_> = words.split(',').collect();
    words.sort_unstable();
    let expected: Vec<_> =
        (0..8).flat_map(|task| (0..5).map(move |round| format!("{task}:{round}"))).collect();
    assert_eq!(words, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_would_outgrow_its_field_is_refused() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let key = "follower.replication.throttled.replicas";
    let mut last = DONE;
    for letter in ["a", "b", "c"] {
        let word = letter.repeat(20_000);
        last = change(&mut client, TOPIC, "t", &[(key, APPEND, Some(&word))]).await;
    }
    check_refused(last, ErrorCode::INVALID_CONFIG, key);
    assert_eq!(setting(&mut client, "t", key).await.0.len(), 20_000, "and it can still be shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_there_after_a_restart() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let changes = [("retention.ms", DELETE, None), ("max.message.bytes", SET, Some("500"))];
    assert_eq!(change(&mut client, TOPIC, "t", &changes).await, DONE);
    let broker = TestBroker::start_in(broker.stop().await, |_| {}).await;
    let mut client = broker.client().await;
    assert_eq!(setting(&mut client, "t", "retention.ms").await, default("604800000"));
    assert_eq!(setting(&mut client, "t", "max.message.bytes").await, from_topic("500"));
    let produced = client.produce("t", 0, batch(&[&"x".repeat(1_000)])).await;
    assert_eq!(produced.error_code, ErrorCode::MESSAGE_TOO_LARGE, "and they act");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_batch_is_the_one_that_the_topic_allows_now() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let long = batch(&[&"x".repeat(1_000)]);
    for (value, code) in [("500", ErrorCode::MESSAGE_TOO_LARGE), ("5000", ErrorCode::NONE)] {
        assert_eq!(change(&mut client, TOPIC, "t", &[("max.message.bytes", SET, Some(value))]).await, DONE);
        assert_eq!(client.produce("t", 0, long.clone()).await.error_code, code, "{value}");
    }
    let large = batch(&[&"x".repeat(6_000)]);
    assert_eq!(client.produce("t", 0, large.clone()).await.error_code, ErrorCode::MESSAGE_TOO_LARGE);
    assert_eq!(change(&mut client, TOPIC, "t", &[("max.message.bytes", DELETE, None)]).await, DONE);
    assert_eq!(client.produce("t", 0, large).await.error_code, ErrorCode::NONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_have_the_time_of_their_append_once_the_topic_says_so() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let sent = 1_700_000_000_000;
    assert_eq!(client.produce("t", 0, batch_at(&["a"], sent)).await.log_append_time_ms, -1);
    let append_time = [("message.timestamp.type", SET, Some("LogAppendTime"))];
    assert_eq!(change(&mut client, TOPIC, "t", &append_time).await, DONE);
    let produced = client.produce("t", 0, batch_at(&["b"], sent)).await;
    assert!(produced.log_append_time_ms > sent);
    let back = [("message.timestamp.type", SET, Some("CreateTime"))];
    assert_eq!(change(&mut client, TOPIC, "t", &back).await, DONE);
    assert_eq!(client.produce("t", 0, batch_at(&["c"], sent)).await.log_append_time_ms, -1);
    assert_eq!(values(&client.fetch("t", 0, 0).await).len(), 3, "batches keep the type that they came with");
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_on_timestamps_act_from_the_next_batch_on() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let (past, future) = (1_000_000_000_000, 4_000_000_000_000);
    assert_eq!(client.produce("t", 0, batch_at(&["a"], past)).await.error_code, ErrorCode::NONE);
    assert_eq!(
        client.produce("t", 0, batch_at(&["b"], future)).await.error_code,
        ErrorCode::INVALID_TIMESTAMP
    );
    let bounds = [
        ("message.timestamp.before.max.ms", SET, Some("3600000")),
        ("message.timestamp.after.max.ms", SET, Some("9223372036854775807")),
    ];
    assert_eq!(change(&mut client, TOPIC, "t", &bounds).await, DONE);
    assert_eq!(client.produce("t", 0, batch_at(&["c"], past)).await.error_code, ErrorCode::INVALID_TIMESTAMP);
    assert_eq!(client.produce("t", 0, batch_at(&["d"], future)).await.error_code, ErrorCode::NONE);
}

/// A broker over a store that was handed in, which looks at retention all the time.
pub(crate) async fn lent() -> (Broker, Store, TempDir) {
    let dir = TempDir::new().expect("a directory");
    let (disk, _) = kolumn_journal::probe(dir.path()).expect("a disk");
    let settings = kolumn_topic_store::Settings {
        size_limit: Some(1 << 30),
        retention_interval_ms: 1,
        ..kolumn_topic_store::Settings::default()
    };
    // Before the broker's clock, so that the next look at retention is due.
    let now = Timestamp::new(1_700_000_000_000);
    let opened =
        tokio::task::spawn_blocking(move || Store::open(disk, settings, 1, Arc::new(Silent::new()), now));
    let store = opened.await.expect("runs").expect("opens");
    let broker = Broker::builder()
        .store(store.clone())
        .listen(SocketAddr::from(([127, 0, 0, 1], 0)))
        .observer(Arc::new(Recorder::default()) as Arc<dyn Observer>)
        .configure(|settings| settings.storage.maintenance_interval_ms = 5)
        .start()
        .await
        .expect("it starts");
    (broker, store, dir)
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_goes_by_the_age_that_the_topic_has_now() {
    let (broker, store, _dir) = lent().await;
    let mut client = Client::connect(broker.local_addr()).await;
    // Old records in a topic that keeps all.
    client.create_topic("t", 1).await;
    client.produce("t", 0, batch_at(&["a", "b"], 1_000_000_000_000)).await;
    assert_eq!(client.fetch("t", 0, 0).await.log_start_offset, 0);
    assert_eq!(change(&mut client, TOPIC, "t", &[("retention.ms", SET, Some("60000"))]).await, DONE);
    let view = store.view(&Settings::default().view).expect("the broker's view").id;
    let id = store.topic(view, "t").expect("a topic").id;
    until("they are gone", || {
        store.offsets(id, PartitionIndex::new(0)).expect("a partition").log_start.value() == 2
    })
    .await;
}
