//! Every disk keeps the contract.

use std::sync::Arc;

use kolumn_journal::disk::{buffered, conformance};
use kolumn_journal::sim::SimDisk;
use kolumn_journal::{Disk, probe};

#[test]
fn the_simulated_disk_keeps_the_contract() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(3));
    conformance::check(&disk).unwrap();
}

#[test]
fn the_buffered_disk_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    conformance::check(&buffered(dir.path()).unwrap()).unwrap();
}

#[test]
fn the_disk_that_the_probe_chooses_keeps_the_contract() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (disk, kind) = probe(dir.path()).unwrap();
    conformance::check(&disk).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
}
