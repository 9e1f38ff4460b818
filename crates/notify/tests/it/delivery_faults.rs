//! Targets that fail at random, and what holds whatever they do.

use std::collections::BTreeMap;
use std::time::Duration;

use kolumn_notify::target::Limits;
use serde_json::Value;

use crate::delivery_support::{PRIMARY, add_with_letters, notifier, numbered_event, until};
use crate::queue_support::{Chance, seeds};

#[tokio::test(start_paused = true)]
async fn whatever_fails_each_event_arrives_once_and_those_of_a_key_in_order() {
    for seed in 0..seeds(10) {
        check(seed).await;
    }
}

async fn check(seed: u64) {
    let mut chance = Chance(2 * seed + 1);
    let (notifier, _) = notifier(&[PRIMARY]);
    // Nothing takes that long, so no send is given up, after which an event might arrive twice.
    let limits = Limits::DEFAULT.with_events(1 + chance.index(9)).with_patience(Duration::from_hours(1));
    let primary = add_with_letters(&notifier, PRIMARY, 10_000, limits, 10_000).await;
    let side = &primary.side;
    side.refuse("photos/refused");
    let mut sent: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for number in 1..=200 {
        match chance.below(12) {
            0 => side.set_down(true),
            1 | 2 => side.set_down(false),
            3 => side.cut_after(chance.index(5)),
            4 => side.set_delay(Duration::from_millis(chance.below(50))),
            5 => side.panic_once("as the test asks for"),
            6 => tokio::time::sleep(Duration::from_millis(chance.below(500))).await,
            _ => {}
        }
        let key = ["a", "b", "c", "refused"][chance.index(4)];
        notifier.notify(&numbered_event(key, number)).await.unwrap();
        sent.entry(key.to_owned()).or_default().push(number);
    }
    side.cut_after(usize::MAX);
    side.set_down(false);
    notifier.close(Duration::from_hours(1)).await;

    let mut arrived: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for message in side.received() {
        let (key, number) = key_and_number(&message.value);
        arrived.entry(key).or_default().push(number);
    }
    let refused = sent.remove("refused").unwrap_or_default();
    assert_eq!(arrived, sent, "seed {seed}");
    assert_eq!(primary.queue.stats().queued, 0, "seed {seed}");
    until("all letters are kept", || primary.letters.stats().letters == refused.len() as u64).await;
    let numbers = primary.letters.numbers(None, usize::MAX);
    let letters = numbers.iter().map(|number| primary.letters.read(*number).unwrap().message);
    let letters: Vec<u64> = letters.map(|message| key_and_number(&message.value).1).collect();
    assert_eq!(letters, refused, "seed {seed}");
}

fn key_and_number(value: &[u8]) -> (String, u64) {
    let value: Value = serde_json::from_slice(value).unwrap();
    let object = &value["Records"][0]["s3"]["object"];
    (object["key"].as_str().unwrap().to_owned(), object["size"].as_u64().unwrap())
}
