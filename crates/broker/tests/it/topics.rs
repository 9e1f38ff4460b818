//! Metadata of topics, their creation and deletion.

use kolumn_kafka_wire::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, DescribeClusterRequest, MetadataRequest,
    create_topics_request::{CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig},
    create_topics_response::CreatableTopicResult,
    delete_topics_request::DeleteTopicState,
    metadata_request::MetadataRequestTopic,
};
use kolumn_kafka_wire::{Array, ErrorCode, Str, Uuid};

use crate::client::{Client, batch, metadata_request, values};
use crate::harness::TestBroker;

fn topic(name: &'static str) -> CreatableTopic<'static> {
    CreatableTopic {
        name: Str::from(name),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopic::default()
    }
}

async fn create(
    client: &mut Client,
    topics: Vec<CreatableTopic<'static>>,
) -> Vec<CreatableTopicResult<'static>> {
    let request = CreateTopicsRequest { topics: topics.into(), ..CreateTopicsRequest::default() };
    client.call(7, &request).await.topics.iter().collect()
}

#[track_caller]
fn check(result: &CreatableTopicResult<'_>, code: ErrorCode) {
    assert_eq!(result.error_code, code, "{}: {:?}", &*result.name, result.error_message);
    assert_eq!(result.error_message.is_some(), code.is_error(), "an error has a text, success has none");
}

async fn delete(client: &mut Client, name: &'static str) -> ErrorCode {
    let topic = DeleteTopicState { name: Some(Str::from(name)), ..Default::default() };
    let request = DeleteTopicsRequest { topics: vec![topic].into(), ..Default::default() };
    client.call(6, &request).await.responses.iter().next().expect("a result").error_code
}

async fn code_of(client: &mut Client, name: &str, allow: bool) -> ErrorCode {
    client.metadata(&[name], allow).await.topics.iter().next().expect("a topic").error_code
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_creates_an_unknown_topic_if_the_client_allows_it() {
    let broker = TestBroker::start_with(|settings| settings.topics.default_partitions = 3).await;
    let mut client = broker.client().await;
    assert_eq!(code_of(&mut client, "fresh", false).await, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let response = client.metadata(&["fresh"], true).await;
    let topic = response.topics.iter().next().expect("a topic");
    assert_eq!((topic.error_code, topic.partitions.len()), (ErrorCode::NONE, 3));
    assert!(!topic.topic_id.is_zero());
    assert_eq!(client.produce("fresh", 2, batch(&["x"])).await.error_code, ErrorCode::NONE);
    assert_eq!(broker.recorder.count("TopicAutoCreated"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_never_creates_where_the_settings_forbid_it() {
    let broker = TestBroker::start_with(|settings| settings.topics.auto_create = false).await;
    let mut client = broker.client().await;
    assert_eq!(code_of(&mut client, "fresh", true).await, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
    assert!(client.call(12, &all).await.topics.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_of_an_illegal_name_is_an_invalid_topic_and_creates_nothing() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    for name in ["", ".", "..", "a/b", "sp ace", &"x".repeat(250)] {
        for allow in [true, false] {
            let code = code_of(&mut client, name, allow).await;
            assert_eq!(code, ErrorCode::INVALID_TOPIC_EXCEPTION, "{name}");
        }
    }
    assert!(client.metadata(&[], true).await.topics.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_lists_all_topics_for_null_and_none_for_an_empty_list() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    for name in ["b", "a", "c"] {
        client.create_topic(name, 1).await;
    }
    let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
    let none = MetadataRequest { topics: Some(Array::new()), ..MetadataRequest::default() };
    let all = client.call(12, &all).await;
    let names: Vec<_> = all.topics.iter().map(|topic| topic.name.expect("a name").to_string()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(client.call(12, &none).await.topics.is_empty());
    assert_eq!(client.call(0, &none).await.topics.len(), 3, "in version 0 an empty list means all");
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_names_this_broker_as_controller_and_leader() {
    let broker = TestBroker::start_with(|settings| settings.node_id = 7).await;
    let mut client = broker.client().await;
    client.create_topic("led", 2).await;
    let response = client.metadata(&["led"], false).await;
    let node = response.brokers.iter().next().expect("a broker");
    let address = broker.broker.local_addr();
    assert_eq!((node.node_id, &*node.host, node.port), (7, "127.0.0.1", i32::from(address.port())));
    assert_eq!(response.controller_id, 7);
    assert_eq!(response.cluster_id.as_deref(), Some(broker.broker.cluster_id()));
    assert_eq!(broker.broker.cluster_id().len(), 22);
    for topic in &response.topics {
        for (index, partition) in (0..).zip(topic.partitions.iter()) {
            assert_eq!((partition.partition_index, partition.leader_id), (index, 7));
            assert!(partition.leader_epoch >= 0);
            assert!(partition.replica_nodes.iter().eq([7]) && partition.isr_nodes.iter().eq([7]));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_the_advertised_address() {
    let advertised = Some("broker.example:19092".to_owned());
    let broker = TestBroker::start_with(|settings| settings.advertised = advertised).await;
    let mut client = broker.client().await;
    let metadata = client.metadata(&[], false).await;
    let node = metadata.brokers.iter().next().expect("a broker");
    assert_eq!((&*node.host, node.port), ("broker.example", 19092));
    let cluster = client.call(2, &DescribeClusterRequest::default()).await;
    let node = cluster.brokers.iter().next().expect("a broker");
    assert_eq!((&*node.host, node.port), ("broker.example", 19092));
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_by_id_finds_a_topic_and_names_an_unknown_id() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let id = client.create_topic("known", 1).await;
    let asked = |id| MetadataRequestTopic { topic_id: id, name: None, ..Default::default() };
    let unknown = Uuid::from_bytes([9; 16]);
    let topics = Some(vec![asked(id), asked(unknown)].into());
    let response = client.call(12, &MetadataRequest { topics, ..MetadataRequest::default() }).await;
    let found: Vec<_> = response.topics.iter().map(|topic| (topic.topic_id, topic.error_code)).collect();
    assert!(found.contains(&(id, ErrorCode::NONE)), "{found:?}");
    assert!(found.contains(&(unknown, ErrorCode::UNKNOWN_TOPIC_ID)), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_named_many_times_is_described_once() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("once", 1).await;
    assert_eq!(client.metadata(&["once"; 100], true).await.topics.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn authorized_operations_are_given_only_when_asked_for() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let mut request = metadata_request(&["t"], false);
    let response = client.call(9, &request).await;
    assert_eq!(response.cluster_authorized_operations, i32::MIN);
    assert!(response.topics.iter().all(|topic| topic.topic_authorized_operations == i32::MIN));
    request.include_cluster_authorized_operations = true;
    request.include_topic_authorized_operations = true;
    let response = client.call(9, &request).await;
    assert!(response.cluster_authorized_operations > 0);
    assert!(response.topics.iter().all(|topic| topic.topic_authorized_operations > 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn create_topics_answers_each_fault_with_its_own_code() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("taken", 1).await;
    client.create_topic("dot.ted", 1).await;
    let config = |name, value| CreatableTopicConfig { name: Str::from(name), value, ..Default::default() };
    let with = |name, config| CreatableTopic { configs: vec![config].into(), ..topic(name) };
    let cases = [
        (topic("taken"), ErrorCode::TOPIC_ALREADY_EXISTS),
        (topic("dot_ted"), ErrorCode::INVALID_TOPIC_EXCEPTION),
        (topic("not legal"), ErrorCode::INVALID_TOPIC_EXCEPTION),
        (CreatableTopic { num_partitions: 0, ..topic("p0") }, ErrorCode::INVALID_PARTITIONS),
        (CreatableTopic { num_partitions: -2, ..topic("p-2") }, ErrorCode::INVALID_PARTITIONS),
        (CreatableTopic { num_partitions: i32::MAX, ..topic("pmax") }, ErrorCode::INVALID_PARTITIONS),
        (CreatableTopic { replication_factor: 3, ..topic("r3") }, ErrorCode::INVALID_REPLICATION_FACTOR),
        (CreatableTopic { replication_factor: 0, ..topic("r0") }, ErrorCode::INVALID_REPLICATION_FACTOR),
        (with("c1", config("no.such.key", Some(Str::from("1")))), ErrorCode::INVALID_CONFIG),
        (with("c2", config("retention.ms", Some(Str::from("soon")))), ErrorCode::INVALID_CONFIG),
        (with("c3", config("retention.ms", None)), ErrorCode::INVALID_CONFIG),
    ];
    for (topic, code) in cases {
        let results = create(&mut client, vec![topic]).await;
        check(&results[0], code);
    }
    let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
    assert_eq!(client.call(12, &all).await.topics.len(), 2, "nothing of it was created");
}

#[tokio::test(flavor = "multi_thread")]
async fn create_topics_with_minus_one_takes_the_defaults() {
    let broker = TestBroker::start_with(|settings| settings.topics.default_partitions = 4).await;
    let mut client = broker.client().await;
    let wish = CreatableTopic { num_partitions: -1, replication_factor: -1, ..topic("defaults") };
    let results = create(&mut client, vec![wish]).await;
    check(&results[0], ErrorCode::NONE);
    assert_eq!((results[0].num_partitions, results[0].replication_factor), (4, 1));
    let configs = results[0].configs.as_ref().expect("configs from version 5 on");
    let retention = configs.iter().find(|config| &*config.name == "retention.ms").expect("a default");
    assert_eq!((retention.value.as_deref(), retention.config_source), (Some("604800000"), 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn create_topics_refuses_a_name_given_twice_and_creates_the_others() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let results = create(&mut client, vec![topic("twice"), topic("other"), topic("twice")]).await;
    assert_eq!(results.len(), 2, "one result a name");
    for result in &results {
        let twice = &*result.name == "twice";
        check(result, if twice { ErrorCode::INVALID_REQUEST } else { ErrorCode::NONE });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn create_topics_obeys_assignments_to_this_broker_only() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let assigned = |name, assignments: &[(i32, i32)]| {
        let assignments = assignments.iter().map(|(partition, node)| CreatableReplicaAssignment {
            partition_index: *partition,
            broker_ids: vec![*node].into(),
            ..Default::default()
        });
        CreatableTopic {
            num_partitions: -1,
            replication_factor: -1,
            assignments: assignments.collect::<Vec<_>>().into(),
            ..topic(name)
        }
    };
    let node = 1;
    let results = create(&mut client, vec![assigned("good", &[(1, node), (0, node)])]).await;
    check(&results[0], ErrorCode::NONE);
    assert_eq!(results[0].num_partitions, 2);
    for (name, assignments) in [("gap", [(0, node), (2, node)]), ("far", [(0, node), (1, 99)])] {
        let results = create(&mut client, vec![assigned(name, &assignments)]).await;
        check(&results[0], ErrorCode::INVALID_REPLICA_ASSIGNMENT);
    }
    let both = CreatableTopic { num_partitions: 1, ..assigned("both", &[(0, node)]) };
    check(&create(&mut client, vec![both]).await[0], ErrorCode::INVALID_REQUEST);
}

#[tokio::test(flavor = "multi_thread")]
async fn validate_only_creates_nothing() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let topics = vec![topic("dry"), topic("bad name")].into();
    let request = CreateTopicsRequest { topics, validate_only: true, ..CreateTopicsRequest::default() };
    let response = client.call(7, &request).await;
    let codes: Vec<_> = response.topics.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [ErrorCode::INVALID_TOPIC_EXCEPTION, ErrorCode::NONE], "in the order of names");
    assert_eq!(code_of(&mut client, "dry", false).await, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_topic_is_gone_at_once_and_does_not_come_back_by_itself() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("doomed", 1).await;
    client.produce("doomed", 0, batch(&["old"])).await;
    assert_eq!(delete(&mut client, "doomed").await, ErrorCode::NONE);
    // A consumer that still asks for it, as consumers do: without leave to create.
    assert_eq!(code_of(&mut client, "doomed", false).await, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(client.fetch("doomed", 0, 0).await.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(delete(&mut client, "doomed").await, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_created_again_is_another_one() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let first = client.create_topic("again", 1).await;
    client.produce("again", 0, batch(&["old"])).await;
    delete(&mut client, "again").await;
    let second = client.create_topic("again", 1).await;
    assert_ne!(first, second);
    let fetched = client.fetch("again", 0, 0).await;
    assert_eq!((fetched.error_code, fetched.high_watermark), (ErrorCode::NONE, 0));
    assert_eq!(client.produce("again", 0, batch(&["new"])).await.base_offset, 0);
    assert_eq!(values(&client.fetch("again", 0, 0).await), [(0, "new".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_deleted_by_id_and_an_unclear_wish_is_refused() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let id = client.create_topic("by-id", 1).await;
    let by_id = |topic_id| DeleteTopicState { name: None, topic_id, ..Default::default() };
    let both = DeleteTopicState { name: Some(Str::from("by-id")), topic_id: id, ..Default::default() };
    let topics = vec![both, by_id(Uuid::from_bytes([3; 16])), by_id(id)].into();
    let response = client.call(6, &DeleteTopicsRequest { topics, ..Default::default() }).await;
    let codes: Vec<_> = response.responses.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [ErrorCode::INVALID_REQUEST, ErrorCode::UNKNOWN_TOPIC_ID, ErrorCode::NONE]);
    assert_eq!(code_of(&mut client, "by-id", false).await, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[tokio::test(flavor = "multi_thread")]
async fn describe_cluster_is_about_brokers_only() {
    let broker = TestBroker::start_with(|settings| settings.node_id = 7).await;
    let mut client = broker.client().await;
    for (endpoint_type, code) in [
        (1, ErrorCode::NONE),
        (2, ErrorCode::MISMATCHED_ENDPOINT_TYPE),
        (3, ErrorCode::UNSUPPORTED_ENDPOINT_TYPE),
    ] {
        let request = DescribeClusterRequest { endpoint_type, ..DescribeClusterRequest::default() };
        let response = client.call(1, &request).await;
        assert_eq!(response.error_code, code);
        let nodes: Vec<_> = response.brokers.iter().map(|node| node.broker_id).collect();
        let expected = if code == ErrorCode::NONE { (7, vec![7]) } else { (-1, vec![]) };
        assert_eq!((response.controller_id, nodes), expected);
    }
}
