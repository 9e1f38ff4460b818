//! What happens to deliveries, told as it happens.

use std::fmt;
use std::time::Duration;

use crate::config::Arn;
use crate::target::SendError;

/// Is told what happens to deliveries. It is called by workers and by requests: it must neither block nor panic.
pub trait Observer: Send + Sync + fmt::Debug {
    /// Something happened.
    fn on(&self, event: &DeliveryEvent<'_>);
}

/// What happens to deliveries.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum DeliveryEvent<'a> {
    /// A send failed, and will be tried again.
    Failed {
        /// The target.
        target: &'a Arn,
        /// Why; it has no secrets.
        error: &'a SendError,
        /// How many sends failed in a row, this one included.
        failures: u32,
        /// When it will be tried again.
        retry_in: Duration,
    },
    /// A send went well after some that failed.
    Recovered {
        /// The target.
        target: &'a Arn,
        /// How many sends failed in a row.
        failures: u32,
    },
    /// An event was set aside, because the target will never take it.
    SetAside {
        /// The target.
        target: &'a Arn,
        /// The event's place in the queue.
        number: u64,
        /// The event's key.
        key: &'a [u8],
        /// Why.
        error: &'a SendError,
    },
    /// A target that rules name does not exist: its event goes nowhere.
    UnknownTarget {
        /// The target, as the rule names it.
        target: &'a Arn,
    },
    /// A queue did not take an event.
    Refused {
        /// The target.
        target: &'a Arn,
        /// Why.
        error: &'a crate::queue::PutError,
    },
    /// A worker ended.
    Stopped {
        /// The target.
        target: &'a Arn,
        /// How many events wait until it is started again.
        queued: u64,
    },
}

/// Takes no notice.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct NoObserver;

impl Observer for NoObserver {
    fn on(&self, _event: &DeliveryEvent<'_>) {}
}
