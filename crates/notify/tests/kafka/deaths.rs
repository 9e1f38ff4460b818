//! A broker that is killed while events flow: nothing that was put is lost, and the events of a key keep their order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kolumn_notify::delivery::{BackoffSettings, Notifier};
use kolumn_notify::event::{Event, EventName, Origin, Style, Timestamp};
use kolumn_notify::queue::{Queue, QueueOptions};
use kolumn_notify::rules::{BucketRules, LiveRules, Rule, RuleSet};
use tokio::runtime::Handle;

use crate::server::{Kafka, PATIENCE, TOPIC, Way};

const ARN: &str = "arn:minio:sqs::primary:kafka";
const KEYS: u64 = 50;

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_killed_again_and_again_gets_every_event_in_the_order_of_its_key() {
    let kills = std::env::var("KOLUMN_KILLS").ok().map_or(3, |kills| kills.parse().unwrap());
    let mut kafka = Kafka::start().await;
    let notifier = Arc::new(notifier());
    let dir = tempfile::tempdir().unwrap();
    let (disk, _) = kolumn_journal::probe(dir.path()).unwrap();
    let mut options = QueueOptions::default();
    options.messages_max = u64::MAX;
    let queue = Queue::open(disk, options).unwrap();
    notifier.add(Arc::new(kafka.target(&Way::open())), queue, Style::Minio).await.unwrap();

    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(put_until(notifier.clone(), stop.clone()));
    for _ in 0..kills {
        let sent = sent(&notifier);
        until("events flow", || self::sent(&notifier) > sent + 500).await;
        kafka.kill();
        tokio::time::sleep(Duration::from_millis(500)).await;
        kafka.run();
        drop(kafka.client().await);
    }
    stop.store(true, Ordering::Relaxed);
    let count = writer.await.unwrap();
    until("all is sent", || status(&notifier).queued == 0).await;
    notifier.close(Duration::from_secs(10)).await;

    let found = kafka.records(TOPIC, usize::try_from(count).unwrap()).await;
    let repeated = check(&found, count);
    println!("{count} events, {kills} kills, {repeated} arrived more than once");
}

fn notifier() -> Notifier {
    let rule = Rule::new(ARN.parse().unwrap(), ["s3:ObjectCreated:*".parse().unwrap()]).unwrap();
    let rules = Arc::new(LiveRules::new(RuleSet::new(BucketRules::new(vec![rule]), [])));
    let backoff = BackoffSettings::new(Duration::from_millis(50), Duration::from_secs(1));
    Notifier::builder(rules).with_backoff(backoff).start(Handle::current())
}

/// Puts numbered events of some keys, as their objects' sizes; says how many.
async fn put_until(notifier: Arc<Notifier>, stop: Arc<AtomicBool>) -> u64 {
    let origin = Arc::new(Origin::default());
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let now = Timestamp::from_unix_nanos(1_000_000_000 + number);
        let key = format!("k{}", number % KEYS);
        let event = Event::builder(&origin, EventName::ObjectCreatedPut, "photos", &key).size(number + 1);
        notifier.notify(&event.build(now).unwrap()).await.unwrap();
        number += 1;
        if number.is_multiple_of(20) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    number
}

/// That each event arrived, and each key's for the first time in order. Says how many came again.
fn check(found: &[(String, String)], count: u64) -> u64 {
    let mut next: BTreeMap<&str, u64> = BTreeMap::new();
    let mut repeated = 0;
    let mut seen = vec![false; usize::try_from(count).unwrap()];
    for (key, value) in found {
        let size = value.split_once(r#""size":"#).unwrap().1;
        let digits: String = size.chars().take_while(char::is_ascii_digit).collect();
        let number = digits.parse::<u64>().unwrap() - 1;
        let index = usize::try_from(number).unwrap();
        if seen[index] {
            repeated += 1;
            continue;
        }
        seen[index] = true;
        let before = next.insert(key, number + 1).unwrap_or_default();
        assert!(number >= before, "{key}: {number} arrived after {before}");
    }
    let missing: Vec<usize> = (0..seen.len()).filter(|index| !seen[*index]).collect();
    assert!(missing.is_empty(), "{} of {count} are missing: {:?}", missing.len(), missing.get(..20));
    repeated
}

fn status(notifier: &Notifier) -> kolumn_notify::delivery::TargetStatus {
    notifier.status(Timestamp::default()).remove(0)
}

fn sent(notifier: &Notifier) -> u64 {
    status(notifier).sent
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
