//! Snapshots: the rows of some topics as of one position of the journal, and scans over them.
//!
//! A snapshot copies the index of its topics and holds the files that it points into; it holds no block of memory. So it
//! costs little, does not stop anybody, and reads the same rows however often, whatever is appended or deleted meanwhile.

mod columns;
mod decode;
mod decoded;
mod fetch;
mod filter;
mod partition;
mod plan;
mod rows;
mod scan;
mod search;

use std::sync::Arc;

use crate::core::Core;
use crate::error::ReadError;
use crate::ids::{PartitionIndex, TopicId};
use crate::inflaters::Inflaters;
use crate::store::Store;
use crate::store::again_if_gone;
use crate::topic::{Topic, View};

pub(crate) use decoded::Decoded;

pub use columns::{Column, table_schema};
pub use fetch::{DiskRead, Fetched};
pub use filter::RowFilter;
pub use partition::{MaxTimestamp, PartitionSnapshot};
pub use scan::{Scan, ScanCounters, ScanRequest, ScanStep};

/// The rows of some topics as of one position of the journal. Cheap to clone; all clones are the same snapshot.
///
/// Everything that was acknowledged before it was taken is in it, nothing that was appended later is.
#[derive(Clone, Debug)]
pub struct Snapshot {
    tables: Arc<[Arc<TableSnapshot>]>,
}

/// One topic in a snapshot.
#[derive(Debug)]
pub struct TableSnapshot {
    topic: Arc<Topic>,
    partitions: Vec<PartitionSnapshot>,
    source: Arc<Source>,
}

/// What scans need of the store that the snapshot is of. It does not keep the log open.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) core: Arc<Core>,
    pub(crate) inflaters: Arc<Inflaters>,
    pub(crate) inflated_len_max: usize,
    pub(crate) decoded: Decoded,
}

impl Store {
    /// The views of the log, in the order of their buckets' names.
    #[must_use]
    pub fn views(&self) -> Vec<View> {
        let applied = self.inner.core.applied.read();
        let mut views: Vec<_> = applied.views.values().map(|known| known.view.clone()).collect();
        drop(applied);
        views.sort_by(|one, two| one.bucket.cmp(&two.bucket));
        views
    }

    /// The rows of these topics as of now: one position of the journal for all of them. Topics that do not exist are not
    /// in it. Never blocks on the disk.
    ///
    /// # Errors
    /// If files could not be held ([`ReadErrorKind::Gone`](crate::ReadErrorKind::Gone)), which does not last.
    pub fn snapshot(&self, topics: &[TopicId]) -> Result<Snapshot, ReadError> {
        again_if_gone(|| self.snapshot_once(topics))
    }

    fn snapshot_once(&self, topics: &[TopicId]) -> Result<Snapshot, ReadError> {
        let applied = self.inner.core.applied.read();
        let mut tables = Vec::with_capacity(topics.len());
        for found in topics.iter().filter_map(|topic| applied.topic(*topic)) {
            let partitions = (0_i32..).map(PartitionIndex::new).zip(&found.partitions);
            let partitions = partitions
                .map(|(index, partition)| PartitionSnapshot::of(index, partition, &self.inner.journal))
                .collect::<Result<Vec<_>, ReadError>>()?;
            let (topic, source) = (Arc::clone(&found.topic), Arc::clone(&self.inner.source));
            tables.push(Arc::new(TableSnapshot { topic, partitions, source }));
        }
        Ok(Snapshot { tables: tables.into() })
    }
}

impl Snapshot {
    /// The tables in it, in the order in which they were asked for.
    #[must_use]
    pub fn tables(&self) -> &[Arc<TableSnapshot>] {
        &self.tables
    }

    /// The table of a topic, if the topic existed.
    #[must_use]
    pub fn table(&self, topic: TopicId) -> Option<&Arc<TableSnapshot>> {
        self.tables.iter().find(|table| table.topic.id == topic)
    }
}

impl TableSnapshot {
    /// The topic as it was.
    #[must_use]
    pub const fn topic(&self) -> &Arc<Topic> {
        &self.topic
    }

    /// Its partitions, in their order.
    #[must_use]
    pub fn partitions(&self) -> &[PartitionSnapshot] {
        &self.partitions
    }

    fn partition(&self, index: PartitionIndex) -> Option<&PartitionSnapshot> {
        self.partitions.get(usize::try_from(index.value()).ok()?)
    }

    /// Begins to read rows.
    #[must_use]
    pub fn scan(self: &Arc<Self>, request: ScanRequest) -> Scan {
        Scan::new(Arc::clone(self), request)
    }
}
