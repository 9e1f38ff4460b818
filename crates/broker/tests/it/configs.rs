//! `DescribeConfigs`: settings as clients see them.

use kolumn_kafka_wire::messages::{
    CreateTopicsRequest, DescribeConfigsRequest,
    create_topics_request::{CreatableTopic, CreatableTopicConfig},
    describe_configs_request::DescribeConfigsResource,
    describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsResult},
};
use kolumn_kafka_wire::{ErrorCode, Str};
use kolumn_topic_store::{NewTopic, Timestamp, TopicConfig};

use crate::client::Client;
use crate::harness::TestBroker;

pub(crate) const TOPIC: i8 = 2;
pub(crate) const BROKER: i8 = 4;
pub(crate) const BROKER_LOGGER: i8 = 8;
pub(crate) const CLIENT_METRICS: i8 = 16;
pub(crate) const GROUP: i8 = 32;

const FROM_TOPIC: i8 = 1;
const FROM_START: i8 = 4;
const FROM_DEFAULT: i8 = 5;

fn resource(resource_type: i8, name: &str) -> DescribeConfigsResource<'static> {
    DescribeConfigsResource {
        resource_type,
        resource_name: Str::from(name.to_owned()),
        configuration_keys: None,
        ..DescribeConfigsResource::default()
    }
}

fn only(
    keys: &[&'static str],
    resource: DescribeConfigsResource<'static>,
) -> DescribeConfigsResource<'static> {
    let keys = keys.iter().map(|key| Str::from(*key));
    DescribeConfigsResource { configuration_keys: Some(keys.collect()), ..resource }
}

async fn describe(
    client: &mut Client,
    version: i16,
    resources: Vec<DescribeConfigsResource<'static>>,
    in_detail: bool,
) -> Vec<DescribeConfigsResult<'static>> {
    let request = DescribeConfigsRequest {
        resources: resources.into(),
        include_synonyms: in_detail,
        include_documentation: in_detail && version >= 3,
        ..DescribeConfigsRequest::default()
    };
    client.call(version, &request).await.results.iter().collect()
}

/// The settings of one resource.
async fn rows(
    client: &mut Client,
    resource_type: i8,
    name: &str,
) -> Vec<DescribeConfigsResourceResult<'static>> {
    let results = describe(client, 4, vec![resource(resource_type, name)], true).await;
    assert_eq!(
        (results.len(), results[0].error_code),
        (1, ErrorCode::NONE),
        "{:?}",
        results[0].error_message
    );
    assert_eq!(results[0].error_message, None);
    results[0].configs.iter().collect()
}

fn row<'r>(
    rows: &'r [DescribeConfigsResourceResult<'static>],
    name: &str,
) -> &'r DescribeConfigsResourceResult<'static> {
    rows.iter().find(|row| &*row.name == name).unwrap_or_else(|| panic!("no row {name}"))
}

/// The value of a topic's setting and where it comes from.
pub(crate) async fn setting(client: &mut Client, topic: &str, key: &str) -> (String, i8) {
    let rows = rows(client, TOPIC, topic).await;
    let found = row(&rows, key);
    (found.value.as_deref().expect("a value").to_owned(), found.config_source)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_shows_all_its_settings_with_value_source_and_type() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let given = [("cleanup.policy", "compact,delete"), ("max.message.bytes", "5000")];
    client.create_topic_with("shown", 1, &given).await;
    let rows = rows(&mut client, TOPIC, "shown").await;
    let names: Vec<_> = rows.iter().map(|row| &*row.name).collect();
    assert!(
        names.iter().copied().eq(TopicConfig::keys().map(kolumn_topic_store::ConfigKey::name)),
        "{names:?}"
    );
    assert!(names.is_sorted() && names.len() >= 32);
    // Boolean, string, int, long, double, list; one that was given of each that has more than one value.
    for (name, value, source, config_type) in [
        ("cleanup.policy", "compact,delete", FROM_TOPIC, 7),
        ("max.message.bytes", "5000", FROM_TOPIC, 3),
        ("retention.ms", "-1", FROM_TOPIC, 5),
        ("retention.bytes", "-1", FROM_DEFAULT, 5),
        ("preallocate", "false", FROM_DEFAULT, 1),
        ("compression.type", "producer", FROM_DEFAULT, 2),
        ("min.cleanable.dirty.ratio", "0.5", FROM_DEFAULT, 6),
        ("min.insync.replicas", "1", FROM_DEFAULT, 3),
    ] {
        let row = row(&rows, name);
        let found = (row.value.as_deref(), row.config_source, row.config_type);
        assert_eq!(found, (Some(value), source, config_type), "{name}");
    }
    for row in &rows {
        assert!(!row.read_only && !row.is_sensitive, "{}", row.name);
        assert!(row.documentation.as_deref().is_some_and(|text| text.ends_with('.')), "{}", row.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn synonyms_name_what_would_take_the_place_of_a_value() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("shown", 1).await;
    let rows = rows(&mut client, TOPIC, "shown").await;
    let synonyms = |name: &str| {
        let synonyms = row(&rows, name).synonyms.iter();
        let parts = synonyms.map(|synonym| {
            (synonym.name.to_string(), synonym.value.as_deref().map(str::to_owned), synonym.source)
        });
        parts.collect::<Vec<_>>()
    };
    let part = |name: &str, value: &str, source| (name.to_owned(), Some(value.to_owned()), source);
    let given = [part("retention.ms", "-1", FROM_TOPIC), part("log.retention.ms", "604800000", FROM_DEFAULT)];
    assert_eq!(synonyms("retention.ms"), given);
    assert_eq!(synonyms("max.message.bytes"), [part("message.max.bytes", "1048588", FROM_DEFAULT)]);
    assert_eq!(synonyms("remote.storage.enable"), [], "no setting of the broker gives its default");
}

#[tokio::test(flavor = "multi_thread")]
async fn synonyms_and_texts_are_told_only_to_who_asks_and_in_versions_that_have_them() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("shown", 1).await;
    for version in 1..=4 {
        for in_detail in [false, true] {
            let resources = vec![resource(TOPIC, "shown"), resource(BROKER, "1")];
            for result in describe(&mut client, version, resources, in_detail).await {
                assert_eq!(result.error_code, ErrorCode::NONE);
                assert!(!result.configs.is_empty());
                assert_eq!(result.configs.iter().any(|row| !row.synonyms.is_empty()), in_detail);
                for row in &result.configs {
                    let is_told = row.documentation.as_deref().is_some_and(|text| !text.is_empty());
                    assert_eq!(is_told, in_detail && version >= 3);
                    assert_eq!(row.config_type > 0, version >= 3);
                    assert!([FROM_TOPIC, FROM_START, FROM_DEFAULT].contains(&row.config_source));
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_asked_for_are_shown_and_unknown_ones_left_out() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("shown", 1).await;
    let resources = vec![
        only(&["retention.ms", "no.such.key", "cleanup.policy", "retention.ms"], resource(TOPIC, "shown")),
        only(&["num.partitions", "retention.ms"], resource(BROKER, "1")),
        only(&["no.such.key"], resource(TOPIC, "shown")),
    ];
    let results = describe(&mut client, 4, resources, false).await;
    let names = |result: &DescribeConfigsResult<'static>| {
        result.configs.iter().map(|row| row.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(results.len(), 2, "a resource that is asked for twice is answered once");
    assert_eq!(names(&results[0]), ["cleanup.policy", "retention.ms"]);
    assert_eq!(names(&results[1]), ["num.partitions"]);
    let none_named = describe(&mut client, 1, vec![only(&[], resource(TOPIC, "shown"))], false).await;
    assert!(none_named[0].configs.len() > 30, "who names no key means all");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_broker_shows_what_it_was_started_with() {
    let broker = TestBroker::start_with(|settings| {
        settings.node_id = 7;
        settings.topics.default_partitions = 4;
        settings.advertised = Some("[::1]:19092".to_owned());
    })
    .await;
    let mut client = broker.client().await;
    let dir = broker.dir.path().to_str().expect("a name").to_owned();
    for name in ["7", ""] {
        let rows = rows(&mut client, BROKER, name).await;
        for (name, value, source, config_type) in [
            ("advertised.listeners", "PLAINTEXT://[::1]:19092", FROM_START, 2),
            ("listeners", "PLAINTEXT://127.0.0.1:0", FROM_START, 2),
            ("broker.id", "7", FROM_START, 3),
            ("node.id", "7", FROM_START, 3),
            ("log.dirs", &*dir, FROM_START, 2),
            ("num.partitions", "4", FROM_START, 3),
            ("auto.create.topics.enable", "true", FROM_DEFAULT, 1),
            ("default.replication.factor", "1", FROM_DEFAULT, 3),
            ("offsets.topic.replication.factor", "1", FROM_DEFAULT, 4),
            ("min.insync.replicas", "1", FROM_DEFAULT, 3),
            ("message.max.bytes", "1048588", FROM_DEFAULT, 3),
            ("log.retention.ms", "604800000", FROM_DEFAULT, 5),
            ("group.initial.rebalance.delay.ms", "3000", FROM_DEFAULT, 3),
            ("offsets.retention.minutes", "10080", FROM_DEFAULT, 3),
        ] {
            let row = row(&rows, name);
            let found = (row.value.as_deref(), row.config_source, row.config_type);
            assert_eq!(found, (Some(value), source, config_type), "{name}");
        }
        let version = row(&rows, "inter.broker.protocol.version").value.clone().expect("a value");
        assert!(version.starts_with("4.2"), "{version}");
        let partitions: Vec<_> = row(&rows, "num.partitions").synonyms.iter().collect();
        let parts = partitions.iter().map(|part| (part.value.as_deref().unwrap_or_default(), part.source));
        assert_eq!(parts.collect::<Vec<_>>(), [("4", FROM_START), ("1", FROM_DEFAULT)]);
        let names: Vec<_> = rows.iter().map(|row| row.name.to_string()).collect();
        assert!(names.iter().zip(names.iter().skip(1)).all(|(one, two)| one < two), "each once, sorted");
        assert!(rows.iter().all(|row| row.read_only && !row.is_sensitive));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_advertised_address_is_by_default_the_one_that_the_client_connected_to() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let rows = rows(&mut client, BROKER, "1").await;
    let advertised = row(&rows, "advertised.listeners");
    let expected = format!("PLAINTEXT://{}", broker.broker.local_addr());
    assert_eq!((advertised.value.as_deref(), advertised.config_source), (Some(&*expected), FROM_START));
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_that_are_not_there_have_an_error_each() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let long = "x".repeat(32_000);
    for (resource_type, name, code) in [
        (TOPIC, "unknown", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode::INVALID_TOPIC_EXCEPTION),
        (TOPIC, "not legal", ErrorCode::INVALID_TOPIC_EXCEPTION),
        (TOPIC, &*long, ErrorCode::INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode::INVALID_REQUEST),
        (BROKER, "one", ErrorCode::INVALID_REQUEST),
        (BROKER, &*long, ErrorCode::INVALID_REQUEST),
        (BROKER_LOGGER, "2", ErrorCode::INVALID_REQUEST),
        (BROKER_LOGGER, "", ErrorCode::INVALID_REQUEST),
        (CLIENT_METRICS, "", ErrorCode::INVALID_REQUEST),
        (GROUP, "", ErrorCode::INVALID_REQUEST),
        (0, "x", ErrorCode::INVALID_REQUEST),
        (3, "x", ErrorCode::INVALID_REQUEST),
        (-1, "x", ErrorCode::INVALID_REQUEST),
    ] {
        let results = describe(&mut client, 4, vec![resource(resource_type, name)], true).await;
        let result = &results[0];
        assert_eq!(result.error_code, code, "{resource_type} {name:.20}");
        assert_eq!((result.resource_type, &*result.resource_name), (resource_type, name));
        assert!(result.error_message.as_deref().is_some_and(|text| !text.is_empty()));
        assert!(result.configs.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn loggers_metrics_and_groups_have_no_settings() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    for (resource_type, name) in [(BROKER_LOGGER, "1"), (CLIENT_METRICS, "all"), (GROUP, "group")] {
        assert_eq!(rows(&mut client, resource_type, name).await, []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn create_topics_shows_the_settings_as_describe_configs_does() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let config = CreatableTopicConfig {
        name: Str::from("retention.ms"),
        value: Some(Str::from(" 5000")),
        ..CreatableTopicConfig::default()
    };
    let topic = CreatableTopic {
        name: Str::from("shown"),
        num_partitions: 1,
        replication_factor: 1,
        configs: vec![config].into(),
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic].into(), ..CreateTopicsRequest::default() };
    let response = client.call(5, &request).await;
    let created = response.topics.iter().next().expect("a result");
    assert_eq!((created.error_code, created.topic_config_error_code), (ErrorCode::NONE, ErrorCode::NONE));
    let created = created.configs.expect("settings");
    let created = created.iter().map(|row| (row.name, row.value, row.config_source, row.read_only));
    let described = rows(&mut client, TOPIC, "shown").await.into_iter();
    let described = described.map(|row| (row.name, row.value, row.config_source, row.read_only));
    assert!(created.eq(described));
    assert_eq!(setting(&mut client, "shown", "retention.ms").await, ("5000".to_owned(), FROM_TOPIC));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_short_names_do_not_make_an_answer_of_many_settings() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let topics = (0..4_000).map(|index| CreatableTopic {
        name: Str::from(format!("{index:04}")),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopic::default()
    });
    let request = CreateTopicsRequest {
        topics: topics.collect(),
        validate_only: true,
        ..CreateTopicsRequest::default()
    };
    let response = client.call(7, &request).await;
    let shown = response.topics.iter().filter_map(|topic| topic.configs).map(|configs| configs.len());
    let shown = shown.sum::<usize>();
    assert!((90_000..=100_000).contains(&shown), "{shown}");
    for topic in &response.topics {
        assert_eq!(topic.error_code, ErrorCode::NONE, "the topic itself is legal");
        assert_eq!(topic.configs.is_none(), topic.topic_config_error_code == ErrorCode::INVALID_REQUEST);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_very_many_topics_are_refused_beyond_a_limit() {
    let broker = TestBroker::start().await;
    let store = broker.broker.store();
    let view = store.view("kafka").expect("the broker's view").id;
    let mut newest = None;
    for index in 0..6_100 {
        let new = NewTopic { name: format!("{index:04}"), partitions: 1, config: TopicConfig::default() };
        newest = Some(store.create_topic(view, new, false, Timestamp::new(0)).expect("room"));
    }
    newest.expect("a topic").await.expect("durable");
    let mut client = broker.client().await;
    let resources: Vec<_> = (0..6_100).map(|index| resource(TOPIC, &format!("{index:04}"))).collect();
    let results = describe(&mut client, 4, resources.clone(), false).await;
    assert_eq!(results.len(), 6_100);
    let shown = results.iter().map(|result| result.configs.len()).sum::<usize>();
    assert!((190_000..=200_000).contains(&shown), "{shown}");
    let (refused, first) = (&results[6_099], &results[0]);
    assert_eq!((first.error_code, refused.error_code), (ErrorCode::NONE, ErrorCode::INVALID_REQUEST));
    // Who asks for less is told of all.
    let resources = resources.into_iter().map(|resource| only(&["retention.ms"], resource)).collect();
    let results = describe(&mut client, 4, resources, false).await;
    assert!(results.iter().all(|result| result.error_code == ErrorCode::NONE && result.configs.len() == 1));
}
