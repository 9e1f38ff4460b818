//! Who waits for which partition: long polls are woken by theirs and by no other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::ids::{PartitionIndex, TopicId};

type Key = (TopicId, PartitionIndex);

/// A registration for news of some partitions; see [`Store::watch`](crate::Store::watch). Dropping it ends it.
#[derive(Debug)]
#[must_use = "a watch that is dropped hears nothing"]
pub struct Watch {
    id: u64,
    keys: Vec<Key>,
    news: Arc<Notify>,
    waiters: Arc<Waiters>,
}

impl Watch {
    /// Waits until the high watermark of one of the partitions has moved, or its topic was deleted, since the watch was
    /// registered or last answered.
    ///
    /// Cancel safe: news that arrive while nobody waits are kept.
    pub async fn changed(&mut self) {
        self.news.notified().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.waiters.remove(self.id, &self.keys);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    next_id: AtomicU64,
    by_partition: Mutex<HashMap<Key, HashMap<u64, Arc<Notify>>>>,
}

impl Waiters {
    pub(crate) fn watch(self: &Arc<Self>, keys: &[Key]) -> Watch {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let news = Arc::new(Notify::new());
        {
            let mut map = self.by_partition.lock();
            for key in keys {
                map.entry(*key).or_default().insert(id, Arc::clone(&news));
            }
        }
        Watch { id, keys: keys.to_vec(), news, waiters: Arc::clone(self) }
    }

    pub(crate) fn wake(&self, keys: impl Iterator<Item = Key>) {
        let map = self.by_partition.lock();
        if map.is_empty() {
            return;
        }
        for news in keys.filter_map(|key| map.get(&key)).flat_map(HashMap::values) {
            news.notify_one();
        }
    }

    /// How many registrations there are, counted once per partition.
    pub(crate) fn len(&self) -> usize {
        self.by_partition.lock().values().map(HashMap::len).sum()
    }

    fn remove(&self, id: u64, keys: &[Key]) {
        let mut map = self.by_partition.lock();
        for key in keys {
            if let Some(waiters) = map.get_mut(key) {
                waiters.remove(&id);
                if waiters.is_empty() {
                    map.remove(key);
                }
            }
        }
    }
}
