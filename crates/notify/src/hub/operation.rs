//! An operation between its intent and its outcome.

use super::Hub;
use super::lane::Reserved;
use crate::delivery::Missed;
use crate::event::Event;
use crate::intent::Unresolved;

/// An operation that has begun. It ends by [`happened`](Self::happened) or [`did_not_happen`](Self::did_not_happen);
/// dropped without either it is in doubt, and [`Hub::doubtful`] gives it back.
#[derive(Debug)]
#[must_use = "an operation that is dropped is in doubt"]
pub struct Operation {
    hub: Hub,
    /// What is to be resolved; none if only listeners want to know of it.
    unresolved: Option<Unresolved>,
    places: Vec<Reserved>,
}

impl Operation {
    pub(super) fn new(hub: Hub, unresolved: Unresolved, places: Vec<Reserved>) -> Self {
        Self { hub, unresolved: Some(unresolved), places }
    }

    /// One that is not written anywhere: a crash ends the listeners too.
    pub(super) fn unwritten(hub: Hub) -> Self {
        Self { hub, unresolved: None, places: Vec::new() }
    }

    /// It has happened, and this is its event. Returns when the queues have it; listeners are told at once.
    ///
    /// # Errors
    ///
    /// Targets that do not get to know of it now. If that is for want of their queue, which has failed or is closed, the
    /// operation stays unresolved: the next opening gives it again.
    pub async fn happened(mut self, event: &Event) -> Result<(), Missed> {
        let (outcome, is_settled) = self.hub.tell(event).await;
        let unresolved = self.unresolved.take();
        if is_settled && let Some(unresolved) = unresolved {
            self.hub.inner.intents.resolve(unresolved.id);
        }
        self.places.clear();
        outcome
    }

    /// It has not happened, and nobody is told of it.
    pub fn did_not_happen(mut self) {
        if let Some(unresolved) = self.unresolved.take() {
            self.hub.inner.intents.resolve(unresolved.id);
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if let Some(unresolved) = self.unresolved.take() {
            // If there are too many in doubt, the next opening gives it.
            drop(self.hub.inner.in_doubt.try_send(unresolved));
        }
    }
}
