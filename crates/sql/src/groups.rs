//! What the system tables show of consumer groups: their members are known to whoever coordinates them, not to the store.

use std::fmt::Debug;
use std::sync::Arc;

/// Tells about the groups of a view, for the table `system.groups`.
///
/// # Contract
/// Called when a statement that names the table is planned, on a thread of the runtime: it must not block on the disk. What
/// groups have committed is read from the store and need not be told.
pub trait GroupSource: Debug + Send + Sync {
    /// The groups of the view of this bucket. A group that is not named here and has committed offsets is shown as `Empty`.
    fn groups(&self, bucket: &str) -> Vec<Group>;
}

/// A source for those who have no coordinator.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing in it")]
pub struct NoGroups;

impl GroupSource for NoGroups {
    fn groups(&self, _bucket: &str) -> Vec<Group> {
        Vec::new()
    }
}

/// A consumer group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers build it field by field")]
pub struct Group {
    /// Its id.
    pub id: String,
    /// Its state, in Kafka's words: `Stable`, `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Dead`.
    pub state: String,
    /// The protocol type, `consumer` for consumers.
    pub protocol_type: String,
    /// The protocol that was chosen, the name of an assignor.
    pub protocol: String,
    /// Its members.
    pub members: Vec<Member>,
}

/// A member of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers build it field by field")]
pub struct Member {
    /// The id that the coordinator gave it.
    pub id: String,
    /// The id that it gave itself, if it is a static member.
    pub instance_id: Option<String>,
    /// What its client calls itself.
    pub client_id: String,
    /// Where it connects from.
    pub client_host: String,
    /// The partitions that are assigned to it: topic name and partition. They need not exist.
    pub assigned: Vec<(Arc<str>, i32)>,
}
