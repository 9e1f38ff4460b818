//! The target in memory keeps the contract, and the suite notices targets that do not.

use std::sync::Arc;

use bytes::Bytes;
use kolumn_notify::config::Arn;
use kolumn_notify::queue::Delivery;
use kolumn_notify::target::conformance::{Arrived, Failure, Fixture, check};
use kolumn_notify::target::memory::{MemoryTarget, OtherSide};
use kolumn_notify::target::{BoxFuture, SendError, Target};

/// How a target breaks the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutant {
    None,
    /// Says that all is delivered, whatever came of it.
    AlwaysOk,
    /// Sends backwards.
    Backwards,
    /// Sends everything twice.
    Twice,
    /// Says that one more is delivered than was.
    OneMore,
    /// Takes every error for the message's fault.
    AllPermanent,
    /// Takes no error for the message's fault.
    NeverPermanent,
    /// Gives up for good after the first failure.
    GivesUp,
    /// Shows its password.
    Shows,
    /// Loses the last of each batch of more than one.
    LosesLast,
}

struct Memory {
    mutant: Mutant,
    other_side: Arc<OtherSide>,
    target: Arc<Wrapped>,
}

struct Wrapped {
    mutant: Mutant,
    inner: MemoryTarget,
    has_failed: std::sync::atomic::AtomicBool,
}

impl std::fmt::Debug for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.mutant == Mutant::Shows { "password: hunter2" } else { "password: .." })
    }
}

impl Target for Wrapped {
    fn arn(&self) -> &Arn {
        self.inner.arn()
    }

    fn send<'a>(&'a self, batch: &'a [Delivery]) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move {
            let mut sent = batch.to_vec();
            match self.mutant {
                Mutant::Backwards => sent.reverse(),
                Mutant::Twice => sent.extend_from_slice(batch),
                Mutant::LosesLast if sent.len() > 1 => drop(sent.pop()),
                Mutant::GivesUp if self.has_failed.load(std::sync::atomic::Ordering::Relaxed) => {
                    return Err(SendError::temporary("given up"));
                }
                _ => {}
            }
            let Err(error) = self.inner.send(&sent).await else { return Ok(()) };
            self.has_failed.store(true, std::sync::atomic::Ordering::Relaxed);
            let delivered = error.delivered();
            match self.mutant {
                Mutant::AlwaysOk => Ok(()),
                Mutant::OneMore => Err(error.after((delivered + 1).min(batch.len()))),
                Mutant::AllPermanent => Err(SendError::permanent("so it is").after(delivered)),
                Mutant::NeverPermanent => Err(SendError::temporary("so it is").after(delivered)),
                _ => Err(error),
            }
        })
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), SendError>> {
        self.inner.probe()
    }
}

impl Memory {
    fn new(mutant: Mutant) -> Self {
        let (inner, other_side) = MemoryTarget::new("arn:minio:sqs::memory:webhook".parse().unwrap());
        other_side.refuse("bad");
        let target = Arc::new(Wrapped { mutant, inner, has_failed: false.into() });
        Self { mutant, other_side, target }
    }
}

impl Fixture for Memory {
    fn target(&self) -> Result<Arc<dyn Target>, Failure> {
        Ok(self.target.clone())
    }

    fn arrived(&self) -> BoxFuture<'_, Result<Vec<Arrived>, Failure>> {
        let received = self.other_side.received().into_iter();
        let arrived = received.map(|message| Arrived { key: message.key, value: message.value }).collect();
        Box::pin(async move { Ok(arrived) })
    }

    fn set_down(&self, is_down: bool) -> BoxFuture<'_, Result<(), Failure>> {
        self.other_side.set_down(is_down);
        Box::pin(async { Ok(()) })
    }

    fn unacceptable(&self) -> Option<(Bytes, Bytes)> {
        Some((Bytes::from_static(b"bad"), Bytes::from_static(b"{}")))
    }

    fn cut_after(&self, messages: usize) -> bool {
        self.other_side.cut_after(messages);
        true
    }

    fn secrets(&self) -> Vec<String> {
        vec!["hunter2".into()]
    }
}

#[tokio::test(start_paused = true)]
async fn the_target_in_memory_keeps_the_contract() {
    let fixture = Memory::new(Mutant::None);
    assert_eq!(fixture.mutant, Mutant::None);
    check(&fixture).await.unwrap();
    assert!(fixture.other_side.received().len() > 300);
}

#[tokio::test(start_paused = true)]
async fn every_breach_of_the_contract_is_noticed() {
    for (mutant, noticed) in [
        (Mutant::AlwaysOk, "a target is made without the other side"),
        (Mutant::Backwards, "a full batch arrives in order"),
        (Mutant::Twice, "what is sent arrives as it is"),
        (Mutant::OneMore, "a target is made without the other side"),
        (Mutant::AllPermanent, "a target is made without the other side"),
        (Mutant::NeverPermanent, "a message that is never taken is told apart"),
        (Mutant::GivesUp, "a target is made without the other side"),
        (Mutant::Shows, "secrets do not show"),
        (Mutant::LosesLast, "a target is made without the other side"),
    ] {
        let failure = check(&Memory::new(mutant)).await.unwrap_err().to_string();
        assert!(failure.starts_with(noticed), "{mutant:?}: {failure}");
    }
}
