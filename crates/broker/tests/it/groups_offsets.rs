//! Committed offsets: who may commit, what comes back, when they go.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kolumn_broker::Settings;
use kolumn_kafka_wire::messages::{
    DeleteTopicsRequest, OffsetCommitRequest, OffsetFetchRequest,
    offset_commit_request::OffsetCommitRequestTopic,
    offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics},
};
use kolumn_kafka_wire::{ErrorCode, Str, Uuid};
use kolumn_topic_store::{CommittedOffset, Offset, OffsetCommit, PartitionIndex, Timestamp};

use crate::client::PATIENCE;
use crate::groups_client::{
    Fetched, Member, commit, commit_codes, commit_request, committed, fetch, fetch_request, hasty, state,
    subscription, until_state,
};
use crate::harness::TestBroker;

#[tokio::test(flavor = "multi_thread")]
async fn offsets_come_back_as_they_were_committed_in_every_version() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let id = client.create_topic("topic", 3).await;
    for commit_version in 2..=10 {
        for fetch_version in 1..=10 {
            let group = format!("group-{commit_version}-{fetch_version}");
            let mut request = commit_request(&group, "topic", &[(2, 41, "was hier schon ist")]);
            let mut topic = request.topics.iter().next().expect("a topic");
            let mut partition = topic.partitions.iter().next().expect("a partition");
            partition.committed_leader_epoch = 3;
            let mut unmarked = partition.clone();
            (unmarked.partition_index, unmarked.committed_metadata) = (1, None);
            unmarked.committed_leader_epoch = -1;
            topic.partitions = vec![partition, unmarked].into();
            (topic.name, topic.topic_id) =
                if commit_version >= 10 { (Str::default(), id) } else { (topic.name, Uuid::default()) };
            request.topics = vec![topic].into();
            let codes = commit_codes(&mut client, commit_version, &request).await;
            assert_eq!(codes, [ErrorCode::NONE, ErrorCode::NONE], "version {commit_version}");
            let by_id = fetch_version >= 10;
            let fetched = |partition, offset, leader_epoch, metadata: &str| Fetched {
                topic: if by_id { String::new() } else { "topic".to_owned() },
                topic_id: if by_id { id } else { Uuid::default() },
                partition,
                offset,
                leader_epoch,
                metadata: metadata.to_owned(),
                code: ErrorCode::NONE,
            };
            let epoch = if commit_version >= 6 && fetch_version >= 5 { 3 } else { -1 };
            let expected = [
                fetched(2, 41, epoch, "was hier schon ist"),
                fetched(1, 41, -1, ""),
                fetched(0, -1, -1, ""),
                fetched(7, -1, -1, ""),
            ];
            let asked: &[(&str, Uuid, &[i32])] = &[("topic", id, &[2, 1, 0, 7])];
            assert_eq!(fetch(&mut client, fetch_version, &group, Some(asked)).await, expected);
            if fetch_version >= 2 {
                let all = fetch(&mut client, fetch_version, &group, None).await;
                assert_eq!(all, [expected[1].clone(), expected[0].clone()]);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_committed_for_groups_and_topics_that_are_not_there() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let stranger = Uuid::from_bytes([9; 16]);
    for version in 1..=10 {
        let fetched = fetch(&mut client, version, "nobody", Some(&[("nothing", stranger, &[0])])).await;
        assert_eq!(fetched.len(), 1);
        let code = if version >= 10 { ErrorCode::UNKNOWN_TOPIC_ID } else { ErrorCode::NONE };
        assert_eq!((fetched[0].offset, fetched[0].leader_epoch, fetched[0].code), (-1, -1, code));
        assert_eq!(fetched[0].metadata, "");
        if version >= 2 {
            assert_eq!(fetch(&mut client, version, "nobody", None).await, []);
        }
    }
    for version in 2..=10 {
        let mut request = commit_request("somebody", "nothing", &[(0, 5, "")]);
        if version >= 10 {
            let topic = request.topics.iter().next().expect("a topic");
            let topic = OffsetCommitRequestTopic { topic_id: stranger, name: Str::default(), ..topic };
            request.topics = vec![topic].into();
        }
        let unknown =
            if version >= 10 { ErrorCode::UNKNOWN_TOPIC_ID } else { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
        assert_eq!(commit_codes(&mut client, version, &request).await, [unknown]);
    }
    assert_eq!(state(&mut client, "somebody").await, "Dead", "what was refused makes no group");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_offset_that_cannot_be_committed_has_its_own_code() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("topic", 2).await;
    let (long, longer) = ("m".repeat(4096), "m".repeat(4097));
    let offsets = [(0, 1, &*long), (1, 1, &*longer), (2, 1, ""), (-1, 1, "")];
    let codes = commit_codes(&mut client, 8, &commit_request("picky", "topic", &offsets)).await;
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::OFFSET_METADATA_TOO_LARGE, unknown, unknown]);
    assert_eq!(committed(&mut client, "picky").await, [("topic".to_owned(), 0, 1, long)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_retention_of_old_commits_is_the_brokers_own() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("topic", 1).await;
    for (version, retention_time_ms) in [(2, -1), (3, 0), (4, 1), (4, i64::MIN)] {
        let request = OffsetCommitRequest {
            retention_time_ms,
            ..commit_request("kept", "topic", &[(0, i64::from(version), "")])
        };
        assert_eq!(commit_codes(&mut client, version, &request).await, [ErrorCode::NONE]);
    }
    assert_eq!(committed(&mut client, "kept").await, [("topic".to_owned(), 0, 4, String::new())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_nothing_succeeds_and_makes_no_group() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("topic", 1).await;
    let empty = OffsetCommitRequest { group_id: Str::from("nothing"), ..OffsetCommitRequest::default() };
    for version in 2..=10 {
        assert_eq!(client.call(version, &empty).await.topics.len(), 0);
        let request = commit_request("nothing", if version >= 10 { "" } else { "topic" }, &[]);
        assert_eq!(commit_codes(&mut client, version, &request).await, []);
    }
    assert_eq!(state(&mut client, "nothing").await, "Dead");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_without_a_group_commits_under_any_name() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("topic", 1).await;
    for group in ["", "ü", &"n".repeat(20_000)] {
        commit(&mut client, group, "topic", &[(0, 3, "")]).await;
        assert_eq!(committed(&mut client, group).await, [("topic".to_owned(), 0, 3, String::new())]);
    }
    // One that has a static member's name all the same.
    let mut request = commit_request("named", "topic", &[(0, 3, "")]);
    request.group_instance_id = Some(Str::from("instance"));
    assert_eq!(commit_codes(&mut client, 7, &request).await, [ErrorCode::NONE]);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_alone_commit_while_a_group_has_some() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "guarded", 5).await;
    member.client.create_topic("topic", 1).await;
    assert_eq!(member.join().await.error_code, ErrorCode::NONE);
    assert_eq!(member.commit().await, ErrorCode::REBALANCE_IN_PROGRESS, "it has no assignment yet");
    let me = member.member_id.clone();
    member.sync(&[(&me, b"")]).await;
    assert_eq!(member.commit().await, ErrorCode::NONE);
    let mut stranger = Member::new(&broker, "guarded", 5).await;
    assert_eq!(stranger.commit().await, ErrorCode::UNKNOWN_MEMBER_ID, "without a generation");
    (stranger.member_id, stranger.generation) = ("stranger".to_owned(), 1);
    assert_eq!(stranger.commit().await, ErrorCode::UNKNOWN_MEMBER_ID);
    member.generation = 0;
    assert_eq!(member.commit().await, ErrorCode::ILLEGAL_GENERATION);
    member.generation = 1;
    let mut second = Member::new(&broker, "guarded", 5).await;
    second.send_join().await;
    until_state(&mut stranger.client, "guarded", "PreparingRebalance").await;
    assert_eq!(member.commit().await, ErrorCode::NONE, "what was consumed before the rebalance counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_of_a_group_that_is_not_there_commits_nothing() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let id = client.create_topic("topic", 1).await;
    for version in 2..=10 {
        let mut request = commit_request("gone", "topic", &[(0, 1, "")]);
        if version >= 10 {
            let topic = request.topics.iter().next().expect("a topic");
            request.topics =
                vec![OffsetCommitRequestTopic { name: Str::default(), topic_id: id, ..topic }].into();
        }
        request.generation_id_or_member_epoch = 4;
        request.member_id = Str::from("member");
        let code = if version >= 9 { ErrorCode::GROUP_ID_NOT_FOUND } else { ErrorCode::ILLEGAL_GENERATION };
        assert_eq!(commit_codes(&mut client, version, &request).await, [code]);
    }
    assert_eq!(committed(&mut client, "gone").await, []);
}

/// Commits offsets 1 to 400, twenty on their way at a time: their order counts.
async fn commit_steadily(broker: &TestBroker, partition: i32) {
    let mut client = broker.client().await;
    for first in (1..=400).step_by(20) {
        let mut ids = Vec::new();
        for offset in first..first + 20 {
            let request = commit_request("steady", "topic", &[(partition, offset, "")]);
            ids.push(client.send(8, &request).await);
        }
        for id in ids {
            let response = client.receive::<OffsetCommitRequest<'_>>(8, id).await.expect("an answer");
            let topic = response.topics.iter().next().expect("a topic");
            let code = topic.partitions.iter().next().expect("a partition").error_code;
            assert_eq!(code, ErrorCode::NONE);
        }
        let asked: &[(&str, Uuid, &[i32])] = &[("topic", Uuid::default(), &[partition])];
        let read = fetch(&mut client, 8, "steady", Some(asked)).await;
        assert_eq!(read[0].offset, first + 19, "what was acknowledged is there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_never_go_back() {
    let broker = TestBroker::start().await;
    let mut reader = broker.client().await;
    reader.create_topic("topic", 4).await;
    let read = async {
        let mut seen = [-1; 4];
        while seen != [400; 4] {
            let asked: &[(&str, Uuid, &[i32])] = &[("topic", Uuid::default(), &[0, 1, 2, 3])];
            let read = fetch(&mut reader, 8, "steady", Some(asked)).await;
            for (seen, one) in seen.iter_mut().zip(read) {
                assert!(one.offset >= *seen, "partition {} goes back", one.partition);
                *seen = one.offset;
            }
        }
    };
    let commit = |partition| commit_steadily(&broker, partition);
    tokio::join!(read, commit(0), commit(1), commit(2), commit(3));
    let broker = TestBroker::start_in(broker.stop().await, |_| {}).await;
    let offsets = committed(&mut broker.client().await, "steady").await;
    assert!(offsets.iter().map(|(_, _, offset, _)| *offset).eq([400; 4]));
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_of_a_deleted_topic_go_with_it_and_names_are_always_the_same() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("goes", 2).await;
    client.create_topic("stays", 1).await;
    commit(&mut client, "group", "stays", &[(0, 1, "")]).await;
    commit(&mut client, "group", "goes", &[(1, 2, ""), (0, 3, "")]).await;
    let named = |topic: &str, partition, offset| (topic.to_owned(), partition, offset, String::new());
    let expected = [named("goes", 0, 3), named("goes", 1, 2), named("stays", 0, 1)];
    assert_eq!(committed(&mut client, "group").await, expected);
    let deletion = DeleteTopicsRequest { topic_names: vec![Str::from("goes")].into(), ..Default::default() };
    client.call(5, &deletion).await;
    assert_eq!(committed(&mut client, "group").await, expected[2..]);
    client.create_topic("goes", 2).await;
    assert_eq!(committed(&mut client, "group").await, expected[2..], "a new topic begins without offsets");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_groups_are_answered_at_once_each_one_time() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("topic", 2).await;
    commit(&mut client, "one", "topic", &[(0, 1, "a")]).await;
    commit(&mut client, "two", "topic", &[(1, 2, "b")]).await;
    let topics = OffsetFetchRequestTopics {
        name: Str::from("topic"),
        partition_indexes: vec![0, 1, 1, 0].into(),
        ..OffsetFetchRequestTopics::default()
    };
    let group = |name: &'static str, topics: Option<Vec<OffsetFetchRequestTopics<'static>>>| {
        OffsetFetchRequestGroup {
            group_id: Str::from(name),
            topics: topics.map(Into::into),
            member_id: Some(Str::from("whoever")),
            member_epoch: 7,
            ..OffsetFetchRequestGroup::default()
        }
    };
    let repeated = Some(vec![topics.clone(), topics]);
    let groups = vec![group("one", None), group("two", repeated), group("three", None), group("one", None)];
    let request =
        OffsetFetchRequest { groups: groups.into(), require_stable: true, ..OffsetFetchRequest::default() };
    for version in 8..=9 {
        let response = client.call(version, &request).await;
        let answered = response.groups.iter().map(|group| {
            let partitions = group.topics.iter().flat_map(|topic| {
                let offsets = topic.partitions.iter();
                offsets.map(|found| (found.partition_index, found.committed_offset)).collect::<Vec<_>>()
            });
            (group.group_id.to_string(), partitions.collect::<Vec<_>>())
        });
        let expected = [
            ("one".to_owned(), vec![(0, 1)]),
            ("two".to_owned(), vec![(0, -1), (1, 2)]),
            ("three".to_owned(), Vec::new()),
        ];
        assert!(answered.eq(expected));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_for_one_offset_a_thousand_times_is_answered_once() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("topic", 1).await;
    commit(&mut client, "group", "topic", &[(0, 1, &"m".repeat(4096))]).await;
    for version in [1, 7, 8] {
        let asked = [0; 1_000];
        let request = fetch_request(version, "group", Some(&[("topic", Uuid::default(), &asked)]));
        client.send(version, &request).await;
        let answer = client.receive_frame().await.expect("an answer");
        assert!(answer.len() < 5_000, "{} bytes in version {version}", answer.len());
    }
}

#[expect(clippy::disallowed_methods, reason = "offsets age by the time of day")]
fn time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970")
}

/// Puts an offset of partition 0 into the store, as if it had been committed some days ago.
async fn commit_long_ago(broker: &TestBroker, group: &str, topic: &str, days: u64) {
    let store = broker.broker.store();
    let view = store.view("kafka").expect("a view").id;
    let topic = store.topic(view, topic).expect("a topic").id;
    let then = time_of_day().saturating_sub(Duration::from_hours(24 * days));
    let committed = CommittedOffset {
        offset: Offset::new(5),
        leader_epoch: None,
        metadata: "".into(),
        committed: Timestamp::new(i64::try_from(then.as_millis()).expect("a time")),
    };
    let commit = OffsetCommit { topic, partition: PartitionIndex::new(0), committed };
    store.commit_offsets(view, group, vec![commit]).expect("room").await.expect("durable");
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_expire_but_not_those_of_members() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "active", 5).await;
    for topic in ["topic", "dropped"] {
        member.client.create_topic(topic, 1).await;
    }
    member.session_timeout_ms = 600_000;
    member.metadata = subscription(&["topic"]);
    member.enter().await;
    let mut other = Member::new(&broker, "left", 5).await;
    other.enter().await;
    assert_eq!(other.leave().await, ErrorCode::NONE);
    until_state(&mut member.client, "left", "Empty").await;
    for group in ["active", "left", "simple"] {
        commit_long_ago(&broker, group, "topic", 8).await;
        commit_long_ago(&broker, group, "dropped", 8).await;
    }
    commit_long_ago(&broker, "simple", "topic", 6).await;
    commit_long_ago(&broker, "alone", "topic", 8).await;
    // What has expired is looked for at the start.
    let broker = TestBroker::start_in(broker.stop().await, hasty).await;
    let mut client = broker.client().await;
    until_state(&mut client, "alone", "Dead").await;
    let named = |topic: &str| (topic.to_owned(), 0, 5, String::new());
    let gone = async {
        while committed(&mut client, "simple").await.len() > 1
            || committed(&mut client, "active").await.len() > 1
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("they expire");
    assert_eq!(committed(&mut client, "simple").await, [named("topic")], "each by its own age");
    assert_eq!(committed(&mut client, "active").await, [named("topic")], "it is not subscribed to the other");
    let left = committed(&mut client, "left").await;
    assert_eq!(left, [named("dropped"), named("topic")], "it has not been empty for long");
    member.client = client;
    assert_eq!(member.heartbeat().await, ErrorCode::NONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_leaves_nothing_behind_disappears() {
    let broker = TestBroker::start_with(hasty).await;
    let mut member = Member::new(&broker, "brief", 5).await;
    member.enter().await;
    assert_eq!(member.leave().await, ErrorCode::NONE);
    until_state(&mut member.client, "brief", "Empty").await;
    let broker = TestBroker::start_in(broker.stop().await, |_: &mut Settings| {}).await;
    until_state(&mut broker.client().await, "brief", "Dead").await;
}
