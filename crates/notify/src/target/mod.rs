//! Targets: what events are delivered to.
//!
//! [`Target`] is the contract. What is common to all targets is not theirs but the
//! [worker](crate::delivery)'s: the queue, when to try again, what becomes of an event that is never taken, counters.
//! So a target is little more than one call of its client.
//!
//! - [`KafkaTarget`](kafka::KafkaTarget) publishes to a topic of Kafka (feature `kafka`).
//! - [`WebhookTarget`](webhook::WebhookTarget) posts to an HTTP endpoint (feature `webhook`).
//! - `memory::MemoryTarget` keeps what it is sent and fails as it is told to (feature `test-util`).
//! - `conformance::check` runs the contract against any target (feature `test-util`).

mod build;
#[cfg(feature = "test-util")]
pub mod conformance;
mod error;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(feature = "test-util")]
pub mod memory;
#[cfg(any(feature = "kafka", feature = "webhook"))]
mod tls;
#[cfg(feature = "webhook")]
pub mod webhook;

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

pub use self::build::build;
pub use self::error::{BuildError, SendError, SendErrorKind, chain};
use crate::config::Arn;
use crate::queue::Delivery;

/// A future on the heap, as methods of a trait object give it back.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What events are delivered to.
///
/// # Contract
///
/// **Lazy.** A target is made without a connection: whether the other side can be reached is found out by
/// [`send`](Self::send) and [`probe`](Self::probe), and each of them connects anew if it has to. A target never gives
/// up: after any number of failures the next call tries again. It does not wait or repeat by itself; its worker does.
///
/// **Delivered means confirmed.** `Ok` says that the other side has confirmed every delivery of the batch, in the way that
/// is the strongest that it has. What is not confirmed is not delivered, also if the connection ended well.
///
/// **In order.** Deliveries with the same key reach the other side in the order of the batch. Those with different keys
/// may overtake each other.
///
/// **How far it got.** An error says how many deliveries, from the front of the batch, are delivered, and its kind is that
/// of the first that is not. The worker sends again from there, or sets that one aside and sends what follows. Some behind
/// it may have arrived already, and then arrive once more; but nothing arrives for the first time before a delivery of the same
/// key that stands in front of it, unless that one is permanent.
///
/// **Kind.** [`Permanent`](SendErrorKind::Permanent) is about this one message: the other side can be reached, is set
/// up well and will still never take it (too large, not in its form). Everything else is
/// [`Temporary`](SendErrorKind::Temporary), also what an operator has to repair: refused credentials, a topic or table
/// that is missing. An event that is set aside because of a typing error in a password would be lost in effect.
///
/// **Cancellation.** The future may be dropped at any moment: the worker gives up a send that takes longer than
/// [`Limits::patience`], and one that is under way when a shutdown has no more time. What it was about may then be
/// delivered or not. The target stays usable.
///
/// **Sharing.** Its worker has one call of `send` under way at a time; `probe` may come at any time. A target that is used
/// otherwise bears concurrent calls, but keeps order only within each.
///
/// **Secrets.** Neither `Debug` nor errors show passwords or tokens.
///
/// An empty batch is delivered without a word to the other side.
pub trait Target: Send + Sync + fmt::Debug {
    /// The target's name.
    fn arn(&self) -> &Arn;

    /// How much it takes at once, and how long that may take. Constant over its life.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Delivers a batch, which is within the [limits](Self::limits), but for a single delivery that is larger than they are.
    fn send<'a>(&'a self, batch: &'a [Delivery]) -> BoxFuture<'a, Result<(), SendError>>;

    /// Whether the other side can be reached, without anything being delivered. Its error has no delivered deliveries.
    fn probe(&self) -> BoxFuture<'_, Result<(), SendError>>;
}

/// How much a target takes at once, and how long that may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most deliveries in a batch; at least one is sent in any case.
    pub events: usize,
    /// The most bytes of keys and values in a batch; a single delivery may have more.
    pub bytes: usize,
    /// How long a batch may take before it counts as failed.
    pub patience: Duration,
}

impl Limits {
    /// A thousand events, a mebibyte, half a minute.
    pub const DEFAULT: Self = Self { events: 1_000, bytes: 1 << 20, patience: Duration::from_secs(30) };

    /// With so many deliveries at most.
    #[must_use]
    pub const fn with_events(mut self, events: usize) -> Self {
        self.events = events;
        self
    }

    /// With so many bytes at most.
    #[must_use]
    pub const fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// With so much time for a batch.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
