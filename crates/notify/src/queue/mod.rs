//! The durable queue of a target, and its dead letters.
//!
//! A [`Queue`] is one journal. A [`Message`] is in it, and survives what the queue's durability says, when
//! [`Queue::put`] is ready; many messages share a write. Batches are [taken](Queue::take) in order, several at once if
//! wished, and then are [`done`](Queue::done), [come back](Queue::put_back), or are set aside.
//!
//! - **Order.** Messages of one key are delivered in the order in which they were put, whatever fails and comes back: a
//!   message is not taken while one with its key is under way in another batch.
//! - **At least once.** What is done with is written, but not waited for: after a crash, batches that were delivered just
//!   before are delivered again. Nothing that was put is ever passed over.
//! - **Memory.** All that is known of a message that waits is its place in the order: the queue keeps the messages that
//!   come next, at most [`window_len`](QueueOptions::window_len) bytes of them, and one mark for each 256 KiB of journal.
//!   Opening reads a checkpoint and what was written after it, however much waits.
//! - **Limits.** Counts and bytes are differences of sums that the journal itself gives, so that they cannot drift.
//! - **Damage.** Bytes that cannot be read back are kept aside in files `*.damaged`, counted, and passed over.
//!
//! A queue that is configured without a folder is one on a [`MemoryDisk`].
//!
//! The waits need no particular runtime. A thread of the queue's own does what blocks: reading ahead, checkpoints, giving
//! files back.

mod batch;
pub(crate) mod commits;
mod core;
mod done;
mod error;
mod handle;
mod inner;
pub(crate) mod keeper;
mod ledger;
mod letters;
mod memory;
pub(crate) mod message;
mod open;
pub(crate) mod options;
mod quarantine;
mod upkeep;
mod window;

pub use self::batch::Batch;
pub use self::error::{LetterError, OpenError, OpenErrorKind, PutError, PutErrorKind, SetAsideError};
#[cfg(feature = "test-util")]
pub use self::handle::QueueStepper;
pub use self::handle::{Queue, QueueStats};
pub use self::letters::{DeadLetters, Letter, LetterOptions, LetterStats};
pub use self::memory::MemoryDisk;
pub use self::message::{Delivery, Message};
pub use self::options::{Most, QueueOptions};
