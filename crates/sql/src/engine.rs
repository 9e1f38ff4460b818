//! The engine: what all sessions share.

use std::sync::Arc;

use datafusion::execution::context::SessionState;
use kolumn_topic_store::Store;
use tokio::sync::Semaphore;

use crate::error::{QueryError, QueryErrorKind};
use crate::groups::{GroupSource, NoGroups};
use crate::memory::{MemoryUse, Pool};
use crate::observer::{Event, Observer, Silent};
use crate::planner;
use crate::policy::{AllowAll, Policy, Principal};
use crate::session::Session;
use crate::settings::Settings;

/// Answers SQL over a store. Cheap to clone; all clones are the same engine.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) settings: Settings,
    /// Names under which the one catalog answers; the first is its own.
    pub(crate) catalogs: Vec<String>,
    /// The bucket whose topics need no schema before them.
    pub(crate) default_view: String,
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) groups: Arc<dyn GroupSource>,
    pub(crate) observer: Arc<dyn Observer>,
    /// What statements begin with: functions, rules, limits. It has no catalogs.
    pub(crate) state: SessionState,
    pub(crate) pool: Arc<Pool>,
    /// A permit for each statement that may run.
    pub(crate) places: Arc<Semaphore>,
}

/// Builds an [`Engine`]; made by [`Engine::builder`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    store: Store,
    settings: Settings,
    catalogs: Vec<String>,
    default_view: String,
    policy: Arc<dyn Policy>,
    groups: Arc<dyn GroupSource>,
    observer: Arc<dyn Observer>,
}

impl Engine {
    /// Begins to build an engine over a store.
    pub fn builder(store: Store) -> Builder {
        Builder {
            store,
            settings: Settings::default(),
            catalogs: vec!["kolumn".to_owned()],
            default_view: "kafka".to_owned(),
            policy: Arc::new(AllowAll),
            groups: Arc::new(NoGroups),
            observer: Arc::new(Silent),
        }
    }

    /// Begins a session of this principal. It costs nothing until it is used.
    #[must_use]
    pub fn session(&self, principal: Principal) -> Session {
        Session::new(self.clone(), principal)
    }

    /// The settings that the engine was built with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The memory that queries use now, and have used at most.
    #[must_use]
    pub fn memory(&self) -> MemoryUse {
        self.shared.pool.used()
    }
}

impl Builder {
    /// The settings.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// A further name under which the catalog answers, besides `kolumn`.
    pub fn catalog_alias(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        if !self.catalogs.contains(&name) {
            self.catalogs.push(name);
        }
        self
    }

    /// The bucket whose topics need no schema before them. Default `kafka`.
    pub fn default_view(mut self, bucket: impl Into<String>) -> Self {
        self.default_view = bucket.into();
        self
    }

    /// Who decides what may be read; by default everybody may read everything.
    pub fn policy(mut self, policy: Arc<dyn Policy>) -> Self {
        self.policy = policy;
        self
    }

    /// Who knows the members of groups.
    pub fn groups(mut self, groups: Arc<dyn GroupSource>) -> Self {
        self.groups = groups;
        self
    }

    /// Who is told of faults, which nobody else learns of in full.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// Builds it. Deletes what an earlier engine has left in the folder for spilling, so it blocks on the disk.
    ///
    /// # Errors
    /// The settings cannot work, or the folder for spilling cannot be used.
    pub fn build(self) -> Result<Engine, QueryError> {
        self.settings.validate()?;
        let pool = Arc::new(Pool::new(self.settings.memory_len_max, self.settings.pieces()));
        let state = planner::state(&self.settings, &self.default_view, &pool)?;
        let places = Arc::new(Semaphore::new(self.settings.statements_max));
        let Self { store, settings, catalogs, default_view, policy, groups, observer } = self;
        let shared =
            Shared { store, settings, catalogs, default_view, policy, groups, observer, state, pool, places };
        Ok(Engine { shared: Arc::new(shared) })
    }
}

impl Shared {
    /// Whether there is a catalog of this name.
    pub(crate) fn has_catalog(&self, name: &str) -> bool {
        self.catalogs.iter().any(|catalog| catalog == name)
    }

    /// Tells of an error of a statement, if it is a fault.
    pub(crate) fn note(&self, sql: &str, error: &QueryError) {
        if error.kind() == QueryErrorKind::Internal {
            self.observer.event(&Event::Fault { sql, error });
        }
    }

    /// The catalog of names without one.
    pub(crate) fn default_catalog(&self) -> &str {
        self.catalogs.first().map_or("", String::as_str)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("settings", &self.settings)
            .field("catalogs", &self.catalogs)
            .field("default_view", &self.default_view)
            .field("policy", &self.policy)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}
