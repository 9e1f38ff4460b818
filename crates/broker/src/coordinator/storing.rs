//! Tells the store what groups have to remember: one task for each group that has something to tell.

use std::sync::Arc;
use std::time::Duration;

use kolumn_topic_store::GroupErrorKind;
use tokio::time::Instant;

use super::entry::Cell;
use super::{Coordinator, memory};
use crate::context::comes_in_time;
use crate::group::StoreId;
use crate::server::wall_clock;

/// Stores the newest memory of a group until there is no newer one.
pub(super) async fn store(coordinator: Arc<Coordinator>, cell: Arc<Cell>) {
    while let Some((id, ok)) = store_newest(&coordinator, &cell).await {
        let mut entry = cell.entry.lock();
        if entry.is_gone {
            return;
        }
        let now = Instant::now().into_std();
        let effects = entry.group.stored(now, id, ok);
        coordinator.settle(&cell, &mut entry, effects);
    }
}

/// Stores what is newest; `None` if there is nothing, or nobody to store it for.
async fn store_newest(coordinator: &Arc<Coordinator>, cell: &Arc<Cell>) -> Option<(StoreId, bool)> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        // Registered before the attempt, so that room made in between is not missed.
        let room = coordinator.store.space_changed();
        let refused = {
            let mut entry = cell.entry.lock();
            if entry.is_gone {
                return None;
            }
            let Some((id, newest)) = entry.unstored.take() else {
                entry.is_storing = false;
                coordinator.settle(cell, &mut entry, Vec::new());
                return None;
            };
            let sealed = memory::seal(wall_clock(), &newest);
            match coordinator.store.put_group(coordinator.view, &cell.id, sealed) {
                Ok(commit) => Ok((id, commit)),
                Err(error) if matches!(error.kind(), GroupErrorKind::Busy | GroupErrorKind::Full) => {
                    // Kept, unless a newer one comes while there is no room.
                    entry.unstored = Some((id, newest));
                    Err(id)
                }
                Err(_) => return Some((id, false)),
            }
        };
        match refused {
            Ok((id, commit)) => return Some((id, commit.await.is_ok())),
            Err(id) => {
                if !comes_in_time(room, deadline, coordinator.phase()).await {
                    return Some((give_up(cell, id), false));
                }
            }
        }
    }
}

/// Forgets what there was no room for.
fn give_up(cell: &Cell, id: StoreId) -> StoreId {
    cell.entry.lock().unstored.take().map_or(id, |(newest, _)| newest)
}

/// How long a group waits for room: less than members wait for their answers.
const PATIENCE: Duration = Duration::from_secs(10);
