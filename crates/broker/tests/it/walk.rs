//! One valid request of every kind in every version.

use kolumn_kafka_wire::messages::{
    AlterConfigsRequest, ApiVersionsResponse, CreatePartitionsRequest, CreateTopicsRequest,
    DeleteGroupsRequest, DeleteRecordsRequest, DeleteTopicsRequest, DescribeClusterRequest,
    DescribeConfigsRequest, DescribeLogDirsRequest, DescribeTopicPartitionsRequest, ElectLeadersRequest,
    FetchRequest, FindCoordinatorRequest, IncrementalAlterConfigsRequest, ListGroupsRequest,
    ListOffsetsRequest, ListPartitionReassignmentsRequest, OffsetDeleteRequest, OffsetForLeaderEpochRequest,
    ProduceRequest, alter_configs_request,
    create_partitions_request::CreatePartitionsTopic,
    create_topics_request::CreatableTopic,
    delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic},
    delete_topics_request::DeleteTopicState,
    describe_configs_request::DescribeConfigsResource,
    incremental_alter_configs_request,
    list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic},
    offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic},
};
use kolumn_kafka_wire::{ApiKey, Array, ErrorCode, Str, Uuid};

use crate::api_table::named;
use crate::client::{
    Client, batch, bytes, fetch_request, init_producer_request, metadata_request, only_partition,
    produce_request,
};
use crate::configs::TOPIC;
use crate::groups_client::{self, Member, commit_codes, commit_request};
use crate::harness::TestBroker;

/// Sends one valid request of a kind and version and checks its answer.
pub(crate) async fn walk(broker: &TestBroker, key: ApiKey, version: i16, topic_id: Uuid) {
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
        ApiKey::API_VERSIONS => {
            let response: ApiVersionsResponse<'_> = client.call(version, &named("name", "1")).await;
            assert_eq!(response.error_code, ErrorCode::NONE);
        }
        ApiKey::OFFSET_FOR_LEADER_EPOCH => {
            let partition = OffsetForLeaderPartition::default();
            let topic = OffsetForLeaderTopic {
                topic: Str::from("walked"),
                partitions: vec![partition].into(),
                ..Default::default()
            };
            let request = OffsetForLeaderEpochRequest { topics: vec![topic].into(), ..Default::default() };
            let response = client.call(version, &request).await;
            let topic = response.topics.iter().next().expect("a topic");
            assert!(topic.partitions.iter().all(|end| end.error_code == ErrorCode::NONE), "{topic:?}");
        }
        ApiKey::INIT_PRODUCER_ID => {
            let response = client.call(version, &init_producer_request()).await;
            assert_eq!((response.error_code, response.producer_epoch), (ErrorCode::NONE, 0));
        }
        _ if is_of_groups(key) => walk_groups(broker, key, version, topic_id).await,
        _ => walk_admin(broker, key, version).await,
    }
}

/// What administrators ask of topics and of the cluster.
async fn walk_admin(broker: &TestBroker, key: ApiKey, version: i16) {
    let mut client = broker.client().await;
    match key {
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
        ApiKey::DESCRIBE_CLUSTER => {
            let response = client.call(version, &DescribeClusterRequest::default()).await;
            assert_eq!(response.error_code, ErrorCode::NONE);
            assert_eq!(&*response.cluster_id, broker.broker.cluster_id());
        }
        ApiKey::CREATE_PARTITIONS => {
            let name = format!("grown-{version}");
            client.create_topic(&name, 1).await;
            let name = Str::from(name);
            let topic = CreatePartitionsTopic { name, count: 3, assignments: None, ..Default::default() };
            let request = CreatePartitionsRequest { topics: vec![topic].into(), ..Default::default() };
            let response = client.call(version, &request).await;
            assert!(response.results.iter().all(|result| result.error_code == ErrorCode::NONE));
            assert_eq!(response.results.len(), 1);
        }
        ApiKey::DELETE_RECORDS => {
            let name = format!("emptied-{version}");
            client.create_topic(&name, 1).await;
            client.produce(&name, 0, batch(&["x"])).await;
            let partition = DeleteRecordsPartition { offset: -1, ..Default::default() };
            let topic = DeleteRecordsTopic {
                name: Str::from(name),
                partitions: vec![partition].into(),
                ..Default::default()
            };
            let request = DeleteRecordsRequest { topics: vec![topic].into(), ..Default::default() };
            let response = client.call(version, &request).await;
            let topic = response.topics.iter().next().expect("a topic");
            let partition = topic.partitions.iter().next().expect("a partition");
            assert_eq!((partition.error_code, partition.low_watermark), (ErrorCode::NONE, 1));
        }
        ApiKey::DESCRIBE_LOG_DIRS => {
            let response =
                client.call(version, &DescribeLogDirsRequest { topics: None, ..Default::default() }).await;
            let dir = response.results.iter().next().expect("a directory");
            assert_eq!((response.error_code, dir.error_code), (ErrorCode::NONE, ErrorCode::NONE));
            assert!(dir.topics.iter().any(|topic| &*topic.name == "walked"));
            assert_eq!(dir.total_bytes > 0, version >= 4, "of this version on");
        }
        ApiKey::ELECT_LEADERS => {
            let request = ElectLeadersRequest { topic_partitions: None, ..Default::default() };
            assert_eq!(client.call(version, &request).await.error_code, ErrorCode::NONE);
        }
        ApiKey::LIST_PARTITION_REASSIGNMENTS => {
            let response = client.call(version, &ListPartitionReassignmentsRequest::default()).await;
            assert_eq!(response.error_code, ErrorCode::NONE);
        }
        ApiKey::DESCRIBE_TOPIC_PARTITIONS => {
            let response = client.call(version, &DescribeTopicPartitionsRequest::default()).await;
            assert!(response.topics.iter().any(|topic| topic.name.as_deref() == Some("walked")));
        }
        _ => walk_configs(&mut client, key, version).await,
    }
}

/// What is asked and changed of settings.
async fn walk_configs(client: &mut Client, key: ApiKey, version: i16) {
    let name = || Str::from("walked");
    match key {
        ApiKey::DESCRIBE_CONFIGS => {
            let resource = DescribeConfigsResource {
                resource_type: TOPIC,
                resource_name: name(),
                configuration_keys: None,
                ..Default::default()
            };
            let request = DescribeConfigsRequest { resources: vec![resource].into(), ..Default::default() };
            let response = client.call(version, &request).await;
            let result = response.results.iter().next().expect("a result");
            assert_eq!(result.error_code, ErrorCode::NONE);
            assert!(!result.configs.is_empty());
        }
        ApiKey::ALTER_CONFIGS => {
            let config = alter_configs_request::AlterableConfig {
                name: Str::from("retention.ms"),
                value: Some(Str::from("-1")),
                ..Default::default()
            };
            let resource = alter_configs_request::AlterConfigsResource {
                resource_type: TOPIC,
                resource_name: name(),
                configs: vec![config].into(),
                ..Default::default()
            };
            let request = AlterConfigsRequest { resources: vec![resource].into(), ..Default::default() };
            let response = client.call(version, &request).await;
            let result = response.responses.iter().next().expect("a result");
            assert_eq!((result.error_code, result.error_message), (ErrorCode::NONE, None));
        }
        ApiKey::INCREMENTAL_ALTER_CONFIGS => {
            let config = incremental_alter_configs_request::AlterableConfig {
                name: Str::from("retention.ms"),
                value: Some(Str::from("-1")),
                ..Default::default()
            };
            let resource = incremental_alter_configs_request::AlterConfigsResource {
                resource_type: TOPIC,
                resource_name: name(),
                configs: vec![config].into(),
                ..Default::default()
            };
            let resources = vec![resource].into();
            let request = IncrementalAlterConfigsRequest { resources, ..Default::default() };
            let response = client.call(version, &request).await;
            let result = response.responses.iter().next().expect("a result");
            assert_eq!((result.error_code, result.error_message), (ErrorCode::NONE, None));
        }
        other => panic!("{other} is advertised and not walked"),
    }
}

fn is_of_groups(key: ApiKey) -> bool {
    [
        ApiKey::OFFSET_COMMIT,
        ApiKey::OFFSET_FETCH,
        ApiKey::FIND_COORDINATOR,
        ApiKey::JOIN_GROUP,
        ApiKey::HEARTBEAT,
        ApiKey::LEAVE_GROUP,
        ApiKey::SYNC_GROUP,
        ApiKey::DESCRIBE_GROUPS,
        ApiKey::LIST_GROUPS,
        ApiKey::DELETE_GROUPS,
        ApiKey::OFFSET_DELETE,
    ]
    .contains(&key)
}

/// What members of groups say, and what is asked about groups.
async fn walk_groups(broker: &TestBroker, key: ApiKey, version: i16, topic_id: Uuid) {
    let group = format!("{key}-{version}");
    let mut client = broker.client().await;
    let mut member = Member::new(broker, &group, version).await;
    match key {
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
            assert_eq!(code, ErrorCode::NONE);
        }
        ApiKey::JOIN_GROUP => assert_eq!(member.join().await.error_code, ErrorCode::NONE),
        ApiKey::SYNC_GROUP | ApiKey::HEARTBEAT | ApiKey::LEAVE_GROUP => {
            member.enter().await;
            assert_eq!(member.heartbeat().await, ErrorCode::NONE);
            assert_eq!(member.leave().await, ErrorCode::NONE);
        }
        ApiKey::OFFSET_COMMIT | ApiKey::OFFSET_FETCH => {
            let mut request = commit_request(&group, "walked", &[(0, 1, "kept")]);
            let (commit_version, fetch_version) =
                if key == ApiKey::OFFSET_COMMIT { (version, 1) } else { (8, version) };
            if commit_version >= 10 {
                let mut topic = request.topics.iter().next().expect("a topic");
                (topic.name, topic.topic_id) = (Str::default(), topic_id);
                request.topics = vec![topic].into();
            }
            assert_eq!(commit_codes(&mut client, commit_version, &request).await, [ErrorCode::NONE]);
            let asked = Some(&[("walked", topic_id, &[0][..])][..]);
            let fetched = groups_client::fetch(&mut client, fetch_version, &group, asked).await;
            assert_eq!((fetched[0].offset, &*fetched[0].metadata), (1, "kept"));
        }
        ApiKey::DESCRIBE_GROUPS => {
            member.join().await;
            let described = groups_client::describe(&mut client, version, &group).await;
            assert_eq!((described.error_code, described.members.len()), (ErrorCode::NONE, 1));
        }
        ApiKey::LIST_GROUPS => {
            member.join().await;
            let response = client.call(version, &ListGroupsRequest::default()).await;
            assert_eq!(response.error_code, ErrorCode::NONE);
            assert!(response.groups.iter().any(|listed| *listed.group_id == group));
        }
        ApiKey::DELETE_GROUPS => {
            groups_client::commit(&mut client, &group, "walked", &[(0, 1, "")]).await;
            let groups_names = vec![Str::from(group)].into();
            let response =
                client.call(version, &DeleteGroupsRequest { groups_names, ..Default::default() }).await;
            assert!(response.results.iter().all(|result| result.error_code == ErrorCode::NONE));
        }
        ApiKey::OFFSET_DELETE => {
            groups_client::commit(&mut client, &group, "walked", &[(0, 1, "")]).await;
            let request = OffsetDeleteRequest { group_id: Str::from(group), ..Default::default() };
            assert_eq!(client.call(version, &request).await.error_code, ErrorCode::NONE);
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
