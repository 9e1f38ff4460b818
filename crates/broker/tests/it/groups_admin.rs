//! What administrators see of groups, and what they do to them.

use kolumn_kafka_wire::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, JoinGroupRequest, ListGroupsRequest, OffsetDeleteRequest,
    offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic},
};
use kolumn_kafka_wire::{ErrorCode, Str};

use crate::client::Client;
use crate::groups_client::{Member, commit, committed, describe, hasty, state, subscription, until_state};
use crate::harness::TestBroker;

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_described_with_its_members_in_every_version() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "described", 5).await;
    member.instance_id = Some("instance".to_owned());
    member.enter().await;
    for version in 0..=6 {
        let group = describe(&mut member.client, version, "described").await;
        assert_eq!((group.error_code, group.error_message), (ErrorCode::NONE, None));
        assert_eq!((&*group.group_id, &*group.group_state), ("described", "Stable"));
        assert_eq!((&*group.protocol_type, &*group.protocol_data), ("consumer", "range"));
        assert_eq!(group.authorized_operations, i32::MIN);
        let found = group.members.iter().next().expect("a member");
        assert_eq!(found.member_id.to_string(), member.member_id);
        assert_eq!(found.group_instance_id.as_deref(), (version >= 4).then_some("instance"));
        assert_eq!((&*found.client_id, &*found.client_host), ("test", "/127.0.0.1"));
        assert_eq!(found.member_metadata.to_vec(), subscription(&["topic"]));
        assert_eq!(found.member_assignment.to_vec(), b"all of it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_described_once_each_also_those_that_are_not_there() {
    let broker = TestBroker::start_with(hasty).await;
    let mut client = broker.client().await;
    client.create_topic("topic", 1).await;
    commit(&mut client, "simple", "topic", &[(0, 1, "")]).await;
    for version in 0..=6 {
        let request = DescribeGroupsRequest {
            groups: ["nobody", "simple", "simple", "nobody"].map(Str::from).to_vec().into(),
            include_authorized_operations: version >= 3,
            ..DescribeGroupsRequest::default()
        };
        let response = client.call(version, &request).await;
        let groups: Vec<_> = response.groups.iter().collect();
        assert_eq!(groups.len(), 2);
        let unknown = if version >= 6 { ErrorCode::GROUP_ID_NOT_FOUND } else { ErrorCode::NONE };
        assert_eq!((groups[0].error_code, &*groups[0].group_state), (unknown, "Dead"));
        assert_eq!(groups[0].error_message.is_some(), version >= 6);
        assert_eq!((groups[1].error_code, &*groups[1].group_state), (ErrorCode::NONE, "Empty"));
        assert_eq!((&*groups[1].protocol_type, groups[1].members.len()), ("", 0));
        if version >= 3 {
            let operations = [3, 6, 8, 10, 11].iter().map(|bit| 1 << bit).sum::<i32>();
            assert_eq!(groups[1].authorized_operations, operations);
        }
    }
}

async fn list(
    client: &mut Client,
    version: i16,
    states: &[&'static str],
    types: &[&'static str],
) -> Vec<String> {
    let words = |words: &[&'static str]| words.iter().map(|word| Str::from(*word)).collect::<Vec<_>>();
    let request = ListGroupsRequest {
        states_filter: words(states).into(),
        types_filter: words(types).into(),
        ..ListGroupsRequest::default()
    };
    let response = client.call(version, &request).await;
    assert_eq!(response.error_code, ErrorCode::NONE);
    let listed = response.groups.iter().map(|group| {
        format!("{} {} {} {}", group.group_id, group.protocol_type, group.group_state, group.group_type)
    });
    listed.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_listed_by_state_and_type() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "stable", 5).await;
    member.enter().await;
    let mut left = Member::new(&broker, "left", 5).await;
    left.enter().await;
    left.leave().await;
    let mut client = broker.client().await;
    client.create_topic("topic", 1).await;
    commit(&mut client, "simple", "topic", &[(0, 1, "")]).await;
    for version in 0..=5 {
        let (state, kind) = (version >= 4, version >= 5);
        let row = |name: &str, protocol: &str, group_state: &str| {
            let group_state = if state { group_state } else { "" };
            format!("{name} {protocol} {group_state} {}", if kind { "classic" } else { "" })
        };
        let rows = [
            row("left", "consumer", "Empty"),
            row("simple", "", "Empty"),
            row("stable", "consumer", "Stable"),
        ];
        assert_eq!(list(&mut client, version, &[], &[]).await, rows);
        if state {
            assert_eq!(list(&mut client, version, &["Stable"], &[]).await, rows[2..]);
            assert_eq!(list(&mut client, version, &["eMPTY", "Dead"], &[]).await, rows[..2]);
            assert_eq!(list(&mut client, version, &["Stable", "Empty"], &[]).await, rows);
            assert_eq!(list(&mut client, version, &["Assigning"], &[]).await, [""; 0]);
        }
        if kind {
            assert_eq!(list(&mut client, version, &[], &["Classic", "share"]).await, rows);
            assert_eq!(list(&mut client, version, &[], &["consumer"]).await, [""; 0]);
            assert_eq!(list(&mut client, version, &["Stable"], &["classic"]).await, rows[2..]);
            let long = "a state with a name of more than thirty-two letters";
            assert_eq!(list(&mut client, version, &[long], &[]).await, [""; 0]);
        }
    }
}

async fn delete(client: &mut Client, version: i16, groups: &[&'static str]) -> Vec<(String, ErrorCode)> {
    let names = groups.iter().map(|name| Str::from(*name)).collect::<Vec<_>>();
    let request = DeleteGroupsRequest { groups_names: names.into(), ..DeleteGroupsRequest::default() };
    let response = client.call(version, &request).await;
    response.results.iter().map(|result| (result.group_id.to_string(), result.error_code)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_groups_are_deleted_with_their_offsets() {
    let broker = TestBroker::start_with(hasty).await;
    let mut client = broker.client().await;
    client.create_topic("topic", 1).await;
    let mut member = Member::new(&broker, "in-use", 5).await;
    member.enter().await;
    for version in 0..=2 {
        commit(&mut client, "simple", "topic", &[(0, 1, "")]).await;
        let mut left = Member::new(&broker, "left", 5).await;
        left.enter().await;
        assert_eq!(left.generation, 1, "a group that was deleted begins anew");
        left.commit().await;
        left.leave().await;
        let deleted = delete(&mut client, version, &["simple", "left", "in-use", "nobody", "simple"]).await;
        let result = |name: &str, code| (name.to_owned(), code);
        let expected = [
            result("simple", ErrorCode::NONE),
            result("left", ErrorCode::NONE),
            result("in-use", ErrorCode::NON_EMPTY_GROUP),
            result("nobody", ErrorCode::GROUP_ID_NOT_FOUND),
        ];
        assert_eq!(deleted, expected);
        for group in ["simple", "left"] {
            assert_eq!(state(&mut client, group).await, "Dead");
            assert_eq!(committed(&mut client, group).await, []);
        }
    }
    assert_eq!(member.heartbeat().await, ErrorCode::NONE);
    let broker = TestBroker::start_in(broker.stop().await, hasty).await;
    assert_eq!(list(&mut broker.client().await, 3, &[], &[]).await, ["in-use consumer  "]);
}

/// Deletes offsets of a topic; the code of the answer, then those of the partitions.
async fn delete_offsets(
    client: &mut Client,
    group: &str,
    topic: &str,
    partitions: &[i32],
) -> (ErrorCode, Vec<ErrorCode>) {
    let partitions = partitions.iter().map(|index| OffsetDeleteRequestPartition { partition_index: *index });
    let topic = OffsetDeleteRequestTopic {
        name: Str::from(topic.to_owned()),
        partitions: partitions.collect::<Vec<_>>().into(),
    };
    let request = OffsetDeleteRequest { group_id: Str::from(group.to_owned()), topics: vec![topic].into() };
    let response = client.call(0, &request).await;
    let codes = response
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|partition| partition.error_code).collect::<Vec<_>>());
    (response.error_code, codes.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_are_deleted_but_not_those_that_members_need() {
    let broker = TestBroker::start_with(hasty).await;
    let mut client = broker.client().await;
    for topic in ["topic", "other"] {
        client.create_topic(topic, 2).await;
        for group in ["used", "simple", "connect"] {
            commit(&mut client, group, topic, &[(0, 1, ""), (1, 1, "")]).await;
        }
    }
    let (none, unknown) = (ErrorCode::NONE, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let mut member = Member::new(&broker, "used", 5).await;
    member.enter().await;
    let subscribed = ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC;
    assert_eq!(delete_offsets(&mut client, "used", "topic", &[0, 1]).await, (none, vec![subscribed; 2]));
    assert_eq!(delete_offsets(&mut client, "used", "other", &[0, 5]).await, (none, vec![none, unknown]));
    let named = |topic: &str, partition| (topic.to_owned(), partition, 1, String::new());
    assert_eq!(
        committed(&mut client, "used").await,
        [named("other", 1), named("topic", 0), named("topic", 1)]
    );

    assert_eq!(delete_offsets(&mut client, "simple", "topic", &[1]).await, (none, vec![none]));
    assert_eq!(delete_offsets(&mut client, "simple", "topic", &[1]).await, (none, vec![none]), "once more");
    assert_eq!(delete_offsets(&mut client, "simple", "nothing", &[0]).await, (none, vec![unknown]));
    let rest = [named("other", 0), named("other", 1), named("topic", 0)];
    assert_eq!(committed(&mut client, "simple").await, rest);

    let worker = Member::new(&broker, "connect", 3).await;
    let request = JoinGroupRequest { protocol_type: Str::from("connect"), ..worker.join_request() };
    let mut connection = worker.client;
    assert_eq!(connection.call(3, &request).await.error_code, none);
    let refused = delete_offsets(&mut client, "connect", "topic", &[0]).await;
    assert_eq!(refused, (ErrorCode::NON_EMPTY_GROUP, Vec::new()));
    let refused = delete_offsets(&mut client, "nobody", "topic", &[0]).await;
    assert_eq!(refused, (ErrorCode::GROUP_ID_NOT_FOUND, Vec::new()));
    let refused = delete_offsets(&mut client, "", "topic", &[0]).await;
    assert_eq!(refused, (ErrorCode::INVALID_GROUP_ID, Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_whose_last_offset_is_deleted_is_gone() {
    let broker = TestBroker::start_with(hasty).await;
    let mut client = broker.client().await;
    client.create_topic("topic", 1).await;
    commit(&mut client, "simple", "topic", &[(0, 1, "")]).await;
    delete_offsets(&mut client, "simple", "topic", &[0]).await;
    until_state(&mut client, "simple", "Dead").await;
}
