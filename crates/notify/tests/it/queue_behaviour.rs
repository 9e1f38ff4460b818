//! What a queue does for those who put and those who take, with its threads.

use kolumn_journal::sim::{CallKind, SimDisk};
use kolumn_notify::config::QueueFull;
use kolumn_notify::queue::{DeadLetters, LetterOptions, Most, PutErrorKind, Queue, SetAsideError};

use crate::queue_support::{Chance, disk, id_of, ids, message, seeds, small};

fn letters(sim: &SimDisk, letters_max: u64) -> DeadLetters {
    let mut options = LetterOptions::default();
    options.letter_len_max = 8 << 10;
    options.file_len = 64 << 10;
    options.letters_max = letters_max;
    DeadLetters::open(disk(sim), options).unwrap()
}

const ALL: Most = Most::new(1000, usize::MAX);

#[tokio::test]
async fn a_message_that_is_set_aside_can_be_looked_at_put_again_and_removed() {
    let (sim, sim_letters) = (SimDisk::new(1), SimDisk::new(2));
    let mut options = small(1);
    options.window_len = 64 << 10;
    options.dead_letters = Some(letters(&sim_letters, 2));
    let queue = Queue::open(disk(&sim), options.clone()).unwrap();
    for id in 0..5 {
        queue.put(message(id, id, 10).with_topic("special")).await.unwrap();
    }
    let mut batch = queue.take(ALL).await.unwrap();
    assert_eq!(ids(&batch), [0, 1, 2, 3, 4]);
    assert_eq!(queue.set_aside(&mut batch, 9, "no"), Err(SetAsideError::NotInBatch(9)));
    queue.set_aside(&mut batch, 1, "too large").unwrap();
    queue.set_aside(&mut batch, 3, "no such topic").unwrap();
    assert_eq!(ids(&batch), [0, 2, 4]);
    while queue.stats().set_aside < 2 {
        tokio::task::yield_now().await;
    }
    let refused = queue.set_aside(&mut batch, 0, "no").unwrap_err();
    assert!(
        matches!(&refused, SetAsideError::Refused(error) if error.kind() == PutErrorKind::Full),
        "{refused:?}"
    );
    assert_eq!(ids(&batch), [0, 2, 4], "what was refused is still in the batch");
    queue.done(batch);
    assert_eq!((queue.stats().queued, queue.stats().done), (0, 3));
    queue.close().await;
    options.dead_letters.take().unwrap().close();

    let letters = letters(&sim_letters, 2);
    options.dead_letters = Some(letters.clone());
    let queue = Queue::open(disk(&sim), options).unwrap();
    assert_eq!(queue.stats().queued, 0);
    let numbers = letters.numbers(None, 10);
    let read: Vec<_> = numbers.iter().map(|number| letters.read(*number).unwrap()).collect();
    assert_eq!(read.iter().map(|letter| id_of(&letter.message)).collect::<Vec<_>>(), [1, 3]);
    assert_eq!((read[0].reason.as_str(), read[0].message.topic.as_deref()), ("too large", Some("special")));
    letters.replay(numbers[0], &queue).await.unwrap();
    letters.remove(numbers[1]).await.unwrap();
    assert_eq!((letters.stats().letters, letters.stats().bytes), (0, 0));
    assert_eq!(ids(&queue.take(ALL).await.unwrap()), [1]);
}

#[tokio::test]
async fn a_full_queue_refuses_drops_or_waits_as_it_was_told() {
    for full in [QueueFull::Refuse, QueueFull::DropOldest, QueueFull::Block] {
        let mut options = small(1);
        options.messages_max = 3;
        options.full = full;
        let queue = Queue::open(disk(&SimDisk::new(1)), options).unwrap();
        for id in 0..3 {
            queue.put(message(id, 0, 10)).await.unwrap();
        }
        let late = tokio::spawn({
            let queue = queue.clone();
            async move { queue.put(message(3, 0, 10)).await }
        });
        match full {
            QueueFull::Refuse => {
                let error = late.await.unwrap().unwrap_err();
                assert_eq!(error.kind(), PutErrorKind::Full);
                assert!(error.to_string().starts_with("the queue is full: 3 messages with "), "{error}");
                assert_eq!(ids(&queue.take(ALL).await.unwrap()), [0, 1, 2]);
            }
            QueueFull::DropOldest => {
                late.await.unwrap().unwrap();
                assert_eq!(queue.stats().dropped, 1);
                assert_eq!(ids(&queue.take(ALL).await.unwrap()), [1, 2, 3]);
            }
            _ => {
                let batch = queue.take(Most::new(1, usize::MAX)).await.unwrap();
                assert!(!late.is_finished());
                queue.done(batch);
                late.await.unwrap().unwrap();
                assert_eq!(ids(&queue.take(ALL).await.unwrap()), [1, 2, 3]);
            }
        }
    }
}

#[tokio::test]
async fn a_sealed_queue_is_drained_and_then_ends() {
    let queue = Queue::open(disk(&SimDisk::new(1)), small(1)).unwrap();
    queue.put(message(0, 0, 10)).await.unwrap();
    queue.seal();
    assert_eq!(queue.put(message(1, 0, 10)).await.unwrap_err().kind(), PutErrorKind::Closed);
    let batch = queue.take(ALL).await.unwrap();
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.take(ALL).await.map(|batch| ids(&batch)) }
    });
    drop(batch);
    assert_eq!(waiting.await.unwrap(), Some(vec![0]), "what is under way may come back");
    let batch = queue.take(ALL).await.unwrap();
    assert_eq!(batch.deliveries()[0].attempts, 2);
    queue.done(batch);
    assert!(queue.take(ALL).await.is_none());
}

#[tokio::test]
async fn far_more_than_the_window_waits_and_comes_in_order() {
    let sim = SimDisk::new(1);
    let queue = Queue::open(disk(&sim), small(1)).unwrap();
    for id in 0..3000 {
        queue.put(message(id, id % 7, 300)).await.unwrap();
    }
    queue.close().await;
    let queue = Queue::open(disk(&sim), small(1)).unwrap();
    assert_eq!(queue.stats().queued, 3000);
    let mut all = Vec::new();
    while all.len() < 3000 {
        let batch = queue.take(Most::new(64, usize::MAX)).await.unwrap();
        all.extend(ids(&batch));
        queue.done(batch);
    }
    assert_eq!(all, (0..3000).collect::<Vec<_>>());
    queue.close().await;
    assert!(sim.used() < 20 * (64 << 10), "what is delivered gives its files back: {}", sim.used());
}

#[tokio::test]
async fn a_message_is_in_the_queue_or_among_the_dead_letters_whatever_fails() {
    for seed in 0..seeds(10) {
        let (sim, sim_letters) = (SimDisk::new(seed), SimDisk::new(seed + 1000));
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let dead = letters(&sim_letters, 100);
        let mut options = small(seed);
        options.window_len = 1 << 20;
        options.dead_letters = Some(dead.clone());
        let queue = Queue::open(disk(&sim), options.clone()).unwrap();
        for id in 0..20 {
            queue.put(message(id, id, 10)).await.unwrap();
        }
        sim_letters.cut_power_after(chance.below(100));
        let mut batch = queue.take(ALL).await.unwrap();
        assert_eq!(batch.deliveries().len(), 20);
        for number in 0..20 {
            // What is refused stays in the batch.
            if chance.below(2) == 0 && queue.set_aside(&mut batch, number, "no").is_ok() {
                for _ in 0..chance.below(3) {
                    tokio::task::yield_now().await;
                }
            }
        }
        drop(batch);
        while queue.stats().under_way > 0 {
            tokio::task::yield_now().await;
        }
        queue.close().await;
        dead.close();
        sim_letters.crash();

        let dead = letters(&sim_letters, 100);
        options.dead_letters = Some(dead.clone());
        let queue = Queue::open(disk(&sim), options).unwrap();
        queue.seal();
        let mut found = Vec::new();
        while let Some(batch) = queue.take(ALL).await {
            found.extend(ids(&batch));
            queue.done(batch);
        }
        let numbers = dead.numbers(None, 100);
        found.extend(numbers.iter().map(|number| id_of(&dead.read(*number).unwrap().message)));
        let lost: Vec<_> = (0..20).filter(|id| !found.contains(id)).collect();
        assert_eq!(lost, [0; 0], "seed {seed}");
    }
}

#[tokio::test]
async fn a_queue_whose_disk_has_failed_puts_no_more_and_gives_what_it_has() {
    let sim = SimDisk::new(1);
    let queue = Queue::open(disk(&sim), small(1)).unwrap();
    queue.put(message(0, 0, 10)).await.unwrap();
    sim.fail(CallKind::Write, 1, std::io::ErrorKind::Other);
    for id in 1..3 {
        assert_eq!(queue.put(message(id, 0, 10)).await.unwrap_err().kind(), PutErrorKind::Failed);
    }
    assert!(queue.stats().failed);
    let batch = queue.take(ALL).await.unwrap();
    assert_eq!(ids(&batch), [0]);
    queue.done(batch);
    assert!(queue.take(ALL).await.is_none());
}
