//! Checkpoints, and the files that they let go.

use std::ops::ControlFlow;

use bytes::Bytes;
use kolumn_journal::sim::SimDisk;
use kolumn_journal::{CheckpointErrorKind, FreeErrorKind, Position, ReadErrorKind};

use crate::support::{Stepped, names, open, replayed, small};

#[test]
fn a_checkpoint_stands_for_what_lies_before_it() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    log.fill(5);
    let middle = log.journal.durable_position();
    log.journal.write_checkpoint(middle, b"five").unwrap();
    log.fill(3);
    drop(log);
    let opening = open(&sim, &small()).unwrap();
    assert_eq!(opening.checkpoint(), Some((middle, Bytes::from_static(b"five"))));
    let sequences: Vec<u64> = replayed(&opening).iter().map(|entry| entry.sequence).collect();
    assert_eq!(sequences, [5, 6, 7]);
    assert_eq!(opening.report().checkpoint, Some(middle));
}

#[test]
fn a_checkpoint_is_taken_at_group_boundaries_only_and_never_goes_back() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    log.fill(40);
    let refused = |position| log.journal.write_checkpoint(position, b"").map_err(|error| error.kind());
    let groups = log.recorder.groups.lock().clone();
    assert_eq!(refused(log.journal.durable_position().plus(4096)), Err(CheckpointErrorKind::InvalidPosition));
    assert_eq!(refused(groups[3].0.plus(4096).plus(1)), Err(CheckpointErrorKind::InvalidPosition));
    for group in &groups {
        assert_eq!(refused(group.1), Ok(()));
    }
    assert_eq!(refused(groups[3].1), Err(CheckpointErrorKind::InvalidPosition));
}

#[test]
fn the_previous_checkpoint_is_kept_and_serves_if_the_newest_is_unreadable() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    for _ in 0..3 {
        log.fill(2);
        let payload = log.recorder.committed_len().to_string();
        log.journal.write_checkpoint(log.journal.durable_position(), payload.as_bytes()).unwrap();
    }
    let newest = log.journal.checkpoint_position().unwrap();
    drop(log);
    let names: Vec<String> = names(&sim, ".checkpoint");
    assert_eq!(names.len(), 2);
    let mut content = sim.content(&names[1]).unwrap();
    content[96] ^= 1;
    sim.set_content(&names[1], content);
    let opening = open(&sim, &small()).unwrap();
    assert_eq!(opening.checkpoint().unwrap().1, "4");
    assert!(opening.checkpoint().unwrap().0 < newest);
    assert_eq!(opening.report().checkpoints_skipped, 1);
    assert_eq!(replayed(&opening).len(), 2);
}

#[test]
fn freed_files_are_used_again_and_what_they_held_is_never_valid() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    for round in 0..20u8 {
        log.fill(20);
        log.journal.write_checkpoint(log.journal.durable_position(), &[round]).unwrap();
        for file in log.journal.files().iter().filter(|file| !file.active) {
            log.journal.free(file.base).unwrap();
        }
        assert_eq!(log.journal.files().len(), 1);
    }
    assert!(sim.used() < 10 * small().file_len, "files are recycled");
    log.fill(3);
    drop(log);
    let opening = open(&sim, &small()).unwrap();
    assert_eq!(replayed(&opening).len(), 3);
    assert_eq!(opening.report().torn, None);
}

#[test]
fn a_file_is_freed_only_when_a_checkpoint_covers_it() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    log.fill(20);
    let files = log.journal.files();
    let free = |base| log.journal.free(base).map_err(|error| error.kind());
    assert_eq!(free(files[0].base), Err(FreeErrorKind::InUse));
    log.journal.write_checkpoint(log.journal.durable_position(), b"").unwrap();
    assert_eq!(free(files.last().unwrap().base), Err(FreeErrorKind::InUse));
    assert_eq!(free(Position::new(77)), Err(FreeErrorKind::UnknownFile));
    assert_eq!(free(files[0].base), Ok(()));
    assert_eq!(free(files[0].base), Err(FreeErrorKind::UnknownFile));
}

#[test]
fn a_pinned_file_stays_readable_after_it_was_freed_and_is_not_reused() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    log.fill(20);
    let (_, position, bytes) = log.recorder.entries.lock()[2].clone();
    let pin = log.journal.pin(position).unwrap();
    assert!(log.journal.files()[0].pinned);
    log.journal.write_checkpoint(log.journal.durable_position(), b"").unwrap();
    log.journal.free(pin.base()).unwrap();
    assert_eq!(log.journal.read(position, bytes.len()).unwrap_err().kind(), ReadErrorKind::Freed);
    log.fill(60);
    assert_eq!(pin.read(position, bytes.len()).unwrap(), bytes);
}

#[test]
fn a_pinned_file_is_scanned_to_its_end_after_it_was_freed() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    log.fill(60);
    let told = log.recorder.entries.lock().clone();
    let groups = log.recorder.groups.lock().clone();
    let pin = log.journal.pin(told[0].1).unwrap();
    let inside: Vec<_> = told.iter().filter(|entry| pin.holds(entry.1)).cloned().collect();
    let end = log.journal.files()[0].end_written;
    assert!(inside.len() > 5 && inside.len() < told.len());
    log.journal.write_checkpoint(log.journal.durable_position(), b"").unwrap();
    log.journal.free(pin.base()).unwrap();
    let scan = |from: Position, to: Position| {
        let mut found = Vec::new();
        let stopped = pin.scan(from, to, |entry| {
            found.push((entry.sequence, entry.position, entry.bytes));
            ControlFlow::Continue(())
        });
        (stopped.unwrap(), found)
    };
    assert_eq!(scan(Position::ORIGIN, Position::new(u64::MAX)), (end, inside.clone()));
    for (entry, nth) in inside.iter().zip(0..) {
        assert_eq!(scan(entry.1, end).1, inside[nth..]);
    }
    let (first, third) = (groups[0], groups[2]);
    assert_eq!(scan(first.0, third.0).0, groups[1].1);
    assert_eq!(scan(end, Position::new(u64::MAX)), (end, Vec::new()));
    assert_eq!(pin.scan(first.0, end, |_| ControlFlow::Break(())).unwrap(), first.0);
}

#[test]
fn a_checkpoint_may_lie_before_groups_that_an_earlier_opening_wrote() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    log.append(&[1; 100]);
    log.step_all();
    let position = log.journal.durable_position();
    drop(log);
    // Each opening writes a group without entries.
    drop(Stepped::start(&sim, &small()));
    let log = Stepped::start(&sim, &small());
    log.journal.write_checkpoint(position, b"one entry").unwrap();
    drop(log);
    let opening = open(&sim, &small()).unwrap();
    assert_eq!(opening.checkpoint().unwrap().0, position);
    assert_eq!(opening.owner_epoch(), 3);
}
