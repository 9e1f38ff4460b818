//! What a program may know about the groups that its broker coordinates.

use std::sync::{Arc, Weak};

use crate::coordinator::Coordinator;
use crate::group::{DescribedMember, assignment};

/// Tells about groups. Cheap to clone; it outlives its broker, and then knows no groups.
///
/// What groups have committed is in the [store](crate::Broker::store).
#[derive(Debug, Clone)]
pub struct GroupReader {
    coordinator: Weak<Coordinator>,
    bucket: Arc<str>,
}

/// A group as it is at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupDescription {
    /// The bucket of the view that it belongs to.
    pub bucket: Arc<str>,
    /// Its id.
    pub id: Arc<str>,
    /// The state, as Kafka calls it: `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Stable` or `Dead`.
    pub state: &'static str,
    /// `consumer` for consumers; empty if no member ever joined.
    pub protocol_type: String,
    /// What its members agreed on, for consumers the name of an assignor; empty unless the group is stable.
    pub protocol: String,
    /// Its members.
    pub members: Vec<GroupMember>,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupMember {
    /// The id that the broker gave it.
    pub id: String,
    /// The id that it gave itself, if it is a static member.
    pub instance_id: Option<String>,
    /// What its client calls itself.
    pub client_id: String,
    /// Where it connects from, as Kafka writes it: an address behind a slash.
    pub client_host: String,
    /// What a consumer is assigned. `None` where that is not known: in a rebalance, of members that are no consumers, and
    /// beyond a million topics and partitions in one answer.
    pub assigned: Option<Vec<AssignedTopic>>,
}

/// Partitions of one topic that a consumer is assigned. They are what the leader of the group has written: neither the
/// topic nor the partitions need to exist.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssignedTopic {
    /// The name of the topic.
    pub topic: Arc<str>,
    /// The partitions, in the order in which they were assigned.
    pub partitions: Vec<i32>,
}

impl GroupReader {
    pub(crate) fn new(coordinator: &Arc<Coordinator>, bucket: Arc<str>) -> Self {
        Self { coordinator: Arc::downgrade(coordinator), bucket }
    }

    /// The groups of a bucket, or of all, in the order of their ids: with members, or with something that they have left.
    /// Each is as it is when its turn comes. It waits for no disk, but takes some time where there are very many groups.
    #[must_use]
    pub fn groups(&self, bucket: Option<&str>) -> Vec<GroupDescription> {
        let Some(coordinator) = self.coordinator.upgrade() else { return Vec::new() };
        if bucket.is_some_and(|bucket| bucket != &*self.bucket) {
            return Vec::new();
        }
        let mut left = ASSIGNED_MAX;
        let described = coordinator.names().into_iter().filter_map(|id| {
            let group = coordinator.describe(&id)?;
            let is_consumer = group.protocol_type == CONSUMER;
            let members = group.members.into_iter().map(|member| describe(member, is_consumer, &mut left));
            Some(GroupDescription {
                bucket: Arc::clone(&self.bucket),
                id,
                state: group.state.name(),
                members: members.collect(),
                protocol_type: group.protocol_type,
                protocol: group.protocol_name,
            })
        });
        described.collect()
    }
}

fn describe(member: DescribedMember, is_consumer: bool, left: &mut usize) -> GroupMember {
    GroupMember {
        id: member.member_id,
        instance_id: member.instance_id,
        client_id: member.client_id,
        client_host: member.client_host,
        assigned: if is_consumer { assignment::topics(&member.assignment, left) } else { None },
    }
}

/// The protocol type whose assignments are understood here.
const CONSUMER: &str = "consumer";
/// Topics and partitions together that one answer tells of: unlike the members themselves, they take many times the memory
/// of what was sent.
const ASSIGNED_MAX: usize = 1_000_000;
