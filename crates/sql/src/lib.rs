//! SQL over topics: every topic is a table that has each row in the moment in which its append is acknowledged.
//!
//! An [`Engine`] answers over a [`Store`](kolumn_topic_store::Store). It plans and runs statements with DataFusion over
//! snapshots of the store; nothing is copied, exported or sealed first. It is read-only: no statement changes anything.
//!
//! # Ideas, in reading order
//! - **A statement reads one moment.** [`Session::execute`] takes one snapshot of all topics that the statement names. What
//!   was acknowledged before is in its answer, what comes later is not, and two tables of one statement agree.
//! - **Names.** `<catalog>."<bucket>/kafka_topics".<topic>`: the catalog is `kolumn` (and what
//!   [`Builder::catalog_alias`] adds), the default schema that of [`Builder::default_view`]. Beside it are `system` (topics,
//!   partitions, groups) and `information_schema`. Topic names keep their case, which SQL needs double quotes for, as for
//!   dots and dashes. The word `offset` is the column wherever no clause `OFFSET` can stand; in doubt, `"offset"` always is.
//! - **Scans do what they can do exactly**: conditions on partition, offset, timestamp and key, limits, descending order. What
//!   a query does not need is not decoded; `count(*)` and the bounds of offsets are not even scanned.
//!   [`Scans::totals`] counts what was.
//! - **An answer is a stream.** Its rows come as they are read; dropping it cancels the statement. A statement holds one of
//!   [`Settings::statements_max`] places and ends at [`Settings::statement_timeout`].
//! - **Memory is bounded.** Sorts, groups and joins of all statements share [`Settings::memory_len_max`] and spill to
//!   [`Settings::spill_dir`]. Results of functions have as much again; a call that would make too much is refused.
//! - **Who may read what** is asked of a [`Policy`]; what may not be read looks as if it did not exist.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//! use datafusion::arrow::array::AsArray;
//! use datafusion::arrow::datatypes::Int64Type;
//! use futures::TryStreamExt;
//! use kolumn_kafka_wire::records::BatchBuilder;
//! use kolumn_sql::{Engine, Principal};
//! use kolumn_topic_store::{NewTopic, PartitionIndex, Settings, Silent, Store, Timestamp, TopicConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let (disk, _) = kolumn_journal::probe(directory.path())?;
//! # let settings = Settings { size_limit: Some(1 << 30), ..Settings::default() };
//! # let now = Timestamp::new(1_700_000_000_000);
//! # let store = Store::open(disk, settings, 42, Arc::new(Silent::new()), now)?;
//! let view = store.ensure_view("kafka", now)?.wait()?;
//! let new = NewTopic { name: "fruits".into(), partitions: 1, config: TopicConfig::default() };
//! let topic = store.create_topic(view.id, new, false, now)?.wait()?;
//! let mut batch = BatchBuilder::new();
//! batch.append(Some(b"apple"), Some(br#"{"n":3}"#), [], now.value())?;
//! batch.append(Some(b"pear"), Some(br#"{"n":4}"#), [], now.value())?;
//! store.append(topic.id, PartitionIndex::new(0), batch.build()?, now)?.wait()?;
//!
//! let engine = Engine::builder(store).build()?;
//! let session = engine.session(Principal::anonymous());
//! let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
//! let text = "SELECT sum(json_get_int(value, 'n')) AS n FROM fruits WHERE key <> 'plum'";
//! let batches: Vec<_> = runtime.block_on(async {
//!     let answer = session.execute(text).await?;
//!     answer.rows.try_collect().await.map_err(kolumn_sql::QueryError::from)
//! })?;
//! assert_eq!(batches[0]["n"].as_primitive::<Int64Type>().value(0), 7);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//! | feature | adds |
//! | --- | --- |
//! | `flight` | an Arrow Flight SQL server, and a shell that is its client |
//! | `postgres` | a server of PostgreSQL's wire protocol |
//!
//! # Where to go next
//! [`Settings`] says what can be chosen, [`QueryErrorKind`] what can go wrong. The rows and their scans are
//! [`kolumn_topic_store`]'s; DataFusion's documentation has the functions and the grammar.

#![forbid(unsafe_code)]

mod apart;
mod bounded;
mod catalog;
mod counters;
mod dialect;
mod engine;
mod error;
#[cfg(feature = "flight")]
pub mod flight;
mod groups;
mod information;
mod joins;
mod memory;
mod observer;
mod planner;
mod planning;
mod policy;
#[cfg(feature = "postgres")]
pub mod postgres;
mod running;
mod session;
mod settings;
#[cfg(feature = "flight")]
pub mod shell;
mod simplify;
mod split;
mod system;
mod table;
mod widths;
mod yields;

pub use counters::ScanTotals;
pub use engine::{Builder, Engine};
pub use error::{QueryError, QueryErrorKind};
pub use groups::{Group, GroupSource, Member, NoGroups};
pub use memory::MemoryUse;
pub use observer::{Event, Observer, Silent};
pub use policy::{AllowAll, Policy, Principal, TableName};
pub use session::{Answer, Prepared, Scans, Session};
pub use settings::Settings;

#[cfg(all(doctest, feature = "flight"))]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
