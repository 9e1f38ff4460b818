//! Joins: new members, those who come back, and static members that replace themselves.

use std::collections::HashSet;
use std::time::Instant;

use kolumn_kafka_wire::ErrorCode;

use super::member::Profile;
use super::roster::Number;
use super::types::{Effect, GroupState, Join, JoinRefused, Token};
use super::{CONSUMER, Group, subscription};

impl Group {
    /// A `JoinGroup`: answered at once, or when the rebalance that it takes part in completes.
    pub(crate) fn join(&mut self, now: Instant, join: Join) -> Vec<Effect> {
        let mut effects = Vec::new();
        let (token, member_id) = (join.token, join.member_id.clone());
        let accepted = match join.instance_id.as_deref() {
            _ if self.state == GroupState::Dead => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
            _ if !self.allows_session(&join) => Err(ErrorCode::INVALID_SESSION_TIMEOUT),
            Some(instance_id) if member_id.is_empty() => match self.roster.by_instance(instance_id) {
                Some(number) => self.replace_static(now, number, join, &mut effects),
                None => self.admit(now, join.proposed_id.clone(), join, &mut effects),
            },
            None if member_id.is_empty() && join.needs_known_id => self.give_id(now, join, &mut effects),
            None if member_id.is_empty() => self.admit(now, join.proposed_id.clone(), join, &mut effects),
            None if self.roster.is_pending(&member_id) => {
                self.admit(now, member_id.clone(), join, &mut effects)
            }
            _ => self.rejoin(now, join, &mut effects),
        };
        if let Err(code) = accepted {
            effects.push(refused(token, code, member_id));
        }
        self.check();
        effects
    }

    fn allows_session(&self, join: &Join) -> bool {
        (self.limits.session_timeout_min..=self.limits.session_timeout_max).contains(&join.session_timeout)
    }

    /// Has the member come again with an id, so that a Join whose peer is lost leaves no member behind.
    fn give_id(&mut self, now: Instant, join: Join, effects: &mut Vec<Effect>) -> Result<(), ErrorCode> {
        self.check_protocols(&join.protocol_type, &Profile::new(&join), None)?;
        let is_full = self.roster.members_len() >= self.limits.members_max
            || self.roster.pending_len() >= self.limits.members_max;
        if is_full || !self.has_room(0, join.proposed_id.len()) {
            return Err(ErrorCode::GROUP_MAX_SIZE_REACHED);
        }
        self.roster.add_pending(join.proposed_id.clone(), now + join.session_timeout);
        effects.push(refused(join.token, ErrorCode::MEMBER_ID_REQUIRED, join.proposed_id));
        Ok(())
    }

    /// A new member with the id `id`, which it may have been given before.
    fn admit(
        &mut self,
        now: Instant,
        id: String,
        join: Join,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ErrorCode> {
        let profile = Profile::new(&join);
        self.check_protocols(&join.protocol_type, &profile, None)?;
        let added = id.len() + join.instance_id.as_ref().map_or(0, String::len) + profile.len();
        if self.roster.members_len() >= self.limits.members_max || !self.has_room(0, added) {
            return Err(ErrorCode::GROUP_MAX_SIZE_REACHED);
        }
        self.roster.remove_pending(&id);
        if self.roster.is_empty() {
            self.protocol_type = join.protocol_type;
        }
        let can_return = !join.member_id.is_empty() || join.instance_id.is_some();
        let number = self.roster.insert(id, join.instance_id, profile, can_return);
        self.await_join(now, number, join.token);
        self.leader.get_or_insert(number);
        if let Some(initial) = &mut self.initial {
            initial.has_grown = true;
        }
        self.rebalance(now, effects);
        Ok(())
    }

    /// A static member whose process started anew: it takes the place of its former self, which is fenced off.
    fn replace_static(
        &mut self,
        now: Instant,
        number: Number,
        join: Join,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ErrorCode> {
        let profile = Profile::new(&join);
        let is_same =
            self.check_change(&join, &profile, number)?.is_none_or(|change| change == Change::Metadata);
        self.fence(number, effects);
        self.roster.replace(number, join.proposed_id);
        self.roster.set_profile(number, profile);
        self.await_join(now, number, join.token);
        match self.state {
            GroupState::Stable if is_same => self.store_change(effects),
            // The leader may be assigning to the former id.
            _ => self.rebalance(now, effects),
        }
        Ok(())
    }

    fn fence(&mut self, number: Number, effects: &mut Vec<Effect>) {
        let code = ErrorCode::FENCED_INSTANCE_ID;
        let id = self.roster.get(number).map(|member| member.id.clone()).unwrap_or_default();
        if let Some(token) = self.roster.set_join(number, None) {
            effects.push(refused(token, code, id));
        }
        if let Some(token) = self.roster.set_sync(number, None) {
            effects.push(Effect::Synced(token, Err(code)));
        }
    }

    /// A member that the group knows.
    fn rejoin(&mut self, now: Instant, join: Join, effects: &mut Vec<Effect>) -> Result<(), ErrorCode> {
        let number = self.roster.find(&join.member_id, join.instance_id.as_deref())?;
        let profile = Profile::new(&join);
        let change = self.check_change(&join, &profile, number)?;
        let has_other_timeouts =
            self.roster.get(number).is_some_and(|member| !member.profile.has_timeouts_of(&profile));
        self.roster.set_profile(number, profile);
        if let Some(token) = self.await_join(now, number, join.token) {
            effects.push(refused(token, ErrorCode::REBALANCE_IN_PROGRESS, join.member_id));
        }
        let is_leader = self.leader == Some(number);
        match self.state {
            // It has not heard of this generation, or not seen the answer: it hears it again.
            GroupState::CompletingRebalance if change.is_none() => self.answer_join(now, number, effects),
            GroupState::Stable if change.is_none() && !is_leader => {
                self.answer_join(now, number, effects);
                if has_other_timeouts {
                    self.store_change(effects);
                }
            }
            _ => self.rebalance(now, effects),
        }
        Ok(())
    }

    /// The member waits for the rebalance to complete; returns the Join that it gave up for this one.
    fn await_join(&mut self, now: Instant, number: Number, token: Token) -> Option<Token> {
        let before = self.roster.set_join(number, Some(token));
        self.roster.begin_wait(number, now, self.limits.new_member_timeout);
        before
    }

    /// What the member changes by joining with this profile, if it may.
    fn check_change(
        &self,
        join: &Join,
        profile: &Profile,
        number: Number,
    ) -> Result<Option<Change>, ErrorCode> {
        let old = self.roster.get(number).map(|member| &member.profile);
        self.check_protocols(&join.protocol_type, profile, old)?;
        let old = old.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if !self.has_room(old.len(), profile.len() + join.proposed_id.len()) {
            return Err(ErrorCode::GROUP_MAX_SIZE_REACHED);
        }
        Ok(self.change(old, profile))
    }

    fn change(&self, old: &Profile, new: &Profile) -> Option<Change> {
        if old.protocols == new.protocols {
            return None;
        }
        let topics =
            |profile: &Profile| profile.metadata(&self.protocol_name).and_then(|it| subscription::topics(it));
        let has_same_topics = || topics(old).is_some_and(|topics_before| Some(topics_before) == topics(new));
        if self.protocol_type == CONSUMER && old.names().eq(new.names()) && has_same_topics() {
            return Some(Change::Metadata);
        }
        Some(Change::Subscription)
    }

    /// Whether a protocol is left that all members support, if `old` is replaced or nobody is.
    fn check_protocols(
        &self,
        protocol_type: &str,
        new: &Profile,
        old: Option<&Profile>,
    ) -> Result<(), ErrorCode> {
        let others = self.roster.members_len() - usize::from(old.is_some());
        let is_of_type = self.roster.is_empty() || protocol_type == self.protocol_type;
        let own: HashSet<&str> = old.into_iter().flat_map(Profile::names).collect();
        let is_common = |name: &str| self.roster.supporters(name) - usize::from(own.contains(name)) == others;
        if is_of_type && !protocol_type.is_empty() && new.names().any(is_common) {
            Ok(())
        } else {
            Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL)
        }
    }

    /// Whether what the members sent stays within its limit.
    pub(super) fn has_room(&self, freed: usize, added: usize) -> bool {
        self.roster.len() - freed + added <= self.limits.len_max
    }
}

/// How much a member that comes back has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// What it holds or how it assigns, but not what it wants.
    Metadata,
    Subscription,
}

fn refused(token: Token, code: ErrorCode, member_id: String) -> Effect {
    Effect::Joined(token, Err(JoinRefused { code, member_id }))
}
