//! From an event to the queues of the targets that are to be told of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::backoff::{Backoff, BackoffSettings};
use super::observer::{DeliveryEvent, NoObserver, Observer};
use super::status::{Counters, TargetStatus};
use super::worker::{Phase, Worker};
use crate::config::{Arn, TargetId, TargetKind};
use crate::event::{Event, EventName, Style, Timestamp};
use crate::fnv::fnv1a_64;
use crate::queue::{Message, PutError, Queue};
use crate::rules::{LiveRules, Rule};
use crate::target::{SendError, Target};

/// Tells targets of events.
///
/// Targets come and go while it works; rules are asked anew for each event. It holds the queues and runs the workers,
/// which are tasks of the runtime that it was given.
#[derive(Debug)]
pub struct Notifier {
    runtime: Handle,
    rules: Arc<LiveRules>,
    observer: Arc<dyn Observer>,
    backoff: BackoffSettings,
    seed: u64,
    lanes: ArcSwap<Lanes>,
}

type Lanes = BTreeMap<(TargetKind, TargetId), Arc<Lane>>;

/// A target, its queue, and its worker.
#[derive(Debug)]
struct Lane {
    target: Arc<dyn Target>,
    queue: Queue,
    style: Style,
    counters: Arc<Counters>,
    phase: watch::Sender<Phase>,
    worker: parking_lot::Mutex<Option<JoinHandle<()>>>,
}

/// Sets a [`Notifier`] up.
#[derive(Debug)]
pub struct NotifierBuilder {
    rules: Arc<LiveRules>,
    observer: Arc<dyn Observer>,
    backoff: BackoffSettings,
    seed: u64,
}

impl NotifierBuilder {
    /// Tells this observer what happens.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// Waits so long after failures.
    #[must_use]
    pub fn with_backoff(mut self, backoff: BackoffSettings) -> Self {
        self.backoff = backoff;
        self
    }

    /// Takes the jitter of waits from this seed, each target from its own sequence. A server gives a random number, so that
    /// several do not come back together; without one it is 0.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// A notifier without targets, whose workers will be tasks of this runtime: it needs its timers.
    #[must_use]
    pub fn start(self, runtime: Handle) -> Notifier {
        let Self { rules, observer, backoff, seed } = self;
        Notifier { runtime, rules, observer, backoff, seed, lanes: ArcSwap::default() }
    }
}

impl Notifier {
    /// A notifier that asks these rules.
    #[must_use]
    pub fn builder(rules: Arc<LiveRules>) -> NotifierBuilder {
        NotifierBuilder { rules, observer: Arc::new(NoObserver), backoff: BackoffSettings::DEFAULT, seed: 0 }
    }

    /// Adds a target with its queue, and starts to send it what the queue has. Its events are written in this style.
    ///
    /// # Errors
    ///
    /// There is a target of that kind and identifier. The queue is closed then.
    pub async fn add(&self, target: Arc<dyn Target>, queue: Queue, style: Style) -> Result<(), AddError> {
        let arn = target.arn().clone();
        let name = (arn.kind, arn.id.clone());
        let (phase, worker_phase) = watch::channel(Phase::Running);
        let lane = Arc::new(Lane {
            target,
            queue,
            style,
            counters: Arc::default(),
            phase,
            worker: parking_lot::Mutex::default(),
        });
        let before = self.lanes.rcu(|lanes| {
            let mut lanes = Lanes::clone(lanes);
            lanes.entry(name.clone()).or_insert_with(|| lane.clone());
            lanes
        });
        if before.contains_key(&name) {
            drop(before);
            lane.queue.clone().close().await;
            return Err(AddError { arn });
        }
        let worker = Worker {
            target: lane.target.clone(),
            queue: lane.queue.clone(),
            counters: lane.counters.clone(),
            observer: self.observer.clone(),
            backoff: Backoff::new(self.backoff, self.seed ^ fnv1a_64(arn.to_string().bytes())),
            phase: worker_phase,
        };
        *lane.worker.lock() = Some(self.runtime.spawn(worker.run()));
        Ok(())
    }

    /// Takes a target out: no further event goes there. What its queue has is sent for so long at most; the rest stays in
    /// the queue, which is closed. `false` if there is no such target.
    pub async fn remove(&self, arn: &Arn, patience: Duration) -> bool {
        let name = (arn.kind, arn.id.clone());
        let before = self.lanes.rcu(|lanes| {
            let mut lanes = Lanes::clone(lanes);
            lanes.remove(&name);
            lanes
        });
        let Some(lane) = before.get(&name).cloned() else { return false };
        drop(before);
        end(lane, patience).await;
        true
    }

    /// Takes all targets out, at the same time; see [`remove`](Self::remove).
    pub async fn close(&self, patience: Duration) {
        let lanes = self.lanes.swap(Arc::default());
        let lanes: Vec<Arc<Lane>> = lanes.values().cloned().collect();
        join_all(lanes.into_iter().map(|lane| end(lane, patience))).await;
    }

    /// Whether anybody wants to know of such events in this bucket, whatever the key: if not, the event need not be made.
    #[must_use]
    pub fn wants(&self, bucket: &str, event: EventName) -> bool {
        self.rules.snapshot().wants(bucket, event)
    }

    /// Puts an event into the queues of all targets that are to be told of it, and returns when they have it, as
    /// durably as each is set up.
    ///
    /// No target is waited for, but a queue that is full and set up to block. Each is served whatever becomes of the others.
    /// Events of a key keep their order if this is awaited for one before the next. A future that is dropped may have put
    /// the event into any of the queues.
    ///
    /// # Errors
    ///
    /// The targets that will not get to know of it, with the reason of each.
    pub async fn notify(&self, event: &Event) -> Result<(), Missed> {
        let rules = self.rules.snapshot();
        let matches = rules.matches(event.bucket(), event.key(), event.name());
        if matches.is_empty() {
            return Ok(());
        }
        let lanes = self.lanes.load_full();
        let key = Bytes::from(event.record_key());
        let mut written: Vec<Written<'_>> = Vec::new();
        let mut puts = Vec::with_capacity(matches.len());
        let mut missed = Vec::new();
        for rule in matches {
            let arn = rule.destination();
            let Some(lane) = lanes.get(&(arn.kind, arn.id.clone())) else {
                self.observer.on(&DeliveryEvent::UnknownTarget { target: arn });
                missed.push((arn.clone(), MissedError::UnknownTarget));
                continue;
            };
            let value = write(event, lane.style, rule, &mut written);
            let mut message = Message::new(event.name(), key.clone(), value, event.time());
            message.topic = rule.topic().cloned();
            puts.push(async move { (lane, lane.queue.put(message).await) });
        }
        for (lane, outcome) in join_all(puts).await {
            if let Err(error) = outcome {
                Counters::add(&lane.counters.refused, 1);
                let target = lane.target.arn();
                self.observer.on(&DeliveryEvent::Refused { target, error: &error });
                missed.push((target.clone(), MissedError::Queue(error)));
            }
        }
        if missed.is_empty() { Ok(()) } else { Err(Missed { targets: missed }) }
    }

    /// The queue of a target, so that its dead letters can be put into it again.
    #[must_use]
    pub fn queue(&self, arn: &Arn) -> Option<Queue> {
        self.lane(arn).map(|lane| lane.queue.clone())
    }

    /// Whether the other side of a target can be reached; `None` if there is no such target. It is asked for so long at
    /// most, beside what is being sent.
    pub async fn probe(&self, arn: &Arn, patience: Duration) -> Option<Result<(), SendError>> {
        let lane = self.lane(arn)?;
        let timed_out = |_| Err(SendError::temporary(format!("no answer within {patience:?}")));
        Some(tokio::time::timeout(patience, lane.target.probe()).await.unwrap_or_else(timed_out))
    }

    /// How each target is doing, by kind and identifier.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> Vec<TargetStatus> {
        let lanes = self.lanes.load();
        lanes.values().map(|lane| lane.counters.status(lane.target.arn(), &lane.queue.stats(), now)).collect()
    }

    fn lane(&self, arn: &Arn) -> Option<Arc<Lane>> {
        self.lanes.load().get(&(arn.kind, arn.id.clone())).cloned()
    }
}

/// A target of that kind and identifier was added before.
#[derive(Debug, thiserror::Error)]
#[error("there is a target `{arn}` already")]
pub struct AddError {
    arn: Arn,
}

/// Targets that will not get to know of an event.
#[derive(Debug)]
pub struct Missed {
    targets: Vec<(Arn, MissedError)>,
}

impl Missed {
    /// The targets, with the reason of each.
    #[must_use]
    pub fn targets(&self) -> &[(Arn, MissedError)] {
        &self.targets
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (arn, reason)) in self.targets.iter().enumerate() {
            let between = if at == 0 { "" } else { "; " };
            write!(f, "{between}`{arn}`: {reason}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Missed {}

/// Why a target will not get to know of an event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MissedError {
    /// A rule names a target that does not exist.
    #[error("there is no such target")]
    UnknownTarget,
    /// Its queue did not take it.
    #[error(transparent)]
    Queue(PutError),
}

/// An event in one style, for all targets of that style; some styles repeat the rule's identifier.
struct Written<'a> {
    style: Style,
    rule_id: &'a str,
    value: Bytes,
}

fn write<'a>(event: &Event, style: Style, rule: &'a Rule, written: &mut Vec<Written<'a>>) -> Bytes {
    let rule_id = rule.id();
    let same =
        |other: &&Written<'_>| other.style == style && (style == Style::Minio || other.rule_id == rule_id);
    if let Some(other) = written.iter().find(same) {
        return other.value.clone();
    }
    let mut value = Vec::new();
    event.write_message(style, rule_id, &mut value);
    let value = Bytes::from(value);
    written.push(Written { style, rule_id, value: value.clone() });
    value
}

/// Lets a lane's worker work off the queue for so long, stops it, and closes the queue.
async fn end(lane: Arc<Lane>, patience: Duration) {
    lane.queue.seal();
    lane.phase.send_replace(Phase::Draining);
    let worker = lane.worker.lock().take();
    if let Some(mut worker) = worker
        && tokio::time::timeout(patience, &mut worker).await.is_err()
    {
        lane.phase.send_replace(Phase::Stopped);
        // A worker that was aborted with its runtime has nothing under way either.
        let _ = worker.await;
    }
    lane.queue.clone().close().await;
}
