//! Clients that listen to events as they happen, without a queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use tokio::sync::mpsc;

use super::HubError;
use crate::event::{Event, EventName, EventSet};

/// What a client listens to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listen {
    /// The bucket; all of them, if there is none.
    pub bucket: Option<String>,
    /// How keys begin, as they are.
    pub prefix: String,
    /// How keys end, as they are.
    pub suffix: String,
    /// The events.
    pub events: EventSet,
}

impl Listen {
    /// Listens to these events of all keys of all buckets.
    #[must_use]
    pub fn new(events: EventSet) -> Self {
        Self { events, ..Self::default() }
    }

    fn is_about(&self, bucket: &str, event: EventName) -> bool {
        self.events.contains(event) && self.bucket.as_deref().is_none_or(|own| own == bucket)
    }

    fn matches(&self, event: &Event) -> bool {
        let key = event.key();
        self.is_about(event.bucket(), event.name())
            && key.starts_with(&self.prefix)
            && key.ends_with(&self.suffix)
    }
}

/// All that listen.
#[derive(Debug)]
pub(super) struct Listeners {
    max: usize,
    shared: Arc<RwLock<Ears>>,
}

#[derive(Debug, Default)]
struct Ears {
    next: u64,
    ears: Vec<Ear>,
}

#[derive(Debug)]
struct Ear {
    number: u64,
    listen: Listen,
    sender: mpsc::Sender<Arc<Event>>,
    lost: Arc<AtomicU64>,
}

impl Listeners {
    pub(super) fn new(max: usize) -> Self {
        Self { max, shared: Arc::default() }
    }

    pub(super) fn listen(&self, listen: Listen) -> Result<Listener, HubError> {
        let mut shared = self.shared.write();
        if shared.ears.len() >= self.max {
            return Err(HubError::TooManyListeners { max: self.max });
        }
        let number = shared.next;
        shared.next += 1;
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        let lost = Arc::<AtomicU64>::default();
        shared.ears.push(Ear { number, listen, sender, lost: lost.clone() });
        Ok(Listener { number, shared: self.shared.clone(), receiver, lost })
    }

    pub(super) fn wants(&self, bucket: &str, event: EventName) -> bool {
        self.shared.read().ears.iter().any(|ear| ear.listen.is_about(bucket, event))
    }

    pub(super) fn count(&self) -> usize {
        self.shared.read().ears.len()
    }

    /// Tells all that want to know, and waits for none.
    pub(super) fn tell(&self, event: &Event) {
        let shared = self.shared.read();
        let mut told: Option<Arc<Event>> = None;
        for ear in shared.ears.iter().filter(|ear| ear.listen.matches(event)) {
            let event = told.get_or_insert_with(|| Arc::new(event.clone())).clone();
            if ear.sender.try_send(event).is_err() {
                ear.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Lets all go: they get what was told, and then an end.
    pub(super) fn end(&self) {
        self.shared.write().ears.clear();
    }
}

/// Hears events as they happen. One that does not keep up loses the newest.
#[derive(Debug)]
pub struct Listener {
    number: u64,
    shared: Arc<RwLock<Ears>>,
    receiver: mpsc::Receiver<Arc<Event>>,
    lost: Arc<AtomicU64>,
}

impl Listener {
    /// Waits for the next event; `None` when the hub was closed. Dropping the future loses none.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        self.receiver.recv().await
    }

    /// How many events were lost because 1,000 waited here.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.write().ears.retain(|ear| ear.number != self.number);
    }
}

const EVENTS_MAX: usize = 1_000;
