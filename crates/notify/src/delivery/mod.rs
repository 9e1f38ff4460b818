//! Delivery: from an event to the targets that are to be told of it.
//!
//! ```text
//!  Event ──► Notifier ──► rules ──► queue of kafka:primary ──► worker ──► Target
//!                             └───► queue of webhook:audit ──► worker ──► Target
//! ```
//!
//! - A [`Notifier`] asks the rules who is to be told, writes the event in each target's style and puts it into each
//!   target's queue. It returns when the queues have it; what becomes of it then is no concern of the request.
//! - Each target has a queue and a worker of its own, so that one that is slow, broken or full never touches another.
//!   The worker sends what the queue gives it, batch by batch; fails as long as it has to, with [`Backoff`] between two
//!   attempts; and sets aside what the target will never take.
//! - [`TargetStatus`] has the counters of a target and what is wrong with it now; [`Observer`] is told of what changes.
//!
//! One batch at a time is under way to a target. A second one beside it would arrive even if the first did not, and the
//! events of a key would change places; a target that can have more under way, as Kafka's clients can, does so within the batch.

mod backoff;
mod notifier;
mod observer;
mod status;
mod worker;

pub use self::backoff::{Backoff, BackoffSettings};
pub use self::notifier::{AddError, Missed, MissedError, Notifier, NotifierBuilder};
pub use self::observer::{DeliveryEvent, NoObserver, Observer};
pub use self::status::{TargetStatus, Trouble, write_metrics};
