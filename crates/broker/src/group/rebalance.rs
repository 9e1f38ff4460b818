//! Rebalances: who is waited for, when it is over, who leads and by which protocol.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kolumn_kafka_wire::ErrorCode;

use super::Group;
use super::roster::{Expired, Member, Number};
use super::types::{Effect, GroupState, JoinRefused, Joined, JoinedMember};

/// The first rebalance of an empty group: it waits for more members as long as they come.
#[derive(Debug)]
pub(super) struct Initial {
    pub(super) since: Instant,
    /// Somebody came since it was last decided to wait.
    pub(super) has_grown: bool,
}

impl Group {
    /// Does what is due: sessions that are over, rebalances whose time is up.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Vec<Effect> {
        let mut effects = Vec::new();
        let (mut has_lost_members, mut has_lost_ids) = (false, false);
        while let Some(expired) = self.roster.next_expired(now) {
            match expired {
                Expired::Member(number) => {
                    self.remove(number, ErrorCode::UNKNOWN_MEMBER_ID, &mut effects);
                    has_lost_members = true;
                }
                Expired::Pending => has_lost_ids = true,
            }
        }
        if has_lost_members {
            self.rebalance(now, &mut effects);
        } else if has_lost_ids {
            self.maybe_complete(now, &mut effects);
        }
        if self.join_deadline.is_some_and(|deadline| deadline <= now) {
            self.end_waiting(now, &mut effects);
        }
        if self.sync_deadline.is_some_and(|deadline| deadline <= now) {
            self.remove_unsynced(now, &mut effects);
        }
        self.check();
        effects
    }

    /// Somebody came, changed or is gone: begins a rebalance, or ends the one that only waited for this.
    pub(super) fn rebalance(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        match self.state {
            GroupState::PreparingRebalance => self.maybe_complete(now, effects),
            GroupState::Dead => {}
            _ => self.prepare_rebalance(now, effects),
        }
    }

    pub(super) fn prepare_rebalance(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let was_empty = self.state == GroupState::Empty;
        self.drop_assignments(now, ErrorCode::REBALANCE_IN_PROGRESS, effects);
        self.writes.drop_assignment();
        self.writes.set_awaited(false);
        self.sync_deadline = None;
        self.state = GroupState::PreparingRebalance;
        if was_empty {
            let delay = self.limits.initial_rebalance_delay;
            self.initial = Some(Initial { since: now, has_grown: false });
            self.join_deadline = Some(now + delay);
            if delay.is_zero() {
                self.complete_join(now, effects);
            }
        } else {
            self.join_deadline = Some(now + self.rebalance_timeout());
            self.maybe_complete(now, effects);
        }
        if self.state == GroupState::PreparingRebalance {
            self.cover_generations(effects);
        }
    }

    /// Nobody gets the assignments any more; whoever waits for one is told `code`.
    pub(super) fn drop_assignments(&mut self, now: Instant, code: ErrorCode, effects: &mut Vec<Effect>) {
        for number in self.roster.numbers(|_| true) {
            self.roster.set_assignment(number, Bytes::new());
            self.roster.set_sync_due(number, false);
            if let Some(token) = self.roster.set_sync(number, None) {
                effects.push(Effect::Synced(token, Err(code)));
                self.roster.renew(number, now);
            }
        }
    }

    pub(super) fn maybe_complete(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let is_waiting = self.state == GroupState::PreparingRebalance && self.initial.is_none();
        if is_waiting && self.roster.have_all_joined() {
            self.complete_join(now, effects);
        }
    }

    /// The time to join is over; an empty group may wait some more.
    fn end_waiting(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let timeout = self.rebalance_timeout();
        if let Some(initial) = &mut self.initial
            && std::mem::take(&mut initial.has_grown)
        {
            let end = initial.since + timeout;
            self.join_deadline = Some(end.min(now + self.limits.initial_rebalance_delay));
            return;
        }
        self.complete_join(now, effects);
    }

    /// Gives out the next generation to those who have joined. Others are removed, but static members may return.
    pub(super) fn complete_join(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        for number in self.roster.numbers(|member| !member.awaits_join() && !member.is_static()) {
            self.remove(number, ErrorCode::UNKNOWN_MEMBER_ID, effects);
        }
        if self.roster.is_empty() {
            return self.become_empty(effects);
        }
        let generation = self.spent_generation.saturating_add(1);
        let is_covered = self.writes.is_covered(generation);
        if self.roster.joins_waiting() == 0 || !is_covered {
            // Nobody is there to lead, or it has to be durable first that this generation is given out.
            self.initial = None;
            let wait = if is_covered { self.rebalance_timeout().max(POSTPONED_MIN) } else { POSTPONED_MIN };
            self.join_deadline = Some(now + wait);
            self.writes.set_awaited(!is_covered);
            return self.cover_generations(effects);
        }
        self.begin_generation(generation);
        self.protocol_name = self.select_protocol();
        self.elect_leader();
        self.state = GroupState::CompletingRebalance;
        for number in self.roster.numbers(Member::awaits_join) {
            self.answer_join(now, number, effects);
        }
    }

    fn become_empty(&mut self, effects: &mut Vec<Effect>) {
        self.state = GroupState::Empty;
        if self.initial.is_some() {
            // Nothing was given out since it was empty before, so there is nothing to remember.
            self.end_preparing();
            return;
        }
        self.begin_generation(self.spent_generation.saturating_add(1));
        self.protocol_name = String::new();
        self.store(GroupState::Empty, effects);
    }

    fn begin_generation(&mut self, generation: i32) {
        self.end_preparing();
        self.generation = generation;
        self.spent_generation = generation;
    }

    fn end_preparing(&mut self) {
        self.initial = None;
        self.join_deadline = None;
        self.writes.set_awaited(false);
    }

    /// Answers the Join that a member waits for with the present generation.
    pub(super) fn answer_join(&mut self, now: Instant, number: Number, effects: &mut Vec<Effect>) {
        let Some(token) = self.roster.set_join(number, None) else { return };
        if let Some(joined) = self.joined(number) {
            effects.push(Effect::Joined(token, Ok(joined)));
        }
        let awaits_sync = self.roster.get(number).is_some_and(Member::awaits_sync);
        if self.state == GroupState::CompletingRebalance && !awaits_sync {
            self.roster.set_sync_due(number, true);
            let timeout = self.sync_deadline.is_none().then(|| self.rebalance_timeout());
            self.sync_deadline = self.sync_deadline.or(timeout.map(|timeout| now + timeout));
        }
        self.roster.answered(number);
        self.roster.renew(number, now);
    }

    /// The present generation as this member is told of it.
    pub(super) fn joined(&self, number: Number) -> Option<Joined> {
        let member = self.roster.get(number)?;
        let leader = self.leader.and_then(|leader| self.roster.get(leader))?;
        let is_leader = self.leader == Some(number);
        let is_replaced = self.state == GroupState::Stable && member.predecessor.is_some();
        let (leader_id, is_told_members) = match &member.predecessor {
            // It would compute assignments that a stable group does not take; it does not if somebody else leads.
            Some(predecessor) if is_leader && is_replaced && !member.profile.can_skip_assignment => {
                (predecessor, false)
            }
            _ => (&leader.id, is_leader),
        };
        let members = self.roster.iter().map(|(_, member)| JoinedMember {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.profile.metadata(&self.protocol_name).cloned().unwrap_or_default(),
        });
        Some(Joined {
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: leader_id.clone(),
            member_id: member.id.clone(),
            skip_assignment: is_replaced && is_told_members,
            members: if is_told_members { members.collect() } else { Vec::new() },
        })
    }

    /// Takes a member out; what it waits for is answered with `code`. The caller rebalances.
    pub(super) fn remove(&mut self, number: Number, code: ErrorCode, effects: &mut Vec<Effect>) {
        let Some((join, sync)) = self.roster.remove(number) else { return };
        if let Some(token) = join {
            effects.push(Effect::Joined(token, Err(JoinRefused { code, member_id: String::new() })));
        }
        if let Some(token) = sync {
            effects.push(Effect::Synced(token, Err(code)));
        }
        if self.leader == Some(number) {
            self.leader = self.roster.first();
        }
    }

    fn remove_unsynced(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.sync_deadline = None;
        for number in self.roster.numbers(Member::is_sync_due) {
            self.remove(number, ErrorCode::UNKNOWN_MEMBER_ID, effects);
        }
        self.rebalance(now, effects);
    }

    fn elect_leader(&mut self) {
        let is_here = |(_, member): &(Number, &Member)| member.awaits_join();
        if !self.leader.and_then(|leader| self.roster.get(leader)).is_some_and(Member::awaits_join) {
            self.leader = self.roster.iter().find(is_here).map(|(number, _)| number);
        }
    }

    /// Of the protocols that all members support, the one that most of them like best.
    fn select_protocol(&self) -> String {
        let is_candidate = |name: &&str| self.roster.supporters(name) == self.roster.members_len();
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, member) in self.roster.iter() {
            if let Some(name) = member.profile.names().find(is_candidate) {
                *votes.entry(name).or_insert(0) += 1;
            }
        }
        let most = votes.iter().max_by_key(|(_, votes)| **votes);
        debug_assert!(most.is_some(), "no member is let in that has no protocol in common with all");
        most.map(|(name, _)| (*name).to_owned()).unwrap_or_default()
    }

    /// As long as the most patient member allows.
    pub(super) fn rebalance_timeout(&self) -> Duration {
        self.roster.iter().map(|(_, member)| member.profile.rebalance_timeout).max().unwrap_or_default()
    }
}

/// So that a postponed rebalance of impatient members keeps nobody busy.
const POSTPONED_MIN: Duration = Duration::from_secs(1);
