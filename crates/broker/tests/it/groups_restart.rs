//! Groups outlive the broker's process.

use kolumn_kafka_wire::{ErrorCode, Uuid};

use crate::groups_client::{
    Member, commit_codes, commit_request, describe, fetch, hasty, state, until_state,
};
use crate::harness::TestBroker;

#[tokio::test(flavor = "multi_thread")]
async fn members_go_on_in_their_generation_after_a_restart() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "outlives", 9).await;
    member.instance_id = Some("one".to_owned());
    member.client.create_topic("topic", 1).await;
    member.enter().await;
    let mut request = commit_request("outlives", "topic", &[(0, 17, "where I am")]);
    request.generation_id_or_member_epoch = member.generation;
    request.member_id = kolumn_kafka_wire::Str::from(member.member_id.clone());
    let mut topic = request.topics.iter().next().expect("a topic");
    let mut partition = topic.partitions.iter().next().expect("a partition");
    partition.committed_leader_epoch = 1;
    topic.partitions = vec![partition].into();
    request.topics = vec![topic].into();
    assert_eq!(commit_codes(&mut member.client, 8, &request).await, [ErrorCode::NONE]);
    let synced_in = member.generation;
    let mut dir = broker.stop().await;
    for _ in 0..3 {
        let broker = TestBroker::start_in(dir, hasty).await;
        member.client = broker.client().await;
        assert_eq!(member.heartbeat().await, ErrorCode::NONE);
        let described = describe(&mut member.client, 5, "outlives").await;
        assert_eq!((&*described.group_state, &*described.protocol_data), ("Stable", "range"));
        let known = described.members.iter().next().expect("a member");
        assert_eq!(known.member_id.to_string(), member.member_id);
        assert_eq!(known.group_instance_id.as_deref(), Some("one"));
        assert_eq!(known.member_assignment.to_vec(), b"all of it");
        let synced = member.sync(&[]).await;
        assert_eq!((synced.error_code, &synced.assignment[..]), (ErrorCode::NONE, &b"all of it"[..]));
        let fetched =
            fetch(&mut member.client, 7, "outlives", Some(&[("topic", Uuid::default(), &[0])])).await;
        assert_eq!(
            (fetched[0].offset, fetched[0].leader_epoch, &*fetched[0].metadata),
            (17, 1, "where I am")
        );
        dir = broker.stop().await;
    }
    let broker = TestBroker::start_in(dir, hasty).await;
    let mut other = Member::new(&broker, "outlives", 9).await;
    let joining = other.send_join().await;
    member.client = broker.client().await;
    until_state(&mut member.client, "outlives", "PreparingRebalance").await;
    assert_eq!(member.heartbeat().await, ErrorCode::REBALANCE_IN_PROGRESS);
    let joined = member.join().await;
    assert_eq!((joined.error_code, joined.members.len()), (ErrorCode::NONE, 2));
    assert!(joined.generation_id > synced_in, "the next generation is a later one");
    assert_eq!(other.receive_join(joining).await.generation_id, joined.generation_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_does_not_come_back_after_a_restart_is_missed() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "lost", 5).await;
    member.session_timeout_ms = 300;
    member.client.create_topic("topic", 1).await;
    member.enter().await;
    assert_eq!(member.commit().await, ErrorCode::NONE);
    let broker = TestBroker::start_in(broker.stop().await, hasty).await;
    until_state(&mut broker.client().await, "lost", "Empty").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_never_comes_again_after_a_restart() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "counted", 5).await;
    member.client.create_topic("topic", 1).await;
    member.enter().await;
    assert_eq!(member.commit().await, ErrorCode::NONE);
    assert_eq!(member.leave().await, ErrorCode::NONE);
    let first = member.generation;
    until_state(&mut member.client, "counted", "Empty").await;
    let broker = TestBroker::start_in(broker.stop().await, hasty).await;
    let mut member = Member::new(&broker, "counted", 5).await;
    assert_eq!(state(&mut member.client, "counted").await, "Empty", "its offsets keep it");
    member.enter().await;
    assert!(member.generation > first);
}
