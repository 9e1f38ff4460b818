//! Appending, committing, reading back, opening again.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use kolumn_journal::sim::{CallKind, SimDisk};
use kolumn_journal::{
    AdmitErrorKind, AppendErrorKind, CheckpointErrorKind, Class, Durability, Journal, OpenErrorKind,
    Position, ReadErrorKind, probe,
};

use crate::support::{Recorder, Stepped, append, open, replayed, small};

#[test]
fn entries_come_back_in_order_after_opening_again() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    let sent: Vec<Vec<u8>> = (0..100u8).map(|nth| vec![nth; usize::from(nth) * 30]).collect();
    for bytes in &sent {
        while append(&log.journal, bytes) == Err(AdmitErrorKind::Busy) {
            assert!(log.stepper.step());
        }
    }
    log.step_all();
    assert_eq!(log.recorder.committed_len(), 100);
    drop(log);
    let opening = open(&sim, &small()).unwrap();
    let found = replayed(&opening);
    assert_eq!(found.iter().map(|entry| entry.bytes.to_vec()).collect::<Vec<_>>(), sent);
    assert!(found.iter().zip(0..).all(|(entry, nth)| entry.sequence == nth && entry.owner_epoch == 0));
    assert_eq!(opening.owner_epoch(), 1);
    assert!(opening.report().torn.is_none());
}

#[test]
fn appended_entries_stay_uncommitted_until_the_sync_returns() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    sim.forget_calls();
    log.append(b"a");
    assert_eq!(log.recorder.committed_len(), 0);
    log.stepper.step();
    assert_eq!(log.recorder.committed_len(), 1);
    let kinds: Vec<CallKind> = sim.calls().iter().map(|call| call.kind).collect();
    assert_eq!(kinds, [CallKind::Write, CallKind::Sync]);
}

#[test]
fn what_queues_up_goes_into_one_group() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    let before = sim.stats().syncs;
    for nth in 0..10 {
        log.append(&[nth; 50]);
    }
    log.step_all();
    assert_eq!(log.recorder.group_sizes(), [10]);
    assert_eq!(sim.stats().syncs, before + 1);
}

#[test]
fn a_group_takes_no_more_than_its_limit() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    for _ in 0..6 {
        log.append(&[1; 6000]);
    }
    log.step_all();
    assert_eq!(log.recorder.group_sizes(), [2, 2, 2]);
}

#[test]
fn committed_bytes_are_read_at_any_position() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    let bytes: Vec<u8> = (0..8000u32).map(|nth| u8::try_from(nth % 251).unwrap()).collect();
    log.append(&bytes);
    log.step_all();
    let position = log.recorder.entries.lock()[0].1;
    for (from, len) in [(0usize, 8000usize), (1, 1), (4000, 200), (7999, 1), (5, 0)] {
        let read = log.journal.read(position.plus(from as u64), len).unwrap();
        assert_eq!(read, bytes[from..from + len]);
    }
    let beyond = log.journal.read(log.journal.durable_position(), 1).unwrap_err();
    assert_eq!(beyond.kind(), ReadErrorKind::OutOfRange);
    assert_eq!(log.journal.read(Position::new(1 << 40), 1).unwrap_err().kind(), ReadErrorKind::Freed);
}

#[test]
fn a_scan_begins_at_boundaries_and_inside_groups_and_goes_on_over_files() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    log.fill(60);
    assert!(log.journal.files().len() > 3);
    let told = log.recorder.entries.lock().clone();
    let groups = log.recorder.groups.lock().clone();
    let end = log.journal.durable_position();
    for (from, first) in groups
        .iter()
        .zip(0..)
        .map(|(group, nth)| (group.0, nth))
        .chain(told.iter().zip(0..).map(|(e, nth)| (e.1, nth)))
    {
        let mut found = Vec::new();
        let stopped = log.journal.scan(from, end, |entry| {
            found.push((entry.sequence, entry.position, entry.bytes));
            ControlFlow::Continue(())
        });
        assert_eq!(stopped.unwrap(), end);
        assert_eq!(found, told[first..]);
    }
    for (group, nth) in groups.iter().zip(1..) {
        let mut count = 0;
        let stopped = log.journal.scan(group.1, end, |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        assert_eq!((stopped.unwrap(), count), (end, told.len() - nth));
    }
    let first = log.journal.scan(groups[0].0, end, |_| ControlFlow::Break(())).unwrap();
    assert_eq!(first, groups[0].0);
    let some = log.journal.scan(groups[0].0, groups[5].0, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(some, groups[4].1);
}

#[test]
fn a_second_opening_fails_on_the_lock_until_the_first_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Journal::open(probe(dir.path()).unwrap().0, small());
    let journal = open().unwrap().start(Arc::new(Recorder::default())).unwrap();
    assert_eq!(open().unwrap_err().kind(), OpenErrorKind::Locked);
    journal.close();
    assert_eq!(open().unwrap().owner_epoch(), 1);
}

#[test]
fn another_log_than_the_expected_is_refused() {
    let sim = SimDisk::new(1);
    drop(Stepped::start(&sim, &small()));
    let mut other = small();
    other.log_id = Some(uuid::Uuid::from_u128(99));
    assert_eq!(open(&sim, &other).unwrap_err().kind(), OpenErrorKind::WrongLog);
    let id = open(&sim, &small()).unwrap().log_id();
    other.log_id = Some(id);
    assert_eq!(open(&sim, &other).unwrap().log_id(), id);
}

#[test]
fn an_idle_log_says_what_was_synced_in_one_empty_group() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    log.fill(1);
    let writes = sim.stats().writes;
    log.stepper.idle();
    log.stepper.idle();
    assert_eq!(sim.stats().writes, writes + 1);
    assert_eq!(log.recorder.groups.lock().len(), 1, "it is not told");
}

#[test]
fn a_failed_write_or_sync_ends_the_log() {
    for kind in [CallKind::Write, CallKind::Sync] {
        let sim = SimDisk::new(1);
        let mut log = Stepped::start(&sim, &small());
        log.fill(1);
        let admission = log.journal.admit(1, Class::Data).unwrap();
        log.append(b"lost");
        sim.fail(kind, 1, std::io::ErrorKind::Other);
        log.step_all();
        log.append_is_refused(admission);
        assert_eq!(log.recorder.committed_len(), 1);
        assert_eq!(log.recorder.failures.lock().len(), 1);
        assert_eq!(append(&log.journal, b"x"), Err(AdmitErrorKind::ReadOnly));
        let refused = log.journal.write_checkpoint(log.journal.durable_position(), b"").unwrap_err();
        assert_eq!(refused.kind(), CheckpointErrorKind::ReadOnly);
        let (_, position, bytes) = log.recorder.entries.lock()[0].clone();
        assert_eq!(log.journal.read(position, bytes.len()).unwrap(), bytes, "reading goes on");
        drop(log);
        sim.crash();
        assert!(replayed(&open(&sim, &small()).unwrap()).len() <= 2);
    }
}

impl Stepped {
    fn append_is_refused(&self, admission: kolumn_journal::Admission) {
        let refused = self.journal.append(admission, b"x", Bytes::new()).unwrap_err();
        assert_eq!(refused.kind(), AppendErrorKind::ReadOnly);
    }
}

#[test]
fn an_entry_longer_than_admitted_is_refused() {
    let sim = SimDisk::new(1);
    let log = Stepped::start(&sim, &small());
    let admission = log.journal.admit(3, Class::Data).unwrap();
    assert_eq!(admission.len_max(), 3);
    let refused = log.journal.append(admission, b"ab", Bytes::from_static(b"cd")).unwrap_err();
    assert_eq!(refused.kind(), AppendErrorKind::TooLong);
    let admission = log.journal.admit(300, Class::Data).unwrap();
    assert_eq!(
        log.journal.append(admission, &[0; 257], Bytes::new()).unwrap_err().kind(),
        AppendErrorKind::TooLong
    );
    assert_eq!(
        log.journal.admit(small().entry_len_max + 1, Class::Data).unwrap_err().kind(),
        AdmitErrorKind::TooLarge
    );
    assert_eq!(log.journal.space().queue_len, 0, "the room was given back");
}

#[test]
fn the_queue_is_bounded_and_room_is_told() {
    let sim = SimDisk::new(1);
    let mut log = Stepped::start(&sim, &small());
    let mut appended = 0;
    while append(&log.journal, &[0; 100]).is_ok() {
        appended += 1;
    }
    assert_eq!(appended, small().queue_len_max / 4096);
    assert_eq!(append(&log.journal, &[0; 100]), Err(AdmitErrorKind::Busy));
    assert_eq!(*log.recorder.rooms.lock(), 0);
    log.step_all();
    assert_eq!(*log.recorder.rooms.lock(), 1);
    assert!(append(&log.journal, &[0; 100]).is_ok());
}

#[test]
fn without_syncs_entries_are_committed_after_the_write() {
    let sim = SimDisk::new(1);
    let mut options = small();
    options.durability = Durability::Os;
    let mut log = Stepped::start(&sim, &options);
    let syncs = sim.stats().syncs;
    log.fill(5);
    assert_eq!(sim.stats().syncs, syncs);
    assert_eq!(log.recorder.committed_len(), 5);
    assert!(log.journal.synced_position() < log.journal.durable_position());
    log.journal.write_checkpoint(log.journal.durable_position(), b"").unwrap();
    assert_eq!(log.journal.synced_position(), log.journal.durable_position());
}

#[test]
fn threads_append_to_a_real_directory_and_everything_is_found_again() {
    threads_append(Durability::Sync);
}

/// Short groups go through the page cache then, long ones around it.
#[test]
fn without_syncs_everything_is_found_again_too() {
    threads_append(Durability::Os);
}

fn threads_append(durability: Durability) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut options = small();
    options.durability = durability;
    options.entry_len_max = 64 << 10;
    options.file_len = 1 << 20;
    options.queue_len_max = 256 << 10;
    let recorder = Arc::new(Recorder::default());
    let open = || Journal::open(probe(dir.path()).unwrap().0, options.clone()).unwrap();
    let journal = open().start(recorder.clone()).unwrap();
    let threads: Vec<_> = (0..4u8)
        .map(|thread| {
            let journal = journal.clone();
            std::thread::spawn(move || {
                for nth in 0..500u16 {
                    let len = if nth % 50 == 0 { 60_000 } else { usize::from(nth % 700) };
                    let bytes = [&[thread][..], &nth.to_le_bytes(), &vec![thread; len]].concat();
                    while append(&journal, &bytes).is_err() {
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    journal.close();
    let told: Vec<(u64, Bytes)> =
        recorder.entries.lock().iter().map(|(sequence, _, bytes)| (*sequence, bytes.clone())).collect();
    assert_eq!(told.len(), 2000);
    assert!(recorder.groups.lock().len() < 2000, "groups formed while syncs ran");
    for thread in 0..4u8 {
        let order: Vec<u16> = told
            .iter()
            .filter(|(_, bytes)| bytes[0] == thread)
            .map(|(_, bytes)| u16::from_le_bytes([bytes[1], bytes[2]]))
            .collect();
        assert!(order.is_sorted() && order.len() == 500);
    }
    for (_, position, bytes) in recorder.entries.lock().iter() {
        assert_eq!(journal.read(*position, bytes.len()).unwrap(), bytes);
    }
    let found: Vec<(u64, Bytes)> =
        replayed(&open()).into_iter().map(|entry| (entry.sequence, entry.bytes)).collect();
    assert_eq!(found, told);
}
