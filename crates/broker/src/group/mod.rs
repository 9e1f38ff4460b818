//! A classic consumer group as a state machine without I/O and clock: requests, lost peers, outcomes of writes and time
//! go in, answers and what has to be remembered come out.
//!
//! ```text
//!                    a member joins, leaves, is lost
//!            +---------------------------------------------+
//!            v                                             |
//!   PreparingRebalance --all have joined, or time is up--> CompletingRebalance
//!     ^      ^      |                                      | the leader's assignments are durable
//!     |      |      +--no member is left--> Empty          v
//!     |      +-----a member joins, leaves, is lost------ Stable
//!     +------a member joins------ Empty --deleted--> Dead
//! ```
//! A generation is given out by the answers to Joins, and never twice, also not after a restart: what is remembered
//! covers some generations in advance ([`GENERATIONS_AHEAD`]), and a rebalance that would use up what is durably
//! covered waits.

pub(crate) mod assignment;
mod join;
mod member;
mod memory;
mod rebalance;
mod requests;
mod roster;
mod store;
mod subscription;
mod sync;
#[cfg(test)]
mod tests;
mod types;

use std::collections::BTreeSet;
use std::time::Instant;

use bytes::Bytes;
use kolumn_kafka_wire::ErrorCode;

pub(crate) use memory::MemoryError;
use rebalance::Initial;
use roster::{Number, Roster};
use store::Writes;
pub(crate) use types::{
    DescribedMember, Description, Effect, GroupLimits, GroupState, Join, JoinRefused, Joined, Leaver,
    MemberRef, StoreId, Subscription, Sync, Synced, Token,
};

/// One group.
///
/// INVARIANT: a group has members exactly if it is neither `Empty` nor `Dead`, except that the last may leave while a
/// rebalance prepares; it has a leader exactly if it has members. Joins wait in `PreparingRebalance` until it completes,
/// in `Stable` until a replaced static member is durable; Syncs wait in `CompletingRebalance` only.
#[derive(Debug)]
pub(crate) struct Group {
    limits: GroupLimits,
    state: GroupState,
    roster: Roster,
    leader: Option<Number>,
    /// Of the members; of the last ones if there are none.
    protocol_type: String,
    /// What the present generation uses.
    protocol_name: String,
    generation: i32,
    /// The greatest generation that may have been given out, also before a restart.
    spent_generation: i32,
    /// Set while an empty group waits for its first members.
    initial: Option<Initial>,
    /// When a rebalance completes without those who have not joined.
    join_deadline: Option<Instant>,
    /// When those who have not asked for their assignment are removed.
    sync_deadline: Option<Instant>,
    writes: Writes,
}

impl Group {
    /// An empty group that nobody has joined.
    pub(crate) fn new(limits: GroupLimits) -> Self {
        Self {
            limits,
            state: GroupState::Empty,
            roster: Roster::default(),
            leader: None,
            protocol_type: String::new(),
            protocol_name: String::new(),
            generation: 0,
            spent_generation: 0,
            initial: None,
            join_deadline: None,
            sync_deadline: None,
            // A group that was not remembered has no members that could know of its generations.
            writes: Writes::new(GENERATIONS_AHEAD),
        }
    }

    pub(crate) fn state(&self) -> GroupState {
        self.state
    }

    /// The generation that was given out last; 0 before the first.
    pub(crate) fn generation(&self) -> i32 {
        self.generation
    }

    /// Empty if no member ever joined.
    pub(crate) fn protocol_type(&self) -> &str {
        &self.protocol_type
    }

    pub(crate) fn members_len(&self) -> usize {
        self.roster.members_len()
    }

    /// Whether it has no members, and no id is given out with which somebody could become one.
    pub(crate) fn is_empty(&self) -> bool {
        self.roster.is_empty() && self.roster.pending_len() == 0
    }

    /// About how many bytes of memory its members take.
    pub(crate) fn cost(&self) -> usize {
        self.roster.len() + (self.roster.members_len() + self.roster.pending_len()) * MEMBER_COST
    }

    /// What `DescribeGroups` shows.
    pub(crate) fn describe(&self) -> Description {
        let is_stable = self.state == GroupState::Stable;
        let shown = |bytes: Option<&Bytes>| bytes.filter(|_| is_stable).cloned().unwrap_or_default();
        let members = self.roster.iter().map(|(_, member)| DescribedMember {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.profile.client_id.clone(),
            client_host: member.profile.client_host.clone(),
            metadata: shown(member.profile.metadata(&self.protocol_name)),
            assignment: shown(Some(&member.assignment)),
        });
        Description {
            state: self.state,
            protocol_type: self.protocol_type.clone(),
            protocol_name: if is_stable { self.protocol_name.clone() } else { String::new() },
            members: members.collect(),
        }
    }

    /// The topics of the members' subscriptions, for `OffsetDelete` and expiry.
    pub(crate) fn subscribed_topics(&self) -> Subscription {
        if self.protocol_type != CONSUMER {
            return None;
        }
        let mut topics = BTreeSet::new();
        for (_, member) in self.roster.iter() {
            // Who came after the protocol was chosen may not support it.
            let chosen = member.profile.metadata(&self.protocol_name);
            let metadata = chosen.or_else(|| member.profile.protocols.first().map(|(_, metadata)| metadata));
            topics.append(&mut subscription::topics(metadata?)?);
        }
        Some(topics)
    }

    /// Makes an empty group dead; `NON_EMPTY_GROUP` if it has members.
    pub(crate) fn delete(&mut self) -> Result<(), ErrorCode> {
        match self.state {
            GroupState::Dead => return Err(ErrorCode::GROUP_ID_NOT_FOUND),
            GroupState::Empty => {}
            _ => return Err(ErrorCode::NON_EMPTY_GROUP),
        }
        self.state = GroupState::Dead;
        self.roster = Roster::default();
        self.check();
        Ok(())
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        [self.roster.next_deadline(), self.join_deadline, self.sync_deadline].into_iter().flatten().min()
    }

    fn check(&self) {
        self.roster.check();
        let has_members = !self.roster.is_empty();
        match self.state {
            GroupState::Empty | GroupState::Dead => debug_assert!(!has_members),
            GroupState::PreparingRebalance => debug_assert!(self.join_deadline.is_some()),
            GroupState::CompletingRebalance => {
                debug_assert!(has_members && self.roster.joins_waiting() == 0);
                debug_assert!(self.sync_deadline.is_some() == self.roster.has_syncs_due());
            }
            GroupState::Stable => debug_assert!(has_members),
        }
        debug_assert_eq!(self.leader.is_some(), has_members);
        debug_assert!(self.leader.is_none_or(|leader| self.roster.get(leader).is_some()));
        debug_assert!(self.state == GroupState::PreparingRebalance || self.join_deadline.is_none());
        debug_assert!(self.state == GroupState::PreparingRebalance || self.initial.is_none());
        debug_assert!(self.generation <= self.spent_generation);
    }
}

/// The protocol type whose metadata is understood here.
const CONSUMER: &str = "consumer";
/// Bytes that a member takes besides what it sent: its record and its place in the indexes.
const MEMBER_COST: usize = 512;
/// Generations that one write covers in advance.
const GENERATIONS_AHEAD: i32 = 16;
