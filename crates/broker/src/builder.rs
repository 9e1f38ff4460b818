//! Puts a broker together: settings, and the components that are not settings.

use std::hash::RandomState;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kolumn_topic_store::{Store, View};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::answers::Answers;
use crate::broker::{Broker, Parts};
use crate::budget::Budget;
use crate::connection::FrameMemory;
use crate::context::{Context, Phase};
use crate::coordinator::{self, Coordinator};
use crate::error::StartError;
use crate::fetch_session;
use crate::observer::{Event, Observer, TracingObserver};
use crate::server::{self, Listener};
use crate::settings::{Settings, Validated};
use crate::stats::Counters;

/// Builds a [`Broker`]; made by [`Broker::builder`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct Builder {
    settings: Settings,
    listen: Vec<SocketAddr>,
    store: Option<Store>,
    observer: Arc<dyn Observer>,
}

impl Builder {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, listen: Vec::new(), store: None, observer: Arc::new(TracingObserver) }
    }

    /// The directory of the log; it is created if it is not there.
    pub fn data_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.settings.data_dir = dir.into();
        self
    }

    /// Serves an open store instead of a directory. It stays open when the broker stops: its owner closes it.
    pub fn store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Adds an address to listen on; port 0 lets the system choose. The first call replaces those of the settings.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen.push(address);
        self
    }

    /// The bucket whose topics are served.
    pub fn view(mut self, bucket: impl Into<String>) -> Self {
        self.settings.view = bucket.into();
        self
    }

    /// Whether clients that ask for an unknown topic create it.
    pub fn auto_create_topics(mut self, auto_create: bool) -> Self {
        self.settings.topics.auto_create = auto_create;
        self
    }

    /// Receives the broker's events instead of `tracing`.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// Changes any other setting.
    pub fn configure(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Opens the store and listens. Needs a tokio runtime with its network and time drivers.
    ///
    /// # Errors
    /// The settings cannot work, the log cannot be opened or an address cannot be listened on.
    pub async fn start(mut self) -> Result<Broker, StartError> {
        if !self.listen.is_empty() {
            self.settings.listen = std::mem::take(&mut self.listen);
        }
        let mut validated = self.settings.validated().map_err(StartError::settings)?;
        let connections_max = &mut validated.settings.limits.connections_max;
        let (asked, allowed) = (*connections_max, server::connections_allowed());
        if allowed < asked {
            *connections_max = allowed;
            self.observer.event(&Event::ConnectionsLimited { asked, allowed });
        }
        // Before the store is opened: an address that is taken is found at once.
        let listeners = validated
            .settings
            .listen
            .iter()
            .map(|address| Listener::bind(*address).map_err(|error| StartError::listen(*address, error)));
        let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
        let owns_store = self.store.is_none();
        let log_dir =
            if owns_store { absolute(&validated.settings.data_dir) } else { validated.settings.view.clone() };
        let store = match self.store {
            Some(store) => store,
            None => open_store(&validated, Arc::clone(&self.observer)).await?,
        };
        let view = ensure_view(&store, &validated.settings.view).await?;
        let limits = &validated.settings.limits;
        let (phase_sender, phase) = watch::channel(Phase::Running);
        let groups = open_groups(&store, &view, &validated, &phase, &self.observer).await?;
        let budget =
            Budget::new(limits.in_flight_len_max, Duration::from_millis(limits.slow_frame_timeout_ms));
        let answers = Answers::new(limits.answers_len_max);
        let frame_memory = Arc::new(FrameMemory::new(limits.in_flight_len_max / FRAME_MEMORY_SHARE));
        let places = Arc::new(Semaphore::new(limits.connections_max.min(Semaphore::MAX_PERMITS)));
        let context = Arc::new(Context {
            store,
            view,
            groups,
            fetch_sessions: fetch_session::Cache::new(limits, RandomState::new()),
            validated,
            log_dir,
            budget,
            answers,
            frame_memory,
            counters: Counters::default(),
            observer: self.observer,
            phase,
        });
        let mut parts = Parts { context, places, phase: phase_sender, tasks: Vec::new(), owns_store };
        let addresses = listeners.iter().map(|listener| listener.address).collect();
        parts.tasks.push(tokio::spawn(server::maintain(Arc::clone(&parts.context))));
        parts.tasks.push(tokio::spawn(coordinator::run_timers(Arc::clone(&parts.context.groups))));
        parts.tasks.push(tokio::spawn(coordinator::run_expiry(Arc::clone(&parts.context.groups))));
        for listener in listeners {
            parts.context.event(&Event::Listening { address: listener.address });
            let accept = server::accept(Arc::clone(&parts.context), listener, Arc::clone(&parts.places));
            parts.tasks.push(tokio::spawn(accept));
        }
        Ok(Broker::new(parts, addresses))
    }
}

async fn open_store(validated: &Validated, observer: Arc<dyn Observer>) -> Result<Store, StartError> {
    let dir = validated.settings.data_dir.clone();
    let settings = validated.store_settings();
    let opened = tokio::task::spawn_blocking(move || open_dir(&dir, settings, observer)).await;
    opened.map_err(StartError::task)?
}

fn open_dir(
    dir: &Path,
    settings: kolumn_topic_store::Settings,
    observer: Arc<dyn Observer>,
) -> Result<Store, StartError> {
    let unusable = |error| StartError::directory(dir, error);
    std::fs::create_dir_all(dir).map_err(unusable)?;
    let (disk, _) = kolumn_journal::probe(dir).map_err(unusable)?;
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| unusable(io::Error::other(error)))?;
    let observer = Arc::new(StoreObserver(observer));
    let now = server::wall_clock();
    Store::open(disk, settings, u64::from_be_bytes(seed), observer, now)
        .map_err(|error| StartError::open(dir, error))
}

fn absolute(dir: &Path) -> String {
    std::path::absolute(dir).as_deref().unwrap_or(dir).to_string_lossy().into_owned()
}

/// Takes up the groups of the view, on a thread that may block: there may be many.
async fn open_groups(
    store: &Store,
    view: &View,
    validated: &Validated,
    phase: &watch::Receiver<Phase>,
    observer: &Arc<dyn Observer>,
) -> Result<Arc<Coordinator>, StartError> {
    let mut seed = [0; coordinator::SEED_LEN];
    getrandom::fill(&mut seed).map_err(|error| StartError::random(io::Error::other(error)))?;
    let (store, view, limits) = (store.clone(), view.id, validated.settings.groups.limits());
    let (phase, observer, runtime) = (phase.clone(), Arc::clone(observer), Handle::current());
    let opened = tokio::task::spawn_blocking(move || {
        Coordinator::open(store, view, limits, seed, phase, observer, runtime)
    });
    opened.await.map_err(StartError::task)
}

async fn ensure_view(store: &Store, bucket: &str) -> Result<View, StartError> {
    let commit = store.ensure_view(bucket, server::wall_clock()).map_err(StartError::view)?;
    commit.await.map_err(StartError::commit)
}

/// Hands the store's events on.
#[derive(Debug)]
struct StoreObserver(Arc<dyn Observer>);

impl kolumn_topic_store::Observer for StoreObserver {
    fn event(&self, event: &kolumn_topic_store::Event<'_>) {
        self.0.event(&Event::Store(event));
    }
}

/// The part of what requests may hold that is kept for the next ones when they are gone.
const FRAME_MEMORY_SHARE: usize = 8;
