//! Who waits for a partition is woken by it, and by no other.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kolumn_topic_store::{PartitionIndex, Watch};

use crate::support::*;

const PATIENCE: Duration = Duration::from_secs(20);

fn has_news(watch: &mut Watch) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(watch.changed()).poll(&mut context) == Poll::Ready(())
}

#[test]
fn a_watch_hears_of_its_own_partitions_only_and_after_they_are_durable() {
    let mut stepped = Stepped::open(small_settings());
    let (_, topic) = stepped.topic("t", &[]);
    let p1 = PartitionIndex::new(1);
    let mut zero = stepped.store.watch(&[(topic.id, P0)]);
    let mut one = stepped.store.watch(&[(topic.id, p1)]);
    let mut both = stepped.store.watch(&[(topic.id, P0), (topic.id, p1)]);
    assert_eq!(stepped.store.stats().watched, 4);
    let commit = stepped.store.append(topic.id, P0, batch(&[b"a"]), NOW).expect("accepted");
    assert!(!has_news(&mut zero), "not durable yet");
    let offsets = stepped.store.offsets(topic.id, P0).expect("known");
    assert_eq!((offsets.high_watermark.value(), offsets.last_stable.value()), (0, 0), "not durable yet");
    stepped.done(commit);
    assert!(has_news(&mut zero) && !has_news(&mut one) && has_news(&mut both));
    let offsets = stepped.store.offsets(topic.id, P0).expect("known");
    assert_eq!((offsets.high_watermark.value(), offsets.last_stable.value()), (1, 1));
    assert!(!has_news(&mut zero), "news are told once");
    drop((zero, both));
    assert_eq!(stepped.store.stats().watched, 1);
}

#[test]
fn a_watch_hears_of_the_end_of_its_topic() {
    let mut stepped = Stepped::open(small_settings());
    let (view, topic) = stepped.topic("t", &[]);
    let mut watch = stepped.store.watch(&[(topic.id, P0)]);
    let deleted = stepped.store.delete_topic(view.id, topic.id).expect("known");
    stepped.done(deleted);
    assert!(has_news(&mut watch));
}

#[test]
fn an_append_is_awaited_and_read_in_a_runtime() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open_at(directory.path(), small_settings());
    let (_, topic) = make_topic(&store, "t", 1, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let mut watch = store.watch(&[(topic.id, P0)]);
        let commit = store.append(topic.id, P0, batch(&[b"a"]), NOW).expect("accepted");
        tokio::time::timeout(PATIENCE, watch.changed()).await.expect("woken");
        assert_eq!(commit.await.expect("durable").base_offset.value(), 0);
    });
}

#[test]
fn a_reader_that_is_woken_finds_what_it_was_woken_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open_at(directory.path(), small_settings());
    let (_, topic) = make_topic(&store, "t", 1, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    for n in 0..20 {
        let mut watch = store.watch(&[(topic.id, P0)]);
        let commit = store.append(topic.id, P0, batch(&[b"a"]), NOW).expect("accepted");
        // The news of the append before may come late; those of this one come when it is visible.
        runtime.block_on(async {
            while store.offsets(topic.id, P0).expect("known").high_watermark.value() <= n {
                tokio::time::timeout(PATIENCE, watch.changed()).await.expect("woken");
            }
        });
        commit.wait().expect("durable");
    }
}
