//! Events: their names and groups, and their records as JSON.
//!
//! ```text
//! storage server ── Event::builder ──▶ Event ── write_message(Style) ──▶ bytes for a target
//!                    one call a fact     │  ▲
//!                                        │  └── from_record_json ◀── MinIO's queue folders
//!                                        └── name, bucket, key: what rules look at
//! ```
//!
//! - An [`EventName`] says what happened, an [`EventSelector`] what a rule names, an [`EventSet`] which events that is.
//! - An [`Event`] holds the facts of one operation that has finished. What is the same in all events of a server stands
//!   in an [`Origin`], which they share.
//! - A [`Style`] is a way to write an event; a target has one.
//! - [`record_key`] and [`fnv1a_partition`] say where in Kafka an event goes.
//!
//! The time comes as an argument; nothing here reads a clock.

mod builder;
mod json;
mod key;
mod name;
mod parse;
mod record;
mod set;
mod style;
mod time;

pub use self::builder::{BuildError, BuildErrorKind, EventBuilder};
pub use self::key::{fnv1a_partition, record_key};
pub use self::name::{EventGroup, EventName, EventSelector, UnknownEvent};
pub use self::parse::{RecordError, RecordErrorKind};
pub use self::record::{Event, Origin, Sequencer};
pub use self::set::EventSet;
pub use self::style::{Style, UnknownStyle, test_event};
pub use self::time::{InvalidTime, Timestamp};
