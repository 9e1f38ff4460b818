//! A log without room: groups and their commits wait, and go on when a deletion makes room.

use kolumn_broker::Broker;
use kolumn_kafka_wire::messages::{DeleteTopicsRequest, OffsetCommitRequest, SyncGroupRequest};
use kolumn_kafka_wire::{ErrorCode, Str};
use kolumn_topic_store::PressureLevel;

use crate::client::Client;
use crate::groups_client::{commit_codes, commit_request, committed};
use crate::harness::until;
use crate::room::{fill, small};

async fn make_room(client: &mut Client) {
    let deletion =
        DeleteTopicsRequest { topic_names: vec![Str::from("filler")].into(), ..Default::default() };
    let deleted = client.call(5, &deletion).await;
    assert!(deleted.responses.iter().all(|result| result.error_code == ErrorCode::NONE), "{deleted:?}");
}

/// Sends a request that has to wait, and returns when it has been started.
async fn send_commit(broker: &Broker, client: &mut Client, offset: i64) -> i32 {
    let before = broker.stats().requests;
    // Long, so that it finds no room where a short one would.
    let metadata = "m".repeat(4_000);
    let partitions: Vec<_> = (0..25).map(|partition| (partition, offset, &*metadata)).collect();
    let id = client.send(8, &commit_request("group", "topic", &partitions)).await;
    until("it has been started", || broker.stats().requests > before).await;
    id
}

fn code(response: &kolumn_kafka_wire::messages::OffsetCommitResponse<'static>) -> ErrorCode {
    let topic = response.topics.iter().next().expect("a topic");
    topic.partitions.iter().next().expect("a partition").error_code
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_waits_for_room_and_later_ones_wait_behind_it() {
    let (broker, store, _dir) = small().await;
    let mut client = Client::connect(broker.local_addr()).await;
    client.create_topic("filler", 1).await;
    client.create_topic("topic", 100).await;
    fill(&mut client, &"f".repeat(100_000)).await;
    assert_eq!(store.pressure().level, PressureLevel::Full);
    let mut admin = Client::connect(broker.local_addr()).await;
    let first = send_commit(&broker, &mut client, 1).await;
    let second = client.send(8, &commit_request("group", "topic", &[(0, 2, "")])).await;
    assert_eq!(committed(&mut admin, "group").await, []);
    make_room(&mut admin).await;
    for id in [first, second] {
        let response = client.receive::<OffsetCommitRequest<'_>>(8, id).await.expect("an answer");
        assert_eq!(code(&response), ErrorCode::NONE);
    }
    let offsets = committed(&mut admin, "group").await;
    assert_eq!((offsets.len(), offsets[0].2), (25, 2), "the later one counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_answers_a_commit_that_waits_for_room() {
    let (broker, store, _dir) = small().await;
    let mut client = Client::connect(broker.local_addr()).await;
    client.create_topic("filler", 1).await;
    client.create_topic("topic", 100).await;
    fill(&mut client, &"f".repeat(100_000)).await;
    let waiting = send_commit(&broker, &mut client, 1).await;
    let stopping = tokio::spawn(broker.shutdown());
    let response = client.receive::<OffsetCommitRequest<'_>>(8, waiting).await.expect("an answer");
    assert_eq!(code(&response), ErrorCode::COORDINATOR_NOT_AVAILABLE, "retriable elsewhere or later");
    stopping.await.expect("runs").expect("a clean stop");
    tokio::task::spawn_blocking(move || store.close()).await.expect("runs").expect("closes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_gets_its_assignment_when_there_is_room_to_remember_it() {
    let (broker, _store, _dir) = small().await;
    let mut admin = Client::connect(broker.local_addr()).await;
    admin.create_topic("filler", 1).await;
    admin.create_topic("topic", 1).await;
    let mut client = Client::connect(broker.local_addr()).await;
    let joined = client.call(3, &crate::groups_client::join_request("group")).await;
    assert_eq!(joined.error_code, ErrorCode::NONE);
    fill(&mut admin, &"f".repeat(100_000)).await;
    let assignment = kolumn_kafka_wire::messages::sync_group_request::SyncGroupRequestAssignment {
        member_id: joined.member_id.clone(),
        // Long, so that it finds no room where a short one would.
        assignment: kolumn_kafka_wire::Blob::from(vec![1; 100_000]),
        ..Default::default()
    };
    let request = SyncGroupRequest {
        group_id: Str::from("group"),
        generation_id: joined.generation_id,
        member_id: joined.member_id,
        assignments: vec![assignment].into(),
        ..SyncGroupRequest::default()
    };
    let before = broker.stats().requests;
    let waiting = client.send(3, &request).await;
    until("it has been started", || broker.stats().requests > before).await;
    make_room(&mut admin).await;
    let synced = client.receive::<SyncGroupRequest<'_>>(3, waiting).await.expect("an answer");
    assert_eq!((synced.error_code, synced.assignment.len()), (ErrorCode::NONE, 100_000));
    let codes = commit_codes(&mut admin, 8, &commit_request("other", "topic", &[(0, 1, "")])).await;
    assert_eq!(codes, [ErrorCode::NONE]);
}
