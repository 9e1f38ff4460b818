//! Opening a queue: the newest checkpoint, and what was written after it.

use std::sync::Arc;

use kolumn_journal::{BLOCK, Disk, Entry, Journal, Opening};
use parking_lot::Mutex;

use super::core::{Core, State};
use super::error::{OpenError, OpenErrorKind};
use super::inner::Inner;
use super::ledger::{Group, Ledger, done_of, is_message};
use super::message::Malformed;
use super::options::QueueOptions;

pub(super) fn open(disk: Arc<dyn Disk>, options: QueueOptions) -> Result<Arc<Inner>, OpenError> {
    let (opening, core) = recover(&disk, options)?;
    let journal = opening.start(Arc::clone(&core) as _)?;
    Ok(assemble(core, journal, disk))
}

#[cfg(feature = "test-util")]
pub(super) fn open_stepped(
    disk: Arc<dyn Disk>,
    options: QueueOptions,
) -> Result<(Arc<Inner>, kolumn_journal::Stepper), OpenError> {
    let (opening, core) = recover(&disk, options)?;
    let (journal, stepper) = opening.start_stepped(Arc::clone(&core) as _)?;
    Ok((assemble(core, journal, disk), stepper))
}

fn assemble(core: Arc<Core>, journal: Journal, disk: Arc<dyn Disk>) -> Arc<Inner> {
    Arc::new(Inner { core, journal, disk, closing: Mutex::default() })
}

fn recover(disk: &Arc<dyn Disk>, options: QueueOptions) -> Result<(Opening, Arc<Core>), OpenError> {
    let opening = Journal::open(Arc::clone(disk), options.journal())?;
    let (mut ledger, checkpointed) = match opening.checkpoint() {
        None => (Ledger::default(), 0),
        Some((position, payload)) => {
            let ledger = Ledger::decode(&payload).map_err(|error| {
                OpenError::new(OpenErrorKind::Damaged, format!("the checkpoint: {error}"))
            })?;
            (ledger, position.value())
        }
    };
    let mut group: Option<Group> = None;
    opening
        .replay(|entry: Entry| {
            let end = entry.group_end.value();
            if let Some(whole) = group.take_if(|group| group.end != end) {
                ledger.wrote(whole, options.mark_distance());
            }
            let group =
                group.get_or_insert(Group { position: beginning(&entry), end, messages: 0, bytes: 0 });
            if is_message(&entry.bytes) {
                group.messages += 1;
                group.bytes = group.bytes.saturating_add(entry.bytes.len() as u64);
            } else if let Some(done) = done_of(&entry.bytes) {
                ledger.merge(&done);
            }
            Ok::<(), Malformed>(())
        })
        .map_err(OpenError::replay)?;
    if let Some(last) = group {
        ledger.wrote(last, options.mark_distance());
    }
    ledger.settle(opening.end().value());
    let core = Core::new(options, State::opened(ledger, checkpointed));
    Ok((opening, core))
}

/// Where the group of its first entry begins: it is a whole number of blocks, and the entry lies in its first one.
fn beginning(first: &Entry) -> u64 {
    let position = first.position.value();
    position - position % BLOCK as u64
}
