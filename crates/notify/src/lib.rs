//! S3 event notifications: event records, bucket rules, the configuration of the targets that events are sent to, and the
//! queues in which they wait.
//!
//! A storage server tells of each operation that it has finished. Rules, which S3 clients set for their buckets, say
//! who is to know of it; targets, which the operator configures, are how they get to know. This crate has what the
//! three need, in the formats that clients and consumers of `MinIO` and AWS already read and write.
//!
//! It is not a storage server and serves no requests. Without features it opens no file and no socket, and reads neither
//! the clock nor the environment: what it is to know of them comes as arguments. With the feature `queue` it writes files,
//! through the `Disk` of the crate `kolumn-journal`.
//!
//! # The ideas, in reading order
//!
//! - An [`Event`](event::Event) has the facts of one operation. It is built by a method a fact, so that nothing gets
//!   into a record that was not meant to: there is no door for a list of headers.
//! - A [`Style`](event::Style) is how it is told: as `MinIO` does it, to the byte; as AWS does; as the event broker of
//!   a storage cluster; as a `CloudEvent`. The bytes are written at once, into a buffer that is reserved once.
//! - An [`EventName`](event::EventName) is one kind of event, an [`EventSelector`](event::EventSelector) what a rule
//!   names: one, or a group such as `s3:ObjectCreated:*`.
//! - [`rules`] has what clients set for a bucket: which events of which keys go to which target.
//! - [`config`] has what an operator sets for a target. A target is named by an [`Arn`](config::Arn), which rules refer
//!   to.
//! - `queue` has where events wait for a target, durably and in order, and the dead letters.
//! - `intent` has what a server writes before an operation, so that an event is not lost between it and its queue.
//! - `target` has the contract of what events are delivered to, and targets.
//! - `delivery` has the `Notifier`, which puts each event into the queues of those that are to be told, and runs a worker
//!   for each.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use kolumn_notify::event::{Event, EventName, EventSelector, Origin, Style, Timestamp};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut origin = Origin::default();
//! origin.region = "eu-central-1".into();
//! let origin = Arc::new(origin); // of this server, for all its events
//!
//! let now: Timestamp = "2025-02-06T01:04:31.998Z".parse()?; // in a server: `SystemTime::now().into()`
//! let event = Event::builder(&origin, EventName::ObjectCreatedPut, "photos", "2025/sea side.jpg")
//!     .size(84_452)
//!     .e_tag("\"eb52f8e46f60a27a8a1a704e25757f30\"")
//!     .content_type("image/jpeg")
//!     .user_metadata("x-amz-meta-camera", "old")
//!     .user_metadata("authorization", "is no metadata") // and is dropped
//!     .requester("alice", None)
//!     .source("192.168.1.10", "aws-cli/2.0")
//!     .request_id("182178E8B36AC9DF")
//!     .build(now)?;
//!
//! let uploads: EventSelector = "s3:ObjectCreated:*".parse()?;
//! assert!(uploads.events().contains(event.name()));
//!
//! // What a Kafka target sends: keyed by bucket and object, so that the events of an object stay in order.
//! assert_eq!(event.record_key(), "photos/2025/sea side.jpg");
//! let mut value = Vec::new();
//! event.write_message(Style::Minio, "rule-1", &mut value);
//! let value = String::from_utf8(value)?;
//! assert!(value.starts_with(r#"{"EventName":"s3:ObjectCreated:Put","Key":"photos/2025/sea side.jpg","Records":["#));
//! assert!(value.contains(r#""key":"2025%2Fsea+side.jpg","size":84452"#));
//! assert!(value.contains(r#""userMetadata":{"X-Amz-Meta-Camera":"old","content-type":"image/jpeg"}"#));
//!
//! let mut value = Vec::new();
//! event.write_message(Style::CloudEvents, "rule-1", &mut value);
//! let value = String::from_utf8(value)?;
//! assert!(value.contains(r#""type":"com.amazonaws.s3.ObjectCreated:Put""#));
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `queue` | the modules `queue` and `intent`, on `kolumn-journal`, with waits of `tokio::sync`, which need no runtime |
//! | `delivery` | the modules `target` and `delivery`, with timers and tasks of tokio |
//! | `hub` | the module `hub`: what a storage server needs, assembled |
//! | `kafka` | the Kafka target |
//! | `webhook` | the webhook target |
//! | `s3s` | the module `s3s`: a server of S3 on the crate `s3s` with notifications, the listen API and ids of requests |
//! | `test-util` | queues and intents without threads, for simulations that repeat exactly; a target in memory, and the checks of targets |
//!
//! # What is absent
//!
//! No unsafe code. No clock and no chance but those of workers; no input or output but that of queues and targets. No
//! length that an input claims is allocated for. No request waits for a target.
#![forbid(unsafe_code)]

pub mod config;
#[cfg(feature = "delivery")]
pub mod delivery;
pub mod event;
mod fnv;
#[cfg(feature = "hub")]
pub mod hub;
#[cfg(feature = "queue")]
pub mod intent;
#[cfg(feature = "queue")]
pub mod queue;
pub mod rules;
#[cfg(feature = "s3s")]
pub mod s3s;
#[cfg(feature = "delivery")]
pub mod target;
