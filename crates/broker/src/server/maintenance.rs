//! Calls the store's maintenance from time to time: retention, checkpoints, files to give back.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::wall_clock;
use crate::context::{Context, Phase, reached};
use crate::observer::Event;

/// Runs until the broker drains.
pub(crate) async fn maintain(context: Arc<Context>) {
    let interval = Duration::from_millis(context.validated.settings.storage.maintenance_interval_ms);
    let mut ticks = tokio::time::interval(interval);
    // After a slow round, the next one is a whole interval away.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut phase = context.phase.clone();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = reached(&mut phase, Phase::Draining) => return,
        }
        let store = context.store.clone();
        let round = tokio::task::spawn_blocking(move || store.maintain(wall_clock())).await;
        if let Ok(Err(error)) = round {
            context.event(&Event::MaintenanceFailed { error: &error });
        }
    }
}
