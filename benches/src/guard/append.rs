//! The store and the journal's writer, without requests.

use std::io;
use std::path::Path;
use std::sync::Arc;

use kolumn_topic_store::{
    Durability, NewTopic, PartitionIndex, Settings, Silent, Store, Timestamp, TopicConfig,
};

use super::{TIMESTAMP, TOPIC, other};

pub(super) fn run(dir: &Path, batch: Vec<u8>, requests: u32) -> io::Result<()> {
    let now = Timestamp::new(TIMESTAMP);
    let store = open(dir)?;
    let view = store.ensure_view(TOPIC, now).map_err(other)?.wait().map_err(other)?;
    let new = NewTopic { name: TOPIC.into(), partitions: 1, config: TopicConfig::default() };
    let topic = store.create_topic(view.id, new, false, now).map_err(other)?.wait().map_err(other)?;
    let batch = bytes::Bytes::from(batch);
    for _ in 0..requests {
        let commit = store.append(topic.id, PartitionIndex::new(0), batch.clone(), now).map_err(other)?;
        commit.wait().map_err(other)?;
    }
    store.close().map_err(other)
}

/// A store in a directory that acknowledges what the system's cache has: no disk has a part in the count.
pub(super) fn open(dir: &Path) -> io::Result<Store> {
    std::fs::create_dir_all(dir)?;
    let disk = kolumn_journal::disk::buffered(dir)?;
    let settings =
        Settings { durability: Durability::Os, size_limit: Some(LOG_LEN_MAX), ..Settings::default() };
    Store::open(disk, settings, 7, Arc::new(Silent::new()), Timestamp::new(TIMESTAMP)).map_err(other)
}

const LOG_LEN_MAX: u64 = 2 << 30;
