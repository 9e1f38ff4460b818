//! A durable append-only log of byte entries, kept in preallocated files of one directory.
//!
//! Appended entries are gathered into *groups*; a group is written with one call, synced, and then told to a
//! [`Consumer`]. While one group is on its way to the disk the next gathers, so that many small appends share a sync
//! and a lone one does not wait. What was told is there after a loss of power, once and in order (with
//! [`Durability::Os`] after a crash of the process only); the simulated disk of feature `test-util` is how this is
//! tested, and how you can test what you build.
//!
//! It is not a message queue, has no topics or keys and knows nothing of what its entries mean; it has no runtime: one
//! thread writes, and calls that block say so.
//!
//! # The ideas, in reading order
//!
//! - A [`Position`] is a byte in the log's endless space. Positions are never used twice, and stand inside every
//!   group's checksum, so that a recycled file's former content is never taken for valid.
//! - [`Journal::admit`] reserves room and is the only place where a full disk is met; [`Journal::append`] then cannot
//!   fail but with the file. [`Class::Reclaim`] may use a file that is kept for entries that free others.
//! - [`Consumer::committed`] gets each group when it is durable, with its entries as slices of the block that was
//!   written: the log's newest part stays in memory for as long as you hold it, at no copy.
//! - A failed write or sync is final: [`Consumer::failed`], and the log is read-only until it is opened again.
//! - [`Journal::write_checkpoint`] stores what stands for everything before a position. Files before it can be
//!   [freed](Journal::free) in any order, and are recycled; a [`FilePin`] keeps one readable.
//! - [`Journal::open`] finds the newest checkpoint and the log's end. Each group says up to where the log had been
//!   synced when it was written. So an interrupted last write, which is cut and kept aside, is told from damage, which
//!   is refused with its position.
//! - The *owner epoch* is one more at each opening; it is durable before [`Opening::start`] returns.
//!
//! # Example
//!
//! ```
//! use std::sync::{Arc, mpsc};
//!
//! use kolumn_journal::{Class, CommittedGroup, Consumer, Failure, Journal, Options, probe};
//!
//! /// Passes on the sequences of what is durable.
//! struct Durable(mpsc::Sender<u64>);
//!
//! impl Consumer for Durable {
//!     fn committed(&self, group: &CommittedGroup) {
//!         for entry in &group.entries {
//!             self.0.send(entry.sequence).ok();
//!         }
//!     }
//!     fn failed(&self, failure: &Failure) {
//!         eprintln!("{failure}");
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let mut options = Options::default();
//! options.seed = 7; // in a program: random numbers from the operating system
//! # options.file_len = 1 << 20;
//! # options.entry_len_max = 64 << 10;
//! # options.queue_len_max = 256 << 10;
//! let (disk, _kind) = probe(dir.path())?;
//! let (sender, durable) = mpsc::channel();
//! let journal = Journal::open(disk.clone(), options.clone())?.start(Arc::new(Durable(sender)))?;
//!
//! let (head, body) = (b"greeting:", b"hello");
//! let admission = journal.admit(head.len() + body.len(), Class::Data)?;
//! let sequence = journal.append(admission, head, body[..].into())?;
//! assert_eq!(durable.recv()?, sequence);
//!
//! let position = journal.durable_position();
//! journal.write_checkpoint(position, b"one greeting")?;
//! journal.close();
//!
//! // After a restart, the checkpoint stands for what lies before it.
//! let opening = Journal::open(disk, options)?;
//! let (at, state) = opening.checkpoint().ok_or("no checkpoint")?;
//! assert_eq!((at, &state[..]), (position, &b"one greeting"[..]));
//! opening.replay(|entry| Err(format!("nothing was appended after it, but {entry:?}")))?;
//! assert_eq!(opening.owner_epoch(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `test-util` | `sim::SimDisk`, the checks of `disk::conformance`, and `Mutant`: faults put in on purpose |
//!
//! # Where to go next
//!
//! `FORMAT.md` has the files byte by byte. [`Disk`] is the seam to implement for other storage, and
//! `disk::conformance` checks an implementation. [`Opening::start_stepped`] runs a log without a thread.
//!
//! # What is absent
//!
//! No unsafe code: aligned memory is an over-allocated buffer, advanced. No allocation follows a length that a file
//! claims beyond what the file has. No queue is unbounded: what is admitted counts in whole blocks. No clock is read:
//! the writer's thread waits on a condition with a timeout, and the [`Stepper`] does not even that.
#![forbid(unsafe_code)]

mod block;
mod chance;
mod checkpoint;
pub mod disk;
mod error;
mod file;
mod flights;
mod format;
mod gate;
mod gathering;
mod journal;
mod memory;
mod opening;
mod options;
mod position;
mod reader;
mod recover;
mod scan;
mod shared;
#[cfg(feature = "test-util")]
pub mod sim;
mod spares;
mod writer;

pub use crate::disk::{Disk, DiskFile, DiskKind, DiskLock, probe};
pub use crate::error::{
    AdmitError, AdmitErrorKind, AppendError, AppendErrorKind, CheckpointError, CheckpointErrorKind, Failure,
    FreeError, FreeErrorKind, OpenError, OpenErrorKind, ReadError, ReadErrorKind, ReplayError,
};
pub use crate::file::{FileInfo, FilePin};
pub use crate::journal::{
    Admission, CommittedEntry, CommittedGroup, Consumer, Entry, Journal, Space, Stepper,
};
pub use crate::opening::Opening;
#[cfg(feature = "test-util")]
pub use crate::options::Mutant;
pub use crate::options::{Class, Durability, Options};
pub use crate::position::{BLOCK, Position};
pub use crate::recover::{OpenReport, TornTail};
