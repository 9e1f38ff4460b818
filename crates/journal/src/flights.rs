//! Groups on their way to the disk while the next one gathers.
//!
//! ```text
//! writer:  gather | seal -> | gather ....... | seal -> | commit | gather ..
//! disk:            write, sync of the first  | write, sync of the second
//! ```
//! A thread of its own writes and syncs one group after the other; the writer commits each once it has arrived, in order.
//! Only long groups take this way: a short one is on the disk before another thread would have woken up.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use bytes::Bytes;

use crate::disk::DiskFile;
use crate::gathering::Sealed;
use crate::shared::Shared;

/// Groups under way at most: one that is written, and one that follows without a pause.
const COUNT_MAX: usize = 2;

/// What was being done, and why it failed.
pub(crate) type Fault = (&'static str, io::Error);

/// Brings bytes to the disk.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) offset: u64,
    pub(crate) bytes: Bytes,
    pub(crate) sync: bool,
    /// Whether what counts is that it returns soon.
    pub(crate) cached: bool,
}

impl Write {
    pub(crate) fn run(&self) -> Result<(), Fault> {
        let written = if self.cached {
            self.file.write_cached_at(self.offset, &self.bytes)
        } else {
            self.file.write_at(self.offset, &self.bytes)
        };
        written.map_err(|error| ("writing a group", error))?;
        if self.sync {
            self.file.sync().map_err(|error| ("syncing a group", error))?;
        }
        Ok(())
    }
}

/// The groups that are under way, in order.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    groups: VecDeque<Sealed>,
    thread: Option<(SyncSender<Write>, JoinHandle<()>)>,
}

impl Flights {
    /// Groups under way, once there is a thread that writes them.
    pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(COUNT_MAX);
        let shared = shared.clone();
        let thread = std::thread::Builder::new()
            .name("kolumn-disk".to_owned())
            .spawn(move || write_all(&shared, &receiver))?;
        Ok(Self { groups: VecDeque::new(), thread: Some((sender, thread)) })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.groups.len() >= COUNT_MAX
    }

    /// Sends a group off, or hands it back where there is no thread.
    pub(crate) fn send(&mut self, group: Sealed, write: Write) -> Result<Option<(Sealed, Write)>, Fault> {
        let Some((sender, _)) = &self.thread else { return Ok(Some((group, write))) };
        // There is room for as many as may be under way, so that only a thread that has ended refuses one.
        let gone = |_| ("writing a group", io::Error::other("the thread that writes has ended"));
        sender.try_send(write).map_err(gone)?;
        self.groups.push_back(group);
        Ok(None)
    }

    /// The first of those under way, which has arrived.
    pub(crate) fn land(&mut self) -> Option<Sealed> {
        self.groups.pop_front()
    }
}

impl Drop for Flights {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            // A panic of the thread was told where it happened.
            drop(thread.join());
        }
    }
}

/// Writes what comes until nothing more can come or the disk fails; after a failure nothing is written any more.
fn write_all(shared: &Shared, writes: &Receiver<Write>) {
    for write in writes {
        let written = write.run();
        // Before the writer hears of it, so that the memory is free when it looks for some.
        drop(write);
        let mut gate = shared.gate.lock();
        let failed = written.is_err();
        match written {
            Ok(()) => gate.landed.count += 1,
            Err(fault) => gate.landed.error = Some(fault),
        }
        drop(gate);
        shared.wake.notify_one();
        if failed {
            return;
        }
    }
}
