//! A running broker, and how it stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kolumn_topic_store::Store;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::builder::Builder;
use crate::context::{Context, Phase};
use crate::error::ShutdownError;
use crate::groups::{GroupDescription, GroupReader};
use crate::observer::Event;
use crate::settings::Settings;
use crate::stats::Stats;

/// A broker that serves clients until it is shut down.
///
/// Dropping it ends every connection at once, without answering what is under way; what was acknowledged is durable
/// either way. [`Broker::shutdown`] is the polite form.
#[derive(Debug)]
pub struct Broker {
    parts: Parts,
    addresses: Vec<SocketAddr>,
}

#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) context: Arc<Context>,
    /// One permit for each connection that may be open.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) phase: watch::Sender<Phase>,
    pub(crate) tasks: Vec<JoinHandle<()>>,
    pub(crate) owns_store: bool,
}

impl Broker {
    /// Starts from default settings.
    pub fn builder() -> Builder {
        Builder::new(Settings::default())
    }

    /// Starts from these settings.
    pub fn from_settings(settings: Settings) -> Builder {
        Builder::new(settings)
    }

    pub(crate) fn new(parts: Parts, addresses: Vec<SocketAddr>) -> Self {
        Self { parts, addresses }
    }

    /// The first address that it listens on, with the port that was chosen.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        // INVARIANT: settings without an address do not validate.
        self.addresses.first().copied().unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// All addresses that it listens on, in the order of the settings.
    #[must_use]
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it holds and has done.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.parts.context.counters.stats(self.parts.context.budget.used())
    }

    /// The store that it serves.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.parts.context.store
    }

    /// The consumer groups of a bucket, or of all: what [`GroupReader::groups`] tells.
    #[must_use]
    pub fn groups(&self, bucket: Option<&str>) -> Vec<GroupDescription> {
        self.group_reader().groups(bucket)
    }

    /// Tells about consumer groups, also where the broker itself is not at hand.
    #[must_use]
    pub fn group_reader(&self) -> GroupReader {
        let Context { groups, view, .. } = &*self.parts.context;
        GroupReader::new(groups, Arc::clone(&view.bucket))
    }

    /// The cluster id by which clients know the view.
    #[must_use]
    pub fn cluster_id(&self) -> &str {
        &self.parts.context.view.cluster_id
    }

    /// Stops accepting, answers every request that has arrived, and closes the store if the broker opened it.
    /// Clients that do not take their answers within the drain timeout are cut off.
    ///
    /// # Errors
    /// The store was not closed properly.
    pub async fn shutdown(mut self) -> Result<(), ShutdownError> {
        let context = Arc::clone(&self.parts.context);
        context.event(&Event::Draining { connections: self.stats().connections });
        self.parts.phase.send_replace(Phase::Draining);
        for task in std::mem::take(&mut self.parts.tasks) {
            // A task that panicked has nothing left to stop.
            let _ = task.await;
        }
        let limits = &context.validated.settings.limits;
        let drained = self.all_places(limits.connections_max);
        let patience = Duration::from_millis(limits.drain_timeout_ms);
        if tokio::time::timeout(patience, drained).await.is_err() {
            self.parts.phase.send_replace(Phase::Ending);
            self.all_places(limits.connections_max).await;
        }
        let closed = if self.parts.owns_store {
            let store = context.store.clone();
            tokio::task::spawn_blocking(move || store.close()).await.unwrap_or(Ok(()))
        } else {
            Ok(())
        };
        context.event(&Event::Stopped);
        closed.map_err(ShutdownError::new)
    }

    /// Resolves when no connection is open.
    async fn all_places(&self, connections_max: usize) {
        let count = u32::try_from(connections_max).unwrap_or(u32::MAX);
        // An error would mean that the semaphore was closed, which nobody does.
        drop(self.parts.places.acquire_many(count).await);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.parts.phase.send_replace(Phase::Ending);
    }
}
