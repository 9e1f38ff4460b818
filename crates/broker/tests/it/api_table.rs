//! What is advertised is served, what is not closes the connection.

use kolumn_kafka_wire::messages::api_versions_response::ApiVersion;
use kolumn_kafka_wire::messages::{
    ApiVersionsRequest, ApiVersionsResponse, CreateTopicsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, FetchRequest, FindCoordinatorRequest, ListOffsetsRequest, MetadataRequest,
    ProduceRequest,
    create_topics_request::CreatableTopic,
    delete_topics_request::DeleteTopicState,
    list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic},
};
use kolumn_kafka_wire::{ApiKey, Array, ErrorCode, Message, Str, Uuid};

use crate::client::{
    Client, batch, bytes, fetch_request, init_producer_request, metadata_request, only_partition,
    produce_request, raw_frame,
};
use crate::harness::TestBroker;

async fn advertised(client: &mut Client) -> Vec<ApiVersion<'static>> {
    let response = client.call(4, &named("kolumn-test", "1.0")).await;
    assert_eq!(response.error_code, ErrorCode::NONE);
    response.api_keys.iter().collect()
}

fn named(name: &'static str, version: &'static str) -> ApiVersionsRequest<'static> {
    ApiVersionsRequest {
        client_software_name: Str::from(name),
        client_software_version: Str::from(version),
        ..ApiVersionsRequest::default()
    }
}

/// Sends one valid request of a kind and version and checks its answer.
async fn walk(broker: &TestBroker, key: ApiKey, version: i16, topic_id: Uuid) {
    let mut client = broker.client().await;
    match key {
        ApiKey::PRODUCE => walk_produce(client, version, topic_id).await,
        ApiKey::FETCH => {
            let mut request = fetch_request("walked", 0, 0);
            by_id(&mut request, version, topic_id);
            let partition = only_partition(&client.call(version, &request).await);
            assert_eq!(partition.error_code, ErrorCode::NONE, "{version}");
            assert!(!bytes(&partition).is_empty());
        }
        ApiKey::LIST_OFFSETS => {
            let response = client.call(version, &latest("walked")).await;
            let topic = response.topics.iter().next().expect("a topic");
            let partition = topic.partitions.iter().next().expect("a partition");
            assert_eq!((partition.error_code, partition.timestamp), (ErrorCode::NONE, -1), "{version}");
            assert!(partition.offset > 0);
        }
        ApiKey::METADATA => {
            let response = client.call(version, &metadata_request(&["walked"], true)).await;
            let topic = response.topics.iter().next().expect("a topic");
            assert_eq!((topic.error_code, topic.name.as_deref()), (ErrorCode::NONE, Some("walked")));
        }
        ApiKey::FIND_COORDINATOR => {
            let mut request = FindCoordinatorRequest { key: Str::from("group"), ..Default::default() };
            if version >= 4 {
                request = FindCoordinatorRequest {
                    coordinator_keys: vec![Str::from("group")].into(),
                    ..Default::default()
                };
            }
            let response = client.call(version, &request).await;
            let code = match response.coordinators.iter().next() {
                Some(coordinator) => coordinator.error_code,
                None => response.error_code,
            };
            assert_eq!(code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        ApiKey::API_VERSIONS => {
            let response: ApiVersionsResponse<'_> = client.call(version, &named("name", "1")).await;
            assert_eq!(response.error_code, ErrorCode::NONE);
        }
        ApiKey::CREATE_TOPICS => {
            let name = Str::from(format!("created-{version}"));
            let topic =
                CreatableTopic { name, num_partitions: 1, replication_factor: 1, ..Default::default() };
            let request = CreateTopicsRequest { topics: vec![topic].into(), ..Default::default() };
            let response = client.call(version, &request).await;
            let result = response.topics.iter().next().expect("a result");
            assert_eq!((result.error_code, &*result.name), (ErrorCode::NONE, &*format!("created-{version}")));
        }
        ApiKey::DELETE_TOPICS => walk_delete(client, version).await,
        ApiKey::INIT_PRODUCER_ID => {
            let response = client.call(version, &init_producer_request()).await;
            assert_eq!((response.error_code, response.producer_epoch), (ErrorCode::NONE, 0));
        }
        ApiKey::DESCRIBE_CLUSTER => {
            let response = client.call(version, &DescribeClusterRequest::default()).await;
            assert_eq!(response.error_code, ErrorCode::NONE);
            assert_eq!(&*response.cluster_id, broker.broker.cluster_id());
        }
        other => panic!("{other} is advertised and not walked"),
    }
}

fn by_id(request: &mut FetchRequest<'static>, version: i16, id: Uuid) {
    if version < 13 {
        return;
    }
    let topics = request.topics.iter().map(|topic| kolumn_kafka_wire::messages::fetch_request::FetchTopic {
        topic: Str::default(),
        topic_id: id,
        ..topic
    });
    request.topics = Array::from(topics.collect::<Vec<_>>());
}

async fn walk_produce(mut client: Client, version: i16, topic_id: Uuid) {
    let mut request: ProduceRequest<'_> = produce_request("walked", 0, batch(&["x"]), -1);
    if version >= 13 {
        let mut topic = request.topic_data.iter().next().expect("a topic");
        (topic.name, topic.topic_id) = (Str::default(), topic_id);
        request.topic_data = vec![topic].into();
    }
    if version <= 2 {
        client.send(version, &request).await;
        client.expect_close().await;
        return;
    }
    let response = client.call(version, &request).await;
    let topic = response.responses.iter().next().expect("a topic");
    let partition = topic.partition_responses.iter().next().expect("a partition");
    assert_eq!(partition.error_code, ErrorCode::NONE, "version {version}: {:?}", partition.error_message);
}

async fn walk_delete(mut client: Client, version: i16) {
    let name = format!("doomed-{version}");
    client.create_topic(&name, 1).await;
    let request = if version < 6 {
        DeleteTopicsRequest { topic_names: vec![Str::from(name)].into(), ..Default::default() }
    } else {
        let topic = DeleteTopicState { name: Some(Str::from(name)), ..Default::default() };
        DeleteTopicsRequest { topics: vec![topic].into(), ..Default::default() }
    };
    let response = client.call(version, &request).await;
    let result = response.responses.iter().next().expect("a result");
    assert_eq!(result.error_code, ErrorCode::NONE);
}

fn latest(topic: &'static str) -> ListOffsetsRequest<'static> {
    let partition = ListOffsetsPartition { timestamp: -1, ..Default::default() };
    let topic =
        ListOffsetsTopic { name: Str::from(topic), partitions: vec![partition].into(), ..Default::default() };
    ListOffsetsRequest { replica_id: -1, topics: vec![topic].into(), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_advertised_request_is_answered_in_every_version() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let topic_id = client.create_topic("walked", 1).await;
    client.produce("walked", 0, batch(&["first"])).await;
    let table = advertised(&mut client).await;
    assert_eq!(table.len(), 10);
    for api in table {
        for version in api.min_version..=api.max_version {
            walk(&broker, ApiKey::new(api.api_key), version, topic_id).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_advertised_closes_the_connection() {
    let broker = TestBroker::start().await;
    let table = advertised(&mut broker.client().await).await;
    let serves = |key: i16, version: i16| {
        table.iter().any(|api| api.api_key == key && (api.min_version..=api.max_version).contains(&version))
    };
    let keys = ApiKey::all().map(ApiKey::code).chain([-1, 4, 1000]);
    for key in keys {
        for version in [-1, 0, 3, 19].into_iter().filter(|version| !serves(key, *version)) {
            if key == ApiKey::API_VERSIONS.code() {
                continue;
            }
            let mut client = broker.client().await;
            client.send_bytes(&raw_frame(ApiKey::new(key), version, 1, &[])).await;
            client.expect_close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_version_of_api_versions_is_answered_in_version_0_and_the_connection_goes_on() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    for version in [5, 9, i16::MAX, -1] {
        client.send_bytes(&raw_frame(ApiKey::API_VERSIONS, version, 7, b"a body of the future")).await;
        let frame = client.receive_frame().await.expect("an answer");
        assert_eq!(frame[..4], 7_i32.to_be_bytes(), "header version 0");
        let response = <ApiVersionsResponse<'_> as Message>::decode(&frame[4..], 0).expect("version 0");
        assert_eq!(response.error_code, ErrorCode::UNSUPPORTED_VERSION);
        let own = response.api_keys.iter().find(|api| api.api_key == ApiKey::API_VERSIONS.code());
        assert_eq!(own.map(|api| (api.min_version, api.max_version)), Some((0, 4)));
    }
    assert!(!advertised(&mut client).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn api_versions_with_an_illegal_software_name_is_an_invalid_request() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    for (name, version) in [("-bad-", "1"), ("", "1"), ("good", ""), ("good", "1_0")] {
        let response = client.call(3, &named(name, version)).await;
        assert_eq!(response.error_code, ErrorCode::INVALID_REQUEST, "{name} {version}");
    }
    assert_eq!(client.call(3, &named("good.name", "1-2")).await.error_code, ErrorCode::NONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_is_that_of_one_kafka_release() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let table = advertised(&mut client).await;
    let range = |key: ApiKey| {
        let api = table.iter().find(|api| api.api_key == key.code()).expect("advertised");
        (api.min_version, api.max_version)
    };
    // Topic ids are in Produce 13 and Fetch 13 on, so Metadata has to give them out (10 on).
    assert_eq!((range(ApiKey::PRODUCE), range(ApiKey::FETCH)), ((0, 13), (4, 18)));
    assert_eq!((range(ApiKey::METADATA), range(ApiKey::LIST_OFFSETS)), ((0, 13), (1, 11)));
    assert_eq!((range(ApiKey::FIND_COORDINATOR), range(ApiKey::INIT_PRODUCER_ID)), ((0, 6), (0, 5)));
    assert_eq!((range(ApiKey::CREATE_TOPICS), range(ApiKey::DELETE_TOPICS)), ((2, 7), (1, 6)));
    assert_eq!((range(ApiKey::API_VERSIONS), range(ApiKey::DESCRIBE_CLUSTER)), ((0, 4), (0, 2)));
    client.create_topic("ids", 1).await;
    for version in 10..=13 {
        let response = client.call::<MetadataRequest<'_>>(version, &metadata_request(&["ids"], false)).await;
        assert!(response.topics.iter().all(|topic| !topic.topic_id.is_zero()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn api_versions_writes_no_tagged_field_at_its_default() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    for version in 3..=4 {
        client.send(version, &named("a", "1")).await;
        let frame = client.receive_frame().await.expect("an answer");
        assert_eq!(frame.last(), Some(&0), "the tagged section is empty");
    }
}
