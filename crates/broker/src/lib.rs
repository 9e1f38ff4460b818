//! A Kafka-protocol broker that lives inside another program.
//!
//! Producers and consumers speak to it as to Apache Kafka; what they write is kept by [`kolumn_topic_store`], durable
//! before it is acknowledged ([`Durability`] says what that means). One broker is one node and a cluster of its own.
//!
//! ```
//! use kolumn_broker::Broker;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let data_dir = dir.path();
//! let broker = Broker::builder()
//!     .data_dir(data_dir)
//!     .listen("127.0.0.1:0".parse()?)
//!     .view("kafka")
//!     .auto_create_topics(true)
//!     .start()
//!     .await?;
//! // Clients connect to this address now.
//! assert_ne!(broker.local_addr().port(), 0);
//! assert_eq!(broker.stats().connections, 0);
//! broker.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What it is not
//!
//! There are no transactions, authentication or encryption: the table of `ApiVersions` says what is served, and most
//! clients that need more are told so by their own libraries. The exception is `FindCoordinator`, which finds one for
//! groups alone: a transactional producer waits, without an error of its own, and the observer hears of it. It does not
//! replicate.
//!
//! # The ideas, in reading order
//!
//! 1. [`connection`] is the protocol of one connection without I/O: bytes in, requests out, responses in, bytes out. It
//!    keeps the order of responses and bounds what a peer can make us hold.
//! 2. A request has its *effects* in the order of arrival, its *answer* may take longer. A produce request is appended
//!    when its turn comes and answered when the log is durable, while later ones are appended already.
//! 3. Backpressure goes all the way: an answer that cannot be sent is not computed, a request that cannot be started is
//!    not read, and the bytes of all requests share one budget that slow peers cannot keep from others.
//! 4. A response holds the *places* of stored batches. Their bytes are looked up when the socket takes them, in memory or
//!    on disk, so that a peer that does not read holds no memory.
//! 5. A consumer group is a state machine without I/O. The coordinator gives it the clock and the store, answers those who
//!    wait, and tells the store about a group only under that group's lock, so that what was checked still holds.
//! 6. Errors of the store become Kafka's codes in one place, so that a client retries what passes by itself and reports
//!    what does not.
//!
//! ```text
//!               tasks and sockets        no I/O                 one file per request     topics
//!  client <---> server::connection <---> connection::Connection
//!                      |                                    +-> handler::produce ----+
//!                      +----------------> dispatch ---------+-> handler::fetch   ----+-> topic store
//!                                                           +-> …                    |
//!                                                                       bridge ------+
//! ```
//!
//! # Settings
//!
//! [`Settings`] is data: written in Rust, or read from TOML with errors that have line and column. Components - an open
//! store, an observer - are given to the [`Builder`].
//!
//! # Observing
//!
//! Decisions are typed [`Event`]s. Without an [`Observer`] of your own they become `tracing` records. [`Broker::stats`]
//! has the numbers.

#![forbid(unsafe_code)]

mod answers;
mod api;
mod bridge;
mod broker;
mod budget;
mod builder;
pub mod connection;
mod context;
mod coordinator;
mod dispatch;
mod error;
mod fetch_session;
mod group;
mod groups;
mod handler;
mod observer;
mod server;
mod settings;
mod stats;

pub use broker::Broker;
pub use builder::Builder;
pub use error::{ShutdownError, StartError, StartErrorKind};
pub use groups::{AssignedTopic, GroupDescription, GroupMember, GroupReader};
pub use observer::{CloseReason, Event, Observer, TracingObserver};
pub use settings::{
    Durability, GroupSettings, LimitSettings, Settings, SettingsError, SqlSettings, StorageSettings,
    TopicSettings,
};
pub use stats::Stats;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
