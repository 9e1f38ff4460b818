//! The store: opened in an empty directory, and filled.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kolumn_journal::DiskKind;
use kolumn_topic_store::{
    Appended, Commit, NewTopic, PartitionIndex, Settings, Silent, Store, Timestamp, Topic, TopicConfig,
};

use super::{Arguments, failed};
use crate::clock;
use crate::sql::{batches, timestamp};

/// A store that has the rows in one partition of the topic `events`.
pub(super) struct Loaded {
    pub(super) store: Store,
    pub(super) topic: Arc<Topic>,
    /// How the disk is written and read.
    pub(super) disk: &'static str,
    pub(super) time: Duration,
}

impl Loaded {
    pub(super) fn new(arguments: &Arguments) -> io::Result<Self> {
        let (disk, kind) = kolumn_journal::probe(&arguments.dir)?;
        let settings = Settings {
            tail_len_max: arguments.tail_len_max,
            decoded_len_max: arguments.decoded_len_max,
            size_limit: Some(arguments.rows.saturating_mul(ROW_LEN_MAX).saturating_add(LOG_ROOM)),
            ..Settings::default()
        };
        // Batches from beyond an hour ahead are refused.
        let now = Timestamp::new(timestamp(arguments.rows));
        let store = Store::open(disk, settings, SEED, Arc::new(Silent::new()), now).map_err(failed)?;
        let view = store.ensure_view("kafka", now).map_err(failed)?.wait().map_err(failed)?;
        let new = NewTopic { name: "events".into(), partitions: 1, config: TopicConfig::default() };
        let topic = store.create_topic(view.id, new, false, now).map_err(failed)?.wait().map_err(failed)?;
        let start = clock::now();
        append(&store, &topic, arguments.rows, now)?;
        let disk = if kind == DiskKind::Direct { "direct" } else { "buffered" };
        Ok(Self { store, topic, disk, time: start.elapsed() })
    }

    /// Bytes of the partition's batches.
    pub(super) fn journal_len(&self) -> io::Result<u64> {
        let len = self.store.partition_len(self.topic.id, PartitionIndex::new(0));
        len.ok_or_else(|| io::Error::other("the partition is gone"))
    }
}

fn append(store: &Store, topic: &Topic, rows: u64, now: Timestamp) -> io::Result<()> {
    let mut under_way: VecDeque<Commit<Appended>> = VecDeque::new();
    for batch in batches(rows) {
        if under_way.len() >= UNDER_WAY_MAX
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.wait().map_err(failed)?;
        }
        let batch = Bytes::from(batch.bytes);
        under_way.push_back(store.append(topic.id, PartitionIndex::new(0), batch, now).map_err(failed)?);
    }
    under_way.into_iter().try_for_each(|commit| commit.wait().map(drop).map_err(failed))
}

/// Identities of topics come from it; any will do.
const SEED: u64 = 42;
/// Batches on their way to the disk, at most: enough to keep it busy, and less than the store takes.
const UNDER_WAY_MAX: usize = 64;
/// More than a row takes in the log.
const ROW_LEN_MAX: u64 = 200;
/// What a log takes besides.
const LOG_ROOM: u64 = 1 << 30;
