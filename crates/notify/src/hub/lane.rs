//! A target's queue and dead letters, and the places in the queue that operations under way have taken.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::HubError;
use crate::config::{Arn, QueueConfig, QueueFull};
use crate::queue::{DeadLetters, Delivery, LetterOptions, OpenError, OpenErrorKind, Queue, QueueOptions};
use crate::target::{BoxFuture, SendError, Target};

/// A target's queue and what belongs to it.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) arn: Arn,
    pub(super) queue: Queue,
    pub(super) letters: DeadLetters,
    /// How many events and bytes may wait, if what is beyond is refused.
    limits: Option<(u64, u64)>,
    /// The places that operations under way have taken.
    taken: AtomicU64,
}

/// Where a lane has its files.
#[derive(Debug)]
pub(super) struct Place {
    queue: PathBuf,
    letters: PathBuf,
    seed: u64,
    /// How many operations may be under way.
    under_way_max: u64,
}

impl Place {
    pub(super) fn new(dir: &Path, queue: &QueueConfig, arn: &Arn, seed: u64, under_way_max: usize) -> Self {
        let name = format!("{}-{}", arn.kind.as_str(), arn.id);
        let within = |configured: Option<&PathBuf>, own: &str, name: &str| {
            configured.map_or_else(|| dir.join(own), PathBuf::clone).join(name)
        };
        Self {
            queue: within(queue.dir.as_ref(), "queues", &name),
            // Of another name, since both may be configured to be in the same folder.
            letters: within(queue.dead_letter_dir.as_ref(), "dead-letters", &format!("{name}-letters")),
            seed,
            under_way_max: u64::try_from(under_way_max).unwrap_or(u64::MAX),
        }
    }
}

impl Lane {
    /// Opens both. Blocks.
    pub(super) fn open(arn: Arn, config: &QueueConfig, place: &Place) -> Result<Self, HubError> {
        let failed = |path: &Path| {
            let (target, path) = (arn.clone(), path.to_owned());
            move |error: OpenError| HubError::Queue { target, path, error }
        };
        let disk = |path: &Path| {
            let opened = kolumn_journal::probe(path).map(|(disk, _)| disk);
            opened.map_err(|error| failed(path)(OpenError::new(OpenErrorKind::Disk, error)))
        };
        let letter_options = LetterOptions { seed: place.seed, ..LetterOptions::default() };
        let letters =
            DeadLetters::open(disk(&place.letters)?, letter_options).map_err(failed(&place.letters))?;
        // In a folder of the hub's it is as durable as in one that is configured.
        let own = QueueConfig { dir: Some(place.queue.clone()), ..config.clone() };
        let mut options =
            QueueOptions { seed: place.seed, dead_letters: Some(letters.clone()), ..QueueOptions::of(&own) };
        let limits = (config.full == QueueFull::Refuse).then_some((options.messages_max, options.bytes_max));
        if limits.is_some() {
            // Operations are refused at the limits. What has begun within them is never refused.
            options.messages_max = options.messages_max.saturating_add(place.under_way_max);
            options.bytes_max = u64::MAX;
        }
        let queue = match disk(&place.queue)
            .and_then(|disk| Queue::open(disk, options).map_err(failed(&place.queue)))
        {
            Ok(queue) => queue,
            Err(error) => {
                letters.close();
                return Err(error);
            }
        };
        Ok(Self { arn, queue, letters, limits, taken: AtomicU64::new(0) })
    }

    /// Takes a place for one more event.
    pub(super) fn reserve(this: &Arc<Self>) -> Result<Reserved, HubError> {
        let stats = this.queue.stats();
        if stats.failed {
            return Err(HubError::Failed { target: this.arn.clone() });
        }
        let taken = this.taken.fetch_add(1, Ordering::Relaxed);
        let reserved = Reserved(Arc::clone(this));
        match this.limits {
            Some((messages, bytes))
                if stats.queued.saturating_add(taken) >= messages || stats.bytes >= bytes =>
            {
                Err(HubError::Full { target: this.arn.clone() })
            }
            _ => Ok(reserved),
        }
    }
}

/// A place in a queue, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Reserved(Arc<Lane>);

impl Drop for Reserved {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Stands for a target that could not be made: its events wait until it can.
#[derive(Debug)]
pub(super) struct Unavailable {
    arn: Arn,
    reason: String,
}

impl Unavailable {
    pub(super) fn new(arn: Arn, reason: String) -> Self {
        Self { arn, reason }
    }
}

impl Target for Unavailable {
    fn arn(&self) -> &Arn {
        &self.arn
    }

    fn send<'a>(&'a self, _batch: &'a [Delivery]) -> BoxFuture<'a, Result<(), SendError>> {
        self.probe()
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(std::future::ready(Err(SendError::temporary(self.reason.as_str()))))
    }
}
