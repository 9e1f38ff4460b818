//! The wait of a Join or Sync for its answer.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Coordinator;
use crate::context::{Phase, reached};
use crate::group::Token;

/// An answer to come. Dropping it tells the group that nobody waits any more.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    receiver: oneshot::Receiver<T>,
    abandon: Abandon,
}

/// Tells the group that the peer is gone, unless the answer was taken.
#[derive(Debug)]
struct Abandon {
    coordinator: Arc<Coordinator>,
    group: String,
    token: Token,
    answered: bool,
}

impl<T> Waiting<T> {
    pub(super) fn new(
        coordinator: Arc<Coordinator>,
        group: &str,
        token: Token,
        receiver: oneshot::Receiver<T>,
    ) -> Self {
        let abandon = Abandon { coordinator, group: group.to_owned(), token, answered: false };
        Self { receiver, abandon }
    }

    /// The answer; `None` if the broker drains before there is one, so that clients look for a coordinator again.
    pub(crate) async fn answer(mut self) -> Option<T> {
        let mut phase = self.abandon.coordinator.phase();
        let answer = tokio::select! {
            biased;
            answer = &mut self.receiver => answer.ok(),
            () = reached(&mut phase, Phase::Draining) => None,
        };
        self.abandon.answered = answer.is_some();
        answer
    }
}

impl Drop for Abandon {
    fn drop(&mut self) {
        if !self.answered {
            self.coordinator.abandon(&self.group, self.token);
        }
    }
}
