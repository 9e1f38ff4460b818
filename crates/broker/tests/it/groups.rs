//! Members of groups: they join, take assignments, heartbeat, leave, are missed.

use kolumn_broker::Settings;
use kolumn_kafka_wire::messages::{
    FindCoordinatorRequest, HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest,
    join_group_request::JoinGroupRequestProtocol, leave_group_request::MemberIdentity,
};
use kolumn_kafka_wire::{ErrorCode, Str};

use crate::client::Client;
use crate::groups_client::{Member, describe, hasty, state, subscription, until_state};
use crate::harness::TestBroker;

/// Two members that have come together: the leader, which is the first, and the other.
async fn pair(broker: &TestBroker, group: &str, version: i16) -> (Member, Member) {
    let mut first = Member::new(broker, group, version).await;
    first.enter().await;
    let mut second = Member::new(broker, group, version).await;
    let joining = second.send_join().await;
    until_state(&mut first.client, group, "PreparingRebalance").await;
    assert_eq!(first.heartbeat().await, ErrorCode::REBALANCE_IN_PROGRESS);
    let led = first.join().await;
    let followed = second.receive_join(joining).await;
    assert_eq!((led.error_code, followed.error_code), (ErrorCode::NONE, ErrorCode::NONE));
    assert_eq!((led.generation_id, followed.generation_id), (2, 2));
    let leaders = [&led.leader, &followed.leader, &led.member_id].map(ToString::to_string);
    assert!(leaders.iter().all(|leader| *leader == first.member_id), "{leaders:?}");
    assert_eq!((led.members.len(), followed.members.len()), (2, 0), "the leader alone is told");
    let metadata = led.members.iter().map(|member| member.metadata.to_vec());
    assert!(metadata.eq([subscription(&["topic"]), subscription(&["topic"])]));
    if version >= 7 {
        let protocol = |text: Option<Str<'static>>| text.map(|text| text.to_string());
        assert_eq!(protocol(followed.protocol_type).as_deref(), Some("consumer"));
        assert_eq!(protocol(followed.protocol_name).as_deref(), Some("range"));
    } else {
        assert_eq!(followed.protocol_name.as_deref(), Some("range"));
    }
    (first, second)
}

async fn walk(broker: &TestBroker, version: i16) {
    let group = format!("walked-{version}");
    let (mut first, mut second) = pair(broker, &group, version).await;
    let waiting = second.send_sync(&[]).await;
    let (one, two) = (first.member_id.clone(), second.member_id.clone());
    let led = first.sync(&[(&one, b"partition 0"), (&two, b"partitions 1 and 2")]).await;
    let followed = second.receive_sync(waiting).await;
    assert_eq!((led.error_code, followed.error_code), (ErrorCode::NONE, ErrorCode::NONE));
    assert_eq!(
        (&led.assignment[..], &followed.assignment[..]),
        (&b"partition 0"[..], &b"partitions 1 and 2"[..])
    );
    if version >= 5 {
        assert_eq!(followed.protocol_type.as_deref(), Some("consumer"));
        assert_eq!(followed.protocol_name.as_deref(), Some("range"));
    }
    assert_eq!((first.heartbeat().await, second.heartbeat().await), (ErrorCode::NONE, ErrorCode::NONE));
    assert_eq!(second.leave().await, ErrorCode::NONE);
    assert_eq!(second.heartbeat().await, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(first.heartbeat().await, ErrorCode::REBALANCE_IN_PROGRESS);
    let alone = first.join().await;
    assert_eq!((alone.generation_id, alone.members.len()), (3, 1));
    assert_eq!(first.leave().await, ErrorCode::NONE);
    assert_eq!(first.leave().await, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_every_version_share_a_topic() {
    let broker = TestBroker::start_with(hasty).await;
    for version in 0..=9 {
        walk(&broker, version).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_different_versions_are_in_one_group() {
    let broker = TestBroker::start_with(hasty).await;
    let mut old = Member::new(&broker, "mixed", 0).await;
    old.enter().await;
    let mut new = Member::new(&broker, "mixed", 9).await;
    let joining = new.send_join().await;
    until_state(&mut old.client, "mixed", "PreparingRebalance").await;
    old.join().await;
    let joined = new.receive_join(joining).await;
    assert_eq!(joined.leader.to_string(), old.member_id);
    let waiting = new.send_sync(&[]).await;
    let (one, two) = (old.member_id.clone(), new.member_id.clone());
    old.sync(&[(&one, b"old"), (&two, b"new")]).await;
    assert_eq!(&new.receive_sync(waiting).await.assignment[..], b"new");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assignment_of_megabytes_arrives_and_none_is_empty() {
    let broker = TestBroker::start_with(hasty).await;
    let (mut first, mut second) = pair(&broker, "large", 5).await;
    let waiting = second.send_sync(&[]).await;
    let (one, large) = (first.member_id.clone(), vec![7; 2 << 20]);
    let led = first.sync(&[(&one, &large)]).await;
    let followed = second.receive_sync(waiting).await;
    assert_eq!((led.error_code, followed.error_code), (ErrorCode::NONE, ErrorCode::NONE));
    assert_eq!((led.assignment.len(), followed.assignment.len()), (2 << 20, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_come_soon_after_the_first_are_in_its_generation() {
    let broker = TestBroker::start_with(|settings| settings.groups.initial_rebalance_delay_ms = 400).await;
    let mut members = Vec::new();
    for _ in 0..3 {
        let mut member = Member::new(&broker, "together", 5).await;
        let joining = member.send_join().await;
        members.push((member, joining));
    }
    for (member, joining) in &mut members {
        let joined = member.receive_join(*joining).await;
        assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_member_that_hangs_up_while_it_joins_is_not_waited_for() {
    let broker = TestBroker::start_with(hasty).await;
    let mut stays = Member::new(&broker, "hung-up", 3).await;
    stays.enter().await;
    let mut leaves = Member::new(&broker, "hung-up", 3).await;
    leaves.send_join().await;
    until_state(&mut stays.client, "hung-up", "PreparingRebalance").await;
    assert_eq!(describe(&mut stays.client, 5, "hung-up").await.members.len(), 2);
    drop(leaves);
    loop {
        if describe(&mut stays.client, 5, "hung-up").await.members.len() == 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let joined = stays.join().await;
    assert_eq!((joined.error_code, joined.members.len()), (ErrorCode::NONE, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_falls_silent_is_missed() {
    let broker = TestBroker::start_with(hasty).await;
    let mut silent = Member::new(&broker, "silent", 5).await;
    silent.session_timeout_ms = 100;
    silent.enter().await;
    let mut other = broker.client().await;
    until_state(&mut other, "silent", "Empty").await;
    assert_eq!(silent.heartbeat().await, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebalance_goes_on_without_those_who_do_not_come_back() {
    let broker = TestBroker::start_with(hasty).await;
    let mut late = Member::new(&broker, "late", 5).await;
    late.rebalance_timeout_ms = 100;
    late.enter().await;
    let mut punctual = Member::new(&broker, "late", 5).await;
    punctual.rebalance_timeout_ms = 100;
    let joined = punctual.join().await;
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 2));
    assert_eq!(joined.leader.to_string(), punctual.member_id);
    assert_eq!(late.heartbeat().await, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_static_member_that_starts_again_keeps_its_place() {
    let broker = TestBroker::start_with(hasty).await;
    let mut first = Member::new(&broker, "static", 9).await;
    first.instance_id = Some("one".to_owned());
    first.enter().await;
    let mut again = Member::new(&broker, "static", 9).await;
    again.instance_id = Some("one".to_owned());
    let joined = again.join().await;
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 1), "no rebalance");
    assert_ne!(again.member_id, first.member_id);
    assert!(joined.skip_assignment, "the leader need not assign again");
    let synced = again.sync(&[]).await;
    assert_eq!((synced.error_code, &synced.assignment[..]), (ErrorCode::NONE, &b"all of it"[..]));
    assert_eq!(again.heartbeat().await, ErrorCode::NONE);
    assert_eq!(first.heartbeat().await, ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(first.sync(&[]).await.error_code, ErrorCode::FENCED_INSTANCE_ID);
    first.client.create_topic("topic", 1).await;
    assert_eq!(first.commit().await, ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(again.commit().await, ErrorCode::NONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_removes_static_members_by_name() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "removed", 5).await;
    member.instance_id = Some("one".to_owned());
    member.enter().await;
    let identity = |member_id: &str, instance: Option<&'static str>| MemberIdentity {
        member_id: Str::from(member_id.to_owned()),
        group_instance_id: instance.map(Str::from),
        ..MemberIdentity::default()
    };
    let request = LeaveGroupRequest {
        group_id: Str::from("removed"),
        members: vec![identity("", Some("two")), identity("nobody", None), identity("", Some("one"))].into(),
        ..LeaveGroupRequest::default()
    };
    for version in 3..=5 {
        let response = member.client.call(version, &request).await;
        let codes: Vec<_> = response.members.iter().map(|member| member.error_code).collect();
        let last = if version == 3 { ErrorCode::NONE } else { ErrorCode::UNKNOWN_MEMBER_ID };
        assert_eq!(codes, [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::UNKNOWN_MEMBER_ID, last], "{version}");
        let names = response.members.iter().map(|member| member.group_instance_id.map(|id| id.to_string()));
        assert!(names.eq([Some("two".to_owned()), None, Some("one".to_owned())]));
    }
    assert_eq!(state(&mut member.client, "removed").await, "Empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_no_group_is_told_so() {
    let broker = TestBroker::start_with(hasty).await;
    let mut stranger = Member::new(&broker, "nowhere", 5).await;
    stranger.member_id = "stranger".to_owned();
    stranger.generation = 1;
    assert_eq!(stranger.heartbeat().await, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(stranger.sync(&[]).await.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(stranger.join().await.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(stranger.leave().await, ErrorCode::UNKNOWN_MEMBER_ID);
    stranger.version = 1;
    assert_eq!(stranger.leave().await, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(state(&mut stranger.client, "nowhere").await, "Dead", "asking makes no group");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_without_a_name_has_no_members() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "", 5).await;
    member.member_id = "me".to_owned();
    let refused = member.join().await;
    assert_eq!((refused.error_code, refused.member_id.as_str()), (ErrorCode::INVALID_GROUP_ID, "me"));
    assert_eq!(member.sync(&[]).await.error_code, ErrorCode::INVALID_GROUP_ID);
    assert_eq!(member.heartbeat().await, ErrorCode::INVALID_GROUP_ID);
    for version in 0..=5 {
        let response = member.client.call(version, &LeaveGroupRequest::default()).await;
        assert_eq!(response.error_code, ErrorCode::INVALID_GROUP_ID);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_no_member_sends_are_refused() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "strange", 5).await;
    member.session_timeout_ms = 1_800_001;
    let refused = member.client.call(5, &member.join_request()).await;
    assert_eq!(refused.error_code, ErrorCode::INVALID_SESSION_TIMEOUT);
    assert_eq!(refused.protocol_name.as_deref(), Some(""), "which may not be null yet");
    member.session_timeout_ms = -1;
    let refused = member.client.call(9, &member.join_request()).await;
    assert_eq!(refused.error_code, ErrorCode::INVALID_SESSION_TIMEOUT);
    assert_eq!((refused.generation_id, refused.protocol_name), (-1, None));
    member.session_timeout_ms = 60_000;
    let protocol = |name: usize| JoinGroupRequestProtocol {
        name: Str::from(name.to_string()),
        ..JoinGroupRequestProtocol::default()
    };
    let protocols = (0..65).map(protocol).collect::<Vec<_>>().into();
    let request = JoinGroupRequest { protocols, ..member.join_request() };
    assert_eq!(member.client.call(2, &request).await.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let request = JoinGroupRequest { protocols: Vec::new().into(), ..member.join_request() };
    assert_eq!(member.client.call(2, &request).await.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    member.enter().await;
    let unnamed = SyncGroupRequest {
        group_id: Str::from("strange"),
        generation_id: member.generation,
        member_id: Str::from(member.member_id.clone()),
        ..SyncGroupRequest::default()
    };
    assert_eq!(member.client.call(4, &unnamed).await.error_code, ErrorCode::NONE);
    assert_eq!(member.client.call(5, &unnamed).await.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let other = SyncGroupRequest {
        protocol_type: Some(Str::from("connect")),
        protocol_name: Some(Str::from("range")),
        ..unnamed
    };
    assert_eq!(member.client.call(5, &other).await.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    member.generation = 9;
    assert_eq!(member.heartbeat().await, ErrorCode::ILLEGAL_GENERATION);
}

#[tokio::test(flavor = "multi_thread")]
async fn this_broker_coordinates_every_group() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let port = i32::from(broker.broker.local_addr().port());
    for version in 0..=6 {
        let keys = if version < 4 { Vec::new() } else { vec![Str::from("a"), Str::from("")] };
        let key = if version < 4 { Str::from("a") } else { Str::default() };
        let request = FindCoordinatorRequest { key, coordinator_keys: keys.into(), ..Default::default() };
        let response = client.call(version, &request).await;
        if version < 4 {
            assert_eq!((response.error_code, response.node_id), (ErrorCode::NONE, 1));
            assert_eq!((&*response.host, response.port), ("127.0.0.1", port));
        } else {
            let keys = response.coordinators.iter().map(|found| found.key.to_string());
            assert!(keys.eq(["a", ""]));
            for found in &response.coordinators {
                assert_eq!((found.error_code, found.node_id), (ErrorCode::NONE, 1));
                assert_eq!((&*found.host, found.port), ("127.0.0.1", port));
            }
        }
    }
    assert_eq!(broker.recorder.count("CoordinatorMissing"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_answers_those_who_wait_for_a_group() {
    let broker = TestBroker::start_with(|settings: &mut Settings| {
        settings.limits.drain_timeout_ms = 120_000;
        settings.groups.initial_rebalance_delay_ms = 600_000;
    })
    .await;
    let mut joining = Member::new(&broker, "draining", 3).await;
    joining.rebalance_timeout_ms = 600_000;
    let join_id = joining.send_join().await;
    let mut observer = broker.client().await;
    until_state(&mut observer, "draining", "PreparingRebalance").await;
    let stopping = tokio::spawn(broker.stop());
    let joined = joining.receive_join(join_id).await;
    assert_eq!(joined.error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE, "retried elsewhere or later");
    stopping.await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_sync_is_answered_at_shutdown() {
    let broker = TestBroker::start_with(hasty).await;
    let (_first, mut second) = pair(&broker, "unsynced", 5).await;
    let before = broker.broker.stats().requests;
    let waiting = second.send_sync(&[]).await;
    broker.until("the sync has arrived", |stats| stats.requests > before).await;
    let stopping = tokio::spawn(broker.stop());
    let synced = second.receive_sync(waiting).await;
    assert_eq!(synced.error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    stopping.await.expect("a clean stop");
}

/// Joins of as many old members, pipelined on one connection.
async fn pipelined_joins(broker: &TestBroker, group: &str, count: usize) -> Client {
    let member = Member::new(broker, group, 0).await;
    let request = member.join_request();
    let mut client = member.client;
    for _ in 0..count {
        client.send(0, &request).await;
    }
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_joins_that_are_abandoned_leave_nothing() {
    let broker = TestBroker::start_with(|settings: &mut Settings| {
        settings.groups.initial_rebalance_delay_ms = 600_000;
    })
    .await;
    let mut observer = broker.client().await;
    let mut clients = Vec::new();
    for _ in 0..200 {
        clients.push(pipelined_joins(&broker, "crowd", 50).await);
    }
    let count = async |observer: &mut Client| describe(observer, 5, "crowd").await.members.len();
    while count(&mut observer).await < 10_000 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    drop(clients);
    while count(&mut observer).await > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(matches!(&*state(&mut observer, "crowd").await, "Empty" | "Dead"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_and_the_number_of_groups_are_bounded() {
    let broker = TestBroker::start_with(|settings: &mut Settings| {
        hasty(settings);
        settings.groups.members_max = 2;
        settings.groups.groups_max = 2;
    })
    .await;
    let (mut first, _second) = pair(&broker, "one", 3).await;
    let mut third = Member::new(&broker, "one", 3).await;
    assert_eq!(third.join().await.error_code, ErrorCode::GROUP_MAX_SIZE_REACHED);
    third.group = "two".to_owned();
    assert_eq!(third.join().await.error_code, ErrorCode::NONE);
    let mut fourth = Member::new(&broker, "three", 3).await;
    assert_eq!(fourth.join().await.error_code, ErrorCode::GROUP_MAX_SIZE_REACHED);
    first.client.create_topic("topic", 1).await;
    assert_eq!(fourth.commit().await, ErrorCode::GROUP_MAX_SIZE_REACHED);
    let heartbeat = HeartbeatRequest { group_id: Str::from("three"), ..HeartbeatRequest::default() };
    assert_eq!(fourth.client.call(0, &heartbeat).await.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    // One that goes makes room.
    assert_eq!(third.leave().await, ErrorCode::NONE);
    let deletion = kolumn_kafka_wire::messages::DeleteGroupsRequest {
        groups_names: vec![Str::from("two")].into(),
        ..Default::default()
    };
    until_state(&mut first.client, "two", "Empty").await;
    let deleted = first.client.call(2, &deletion).await;
    let code = deleted.results.iter().next().expect("a result").error_code;
    assert!(matches!(code, ErrorCode::NONE | ErrorCode::GROUP_ID_NOT_FOUND), "{code:?}");
    loop {
        match fourth.join().await.error_code {
            ErrorCode::NONE => break,
            code => assert_eq!(code, ErrorCode::GROUP_MAX_SIZE_REACHED, "until they are counted again"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn the_observer_hears_what_becomes_of_a_group() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "watched", 5).await;
    member.enter().await;
    assert_eq!(member.leave().await, ErrorCode::NONE);
    let heard = |state: &str, generation: i32, members: usize| {
        let text = format!(
            "GroupStateChanged {{ group: \"watched\", state: \"{state}\", generation: {generation}, members: {members} }}"
        );
        broker.recorder.count(&text)
    };
    assert_eq!((heard("CompletingRebalance", 1, 1), heard("Stable", 1, 1), heard("Empty", 2, 0)), (1, 1, 1));
    broker.stop().await;
}
