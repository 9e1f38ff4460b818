//! A full disk is met at admission and nowhere else, and what frees files still works on it.

use std::io;

use bytes::Bytes;
use kolumn_journal::sim::{CallKind, SimDisk};
use kolumn_journal::{AdmitErrorKind, Class, Options};

use crate::support::{Chance, Stepped, append, names, open, replayed, small};

/// Fills the log with entries of these lengths until it says that it is full; returns how many it took.
fn fill_up(log: &mut Stepped, mut len: impl FnMut() -> usize) -> usize {
    let mut count = 0;
    loop {
        match append(&log.journal, &vec![7; len()]) {
            Ok(_) => count += 1,
            Err(AdmitErrorKind::Busy) => assert!(log.stepper.step(), "room comes from writing"),
            Err(AdmitErrorKind::Full) if !log.stepper.step() => break,
            Err(AdmitErrorKind::Full) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    log.step_all();
    count
}

fn limited() -> Options {
    let mut options = small();
    options.size_limit = options.file_len * 6;
    options
}

#[test]
fn at_the_size_limit_appends_are_refused_until_files_are_freed() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &limited());
    fill_up(&mut log, || 3000);
    assert!(sim.used() <= limited().size_limit + (64 << 10), "files, checkpoint and reserve");
    let rooms = *log.recorder.rooms.lock();
    log.journal.write_checkpoint(log.journal.durable_position(), b"state").unwrap();
    log.journal.free(log.journal.files()[0].base).unwrap();
    log.step_all();
    assert!(*log.recorder.rooms.lock() > rooms, "room is told");
    assert!(append(&log.journal, &[1; 3000]).is_ok());
}

#[test]
fn deletions_and_a_checkpoint_work_on_a_full_disk() {
    let sim = SimDisk::new(1);
    sim.set_capacity(small().file_len * 5 + 5000);
    let mut log = Stepped::start(&sim, &small());
    fill_up(&mut log, || 5000);
    assert_eq!(append(&log.journal, &[0]), Err(AdmitErrorKind::Full));
    sim.set_capacity(sim.used());
    for _ in 0..5 {
        let admission = log.journal.admit(5, Class::Reclaim).unwrap();
        log.journal.append(admission, b"", Bytes::from_static(b"erase")).unwrap();
        log.step_all();
    }
    log.journal.write_checkpoint(log.journal.durable_position(), &[3; 6000]).unwrap();
    for file in log.journal.files().iter().filter(|file| !file.active) {
        log.journal.free(file.base).unwrap();
    }
    log.step_all();
    assert!(append(&log.journal, &[0; 5000]).is_ok());
    log.step_all();
    assert!(log.recorder.failures.lock().is_empty());
}

#[test]
fn what_was_admitted_is_written_whatever_the_lengths() {
    for seed in 1..60 {
        let sim = SimDisk::new(seed);
        let mut chance = Chance(seed);
        sim.set_capacity(small().file_len * (3 + chance.below(4)) + chance.below(60_000));
        let mut log = Stepped::start(&sim, &small());
        for _ in 0..4 {
            let longest = 1 + chance.below(8192);
            let count = fill_up(&mut log, || usize::try_from(chance.below(longest)).unwrap());
            assert!(log.recorder.failures.lock().is_empty(), "seed {seed}: {count} entries");
            log.journal.write_checkpoint(log.journal.durable_position(), b"").unwrap();
            let base = log.journal.files()[0].base;
            drop(log.journal.free(base));
            log.stepper.idle();
        }
    }
}

#[test]
fn a_full_log_opens_again_many_times() {
    let sim = SimDisk::new(1);
    sim.set_capacity(small().file_len * 4 + 20_000);
    let mut log = Stepped::start(&sim, &small());
    let count = fill_up(&mut log, || 2000);
    drop(log);
    for _ in 0..10 {
        assert_eq!(replayed(&open(&sim, &small()).unwrap()).len(), count);
        drop(Stepped::start(&sim, &small()));
    }
}

#[test]
fn a_disk_that_gets_room_from_elsewhere_is_tried_again() {
    let sim = SimDisk::new(1);
    sim.set_capacity(small().file_len * 4);
    let mut log = Stepped::start(&sim, &small());
    fill_up(&mut log, || 3000);
    let rooms = *log.recorder.rooms.lock();
    assert_eq!(append(&log.journal, &[0; 3000]), Err(AdmitErrorKind::Full));
    assert_eq!(log.journal.space().growth_error, None, "it is full, and nothing else");
    sim.set_capacity(u64::MAX);
    log.stepper.idle();
    assert!(*log.recorder.rooms.lock() > rooms);
    assert!(append(&log.journal, &[0; 3000]).is_ok());
}

#[test]
fn a_disk_that_refuses_files_for_another_reason_is_quoted_and_tried_again() {
    for kind in [CallKind::Create, CallKind::Preallocate] {
        let sim = SimDisk::new(1);
        let mut log = Stepped::start(&sim, &small());
        sim.fail(kind, 1, io::ErrorKind::NotFound);
        fill_up(&mut log, || 3000);
        assert_eq!(append(&log.journal, &[0; 3000]), Err(AdmitErrorKind::Full), "{kind:?}");
        let cause = log.journal.growth_error().expect("the disk was not full");
        assert!(cause.contains(&io::Error::from(io::ErrorKind::NotFound).to_string()), "{cause}");
        assert_eq!(log.journal.space().growth_error, Some(cause.clone()));
        let left = (names(&sim, ".log").len(), names(&sim, ".spare").len());
        for _ in 0..3 {
            sim.fail(kind, 1, io::ErrorKind::NotFound);
            log.stepper.idle();
            assert_eq!(log.journal.growth_error().as_ref(), Some(&cause));
        }
        assert_eq!(
            (names(&sim, ".log").len(), names(&sim, ".spare").len()),
            left,
            "nothing is left lying about"
        );
        sim.set_capacity(sim.used());
        log.stepper.idle();
        assert_eq!(log.journal.growth_error(), None, "now it is full");
        assert_eq!(append(&log.journal, &[0; 3000]), Err(AdmitErrorKind::Full));
        sim.set_capacity(u64::MAX);
        let rooms = *log.recorder.rooms.lock();
        log.stepper.idle();
        assert!(*log.recorder.rooms.lock() > rooms, "room is told");
        assert_eq!(log.journal.growth_error(), None);
        assert!(append(&log.journal, &[0; 3000]).is_ok());
        assert!(log.recorder.failures.lock().is_empty(), "the log has not failed");
    }
}
