//! All that a storage server needs, assembled: rules that outlive a restart, targets with their queues, intents, and
//! clients that listen.
//!
//! ```text
//! server: begin(intent) ──> operation ──> happened(event) ──> answer
//!              |                               |
//!           intents                rules ──> queues, listeners
//! ```
//!
//! # What holds
//!
//! - **Nothing answered is lost.** [`Hub::begin`] writes the intent and takes a place in each queue before the operation,
//!   so that it is the operation which is refused when there is no room, not its event afterwards.
//!   [`Operation::happened`] returns when the queues have the event. What was begun and neither happened nor did not
//!   ([`Hub::doubtful`], and after a crash [`Opened::unresolved`]) is for the server to look at, which tells by
//!   [`Hub::recover`].
//! - **Nobody pays for what nobody wants.** Without a rule or a listener for an event, `begin` gives `None` and writes nothing.
//! - **Order.** The events of a key are delivered in the order in which `happened` was called for them, if each call is
//!   awaited before the next. Of operations on one key that a server runs at the same time, the order of calls decides, and
//!   sequencers may tell another: who needs more than that runs operations on a key one after the other.
//! - **A target that cannot be made** (a certificate that cannot be read) has its queue all the same: events wait for whoever
//!   repairs it. If it is its queue that cannot be opened, operations stay unresolved, and are given at the next opening.
//! - **Limits in bytes** are looked at in `begin` only: what is under way may pass them.
//!
//! # The folder
//!
//! | path | has |
//! | --- | --- |
//! | `intents/` | the journal of intents, whose lock is that of the folder |
//! | `rules/` | a JSON file for each bucket that has rules, `bucket-<name>.json`, and `global.json` |
//! | `queues/<kind>-<id>/` | the queue of a target without a `queue_dir` of its own |
//! | `dead-letters/<kind>-<id>-letters/` | the dead letters of a target without a `dead_letter_dir` |
//!
//! ```
//! use kolumn_notify::config::{Config, Environment, StoredConfig};
//! use kolumn_notify::event::{Event, EventName, Timestamp};
//! use kolumn_notify::hub::{Hub, HubOptions};
//! use kolumn_notify::intent::Intent;
//! use kolumn_notify::rules::{BucketRules, Rule};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let variables = [("MINIO_NOTIFY_WEBHOOK_ENABLE_A", "on"), ("MINIO_NOTIFY_WEBHOOK_ENDPOINT_A", "http://127.0.0.1:1/")];
//! let config = Config::resolve(&Environment::new(variables), &StoredConfig::default());
//! let opened = Hub::open(HubOptions::new(folder.path()), &config).await?;
//! assert!(opened.faults.is_empty() && opened.unresolved.is_empty());
//! let hub = opened.hub;
//! assert_eq!(hub.arns_line().as_deref(), Some("SQS ARNs: arn:minio:sqs::a:webhook"));
//!
//! let now = Timestamp::from_unix_nanos(1);
//! let intent = Intent::new(EventName::ObjectCreatedPut, "photos", "a.jpg", now);
//! assert!(hub.begin(intent.clone()).await?.is_none(), "nobody wants it yet");
//!
//! let rule = Rule::new("arn:minio:sqs::a:webhook".parse()?, ["s3:ObjectCreated:*".parse()?])?;
//! hub.set_rules("photos", BucketRules::new(vec![rule])).await?;
//! let operation = hub.begin(intent).await?.ok_or("somebody wants it now")?;
//! // the object is stored here
//! let event = Event::builder(hub.origin(), EventName::ObjectCreatedPut, "photos", "a.jpg").build(now)?;
//! operation.happened(&event).await?;
//! assert_eq!(hub.notifier().status(now)[0].queued, 1);
//! # hub.close(std::time::Duration::ZERO).await;
//! # Ok(())
//! # }
//! ```

mod error;
mod lane;
mod listeners;
mod operation;
mod options;
mod stored_rules;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, mpsc};

pub use self::error::{HubError, TargetFault};
use self::lane::{Lane, Place};
use self::listeners::Listeners;
pub use self::listeners::{Listen, Listener};
pub use self::operation::Operation;
pub use self::options::HubOptions;
use self::stored_rules::StoredRules;
use crate::config::{Arn, Config, EnabledTarget, QueueConfig, TargetState};
use crate::delivery::{Missed, MissedError, Notifier};
use crate::event::{Event, EventName, Origin, Style};
use crate::intent::{Intent, Intents, Unresolved};
use crate::queue::PutErrorKind;
use crate::rules::{BucketRules, KnownTargets, LiveRules, RuleSet};
use crate::target::{self, Target};

/// What is opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The hub, which works.
    pub hub: Hub,
    /// Operations that an earlier process has left in doubt, in the order in which they began.
    pub unresolved: Vec<Unresolved>,
    /// Targets that are not as they were meant to be, each with the reason.
    pub faults: Vec<TargetFault>,
}

/// Rules, targets, queues, intents and listeners of a storage server. Clones are the same hub.
///
/// It needs the runtime in which it was opened, with its timers.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    dir: PathBuf,
    seed: u64,
    intents_max: usize,
    origin: Arc<Origin>,
    rules: Arc<LiveRules>,
    stored: StoredRules,
    notifier: Notifier,
    intents: Intents,
    lanes: ArcSwap<Vec<Arc<Lane>>>,
    /// Those of the configuration, also if they could not be opened.
    configured: Vec<Arn>,
    listeners: Listeners,
    in_doubt: mpsc::Sender<Unresolved>,
    doubtful: Mutex<mpsc::Receiver<Unresolved>>,
    /// From here on a target that is not there has gone with the hub, not with its configuration.
    is_closing: AtomicBool,
}

impl Hub {
    /// Opens what the folder has, and adds the targets of a configuration. What blocks is done on threads for that.
    ///
    /// A target that is configured wrongly or whose queue cannot be opened is told among [`Opened::faults`], and the
    /// others work.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, or is in use, or has rules that cannot be read.
    pub async fn open(options: HubOptions, config: &Config) -> Result<Opened, HubError> {
        let HubOptions { dir, seed, intents: intent_options, listeners_max, backoff, observer, mut origin } =
            options;
        let intents_max = intent_options.intents_max;
        let rules = Arc::<LiveRules>::default();
        let folder = dir.clone();
        let live = rules.clone();
        let (intents, unresolved, stored) = blocking(move || {
            let (disk, _) = kolumn_journal::probe(&folder.join("intents"))
                .map_err(|error| HubError::io(&folder, error))?;
            let (intents, unresolved) = Intents::open(disk, intent_options).map_err(HubError::Intents)?;
            let stored = StoredRules::open(folder.join("rules"), live)?;
            Ok((intents, unresolved, stored))
        })
        .await?;
        if origin.region.is_empty() {
            config.region().clone_into(&mut origin.region);
        }
        let builder =
            Notifier::builder(rules.clone()).with_backoff(backoff).with_observer(observer).with_seed(seed);
        let (in_doubt, doubtful) = mpsc::channel(DOUBTFUL_MAX);
        let hub = Self {
            inner: Arc::new(Inner {
                dir,
                seed,
                intents_max,
                origin: Arc::new(origin),
                rules,
                stored,
                notifier: builder.start(Handle::current()),
                intents,
                lanes: ArcSwap::default(),
                configured: config.arns().collect(),
                listeners: Listeners::new(listeners_max),
                in_doubt,
                doubtful: Mutex::new(doubtful),
                is_closing: AtomicBool::new(false),
            }),
        };
        let faults = hub.add_configured(config).await;
        Ok(Opened { hub, unresolved, faults })
    }

    async fn add_configured(&self, config: &Config) -> Vec<TargetFault> {
        let mut faults = Vec::new();
        for found in config.targets() {
            let enabled = match found.state() {
                TargetState::Enabled(enabled) => enabled,
                TargetState::Disabled => continue,
                TargetState::Refused(errors) => {
                    faults.push(TargetFault::refused(found.settings(), errors));
                    continue;
                }
            };
            let (kind, id, queue, style) = match &**enabled {
                EnabledTarget::Kafka(config) => (config.kind, &config.id, &config.queue, config.style),
                EnabledTarget::Other(config) => (config.kind, &config.id, &config.queue, config.style),
            };
            let arn = Arn::new(self.region(), id.clone(), kind);
            let target = target::build(self.region(), enabled).unwrap_or_else(|error| {
                let reason = target::chain(&error);
                faults.push(TargetFault::new(&arn, &reason));
                Arc::new(lane::Unavailable::new(arn.clone(), reason))
            });
            if let Err(error) = self.add_target(target, queue, style).await {
                faults.push(TargetFault::new(&arn, &target::chain(&error)));
            }
        }
        faults
    }

    /// Adds a target with its queue, which is in the configured folder or else in the hub's, and starts to send it what the
    /// queue has.
    ///
    /// # Errors
    ///
    /// There is such a target already, or its queue or dead letters cannot be opened.
    pub async fn add_target(
        &self,
        target: Arc<dyn Target>,
        queue: &QueueConfig,
        style: Style,
    ) -> Result<(), HubError> {
        let inner = &self.inner;
        let arn = target.arn().clone();
        let place = Place::new(&inner.dir, queue, &arn, inner.seed, inner.intents_max);
        let config = queue.clone();
        let lane = blocking(move || Lane::open(arn, &config, &place)).await?;
        if let Err(error) = inner.notifier.add(target, lane.queue.clone(), style).await {
            blocking(move || {
                lane.letters.close();
                Ok(())
            })
            .await?;
            return Err(HubError::Exists(error));
        }
        let lane = Arc::new(lane);
        inner.lanes.rcu(|lanes| {
            let mut lanes = Vec::clone(lanes);
            lanes.push(lane.clone());
            lanes
        });
        Ok(())
    }

    /// What all events of this server have in common.
    #[must_use]
    pub fn origin(&self) -> &Arc<Origin> {
        &self.inner.origin
    }

    /// The server's region, which may be empty.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.inner.origin.region
    }

    /// The targets that rules may name: those that were added, and those that are configured but could not be opened.
    #[must_use]
    pub fn known_targets(&self) -> KnownTargets {
        let lanes = self.inner.lanes.load();
        let arns = self.inner.configured.iter().chain(lanes.iter().map(|lane| &lane.arn));
        KnownTargets::new(self.region(), arns.map(|arn| (arn.kind, arn.id.clone())))
    }

    /// The line of a server's start that tells its targets; none if there is no target.
    #[must_use]
    pub fn arns_line(&self) -> Option<String> {
        let arns: Vec<String> = self.known_targets().arns().map(|arn| arn.to_string()).collect();
        (!arns.is_empty()).then(|| format!("SQS ARNs: {}", arns.join(" ")))
    }

    /// What delivers: status of targets, probes, queues.
    #[must_use]
    pub fn notifier(&self) -> &Notifier {
        &self.inner.notifier
    }

    /// The rules in force.
    #[must_use]
    pub fn rules(&self) -> Arc<RuleSet> {
        self.inner.rules.snapshot()
    }

    /// Replaces the rules of a bucket: when this returns they are on the disk, and in force.
    ///
    /// # Errors
    ///
    /// They cannot be written; the earlier ones stay in force.
    pub async fn set_rules(&self, bucket: &str, rules: BucketRules) -> Result<(), HubError> {
        let (stored, bucket) = (self.inner.stored.clone(), bucket.to_owned());
        blocking(move || stored.set(Some(&bucket), &rules)).await
    }

    /// Replaces the rules that every bucket has, present and future.
    ///
    /// # Errors
    ///
    /// As [`set_rules`](Self::set_rules).
    pub async fn set_global_rules(&self, rules: BucketRules) -> Result<(), HubError> {
        let stored = self.inner.stored.clone();
        blocking(move || stored.set(None, &rules)).await
    }

    /// Drops the rules of a bucket that is gone.
    ///
    /// # Errors
    ///
    /// As [`set_rules`](Self::set_rules).
    pub async fn forget_bucket(&self, bucket: &str) -> Result<(), HubError> {
        self.set_rules(bucket, BucketRules::default()).await
    }

    /// Whether anybody wants to know of such events in this bucket, whatever the key.
    #[must_use]
    pub fn wants(&self, bucket: &str, event: EventName) -> bool {
        self.inner.notifier.wants(bucket, event) || self.inner.listeners.wants(bucket, event)
    }

    /// Writes down that an operation is about to happen, and takes a place in the queues that its event will go to. `None` if
    /// nobody wants to know of it.
    ///
    /// # Errors
    ///
    /// The event could not be kept, so the operation should not be done: there is no room, or the disk has failed.
    pub async fn begin(&self, intent: Intent) -> Result<Option<Operation>, HubError> {
        let inner = &self.inner;
        let rules = inner.rules.snapshot();
        let matches = rules.matches(&intent.bucket, &intent.key, intent.event);
        if matches.is_empty() {
            let is_listened = inner.listeners.wants(&intent.bucket, intent.event);
            return Ok(is_listened.then(|| Operation::unwritten(self.clone())));
        }
        let lanes = inner.lanes.load_full();
        let mut places = Vec::with_capacity(matches.len());
        for rule in matches {
            let arn = rule.destination();
            let lane = lanes.iter().find(|lane| (lane.arn.kind, &lane.arn.id) == (arn.kind, &arn.id));
            if let Some(lane) = lane {
                places.push(Lane::reserve(lane)?);
            }
        }
        let id = inner.intents.begin(&intent).await.map_err(HubError::Begin)?;
        Ok(Some(Operation::new(self.clone(), Unresolved { id, intent }, places)))
    }

    /// Waits for the next operation that was dropped without a word about its outcome: a request that was broken off. The
    /// server looks at its object, and tells by [`recover`](Self::recover). Dropping the future loses none.
    ///
    /// Of more than 10,000 that nobody asks for, the rest is told at the next opening.
    pub async fn doubtful(&self) -> Unresolved {
        let mut doubtful = self.inner.doubtful.lock().await;
        if let Some(unresolved) = doubtful.recv().await {
            return unresolved;
        }
        // It does not come to that: the hub has the other end itself.
        std::future::pending().await
    }

    /// Ends the doubt about an operation: with its event, if it has happened.
    ///
    /// # Errors
    ///
    /// As [`Operation::happened`].
    pub async fn recover(&self, unresolved: Unresolved, event: Option<Event>) -> Result<(), Missed> {
        let operation = Operation::new(self.clone(), unresolved, Vec::new());
        if let Some(event) = event {
            return operation.happened(&event).await;
        }
        operation.did_not_happen();
        Ok(())
    }

    /// Listens to events from now on.
    ///
    /// # Errors
    ///
    /// [`HubError::TooManyListeners`].
    pub fn listen(&self, listen: Listen) -> Result<Listener, HubError> {
        self.inner.listeners.listen(listen)
    }

    /// Lets all go that listen: they get what was told, and then an end. A server does so when it is about to stop, so that their
    /// connections can end.
    pub fn end_listening(&self) {
        self.inner.listeners.end();
    }

    /// How many clients listen.
    #[must_use]
    pub fn listener_count(&self) -> usize {
        self.inner.listeners.count()
    }

    /// How many operations have begun and are not resolved.
    #[must_use]
    pub fn unresolved_count(&self) -> usize {
        self.inner.intents.unresolved_count()
    }

    /// Ends: listeners are let go, what the queues have is sent for so long, the rest stays for the next opening.
    pub async fn close(&self, patience: Duration) {
        let inner = &self.inner;
        inner.is_closing.store(true, Ordering::SeqCst);
        inner.listeners.end();
        inner.notifier.close(patience).await;
        inner.intents.clone().close().await;
        let lanes = inner.lanes.swap(Arc::default());
        let closed = blocking(move || {
            for lane in lanes.iter() {
                lane.letters.close();
            }
            Ok(())
        });
        // It fails only with the runtime, and then there is nobody to close for.
        drop(closed.await);
    }

    /// Tells queues and listeners. `true` if all is settled: the operation need not be looked at again.
    async fn tell(&self, event: &Event) -> (Result<(), Missed>, bool) {
        let outcome = self.inner.notifier.notify(event).await;
        self.inner.listeners.tell(event);
        let is_settled = match &outcome {
            Ok(()) => true,
            Err(missed) => missed.targets().iter().all(|(arn, error)| self.is_final(arn, error)),
        };
        (outcome, is_settled)
    }

    /// Whether a target will not get to know of an event after the next opening either.
    fn is_final(&self, arn: &Arn, error: &MissedError) -> bool {
        match error {
            MissedError::Queue(error) => error.kind() == PutErrorKind::TooLarge,
            // The hub is being closed, or its queue could not be opened.
            MissedError::UnknownTarget => {
                let is_same = |other: &Arn| (other.kind, &other.id) == (arn.kind, &arn.id);
                !self.inner.is_closing.load(Ordering::SeqCst) && !self.inner.configured.iter().any(is_same)
            }
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("dir", &self.inner.dir).finish_non_exhaustive()
    }
}

/// Does what blocks on a thread for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HubError> + Send + 'static,
) -> Result<T, HubError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(HubError::Runtime(error)),
    }
}

const DOUBTFUL_MAX: usize = 10_000;
