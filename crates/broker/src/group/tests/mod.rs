//! The rules of a group, one by one; a random crowd that must keep them all; and what it costs to be many.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use kolumn_kafka_wire::ErrorCode;

use super::*;

mod commits;
mod crowd;
mod joining;
mod leaving;
mod limits;
mod memory;
mod scale;
mod sessions;
mod static_members;
mod syncing;

/// A group on a stage: time passes when told to, writes become durable when told to, every answer is kept.
pub(super) struct Play {
    pub(super) group: Group,
    pub(super) now: Instant,
    answers: BTreeMap<Token, Option<Answer>>,
    pub(super) stores: Vec<(StoreId, Bytes)>,
}

#[derive(Clone, Debug)]
pub(super) enum Answer {
    Joined(Result<Joined, JoinRefused>),
    Synced(Result<Synced, ErrorCode>),
}

pub(super) const SESSION: Duration = Duration::from_secs(10);
/// A second less than a session.
pub(super) const ALMOST_SESSION: Duration = Duration::from_secs(9);
pub(super) const REBALANCE: Duration = Duration::from_secs(30);

pub(super) fn limits() -> GroupLimits {
    GroupLimits { initial_rebalance_delay: Duration::ZERO, ..GroupLimits::default() }
}

pub(super) fn subscription(topics: &[&str]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(1);
    out.put_i32(i32::try_from(topics.len()).expect("few"));
    for topic in topics {
        out.put_i16(i16::try_from(topic.len()).expect("short"));
        out.put_slice(topic.as_bytes());
    }
    out.put_i32(-1); // no user data
    out.freeze()
}

/// A new dynamic member of an old client; its id will be `name`.
pub(super) fn new(name: &str) -> Join {
    Join {
        token: Token(0),
        member_id: String::new(),
        instance_id: None,
        client_id: "client".to_owned(),
        client_host: "/127.0.0.1".to_owned(),
        session_timeout: SESSION,
        rebalance_timeout: REBALANCE,
        protocol_type: "consumer".to_owned(),
        protocols: vec![("range".to_owned(), subscription(&["t"]))],
        needs_known_id: false,
        can_skip_assignment: false,
        proposed_id: name.to_owned(),
    }
}

/// The same member comes again.
pub(super) fn known(name: &str) -> Join {
    Join { member_id: name.to_owned(), proposed_id: "unused".to_owned(), ..new(name) }
}

/// A static member's process that starts; its id will be `name`.
pub(super) fn fixed(instance: &str, name: &str) -> Join {
    Join { instance_id: Some(instance.to_owned()), ..new(name) }
}

pub(super) fn subscribed(join: Join, topics: &[&str]) -> Join {
    Join { protocols: vec![("range".to_owned(), subscription(topics))], ..join }
}

impl Play {
    pub(super) fn new(limits: GroupLimits) -> Self {
        let now = tokio::time::Instant::now().into_std();
        Self { group: Group::new(limits), now, answers: BTreeMap::new(), stores: Vec::new() }
    }

    /// A stable group of old clients with these ids; the first leads.
    #[track_caller]
    pub(super) fn stable(names: &[&str]) -> Self {
        let mut play = Self::new(limits());
        for name in names {
            play.join(new(name));
        }
        play.settle(names);
        play
    }

    /// Has all of these members join and sync, until the group is stable.
    #[track_caller]
    pub(super) fn settle(&mut self, names: &[&str]) {
        let mut joins: Vec<_> = names.iter().map(|name| self.rejoin(name)).collect();
        if joins.len() == 1 {
            joins = vec![self.rejoin(names[0])];
        }
        let joined: Vec<_> = joins.into_iter().map(|token| self.joined(token)).collect();
        let leader = joined[0].leader.clone();
        for (name, joined) in names.iter().zip(&joined) {
            if joined.member_id == leader {
                self.sync_leader(name, names);
            } else {
                self.sync(name);
            }
        }
        self.durable();
        assert_eq!(self.group.state(), GroupState::Stable);
    }

    /// The member joins again as what the group knows of it.
    pub(super) fn rejoin(&mut self, name: &str) -> Token {
        let number = self.group.roster.by_id(name).expect("a member");
        let member = self.group.roster.get(number).expect("a member");
        let join = Join {
            instance_id: member.instance_id.clone(),
            protocols: member.profile.protocols.clone(),
            session_timeout: member.profile.session_timeout,
            rebalance_timeout: member.profile.rebalance_timeout,
            ..known(name)
        };
        self.join(join)
    }

    pub(super) fn draw(&mut self) -> Token {
        let token = Token(self.answers.len() as u64 + 1);
        self.answers.insert(token, None);
        token
    }

    pub(super) fn join(&mut self, join: Join) -> Token {
        let token = self.draw();
        let effects = self.group.join(self.now, Join { token, ..join });
        self.take(effects);
        token
    }

    pub(super) fn sync_with(&mut self, sync: Sync) -> Token {
        let token = self.draw();
        let effects = self.group.sync(self.now, Sync { token, ..sync });
        self.take(effects);
        token
    }

    /// A follower's Sync in the present generation.
    pub(super) fn sync(&mut self, name: &str) -> Token {
        self.sync_leader(name, &[])
    }

    /// The leader's, that gives each of `names` its own name as assignment.
    pub(super) fn sync_leader(&mut self, name: &str, names: &[&str]) -> Token {
        self.sync_with(Sync {
            token: Token(0),
            member_id: name.to_owned(),
            instance_id: None,
            generation: self.group.generation(),
            protocol_type: None,
            protocol_name: None,
            assignments: names
                .iter()
                .map(|it| ((*it).to_owned(), Bytes::copy_from_slice(it.as_bytes())))
                .collect(),
        })
    }

    pub(super) fn heartbeat(&mut self, name: &str) -> Result<(), ErrorCode> {
        let generation = self.group.generation();
        self.group.heartbeat(self.now, &MemberRef { member_id: name, instance_id: None, generation })
    }

    #[track_caller]
    pub(super) fn leave(&mut self, name: &str) {
        let (codes, effects) = self.group.leave(self.now, &[Leaver { member_id: name, instance_id: None }]);
        assert_eq!(codes, [ErrorCode::NONE]);
        self.take(effects);
    }

    pub(super) fn abandon(&mut self, token: Token) {
        let effects = self.group.abandon(self.now, token);
        self.take(effects);
    }

    /// The newest write becomes durable.
    pub(super) fn durable(&mut self) {
        self.stored(true);
    }

    pub(super) fn stored(&mut self, ok: bool) {
        let id = self.stores.last().expect("something was to be written").0;
        let effects = self.group.stored(self.now, id, ok);
        self.take(effects);
    }

    /// Time passes; what is due on the way happens at its time.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(deadline) = self.group.next_deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            let effects = self.group.handle_timeout(self.now);
            self.take(effects);
        }
        self.now = end;
    }

    #[track_caller]
    pub(super) fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let (token, answer) = match effect {
                Effect::Store(id, memory) => {
                    self.stores.push((id, memory));
                    continue;
                }
                Effect::Joined(token, answer) => (token, Answer::Joined(answer)),
                Effect::Synced(token, answer) => (token, Answer::Synced(answer)),
            };
            let before = self.answers.get_mut(&token).expect("only who asked is answered").replace(answer);
            assert!(before.is_none(), "{token:?} is answered twice");
        }
    }

    pub(super) fn waits(&self, token: Token) -> bool {
        self.answers[&token].is_none()
    }

    pub(super) fn answer(&self, token: Token) -> Option<Answer> {
        self.answers[&token].clone()
    }

    #[track_caller]
    pub(super) fn joined(&self, token: Token) -> Joined {
        match &self.answers[&token] {
            Some(Answer::Joined(Ok(joined))) => joined.clone(),
            other => panic!("not joined: {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn refused(&self, token: Token) -> ErrorCode {
        match &self.answers[&token] {
            Some(Answer::Joined(Err(refused))) => refused.code,
            Some(Answer::Synced(Err(code))) => *code,
            other => panic!("not refused: {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn assignment(&self, token: Token) -> Bytes {
        match &self.answers[&token] {
            Some(Answer::Synced(Ok(synced))) => synced.assignment.clone(),
            other => panic!("not synced: {other:?}"),
        }
    }

    pub(super) fn state(&self) -> GroupState {
        self.group.state()
    }

    pub(super) fn members(&self) -> Vec<String> {
        self.group.describe().members.into_iter().map(|member| member.member_id).collect()
    }
}

pub(super) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
