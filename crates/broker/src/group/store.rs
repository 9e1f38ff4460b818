//! Remembering a group: which write is under way, what it is for, and what happens when it is durable or fails.
//!
//! At most one write counts, the newest. Those for replaced static members wait for the one before, so that they cost
//! no more than the disk can take.

use std::time::Instant;

use kolumn_kafka_wire::ErrorCode;

use super::roster::{Member, Number};
use super::types::{Effect, GroupState, StoreId, Synced};
use super::{GENERATIONS_AHEAD, Group};

/// Where writing stands.
#[derive(Debug)]
pub(super) struct Writes {
    last_id: u64,
    under_way: Option<Write>,
    /// Something changed after the write under way was begun.
    is_behind: bool,
    /// Generations up to this may be given out: none of them will be again after a restart.
    covered: i32,
    /// A rebalance is complete but for a generation that is covered.
    is_awaited: bool,
}

#[derive(Debug)]
struct Write {
    id: StoreId,
    covers: i32,
    /// It has the assignments that the members of the present generation wait for.
    is_assignment: bool,
}

impl Writes {
    pub(super) fn new(covered: i32) -> Self {
        Self { last_id: 0, under_way: None, is_behind: false, covered, is_awaited: false }
    }

    pub(super) fn has_assignment(&self) -> bool {
        self.under_way.as_ref().is_some_and(|write| write.is_assignment)
    }

    /// The assignments that are being written are of no use any more.
    pub(super) fn drop_assignment(&mut self) {
        if let Some(write) = &mut self.under_way {
            write.is_assignment = false;
        }
    }

    pub(super) fn is_covered(&self, generation: i32) -> bool {
        generation <= self.covered
    }

    pub(super) fn set_awaited(&mut self, is_awaited: bool) {
        self.is_awaited = is_awaited;
    }
}

impl Group {
    /// What an [`Effect::Store`] asked for is durable (`ok`), or will never be.
    pub(crate) fn stored(&mut self, now: Instant, id: StoreId, ok: bool) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some(write) = self.writes.under_way.take_if(|write| write.id == id) {
            if ok {
                self.writes.covered = write.covers;
            }
            match self.state {
                GroupState::CompletingRebalance if write.is_assignment => {
                    self.assigned(now, ok, &mut effects);
                }
                GroupState::Stable if ok && self.writes.is_behind => {
                    self.store(GroupState::Stable, &mut effects);
                }
                GroupState::Stable if ok => self.answer_replaced(now, &mut effects),
                // Who waits to be remembered takes part in the next generation instead.
                GroupState::Stable if self.roster.joins_waiting() > 0 => {
                    self.prepare_rebalance(now, &mut effects);
                }
                GroupState::PreparingRebalance if ok && self.writes.is_awaited => {
                    self.complete_join(now, &mut effects);
                }
                _ => {}
            }
        }
        self.check();
        effects
    }

    /// Remembers the group as what it is or, with the assignments that have just come, will be.
    pub(super) fn store(&mut self, state: GroupState, effects: &mut Vec<Effect>) {
        self.writes.last_id += 1;
        let id = StoreId(self.writes.last_id);
        let covers = self.spent_generation.saturating_add(GENERATIONS_AHEAD);
        let is_assignment = self.state == GroupState::CompletingRebalance;
        self.writes.under_way = Some(Write { id, covers, is_assignment });
        self.writes.is_behind = false;
        effects.push(Effect::Store(id, self.memory(state, covers)));
    }

    /// Remembers a change in a stable group, after the write that is under way.
    pub(super) fn store_change(&mut self, effects: &mut Vec<Effect>) {
        if self.writes.under_way.is_some() {
            self.writes.is_behind = true;
        } else {
            self.store(GroupState::Stable, effects);
        }
    }

    /// Covers more generations in time, so that a rebalance need not wait for it.
    pub(super) fn cover_generations(&mut self, effects: &mut Vec<Effect>) {
        let wanted = self.spent_generation.saturating_add(GENERATIONS_AHEAD / 2);
        if self.writes.under_way.is_none() && !self.writes.is_covered(wanted) {
            self.store(GroupState::PreparingRebalance, effects);
        }
    }

    fn assigned(&mut self, now: Instant, ok: bool, effects: &mut Vec<Effect>) {
        if !ok {
            return self.fail_syncs(now, ErrorCode::COORDINATOR_NOT_AVAILABLE, effects);
        }
        self.state = GroupState::Stable;
        let waiting = self.roster.numbers(Member::awaits_sync);
        for number in waiting {
            let Some(token) = self.roster.set_sync(number, None) else { continue };
            effects.push(Effect::Synced(token, Ok(self.synced(number))));
            self.roster.renew(number, now);
        }
    }

    /// Answers all Syncs that wait with `code` and begins another rebalance.
    pub(super) fn fail_syncs(&mut self, now: Instant, code: ErrorCode, effects: &mut Vec<Effect>) {
        self.drop_assignments(now, code, effects);
        self.prepare_rebalance(now, effects);
    }

    pub(super) fn synced(&self, number: Number) -> Synced {
        Synced {
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            assignment: self.roster.get(number).map(|member| member.assignment.clone()).unwrap_or_default(),
        }
    }

    /// The replaced static members are durable: they go on in the present generation.
    fn answer_replaced(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        for number in self.roster.numbers(Member::awaits_join) {
            self.answer_join(now, number, effects);
        }
    }
}
