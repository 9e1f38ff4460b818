//! Syncs: the leader brings the assignments, everybody gets its own.

use std::time::Instant;

use bytes::Bytes;
use kolumn_kafka_wire::ErrorCode;

use super::Group;
use super::roster::Number;
use super::types::{Effect, GroupState, Sync};

impl Group {
    /// A `SyncGroup`: answered once the assignments are durable.
    pub(crate) fn sync(&mut self, now: Instant, sync: Sync) -> Vec<Effect> {
        let mut effects = Vec::new();
        let token = sync.token;
        if let Err(code) = self.try_sync(now, sync, &mut effects) {
            effects.push(Effect::Synced(token, Err(code)));
        }
        self.check();
        effects
    }

    fn try_sync(&mut self, now: Instant, sync: Sync, effects: &mut Vec<Effect>) -> Result<(), ErrorCode> {
        if self.state == GroupState::Dead {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        let number = self.roster.find(&sync.member_id, sync.instance_id.as_deref())?;
        if sync.generation != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if sync.protocol_type.is_some_and(|it| it != self.protocol_type)
            || sync.protocol_name.is_some_and(|it| it != self.protocol_name)
        {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        match self.state {
            GroupState::CompletingRebalance => {
                if let Some(before) = self.roster.set_sync(number, Some(sync.token)) {
                    effects.push(Effect::Synced(before, Err(ErrorCode::REBALANCE_IN_PROGRESS)));
                }
                self.sync_received(now, number);
                if self.leader == Some(number) && !self.writes.has_assignment() {
                    self.assign(now, &sync.assignments, effects);
                }
            }
            GroupState::Stable => {
                self.sync_received(now, number);
                effects.push(Effect::Synced(sync.token, Ok(self.synced(number))));
            }
            _ => return Err(ErrorCode::REBALANCE_IN_PROGRESS),
        }
        Ok(())
    }

    fn sync_received(&mut self, now: Instant, number: Number) {
        self.roster.renew(number, now);
        self.roster.set_sync_due(number, false);
        if !self.roster.has_syncs_due() {
            self.sync_deadline = None;
        }
    }

    /// Takes the leader's assignments. Whom it left out gets an empty one; whom the group does not know gets none.
    fn assign(&mut self, now: Instant, assignments: &[(String, Bytes)], effects: &mut Vec<Effect>) {
        let known = || assignments.iter().filter_map(|(id, bytes)| Some((self.roster.by_id(id)?, bytes)));
        if !self.has_room(0, known().map(|(_, bytes)| bytes.len()).sum()) {
            return self.fail_syncs(now, ErrorCode::UNKNOWN_SERVER_ERROR, effects);
        }
        // Copies, because what came with a request keeps the whole request alive.
        let known: Vec<_> = known().map(|(number, bytes)| (number, Bytes::copy_from_slice(bytes))).collect();
        for (number, assignment) in known {
            self.roster.set_assignment(number, assignment);
        }
        self.store(GroupState::Stable, effects);
    }
}
