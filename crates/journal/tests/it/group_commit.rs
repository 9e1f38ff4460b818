//! What is appended while one group is on its way to the disk gathers for the next.

use std::io;
use std::sync::Arc;

use kolumn_journal::sim::SimDisk;
use kolumn_journal::{Disk, DiskFile, DiskLock, Journal};
use parking_lot::{Condvar, Mutex};

use crate::support::{Recorder, append, small};

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
