//! What tests of delivery share: rules, events, an observer that remembers, queues on a simulated disk.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kolumn_journal::sim::SimDisk;
use kolumn_notify::config::Arn;
use kolumn_notify::delivery::{BackoffSettings, DeliveryEvent, Notifier, Observer, TargetStatus};
use kolumn_notify::event::{Event, EventName, Origin, Style, Timestamp};
use kolumn_notify::queue::{DeadLetters, LetterOptions, Queue};
use kolumn_notify::rules::{BucketRules, LiveRules, Rule, RuleSet};
use kolumn_notify::target::memory::{MemoryTarget, OtherSide};
use kolumn_notify::target::{Limits, chain};
use tokio::runtime::Handle;

use crate::queue_support::{disk, small};

pub(crate) const PRIMARY: &str = "arn:minio:sqs::primary:kafka";
pub(crate) const AUDIT: &str = "arn:minio:sqs::audit:webhook";

/// Remembers what happened, a line each.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Recorder {
    fn on(&self, event: &DeliveryEvent<'_>) {
        let line = match event {
            DeliveryEvent::Failed { target, error, failures, .. } => {
                format!("{} failed {failures}: {}", target.id, chain(*error))
            }
            DeliveryEvent::Recovered { target, failures } => format!("{} recovered {failures}", target.id),
            DeliveryEvent::SetAside { target, key, error, .. } => {
                format!("{} set aside {}: {}", target.id, String::from_utf8_lossy(key), chain(*error))
            }
            DeliveryEvent::UnknownTarget { target } => format!("{} unknown", target.id),
            DeliveryEvent::Refused { target, error } => format!("{} refused: {error}", target.id),
            DeliveryEvent::Stopped { target, queued } => format!("{} stopped {queued}", target.id),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(line);
    }
}

/// A notifier whose rules send every event to these targets, and what it told its observer.
pub(crate) fn notifier(targets: &[&str]) -> (Notifier, Arc<Recorder>) {
    let rule = |arn: &&str| Rule::new(arn.parse().unwrap(), ["s3:ObjectCreated:*".parse().unwrap()]).unwrap();
    let rules = BucketRules::new(targets.iter().map(rule).collect());
    let rules = Arc::new(LiveRules::new(RuleSet::new(rules, [])));
    let observer = Arc::<Recorder>::default();
    let backoff = BackoffSettings::new(Duration::from_millis(100), Duration::from_secs(10));
    let builder = Notifier::builder(rules).with_observer(observer.clone()).with_backoff(backoff).with_seed(7);
    (builder.start(Handle::current()), observer)
}

/// A target in memory, its queue, and its dead letters.
pub(crate) struct Lane {
    pub(crate) queue: Queue,
    pub(crate) letters: DeadLetters,
    pub(crate) side: Arc<OtherSide>,
}

/// Adds a target in memory, with a queue for so many events and room for ten dead letters.
pub(crate) async fn add(notifier: &Notifier, arn: &str, limit: u64, limits: Limits) -> Lane {
    add_with_letters(notifier, arn, limit, limits, 10).await
}

pub(crate) async fn add_with_letters(
    notifier: &Notifier,
    arn: &str,
    limit: u64,
    limits: Limits,
    letters_max: u64,
) -> Lane {
    let (target, side) = MemoryTarget::new(arn.parse().unwrap());
    let (queue, letters) = queue(limit, letters_max);
    notifier.add(Arc::new(target.with_limits(limits)), queue.clone(), Style::Minio).await.unwrap();
    Lane { queue, letters, side }
}

/// A queue without threads: what its threads would do is done on the test's clock, so that the clock stands still
/// meanwhile. The dead letters have a thread.
pub(crate) fn queue(limit: u64, letters_max: u64) -> (Queue, DeadLetters) {
    let mut options = LetterOptions::default();
    options.letter_len_max = 8 << 10;
    options.file_len = 64 << 10;
    options.letters_max = letters_max;
    let letters = DeadLetters::open(disk(&SimDisk::new(1)), options).unwrap();
    let mut options = small(1);
    options.messages_max = limit;
    options.dead_letters = Some(letters.clone());
    let (queue, mut stepper) = Queue::open_stepped(disk(&SimDisk::new(2)), options).unwrap();
    tokio::spawn(async move {
        loop {
            stepper.settle();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    (queue, letters)
}

pub(crate) fn event(key: &str) -> Event {
    numbered_event(key, 1)
}

/// An event that is told from others of its key by the size of its object.
pub(crate) fn numbered_event(key: &str, number: u64) -> Event {
    let origin = Arc::new(Origin::default());
    let now = Timestamp::from_unix_nanos(1_000_000_000);
    Event::builder(&origin, EventName::ObjectCreatedPut, "photos", key).size(number).build(now).unwrap()
}

/// Tells of objects with these keys, one after the other.
pub(crate) async fn notify_all<'a>(notifier: &Notifier, keys: impl IntoIterator<Item = &'a str>) {
    for key in keys {
        notifier.notify(&event(key)).await.unwrap();
    }
}

/// The keys that arrived, without the bucket.
pub(crate) fn keys(side: &OtherSide) -> Vec<String> {
    let key =
        |key: &[u8]| String::from_utf8(key.to_vec()).unwrap().strip_prefix("photos/").unwrap().to_owned();
    side.received().iter().map(|message| key(&message.key)).collect()
}

/// How a target is doing, three seconds after the events.
pub(crate) fn status(notifier: &Notifier, arn: &str) -> TargetStatus {
    let arn: Arn = arn.parse().unwrap();
    let status = notifier.status(Timestamp::from_unix_nanos(4_000_000_000));
    status.into_iter().find(|status| status.arn == arn).unwrap()
}

/// Waits on the test's clock until this holds.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let outcome = tokio::time::timeout(Duration::from_mins(10), waiting).await;
    assert!(outcome.is_ok(), "{what}");
}

/// Waits on the test's clock until so many events have arrived.
pub(crate) async fn until_arrived(side: &OtherSide, count: usize) {
    until(&format!("{count} events arrive"), || side.received().len() >= count).await;
}
