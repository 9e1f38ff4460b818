//! Topics that get more partitions and other settings.

use bytes::Bytes;
use kolumn_kafka_wire::records::Batch;
use kolumn_topic_store::{
    AppendErrorKind, Commit, ConfigChange, ConfigError, PartitionIndex, Settings, TopicConfig, TopicError,
    TopicErrorKind, TopicId, ViewId,
};

use crate::support::*;

fn partition(index: i32) -> PartitionIndex {
    PartitionIndex::new(index)
}

fn configure(stepped: &mut Stepped, view: ViewId, topic: TopicId, key: &str, value: &str) {
    let mut change = |config: &TopicConfig| config.with([ConfigChange::Set { key, value }]);
    let commit = stepped.store.configure_topic(view, topic, &mut change, false).expect("accepted");
    stepped.done(commit);
}

#[test]
fn new_partitions_begin_empty_and_the_old_ones_keep_what_they_have() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[("retention.ms", "-1")]);
    stepped.append(topic.id, &batch(&[b"old"]));
    let created = stepped.store.create_partitions(view.id, topic.id, 5, false).expect("accepted");
    assert_eq!(created.peek().expect("prepared").partitions, 5);
    let early = stepped.store.append(topic.id, partition(4), batch(&[b"early"]), NOW).expect_err("not yet");
    assert_eq!(early.kind(), AppendErrorKind::UnknownPartition);
    let changed = stepped.done(created);
    for opening in 0..3 {
        let found = stepped.store.topic_by_id(view.id, topic.id).expect("known");
        assert_eq!(found, changed);
        assert_eq!((found.partitions, &found.config, found.created), (5, &topic.config, topic.created));
        for index in 0..5 {
            let offsets = stepped.store.offsets(topic.id, partition(index)).expect("all of 0 to 4");
            let expected = if index == 0 || index == 4 { opening + i64::from(index == 0) } else { 0 };
            assert_eq!(offsets.high_watermark.value(), expected, "partition {index}");
        }
        assert!(stepped.store.offsets(topic.id, partition(5)).is_err());
        for index in [0, 4] {
            let sent = batch(&[b"new"]);
            let appended = stepped.store.append(topic.id, partition(index), sent, NOW).expect("accepted");
            stepped.done(appended);
        }
        if opening == 1 {
            stepped.store.checkpoint().expect("written");
        }
        stepped = stepped.reopen(small_settings());
    }
}

#[track_caller]
fn refused<T>(outcome: Result<Commit<T>, TopicError>, kind: TopicErrorKind) {
    match outcome {
        Ok(_) => panic!("accepted instead of {kind:?}"),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}

#[test]
fn partitions_become_more_within_the_limits_and_never_fewer() {
    let settings = Settings { partitions_max: 6, all_partitions_max: 9, ..small_settings() };
    let mut stepped = Stepped::open(settings);
    let (view, topic) = stepped.topic("t", &[]);
    let (_, other) = stepped.topic("other", &[]);
    let invalid = TopicErrorKind::InvalidPartitions;
    for count in [i32::MIN, -1, 0, 1, 2, 7, i32::MAX] {
        for validate_only in [true, false] {
            refused(stepped.store.create_partitions(view.id, topic.id, count, validate_only), invalid);
        }
    }
    let mut checked = stepped.store.create_partitions(view.id, topic.id, 6, true).expect("legal");
    assert_eq!(checked.try_take().expect("nothing to wait for").expect("checked").partitions, 6);
    assert!(!stepped.stepper.step(), "nothing was written");
    let unknown = TopicErrorKind::UnknownTopic;
    refused(stepped.store.create_partitions(ViewId::new(topic.id.value()), topic.id, 3, false), unknown);
    refused(stepped.store.create_partitions(view.id, TopicId::new(view.id.value()), 3, false), unknown);
    // Against what is prepared, not what is durable.
    let first = stepped.store.create_partitions(view.id, topic.id, 5, false).expect("accepted");
    refused(stepped.store.create_partitions(view.id, topic.id, 5, false), invalid);
    refused(stepped.store.create_partitions(view.id, other.id, 5, false), invalid);
    let second = stepped.store.create_partitions(view.id, other.id, 4, false).expect("nine in all");
    refused(stepped.store.create_topic(view.id, new_topic("third", 1, &[]), false, NOW), invalid);
    assert_eq!((stepped.done(first).partitions, stepped.done(second).partitions), (5, 4));
}

#[test]
fn a_watch_and_a_deletion_know_the_new_partitions() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[]);
    let created = stepped.store.create_partitions(view.id, topic.id, 3, false).expect("accepted");
    stepped.done(created);
    let mut watch = stepped.store.watch(&[(topic.id, partition(2))]);
    let deleted = stepped.store.delete_topic(view.id, topic.id).expect("known");
    stepped.done(deleted);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let changed = std::pin::pin!(watch.changed());
    assert!(std::future::Future::poll(changed, &mut context).is_ready());
}

#[test]
fn the_kind_of_timestamps_changes_with_the_next_append() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[]);
    let sent = batch_at(NOW.value() - 5000, &[b"x"]);
    stepped.append(topic.id, &sent);
    configure(&mut stepped, view.id, topic.id, "message.timestamp.type", "LogAppendTime");
    assert_eq!(stepped.append(topic.id, &sent).log_append_time, Some(NOW));
    let mut stepped = stepped.reopen(small_settings());
    stepped.append(topic.id, &sent);
    configure(&mut stepped, view.id, topic.id, "message.timestamp.type", "CreateTime");
    assert_eq!(stepped.append(topic.id, &sent).log_append_time, None);
    let stored = read_all(&stepped.store, topic.id, P0, 1 << 20);
    let times = |bytes: &Bytes| Batch::parse(bytes).expect("a batch").0.max_timestamp();
    let (sent_at, now) = (NOW.value() - 5000, NOW.value());
    assert_eq!(stored.iter().map(times).collect::<Vec<_>>(), [sent_at, now, now, sent_at]);
}

#[test]
fn sizes_and_retention_change_from_then_on() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[("retention.ms", "-1")]);
    let sent = large(1, 2000);
    stepped.append(topic.id, &sent);
    configure(&mut stepped, view.id, topic.id, "max.message.bytes", "1000");
    let error = stepped.store.append(topic.id, P0, sent.clone(), NOW).expect_err("too large now");
    assert!(matches!(error.kind(), AppendErrorKind::TooLarge { max: 1000, .. }));
    stepped.later(10_000);
    stepped.maintain(2);
    let start = |stepped: &Stepped| stepped.store.offsets(topic.id, P0).expect("known").log_start.value();
    assert_eq!(start(&stepped), 0);
    configure(&mut stepped, view.id, topic.id, "retention.ms", "5000");
    let mut stepped = stepped.reopen(small_settings());
    stepped.maintain(2);
    assert_eq!(start(&stepped), 1);
    configure(&mut stepped, view.id, topic.id, "cleanup.policy", "compact");
    let mut builder = kolumn_kafka_wire::records::BatchBuilder::new();
    builder.append(None, Some(b"no key"), [], NOW.value()).expect("fits");
    let keyless = builder.build().expect("fits");
    let error = stepped.store.append(topic.id, P0, keyless, NOW).expect_err("keyed now");
    assert_eq!(error.kind(), AppendErrorKind::InvalidRecord);
}

#[test]
fn of_two_changes_at_the_same_time_none_is_lost() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[("segment.ms", "5")]);
    let changes = [
        ConfigChange::Append { key: "cleanup.policy", value: "compact" },
        ConfigChange::Set { key: "retention.ms", value: "7" },
        ConfigChange::Unset { key: "segment.ms" },
    ];
    let commits: Vec<_> = changes
        .iter()
        .map(|change| {
            let mut change = |config: &TopicConfig| config.with([*change]);
            stepped.store.configure_topic(view.id, topic.id, &mut change, false).expect("accepted")
        })
        .collect();
    for commit in commits {
        stepped.done(commit);
    }
    for _ in 0..2 {
        let found = stepped.store.topic(view.id, "t").expect("known");
        let given: Vec<_> = found.config.given().collect();
        assert_eq!(given, [("cleanup.policy", "delete,compact"), ("retention.ms", "7")]);
        assert_eq!((found.config.retention_ms(), found.config.compacts()), (Some(7), true));
        stepped = stepped.reopen(small_settings());
    }
}

#[test]
fn a_change_that_is_refused_or_only_checked_or_none_writes_nothing() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[("retention.ms", "7")]);
    let set = |value: &'static str| {
        move |config: &TopicConfig| config.with([ConfigChange::Set { key: "retention.ms", value }])
    };
    let error = stepped.store.configure_topic(view.id, topic.id, &mut set("-7"), false).expect_err("refused");
    assert_eq!(error.kind(), TopicErrorKind::InvalidConfig);
    assert!(error.message().contains("retention.ms"), "{error}");
    refused(
        stepped.store.configure_topic(view.id, topic.id, &mut set("-7"), true),
        TopicErrorKind::InvalidConfig,
    );
    let mut checked = stepped.store.configure_topic(view.id, topic.id, &mut set("8"), true).expect("legal");
    let checked = checked.try_take().expect("nothing to wait for").expect("checked");
    assert_eq!(checked.config.retention_ms(), Some(8));
    let same = stepped.store.configure_topic(view.id, topic.id, &mut set("7"), false).expect("legal");
    assert!(!stepped.stepper.step(), "nothing to write");
    assert_eq!(stepped.done(same), topic);
    let mut called = false;
    let mut never = |config: &TopicConfig| -> Result<TopicConfig, ConfigError> {
        called = true;
        Ok(config.clone())
    };
    let unknown = TopicErrorKind::UnknownTopic;
    refused(
        stepped.store.configure_topic(view.id, TopicId::new(view.id.value()), &mut never, false),
        unknown,
    );
    refused(
        stepped.store.configure_topic(ViewId::new(topic.id.value()), topic.id, &mut never, false),
        unknown,
    );
    assert!(!called);
}
