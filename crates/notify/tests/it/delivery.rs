//! From an event through rules and queues to targets, whatever becomes of one of them.

use std::sync::Arc;
use std::time::Duration;

use kolumn_notify::delivery::MissedError;
use kolumn_notify::event::{EventName, Style};
use kolumn_notify::queue::PutErrorKind;
use kolumn_notify::target::Limits;
use kolumn_notify::target::memory::MemoryTarget;

use crate::delivery_support::{
    AUDIT, PRIMARY, add, add_with_letters, event, keys, notifier, notify_all, queue, status, until,
    until_arrived,
};

#[tokio::test(start_paused = true)]
async fn an_event_goes_to_each_target_that_rules_name_once() {
    let (notifier, observer) = notifier(&[PRIMARY, AUDIT, PRIMARY]);
    let primary = add(&notifier, PRIMARY, 10, Limits::DEFAULT).await;
    let audit = add(&notifier, AUDIT, 10, Limits::DEFAULT).await;
    notify_all(&notifier, ["a b", "c"]).await;
    notifier.close(Duration::from_secs(1)).await;
    assert_eq!(keys(&primary.side), ["a b", "c"]);
    assert_eq!(primary.side.received(), audit.side.received());
    let value = String::from_utf8(primary.side.received()[0].value.to_vec()).unwrap();
    assert!(value.starts_with(r#"{"EventName":"s3:ObjectCreated:Put","Key":"photos/a b","Records":[{"#));
    let mut lines = observer.lines();
    lines.sort();
    assert_eq!(lines, ["audit stopped 0", "primary stopped 0"]);
}

#[tokio::test(start_paused = true)]
async fn what_no_rule_names_is_not_wanted_and_goes_nowhere() {
    let (notifier, _) = notifier(&[PRIMARY]);
    let primary = add(&notifier, PRIMARY, 10, Limits::DEFAULT).await;
    let audit = add(&notifier, AUDIT, 10, Limits::DEFAULT).await;
    assert!(notifier.wants("photos", EventName::ObjectCreatedPut));
    assert!(!notifier.wants("photos", EventName::ObjectRemovedDelete));
    notify_all(&notifier, ["a"]).await;
    notifier.close(Duration::from_secs(1)).await;
    assert_eq!((keys(&primary.side).len(), keys(&audit.side).len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn each_target_gets_its_own_style() {
    let (notifier, _) = notifier(&[PRIMARY, AUDIT]);
    let mut sides = Vec::new();
    for (arn, style) in [(PRIMARY, Style::Aws), (AUDIT, Style::CloudEvents)] {
        let (target, side) = MemoryTarget::new(arn.parse().unwrap());
        notifier.add(Arc::new(target), queue(10, 10).0, style).await.unwrap();
        sides.push(side);
    }
    notify_all(&notifier, ["a"]).await;
    notifier.close(Duration::from_secs(1)).await;
    let values = sides.iter().map(|side| String::from_utf8(side.received()[0].value.to_vec()).unwrap());
    let values: Vec<String> = values.collect();
    assert!(values[0].starts_with(r#"{"Records":[{"eventVersion":"2.1""#), "{}", values[0]);
    assert!(values[1].contains(r#""specversion":"1.0""#), "{}", values[1]);
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_down_is_tried_for_ever_and_others_do_not_notice() {
    let (notifier, observer) = notifier(&[PRIMARY, AUDIT]);
    let primary = add(&notifier, PRIMARY, 1000, Limits::DEFAULT).await;
    let audit = add(&notifier, AUDIT, 1000, Limits::DEFAULT).await;
    primary.side.set_down(true);
    notify_all(&notifier, ["a", "b"]).await;
    until_arrived(&audit.side, 2).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let trouble = status(&notifier, PRIMARY).trouble.unwrap();
    assert_eq!(trouble.reason, "the other side is down");
    // Waits grow to between five and ten seconds, and no further.
    assert!((60..=130).contains(&trouble.failures), "{}", trouble.failures);
    assert_eq!(status(&notifier, PRIMARY).retries, u64::from(trouble.failures) - 1);
    assert_eq!(status(&notifier, AUDIT).trouble, None);

    notify_all(&notifier, ["c"]).await;
    primary.side.set_down(false);
    until_arrived(&primary.side, 3).await;
    assert_eq!(keys(&primary.side), ["a", "b", "c"]);
    assert_eq!(status(&notifier, PRIMARY).trouble, None);
    let last = observer.lines().into_iter().rfind(|line| line.starts_with("primary")).unwrap();
    assert!(last.starts_with("primary recovered "), "{last}");
}

#[tokio::test(start_paused = true)]
async fn what_arrived_before_a_failure_is_not_sent_again() {
    let (notifier, _) = notifier(&[PRIMARY]);
    let primary = add(&notifier, PRIMARY, 1000, Limits::DEFAULT).await;
    primary.side.set_down(true);
    notify_all(&notifier, ["a", "b", "c", "d", "e"]).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    primary.side.cut_after(2);
    primary.side.set_down(false);
    until_arrived(&primary.side, 2).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(keys(&primary.side), ["a", "b"]);
    assert_eq!((status(&notifier, PRIMARY).sent, status(&notifier, PRIMARY).queued), (2, 3));
    primary.side.set_down(false);
    until_arrived(&primary.side, 5).await;
    assert_eq!(keys(&primary.side), ["a", "b", "c", "d", "e"]);
    assert_eq!(status(&notifier, PRIMARY).sent, 5);
}

#[tokio::test(start_paused = true)]
async fn what_is_never_taken_is_set_aside_and_what_follows_is_sent() {
    let (notifier, observer) = notifier(&[PRIMARY]);
    let primary = add(&notifier, PRIMARY, 1000, Limits::DEFAULT).await;
    for key in ["photos/b", "photos/c", "photos/e"] {
        primary.side.refuse(key);
    }
    notify_all(&notifier, ["a", "b", "c", "d", "e"]).await;
    until_arrived(&primary.side, 2).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(keys(&primary.side), ["a", "d"]);
    until("three are set aside", || status(&notifier, PRIMARY).failed == 3).await;
    let numbers = primary.letters.numbers(None, 10);
    let letters: Vec<_> = numbers.iter().map(|number| primary.letters.read(*number).unwrap()).collect();
    assert_eq!(
        letters.iter().map(|letter| &letter.message.key[..]).collect::<Vec<_>>(),
        [b"photos/b", b"photos/c", b"photos/e"]
    );
    assert!(letters.iter().all(|letter| letter.reason == "the message is refused"));
    let found = status(&notifier, PRIMARY);
    assert_eq!((found.sent, found.failed, found.queued, found.retries), (2, 3, 0, 0));
    assert_eq!(observer.lines().len(), 3);
    assert_eq!(observer.lines()[0], "primary set aside photos/b: the message is refused");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_while_dead_letters_cannot_be_kept() {
    let (notifier, observer) = notifier(&[PRIMARY]);
    let primary = add_with_letters(&notifier, PRIMARY, 1000, Limits::DEFAULT, 1).await;
    primary.side.refuse("photos/a");
    primary.side.refuse("photos/b");
    notify_all(&notifier, ["a"]).await;
    until("one is set aside", || primary.letters.stats().letters == 1).await;
    notify_all(&notifier, ["b", "c"]).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let failed =
        "primary failed 1: an event could not be set aside: the dead letters did not take the message: ";
    assert!(observer.lines()[1].starts_with(failed), "{:?}", observer.lines());
    assert_eq!((status(&notifier, PRIMARY).queued, primary.letters.stats().letters), (2, 1));
    let number = primary.letters.numbers(None, 1)[0];
    primary.letters.remove(number).await.unwrap();
    until_arrived(&primary.side, 1).await;
    until("the other is set aside", || primary.letters.stats().letters == 1).await;
    assert_eq!(keys(&primary.side), ["c"]);
    assert_ne!(primary.letters.numbers(None, 1), [number]);
}

#[tokio::test(start_paused = true)]
async fn a_target_that_panics_or_hangs_is_tried_again() {
    let (notifier, observer) = notifier(&[PRIMARY, AUDIT]);
    let patience = Duration::from_secs(5);
    let primary = add(&notifier, PRIMARY, 1000, Limits::DEFAULT.with_patience(patience)).await;
    let audit = add(&notifier, AUDIT, 1000, Limits::DEFAULT).await;
    primary.side.panic_once("index out of bounds");
    notify_all(&notifier, ["a"]).await;
    until_arrived(&primary.side, 1).await;
    primary.side.set_delay(Duration::from_hours(1));
    notify_all(&notifier, ["b"]).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    primary.side.set_delay(Duration::ZERO);
    until_arrived(&primary.side, 2).await;
    assert_eq!(keys(&primary.side), ["a", "b"]);
    assert_eq!(keys(&audit.side), ["a", "b"]);
    let lines = observer.lines();
    assert_eq!(lines[0], "primary failed 1: the target panicked: index out of bounds");
    assert!(lines.contains(&"primary failed 1: it was not done after 5s".to_owned()), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn the_other_side_may_ask_to_be_left_alone() {
    let (notifier, observer) = notifier(&[PRIMARY]);
    let primary = add(&notifier, PRIMARY, 10, Limits::DEFAULT).await;
    primary.side.set_retry_after(Some(Duration::from_secs(100)));
    primary.side.set_down(true);
    notify_all(&notifier, ["a"]).await;
    tokio::time::sleep(Duration::from_secs(99)).await;
    assert_eq!(observer.lines().len(), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(observer.lines().len(), 2);
    // But not for a day.
    primary.side.set_retry_after(Some(Duration::from_hours(24)));
    tokio::time::sleep(Duration::from_secs(400)).await;
    primary.side.set_down(false);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(keys(&primary.side), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn batches_have_no_more_than_the_target_takes() {
    let (notifier, _) = notifier(&[PRIMARY]);
    let primary = add(&notifier, PRIMARY, 1000, Limits::DEFAULT.with_events(4)).await;
    primary.side.set_down(true);
    notify_all(&notifier, ["0"]).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    notify_all(&notifier, (1..10).map(|at| ["1", "2", "3"][at % 3])).await;
    primary.side.set_down(false);
    until_arrived(&primary.side, 10).await;
    let batches = primary.side.batches();
    assert_eq!(
        batches.iter().filter(|count| **count > 1).copied().collect::<Vec<_>>(),
        [4, 4],
        "{batches:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_is_told_and_others_get_the_event() {
    let (notifier, observer) = notifier(&[PRIMARY, AUDIT]);
    let primary = add(&notifier, PRIMARY, 2, Limits::DEFAULT).await;
    let audit = add(&notifier, AUDIT, 1000, Limits::DEFAULT).await;
    primary.side.set_down(true);
    notify_all(&notifier, ["a", "b"]).await;
    let missed = notifier.notify(&event("c")).await.unwrap_err();
    assert!(
        missed.to_string().starts_with(&format!("`{PRIMARY}`: the queue is full: 2 messages")),
        "{missed}"
    );
    let [(arn, MissedError::Queue(error))] = missed.targets() else { panic!("{missed:?}") };
    assert_eq!((arn.to_string().as_str(), error.kind()), (PRIMARY, PutErrorKind::Full));
    until_arrived(&audit.side, 3).await;
    assert_eq!((status(&notifier, PRIMARY).refused, status(&notifier, PRIMARY).queued), (1, 2));
    assert!(observer.lines().iter().any(|line| line.starts_with("primary refused: the queue is full")));
}

#[tokio::test(start_paused = true)]
async fn a_rule_whose_target_is_gone_is_told_and_others_get_the_event() {
    let (notifier, observer) = notifier(&[PRIMARY, AUDIT]);
    let audit = add(&notifier, AUDIT, 1000, Limits::DEFAULT).await;
    let missed = notifier.notify(&event("a")).await.unwrap_err();
    assert_eq!(missed.to_string(), format!("`{PRIMARY}`: there is no such target"));
    until_arrived(&audit.side, 1).await;
    assert_eq!(observer.lines(), ["primary unknown"]);
}

#[tokio::test(start_paused = true)]
async fn closing_sends_what_waits_for_as_long_as_there_is_patience() {
    let (notifier, observer) = notifier(&[PRIMARY, AUDIT]);
    let one = Limits::DEFAULT.with_events(1);
    let primary = add(&notifier, PRIMARY, 1000, one).await;
    let audit = add(&notifier, AUDIT, 1000, one).await;
    primary.side.set_delay(Duration::from_secs(1));
    audit.side.set_delay(Duration::from_secs(10));
    notify_all(&notifier, ["a", "b", "c", "d", "e"]).await;
    notifier.close(Duration::from_secs(30)).await;
    assert_eq!(keys(&primary.side), ["a", "b", "c", "d", "e"]);
    // The third may have been under way.
    assert!((2..=3).contains(&keys(&audit.side).len()));
    let left = audit.queue.stats();
    assert!((2..=3).contains(&left.queued), "{left:?}");
    assert_eq!((left.under_way, primary.queue.stats().queued), (0, 0));
    assert!(observer.lines().contains(&format!("audit stopped {}", left.queued)));
    assert!(audit.queue.put(message_of("f")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_a_target_that_is_down() {
    let (notifier, _) = notifier(&[PRIMARY]);
    let primary = add(&notifier, PRIMARY, 1000, Limits::DEFAULT).await;
    primary.side.set_down(true);
    notify_all(&notifier, ["a", "b"]).await;
    let begin = tokio::time::Instant::now();
    notifier.close(Duration::from_secs(30)).await;
    assert!(begin.elapsed() <= Duration::from_secs(31));
    assert_eq!((primary.queue.stats().queued, primary.queue.stats().under_way), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn targets_come_and_go_while_events_are_told() {
    let (notifier, _) = notifier(&[PRIMARY, AUDIT]);
    let primary = add(&notifier, PRIMARY, 1000, Limits::DEFAULT).await;
    let audit = add(&notifier, AUDIT, 1000, Limits::DEFAULT).await;
    notify_all(&notifier, ["a"]).await;
    assert!(notifier.remove(&AUDIT.parse().unwrap(), Duration::from_secs(1)).await);
    assert!(!notifier.remove(&AUDIT.parse().unwrap(), Duration::from_secs(1)).await);
    assert!(notifier.notify(&event("b")).await.is_err());
    let again = add(&notifier, AUDIT, 1000, Limits::DEFAULT).await;
    notify_all(&notifier, ["c"]).await;
    notifier.close(Duration::from_secs(1)).await;
    assert_eq!((keys(&audit.side), keys(&again.side)), (vec!["a".into()], vec!["c".into()]));
    assert_eq!(keys(&primary.side), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_target_is_added_once_and_the_queue_of_the_other_is_closed() {
    let (notifier, _) = notifier(&[PRIMARY]);
    let primary = add(&notifier, PRIMARY, 10, Limits::DEFAULT).await;
    let (target, _) = MemoryTarget::new("arn:minio:sqs:eu-central-1:PRIMARY:kafka".parse().unwrap());
    let (other, _) = queue(10, 10);
    let error = notifier.add(Arc::new(target), other.clone(), Style::Minio).await.unwrap_err();
    assert_eq!(error.to_string(), "there is a target `arn:minio:sqs:eu-central-1:primary:kafka` already");
    assert!(other.put(message_of("a")).await.is_err());
    assert!(primary.queue.put(message_of("a")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_target_can_be_asked_whether_its_other_side_is_there() {
    let (notifier, _) = notifier(&[PRIMARY]);
    let primary = add(&notifier, PRIMARY, 10, Limits::DEFAULT).await;
    let arn = PRIMARY.parse().unwrap();
    let second = Duration::from_secs(1);
    assert!(notifier.probe(&arn, second).await.unwrap().is_ok());
    primary.side.set_down(true);
    let error = notifier.probe(&arn, second).await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the other side is down");
    assert!(notifier.probe(&AUDIT.parse().unwrap(), second).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_sent_after_all_when_it_is_put_again() {
    let (notifier, _) = notifier(&[PRIMARY]);
    let primary = add(&notifier, PRIMARY, 10, Limits::DEFAULT).await;
    primary.side.refuse("photos/a");
    notify_all(&notifier, ["a", "b"]).await;
    until("it is set aside", || primary.letters.stats().letters == 1).await;
    primary.side.accept("photos/a");
    let queue = notifier.queue(&PRIMARY.parse().unwrap()).unwrap();
    let number = primary.letters.numbers(None, 1)[0];
    primary.letters.replay(number, &queue).await.unwrap();
    until_arrived(&primary.side, 2).await;
    assert_eq!(keys(&primary.side), ["b", "a"]);
    assert_eq!(primary.letters.stats().letters, 0);
}

fn message_of(key: &str) -> kolumn_notify::queue::Message {
    let event = event(key);
    let mut value = Vec::new();
    event.write_message(Style::Minio, "", &mut value);
    kolumn_notify::queue::Message::new(event.name(), event.record_key(), value, event.time())
}
