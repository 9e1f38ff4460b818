//! Checks of the [`Target`] contract that every target can run in its own tests.
//!
//! A [`Fixture`] makes targets and stands on the other side of them: it says what arrived there, and it can take the other
//! side away. Each check has keys of its own, so that all can share one other side. Checks wait in real time, and no longer
//! than [`Fixture::patience`] for what is to happen.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use tokio::time::timeout;

use super::{BoxFuture, SendError, SendErrorKind, Target, chain};
use crate::event::{EventName, Timestamp};
use crate::queue::{Delivery, Message};

/// Makes targets, and has the other side of them in its hands.
///
/// What a fixture cannot do it leaves out by the methods that say so, and the checks which need that are not run.
pub trait Fixture: Send + Sync {
    /// A new target, connected to nothing yet. The other side may be down.
    ///
    /// # Errors
    ///
    /// It cannot be made, which fails the check.
    fn target(&self) -> Result<Arc<dyn Target>, Failure>;

    /// What arrived at the other side since the fixture was made, in the order of arrival.
    fn arrived(&self) -> BoxFuture<'_, Result<Vec<Arrived>, Failure>>;

    /// Takes the other side away, so that connections to it end and new ones fail, or brings it back with all it had.
    fn set_down(&self, is_down: bool) -> BoxFuture<'_, Result<(), Failure>>;

    /// What the other side keeps.
    fn keeps(&self) -> Keeps {
        Keeps::All
    }

    /// A message that the other side will never take, if there is one, though it would take it if the key and value were
    /// others.
    fn unacceptable(&self) -> Option<(Bytes, Bytes)> {
        None
    }

    /// Goes down by itself once this many more messages have arrived. `false` if it cannot.
    fn cut_after(&self, messages: usize) -> bool {
        let _ = messages;
        false
    }

    /// Texts that must show nowhere.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }

    /// How long anything may take.
    fn patience(&self) -> Duration {
        Duration::from_secs(20)
    }
}

/// A message at the other side.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "fixtures make it")]
pub struct Arrived {
    /// Its key, as the target was given it.
    pub key: Bytes,
    /// Its value.
    pub value: Bytes,
}

/// What the other side keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the two formats of targets that keep what they get")]
pub enum Keeps {
    /// Every message, in the order of arrival by key.
    All,
    /// Of each key the message that arrived last.
    NewestOfKey,
}

/// What a fixture or a check failed by.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Runs every check. The error names the first that failed.
///
/// # Errors
///
/// A check failed, or the fixture did.
pub async fn check(fixture: &dyn Fixture) -> Result<(), Failure> {
    for (name, check) in CHECKS {
        let outcome = timeout(fixture.patience() * 5, check(fixture)).await;
        let outcome = outcome.unwrap_or_else(|_| Err("it does not come to an end".into()));
        outcome.map_err(|error| format!("{name}: {}", chain(&*error)))?;
    }
    Ok(())
}

type Check = for<'a> fn(&'a dyn Fixture) -> BoxFuture<'a, Result<(), Failure>>;

const CHECKS: &[(&str, Check)] = &[
    ("limits let something through", |fixture| Box::pin(async move { check_limits(fixture) })),
    ("a target is made without the other side", |fixture| Box::pin(check_lazy(fixture))),
    ("an empty batch is delivered", |fixture| Box::pin(check_empty(fixture))),
    ("what is sent arrives as it is", |fixture| Box::pin(check_content(fixture))),
    ("a full batch arrives in order", |fixture| Box::pin(check_order(fixture))),
    ("a target comes back after the other side was away", |fixture| Box::pin(check_recovery(fixture))),
    ("no more is said to be delivered than was", |fixture| Box::pin(check_cut(fixture))),
    ("a message that is never taken is told apart", |fixture| Box::pin(check_unacceptable(fixture))),
    ("a send can be given up", |fixture| Box::pin(check_cancellation(fixture))),
    ("sends at the same time do not mix", |fixture| Box::pin(check_concurrency(fixture))),
    ("secrets do not show", |fixture| Box::pin(check_secrets(fixture))),
];

fn check_limits(fixture: &dyn Fixture) -> Result<(), Failure> {
    let target = fixture.target()?;
    let limits = target.limits();
    require(limits.events > 0 && limits.bytes > 0 && !limits.patience.is_zero(), "a limit is zero")?;
    require(limits == target.limits(), "limits change")
}

async fn check_lazy(fixture: &dyn Fixture) -> Result<(), Failure> {
    fixture.set_down(true).await?;
    let target = fixture.target()?;
    let batch = deliveries("lazy", 3);
    let sent = send(fixture, &*target, &batch).await?;
    require_temporary(sent, 0, "a send while the other side is away")?;
    let probed = timeout(fixture.patience(), target.probe()).await?;
    require_temporary(probed, 0, "a probe while the other side is away")?;
    fixture.set_down(false).await?;
    eventually(fixture, || target.probe(), "a probe once the other side is there").await?;
    eventually(fixture, || target.send(&batch), "a send once the other side is there").await?;
    require_arrived(fixture, &batch, Times::OnceOrMore).await
}

async fn check_empty(fixture: &dyn Fixture) -> Result<(), Failure> {
    let target = fixture.target()?;
    let before = fixture.arrived().await?.len();
    send(fixture, &*target, &[]).await?.map_err(|error| chain(&error))?;
    require(fixture.arrived().await?.len() == before, "something arrived")
}

async fn check_content(fixture: &dyn Fixture) -> Result<(), Failure> {
    let target = fixture.target()?;
    let long = format!("content/{}", "k".repeat(1024));
    let keys = [
        "content/plain",
        "content/a b+c%d",
        "content/é漢🦀",
        "content/\"'\\<&>`$(:;",
        "content//./..//",
        &long,
    ];
    let batch: Vec<Delivery> = keys.iter().zip(0..).map(|(key, number)| delivery(number, key, 1)).collect();
    for delivery in &batch {
        send(fixture, &*target, std::slice::from_ref(delivery)).await?.map_err(|error| chain(&error))?;
    }
    require_arrived(fixture, &batch, Times::Once).await?;
    let large = [delivery(0, "content/large", 200 << 10)];
    send(fixture, &*target, &large).await?.map_err(|error| chain(&error))?;
    require_arrived(fixture, &large, Times::Once).await
}

async fn check_order(fixture: &dyn Fixture) -> Result<(), Failure> {
    let target = fixture.target()?;
    let fits = target.limits().bytes / 400;
    let batch = deliveries("order", target.limits().events.min(fits).clamp(1, 2_000));
    send(fixture, &*target, &batch).await?.map_err(|error| chain(&error))?;
    require_arrived(fixture, &batch, Times::Once).await
}

async fn check_recovery(fixture: &dyn Fixture) -> Result<(), Failure> {
    let target = fixture.target()?;
    for round in 0..3 {
        let batch = deliveries(&format!("recovery-{round}"), 4);
        send(fixture, &*target, &batch).await?.map_err(|error| chain(&error))?;
        fixture.set_down(true).await?;
        let missed = deliveries(&format!("missed-{round}"), 4);
        let sent = send(fixture, &*target, &missed).await?;
        require_temporary(sent, 0, "a send while the other side is away")?;
        fixture.set_down(false).await?;
        eventually(fixture, || target.send(&missed), "a send once it is back").await?;
        require_arrived(fixture, &batch, Times::Once).await?;
        require_arrived(fixture, &missed, Times::OnceOrMore).await?;
    }
    Ok(())
}

async fn check_cut(fixture: &dyn Fixture) -> Result<(), Failure> {
    let target = fixture.target()?;
    let batch = deliveries("cut", 10);
    if !fixture.cut_after(5) {
        return Ok(());
    }
    let Err(error) = send(fixture, &*target, &batch).await? else {
        return Err("all is said to be delivered".into());
    };
    require(error.kind() == SendErrorKind::Temporary, "the error is not temporary")?;
    let delivered = error.delivered();
    require(delivered <= 5, "more is said to be delivered than was")?;
    fixture.set_down(false).await?;
    let rest = batch.get(delivered..).unwrap_or_default();
    eventually(fixture, || target.send(rest), "a send of the rest").await?;
    require_arrived(fixture, &batch, Times::OnceOrMore).await
}

async fn check_unacceptable(fixture: &dyn Fixture) -> Result<(), Failure> {
    let Some((key, value)) = fixture.unacceptable() else { return Ok(()) };
    let target = fixture.target()?;
    let mut batch = deliveries("unacceptable", 7);
    let bad = Delivery::new(100, Message::new(EventName::ObjectCreatedPut, key, value, Timestamp::default()));
    batch.insert(3, bad);
    let mut rest = batch.clone();
    let delivered = loop {
        match send(fixture, &*target, &rest).await? {
            Ok(()) => return Err("it is said to be delivered".into()),
            Err(error) if error.kind() == SendErrorKind::Permanent => break error.delivered(),
            // Some targets are cut off by what they refuse, and find out one by one what it was.
            Err(error) => {
                require(error.delivered() > 0, &format!("temporary, without progress: {}", chain(&error)))
                    .map(|()| rest.drain(..error.delivered().min(3)).count())?
            }
        };
    };
    require(rest.get(delivered).is_some_and(|found| found.number == 100), "another is said to be refused")?;
    let after = rest.split_off(delivered + 1);
    send(fixture, &*target, &after).await?.map_err(|error| chain(&error))?;
    batch.retain(|delivery| delivery.number != 100);
    require_arrived(fixture, &batch, Times::OnceOrMore).await
}

async fn check_cancellation(fixture: &dyn Fixture) -> Result<(), Failure> {
    let target = fixture.target()?;
    let batch = deliveries("cancelled", 20);
    for wait in [0, 1, 5, 20] {
        // Whether it was in time is of no interest.
        let _ = timeout(Duration::from_millis(wait), target.send(&batch)).await;
    }
    eventually(fixture, || target.send(&batch), "a send after others were given up").await?;
    require_arrived(fixture, &batch, Times::OnceOrMore).await
}

async fn check_concurrency(fixture: &dyn Fixture) -> Result<(), Failure> {
    let target = fixture.target()?;
    let batches: Vec<_> = (0..4).map(|lane| deliveries(&format!("lane-{lane}"), 50)).collect();
    let sends = batches.iter().map(|batch| send(fixture, &*target, batch));
    for outcome in join_all(sends).await {
        outcome?.map_err(|error| chain(&error))?;
    }
    for batch in &batches {
        require_arrived(fixture, batch, Times::Once).await?;
    }
    Ok(())
}

async fn check_secrets(fixture: &dyn Fixture) -> Result<(), Failure> {
    let target = fixture.target()?;
    fixture.set_down(true).await?;
    let mut shown = format!("{target:?} {target:#?}");
    for outcome in [send(fixture, &*target, &deliveries("secret", 1)).await?, target.probe().await] {
        if let Err(error) = outcome {
            // Writing to a string cannot fail.
            let _ = write!(shown, "{} {error:?}", chain(&error));
        }
    }
    fixture.set_down(false).await?;
    let found = fixture.secrets().into_iter().any(|secret| shown.contains(&secret));
    require(!found, "a secret is shown")
}

/// How often a message may arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Once,
    OnceOrMore,
}

/// Checks what arrived of the keys of these deliveries: each of them, and by key in order. What was sent more than once may
/// arrive more than once, the order beginning anew with each repetition.
async fn require_arrived(fixture: &dyn Fixture, sent: &[Delivery], times: Times) -> Result<(), Failure> {
    let keys: BTreeSet<&Bytes> = sent.iter().map(|delivery| &delivery.message.key).collect();
    let mut found: BTreeMap<Bytes, Vec<Bytes>> = BTreeMap::new();
    for arrived in fixture.arrived().await? {
        if keys.contains(&arrived.key) {
            found.entry(arrived.key).or_default().push(arrived.value);
        }
    }
    for key in keys {
        let mut expect: Vec<&Bytes> = sent
            .iter()
            .map(|delivery| &delivery.message)
            .filter(|message| message.key == *key)
            .map(|m| &m.value)
            .collect();
        if fixture.keeps() == Keeps::NewestOfKey {
            expect.drain(..expect.len().saturating_sub(1));
        }
        let got = found.get(key).map(Vec::as_slice).unwrap_or_default();
        let fits = match times {
            Times::Once => got.iter().eq(expect.iter().copied()),
            Times::OnceOrMore => in_order(got, &expect),
        };
        let name = String::from_utf8_lossy(key);
        require(
            fits,
            &format!(
                "of `{name}` {} were sent, and {} arrived, not these or not in order",
                expect.len(),
                got.len()
            ),
        )?;
    }
    Ok(())
}

/// Whether everything arrived, and each time that something arrives for the first time, all before it did.
fn in_order(got: &[Bytes], expect: &[&Bytes]) -> bool {
    let mut seen = 0;
    for value in got {
        match expect.iter().position(|expected| *expected == value) {
            Some(at) if at < seen => {}
            Some(at) if at == seen => seen += 1,
            _ => return false,
        }
    }
    seen == expect.len() && got.last() == expect.last().copied()
}

async fn send(
    fixture: &dyn Fixture,
    target: &dyn Target,
    batch: &[Delivery],
) -> Result<Result<(), SendError>, Failure> {
    let outcome = timeout(fixture.patience(), target.send(batch)).await;
    let outcome = outcome.map_err(|_| "a send does not come to an end")?;
    if let Err(error) = &outcome {
        require(error.delivered() <= batch.len(), "more is said to be delivered than was sent")?;
        require(!error.to_string().is_empty(), "an error says nothing")?;
    }
    Ok(outcome)
}

/// Tries until it goes well, for as long as the fixture has patience.
async fn eventually<'a>(
    fixture: &dyn Fixture,
    attempt: impl Fn() -> BoxFuture<'a, Result<(), SendError>>,
    what: &str,
) -> Result<(), Failure> {
    let mut last = String::from("it does not come to an end");
    let outcome = timeout(fixture.patience(), async {
        while let Err(error) = attempt().await {
            last = chain(&error);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    outcome.await.map_err(|_| format!("{what}: {last}").into())
}

fn require_temporary(outcome: Result<(), SendError>, delivered: usize, what: &str) -> Result<(), Failure> {
    let Err(error) = outcome else { return Err(format!("{what}: it is said to have gone well").into()) };
    require(error.kind() == SendErrorKind::Temporary, &format!("{what}: the error is not temporary"))?;
    require(error.delivered() <= delivered, &format!("{what}: something is said to be delivered"))
}

fn require(holds: bool, what: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// So many deliveries for three keys, which take turns.
fn deliveries(name: &str, count: usize) -> Vec<Delivery> {
    (0..count).zip(0..).map(|(at, number)| delivery(number, &format!("{name}/{}", at % 3), 1)).collect()
}

/// A message in the form of events, filled up to about this length.
fn delivery(number: u64, key: &str, len: usize) -> Delivery {
    let key_text = serde_json::Value::from(key);
    let fill = "x".repeat(len);
    let value = format!(
        r#"{{"EventName":"s3:ObjectCreated:Put","Key":{key_text},"Records":[{{"number":{number},"fill":"{fill}"}}]}}"#
    );
    let message = Message::new(
        EventName::ObjectCreatedPut,
        Bytes::copy_from_slice(key.as_bytes()),
        value,
        Timestamp::from_unix_nanos(number),
    );
    Delivery::new(number, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_in_order(got: &str, expect: &str, fits: bool) {
        let bytes = |text: &str| -> Vec<Bytes> { text.bytes().map(|byte| Bytes::from(vec![byte])).collect() };
        let expect = bytes(expect);
        assert_eq!(in_order(&bytes(got), &expect.iter().collect::<Vec<_>>()), fits, "{got}");
    }

    #[test]
    fn repetitions_are_in_order_and_gaps_are_not() {
        for fits in ["abc", "aabc", "ababc", "abcabc", "abcbc", "abcc"] {
            check_in_order(fits, "abc", true);
        }
        for wrong in ["", "ab", "acb", "bc", "abca", "abcab", "abxc", "acbc"] {
            check_in_order(wrong, "abc", false);
        }
    }
}
