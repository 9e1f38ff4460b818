//! Messages that a target is being given.

use std::sync::Arc;

use super::inner::Inner;
use super::message::Delivery;
use super::window::Cost;

/// Messages that were taken together, in order. Dropping it puts back what is left in it.
#[derive(Debug)]
#[must_use = "a batch that is dropped is taken again"]
pub struct Batch {
    pub(super) deliveries: Vec<Delivery>,
    /// Of each.
    pub(super) costs: Vec<Cost>,
    pub(super) inner: Arc<Inner>,
}

impl Batch {
    /// The messages, by ascending number.
    #[must_use]
    pub fn deliveries(&self) -> &[Delivery] {
        &self.deliveries
    }

    /// Takes so many messages off the front.
    pub(super) fn split_front(&mut self, count: usize) -> (Vec<Delivery>, Vec<Cost>) {
        let count = count.min(self.deliveries.len());
        (self.deliveries.drain(..count).collect(), self.costs.drain(..count).collect())
    }

    /// Takes one message out, as a batch of its own.
    pub(super) fn split_one(&mut self, number: u64) -> Option<Self> {
        let at = self.deliveries.binary_search_by_key(&number, |delivery| delivery.number).ok()?;
        let delivery = self.deliveries.remove(at);
        let cost = self.costs.remove(at);
        Some(Self { deliveries: vec![delivery], costs: vec![cost], inner: Arc::clone(&self.inner) })
    }

    /// The opposite of [`split_one`](Self::split_one).
    pub(super) fn join_one(&mut self, mut one: Self) {
        let Some(number) = one.deliveries.first().map(|delivery| delivery.number) else { return };
        let at = self.deliveries.partition_point(|delivery| delivery.number < number);
        let (mut deliveries, mut costs) = one.split_front(1);
        self.deliveries.splice(at..at, deliveries.drain(..));
        self.costs.splice(at..at, costs.drain(..));
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let (deliveries, costs) = self.split_front(usize::MAX);
        if !deliveries.is_empty() {
            self.inner.put_back(deliveries, costs);
        }
    }
}
