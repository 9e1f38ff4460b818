//! What lies beside the log in its folder and is not the log's.

use std::fs;
use std::os::unix::fs::symlink;

use kolumn_topic_store::Settings;

use crate::support::{P0, append, batch, make_topic, open_at, read_all};

#[test]
fn folders_and_files_that_are_not_the_logs_are_left_alone() {
    let directory = tempfile::tempdir().expect("a folder");
    // Without a limit of its own, the log looks at what it has on the disk.
    let settings = || Settings { size_limit: None, ..Settings::default() };
    let store = open_at(directory.path(), settings());
    let (_, topic) = make_topic(&store, "fruit", 1, &[]);
    append(&store, topic.id, P0, &batch(&[b"apple"]));
    store.close().expect("closes");
    drop(store);

    fs::create_dir(directory.path().join("lost+found")).expect("made");
    fs::create_dir(directory.path().join("0000000000000001.journal.folder")).expect("made");
    fs::write(directory.path().join("notes.txt"), "not a log").expect("written");
    symlink("nowhere", directory.path().join("dangling")).expect("linked");

    let store = open_at(directory.path(), settings());
    assert_eq!(read_all(&store, topic.id, P0, 1 << 20).len(), 1);
    store.close().expect("closes");
    assert_eq!(fs::read_to_string(directory.path().join("notes.txt")).expect("readable"), "not a log");
    assert!(directory.path().join("lost+found").is_dir());
}
