//! What goes into a group and what comes out of it.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use kolumn_kafka_wire::ErrorCode;

/// Names a Join or Sync that waits for its answer; the caller draws it and never uses one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Token(pub(crate) u64);

/// Names an [`Effect::Store`] of one group; grows from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoreId(pub(crate) u64);

/// What one group may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLimits {
    /// How long an empty group waits for more members; zero: not at all.
    pub(crate) initial_rebalance_delay: Duration,
    pub(crate) session_timeout_min: Duration,
    pub(crate) session_timeout_max: Duration,
    /// How long a member that does not know its id yet may wait for a join to complete.
    pub(crate) new_member_timeout: Duration,
    /// Members; as many ids again may be given out and not yet used.
    pub(crate) members_max: usize,
    /// Bytes of all members' ids, metadata and assignments.
    pub(crate) len_max: usize,
}

impl Default for GroupLimits {
    fn default() -> Self {
        Self {
            initial_rebalance_delay: Duration::from_secs(3),
            session_timeout_min: Duration::from_secs(6),
            session_timeout_max: Duration::from_mins(30),
            new_member_timeout: Duration::from_mins(5),
            members_max: 10_000,
            len_max: 16 << 20,
        }
    }
}

/// A member enters, or comes back at a rebalance.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub(crate) token: Token,
    /// Empty for a new member.
    pub(crate) member_id: String,
    /// Set for a static member.
    pub(crate) instance_id: Option<String>,
    pub(crate) client_id: String,
    pub(crate) client_host: String,
    pub(crate) session_timeout: Duration,
    pub(crate) rebalance_timeout: Duration,
    pub(crate) protocol_type: String,
    /// Names with the member's metadata, the one it likes best first.
    pub(crate) protocols: Vec<(String, Bytes)>,
    /// A new dynamic member has to come again with the id that it is given (from version 4).
    pub(crate) needs_known_id: bool,
    /// The member understands `SkipAssignment` (from version 9).
    pub(crate) can_skip_assignment: bool,
    /// The id of the member if it is new; unique for ever.
    pub(crate) proposed_id: String,
}

/// A member asks for its assignment; the leader brings those of all.
#[derive(Clone, Debug)]
pub(crate) struct Sync {
    pub(crate) token: Token,
    pub(crate) member_id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) generation: i32,
    /// From version 5.
    pub(crate) protocol_type: Option<String>,
    /// From version 5.
    pub(crate) protocol_name: Option<String>,
    /// By member id; empty unless the leader sends it.
    pub(crate) assignments: Vec<(String, Bytes)>,
}

/// Who heartbeats or commits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberRef<'a> {
    pub(crate) member_id: &'a str,
    pub(crate) instance_id: Option<&'a str>,
    /// Negative if the sender is in no generation.
    pub(crate) generation: i32,
}

/// Who leaves. An empty member id with an instance id is an administrator's removal of a static member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaver<'a> {
    pub(crate) member_id: &'a str,
    pub(crate) instance_id: Option<&'a str>,
}

/// What the caller has to do, in this order.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Answer this Join.
    Joined(Token, Result<Joined, JoinRefused>),
    /// Answer this Sync.
    Synced(Token, Result<Synced, ErrorCode>),
    /// Make this the durable memory of the group, then report to [`stored`](super::Group::stored). It replaces
    /// earlier ones, also those that are not durable yet; their outcome need not be reported.
    Store(StoreId, Bytes),
}

/// The answer to a Join that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) generation: i32,
    pub(crate) protocol_type: String,
    pub(crate) protocol_name: String,
    /// Member id of the leader.
    pub(crate) leader: String,
    pub(crate) member_id: String,
    pub(crate) skip_assignment: bool,
    /// Empty but for the leader.
    pub(crate) members: Vec<JoinedMember>,
}

/// What the leader is told of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinedMember {
    pub(crate) member_id: String,
    pub(crate) instance_id: Option<String>,
    /// Of the protocol that was chosen.
    pub(crate) metadata: Bytes,
}

/// The answer to a Join that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinRefused {
    pub(crate) code: ErrorCode,
    /// The id to come again with after `MEMBER_ID_REQUIRED`, the one that was sent, or none if the member was removed
    /// while it waited.
    pub(crate) member_id: String,
}

/// The answer to a Sync that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Synced {
    pub(crate) protocol_type: String,
    pub(crate) protocol_name: String,
    pub(crate) assignment: Bytes,
}

/// Where a group stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupState {
    /// No members; offsets may be kept.
    Empty,
    /// Members are asked to join again.
    PreparingRebalance,
    /// All have joined; the leader's assignments are awaited, or are not durable yet.
    CompletingRebalance,
    /// Every member has or can get its assignment.
    Stable,
    /// Deleted.
    Dead,
}

impl GroupState {
    /// The name that clients know.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

/// What `DescribeGroups` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) state: GroupState,
    /// Empty if no member ever joined.
    pub(crate) protocol_type: String,
    /// Empty unless the group is stable.
    pub(crate) protocol_name: String,
    pub(crate) members: Vec<DescribedMember>,
}

/// A member in a [`Description`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DescribedMember {
    pub(crate) member_id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) client_id: String,
    pub(crate) client_host: String,
    /// Empty unless the group is stable.
    pub(crate) metadata: Bytes,
    /// Empty unless the group is stable.
    pub(crate) assignment: Bytes,
}

/// The topics that members subscribe to; `None` if they do not say so in a way that is known here.
pub(crate) type Subscription = Option<BTreeSet<String>>;
