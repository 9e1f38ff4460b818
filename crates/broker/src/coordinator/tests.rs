//! What cannot be seen from outside: what is in memory, and what happens at times of the test's choice.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kolumn_kafka_wire::ErrorCode;
use kolumn_topic_store::{
    CommittedOffset, NewTopic, Offset, OffsetCommit, PartitionIndex, Settings, Silent, Store, Timestamp,
    TopicConfig, TopicId, ViewId,
};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::{Coordinator, JoinOutcome, Limits, Reach, SEED_LEN, Waiting, memory};
use crate::context::Phase;
use crate::group::{GroupLimits, Join, Leaver, MemberRef, Sync};
use crate::observer::{Event, Observer};

#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

impl Observer for Recorder {
    fn event(&self, event: &Event<'_>) {
        self.0.lock().push(format!("{event:?}"));
    }
}

struct World {
    coordinator: Arc<Coordinator>,
    store: Store,
    view: ViewId,
    recorder: Arc<Recorder>,
    /// The coordinator takes its end for the end of the broker.
    _phase: watch::Sender<Phase>,
    _dir: TempDir,
}

const NOW: i64 = 1_800_000_000_000;
const DAY: i64 = 86_400_000;

fn limits() -> Limits {
    Limits {
        group: GroupLimits { initial_rebalance_delay: Duration::ZERO, ..GroupLimits::default() },
        groups_max: 100,
        cost_max: 1 << 20,
        offsets_retention: Duration::from_hours(7 * 24),
    }
}

async fn world(limits: Limits) -> World {
    let dir = TempDir::new().expect("a directory");
    let (disk, _) = kolumn_journal::probe(dir.path()).expect("a disk");
    let settings = Settings { file_len: 512 << 10, batch_len_max: 128 << 10, ..Settings::default() };
    let opened = tokio::task::spawn_blocking(move || {
        Store::open(disk, settings, 1, Arc::new(Silent::new()), Timestamp::new(NOW))
    });
    let store = opened.await.expect("runs").expect("opens");
    let view = store.ensure_view("kafka", Timestamp::new(NOW)).expect("room").await.expect("durable").id;
    let (sender, phase) = watch::channel(Phase::Running);
    let recorder = Arc::new(Recorder::default());
    let observer = Arc::clone(&recorder) as Arc<dyn Observer>;
    let seed = [7; SEED_LEN];
    let coordinator =
        Coordinator::open(store.clone(), view, limits, seed, phase, observer, Handle::current());
    World { coordinator, store, view, recorder, _phase: sender, _dir: dir }
}

impl World {
    fn join(&self, group: &str, metadata_len: usize) -> Result<Waiting<JoinOutcome>, ErrorCode> {
        let proposed_id = self.coordinator.propose_id("client");
        self.coordinator.join(group, metadata_len, |token| Join {
            token,
            member_id: String::new(),
            instance_id: None,
            client_id: "client".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
            session_timeout: Duration::from_mins(1),
            rebalance_timeout: Duration::from_mins(1),
            protocol_type: "consumer".to_owned(),
            protocols: vec![("range".to_owned(), Bytes::from(vec![255; metadata_len]))],
            needs_known_id: false,
            can_skip_assignment: false,
            proposed_id,
        })
    }

    /// Joins a group that nobody else is in; the id of the member.
    async fn enter(&self, group: &str) -> String {
        let joined = self.join(group, 10).expect("let in").answer().await.expect("an answer");
        let joined = joined.expect("a place");
        let member_id = joined.member_id.clone();
        let synced = self.coordinator.sync(group, 0, |token| Sync {
            token,
            member_id: joined.member_id,
            instance_id: None,
            generation: joined.generation,
            protocol_type: None,
            protocol_name: None,
            assignments: Vec::new(),
        });
        synced.expect("let in").answer().await.expect("an answer").expect("an assignment");
        member_id
    }

    fn leave(&self, group: &str, member_id: &str) {
        let codes = self.coordinator.leave(group, &[Leaver { member_id, instance_id: None }]);
        assert_eq!(codes, [ErrorCode::NONE]);
    }

    async fn topic(&self, name: &str) -> TopicId {
        let new = NewTopic { name: name.to_owned(), partitions: 1, config: TopicConfig::default() };
        let topic = self.store.create_topic(self.view, new, false, Timestamp::new(NOW));
        topic.expect("room").await.expect("durable").id
    }

    /// Commits an offset, as many days ago.
    async fn commit(&self, group: &str, topic: TopicId, days: i64) {
        let committed = CommittedOffset {
            offset: Offset::new(1),
            leader_epoch: None,
            metadata: "".into(),
            committed: Timestamp::new(NOW - days * DAY),
        };
        let commit = OffsetCommit { topic, partition: PartitionIndex::new(0), committed };
        let written = self.store.commit_offsets(self.view, group, vec![commit]);
        written.expect("room").await.expect("durable");
    }

    /// Waits until everything that was written so far has its effects.
    async fn written(&self) {
        self.store.init_producer_id().expect("room").await.expect("durable");
    }

    async fn until(&self, what: &str, reached: impl Fn() -> bool) {
        let wait = async {
            while !reached() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap_or_else(|_| panic!("never: {what}"));
    }

    fn in_memory(&self) -> usize {
        self.coordinator.cells.lock().len()
    }

    fn cost(&self) -> usize {
        self.coordinator.cost.load(std::sync::atomic::Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_in_memory_while_it_has_members() {
    let world = world(limits()).await;
    let member = world.enter("group").await;
    assert_eq!(world.in_memory(), 1);
    assert!(world.cost() > 0);
    world.leave("group", &member);
    world.until("it leaves the memory", || world.in_memory() == 0).await;
    assert_eq!((world.cost(), world.coordinator.timers.len()), (0, 0));
    let (_, _, state) = world.coordinator.list().pop().expect("a group");
    assert_eq!(state.name(), "Empty", "the store knows it");
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_without_a_group_leave_nothing_in_memory() {
    let world = world(limits()).await;
    let topic = world.topic("topic").await;
    let member = MemberRef { member_id: "", instance_id: None, generation: -1 };
    let committed = CommittedOffset {
        offset: Offset::new(1),
        leader_epoch: None,
        metadata: "".into(),
        committed: Timestamp::new(NOW),
    };
    let offsets = vec![OffsetCommit { topic, partition: PartitionIndex::new(0), committed }];
    let commit = world.coordinator.commit("simple", &member, ErrorCode::ILLEGAL_GENERATION, offsets);
    commit.expect("room").await.expect("durable");
    assert_eq!((world.in_memory(), world.cost()), (0, 0));
    assert_eq!(world.coordinator.list().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_all_groups_share_a_bounded_memory() {
    let limits = limits();
    let group = GroupLimits { initial_rebalance_delay: Duration::from_mins(5), ..limits.group };
    let world = world(Limits { cost_max: 100_000, group, ..limits }).await;
    let waiting: Vec<_> = (0..10).map_while(|group| world.join(&format!("{group}"), 30_000).ok()).collect();
    assert_eq!(waiting.len(), 3);
    assert_eq!(world.join("other", 30_000).expect_err("full"), ErrorCode::COORDINATOR_NOT_AVAILABLE);
    drop(waiting);
    assert_eq!((world.cost(), world.in_memory()), (0, 0), "who gives up makes room");
    world.join("other", 30_000).expect("let in");
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_do_not_crowd_the_timer() {
    let world = world(limits()).await;
    let id = world.enter("group").await;
    world
        .until("its memory is durable", || {
            world.store.group_memory(world.view, "group").is_some_and(|memory| !memory.is_empty())
        })
        .await;
    let before = world.coordinator.timers.first();
    for _ in 0..1_000 {
        let member = MemberRef { member_id: &id, instance_id: None, generation: 1 };
        assert_eq!(world.coordinator.heartbeat("group", &member), ErrorCode::NONE);
    }
    assert_eq!((before, world.coordinator.timers.len()), (world.coordinator.timers.first(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_that_cannot_be_read_is_reported_and_its_group_begins_anew() {
    let world = world(limits()).await;
    let sealed = memory::seal(Timestamp::new(NOW), b"\xff damaged");
    world.store.put_group(world.view, "damaged", sealed).expect("room").await.expect("durable");
    world.enter("damaged").await;
    assert!(world.recorder.0.lock().iter().any(|event| event.contains("GroupUnreadable")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_group_keeps_its_offsets_for_the_time_of_retention() {
    let world = world(limits()).await;
    let (old, new) = (world.topic("old").await, world.topic("new").await);
    let member = world.enter("left").await;
    world.leave("left", &member);
    world.until("it leaves the memory", || world.in_memory() == 0).await;
    let sealed = world.store.group_memory(world.view, "left").expect("a memory");
    let (written, state) = memory::open(&sealed).expect("a memory");
    assert!(written > Timestamp::new(NOW - 10_000 * DAY), "the time of day");
    // As if it had been left six days before now.
    let sealed = memory::seal(Timestamp::new(NOW - 6 * DAY), state);
    world.store.put_group(world.view, "left", sealed).expect("room").await.expect("durable");
    world.commit("left", old, 30).await;
    world.commit("left", new, 3).await;
    let offsets = || world.store.committed_offsets(world.view, "left").len();
    let expire = |days: i64| {
        world.coordinator.expire(Timestamp::new(NOW + days * DAY));
    };
    expire(0);
    world.written().await;
    assert_eq!(offsets(), 2);
    expire(1);
    world.until("the old one expires", || offsets() == 1).await;
    expire(3);
    world.written().await;
    assert_eq!(offsets(), 1);
    expire(4);
    world.until("all of it expires", || world.store.groups(world.view).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_with_members_keeps_its_offsets_however_old() {
    let world = world(limits()).await;
    let topic = world.topic("topic").await;
    world.enter("active").await;
    world.commit("active", topic, 30).await;
    world.coordinator.expire(Timestamp::new(NOW));
    // The members' metadata is no list of topics here, so nothing is known to be unsubscribed.
    world.written().await;
    assert_eq!(world.store.committed_offsets(world.view, "active").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_was_deleted_is_not_written_again() {
    let world = world(limits()).await;
    let member = world.enter("group").await;
    world.leave("group", &member);
    // Its last memory may still be on the way to the store.
    let deletion = world.coordinator.delete("group");
    deletion.expect("it is empty").await.expect("durable");
    world.until("nothing is under way", || world.in_memory() == 0).await;
    world.written().await;
    assert!(world.store.groups(world.view).is_empty());
    assert!(world.coordinator.visit("group", Reach::Known, |_, _| ((), Vec::new())).is_err());
}
