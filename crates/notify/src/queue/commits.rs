//! Who waits for entries to be written.

use std::collections::VecDeque;

use bytes::Bytes;
use kolumn_journal::{Admission, AppendError, Journal};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Resolves when the entry is written; fails when it will never be.
pub(crate) type Written = oneshot::Receiver<()>;

/// Those who wait, in the order of their entries.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    waiting: Mutex<VecDeque<(u64, oneshot::Sender<()>)>>,
}

impl Commits {
    /// Appends an entry, and waits for it from then on.
    pub(crate) fn append(
        &self,
        journal: &Journal,
        admission: Admission,
        head: &[u8],
        body: Bytes,
    ) -> Result<Written, AppendError> {
        let (sender, written) = oneshot::channel();
        // Under the lock, so that the line is in the journal's order, and the entry is not written before it stands there.
        let mut waiting = self.waiting.lock();
        let sequence = journal.append(admission, head, body)?;
        waiting.push_back((sequence, sender));
        Ok(written)
    }

    /// All entries below this sequence are written.
    pub(crate) fn resolve_below(&self, sequence: u64) {
        let told: Vec<_> = {
            let mut waiting = self.waiting.lock();
            let count = waiting.partition_point(|(waited, _)| *waited < sequence);
            waiting.drain(..count).collect()
        };
        for (_, sender) in told {
            // Who no longer waits need not be told.
            sender.send(()).ok();
        }
    }

    /// Nothing more will be written.
    pub(crate) fn fail(&self) {
        drop(std::mem::take(&mut *self.waiting.lock()));
    }
}
