//! Intents: what was begun and not resolved is given at the next opening.

use std::collections::BTreeMap;
use std::pin::Pin;

use kolumn_journal::sim::SimDisk;
use kolumn_notify::config::QueueDurability;
use kolumn_notify::event::{EventName, Timestamp};
use kolumn_notify::intent::{Intent, IntentId, IntentOptions, IntentStepper, Intents, Unresolved};
use kolumn_notify::queue::{PutError, PutErrorKind};

use crate::queue_support::{Chance, disk, poll, seeds};

fn intent(id: u64) -> Intent {
    Intent::new(EventName::ObjectCreatedPut, "bucket", format!("key {id}"), Timestamp::from_unix_nanos(id))
        .with_detail(vec![7; 200])
}

fn small() -> IntentOptions {
    let mut options = IntentOptions::default();
    options.intent_len_max = 4 << 10;
    options.file_len = 64 << 10;
    options
}

#[tokio::test]
async fn what_is_not_resolved_is_given_at_the_next_opening() {
    let sim = SimDisk::new(1);
    let (intents, unresolved) = Intents::open(disk(&sim), small()).unwrap();
    assert_eq!(unresolved, []);
    let mut left = Vec::new();
    for id in 0..2000 {
        let begun = intents.begin(&intent(id)).await.unwrap();
        if id % 500 == 3 {
            left.push(intent(id));
        } else {
            intents.resolve(begun);
        }
    }
    intents.close().await;
    assert!(sim.used() < 16 * (64 << 10), "files are given back: {}", sim.used());
    let (intents, unresolved) = Intents::open(disk(&sim), small()).unwrap();
    assert_eq!(unresolved.iter().map(|left| left.intent.clone()).collect::<Vec<_>>(), left);
    for left in unresolved {
        intents.resolve(left.id);
    }
    intents.close().await;
    assert_eq!(Intents::open(disk(&sim), small()).unwrap().1, []);
}

#[tokio::test]
async fn there_are_not_more_operations_under_way_than_allowed() {
    let mut options = small();
    options.intents_max = 2;
    let (intents, _) = Intents::open(disk(&SimDisk::new(1)), options).unwrap();
    let first = intents.begin(&intent(0)).await.unwrap();
    intents.begin(&intent(1)).await.unwrap();
    assert_eq!(intents.begin(&intent(2)).await.unwrap_err().kind(), PutErrorKind::Full);
    intents.resolve(first);
    intents.resolve(first);
    intents.begin(&intent(2)).await.unwrap();
    assert_eq!(intents.unresolved_count(), 2);
}

type Beginning = Pin<Box<dyn Future<Output = Result<IntentId, PutError>>>>;

/// What is known of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Maybe,
    Begun,
    Resolved,
}

/// Several lives that end with a loss of power, beside a list of what must and may be found in the next.
#[derive(Debug)]
struct Run {
    sim: SimDisk,
    chance: Chance,
    next: u64,
    fates: BTreeMap<u64, Fate>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        Self { sim: SimDisk::new(seed), chance, next: 0, fates: BTreeMap::new() }
    }

    fn whole(mut self) -> Result<(), String> {
        let mut options = small();
        options.durability = QueueDurability::Sync;
        for _ in 0..6 {
            let (intents, unresolved, stepper) = Intents::open_stepped(disk(&self.sim), options.clone())
                .map_err(|error| format!("refused: {error:?}"))?;
            let open = self.compare(&unresolved)?;
            if self.chance.below(4) > 0 {
                self.sim.cut_power_after(20 + self.chance.below(400));
            }
            self.live(&intents, open, stepper)?;
            drop(intents);
            self.sim.crash();
        }
        Ok(())
    }

    /// Every intent that was begun and not resolved is there, and none that never was.
    fn compare(&mut self, unresolved: &[Unresolved]) -> Result<Vec<(u64, IntentId)>, String> {
        let mut found = BTreeMap::new();
        for left in unresolved {
            let id = left.intent.time.unix_nanos();
            if left.intent != intent(id)
                || !self.fates.contains_key(&id)
                || found.insert(id, left.id).is_some()
            {
                return Err(format!("nobody has begun {left:?}"));
            }
        }
        let lost = self.fates.iter().find(|(id, fate)| **fate == Fate::Begun && !found.contains_key(id));
        if let Some((id, _)) = lost {
            return Err(format!("intent {id} is lost"));
        }
        // What an opening has given is certain from then on.
        self.fates = found.keys().map(|id| (*id, Fate::Begun)).collect();
        Ok(found.into_iter().collect())
    }

    fn live(
        &mut self,
        intents: &Intents,
        mut open: Vec<(u64, IntentId)>,
        mut stepper: IntentStepper,
    ) -> Result<(), String> {
        let mut beginning: Vec<(u64, Beginning)> = Vec::new();
        for _ in 0..self.chance.below(300) {
            match self.chance.below(9) {
                0..=2 => {
                    let (id, intents) = (self.next, intents.clone());
                    self.next += 1;
                    self.fates.insert(id, Fate::Maybe);
                    let future: Beginning = Box::pin(async move { intents.begin(&intent(id)).await });
                    beginning.push((id, future));
                }
                3..=5 => {
                    stepper.write();
                }
                6 => stepper.keep(),
                _ if open.is_empty() => {}
                _ => {
                    let (id, begun) = open.swap_remove(self.chance.index(open.len()));
                    self.fates.insert(id, Fate::Resolved);
                    intents.resolve(begun);
                }
            }
            let mut waiting = Vec::new();
            for (id, mut future) in beginning.drain(..) {
                match poll(future.as_mut()) {
                    None => waiting.push((id, future)),
                    Some(Ok(begun)) => {
                        self.fates.insert(id, Fate::Begun);
                        open.push((id, begun));
                    }
                    Some(Err(_)) if self.sim.is_off() => {}
                    Some(Err(error)) => return Err(format!("intent {id} was refused: {error:?}")),
                }
            }
            beginning = waiting;
        }
        drop((stepper, beginning));
        Ok(())
    }
}

#[test]
fn a_loss_of_power_loses_no_intent_that_was_begun() {
    for seed in 0..seeds(50) {
        if let Err(why) = Run::new(seed).whole() {
            panic!("seed {seed}: {why}");
        }
    }
}

#[test]
fn an_intent_that_nobody_waits_for_is_resolved() {
    let sim = SimDisk::new(1);
    let (intents, _, mut stepper) = Intents::open_stepped(disk(&sim), small()).unwrap();
    let mut beginning = Box::pin({
        let intents = intents.clone();
        async move { intents.begin(&intent(0)).await }
    });
    assert!(poll(beginning.as_mut()).is_none());
    assert_eq!(intents.unresolved_count(), 1);
    drop(beginning);
    assert_eq!(intents.unresolved_count(), 0);
    while stepper.write() {}
    drop((stepper, intents));
    assert_eq!(Intents::open_stepped(disk(&sim), small()).unwrap().1, []);
}
