//! A queue beside a list: whatever happens, nothing that was put is lost, and every key keeps its order.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;

use kolumn_journal::sim::SimDisk;
use kolumn_notify::config::QueueDurability;
use kolumn_notify::queue::{Batch, PutError, PutErrorKind, Queue, QueueOptions, QueueStepper};

use crate::queue_support::{Chance, disk, drain, id_of, ids, message, poll, seeds, small, take_now};

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// In order.
    Close,
    /// The process is killed: what was written is there.
    Kill,
    /// The power goes: what was synced is there.
    PowerLoss,
}

/// What is known of a message.
#[derive(Clone, Debug)]
struct Known {
    key: u64,
    len: u64,
    /// It was put, and that was told.
    certain: bool,
    done: bool,
}

type Putting = Pin<Box<dyn Future<Output = Result<(), PutError>>>>;

struct Run {
    sim: SimDisk,
    options: QueueOptions,
    chance: Chance,
    end: End,
    next_id: u64,
    known: BTreeMap<u64, Known>,
    /// Delivered, in this life.
    delivered: Vec<u64>,
}

struct Life {
    queue: Queue,
    stepper: QueueStepper,
    putting: Vec<(u64, Putting)>,
    under_way: Vec<Batch>,
}

type Verdict = Result<(), String>;

impl Run {
    fn new(seed: u64, end: End) -> Self {
        let mut options = small(seed);
        options.durability = if end == End::PowerLoss { QueueDurability::Sync } else { QueueDurability::Os };
        let chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let sim = SimDisk::new(seed);
        Self { sim, options, chance, end, next_id: 0, known: BTreeMap::new(), delivered: Vec::new() }
    }

    fn whole(mut self) -> Verdict {
        for _ in 0..5 {
            let (queue, stepper) = self.open()?;
            self.check_stats(&queue)?;
            let mut life = Life { queue, stepper, putting: Vec::new(), under_way: Vec::new() };
            if self.end == End::PowerLoss && self.chance.below(4) > 0 {
                self.sim.cut_power_after(20 + self.chance.below(300));
            }
            for _ in 0..self.chance.below(150) {
                self.step(&mut life)?;
            }
            self.end_life(life)?;
        }
        let (queue, mut stepper) = self.open()?;
        self.check_stats(&queue)?;
        let left = drain(&queue, &mut stepper);
        self.check_left(&left)?;
        let stats = queue.stats();
        if (stats.queued, stats.bytes, stats.under_way) != (0, 0, 0) {
            return Err(format!("nothing is left, but {stats:?}"));
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(Queue, QueueStepper), String> {
        self.delivered.clear();
        Queue::open_stepped(disk(&self.sim), self.options.clone())
            .map_err(|error| format!("refused: {error:?}"))
    }

    fn step(&mut self, life: &mut Life) -> Verdict {
        match self.chance.below(16) {
            0..=5 => self.put(life),
            6..=8 => {
                life.stepper.write();
            }
            9 => {
                life.stepper.keep();
            }
            10 => life.stepper.idle(),
            11..=12 => {
                let most = 1 + self.chance.index(6);
                if let Some(batch) = take_now(&life.queue, most) {
                    self.check_taken(&batch)?;
                    life.under_way.push(batch);
                }
            }
            _ if life.under_way.is_empty() => {}
            kind => {
                let at = self.chance.index(life.under_way.len());
                let mut batch = life.under_way.swap_remove(at);
                let count = match kind {
                    13 => 0,
                    14 => self.chance.index(batch.deliveries().len() + 1),
                    _ => batch.deliveries().len(),
                };
                for id in ids(&batch).into_iter().take(count) {
                    self.known.get_mut(&id).unwrap().done = true;
                    self.delivered.push(id);
                }
                life.queue.done_first(&mut batch, count);
            }
        }
        self.poll_putting(life)
    }

    fn put(&mut self, life: &mut Life) {
        let (id, key) = (self.next_id, self.chance.below(6));
        self.next_id += 1;
        let len = if self.chance.below(6) == 0 { self.chance.index(7000) } else { self.chance.index(300) };
        let message = message(id, key, len);
        let len = message.encoded_len() as u64;
        self.known.insert(id, Known { key, len, certain: false, done: false });
        let queue = life.queue.clone();
        let mut putting: Putting = Box::pin(async move { queue.put(message).await });
        let before = life.queue.stats().queued;
        let mut outcome = poll(putting.as_mut());
        // Appended now, so that the order in the queue is that of the numbers.
        while outcome.is_none() && life.queue.stats().queued == before && !self.sim.is_off() {
            life.stepper.write();
            outcome = poll(putting.as_mut());
        }
        match outcome {
            None => life.putting.push((id, putting)),
            Some(told) => self.known.get_mut(&id).unwrap().certain = told.is_ok(),
        }
    }

    fn poll_putting(&mut self, life: &mut Life) -> Verdict {
        let mut waiting = Vec::new();
        for (id, mut putting) in life.putting.drain(..) {
            match poll(putting.as_mut()) {
                None => waiting.push((id, putting)),
                Some(Ok(())) => self.known.get_mut(&id).unwrap().certain = true,
                Some(Err(error)) if self.sim.is_off() && error.kind() == PutErrorKind::Failed => {}
                Some(Err(error)) => return Err(format!("message {id} was refused: {error:?}")),
            }
        }
        life.putting = waiting;
        Ok(())
    }

    /// A key's messages come in order, and none is passed over.
    fn check_taken(&self, batch: &Batch) -> Verdict {
        for delivery in batch.deliveries() {
            let id = id_of(&delivery.message);
            let known = &self.known[&id];
            let before = self.known.range(..id).filter(|(_, other)| other.key == known.key && other.certain);
            for (other, _) in before.filter(|(_, other)| !other.done) {
                if !ids(batch).contains(other) {
                    return Err(format!("message {id} came before {other}"));
                }
            }
        }
        Ok(())
    }

    fn end_life(&mut self, mut life: Life) -> Verdict {
        let is_settled = self.chance.below(2) == 0;
        if is_settled && self.end != End::PowerLoss {
            life.stepper.settle();
            self.poll_putting(&mut life)?;
        }
        let Life { queue, stepper, putting, under_way } = life;
        match self.end {
            End::Close => {
                let mut closing = Box::pin(queue.close());
                let mut stepper = stepper;
                stepper.settle_journal();
                poll(closing.as_mut()).ok_or("closing waits without a thread to wait for")?;
                drop(closing);
                for (id, mut putting) in putting {
                    if poll(putting.as_mut()) == Some(Ok(())) {
                        self.known.get_mut(&id).unwrap().certain = true;
                    }
                }
                drop((under_way, stepper));
            }
            // Nothing that runs when a value is dropped may help it.
            End::Kill => drop((stepper, putting, under_way, queue)),
            End::PowerLoss => {
                drop((stepper, putting, under_way, queue));
                self.sim.crash();
            }
        }
        Ok(())
    }

    /// What is counted at opening is what there is.
    fn check_stats(&self, queue: &Queue) -> Verdict {
        let stats = queue.stats();
        let certain: Vec<_> = self.known.values().filter(|known| known.certain && !known.done).collect();
        let bytes: u64 = certain.iter().map(|known| known.len).sum();
        let exact = self.end == End::Close;
        let (queued, all) = (stats.queued, certain.len() as u64);
        if queued < all || stats.bytes < bytes {
            return Err(format!("{all} messages with {bytes} bytes should be there: {stats:?}"));
        }
        let maybe = self.known.values().any(|known| !known.certain);
        if exact && !maybe && (queued, stats.bytes) != (all, bytes) {
            return Err(format!("exactly {all} messages with {bytes} bytes should be there: {stats:?}"));
        }
        Ok(())
    }

    fn check_left(&self, left: &[u64]) -> Verdict {
        let found: BTreeSet<_> = left.iter().copied().collect();
        if found.len() != left.len() {
            return Err(format!("a message came twice in one life: {left:?}"));
        }
        let lost: Vec<_> = self
            .known
            .iter()
            .filter(|(id, known)| known.certain && !known.done && !found.contains(id))
            .map(|(id, _)| *id)
            .collect();
        if !lost.is_empty() {
            return Err(format!("lost: {lost:?}"));
        }
        for key in 0..6 {
            let of_key: Vec<_> = left.iter().filter(|id| self.known[id].key == key).collect();
            if !of_key.is_sorted() {
                return Err(format!("key {key} is out of order: {of_key:?}"));
            }
        }
        if self.end == End::Close {
            let again: Vec<_> = left.iter().filter(|id| self.known[id].done).collect();
            if !again.is_empty() {
                return Err(format!("delivered again after an orderly end: {again:?}"));
            }
        }
        Ok(())
    }
}

#[track_caller]
fn check(end: End) {
    for seed in 0..seeds(50) {
        if let Err(why) = Run::new(seed, end).whole() {
            panic!("seed {seed}: {why}");
        }
    }
}

#[test]
fn after_an_orderly_end_there_is_exactly_what_was_not_delivered() {
    check(End::Close);
}

#[test]
fn a_killed_process_loses_nothing_that_was_written() {
    check(End::Kill);
}

#[test]
fn a_loss_of_power_loses_nothing_that_was_synced() {
    check(End::PowerLoss);
}
