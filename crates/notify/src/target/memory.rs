//! A target in memory, for tests: it keeps what it is sent, and fails as it is told to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use super::{BoxFuture, Limits, SendError, Target};
use crate::config::Arn;
use crate::queue::{Delivery, Message};

/// Keeps what it is sent.
#[derive(Debug)]
pub struct MemoryTarget {
    arn: Arn,
    limits: Limits,
    other_side: Arc<OtherSide>,
}

impl MemoryTarget {
    /// A target of this name, and the other side that it sends to.
    #[must_use]
    pub fn new(arn: Arn) -> (Self, Arc<OtherSide>) {
        let other_side = Arc::<OtherSide>::default();
        (Self { arn, limits: Limits::default(), other_side: other_side.clone() }, other_side)
    }

    /// With other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

impl Target for MemoryTarget {
    fn arn(&self) -> &Arn {
        &self.arn
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn send<'a>(&'a self, batch: &'a [Delivery]) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move {
            if !batch.is_empty() {
                self.other_side.begin(batch.len());
            }
            for (at, delivery) in batch.iter().enumerate() {
                self.other_side.pause().await;
                self.other_side.receive(delivery).map_err(|error| error.after(at))?;
            }
            Ok(())
        })
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(async move { self.other_side.lock().reach() })
    }
}

/// What a [`MemoryTarget`] sends to, and how it behaves.
#[derive(Debug, Default)]
pub struct OtherSide {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    received: Vec<Received>,
    batches: Vec<usize>,
    is_down: bool,
    cut_after: Option<usize>,
    refused: BTreeSet<Bytes>,
    delay: Duration,
    panic: Option<String>,
    retry_after: Option<Duration>,
}

/// What arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// The key.
    pub key: Bytes,
    /// The bytes.
    pub value: Bytes,
    /// The topic, if the message has one of its own.
    pub topic: Option<Arc<str>>,
}

impl Received {
    /// What is to be expected of a message.
    #[must_use]
    pub fn new(key: Bytes, value: Bytes) -> Self {
        Self { key, value, topic: None }
    }

    fn of(message: &Message) -> Self {
        let Message { key, value, topic, .. } = message.clone();
        Self { key, value, topic }
    }
}

impl OtherSide {
    /// All that arrived, in that order.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.lock().received.clone()
    }

    /// How many deliveries each call of `send` had, those that failed included.
    #[must_use]
    pub fn batches(&self) -> Vec<usize> {
        self.lock().batches.clone()
    }

    /// Cannot be reached from now on, or can be again.
    pub fn set_down(&self, is_down: bool) {
        self.lock().is_down = is_down;
    }

    /// Goes down by itself when so many more have arrived.
    pub fn cut_after(&self, count: usize) {
        self.lock().cut_after = Some(count);
    }

    /// Never takes messages with this key.
    pub fn refuse(&self, key: impl Into<Bytes>) {
        self.lock().refused.insert(key.into());
    }

    /// Takes messages with this key again.
    pub fn accept(&self, key: &str) {
        self.lock().refused.remove(key.as_bytes());
    }

    /// Takes so long for each delivery.
    pub fn set_delay(&self, delay: Duration) {
        self.lock().delay = delay;
    }

    /// The target panics, once, with this text.
    pub fn panic_once(&self, text: &str) {
        self.lock().panic = Some(text.into());
    }

    /// While it is down, asks to be left alone for so long.
    pub fn set_retry_after(&self, wait: Option<Duration>) {
        self.lock().retry_after = wait;
    }

    #[expect(clippy::panic, reason = "a panic is what the test asks for")]
    fn begin(&self, count: usize) {
        let mut state = self.lock();
        state.batches.push(count);
        let panic = state.panic.take();
        drop(state);
        if let Some(text) = panic {
            std::panic::panic_any(text);
        }
    }

    async fn pause(&self) {
        let delay = self.lock().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    fn receive(&self, delivery: &Delivery) -> Result<(), SendError> {
        let mut state = self.lock();
        if state.cut_after == Some(0) {
            state.cut_after = None;
            state.is_down = true;
        }
        state.reach()?;
        let message = &delivery.message;
        if state.refused.contains(&message.key) {
            return Err(SendError::permanent("the message is refused"));
        }
        if let Some(left) = &mut state.cut_after {
            *left -= 1;
        }
        state.received.push(Received::of(message));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn reach(&self) -> Result<(), SendError> {
        if !self.is_down {
            return Ok(());
        }
        let error = SendError::temporary("the other side is down");
        Err(match self.retry_after {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        })
    }
}
