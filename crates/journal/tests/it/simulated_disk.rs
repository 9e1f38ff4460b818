//! The simulated disk loses what it may, and nothing else.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use kolumn_journal::sim::{CallKind, SimDisk};
use kolumn_journal::{BLOCK, Disk, DiskFile};

/// An aligned block.
fn block(fill: u8) -> BytesMut {
    let mut memory = BytesMut::zeroed(2 * BLOCK);
    memory.advance(memory.as_ptr().addr().wrapping_neg() % BLOCK);
    memory.truncate(BLOCK);
    memory.fill(fill);
    memory
}

fn file(sim: &SimDisk) -> Arc<dyn DiskFile> {
    let file = sim.create("f").unwrap();
    file.preallocate(BLOCK as u64).unwrap();
    sim.sync_dir().unwrap();
    file
}

/// The sectors of the file that hold this.
fn sectors(sim: &SimDisk, fill: u8) -> Vec<bool> {
    sim.content("f").unwrap().chunks(512).map(|sector| sector.iter().all(|byte| *byte == fill)).collect()
}

#[test]
fn what_a_sync_covered_survives_every_crash() {
    for seed in 0..50 {
        let sim = SimDisk::new(seed);
        let file = file(&sim);
        file.write_at(0, &block(1)).unwrap();
        file.sync().unwrap();
        sim.crash();
        assert_eq!(sectors(&sim, 1), [true; 8]);
    }
}

#[test]
fn any_subset_of_unsynced_sectors_may_survive() {
    let mut seen = BTreeSet::new();
    for seed in 0..2000 {
        let sim = SimDisk::new(seed);
        let file = file(&sim);
        file.write_at(0, &block(1)).unwrap();
        file.sync().unwrap();
        file.write_at(0, &block(2)).unwrap();
        sim.crash();
        let new = sectors(&sim, 2);
        assert!(new.iter().zip(sectors(&sim, 1)).all(|(new, old)| *new != old), "a sector is old or new");
        seen.insert(new);
    }
    assert!(seen.contains(&vec![true; 8]) && seen.contains(&vec![false; 8]));
    assert!(seen.len() > 150, "{} of 256 subsets", seen.len());
}

#[test]
fn after_a_failed_sync_a_later_one_covers_nothing_of_before() {
    let lost = (0..50).any(|seed| {
        let sim = SimDisk::new(seed);
        let file = file(&sim);
        file.write_at(0, &block(1)).unwrap();
        sim.fail(CallKind::Sync, 1, io::ErrorKind::Other);
        assert!(file.sync().is_err());
        file.sync().unwrap();
        sim.crash();
        sectors(&sim, 1) != [true; 8]
    });
    assert!(lost);
}

#[test]
fn names_are_certain_only_after_the_directory_was_synced() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let sim = SimDisk::new(seed);
        drop(file(&sim));
        drop(sim.create("g").unwrap());
        sim.rename("f", "h").unwrap();
        let synced = sim.duplicate();
        synced.sync_dir().unwrap();
        synced.crash();
        assert_eq!(synced.list().unwrap(), ["g", "h"]);
        sim.crash();
        seen.insert(sim.list().unwrap());
    }
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let all: BTreeSet<_> = [&["f"][..], &["f", "g"], &["h"], &["g", "h"]].into_iter().map(names).collect();
    assert_eq!(seen, all);
}

#[test]
fn a_full_disk_refuses_more_and_the_power_goes_when_it_shall() {
    let sim = SimDisk::new(1);
    sim.set_capacity(2 * BLOCK as u64);
    let file = file(&sim);
    assert_eq!(file.preallocate(3 * BLOCK as u64).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(sim.free_space().unwrap(), BLOCK as u64);
    sim.cut_power_after(2);
    assert!(file.sync().is_ok());
    assert!(file.sync().is_err() && sim.is_off());
    assert!(sim.list().is_err());
    sim.crash();
    assert_eq!(sim.list().unwrap(), ["f"]);
    assert!(file.sync().is_err(), "handles end with the power");
}

#[test]
fn calls_that_are_not_aligned_are_refused() {
    let sim = SimDisk::new(1);
    let file = file(&sim);
    let whole = block(1);
    assert_eq!(file.write_at(1, &whole).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(file.write_at(0, &whole[..512]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}
