//! What of a group survives a restart, as bytes.
//!
//! ```text
//! GROUP    => version:u8 state:u8 generation:i32 spent:i32 protocol_type:BYTES protocol_name:BYTES
//!             leader:u32 count:u32 count*MEMBER
//! MEMBER   => id:BYTES instance_id:BYTES is_static:u8 client_id:BYTES client_host:BYTES
//!             session_ms:u32 rebalance_ms:u32 count:u32 count*PROTOCOL assignment:BYTES
//! PROTOCOL => name:BYTES metadata:BYTES
//! BYTES    => len:u32 len*u8
//! ```
//! Numbers are big-endian. `spent` is the greatest generation that may be given out before the next write; `leader`
//! counts members. A member that waited for a Join has to come again.

use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};

use super::Group;
use super::member::Profile;
use super::roster::{Member, Number};
use super::store::Writes;
use super::types::{GroupLimits, GroupState};

/// The bytes are no group's memory.
#[derive(Debug, thiserror::Error)]
#[error("a remembered group is damaged: {0}")]
pub(crate) struct MemoryError(&'static str);

impl Group {
    pub(super) fn memory(&self, state: GroupState, spent: i32) -> Bytes {
        let mut out =
            BytesMut::with_capacity(self.roster.len() + self.roster.members_len() * MEMBER_LEN + MEMBER_LEN);
        out.put_u8(VERSION);
        out.put_u8(match state {
            // All members have left, and the ids that a rebalance still waits for are not remembered.
            _ if self.roster.is_empty() => EMPTY,
            GroupState::Stable => STABLE,
            GroupState::PreparingRebalance | GroupState::CompletingRebalance => PREPARING,
            GroupState::Empty | GroupState::Dead => EMPTY,
        });
        out.put_i32(self.generation);
        out.put_i32(spent);
        put_bytes(&mut out, self.protocol_type.as_bytes());
        put_bytes(&mut out, self.protocol_name.as_bytes());
        let leader = self.roster.iter().position(|(number, _)| self.leader == Some(number));
        put_len(&mut out, leader.unwrap_or(0));
        put_len(&mut out, self.roster.members_len());
        for (_, member) in self.roster.iter() {
            put_member(&mut out, member);
        }
        out.freeze()
    }

    /// The group that an [`Effect::Store`](super::Effect::Store) described; the sessions of its members begin at `now`.
    pub(crate) fn restore(memory: &[u8], limits: GroupLimits, now: Instant) -> Result<Self, MemoryError> {
        let mut input = Input { rest: memory };
        if input.byte()? != VERSION {
            return Err(MemoryError("its version is unknown"));
        }
        let mut group = Self::new(limits);
        group.state = match input.byte()? {
            EMPTY => GroupState::Empty,
            PREPARING => GroupState::PreparingRebalance,
            STABLE => GroupState::Stable,
            _ => return Err(MemoryError("its state is unknown")),
        };
        group.generation = input.i32()?;
        group.spent_generation = input.i32()?;
        if group.spent_generation < group.generation {
            return Err(MemoryError("its generations go back"));
        }
        group.writes = Writes::new(group.spent_generation);
        group.protocol_type = input.text()?;
        group.protocol_name = input.text()?;
        let (leader, count) = (input.u32()?, input.u32()?);
        for index in 0..count {
            let number = input.member(&mut group)?;
            group.roster.answered(number);
            group.roster.renew(number, now);
            if index == leader {
                group.leader = Some(number);
            }
        }
        if !input.rest.is_empty() {
            return Err(MemoryError("it is too long"));
        }
        let has_members = !group.roster.is_empty();
        if group.leader.is_some() != has_members || has_members != (group.state != GroupState::Empty) {
            return Err(MemoryError("its state and its members do not agree"));
        }
        if group.state == GroupState::PreparingRebalance {
            group.join_deadline = Some(now + group.rebalance_timeout());
        }
        group.check();
        Ok(group)
    }
}

fn put_member(out: &mut BytesMut, member: &Member) {
    let profile = &member.profile;
    put_bytes(out, member.id.as_bytes());
    put_bytes(out, member.instance_id.as_deref().unwrap_or_default().as_bytes());
    out.put_u8(u8::from(member.is_static()));
    put_bytes(out, profile.client_id.as_bytes());
    put_bytes(out, profile.client_host.as_bytes());
    put_millis(out, profile.session_timeout);
    put_millis(out, profile.rebalance_timeout);
    put_len(out, profile.protocols.len());
    for (name, metadata) in &profile.protocols {
        put_bytes(out, name.as_bytes());
        put_bytes(out, metadata);
    }
    put_bytes(out, &member.assignment);
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.put_slice(bytes);
}

/// What is counted here is bounded by the limits of the group, far below the greatest `u32`.
fn put_len(out: &mut BytesMut, len: usize) {
    debug_assert!(u32::try_from(len).is_ok());
    out.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
}

fn put_millis(out: &mut BytesMut, duration: Duration) {
    out.put_u32(u32::try_from(duration.as_millis()).unwrap_or(u32::MAX));
}

struct Input<'a> {
    rest: &'a [u8],
}

impl Input<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], MemoryError> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(TOO_SHORT)?;
        self.rest = rest;
        Ok(*array)
    }

    fn byte(&mut self) -> Result<u8, MemoryError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn i32(&mut self) -> Result<i32, MemoryError> {
        self.array().map(i32::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, MemoryError> {
        self.array().map(u32::from_be_bytes)
    }

    fn millis(&mut self) -> Result<Duration, MemoryError> {
        self.u32().map(|millis| Duration::from_millis(millis.into()))
    }

    fn bytes(&mut self) -> Result<&[u8], MemoryError> {
        let len = usize::try_from(self.u32()?).map_err(|_| TOO_SHORT)?;
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(TOO_SHORT)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<String, MemoryError> {
        let text = str::from_utf8(self.bytes()?).map_err(|_| MemoryError("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }

    /// Reads a member and adds it.
    fn member(&mut self, group: &mut Group) -> Result<Number, MemoryError> {
        let (id, instance_id) = (self.text()?, self.text()?);
        let instance_id = (self.byte()? != 0).then_some(instance_id);
        let (client_id, client_host) = (self.text()?, self.text()?);
        let (session_timeout, rebalance_timeout) = (self.millis()?, self.millis()?);
        let mut protocols = Vec::new();
        for _ in 0..self.u32()? {
            protocols.push((self.text()?, Bytes::copy_from_slice(self.bytes()?)));
        }
        let assignment = Bytes::copy_from_slice(self.bytes()?);
        let is_known = |instance_id: &str| group.roster.by_instance(instance_id).is_some();
        if group.roster.by_id(&id).is_some() || instance_id.as_deref().is_some_and(is_known) {
            return Err(MemoryError("a member is there twice"));
        }
        let can_skip_assignment = false;
        let profile = Profile {
            client_id,
            client_host,
            session_timeout,
            rebalance_timeout,
            protocols,
            can_skip_assignment,
        };
        let number = group.roster.insert(id, instance_id, profile, true);
        group.roster.set_assignment(number, assignment);
        Ok(number)
    }
}

const TOO_SHORT: MemoryError = MemoryError("it ends too early");
const VERSION: u8 = 1;
const EMPTY: u8 = 0;
const PREPARING: u8 = 1;
const STABLE: u8 = 2;
/// About what a member takes besides what it sent.
const MEMBER_LEN: usize = 64;
