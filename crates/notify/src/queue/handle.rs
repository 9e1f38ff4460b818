//! The handle of a queue.

use std::pin::pin;
use std::sync::Arc;

use kolumn_journal::Disk;
use tokio::sync::oneshot;

use super::batch::Batch;
use super::core::Life;
use super::error::{OpenError, OpenErrorKind, PutError, SetAsideError};
use super::inner::{Encoded, Finished, Inner, Taken};
use super::message::Message;
use super::open;
use super::options::{Most, QueueOptions};
use crate::event::Timestamp;

/// The durable queue of one target. Clones are the same queue; when the last one goes, no more is read ahead, and what
/// was put and not yet written is still written.
#[derive(Clone, Debug)]
pub struct Queue {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    inner: Arc<Inner>,
    /// Otherwise a stepper does its work.
    has_keeper: bool,
}

/// How a queue stands. Numbers of events are since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// Messages that are not done with, those under way included.
    pub queued: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that were taken and are neither done with nor back.
    pub under_way: u64,
    /// When the oldest message happened, as far as one was read.
    pub oldest: Option<Timestamp>,
    /// Messages that were written.
    pub put: u64,
    /// Messages that were delivered.
    pub done: u64,
    /// Messages that were dropped to make room.
    pub dropped: u64,
    /// Messages that were refused because the queue was full.
    pub refused: u64,
    /// Messages that went to the dead letters.
    pub set_aside: u64,
    /// Messages that could not be read back. Their bytes are in files of the queue's folder, as far as there are any.
    pub damaged: u64,
    /// Whether the journal has failed: nothing can be put until the queue is opened again.
    pub failed: bool,
}

impl Queue {
    /// Opens the queue in a directory, or begins one. Blocks until it is known what waits, which does not depend on how
    /// much that is.
    ///
    /// # Errors
    /// See [`OpenErrorKind`].
    pub fn open(disk: Arc<dyn Disk>, options: QueueOptions) -> Result<Self, OpenError> {
        let inner = open::open(disk, options)?;
        let kept = Arc::clone(&inner);
        inner.core.bell.keep("kolumn-queue", move || kept.work()).map_err(|error| {
            OpenError::new(OpenErrorKind::Disk, format!("starting the queue's thread failed: {error}"))
        })?;
        inner.core.bell.ring();
        Ok(Self { handle: Arc::new(Handle { inner, has_keeper: true }) })
    }

    /// Opens without threads: nothing is written or read ahead but by the stepper. For simulations that repeat exactly.
    ///
    /// # Errors
    /// See [`OpenErrorKind`].
    #[cfg(feature = "test-util")]
    pub fn open_stepped(
        disk: Arc<dyn Disk>,
        options: QueueOptions,
    ) -> Result<(Self, QueueStepper), OpenError> {
        let (inner, journal) = open::open_stepped(disk, options)?;
        let stepper = QueueStepper { journal, inner: Arc::clone(&inner) };
        Ok((Self { handle: Arc::new(Handle { inner, has_keeper: false }) }, stepper))
    }

    fn inner(&self) -> &Arc<Inner> {
        &self.handle.inner
    }

    /// Puts a message behind all that were put before. Ready when it is written, and synced if the queue's durability says
    /// so. Messages of one key that are put at the same time get any order; so await one before the next.
    ///
    /// A future that is dropped may have put its message or not.
    ///
    /// # Errors
    /// See [`PutErrorKind`](super::PutErrorKind).
    pub async fn put(&self, message: Message) -> Result<(), PutError> {
        let inner = self.inner();
        let message = Encoded::of(&message, inner.core.options.message_len_max)?;
        let written = loop {
            let mut space = pin!(inner.core.space.notified());
            // From here on no news of room is missed.
            space.as_mut().enable();
            if let Some(written) = inner.try_put(&message)? {
                break written;
            }
            space.await;
        };
        written.await.map_err(|_| PutError::failed())
    }

    /// Takes the next messages, in order, without those whose keys are under way; waits for some. `None` if the queue was
    /// closed, or if nothing will come any more after [`seal`](Self::seal).
    ///
    /// Several batches may be under way. A message that comes back is taken before what follows it, and none with its key
    /// has been taken meanwhile.
    pub async fn take(&self, most: Most) -> Option<Batch> {
        let inner = self.inner();
        loop {
            let mut arrival = pin!(inner.core.arrivals.notified());
            arrival.as_mut().enable();
            match inner.try_take(most) {
                Taken::Some(batch) => return Some(batch),
                Taken::Ended => return None,
                Taken::Nothing => arrival.await,
            }
        }
    }

    /// All messages of the batch were delivered. This is written soon, but not waited for.
    pub fn done(&self, mut batch: Batch) {
        self.done_first(&mut batch, usize::MAX);
    }

    /// So many messages from the front of the batch were delivered; they are no longer in it.
    pub fn done_first(&self, batch: &mut Batch, count: usize) {
        let inner = Arc::clone(&batch.inner);
        inner.finish(batch, count, Finished::Delivered);
    }

    /// Nothing more of the batch was delivered: it is to be taken again. Dropping it does the same.
    pub fn put_back(&self, batch: Batch) {
        drop(batch);
    }

    /// The target will never take this message of the batch: it goes to the dead letters, and once it is durable there it
    /// is done with. If they fail before, it comes back.
    ///
    /// # Errors
    /// There are no dead letters, or they take no more. The message is still in the batch.
    pub fn set_aside(&self, batch: &mut Batch, number: u64, reason: &str) -> Result<(), SetAsideError> {
        let letters = batch.inner.core.options.dead_letters.clone().ok_or(SetAsideError::NoDeadLetters)?;
        let one = batch.split_one(number).ok_or(SetAsideError::NotInBatch(number))?;
        letters.append_delivery(one, reason).map_err(|(one, error)| {
            batch.join_one(one);
            SetAsideError::Refused(error)
        })
    }

    /// How the queue stands.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        let state = self.inner().core.state.lock();
        let (queued, bytes) = state.queued();
        let counts = state.counts;
        QueueStats {
            queued,
            bytes,
            under_way: state.window.under_way() as u64,
            oldest: state.window.oldest(),
            put: counts.put,
            done: counts.done,
            dropped: counts.dropped,
            refused: counts.refused,
            set_aside: counts.set_aside,
            damaged: counts.damaged,
            failed: state.life == Life::Failed,
        }
    }

    /// Nothing more is put; what is in the queue can still be taken.
    pub fn seal(&self) {
        let core = &self.inner().core;
        {
            let mut state = core.state.lock();
            if state.life == Life::Open {
                state.life = Life::Sealed;
            }
        }
        core.space.notify_waiters();
        core.arrivals.notify_waiters();
    }

    /// Writes what was put and ends: nothing is put or taken any more, with any clone. What is under way is taken again
    /// after the next opening, which finds the directory unlocked.
    pub async fn close(self) {
        let inner = self.inner();
        inner.core.state.lock().life = Life::Closed;
        inner.core.space.notify_waiters();
        inner.core.arrivals.notify_waiters();
        if !self.handle.has_keeper {
            inner.finish_closing();
            return;
        }
        let (sender, closed) = oneshot::channel();
        *inner.closing.lock() = Some(sender);
        inner.core.bell.ring();
        // The keeper answers, or somebody else has closed the queue.
        closed.await.ok();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.inner.core.bell.end();
    }
}

/// The writer and the keeper of a queue without threads.
#[cfg(feature = "test-util")]
#[derive(Debug)]
pub struct QueueStepper {
    journal: kolumn_journal::Stepper,
    inner: Arc<Inner>,
}

#[cfg(feature = "test-util")]
impl QueueStepper {
    /// Writes at most one group; tells whether there was anything to do.
    pub fn write(&mut self) -> bool {
        self.journal.step()
    }

    /// What the journal does when nothing has happened for a while.
    pub fn idle(&mut self) {
        self.journal.idle();
    }

    /// Does what the keeper would do; tells whether there may be more.
    pub fn keep(&mut self) -> bool {
        self.inner.work()
    }

    /// Writes everything that was appended.
    pub fn settle_journal(&mut self) {
        while self.write() {}
    }

    /// Does everything there is to do.
    pub fn settle(&mut self) {
        while self.write() || self.keep() {}
    }
}
