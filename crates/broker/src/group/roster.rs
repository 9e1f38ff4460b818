//! The members of a group, with the counts and indexes that spare walks over all of them.

#[cfg(test)]
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use bytes::Bytes;
use kolumn_kafka_wire::ErrorCode;

use super::member::Profile;
use super::types::Token;

/// Counts members in the order in which they came; a static member that is replaced keeps its number.
pub(super) type Number = u64;

/// INVARIANT: every index and count agrees with what the members say of themselves; a member has a deadline unless an
/// answer that it waits for will give it one.
#[derive(Debug, Default)]
pub(super) struct Roster {
    members: BTreeMap<Number, Member>,
    /// Ids that were given out and not yet used.
    pending: HashMap<Number, Pending>,
    /// By member id, also of those that are pending.
    numbers: HashMap<String, Number>,
    instances: HashMap<String, Number>,
    waiting: HashMap<Token, Number>,
    deadlines: BTreeSet<(Instant, Number)>,
    /// How many members support a protocol.
    supporters: HashMap<String, usize>,
    joins_waiting: usize,
    syncs_due: usize,
    len: usize,
    next_number: Number,
    /// Members that walks have come by.
    #[cfg(test)]
    visits: Cell<u64>,
}

#[derive(Debug)]
struct Pending {
    id: String,
    deadline: Instant,
}

/// One member.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: String,
    pub(super) instance_id: Option<String>,
    pub(super) profile: Profile,
    pub(super) assignment: Bytes,
    /// The id that it had before it was replaced, until it is answered.
    pub(super) predecessor: Option<String>,
    join: Option<Token>,
    sync: Option<Token>,
    /// No Join of it was answered yet.
    is_new: bool,
    /// It can come back if the answer to its first Join is lost.
    can_return: bool,
    /// It was told the generation, and has not asked for its assignment.
    is_sync_due: bool,
    deadline: Option<Instant>,
}

/// Whose time is up.
#[derive(Debug)]
pub(super) enum Expired {
    Member(Number),
    Pending,
}

/// What waited under a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    Join(Number),
    Sync(Number),
}

impl Member {
    pub(super) fn is_static(&self) -> bool {
        self.instance_id.is_some()
    }

    pub(super) fn awaits_join(&self) -> bool {
        self.join.is_some()
    }

    pub(super) fn awaits_sync(&self) -> bool {
        self.sync.is_some()
    }

    pub(super) fn is_sync_due(&self) -> bool {
        self.is_sync_due
    }

    /// Whether it is lost with the connection: it was never told its id, and has no name to come back with.
    pub(super) fn is_lost_unanswered(&self) -> bool {
        self.is_new && !self.can_return
    }

    /// Waiting for a rebalance counts as being alive, except for a member that never was answered.
    fn needs_deadline(&self) -> bool {
        if self.join.is_some() { self.is_new } else { self.sync.is_none() }
    }

    fn len(&self) -> usize {
        let instance = self.instance_id.as_ref().map_or(0, String::len);
        self.id.len() + instance + self.profile.len() + self.assignment.len()
    }
}

impl Roster {
    pub(super) fn members_len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// Bytes of everything that members sent.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn joins_waiting(&self) -> usize {
        self.joins_waiting
    }

    pub(super) fn has_syncs_due(&self) -> bool {
        self.syncs_due > 0
    }

    /// Whether nobody is missing for a rebalance to complete.
    pub(super) fn have_all_joined(&self) -> bool {
        self.joins_waiting == self.members.len() && self.pending.is_empty()
    }

    pub(super) fn get(&self, number: Number) -> Option<&Member> {
        self.members.get(&number)
    }

    /// All members, the first one to join first. Every walk over them comes through here.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Number, &Member)> {
        let members = self.members.iter();
        #[cfg(test)]
        let members = members.inspect(|_| self.visits.set(self.visits.get() + 1));
        members.map(|(number, member)| (*number, member))
    }

    /// The numbers of the members that `filter` names, to be able to change them.
    pub(super) fn numbers(&self, filter: impl Fn(&Member) -> bool) -> Vec<Number> {
        self.iter().filter(|(_, member)| filter(member)).map(|(number, _)| number).collect()
    }

    pub(super) fn first(&self) -> Option<Number> {
        self.members.first_key_value().map(|(number, _)| *number)
    }

    pub(super) fn supporters(&self, protocol: &str) -> usize {
        self.supporters.get(protocol).copied().unwrap_or(0)
    }

    pub(super) fn is_pending(&self, id: &str) -> bool {
        self.numbers.get(id).is_some_and(|number| self.pending.contains_key(number))
    }

    pub(super) fn by_instance(&self, instance_id: &str) -> Option<Number> {
        self.instances.get(instance_id).copied()
    }

    pub(super) fn by_id(&self, id: &str) -> Option<Number> {
        self.numbers.get(id).copied().filter(|number| self.members.contains_key(number))
    }

    /// The member with this id, which must be the present one of its instance.
    pub(super) fn find(&self, id: &str, instance_id: Option<&str>) -> Result<Number, ErrorCode> {
        let number = match instance_id {
            Some(instance_id) => self.by_instance(instance_id),
            None => self.by_id(id),
        };
        match number.and_then(|number| Some((number, self.get(number)?))) {
            None => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            Some((_, member)) if member.id != id => Err(ErrorCode::FENCED_INSTANCE_ID),
            Some((number, _)) => Ok(number),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Takes whose time is up: ids that nobody used are gone with that, members have to be removed.
    pub(super) fn next_expired(&mut self, now: Instant) -> Option<Expired> {
        let (_, number) = self.deadlines.first().copied().filter(|(deadline, _)| *deadline <= now)?;
        if let Some(pending) = self.pending.get(&number) {
            let id = pending.id.clone();
            self.remove_pending(&id);
            return Some(Expired::Pending);
        }
        Some(Expired::Member(number))
    }

    pub(super) fn add_pending(&mut self, id: String, deadline: Instant) {
        let number = self.draw_number();
        self.len += id.len();
        self.deadlines.insert((deadline, number));
        self.numbers.insert(id.clone(), number);
        self.pending.insert(number, Pending { id, deadline });
    }

    pub(super) fn remove_pending(&mut self, id: &str) {
        let Some(pending) = self.numbers.get(id).and_then(|number| self.pending.remove(number)) else {
            return;
        };
        if let Some(number) = self.numbers.remove(id) {
            self.deadlines.remove(&(pending.deadline, number));
        }
        self.len -= pending.id.len();
    }

    /// Adds a member that waits for nothing and has no deadline yet.
    pub(super) fn insert(
        &mut self,
        id: String,
        instance_id: Option<String>,
        profile: Profile,
        can_return: bool,
    ) -> Number {
        let number = self.draw_number();
        let member = Member {
            id,
            instance_id,
            profile,
            assignment: Bytes::new(),
            predecessor: None,
            join: None,
            sync: None,
            is_new: true,
            can_return,
            is_sync_due: false,
            deadline: None,
        };
        self.numbers.insert(member.id.clone(), number);
        if let Some(instance_id) = &member.instance_id {
            self.instances.insert(instance_id.clone(), number);
        }
        self.len += member.len();
        self.count_protocols(&member.profile, true);
        self.members.insert(number, member);
        number
    }

    /// Takes a member out, with the Join and the Sync that it waits for.
    pub(super) fn remove(&mut self, number: Number) -> Option<(Option<Token>, Option<Token>)> {
        let waited = (self.set_join(number, None), self.set_sync(number, None));
        self.set_sync_due(number, false);
        self.set_deadline(number, None);
        let member = self.members.remove(&number)?;
        self.numbers.remove(&member.id);
        if let Some(instance_id) = &member.instance_id {
            self.instances.remove(instance_id);
        }
        self.count_protocols(&member.profile, false);
        self.len -= member.len();
        Some(waited)
    }

    pub(super) fn set_profile(&mut self, number: Number, profile: Profile) {
        let Some(member) = self.members.get_mut(&number) else { return };
        let (before, new) = (member.len(), profile.clone());
        let old = std::mem::replace(&mut member.profile, profile);
        self.len = self.len - before + member.len();
        self.count_protocols(&old, false);
        self.count_protocols(&new, true);
    }

    /// Gives a static member another id; the one before is unknown from now on.
    pub(super) fn replace(&mut self, number: Number, id: String) {
        let Some(member) = self.members.get_mut(&number) else { return };
        self.numbers.insert(id.clone(), number);
        self.len += id.len();
        let old = std::mem::replace(&mut member.id, id);
        self.numbers.remove(&old);
        self.len -= old.len();
        member.predecessor = Some(old);
    }

    pub(super) fn set_assignment(&mut self, number: Number, assignment: Bytes) {
        let Some(member) = self.members.get_mut(&number) else { return };
        self.len = self.len - member.assignment.len() + assignment.len();
        member.assignment = assignment;
    }

    /// Sets or takes the Join that waits; returns the one before.
    pub(super) fn set_join(&mut self, number: Number, token: Option<Token>) -> Option<Token> {
        let member = self.members.get_mut(&number)?;
        self.joins_waiting += usize::from(token.is_some());
        let before = std::mem::replace(&mut member.join, token);
        self.joins_waiting -= usize::from(before.is_some());
        self.index_token(number, before, token);
        before
    }

    /// Sets or takes the Sync that waits; returns the one before.
    pub(super) fn set_sync(&mut self, number: Number, token: Option<Token>) -> Option<Token> {
        let member = self.members.get_mut(&number)?;
        let before = std::mem::replace(&mut member.sync, token);
        self.index_token(number, before, token);
        before
    }

    /// Takes whatever waits under a token.
    pub(super) fn take(&mut self, token: Token) -> Option<Waited> {
        let number = self.waiting.get(&token).copied()?;
        if self.get(number)?.join == Some(token) {
            self.set_join(number, None);
            Some(Waited::Join(number))
        } else {
            self.set_sync(number, None);
            Some(Waited::Sync(number))
        }
    }

    pub(super) fn set_sync_due(&mut self, number: Number, is_due: bool) {
        let Some(member) = self.members.get_mut(&number) else { return };
        self.syncs_due += usize::from(is_due);
        self.syncs_due -= usize::from(member.is_sync_due);
        member.is_sync_due = is_due;
    }

    /// A Join of it is answered: it knows its id.
    pub(super) fn answered(&mut self, number: Number) {
        let Some(member) = self.members.get_mut(&number) else { return };
        member.is_new = false;
        member.predecessor = None;
    }

    /// The session begins anew, or stops counting while the member waits for an answer.
    pub(super) fn renew(&mut self, number: Number, now: Instant) {
        let Some(member) = self.get(number).filter(|member| !member.awaits_join()) else { return };
        let deadline = member.needs_deadline().then(|| now + member.profile.session_timeout);
        self.set_deadline(number, deadline);
    }

    /// The member waits for a Join: without end, as the rebalance has one, but if it was never answered only for so
    /// long.
    pub(super) fn begin_wait(&mut self, number: Number, now: Instant, new_member_timeout: Duration) {
        let Some(member) = self.get(number) else { return };
        let deadline = member.needs_deadline().then(|| now + new_member_timeout);
        self.set_deadline(number, deadline);
    }

    fn set_deadline(&mut self, number: Number, deadline: Option<Instant>) {
        let Some(member) = self.members.get_mut(&number) else { return };
        if let Some(before) = std::mem::replace(&mut member.deadline, deadline) {
            self.deadlines.remove(&(before, number));
        }
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, number));
        }
    }

    fn index_token(&mut self, number: Number, before: Option<Token>, token: Option<Token>) {
        if let Some(before) = before {
            self.waiting.remove(&before);
        }
        if let Some(token) = token {
            self.waiting.insert(token, number);
        }
    }

    fn count_protocols(&mut self, profile: &Profile, is_added: bool) {
        for name in profile.names() {
            if is_added {
                *self.supporters.entry(name.to_owned()).or_insert(0) += 1;
            } else if let Some(count) = self.supporters.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.supporters.remove(name);
                }
            }
        }
    }

    fn draw_number(&mut self) -> Number {
        self.next_number += 1;
        self.next_number
    }

    /// Members that walks have come by until now.
    #[cfg(test)]
    pub(super) fn visits(&self) -> u64 {
        self.visits.get()
    }

    pub(super) fn check(&self) {
        debug_assert_eq!(self.numbers.len(), self.members.len() + self.pending.len());
        debug_assert!(self.waiting.len() >= self.joins_waiting);
        debug_assert!(self.instances.len() <= self.members.len());
        if !cfg!(debug_assertions) || self.members.len() > WALKED_MAX {
            return;
        }
        let members = || self.members.values();
        let with_deadline = members().filter(|member| member.deadline.is_some()).count();
        debug_assert_eq!(self.deadlines.len(), with_deadline + self.pending.len());
        debug_assert_eq!(self.joins_waiting, members().filter(|member| member.join.is_some()).count());
        debug_assert_eq!(self.syncs_due, members().filter(|member| member.is_sync_due).count());
        debug_assert_eq!(self.instances.len(), members().filter(|member| member.is_static()).count());
        let pending_len: usize = self.pending.values().map(|pending| pending.id.len()).sum();
        debug_assert_eq!(self.len, members().map(Member::len).sum::<usize>() + pending_len);
        for (number, member) in &self.members {
            debug_assert_eq!(self.numbers.get(&member.id), Some(number));
            debug_assert_eq!(member.deadline.is_some(), member.needs_deadline(), "of {}", member.id);
            debug_assert!(
                member.join.into_iter().chain(member.sync).all(|token| self.waiting.contains_key(&token))
            );
            debug_assert!(member.profile.names().all(|name| self.supporters(name) > 0));
        }
        debug_assert!(self.supporters.values().all(|count| *count > 0));
        let waits = |member: &Member| usize::from(member.awaits_join()) + usize::from(member.awaits_sync());
        debug_assert_eq!(self.waiting.len(), members().map(waits).sum::<usize>());
    }
}

/// Checks that walk over all members are left out for more of them, or they would dominate.
const WALKED_MAX: usize = 64;
