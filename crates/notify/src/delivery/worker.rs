//! The worker of one target.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::watch;

use super::backoff::Backoff;
use super::observer::{DeliveryEvent, Observer};
use super::status::{Counters, Trouble};
use crate::queue::{Batch, Delivery, Most, Queue};
use crate::target::{SendError, SendErrorKind, Target, chain};

/// How much longer a worker works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Without an end.
    Running,
    /// Until the queue is empty.
    Draining,
    /// Not any longer: what is under way goes back into the queue.
    Stopped,
}

/// Takes batches from a queue and sends them to a target, until it is told to stop.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) target: Arc<dyn Target>,
    pub(super) queue: Queue,
    pub(super) counters: Arc<Counters>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) backoff: Backoff,
    pub(super) phase: watch::Receiver<Phase>,
}

impl Worker {
    pub(super) async fn run(mut self) {
        while let Some(batch) = self.next_batch().await {
            self.deliver(batch).await;
        }
        let stopped = DeliveryEvent::Stopped { target: self.target.arn(), queued: self.queue.stats().queued };
        self.observer.on(&stopped);
    }

    async fn next_batch(&mut self) -> Option<Batch> {
        let limits = self.target.limits();
        let most = Most::new(limits.events.max(1), limits.bytes);
        loop {
            match *self.phase.borrow_and_update() {
                Phase::Stopped => return None,
                Phase::Draining if self.queue.stats().queued == 0 => return None,
                _ => {}
            }
            tokio::select! {
                biased;
                changed = self.phase.changed() => changed.ok()?,
                batch = self.queue.take(most) => return batch,
            }
        }
    }

    /// Sends a batch until all of it is delivered or set aside, or until the worker has to stop: then the rest goes back.
    async fn deliver(&mut self, mut batch: Batch) {
        while !batch.deliveries().is_empty() {
            let mut phase = self.phase.clone();
            let outcome = tokio::select! {
                biased;
                () = stopped(&mut phase) => return self.queue.put_back(batch),
                outcome = attempt(&*self.target, batch.deliveries()) => outcome,
            };
            let Err(error) = outcome else {
                self.delivered(&mut batch, usize::MAX);
                continue;
            };
            self.delivered(&mut batch, error.delivered());
            if let Err(error) = self.settle(&mut batch, error) {
                let wait = self.failed(&error);
                tokio::select! {
                    biased;
                    () = stopped(&mut phase) => return self.queue.put_back(batch),
                    () = tokio::time::sleep(wait) => Counters::add(&self.counters.retries, 1),
                }
            }
        }
    }

    /// So many from the front of the batch are delivered.
    fn delivered(&mut self, batch: &mut Batch, count: usize) {
        let count = count.min(batch.deliveries().len());
        if count == 0 {
            return;
        }
        self.queue.done_first(batch, count);
        Counters::add(&self.counters.sent, count);
        self.answered();
    }

    /// The other side took or refused a delivery, so it is there.
    fn answered(&mut self) {
        let failures = self.backoff.failures();
        if failures > 0 {
            self.counters.set_trouble(None);
            self.backoff.reset();
            self.observer.on(&DeliveryEvent::Recovered { target: self.target.arn(), failures });
        }
    }

    /// Sets the first of the batch aside if it will never be taken. Gives back the error if the worker has to wait.
    fn settle(&mut self, batch: &mut Batch, error: SendError) -> Result<(), SendError> {
        if error.kind() == SendErrorKind::Temporary {
            return Err(error);
        }
        let Some(first) = batch.deliveries().first() else { return Ok(()) };
        let (number, key) = (first.number, first.message.key.clone());
        self.queue
            .set_aside(batch, number, &chain(&error))
            .map_err(|cause| SendError::temporary("an event could not be set aside").caused_by(cause))?;
        self.answered();
        let target = self.target.arn();
        self.observer.on(&DeliveryEvent::SetAside { target, number, key: &key, error: &error });
        Ok(())
    }

    /// How long to wait after an error.
    fn failed(&mut self, error: &SendError) -> Duration {
        let wait = self.backoff.next_wait().max(error.retry_after().unwrap_or_default().min(RETRY_AFTER_MAX));
        let failures = self.backoff.failures();
        self.counters.set_trouble(Some(Trouble { reason: chain(error), failures }));
        let target = self.target.arn();
        self.observer.on(&DeliveryEvent::Failed { target, error, failures, retry_in: wait });
        wait
    }
}

/// One send. A target that panics or does not come to an end has failed like any other.
async fn attempt(target: &dyn Target, deliveries: &[Delivery]) -> Result<(), SendError> {
    let patience = target.limits().patience;
    let send = AssertUnwindSafe(async { target.send(deliveries).await }).catch_unwind();
    match tokio::time::timeout(patience, send).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => Err(SendError::temporary(format!("the target panicked: {}", panic_text(&*panic)))),
        Err(_) => Err(SendError::temporary(format!("it was not done after {patience:?}"))),
    }
}

async fn stopped(phase: &mut watch::Receiver<Phase>) {
    // If there is nobody left who could say so, it is as if it was said.
    let _ = phase.wait_for(|phase| *phase == Phase::Stopped).await;
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

/// The longest that the other side may ask to be left alone.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(5);
