//! The messages of a queue that are in memory: those that wait to be taken, and those under way. Pure.

use std::collections::btree_map::Entry;
use std::collections::hash_map;
use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::message::Delivery;
use super::options::Most;
use crate::event::Timestamp;

/// What a message costs beside its bytes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    /// Of its entry in the journal, in bytes: what limits count.
    pub(super) len: u64,
    /// How much of the journal's memory it holds while it waits.
    pub(super) held: usize,
}

/// Messages in the order of their numbers.
///
/// Two batches never have messages with the same key: the later ones wait until the earlier batch is done with, or has
/// come back. So the order of a key is kept however many batches are under way.
#[derive(Debug, Default)]
pub(super) struct Window {
    waiting: BTreeMap<u64, (Delivery, Cost)>,
    held: usize,
    under_way: BTreeMap<u64, Timestamp>,
    /// How many messages of each key are under way.
    keys: HashMap<Bytes, usize>,
}

impl Window {
    /// A message waits.
    pub(super) fn insert(&mut self, delivery: Delivery, cost: Cost) {
        if let Entry::Vacant(entry) = self.waiting.entry(delivery.number) {
            self.held = self.held.saturating_add(cost.held);
            entry.insert((delivery, cost));
        }
    }

    /// Memory of the journal that is held by what waits.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// How many messages are under way.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// When the oldest message happened, of those that wait and those under way.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        let waiting =
            self.waiting.first_key_value().map(|(number, (delivery, _))| (*number, delivery.message.time));
        let under_way = self.under_way.first_key_value().map(|(number, time)| (*number, *time));
        [waiting, under_way].into_iter().flatten().min().map(|(_, time)| time)
    }

    /// The first messages whose keys are not under way, in order: up to the first that is too many or too long, but at
    /// least one.
    pub(super) fn take(&mut self, most: Most) -> Vec<(Delivery, Cost)> {
        let mut numbers = Vec::new();
        let mut len = 0_usize;
        for (number, (delivery, _)) in &self.waiting {
            if self.keys.contains_key(&delivery.message.key) {
                continue;
            }
            let message = &delivery.message;
            len = len.saturating_add(message.key.len()).saturating_add(message.value.len());
            if !numbers.is_empty() && (numbers.len() >= most.messages || len > most.bytes) {
                break;
            }
            numbers.push(*number);
        }
        let taken: Vec<_> = numbers.iter().filter_map(|number| self.waiting.remove(number)).collect();
        for (delivery, cost) in &taken {
            self.held = self.held.saturating_sub(cost.held);
            self.under_way.insert(delivery.number, delivery.message.time);
            *self.keys.entry(delivery.message.key.clone()).or_default() += 1;
        }
        taken
    }

    /// A message is under way no longer.
    pub(super) fn leave(&mut self, delivery: &Delivery) {
        self.under_way.remove(&delivery.number);
        if let hash_map::Entry::Occupied(mut entry) = self.keys.entry(delivery.message.key.clone()) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }

    /// Takes away the oldest message that waits.
    pub(super) fn remove_oldest(&mut self) -> Option<(u64, Cost)> {
        let (number, (_, cost)) = self.waiting.pop_first()?;
        self.held = self.held.saturating_sub(cost.held);
        Some((number, cost))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::message::Message;
    use super::*;
    use crate::event::EventName;

    fn delivery(number: u64, key: u8) -> Delivery {
        let message = Message::new(
            EventName::ObjectCreatedPut,
            vec![key],
            vec![0; 9],
            Timestamp::from_unix_nanos(1000 - number),
        );
        Delivery { number, message, attempts: 0 }
    }

    const COST: Cost = Cost { len: 30, held: 40 };

    proptest! {
        /// Steps: take so many, finish or give back one of the batches under way, or drop the oldest.
        #[test]
        fn keys_keep_their_order_whatever_comes_back(
            keys in prop::collection::vec(0_u8..5, 1..60),
            steps in prop::collection::vec((0_u8..8, 1_usize..6, any::<prop::sample::Index>()), 1..120),
        ) {
            let mut window = Window::default();
            for (number, key) in (0..).zip(&keys) {
                window.insert(delivery(number, *key), COST);
            }
            let mut batches: Vec<Vec<(Delivery, Cost)>> = Vec::new();
            let mut gone = BTreeSet::new();
            for (kind, most, pick) in steps {
                match kind {
                    0..=3 => {
                        let batch = window.take(Most::new(most, usize::MAX));
                        prop_assert!(batch.len() <= most);
                        let busy: BTreeSet<_> = batches.iter().flatten().map(|(taken, _)| taken.message.key.clone()).collect();
                        for (taken, _) in &batch {
                            let older = |number: &u64| keys[usize::try_from(*number).unwrap()] == taken.message.key[0];
                            // All that came before with its key is gone, or in the same batch.
                            let mut before = (0..taken.number).filter(older).filter(|number| !gone.contains(number));
                            prop_assert!(before.all(|number| batch.iter().any(|(other, _)| other.number == number)));
                            prop_assert!(!busy.contains(&taken.message.key));
                        }
                        prop_assert!(batch.windows(2).all(|pair| pair[0].0.number < pair[1].0.number));
                        if !batch.is_empty() {
                            batches.push(batch);
                        }
                    }
                    4..=6 if !batches.is_empty() => {
                        let batch = batches.swap_remove(pick.index(batches.len()));
                        for (taken, cost) in batch {
                            window.leave(&taken);
                            if kind == 4 {
                                gone.insert(taken.number);
                            } else {
                                window.insert(taken, cost);
                            }
                        }
                    }
                    7 => {
                        let waiting = |number: &u64| !gone.contains(number) && !batches.iter().flatten().any(|(taken, _)| taken.number == *number);
                        let expected = (0..keys.len() as u64).find(waiting);
                        let dropped = window.remove_oldest().map(|(number, _)| number);
                        prop_assert_eq!(dropped, expected);
                        gone.extend(dropped);
                    }
                    _ => {}
                }
                let under_way = batches.iter().map(Vec::len).sum::<usize>();
                prop_assert_eq!(window.under_way(), under_way);
                prop_assert_eq!(window.held(), (keys.len() - gone.len() - under_way) * 40);
                let oldest = (0..keys.len() as u64).find(|number| !gone.contains(number));
                prop_assert_eq!(window.oldest(), oldest.map(|number| Timestamp::from_unix_nanos(1000 - number)));
            }
            for (taken, _) in batches.into_iter().flatten() {
                window.leave(&taken);
            }
            prop_assert!(window.keys.is_empty());
        }
    }

    #[test]
    fn a_batch_ends_before_what_is_too_long_for_it_but_has_one_message_in_any_case() {
        let mut window = Window::default();
        (0..5).for_each(|number| window.insert(delivery(number, 1), COST));
        assert_eq!(window.take(Most::new(0, 0)).len(), 1);
        (0..5).for_each(|number| window.insert(delivery(number, 2), COST));
        assert_eq!(window.take(Most::new(10, 25)).len(), 1, "only number 0 is of another key, which is free");
    }
}
