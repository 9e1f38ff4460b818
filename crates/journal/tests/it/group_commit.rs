//! What is appended while one group is on its way to the disk gathers for the next.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::sim::{CallKind, SimDisk};
use kolumn_journal::{AdmitErrorKind, Class, Disk, DiskFile, DiskLock, Journal, Options};
use parking_lot::{Condvar, Mutex};

use crate::support::{Chance, Recorder, append, open, replayed, seeds, small};

/// Lets each sync wait until it is allowed.
#[derive(Debug, Default)]
struct Gate {
    /// How many syncs may pass, and how many have come.
    state: Mutex<(usize, usize)>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock();
        state.1 += 1;
        self.changed.notify_all();
        self.changed.wait_while(&mut state, |(allowed, _)| *allowed == 0);
        state.0 -= 1;
    }

    fn allow(&self, count: usize) {
        self.state.lock().0 = count;
        self.changed.notify_all();
    }

    fn wait_for_syncs(&self, count: usize) {
        self.changed.wait_while(&mut self.state.lock(), |(_, come)| *come < count);
    }
}

#[derive(Debug)]
struct Gated<T: ?Sized> {
    gate: Arc<Gate>,
    inner: Arc<T>,
}

impl Disk for Gated<dyn Disk> {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(Gated { gate: self.gate.clone(), inner: self.inner.create(name)? }))
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(Gated { gate: self.gate.clone(), inner: self.inner.open(name)? }))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }
    fn sync_dir(&self) -> io::Result<()> {
        self.inner.sync_dir()
    }
    fn lock(&self) -> io::Result<DiskLock> {
        self.inner.lock()
    }
    fn free_space(&self) -> io::Result<u64> {
        self.inner.free_space()
    }
}

impl DiskFile for Gated<dyn DiskFile> {
    fn preallocate(&self, len: u64) -> io::Result<()> {
        self.inner.preallocate(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, bytes)
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.inner.read_at(offset, into)
    }
    fn sync(&self) -> io::Result<()> {
        self.gate.pass();
        self.inner.sync()
    }
}

#[test]
fn entries_queued_during_one_sync_go_into_one_group() {
    let gate = Arc::new(Gate::default());
    gate.allow(1000);
    let sim: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    let disk: Arc<dyn Disk> = Arc::new(Gated { gate: gate.clone(), inner: sim });
    let recorder = Arc::new(Recorder::default());
    let journal = Journal::open(disk, small()).unwrap().start(recorder.clone()).unwrap();
    gate.allow(0);
    let before = gate.state.lock().1;
    append(&journal, b"first").unwrap();
    gate.wait_for_syncs(before + 1);
    for nth in 0..10 {
        append(&journal, &[nth]).unwrap();
    }
    assert_eq!(recorder.committed_len(), 0, "nothing is told before the sync");
    gate.allow(1000);
    journal.close();
    assert_eq!(recorder.group_sizes(), [1, 10]);
}

#[test]
fn an_idle_writer_says_by_itself_what_was_synced() {
    let sim = SimDisk::new(1);
    let recorder = Arc::new(Recorder::default());
    let journal = Journal::open(Arc::new(sim.clone()), small()).unwrap().start(recorder.clone()).unwrap();
    append(&journal, b"last").unwrap();
    while recorder.committed_len() == 0 {
        std::thread::yield_now();
    }
    let end = recorder.groups.lock()[0].1;
    while journal.durable_position() == end {
        std::thread::yield_now();
    }
    assert_eq!(journal.durable_position(), end.plus(kolumn_journal::BLOCK as u64));
    assert_eq!(recorder.group_sizes(), [1], "the empty group is not told");
}

#[test]
fn a_log_dropped_without_closing_writes_what_was_appended_and_unlocks() {
    let sim = SimDisk::new(1);
    let recorder = Arc::new(Recorder::default());
    let journal = Journal::open(Arc::new(sim.clone()), small()).unwrap().start(recorder).unwrap();
    for nth in 0..10 {
        append(&journal, &[nth]).unwrap();
    }
    drop(journal);
    let opening = loop {
        match Journal::open(Arc::new(sim.clone()), small()) {
            Ok(opening) => break opening,
            Err(error) => assert_eq!(error.kind(), kolumn_journal::OpenErrorKind::Locked),
        }
    };
    assert_eq!(crate::support::replayed(&opening).len(), 10);
}

/// Options with which most groups are long enough to overlap.
fn overlapping() -> Options {
    let mut options = small();
    options.block_len = kolumn_journal::BLOCK;
    options
}

fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

#[test]
fn the_next_group_is_copied_together_while_the_disk_works() {
    let gate = Arc::new(Gate::default());
    gate.allow(1000);
    let sim: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    let disk: Arc<dyn Disk> = Arc::new(Gated { gate: gate.clone(), inner: sim });
    let recorder = Arc::new(Recorder::default());
    let journal = Journal::open(disk, overlapping()).unwrap().start(recorder.clone()).unwrap();
    gate.allow(0);
    let before = gate.state.lock().1;
    append(&journal, &[1; 8000]).unwrap();
    gate.wait_for_syncs(before + 1);
    let bodies: Vec<Bytes> = (2..6).map(|fill| Bytes::from(vec![fill; 6000])).collect();
    for body in &bodies {
        let admission = journal.admit(body.len(), Class::Data).unwrap();
        journal.append(admission, b"", body.clone()).unwrap();
    }
    // The first two go into a group that follows the first, the others into the one after it.
    until(|| bodies.iter().all(Bytes::is_unique));
    assert_eq!(recorder.committed_len(), 0, "nothing is told before the sync");
    gate.allow(1);
    until(|| recorder.committed_len() > 0);
    assert_eq!(recorder.group_sizes(), [1], "a group is told when it is synced itself");
    gate.allow(1000);
    journal.close();
    assert_eq!(recorder.group_sizes(), [1, 2, 2]);
    let told: Vec<u8> = recorder.entries.lock().iter().map(|(_, _, bytes)| bytes[0]).collect();
    assert_eq!(told, [1, 2, 3, 4, 5]);
}

/// Appends entries of these lengths, each as soon as there is room, until all are or the log has failed.
fn append_all(journal: &Journal, lens: impl Iterator<Item = u64>) -> Vec<Vec<u8>> {
    let mut appended = Vec::new();
    for (len, nth) in lens.zip(0_u64..) {
        let entry: Vec<u8> =
            nth.to_le_bytes().into_iter().cycle().take(usize::try_from(len).unwrap()).collect();
        let admission = loop {
            match journal.admit(entry.len(), Class::Data) {
                Ok(admission) => break admission,
                Err(error) if error.kind() == AdmitErrorKind::Busy => std::thread::yield_now(),
                Err(_) => return appended,
            }
        };
        if journal.append(admission, b"", entry.clone().into()).is_err() {
            break;
        }
        appended.push(entry);
    }
    appended
}

#[test]
fn overlapping_groups_that_were_told_survive_any_loss_of_power() {
    for seed in 0..seeds(50) {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let sim = SimDisk::new(seed);
        let recorder = Arc::new(Recorder::default());
        let journal = open(&sim, &overlapping()).unwrap().start(recorder.clone()).unwrap();
        sim.cut_power_after(1 + chance.below(120));
        let lens = (0..chance.below(200)).map(|_| chance.below(8 << 10)).collect::<Vec<_>>();
        let appended = append_all(&journal, lens.into_iter());
        journal.close();
        sim.crash();
        let told: Vec<Bytes> = recorder.entries.lock().iter().map(|(_, _, bytes)| bytes.clone()).collect();
        let found = replayed(&open(&sim, &overlapping()).unwrap());
        assert!(
            found.len() >= told.len(),
            "seed {seed}: {} found of {} that were told",
            found.len(),
            told.len()
        );
        assert!(found.len() <= appended.len(), "seed {seed}: more than was appended");
        for (nth, entry) in found.iter().enumerate() {
            assert_eq!(entry.sequence, nth as u64, "seed {seed}");
            assert!(entry.bytes == appended[nth], "seed {seed}: entry {nth}");
        }
        assert!(told.iter().zip(&appended).all(|(told, appended)| told == appended), "seed {seed}");
    }
}

#[test]
fn behind_a_group_that_the_disk_refused_nothing_is_told() {
    for (kind, nth) in [(CallKind::Write, 1), (CallKind::Write, 3), (CallKind::Sync, 1), (CallKind::Sync, 4)]
    {
        let sim = SimDisk::new(nth);
        let recorder = Arc::new(Recorder::default());
        let journal = open(&sim, &overlapping()).unwrap().start(recorder.clone()).unwrap();
        sim.fail(kind, nth, io::ErrorKind::Other);
        let appended = append_all(&journal, std::iter::repeat_n(8000, 60));
        journal.close();
        assert_eq!(recorder.failures.lock().len(), 1, "{kind:?} {nth}");
        assert!(recorder.committed_len() < appended.len(), "{kind:?} {nth}");
        let found = replayed(&open(&sim, &overlapping()).unwrap());
        assert!(found.len() >= recorder.committed_len(), "{kind:?} {nth}");
    }
}
