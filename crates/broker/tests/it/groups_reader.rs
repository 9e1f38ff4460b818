//! What the program around a broker is told of groups.

use kolumn_broker::{GroupDescription, GroupMember};
use kolumn_kafka_wire::ErrorCode;

use crate::groups_client::{Member, hasty, until_state};
use crate::harness::{TestBroker, until};

/// Partitions 0 and 2 of `topic`, and none of `other`.
const ASSIGNMENT: &[u8] =
    b"\0\x01\0\0\0\x02\0\x05topic\0\0\0\x02\0\0\0\0\0\0\0\x02\0\x05other\0\0\0\0\0\0\0\0";

fn only(groups: Vec<GroupDescription>) -> GroupDescription {
    let [group] = <[_; 1]>::try_from(groups).expect("one group");
    group
}

fn assigned(member: &GroupMember) -> Option<Vec<(&str, &[i32])>> {
    let topics = member.assigned.as_ref()?.iter();
    Some(topics.map(|assigned| (&*assigned.topic, &*assigned.partitions)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_described_with_its_members_and_what_they_are_assigned() {
    let broker = TestBroker::start_with(hasty).await;
    assert_eq!(broker.broker.groups(None), []);
    let mut member = Member::new(&broker, "readers", 9).await;
    member.instance_id = Some("one".to_owned());
    assert_eq!(member.join().await.error_code, ErrorCode::NONE);
    let group = only(broker.broker.groups(None));
    assert_eq!((group.state, &*group.protocol), ("CompletingRebalance", ""));
    assert_eq!(assigned(&group.members[0]), None, "nothing is assigned yet");

    let me = member.member_id.clone();
    assert_eq!(member.sync(&[(&me, ASSIGNMENT)]).await.error_code, ErrorCode::NONE);
    let group = only(broker.broker.groups(Some("kafka")));
    assert_eq!((&*group.bucket, &*group.id, group.state), ("kafka", "readers", "Stable"));
    assert_eq!((&*group.protocol_type, &*group.protocol), ("consumer", "range"));
    let [described] = &*group.members else { panic!("one member: {group:?}") };
    assert_eq!((&described.id, described.instance_id.as_deref()), (&me, Some("one")));
    assert_eq!((&*described.client_id, &*described.client_host), ("test", "/127.0.0.1"));
    assert_eq!(assigned(described), Some(vec![("topic", &[0, 2][..]), ("other", &[])]));
    assert_eq!(broker.broker.groups(Some("other")), [], "there is one view");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assignment_that_cannot_be_read_is_none_and_a_group_that_was_left_is_empty() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "readers", 5).await;
    member.client.create_topic("topic", 1).await;
    member.enter().await;
    let group = only(broker.broker.groups(None));
    assert_eq!((group.state, assigned(&group.members[0])), ("Stable", None));
    assert_eq!(member.commit().await, ErrorCode::NONE);
    assert_eq!(member.leave().await, ErrorCode::NONE);
    until_state(&mut member.client, "readers", "Empty").await;
    let group = only(broker.broker.groups(None));
    assert_eq!((group.state, &*group.protocol_type, group.members.len()), ("Empty", "consumer", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_outlives_its_broker_and_then_knows_no_groups() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "readers", 5).await;
    member.enter().await;
    let reader = broker.broker.group_reader();
    assert_eq!(reader.clone().groups(None).len(), 1);
    drop(member);
    broker.stop().await;
    until("the groups are gone", || reader.groups(None).is_empty()).await;
}
