//! What cannot be read back is kept aside, counted and passed over; everything else is delivered.

use std::sync::Arc;

use kolumn_journal::sim::{CallKind, SimDisk};
use kolumn_journal::{Class, CommittedGroup, Consumer, Disk, Failure, Journal};
use kolumn_notify::queue::Queue;

use crate::queue_support::{disk, drain, message, poll, small};

/// A queue in which so many messages wait, each in a block of its own, and which was closed.
fn filled(count: u64) -> SimDisk {
    let sim = SimDisk::new(1);
    let (queue, mut stepper) = Queue::open_stepped(disk(&sim), small(1)).unwrap();
    for id in 0..count {
        let queue = queue.clone();
        let mut putting = Box::pin(async move { queue.put(message(id, id, 300)).await });
        while poll(putting.as_mut()).is_none() {
            stepper.write();
        }
    }
    poll(Box::pin(queue.close()).as_mut()).expect("closing waits for no thread");
    sim
}

/// The files that damaged bytes are kept in.
fn kept(sim: &SimDisk) -> Vec<String> {
    sim.list().unwrap().into_iter().filter(|name| name.ends_with(".damaged")).collect()
}

/// What is delivered once these bytes of a file are altered, and how much is told to be lost.
#[track_caller]
fn check(altered: &[(&str, usize)], lost: &[u64]) {
    let sim = filled(200);
    for (name, at) in altered {
        let mut content = sim.content(name).unwrap();
        content[*at] ^= 0x40;
        sim.set_content(name, content);
    }
    let (queue, mut stepper) = Queue::open_stepped(disk(&sim), small(1)).unwrap();
    assert_eq!(queue.stats().queued, 200);
    let expected: Vec<_> = (0..200).filter(|id| !lost.contains(id)).collect();
    assert_eq!(drain(&queue, &mut stepper), expected);
    let stats = queue.stats();
    assert_eq!((stats.queued, stats.bytes, stats.damaged), (0, 0, lost.len() as u64));
    assert_eq!(kept(&sim).is_empty(), lost.is_empty());
    drop((stepper, queue));
    let (queue, _stepper) = Queue::open_stepped(disk(&sim), small(1)).unwrap();
    assert_eq!(queue.stats().queued, 0, "what was given up stays given up");
}

/// In a file but the first, the blocks 1 to 15 hold a message each: those after the 14 of the first file, and so on.
const SECOND: &str = "0000000000010000.journal";

#[test]
fn an_undamaged_queue_loses_nothing() {
    check(&[], &[]);
}

#[test]
fn a_group_that_was_altered_is_passed_over_alone() {
    check(&[(SECOND, 5 * 4096 + 300)], &[18]);
}

#[test]
fn the_first_group_of_a_file_is_passed_over_alone() {
    check(&[(SECOND, 4096 + 300)], &[14]);
}

#[test]
fn several_altered_groups_are_passed_over() {
    check(
        &[(SECOND, 2 * 4096 + 300), (SECOND, 9 * 4096), ("0000000000040000.journal", 15 * 4096 + 80)],
        &[15, 22, 73],
    );
}

#[test]
fn what_is_kept_aside_says_why_and_has_the_bytes() {
    let sim = filled(30);
    let mut content = sim.content(SECOND).unwrap();
    content[5 * 4096 + 300] ^= 0x40;
    let block = content[5 * 4096..6 * 4096].to_vec();
    sim.set_content(SECOND, content);
    let (queue, mut stepper) = Queue::open_stepped(disk(&sim), small(1)).unwrap();
    drain(&queue, &mut stepper);
    let names = kept(&sim);
    assert_eq!(names, ["0000000000015000.damaged"]);
    let content = sim.content(&names[0]).unwrap();
    let why = b"no valid group lies at position 86016\n";
    assert!(content.starts_with(why), "{}", String::from_utf8_lossy(&content[..60]));
    assert!(content[why.len()..].starts_with(&block));
}

#[test]
fn a_read_that_fails_once_loses_nothing() {
    let sim = filled(200);
    let (queue, mut stepper) = Queue::open_stepped(disk(&sim), small(1)).unwrap();
    for nth in [1, 5, 9, 20] {
        sim.fail(CallKind::Read, nth, std::io::ErrorKind::Other);
    }
    assert_eq!(drain(&queue, &mut stepper), (0..200).collect::<Vec<_>>());
    assert_eq!(queue.stats().damaged, 0);
}

#[test]
fn nothing_is_given_up_while_the_disk_reads_nothing() {
    let sim = filled(200);
    let (queue, mut stepper) = Queue::open_stepped(disk(&sim), small(1)).unwrap();
    sim.cut_power_after(1);
    assert_eq!(drain(&queue, &mut stepper), [0; 0]);
    let stats = queue.stats();
    assert_eq!((stats.queued, stats.damaged), (200, 0));
    drop((stepper, queue));
    sim.crash();
    let (queue, mut stepper) = Queue::open_stepped(disk(&sim), small(1)).unwrap();
    assert_eq!(drain(&queue, &mut stepper), (0..200).collect::<Vec<_>>());
}

struct Nobody;

impl Consumer for Nobody {
    fn committed(&self, _: &CommittedGroup) {}
    fn failed(&self, failure: &Failure) {
        panic!("{failure}");
    }
}

/// Writes an entry behind a queue's back.
fn smuggle(sim: &SimDisk, entry: &[u8]) {
    let mut options = kolumn_journal::Options::default();
    options.file_len = 64 << 10;
    options.entry_len_max = 8 << 10;
    options.queue_len_max = 64 << 10;
    let (journal, mut stepper) =
        Journal::open(disk(sim), options).unwrap().start_stepped(Arc::new(Nobody)).unwrap();
    let admission = journal.admit(entry.len(), Class::Data).unwrap();
    journal.append(admission, entry, Vec::new().into()).unwrap();
    while stepper.step() {}
}

#[test]
fn an_entry_that_is_no_message_is_kept_aside_when_its_turn_comes() {
    let sim = filled(3);
    smuggle(&sim, &[77, 1, 2, 3]);
    let (queue, mut stepper) = Queue::open_stepped(disk(&sim), small(1)).unwrap();
    assert_eq!(queue.stats().queued, 4);
    assert_eq!(drain(&queue, &mut stepper), [0, 1, 2]);
    assert_eq!((queue.stats().queued, queue.stats().damaged), (0, 1));
    let names = kept(&sim);
    assert_eq!(names.len(), 1);
    let content = sim.content(&names[0]).unwrap();
    assert!(content.starts_with(b"an entry of kind 77 is not known\n\x4d\x01\x02\x03\0"));
}

#[test]
fn an_entry_that_says_nothing_of_what_is_done_changes_nothing() {
    let sim = filled(3);
    smuggle(&sim, &[2, 1]);
    let (queue, mut stepper) = Queue::open_stepped(disk(&sim), small(1)).unwrap();
    assert_eq!(drain(&queue, &mut stepper), [0, 1, 2]);
    assert_eq!(queue.stats().damaged, 0);
}
