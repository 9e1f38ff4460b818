//! Keys that targets of every kind have.

use super::super::value::ValueType;
use super::Key;

pub(in crate::config) const ENABLE: Key =
    Key::new("enable", ValueType::Flag, "off", "whether events are sent to this target");
pub(in crate::config) const QUEUE_DIR: Key =
    Key::new("queue_dir", ValueType::Folder, "", "folder in which events wait that are not yet delivered");
pub(in crate::config) const QUEUE_LIMIT: Key = Key::new(
    "queue_limit",
    ValueType::Count { max: u64::MAX },
    "0",
    "how many events may wait; 0 stands for 100000",
);
pub(in crate::config) const COMMENT: Key =
    Key::new("comment", ValueType::Text, "", "a note for whoever reads the configuration");

pub(in crate::config) const QUEUE_LIMIT_BYTES: Key = Key::new(
    "queue_limit_bytes",
    ValueType::Count { max: u64::MAX },
    "0",
    "how many bytes of events may wait; 0 stands for no limit",
)
.own();
pub(in crate::config) const QUEUE_FULL: Key = Key::new(
    "queue_full",
    ValueType::Choice(&["refuse", "drop_oldest", "block"]),
    "refuse",
    "what happens to an event for which there is no room: the operation is refused, the oldest event is dropped, \
     or the operation waits",
)
.own();
pub(in crate::config) const DURABILITY: Key = Key::new(
    "durability",
    ValueType::Choice(&["os", "sync"]),
    "os",
    "what a waiting event outlives: `os` the end of the process, `sync` also a loss of power",
)
.own();
pub(in crate::config) const STYLE: Key = Key::new(
    "style",
    ValueType::Choice(&["minio", "aws", "event_broker", "cloudevents"]),
    "minio",
    "the form in which an event is written",
)
.own();
pub(in crate::config) const DEAD_LETTER_DIR: Key = Key::new(
    "dead_letter_dir",
    ValueType::Folder,
    "",
    "folder for events that the target will never take; without one they stay beside the queue",
)
.own();

/// What `MinIO` does not have.
pub(super) const OWN: &[Key] = &[QUEUE_LIMIT_BYTES, QUEUE_FULL, DURABILITY, STYLE, DEAD_LETTER_DIR];
