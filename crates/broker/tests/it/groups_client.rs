//! What members of groups and consumers without a group say, for the tests of groups.

use kolumn_broker::Settings;
use kolumn_kafka_wire::messages::{
    DescribeGroupsRequest, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest, SyncGroupResponse,
    describe_groups_response::DescribedGroup,
    join_group_request::JoinGroupRequestProtocol,
    leave_group_request::MemberIdentity,
    offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic},
    offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics},
    sync_group_request::SyncGroupRequestAssignment,
};
use kolumn_kafka_wire::{Blob, ErrorCode, Str, Uuid};

use crate::client::Client;
use crate::harness::TestBroker;

/// Groups that do not wait for further members, and notice soon who is gone.
pub(crate) fn hasty(settings: &mut Settings) {
    settings.groups.initial_rebalance_delay_ms = 0;
    settings.groups.session_timeout_min_ms = 1;
}

/// A member of a group, on a connection of its own.
#[expect(clippy::struct_field_names, reason = "the protocol calls it a member id")]
pub(crate) struct Member {
    pub(crate) client: Client,
    pub(crate) group: String,
    /// That of `JoinGroup`; the other requests are of the same age.
    pub(crate) version: i16,
    pub(crate) member_id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) generation: i32,
    pub(crate) session_timeout_ms: i32,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) metadata: Vec<u8>,
}

impl Member {
    pub(crate) async fn new(broker: &TestBroker, group: &str, version: i16) -> Self {
        Self {
            client: broker.client().await,
            group: group.to_owned(),
            version,
            member_id: String::new(),
            instance_id: None,
            generation: -1,
            session_timeout_ms: 60_000,
            rebalance_timeout_ms: 60_000,
            metadata: subscription(&["topic"]),
        }
    }

    pub(crate) fn join_request(&self) -> JoinGroupRequest<'static> {
        JoinGroupRequest {
            session_timeout_ms: self.session_timeout_ms,
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            member_id: Str::from(self.member_id.clone()),
            group_instance_id: self.instance_id.clone().map(Str::from),
            ..join_request_with(&self.group, self.metadata.clone())
        }
    }

    /// Sends a Join; where an id is required first, gets one.
    pub(crate) async fn send_join(&mut self) -> i32 {
        if self.version >= 4 && self.member_id.is_empty() && self.instance_id.is_none() {
            let response = self.client.call(self.version, &self.join_request()).await;
            assert_eq!(response.error_code, ErrorCode::MEMBER_ID_REQUIRED);
            assert!(response.member_id.starts_with("test-"), "{response:?}");
            self.member_id = response.member_id.to_string();
        }
        self.client.send(self.version, &self.join_request()).await
    }

    pub(crate) async fn receive_join(&mut self, id: i32) -> JoinGroupResponse<'static> {
        let response =
            self.client.receive::<JoinGroupRequest<'_>>(self.version, id).await.expect("an answer");
        if response.error_code == ErrorCode::NONE {
            self.member_id = response.member_id.to_string();
            self.generation = response.generation_id;
        }
        response
    }

    pub(crate) async fn join(&mut self) -> JoinGroupResponse<'static> {
        let id = self.send_join().await;
        self.receive_join(id).await
    }

    fn sync_request(&self, assignments: &[(&str, &[u8])]) -> SyncGroupRequest<'static> {
        let assignments = assignments.iter().map(|(member, assignment)| SyncGroupRequestAssignment {
            member_id: Str::from((*member).to_owned()),
            assignment: Blob::from(assignment.to_vec()),
            ..Default::default()
        });
        let named = self.sync_version() >= 5;
        SyncGroupRequest {
            group_id: Str::from(self.group.clone()),
            generation_id: self.generation,
            member_id: Str::from(self.member_id.clone()),
            group_instance_id: self.instance_id.clone().map(Str::from),
            protocol_type: named.then(|| Str::from("consumer")),
            protocol_name: named.then(|| Str::from("range")),
            assignments: assignments.collect::<Vec<_>>().into(),
            ..SyncGroupRequest::default()
        }
    }

    fn sync_version(&self) -> i16 {
        self.version.min(5)
    }

    pub(crate) async fn send_sync(&mut self, assignments: &[(&str, &[u8])]) -> i32 {
        self.client.send(self.sync_version(), &self.sync_request(assignments)).await
    }

    pub(crate) async fn receive_sync(&mut self, id: i32) -> SyncGroupResponse<'static> {
        let version = self.sync_version();
        self.client.receive::<SyncGroupRequest<'_>>(version, id).await.expect("an answer")
    }

    pub(crate) async fn sync(&mut self, assignments: &[(&str, &[u8])]) -> SyncGroupResponse<'static> {
        let id = self.send_sync(assignments).await;
        self.receive_sync(id).await
    }

    /// Joins a group that nobody else is in, and takes an assignment.
    pub(crate) async fn enter(&mut self) {
        let joined = self.join().await;
        assert_eq!(joined.error_code, ErrorCode::NONE);
        let me = self.member_id.clone();
        let synced = self.sync(&[(&me, b"all of it")]).await;
        assert_eq!(synced.error_code, ErrorCode::NONE);
    }

    pub(crate) async fn heartbeat(&mut self) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: Str::from(self.group.clone()),
            generation_id: self.generation,
            member_id: Str::from(self.member_id.clone()),
            group_instance_id: self.instance_id.clone().map(Str::from),
            ..HeartbeatRequest::default()
        };
        self.client.call(self.version.min(4), &request).await.error_code
    }

    pub(crate) async fn leave(&mut self) -> ErrorCode {
        let version = self.version.min(5);
        let mut request =
            LeaveGroupRequest { group_id: Str::from(self.group.clone()), ..LeaveGroupRequest::default() };
        if version < 3 {
            request.member_id = Str::from(self.member_id.clone());
            return self.client.call(version, &request).await.error_code;
        }
        let leaver = MemberIdentity {
            member_id: Str::from(self.member_id.clone()),
            group_instance_id: self.instance_id.clone().map(Str::from),
            ..MemberIdentity::default()
        };
        request.members = vec![leaver].into();
        let response = self.client.call(version, &request).await;
        assert_eq!(response.error_code, ErrorCode::NONE);
        response.members.iter().next().expect("a member").error_code
    }

    /// Commits offset 1 of partition 0 of `topic`.
    pub(crate) async fn commit(&mut self) -> ErrorCode {
        let mut request = commit_request(&self.group, "topic", &[(0, 1, "")]);
        request.generation_id_or_member_epoch = self.generation;
        request.member_id = Str::from(self.member_id.clone());
        request.group_instance_id = self.instance_id.clone().map(Str::from);
        commit_codes(&mut self.client, 8, &request).await[0]
    }
}

/// What a new member asks.
pub(crate) fn join_request(group: &str) -> JoinGroupRequest<'static> {
    join_request_with(group, subscription(&["topic"]))
}

fn join_request_with(group: &str, metadata: Vec<u8>) -> JoinGroupRequest<'static> {
    let protocol = JoinGroupRequestProtocol {
        name: Str::from("range"),
        metadata: Blob::from(metadata),
        ..Default::default()
    };
    JoinGroupRequest {
        group_id: Str::from(group.to_owned()),
        session_timeout_ms: 60_000,
        rebalance_timeout_ms: 60_000,
        protocol_type: Str::from("consumer"),
        protocols: vec![protocol].into(),
        ..JoinGroupRequest::default()
    }
}

/// The metadata of a consumer that subscribes to these topics.
pub(crate) fn subscription(topics: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0, 0];
    bytes.extend_from_slice(&u32::try_from(topics.len()).expect("few").to_be_bytes());
    for topic in topics {
        bytes.extend_from_slice(&u16::try_from(topic.len()).expect("short").to_be_bytes());
        bytes.extend_from_slice(topic.as_bytes());
    }
    bytes.extend_from_slice(&(-1_i32).to_be_bytes());
    bytes
}

/// A commit of (partition, offset, metadata), by a consumer without a group.
pub(crate) fn commit_request(
    group: &str,
    topic: &str,
    offsets: &[(i32, i64, &str)],
) -> OffsetCommitRequest<'static> {
    let partitions = offsets.iter().map(|(partition, offset, metadata)| OffsetCommitRequestPartition {
        partition_index: *partition,
        committed_offset: *offset,
        committed_metadata: Some(Str::from((*metadata).to_owned())),
        ..OffsetCommitRequestPartition::default()
    });
    let topic = OffsetCommitRequestTopic {
        name: Str::from(topic.to_owned()),
        partitions: partitions.collect::<Vec<_>>().into(),
        ..OffsetCommitRequestTopic::default()
    };
    OffsetCommitRequest {
        group_id: Str::from(group.to_owned()),
        topics: vec![topic].into(),
        ..OffsetCommitRequest::default()
    }
}

/// The codes of all partitions.
pub(crate) async fn commit_codes(
    client: &mut Client,
    version: i16,
    request: &OffsetCommitRequest<'static>,
) -> Vec<ErrorCode> {
    let response = client.call(version, request).await;
    response.topics.iter().flat_map(|topic| codes(&topic)).collect()
}

fn codes(
    topic: &kolumn_kafka_wire::messages::offset_commit_response::OffsetCommitResponseTopic<'static>,
) -> Vec<ErrorCode> {
    topic.partitions.iter().map(|partition| partition.error_code).collect()
}

pub(crate) async fn commit(client: &mut Client, group: &str, topic: &str, offsets: &[(i32, i64, &str)]) {
    let codes = commit_codes(client, 8, &commit_request(group, topic, offsets)).await;
    assert!(codes.iter().all(|code| *code == ErrorCode::NONE), "{codes:?}");
}

/// A committed offset as it comes back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fetched {
    /// Empty from version 10 on.
    pub(crate) topic: String,
    pub(crate) topic_id: Uuid,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) metadata: String,
    pub(crate) code: ErrorCode,
}

/// A request for these topics (name, id, partitions) of a group, or for all.
pub(crate) fn fetch_request(
    version: i16,
    group: &str,
    topics: Option<&[(&str, Uuid, &[i32])]>,
) -> OffsetFetchRequest<'static> {
    let name = |name: &str| if version >= 10 { Str::default() } else { Str::from(name.to_owned()) };
    if version < 8 {
        let topics = topics.map(|topics| {
            let topics = topics.iter().map(|(topic, _, partitions)| OffsetFetchRequestTopic {
                name: name(topic),
                partition_indexes: partitions.to_vec().into(),
                ..OffsetFetchRequestTopic::default()
            });
            topics.collect::<Vec<_>>().into()
        });
        return OffsetFetchRequest {
            group_id: Str::from(group.to_owned()),
            topics,
            ..OffsetFetchRequest::default()
        };
    }
    let topics = topics.map(|topics| {
        let topics = topics.iter().map(|(topic, id, partitions)| OffsetFetchRequestTopics {
            name: name(topic),
            topic_id: if version >= 10 { *id } else { Uuid::default() },
            partition_indexes: partitions.to_vec().into(),
            ..OffsetFetchRequestTopics::default()
        });
        topics.collect::<Vec<_>>().into()
    });
    let group = OffsetFetchRequestGroup {
        group_id: Str::from(group.to_owned()),
        topics,
        ..OffsetFetchRequestGroup::default()
    };
    OffsetFetchRequest { groups: vec![group].into(), ..OffsetFetchRequest::default() }
}

/// Asks for committed offsets. Metadata is never null.
pub(crate) async fn fetch(
    client: &mut Client,
    version: i16,
    group: &str,
    topics: Option<&[(&str, Uuid, &[i32])]>,
) -> Vec<Fetched> {
    let response = client.call(version, &fetch_request(version, group, topics)).await;
    assert_eq!(response.error_code, ErrorCode::NONE);
    let mut fetched = Vec::new();
    for topic in &response.topics {
        fetched.extend(topic.partitions.iter().map(|partition| Fetched {
            topic: topic.name.to_string(),
            topic_id: Uuid::default(),
            partition: partition.partition_index,
            offset: partition.committed_offset,
            leader_epoch: partition.committed_leader_epoch,
            metadata: partition.metadata.expect("never null").to_string(),
            code: partition.error_code,
        }));
    }
    for group in &response.groups {
        assert_eq!(group.error_code, ErrorCode::NONE);
        for topic in &group.topics {
            fetched.extend(topic.partitions.iter().map(|partition| Fetched {
                topic: topic.name.to_string(),
                topic_id: topic.topic_id,
                partition: partition.partition_index,
                offset: partition.committed_offset,
                leader_epoch: partition.committed_leader_epoch,
                metadata: partition.metadata.expect("never null").to_string(),
                code: partition.error_code,
            }));
        }
    }
    fetched
}

/// The committed offsets of a group: (topic, partition, offset, metadata).
pub(crate) async fn committed(client: &mut Client, group: &str) -> Vec<(String, i32, i64, String)> {
    let fetched = fetch(client, 8, group, None).await;
    let fields = |one: Fetched| (one.topic, one.partition, one.offset, one.metadata);
    fetched.into_iter().map(fields).collect()
}

pub(crate) async fn describe(client: &mut Client, version: i16, group: &str) -> DescribedGroup<'static> {
    let request = DescribeGroupsRequest {
        groups: vec![Str::from(group.to_owned())].into(),
        ..DescribeGroupsRequest::default()
    };
    let response = client.call(version, &request).await;
    response.groups.iter().next().expect("a group")
}

/// The state of a group, by name.
pub(crate) async fn state(client: &mut Client, group: &str) -> String {
    describe(client, 5, group).await.group_state.to_string()
}

/// Asks until a group is in this state.
pub(crate) async fn until_state(client: &mut Client, group: &str, wanted: &str) {
    let wait = async {
        while state(client, group).await != wanted {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    let outcome = tokio::time::timeout(crate::client::PATIENCE, wait).await;
    outcome.unwrap_or_else(|_| panic!("group `{group}` never became {wanted}"));
}
