//! Topics as tables on one journal: durable, ordered, readable in the moment they are acknowledged.
//!
//! A [`Store`] is a log in a directory. It holds *views* (each what a client sees as one cluster), their *topics*, the
//! topics' *partitions*, and in these the record batches of producers, byte for byte as they were sent. It knows what
//! Kafka's rules for them are (names, settings, offsets, sequence numbers, timestamps, retention) and nothing of requests,
//! connections or SQL.
//!
//! # Ideas, in reading order
//! - **One journal is the truth.** Everything is an entry in it: a topic was made, a batch appended, a log start moved.
//!   The state is folded from the entries; what needs a clock or a policy is decided before it is written, so that a
//!   replay decides nothing.
//! - **Prepared, then durable.** [`Store::append`] judges a batch completely, gives it its offsets and returns a
//!   [`Commit`], which resolves once the batch is on the disk and visible. Order of calls is order of offsets. Await it in
//!   a runtime; the example has none and uses [`Commit::wait`].
//! - **Readers hold places, not memory.** A [`Read`] is a list of [`Slice`]s: each knows where a batch lies in the journal
//!   and keeps its file from going away. The newest blocks are served from memory, the rest from the files.
//! - **A topic is a table.** [`Store::snapshot`] copies the index of some topics and holds their files; a [`Scan`] over it
//!   decodes the columns that are asked for, batch by batch, and asks for a [`DiskRead`] where it needs one. What was decoded
//!   is kept for the next scan as far as there is memory for it.
//! - **Groups leave two things here**: a memory that only their coordinator understands ([`Store::put_group`]), and committed
//!   offsets ([`Store::commit_offsets`]). Who may commit is decided by the coordinator: the store does not know members.
//! - **Time comes from outside.** What needs a clock is given the time, as `now` or in its argument. [`Store::maintain`] does
//!   retention, expiry, checkpoints and the freeing of files whenever its owner calls it.
//! - **Space is bounded.** The journal has a limit. [`Store::pressure`] says how near it is; at the limit appends are
//!   refused, while deletions and retention go on and reopen it.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//! use arrow_array::cast::AsArray;
//! use kolumn_kafka_wire::records::BatchBuilder;
//! use kolumn_topic_store::{
//!     Column, NewTopic, Offset, PartitionIndex, ReadRequest, RowFilter, ScanRequest, Settings, Silent, Store, Timestamp,
//!     TopicConfig,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The probe finds out how this directory can be written. 42 is a seed: outside of tests it comes from the system.
//! let directory = tempfile::tempdir()?;
//! let (disk, _kind) = kolumn_journal::probe(directory.path())?;
//! let now = Timestamp::new(1_700_000_000_000);
//! let settings = Settings { size_limit: Some(1 << 30), ..Settings::default() };
//! let store = Store::open(disk, settings, 42, Arc::new(Silent::new()), now)?;
//!
//! let view = store.ensure_view("kafka", now)?.wait()?;
//! let new = NewTopic { name: "fruit".into(), partitions: 1, config: TopicConfig::default() };
//! let topic = store.create_topic(view.id, new, false, now)?.wait()?;
//!
//! let mut builder = BatchBuilder::new();
//! builder.append(Some(b"apple"), Some(b"3"), [], now.value())?;
//! let batch = builder.build()?;
//! let partition = PartitionIndex::new(0);
//! let appended = store.append(topic.id, partition, batch.clone(), now)?.wait()?;
//! assert_eq!(appended.base_offset, Offset::new(0));
//!
//! let request = ReadRequest {
//!     topic: topic.id,
//!     partition,
//!     offset: Offset::new(0),
//!     max_len: 1 << 20,
//!     at_least_one_batch: true,
//! };
//! let read = store.read(request)?;
//! assert_eq!(read.offsets.high_watermark, Offset::new(1));
//! // Only offset and epoch have been filled in, both outside of the batch's checksum.
//! let bytes = read.slices[0].read(0..batch.len())?;
//! assert_eq!(bytes[16..], batch[16..]);
//!
//! // The same as a table: what is acknowledged is in the next snapshot, and a snapshot never changes.
//! let snapshot = store.snapshot(&[topic.id])?;
//! let table = snapshot.table(topic.id).ok_or("the topic is there")?;
//! let mut scan = table.scan(ScanRequest {
//!     partition,
//!     offsets: table.partitions()[0].offsets(),
//!     columns: vec![Column::Offset, Column::Value],
//!     filter: RowFilter { keys: Some(vec!["apple".into()]), ..RowFilter::default() },
//!     descending: false,
//!     limit: None,
//!     rows_max: 8192,
//! });
//! let rows = scan.next_blocking()?.ok_or("there is a row")?;
//! assert_eq!(rows.num_rows(), 1);
//! assert_eq!(rows.column(1).as_binary::<i32>().value(0), b"3");
//! store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//! | feature | adds |
//! | --- | --- |
//! | `test-util` | `Store::open_stepped`: no writer thread, for simulations that repeat exactly |
//!
//! # Where to go next
//! `FORMAT.md` beside this crate says byte by byte what is written. [`Settings`] says what can be chosen, [`Observer`] what
//! can be heard. The journal itself is the crate `kolumn-journal`, record batches are `kolumn-kafka-wire`'s.

#![forbid(unsafe_code)]

mod ahead;
mod checkpoint;
mod commit;
mod config;
mod core;
mod cursor;
mod entry;
mod error;
mod fold;
mod group;
mod ids;
mod inflaters;
mod observer;
mod read;
mod retention;
mod settings;
mod snapshot;
mod state;
mod store;
mod tail;
mod topic;
mod watch;

pub use ahead::ReadAhead;
pub use commit::Commit;
pub use config::{ConfigChange, ConfigKey, ConfigType, TimestampKind, TopicConfig};
pub use error::{
    AppendError, AppendErrorKind, CommitError, ConfigError, DeleteRecordsError, DeleteRecordsErrorKind,
    GroupError, GroupErrorKind, MaintenanceError, MaintenanceErrorKind, OpenError, OpenErrorKind, ReadError,
    ReadErrorKind, TopicError, TopicErrorKind,
};
pub use group::{CommittedOffset, OffsetCommit};
pub use ids::{LeaderEpoch, Offset, PartitionIndex, ProducerId, Timestamp, TopicId, ViewId};
pub use observer::{Event, Observer, Pressure, PressureLevel, Silent};
pub use read::{PartitionOffsets, Read, ReadOutcome, ReadRequest, Slice, TimeIndexHit};
pub use settings::{Durability, Settings};
pub use snapshot::{
    Column, DiskRead, Fetched, MaxTimestamp, PartitionSnapshot, RowFilter, Scan, ScanCounters, ScanRequest,
    ScanStep, Snapshot, TableSnapshot, table_schema,
};
pub use store::{Appended, Stats, Store};
pub use topic::{NewTopic, Topic, View, name_fault};
pub use watch::Watch;
