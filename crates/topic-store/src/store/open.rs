//! Opening: the newest checkpoint, the entries after it, and then a store.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kolumn_journal::{Disk, Entry, Journal, Opening, Options, ReplayError};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::ahead::Ahead;
use crate::checkpoint;
use crate::commit::Waiting;
use crate::core::{Core, decode};
use crate::cursor::Malformed;
use crate::entry::BATCH_AT;
use crate::error::{OpenError, OpenErrorKind};
use crate::fold::Fold;
use crate::ids::{LeaderEpoch, Timestamp};
use crate::inflaters::Inflaters;
use crate::observer::{Event, Observer};
use crate::settings::{Durability, Settings};
use crate::snapshot::{Decoded, Source};
use crate::state::{IndexLimits, State};
use crate::tail::Tail;
use crate::watch::Waiters;

use super::maintain::Upkeep;
use super::{IdSource, Inner, Prepared, Store};

/// A log that has been read and is about to be written.
struct Recovered {
    opening: Opening,
    parts: Parts,
}

struct Parts {
    core: Arc<Core>,
    prepared: Prepared,
    settings: Settings,
    checkpoint: u64,
    epoch: u32,
}

impl Store {
    /// Opens the log in a directory, or begins one. Blocks until everything that was written is read back as far as it is
    /// not in a checkpoint, and the new owner epoch is durable.
    ///
    /// `seed` is for identities that are drawn; it should come from the operating system.
    ///
    /// # Errors
    /// See [`OpenErrorKind`].
    pub fn open(
        disk: Arc<dyn Disk>,
        settings: Settings,
        seed: u64,
        observer: Arc<dyn Observer>,
        now: Timestamp,
    ) -> Result<Self, OpenError> {
        let recovered = recover(disk, settings, seed, observer)?;
        let Recovered { opening, parts } = recovered;
        let consumer: Arc<Core> = Arc::clone(&parts.core);
        let journal = opening.start(consumer).map_err(|error| refused(&error))?;
        Ok(Self::assemble(parts, journal, true, now))
    }

    /// Opens without a writer thread: nothing becomes durable but by [`Stepper::step`](kolumn_journal::Stepper::step).
    /// For simulations that repeat exactly.
    ///
    /// # Errors
    /// See [`OpenErrorKind`].
    #[cfg(feature = "test-util")]
    pub fn open_stepped(
        disk: Arc<dyn Disk>,
        settings: Settings,
        seed: u64,
        observer: Arc<dyn Observer>,
        now: Timestamp,
    ) -> Result<(Self, kolumn_journal::Stepper), OpenError> {
        let recovered = recover(disk, settings, seed, observer)?;
        let Recovered { opening, parts } = recovered;
        let consumer: Arc<Core> = Arc::clone(&parts.core);
        let (journal, stepper) = opening.start_stepped(consumer).map_err(|error| refused(&error))?;
        Ok((Self::assemble(parts, journal, false, now), stepper))
    }

    fn assemble(parts: Parts, journal: Journal, has_writer: bool, now: Timestamp) -> Self {
        let Parts { core, prepared, settings, checkpoint, epoch } = parts;
        let inflaters = Arc::new(Inflaters::default());
        let source = Source {
            core: Arc::clone(&core),
            inflaters: Arc::clone(&inflaters),
            inflated_len_max: settings.inflated_len_max,
            decoded: Decoded::new(settings.decoded_len_max),
        };
        let inner = Inner {
            core,
            journal,
            prepared: Mutex::new(prepared),
            upkeep: Mutex::new(Upkeep::new(checkpoint, now)),
            inflaters,
            source: Arc::new(source),
            settings,
            epoch: LeaderEpoch::new(i32::try_from(epoch).unwrap_or(i32::MAX)),
            space: Mutex::new((0, 1)),
            has_writer,
        };
        inner.refresh_space();
        Self { inner: Arc::new(inner) }
    }
}

fn recover(
    disk: Arc<dyn Disk>,
    settings: Settings,
    seed: u64,
    observer: Arc<dyn Observer>,
) -> Result<Recovered, OpenError> {
    settings.validate()?;
    let options = options_for(&disk, &settings, seed)?;
    let opening = Journal::open(disk, options).map_err(|error| refused(&error))?;
    // Files may have been written with another length: no stride may reach over the end of one.
    let limits = IndexLimits::new(settings.index_len_max, opening.file_alignment());
    let (mut state, checkpoint) = match opening.checkpoint() {
        None => (State::new(Some(limits)), 0),
        Some((position, payload)) => {
            (checkpoint::decode(&payload, limits).map_err(damaged)?, position.value())
        }
    };
    let mut replayed = 0_u64;
    let (mut group, mut group_end) = (0, 0);
    opening
        .replay(|entry: Entry| {
            if entry.group_end.value() != group_end {
                // Where the group before ended; before the first one the entry itself will do.
                group = if replayed == 0 { entry.position.value() } else { group_end };
                group_end = entry.group_end.value();
            }
            let (decoded, place) = decode(group, entry.position.value(), &entry.bytes)?;
            state.apply(&decoded, place);
            replayed += 1;
            Ok(())
        })
        .map_err(|error| match error {
            ReplayError::Stopped(malformed) => damaged(malformed),
            other => OpenError::new(OpenErrorKind::Io, describe(&other)),
        })?;
    state.check();
    let torn_len = opening.report().torn.as_ref().map_or(0, |torn| torn.len);
    let epoch = opening.owner_epoch();
    observer.event(&Event::Opened { epoch, topics: state.topics.len(), replayed, torn_len });
    let prepared = Prepared {
        next_producer_id: state.next_producer_id,
        state: state.without_index(),
        last_sequence: None,
        ids: IdSource::new(seed, opening.log_id(), epoch),
    };
    let core = Core {
        fold: Fold::new(state.clone(), opening.end().value()),
        applied: RwLock::new(state),
        tail: RwLock::new(Tail::new(settings.tail_len_max)),
        ahead: Ahead::default(),
        waiting: Waiting::default(),
        waiters: Arc::new(Waiters::default()),
        space_news: Arc::new(Notify::new()),
        is_full: AtomicBool::new(false),
        observer,
        scratch: Mutex::default(),
    };
    let parts = Parts { core: Arc::new(core), prepared, settings, checkpoint, epoch };
    Ok(Recovered { opening, parts })
}

fn options_for(disk: &Arc<dyn Disk>, settings: &Settings, seed: u64) -> Result<Options, OpenError> {
    let size_limit = match settings.size_limit {
        Some(limit) => limit,
        None => default_limit(disk.as_ref()).map_err(|error| OpenError::new(OpenErrorKind::Io, error))?,
    };
    let mut options = Options::default();
    options.tenant = settings.tenant;
    options.seed = IdSource::new(seed, Uuid::nil(), 0).next();
    options.file_len = settings.file_len;
    options.entry_len_max = settings.batch_len_max.saturating_add(BATCH_AT).max(ENTRY_LEN_MIN);
    options.queue_len_max = settings.queue_len_max.max(options.entry_len_max.saturating_add(ENTRY_ROOM));
    // Blocks that the tail holds count too: what leaves it is written into again.
    options.pool_len_max = settings.tail_len_max.saturating_add(POOL_ROOM);
    options.checkpoint_reserve_len = options.checkpoint_reserve_len.min(settings.file_len);
    options.durability = match settings.durability {
        Durability::Sync => kolumn_journal::Durability::Sync,
        Durability::Os => kolumn_journal::Durability::Os,
    };
    #[cfg(feature = "test-util")]
    {
        options.mutant = settings.mutant;
    }
    options.size_limit = size_limit.max(settings.file_len.saturating_mul(FILES_MIN));
    Ok(options)
}

/// Three quarters of what is free, and what the log has already.
fn default_limit(disk: &dyn Disk) -> std::io::Result<u64> {
    let free = disk.free_space()?;
    Ok(Journal::len_on(disk)?.saturating_add(free - free / 4))
}

fn damaged(error: Malformed) -> OpenError {
    OpenError::new(OpenErrorKind::Damaged, format!("the log holds what this build cannot read: {error}"))
}

fn refused(error: &kolumn_journal::OpenError) -> OpenError {
    use kolumn_journal::OpenErrorKind as Theirs;
    let kind = match error.kind() {
        Theirs::InvalidOptions => OpenErrorKind::Settings,
        Theirs::Locked => OpenErrorKind::Locked,
        Theirs::Damaged(_) => OpenErrorKind::Damaged,
        Theirs::UnknownVersion | Theirs::WrongLog => OpenErrorKind::Unsupported,
        _ => OpenErrorKind::Io,
    };
    OpenError::new(kind, describe(error))
}

/// An error with its causes in one line: ours carries no source of the journal's types.
pub(super) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}

const FILES_MIN: u64 = 4;
const POOL_ROOM: usize = 8 << 20;
const ENTRY_LEN_MIN: usize = 16 << 10;
/// What an entry's frame and padding may add.
const ENTRY_ROOM: usize = 8 << 10;
