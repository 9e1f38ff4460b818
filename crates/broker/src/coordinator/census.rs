//! How many groups there are, without counting them each time that there is a new one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Coordinator;
use super::entry::Cell;

/// INVARIANT: `counted + since` is not less than the number of groups.
#[derive(Debug, Default)]
pub(super) struct Census(Mutex<Count>);

#[derive(Debug, Default)]
struct Count {
    counted: usize,
    /// New ones since then, whether they still exist or not.
    since: usize,
    /// When they were counted.
    at: Option<Instant>,
}

impl Census {
    /// Whether there may be one more group; counts it then. `cells` are those in memory.
    pub(super) fn admits(&self, coordinator: &Coordinator, cells: &HashMap<Arc<str>, Arc<Cell>>) -> bool {
        let max = coordinator.limits.groups_max;
        let now = tokio::time::Instant::now().into_std();
        let mut count = self.0.lock();
        let is_full = count.counted + count.since >= max;
        let is_old = count.at.is_none_or(|at| now.saturating_duration_since(at) >= PAUSE);
        if is_full && is_old || count.at.is_none() {
            let stored = coordinator.store.groups(coordinator.view);
            let known = |name: &Arc<str>| stored.binary_search(name).is_ok();
            let unknown = cells.keys().filter(|name| !known(name)).count();
            *count = Count { counted: stored.len() + unknown, since: 0, at: Some(now) };
        }
        let admits = count.counted + count.since < max;
        count.since += usize::from(admits);
        admits
    }
}

/// Where there are as many groups as there may be, they are not counted more often than this.
const PAUSE: Duration = Duration::from_secs(1);
