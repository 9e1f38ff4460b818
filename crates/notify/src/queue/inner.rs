//! What the handles, the batches and the keeper of a queue do with it.

use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::{AdmitErrorKind, Class, Disk, Journal};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::batch::Batch;
use super::commits::Written;
use super::core::{Core, Life};
use super::error::{PutError, PutErrorKind};
use super::message::{Delivery, Message};
use super::options::Most;
use super::window::Cost;
use crate::config::QueueFull;

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) core: Arc<Core>,
    pub(super) journal: Journal,
    pub(super) disk: Arc<dyn Disk>,
    /// Who waits for the end.
    pub(super) closing: Mutex<Option<oneshot::Sender<()>>>,
}

/// A message as it is written.
#[derive(Debug)]
pub(super) struct Encoded {
    head: Vec<u8>,
    body: Bytes,
}

impl Encoded {
    pub(super) fn of(message: &Message, len_max: usize) -> Result<Self, PutError> {
        let len = message.encoded_len();
        let too_large = |what: String| PutError::new(PutErrorKind::TooLarge, what);
        if len > len_max {
            return Err(too_large(format!("a message takes {len_max} bytes at most, and this one {len}")));
        }
        let mut head = message
            .encode_before_value()
            .ok_or_else(|| too_large("the topic's name or the key is too long".to_owned()))?;
        let mut body = message.value.clone();
        if head.len() > HEAD_LEN_MAX {
            head.extend_from_slice(&body);
            body = Bytes::from(std::mem::take(&mut head));
        }
        Ok(Self { head, body })
    }

    fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

/// What taking came to.
#[derive(Debug)]
pub(super) enum Taken {
    Some(Batch),
    Nothing,
    /// There will never be anything again.
    Ended,
}

impl Inner {
    /// Appends a message, if there is room for it now. `None` if it has to wait for room.
    pub(super) fn try_put(&self, message: &Encoded) -> Result<Option<Written>, PutError> {
        let len = message.len() as u64;
        let core = &self.core;
        let admission = match self.journal.admit(message.len(), Class::Data) {
            Ok(admission) => admission,
            Err(error) => {
                return match error.kind() {
                    AdmitErrorKind::Busy => core.state.lock().check_open().map(|()| None),
                    AdmitErrorKind::Full => self.disk_is_full().map(|()| None),
                    AdmitErrorKind::TooLarge => Err(PutError::new(PutErrorKind::TooLarge, error)),
                    _ => Err(core.state.lock().check_open().err().unwrap_or_else(PutError::failed)),
                };
            }
        };
        if !core.state.lock().reserve(len, &core.options)? {
            // What is to be dropped may have to be read first.
            core.bell.ring();
            return Ok(None);
        }
        let appended = core.commits.append(&self.journal, admission, &message.head, message.body.clone());
        if let Ok(written) = appended {
            return Ok(Some(written));
        }
        let mut state = core.state.lock();
        state.release(len);
        Err(state.check_open().err().unwrap_or_else(PutError::failed))
    }

    /// The disk has no room for another message: what the policy says. `Ok` if waiting may help.
    fn disk_is_full(&self) -> Result<(), PutError> {
        let core = &self.core;
        let mut state = core.state.lock();
        state.check_open()?;
        // There may be a file to be given back.
        core.bell.ring();
        let full = || {
            let cause = self.journal.growth_error().unwrap_or_else(|| "no room is left".to_owned());
            PutError::new(PutErrorKind::Full, format!("the queue's disk is full: {cause}"))
        };
        match core.options.full {
            QueueFull::Block => Ok(()),
            QueueFull::DropOldest if state.ledger.live().0 > 0 => {
                state.drop_oldest_file(&core.options);
                Ok(())
            }
            _ => {
                state.counts.refused += 1;
                Err(full())
            }
        }
    }

    pub(super) fn try_take(self: &Arc<Self>, most: Most) -> Taken {
        let core = &self.core;
        let mut state = core.state.lock();
        if state.life == Life::Closed {
            return Taken::Ended;
        }
        let (deliveries, costs): (Vec<_>, Vec<_>) = state.window.take(most).into_iter().unzip();
        let wants_more = !state.caught_up && state.window.held() < core.options.window_len / 2;
        let is_over = state.life != Life::Open && state.is_settled() && state.ledger.live().0 == 0;
        drop(state);
        if wants_more {
            core.bell.ring();
        }
        if !deliveries.is_empty() {
            return Taken::Some(Batch { deliveries, costs, inner: Arc::clone(self) });
        }
        if is_over { Taken::Ended } else { Taken::Nothing }
    }

    /// The first messages of a batch were delivered, or are not to be.
    pub(super) fn finish(&self, batch: &mut Batch, count: usize, kind: Finished) {
        let (deliveries, costs) = batch.split_front(count);
        let core = &self.core;
        let frees_a_file = {
            let mut state = core.state.lock();
            let before = state.ledger.start().position;
            for (delivery, cost) in deliveries.iter().zip(&costs) {
                state.window.leave(delivery);
                state.finish(delivery.number, cost.len);
            }
            let count = deliveries.len() as u64;
            match kind {
                Finished::Delivered => state.counts.done += count,
                Finished::SetAside => state.counts.set_aside += count,
            }
            let file_len = core.options.file_len.max(1);
            before / file_len != state.ledger.start().position / file_len
        };
        self.write_done();
        if frees_a_file {
            core.bell.ring();
        }
        core.space.notify_waiters();
        // Messages may have waited for these keys, and takers for the end.
        core.arrivals.notify_waiters();
    }

    pub(super) fn put_back(&self, deliveries: Vec<Delivery>, costs: Vec<Cost>) {
        {
            let mut state = self.core.state.lock();
            for (mut delivery, cost) in deliveries.into_iter().zip(costs) {
                state.window.leave(&delivery);
                delivery.attempts = delivery.attempts.saturating_add(1);
                state.window.insert(delivery, cost);
            }
        }
        self.core.arrivals.notify_waiters();
        self.core.space.notify_waiters();
    }

    /// Tells the journal what is done with, if there is news. It is not waited for: what is lost of it is delivered twice.
    pub(super) fn write_done(&self) {
        let entry = {
            let mut state = self.core.state.lock();
            if !state.unwritten {
                return;
            }
            state.unwritten = false;
            state.ledger.encode_done()
        };
        let admitted = self.journal.admit(entry.len(), Class::Reclaim);
        let appended =
            admitted.is_ok_and(|admission| self.journal.append(admission, &[], Bytes::from(entry)).is_ok());
        if !appended {
            // Tried again with the next one, or when there is room.
            self.core.state.lock().unwritten = true;
        }
    }
}

/// What has become of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finished {
    Delivered,
    SetAside,
}

/// The journal copies so much of an entry when it is appended; the rest it takes by reference.
const HEAD_LEN_MAX: usize = 256;
