//! A few inflaters with warm buffers, shared by everybody who walks compressed records.

use parking_lot::Mutex;

use kolumn_kafka_wire::records::Inflater;

#[derive(Debug, Default)]
pub(crate) struct Inflaters {
    idle: Mutex<Vec<Inflater>>,
}

impl Inflaters {
    /// Lends one out for the duration of the call.
    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&mut Inflater) -> T) -> T {
        let idle = self.idle.lock().pop();
        let mut inflater = idle.unwrap_or_default();
        let outcome = use_it(&mut inflater);
        inflater.shrink_to(IDLE_LEN_MAX);
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(inflater);
        }
        outcome
    }
}

const IDLE_MAX: usize = 4;
/// Memory that an idle one keeps.
const IDLE_LEN_MAX: usize = 2 << 20;
