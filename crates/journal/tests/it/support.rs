//! What the tests have in common: small logs, a consumer that remembers, random numbers from a seed.

use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::sim::SimDisk;
use kolumn_journal::{
    Class, CommittedGroup, Consumer, Disk, Entry, Failure, Journal, OpenError, Opening, Options, Position,
    Stepper,
};
use parking_lot::Mutex;

/// Options for logs that roll and fill quickly.
pub(crate) fn small() -> Options {
    let mut options = Options::default();
    options.seed = 11;
    options.file_len = 64 << 10;
    options.entry_len_max = 8 << 10;
    options.group_len_max = 16 << 10;
    options.queue_len_max = 64 << 10;
    options.block_len = 16 << 10;
    options.pool_len_max = 256 << 10;
    options.checkpoint_reserve_len = 8 << 10;
    options
}

/// Remembers what it is told.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) entries: Mutex<Vec<(u64, Position, Bytes)>>,
    pub(crate) groups: Mutex<Vec<(Position, Position, usize)>>,
    pub(crate) failures: Mutex<Vec<Failure>>,
    pub(crate) rooms: Mutex<usize>,
}

impl Recorder {
    pub(crate) fn committed_len(&self) -> usize {
        self.entries.lock().len()
    }

    pub(crate) fn group_sizes(&self) -> Vec<usize> {
        self.groups.lock().iter().map(|(_, _, entries)| *entries).collect()
    }
}

impl Consumer for Recorder {
    fn committed(&self, group: &CommittedGroup) {
        self.groups.lock().push((group.position, group.end, group.entries.len()));
        let told = group.entries.iter().map(|entry| (entry.sequence, entry.position, entry.bytes.clone()));
        self.entries.lock().extend(told);
    }

    fn failed(&self, failure: &Failure) {
        self.failures.lock().push(failure.clone());
    }

    fn room(&self) {
        *self.rooms.lock() += 1;
    }
}

pub(crate) fn open(sim: &SimDisk, options: &Options) -> Result<Opening, OpenError> {
    let disk: Arc<dyn Disk> = Arc::new(sim.clone());
    Journal::open(disk, options.clone())
}

/// A log on a simulated disk that is written in steps.
#[derive(Debug)]
pub(crate) struct Stepped {
    pub(crate) journal: Journal,
    pub(crate) stepper: Stepper,
    pub(crate) recorder: Arc<Recorder>,
}

impl Stepped {
    pub(crate) fn start(sim: &SimDisk, options: &Options) -> Self {
        let recorder = Arc::new(Recorder::default());
        let (journal, stepper) = open(sim, options).unwrap().start_stepped(recorder.clone()).unwrap();
        Self { journal, stepper, recorder }
    }

    pub(crate) fn append(&self, bytes: &[u8]) -> u64 {
        append(&self.journal, bytes).unwrap()
    }

    pub(crate) fn step_all(&mut self) {
        while self.stepper.step() {}
    }

    /// Appends and commits entry after entry of 4,000 bytes.
    pub(crate) fn fill(&mut self, count: usize) {
        for nth in 0..count {
            self.append(&vec![u8::try_from(nth % 251).unwrap(); 4000]);
            self.step_all();
        }
    }
}

/// Appends an entry; its first half as head.
pub(crate) fn append(journal: &Journal, bytes: &[u8]) -> Result<u64, kolumn_journal::AdmitErrorKind> {
    let admission = journal.admit(bytes.len(), Class::Data).map_err(|error| error.kind())?;
    let (head, body) = bytes.split_at((bytes.len() / 2).min(256));
    Ok(journal.append(admission, head, Bytes::copy_from_slice(body)).unwrap())
}

/// All entries that an opening replays.
pub(crate) fn replayed(opening: &Opening) -> Vec<Entry> {
    let mut entries = Vec::new();
    opening
        .replay(|entry| {
            entries.push(entry);
            Ok::<(), ()>(())
        })
        .unwrap();
    entries
}

/// Numbers that follow from a seed.
#[derive(Debug)]
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// How many seeds a test runs: its share of `KOLUMN_SEEDS`, 200 if that is not set.
pub(crate) fn seeds(share_percent: u64) -> u64 {
    let all = std::env::var("KOLUMN_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(200u64);
    (all * share_percent / 100).max(1)
}

/// The files with this ending, sorted.
pub(crate) fn names(sim: &SimDisk, ending: &str) -> Vec<String> {
    sim.list().unwrap().into_iter().filter(|name| name.ends_with(ending)).collect()
}
