//! What is cut or altered on the disk is told from an interrupted write, byte by byte.

use kolumn_journal::sim::SimDisk;
use kolumn_journal::{OpenErrorKind, Position};

use crate::support::{Chance, Stepped, append, names, open, replayed};

/// Small files, as each case copies them.
fn small() -> kolumn_journal::Options {
    let mut options = crate::support::small();
    options.file_len = 32 << 10;
    options
}

/// A group as the test knows it from the format: where it lies, where its covered bytes end, its entries.
#[derive(Clone, Debug)]
struct Group {
    start: u64,
    covered_end: u64,
    end: u64,
    entries_before: usize,
}

const HEADER_LEN: u64 = 72;
const FRAME_LEN: u64 = 4;

/// A log whose last groups hold one or several entries of these lengths; the last may be the empty one.
fn log(groups: &[&[usize]], idle: bool) -> (SimDisk, Vec<Group>, usize) {
    let sim = SimDisk::new(5);
    let mut log = Stepped::start(&sim, &small());
    let mut known = Vec::new();
    let mut count = 0;
    for lens in groups {
        let start = log.journal.durable_position().value();
        for len in *lens {
            log.append(&vec![0xa5; *len]);
        }
        log.step_all();
        let payload: u64 = lens.iter().map(|len| FRAME_LEN + *len as u64).sum();
        let end = log.journal.durable_position().value();
        known.push(Group { start, covered_end: start + HEADER_LEN + payload, end, entries_before: count });
        count += lens.len();
    }
    if idle {
        let start = log.journal.durable_position().value();
        log.stepper.idle();
        let end = log.journal.durable_position().value();
        known.push(Group { start, covered_end: start + HEADER_LEN, end, entries_before: count });
    }
    drop(log);
    (sim, known, count)
}

/// What opening a damaged log must come to.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Opens { entries: usize },
    Damaged { at: u64 },
}

/// A group that is invalid ends the log before it. Each group says that everything before itself was synced. So if any
/// follows, the invalid one had been durable.
fn expected(groups: &[Group], invalid: Option<usize>, later_are_valid: bool, all: usize) -> Expected {
    let Some(nth) = invalid else { return Expected::Opens { entries: all } };
    if later_are_valid && nth + 1 < groups.len() {
        return Expected::Damaged { at: groups[nth].start };
    }
    Expected::Opens { entries: groups[nth].entries_before }
}

#[track_caller]
fn check(sim: &SimDisk, name: &str, content: Vec<u8>, expected: &Expected, what: &str) {
    sim.set_content(name, content);
    let found = match open(sim, &small()) {
        Ok(opening) => Expected::Opens { entries: replayed(&opening).len() },
        Err(error) => match error.kind() {
            OpenErrorKind::Damaged(at) => Expected::Damaged { at: at.value() },
            other => panic!("{what}: {other:?}"),
        },
    };
    assert_eq!(&found, expected, "{what}");
}

/// The log then goes on, and nothing of what was cut comes back.
#[track_caller]
fn check_goes_on(sim: &SimDisk, name: &str, content: Vec<u8>) {
    let damaged = sim.duplicate();
    damaged.set_content(name, content);
    let Ok(opening) = open(&damaged, &small()) else { return };
    let mut before: Vec<_> = replayed(&opening).into_iter().map(|entry| entry.bytes).collect();
    drop(opening);
    let log = Stepped::start(&damaged, &small());
    drop(log);
    let mut log = Stepped::start(&damaged, &small());
    log.append(b"new");
    log.step_all();
    drop(log);
    before.push("new".into());
    let opening = open(&damaged, &small()).unwrap();
    assert_eq!(opening.report().torn, None, "what was cut is gone");
    let after: Vec<_> = replayed(&opening).into_iter().map(|entry| entry.bytes).collect();
    assert_eq!(after, before);
}

const SHAPES: [(&[&[usize]], bool); 3] = [
    (&[&[10], &[3000, 2000], &[700]], false),
    (&[&[10], &[4100], &[0, 1, 2]], true),
    (&[&[1], &[4020], &[4021]], false),
];

#[test]
fn a_flip_of_any_byte_of_the_last_groups_opens_or_refuses_as_the_rule_says() {
    for (shape, idle) in SHAPES {
        let (sim, groups, all) = log(shape, idle);
        let name = &names(&sim, ".journal")[0];
        let content = sim.content(name).unwrap();
        for group in groups.iter().enumerate() {
            let (nth, group) = group;
            for at in group.start..group.end {
                let mut flipped = content.clone();
                flipped[usize::try_from(at).unwrap()] ^= 0x10;
                let invalid = (at < group.covered_end).then_some(nth);
                let expected = expected(&groups, invalid, true, all);
                check(&sim, name, flipped, &expected, &format!("flip at {at} in {group:?}"));
            }
        }
    }
}

#[test]
fn a_cut_at_any_byte_of_the_last_groups_is_a_torn_tail() {
    for (shape, idle) in SHAPES {
        let (sim, groups, all) = log(shape, idle);
        let name = &names(&sim, ".journal")[0];
        let content = sim.content(name).unwrap();
        for at in groups[0].start..=groups.last().unwrap().end {
            let mut cut = content.clone();
            cut.truncate(usize::try_from(at).unwrap());
            let invalid = groups.iter().position(|group| at < group.covered_end);
            let expected = expected(&groups, invalid, false, all);
            check(&sim, name, cut.clone(), &expected, &format!("cut at {at}"));
            if at % 511 == 0 {
                check_goes_on(&sim, name, cut);
            }
        }
    }
}

#[test]
fn after_an_interrupted_write_was_cut_the_log_goes_on_without_it() {
    let (sim, groups, _) = log(&[&[10], &[700], &[3000, 2000, 5000, 5000]], false);
    let name = &names(&sim, ".journal")[0];
    let content = sim.content(name).unwrap();
    let last = groups.last().unwrap();
    for at in (last.start..last.covered_end).step_by(37) {
        let mut flipped = content.clone();
        flipped[usize::try_from(at).unwrap()] ^= 0x10;
        check_goes_on(&sim, name, flipped);
    }
}

#[test]
fn an_interrupted_write_is_kept_aside_and_reported() {
    let (sim, groups, _) = log(&[&[10], &[3000]], false);
    let name = &names(&sim, ".journal")[0];
    let mut content = sim.content(name).unwrap();
    let last = groups.last().unwrap();
    let (start, end) = (usize::try_from(last.start).unwrap(), usize::try_from(last.end).unwrap());
    content[start + 100] ^= 1;
    let torn = content[start..end].to_vec();
    sim.set_content(name, content);
    let opening = open(&sim, &small()).unwrap();
    let report = opening.report().torn.clone().unwrap();
    assert_eq!((report.position, report.len), (Position::new(last.start), last.end - last.start));
    assert_eq!(sim.content(&report.kept_in.unwrap()).unwrap(), torn);
}

#[test]
fn damage_before_a_later_file_is_told_from_an_interrupted_write() {
    let sim = SimDisk::new(5);
    let mut log = Stepped::start(&sim, &small());
    log.fill(20);
    let groups = log.recorder.groups.lock().clone();
    let files = log.journal.files();
    assert!(files.len() >= 2);
    drop(log);
    let second = files[1].base;
    let last = groups.iter().rev().find(|group| group.0 < second).unwrap();
    let first_in_next = groups.iter().find(|group| group.0 > second).unwrap();
    assert!(last.1 < first_in_next.0);
    let name = &names(&sim, ".journal")[0];
    let mut content = sim.content(name).unwrap();
    content[usize::try_from(last.0.value()).unwrap() + 200] ^= 1;
    check(&sim, name, content, &Expected::Damaged { at: last.0.value() }, "the last group of a file");
}

#[test]
fn a_log_shorter_than_its_checkpoint_says_is_damaged() {
    let sim = SimDisk::new(5);
    let mut log = Stepped::start(&sim, &small());
    log.append(b"a");
    log.step_all();
    let position = log.journal.durable_position();
    log.append(b"b");
    log.step_all();
    log.journal.write_checkpoint(log.journal.durable_position(), b"").unwrap();
    drop(log);
    let name = &names(&sim, ".journal")[0];
    let content = sim.content(name).unwrap();
    let checkpoint = &names(&sim, ".checkpoint")[0];
    // The newest checkpoint is unreadable, and the entry that it stood for is lost as well: its name still tells.
    let broken = sim.duplicate();
    broken.set_content(checkpoint, vec![0; 4096]);
    let mut cut = content.clone();
    cut[usize::try_from(position.value()).unwrap()] ^= 1;
    check(&broken, name, cut, &Expected::Damaged { at: position.value() }, "unreadable checkpoint");
    let gone = sim.duplicate();
    kolumn_journal::Disk::remove(&gone, name).unwrap();
    let refused = open(&gone, &small()).unwrap_err();
    assert!(matches!(refused.kind(), OpenErrorKind::Damaged(_)), "{refused}");
}

#[test]
fn a_missing_file_in_the_middle_or_at_the_beginning_is_damage() {
    for missing in [0, 1] {
        let sim = SimDisk::new(5);
        let mut log = Stepped::start(&sim, &small());
        log.fill(40);
        drop(log);
        let files = names(&sim, ".journal");
        assert!(files.len() >= 3);
        kolumn_journal::Disk::remove(&sim, &files[missing]).unwrap();
        let refused = open(&sim, &small()).unwrap_err();
        assert!(matches!(refused.kind(), OpenErrorKind::Damaged(_)), "{missing}: {refused}");
    }
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let sim = SimDisk::new(5);
    let mut log = Stepped::start(&sim, &small());
    log.fill(2);
    log.journal.write_checkpoint(log.journal.durable_position(), b"state").unwrap();
    drop(log);
    let file = names(&sim, ".journal")[0].clone();
    let checkpoint = names(&sim, ".checkpoint")[0].clone();
    for (name, covered) in [(file, 4096), (checkpoint, 96 + 5)] {
        let newer = sim.duplicate();
        let mut content = newer.content(&name).unwrap();
        content[8] = 2;
        let without_crc = [&content[..12], &content[16..covered]].concat();
        let crc = crc_fast::crc32_iscsi(&without_crc);
        content[12..16].copy_from_slice(&crc.to_le_bytes());
        newer.set_content(&name, content);
        let refused = open(&newer, &small()).unwrap_err();
        assert_eq!(refused.kind(), OpenErrorKind::UnknownVersion);
        let message = refused.to_string();
        assert_eq!(message, format!("`{name}` has format version 2, this build reads versions up to 1"));
    }
}

#[test]
fn any_bytes_in_any_file_open_or_refuse_without_a_panic() {
    let mut chance = Chance(99);
    for _ in 0..300 {
        let sim = SimDisk::new(chance.next());
        let mut log = Stepped::start(&sim, &small());
        log.fill(20);
        log.journal.write_checkpoint(log.journal.durable_position(), b"state").unwrap();
        log.fill(20);
        drop(log);
        let files = kolumn_journal::Disk::list(&sim).unwrap();
        for name in &files {
            let mut content = sim.content(name).unwrap();
            for _ in 0..chance.below(4) {
                if !content.is_empty() {
                    let at = usize::try_from(chance.below(content.len() as u64)).unwrap();
                    let len = usize::try_from(chance.below(40)).unwrap().min(content.len() - at);
                    content[at..at + len].fill_with(|| chance.next().to_le_bytes()[0]);
                }
            }
            if chance.below(4) == 0 {
                content.truncate(usize::try_from(chance.below(content.len() as u64 + 1)).unwrap());
            }
            sim.set_content(name, content);
        }
        if let Ok(opening) = open(&sim, &small()) {
            drop(replayed(&opening));
            drop(opening);
            let log = Stepped::start(&sim, &small());
            assert!(append(&log.journal, b"x").is_ok());
        }
    }
}
