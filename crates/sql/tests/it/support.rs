//! A store in a temporary folder with topics and records to ask about.

use std::sync::Arc;

use kolumn_kafka_wire::records::{BatchBuilder, Compression, Header};
use kolumn_sql::{Builder, Engine, Principal, Session};
use kolumn_topic_store::{
    Commit, NewTopic, PartitionIndex, Settings, Silent, Store, Timestamp, Topic, TopicConfig, View,
};
use tempfile::TempDir;

/// A store, its only view `kafka`, and the folder that holds it.
pub(crate) struct Fixture {
    pub(crate) store: Store,
    pub(crate) view: View,
    pub(crate) directory: TempDir,
}

/// A record to append.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row<'a> {
    pub(crate) timestamp: i64,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: Vec<(&'a str, Option<&'a [u8]>)>,
}

impl<'a> Row<'a> {
    /// A record with key and value as text.
    pub(crate) fn text(timestamp: i64, key: &'a str, value: &'a str) -> Self {
        Self { timestamp, key: Some(key.as_bytes()), value: Some(value.as_bytes()), headers: Vec::new() }
    }
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().expect("a folder");
        let (disk, _) = kolumn_journal::probe(directory.path()).expect("a disk");
        let mut settings = Settings { size_limit: Some(4 << 30), ..Settings::default() };
        change(&mut settings);
        let store = Store::open(disk, settings, 42, Arc::new(Silent::new()), NOW).expect("opens");
        let view = wait(store.ensure_view("kafka", NOW).expect("admitted"));
        Self { store, view, directory }
    }

    pub(crate) fn topic(&self, name: &str, partitions: i32) -> Arc<Topic> {
        self.topic_with(name, partitions, TopicConfig::default())
    }

    pub(crate) fn topic_with(&self, name: &str, partitions: i32, config: TopicConfig) -> Arc<Topic> {
        let new = NewTopic { name: name.into(), partitions, config };
        wait(self.store.create_topic(self.view.id, new, false, NOW).expect("admitted"))
    }

    /// Appends the rows as one batch, and waits until it is durable.
    pub(crate) fn append(&self, topic: &Topic, partition: i32, rows: &[Row<'_>]) {
        self.append_as(topic, partition, rows, Compression::None);
    }

    pub(crate) fn append_as(&self, topic: &Topic, partition: i32, rows: &[Row<'_>], codec: Compression) {
        let mut builder = BatchBuilder::new().with_compression(codec);
        for row in rows {
            let headers = row.headers.iter().map(|(key, value)| Header { key, value: *value });
            builder.append(row.key, row.value, headers, row.timestamp).expect("fits");
        }
        let batch = builder.build().expect("fits");
        let append = self.store.append(topic.id, PartitionIndex::new(partition), batch, NOW);
        wait(append.expect("admitted"));
    }

    pub(crate) fn engine(&self, change: impl FnOnce(Builder) -> Builder) -> Engine {
        change(Engine::builder(self.store.clone())).build().expect("settings that work")
    }

    pub(crate) fn session(&self) -> Session {
        self.engine(|builder| builder.catalog_alias("vast")).session(Principal::anonymous())
    }
}

pub(crate) const NOW: Timestamp = Timestamp::new(1_700_000_000_000);

/// Waits until it is durable; within a runtime as well, if that has several threads.
pub(crate) fn wait<T>(commit: Commit<T>) -> T {
    let wait = || commit.wait().expect("durable");
    if tokio::runtime::Handle::try_current().is_ok() { tokio::task::block_in_place(wait) } else { wait() }
}
