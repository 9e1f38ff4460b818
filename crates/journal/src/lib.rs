//! A durable append-only log of byte entries in files.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod block;
mod chance;
mod checkpoint;
pub mod disk;
mod error;
mod file;
mod format;
mod gate;
mod journal;
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

#[cfg(feature = "test-util")]
pub use crate::options::Mutant;
pub use crate::disk::{Disk, DiskFile, DiskKind, DiskLock, probe};
pub use crate::error::{
    AdmitError, AdmitErrorKind, AppendError, AppendErrorKind, CheckpointError, CheckpointErrorKind, Failure, FreeError,
    FreeErrorKind, OpenError, OpenErrorKind, ReadError, ReadErrorKind, ReplayError,
};
pub use crate::file::{FileInfo, FilePin};
pub use crate::journal::{Admission, CommittedEntry, CommittedGroup, Consumer, Entry, Journal, Space, Stepper};
pub use crate::opening::Opening;
pub use crate::options::{Class, Durability, Options};
pub use crate::position::{BLOCK, Position};
pub use crate::recover::{OpenReport, TornTail};
