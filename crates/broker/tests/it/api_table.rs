//! What is advertised is served, what is not closes the connection.

use kolumn_kafka_wire::messages::api_versions_response::ApiVersion;
use kolumn_kafka_wire::messages::{ApiVersionsRequest, ApiVersionsResponse, MetadataRequest};
use kolumn_kafka_wire::{ApiKey, ErrorCode, Message, Str};

use crate::client::{Client, batch, metadata_request, raw_frame};
use crate::groups_client::hasty;
use crate::harness::TestBroker;
use crate::walk::walk;

async fn advertised(client: &mut Client) -> Vec<ApiVersion<'static>> {
    let response = client.call(4, &named("kolumn-test", "1.0")).await;
    assert_eq!(response.error_code, ErrorCode::NONE);
    response.api_keys.iter().collect()
}

pub(crate) fn named(name: &'static str, version: &'static str) -> ApiVersionsRequest<'static> {
    ApiVersionsRequest {
        client_software_name: Str::from(name),
        client_software_version: Str::from(version),
        ..ApiVersionsRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_advertised_request_is_answered_in_every_version() {
    let broker = TestBroker::start_with(hasty).await;
    let mut client = broker.client().await;
    let topic_id = client.create_topic("walked", 1).await;
    client.produce("walked", 0, batch(&["first"])).await;
    let table = advertised(&mut client).await;
    assert_eq!(table.len(), 30);
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
    for (key, versions) in [
        (ApiKey::OFFSET_COMMIT, (2, 10)),
        (ApiKey::OFFSET_FETCH, (1, 10)),
        (ApiKey::JOIN_GROUP, (0, 9)),
        (ApiKey::HEARTBEAT, (0, 4)),
        (ApiKey::LEAVE_GROUP, (0, 5)),
        (ApiKey::SYNC_GROUP, (0, 5)),
        (ApiKey::DESCRIBE_GROUPS, (0, 6)),
        (ApiKey::LIST_GROUPS, (0, 5)),
        (ApiKey::DELETE_RECORDS, (0, 2)),
        (ApiKey::OFFSET_FOR_LEADER_EPOCH, (2, 4)),
        (ApiKey::DESCRIBE_CONFIGS, (1, 4)),
        (ApiKey::ALTER_CONFIGS, (0, 2)),
        (ApiKey::DESCRIBE_LOG_DIRS, (1, 4)),
        (ApiKey::CREATE_PARTITIONS, (0, 3)),
        (ApiKey::DELETE_GROUPS, (0, 2)),
        (ApiKey::ELECT_LEADERS, (0, 2)),
        (ApiKey::INCREMENTAL_ALTER_CONFIGS, (0, 1)),
        (ApiKey::LIST_PARTITION_REASSIGNMENTS, (0, 0)),
        (ApiKey::OFFSET_DELETE, (0, 0)),
        (ApiKey::DESCRIBE_TOPIC_PARTITIONS, (0, 0)),
    ] {
        assert_eq!(range(key), versions, "{key}");
    }
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
