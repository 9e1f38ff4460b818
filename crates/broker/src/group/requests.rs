//! The requests that wait for nothing: heartbeats, commits, leaving; and peers that are lost.

use std::time::Instant;

use kolumn_kafka_wire::ErrorCode;

use super::Group;
use super::roster::{Member, Number, Waited};
use super::types::{Effect, GroupState, Leaver, MemberRef, Token};

impl Group {
    /// A `Heartbeat`: renews the session, and tells of a rebalance.
    pub(crate) fn heartbeat(&mut self, now: Instant, member: &MemberRef<'_>) -> Result<(), ErrorCode> {
        if self.state == GroupState::Dead {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        let number = self.find_present(member)?;
        self.roster.renew(number, now);
        self.check();
        if self.state == GroupState::PreparingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        Ok(())
    }

    /// Whether this `OffsetCommit` may be written; renews the session.
    pub(crate) fn check_commit(&mut self, now: Instant, member: &MemberRef<'_>) -> Result<(), ErrorCode> {
        match self.state {
            GroupState::Dead => return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
            // Administrators, and consumers that assign partitions to themselves, whatever they call themselves.
            GroupState::Empty if member.generation < 0 => return Ok(()),
            _ => {}
        }
        let number = self.find_present(member)?;
        if self.state == GroupState::CompletingRebalance {
            // It knows the generation, but not yet what it may commit in it.
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        self.roster.renew(number, now);
        self.check();
        Ok(())
    }

    /// A `LeaveGroup`: a code for each that leaves, in their order.
    pub(crate) fn leave(&mut self, now: Instant, leavers: &[Leaver<'_>]) -> (Vec<ErrorCode>, Vec<Effect>) {
        if self.state == GroupState::Dead {
            return (vec![ErrorCode::COORDINATOR_NOT_AVAILABLE; leavers.len()], Vec::new());
        }
        let mut effects = Vec::new();
        let members_before = self.roster.members_len();
        let codes = leavers.iter().map(|leaver| self.leave_one(leaver, &mut effects)).collect();
        if self.roster.members_len() < members_before {
            self.rebalance(now, &mut effects);
        } else {
            self.maybe_complete(now, &mut effects);
        }
        self.check();
        (codes, effects)
    }

    fn leave_one(&mut self, leaver: &Leaver<'_>, effects: &mut Vec<Effect>) -> ErrorCode {
        if self.roster.is_pending(leaver.member_id) {
            self.roster.remove_pending(leaver.member_id);
            return ErrorCode::NONE;
        }
        let found = match leaver.instance_id {
            Some(instance_id) if leaver.member_id.is_empty() => {
                self.roster.by_instance(instance_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)
            }
            instance_id => self.roster.find(leaver.member_id, instance_id),
        };
        match found {
            Ok(number) => {
                self.remove(number, ErrorCode::UNKNOWN_MEMBER_ID, effects);
                ErrorCode::NONE
            }
            Err(code) => code,
        }
    }

    /// The peer that waits for the answer named `token` is gone: there will be none.
    pub(crate) fn abandon(&mut self, now: Instant, token: Token) -> Vec<Effect> {
        let mut effects = Vec::new();
        match self.roster.take(token) {
            Some(Waited::Join(number)) if self.roster.get(number).is_some_and(Member::is_lost_unanswered) => {
                self.remove(number, ErrorCode::UNKNOWN_MEMBER_ID, &mut effects);
                self.rebalance(now, &mut effects);
            }
            Some(Waited::Join(number) | Waited::Sync(number)) => self.roster.renew(number, now),
            None => {}
        }
        self.check();
        effects
    }

    /// A member that speaks of the present generation.
    fn find_present(&self, member: &MemberRef<'_>) -> Result<Number, ErrorCode> {
        let number = self.roster.find(member.member_id, member.instance_id)?;
        if member.generation == self.generation { Ok(number) } else { Err(ErrorCode::ILLEGAL_GENERATION) }
    }
}
