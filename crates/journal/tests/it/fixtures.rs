//! Files that the first version wrote open in every later one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kolumn_journal::disk::buffered;
use kolumn_journal::{Journal, Options, Position};

use crate::support::{Recorder, append, replayed, small};

fn options() -> Options {
    let mut options = small();
    options.seed = 0x6b6f_6c75_6d6e;
    options.tenant = uuid::Uuid::from_u128(0x7e7a_0001);
    options
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v1")
}

/// The entries of the fixture, by number.
fn entry(nth: u64) -> Vec<u8> {
    let len = usize::try_from(nth * 397 % 6000).unwrap();
    nth.to_le_bytes().iter().copied().cycle().take(len).collect()
}

#[test]
#[ignore = "writes the fixture of version 1, which was done once"]
fn write_the_fixture() {
    let dir = tempfile::tempdir().unwrap();
    for life in 0..2 {
        let opening = Journal::open(buffered(dir.path()).unwrap(), options()).unwrap();
        let journal = opening.start(Arc::new(Recorder::default())).unwrap();
        for nth in life * 20..life * 20 + 20 {
            while append(&journal, &entry(nth)).is_err() {
                std::thread::yield_now();
            }
        }
        journal.close();
        if life == 0 {
            let opening = Journal::open(buffered(dir.path()).unwrap(), options()).unwrap();
            let journal = opening.start(Arc::new(Recorder::default())).unwrap();
            journal.write_checkpoint(journal.durable_position(), b"twenty").unwrap();
            journal.close();
        }
    }
    std::fs::create_dir_all(fixture()).unwrap();
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "journal" || kind == "checkpoint") {
            std::fs::copy(&path, fixture().join(path.file_name().unwrap())).unwrap();
        }
    }
}

#[test]
fn a_log_of_version_1_opens() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = 0;
    for file in std::fs::read_dir(fixture()).unwrap() {
        let path = file.unwrap().path();
        std::fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
        files += 1;
    }
    assert!(files >= 3);
    let opening = Journal::open(buffered(dir.path()).unwrap(), Options::default()).unwrap();
    assert_eq!(opening.log_id().to_string(), LOG_ID);
    assert_eq!(opening.tenant(), options().tenant);
    assert_eq!(opening.owner_epoch(), 3);
    let (position, payload) = opening.checkpoint().unwrap();
    assert_eq!((position, &payload[..]), (Position::new(CHECKPOINT), &b"twenty"[..]));
    let found = replayed(&opening);
    assert_eq!(found.len(), 20);
    for (found, nth) in found.iter().zip(20..) {
        assert_eq!((found.sequence, found.owner_epoch), (nth, 2));
        assert_eq!(found.bytes, entry(nth));
    }
    assert_eq!(opening.report().torn, None);
}

const LOG_ID: &str = "7f920042-533b-46d9-8fd6-8b583adecd5c";
const CHECKPOINT: u64 = 0x13000;
