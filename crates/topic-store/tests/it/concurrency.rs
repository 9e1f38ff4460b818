//! Threads on a real directory: order, visibility, and reading while it is written.

use std::sync::atomic::{AtomicBool, Ordering};

use kolumn_kafka_wire::records::Batch;
use kolumn_topic_store::{PartitionIndex, Settings};

use crate::support::*;

#[test]
fn writers_get_every_offset_once_and_readers_see_only_whole_durable_batches() {
    const WRITERS: i64 = 4;
    const BATCHES: i32 = 60;
    let directory = tempfile::tempdir().expect("a directory");
    let settings = Settings { index_len_max: 0, ..small_settings() };
    let store = open_at(directory.path(), settings.clone());
    let (_, topic) = make_topic(&store, "t", 2, &[]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|producer| {
                let (store, topic) = (&store, &topic);
                scope.spawn(move || {
                    let partition = PartitionIndex::new(i32::try_from(producer % 2).expect("small"));
                    let mut newest = -1;
                    for n in 0..BATCHES {
                        let appended = append(store, topic.id, partition, &batch_of(producer, 0, n * 2, 2));
                        let offset = appended.base_offset.value();
                        assert!(offset > newest, "offsets rise");
                        newest = offset;
                        let high = store.offsets(topic.id, partition).expect("known").high_watermark;
                        assert!(high.value() >= offset + 2, "what is acknowledged is visible");
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                for bytes in read_all(&store, topic.id, P0, 3000) {
                    let (batch, _) = Batch::parse(&bytes).expect("whole");
                    assert_eq!(batch.crc(), batch.computed_crc());
                }
                store.maintain(NOW).expect("maintained");
            }
        });
        let outcomes: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        // The reader has to end also if a writer has failed.
        is_over.store(true, Ordering::Release);
        assert!(outcomes.iter().all(Result::is_ok), "a writer failed");
    });
    store.close().expect("closes");
    drop(store);
    let store = open_at(directory.path(), settings);
    for partition in [0, 1] {
        let stored = read_all(&store, topic.id, PartitionIndex::new(partition), 1 << 20);
        assert_eq!(stored.len(), usize::try_from(BATCHES).expect("small") * 2);
    }
}
