//! Waiting for room in the store: what makes a full or busy log slow its clients down instead of failing them.

use std::time::Duration;

use kolumn_topic_store::Store;
use tokio::time::Instant;

use crate::context::{Session, comes_in_time};

/// Tries until the store has room, time is up or the broker drains. `lacks_room` says which errors pass by themselves.
pub(super) async fn until_room<T, E>(
    session: &Session,
    deadline: Instant,
    mut attempt: impl FnMut(&Store) -> Result<T, E>,
    lacks_room: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let store = session.store();
    loop {
        // Registered before the attempt, so that room made in between is not missed.
        let room = store.space_changed();
        match attempt(store) {
            Err(error) if lacks_room(&error) => {
                if !is_made(session, room, deadline).await {
                    return Err(error);
                }
            }
            outcome => return outcome,
        }
    }
}

/// Waits for `room`, as the store's `space_changed` gives it; `false` if time is up or the broker drains before.
pub(super) async fn is_made(session: &Session, room: impl Future<Output = ()>, deadline: Instant) -> bool {
    comes_in_time(room, deadline, session.context.phase.clone()).await
}

/// When a client that gave this timeout stops waiting; never later than clients usually do.
pub(super) fn deadline(timeout_ms: i32) -> Instant {
    let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
    Instant::now() + timeout.min(TIMEOUT_MAX)
}

const TIMEOUT_MAX: Duration = Duration::from_mins(1);
