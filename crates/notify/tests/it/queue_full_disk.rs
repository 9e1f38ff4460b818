//! A disk that is full is a full queue: nothing breaks, and there is room again when messages were delivered.

use kolumn_journal::sim::SimDisk;
use kolumn_notify::config::QueueFull;
use kolumn_notify::queue::{Most, PutErrorKind, Queue, QueueOptions};

use crate::queue_support::{disk, ids, message, small};

/// A disk with room for about ten files.
fn narrow() -> SimDisk {
    let sim = SimDisk::new(1);
    sim.set_capacity(11 * (64 << 10));
    sim
}

fn options(full: QueueFull) -> QueueOptions {
    let mut options = small(1);
    options.full = full;
    options
}

/// Takes and gives for delivered so many messages.
async fn deliver(queue: &Queue, count: usize) -> Vec<u64> {
    let mut all = Vec::new();
    while all.len() < count {
        let batch = queue.take(Most::new(count - all.len(), usize::MAX)).await.unwrap();
        all.extend(ids(&batch));
        queue.done(batch);
    }
    all
}

#[tokio::test]
async fn a_put_is_refused_until_messages_were_delivered() {
    let sim = narrow();
    let queue = Queue::open(disk(&sim), options(QueueFull::Refuse)).unwrap();
    let mut count = 0;
    let error = loop {
        match queue.put(message(count, count % 5, 3000)).await {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), PutErrorKind::Full);
    assert!(count > 60, "{count} messages on a disk for 150");
    assert!(!queue.stats().failed);
    let all = deliver(&queue, usize::try_from(count).unwrap()).await;
    assert_eq!(all, (0..count).collect::<Vec<_>>());
    // Files are given back on another thread.
    while queue.put(message(count, 0, 3000)).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(deliver(&queue, 1).await, [count]);
    queue.close().await;
    let queue = Queue::open(disk(&sim), options(QueueFull::Refuse)).unwrap();
    assert_eq!(queue.stats().queued, 0);
}

#[tokio::test]
async fn the_oldest_are_dropped_so_that_puts_go_on() {
    let queue = Queue::open(disk(&narrow()), options(QueueFull::DropOldest)).unwrap();
    for id in 0..1000 {
        queue.put(message(id, id % 5, 3000)).await.unwrap();
    }
    let stats = queue.stats();
    assert!(stats.dropped > 700 && stats.queued + stats.dropped == 1000, "{stats:?}");
    let all = deliver(&queue, usize::try_from(stats.queued).unwrap()).await;
    assert_eq!(all, (stats.dropped..1000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_put_waits_for_room_on_the_disk() {
    let queue = Queue::open(disk(&narrow()), options(QueueFull::Block)).unwrap();
    let putting = tokio::spawn({
        let queue = queue.clone();
        async move {
            for id in 0..600 {
                queue.put(message(id, id % 5, 3000)).await.unwrap();
            }
        }
    });
    let all = deliver(&queue, 600).await;
    putting.await.unwrap();
    assert_eq!(all, (0..600).collect::<Vec<_>>());
}
