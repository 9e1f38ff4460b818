//! Six members, static and dynamic, that do anything in any order, against what a naive onlooker knows of groups.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Act {
    /// With one of three subscriptions.
    Join(usize, u8),
    /// The process starts anew: it forgets its id, and what it waits for goes unanswered to nobody.
    Restart(usize),
    Sync(usize),
    Heartbeat(usize),
    Commit(usize),
    Leave(usize),
    Abandon(usize),
    Pass(u64),
    Stored(bool),
    /// An earlier write is reported once more.
    StoredLate(usize, bool),
    /// The broker starts anew from what is durable.
    Reload,
}

fn act() -> impl Strategy<Value = Act> {
    let who = 0..CLIENTS;
    prop_oneof![
        8 => (who.clone(), 0..3_u8).prop_map(|(who, topics)| Act::Join(who, topics)),
        2 => who.clone().prop_map(Act::Restart),
        8 => who.clone().prop_map(Act::Sync),
        2 => who.clone().prop_map(Act::Heartbeat),
        2 => who.clone().prop_map(Act::Commit),
        1 => who.clone().prop_map(Act::Leave),
        1 => who.prop_map(Act::Abandon),
        3 => prop_oneof![0..500_u64, 500..20_000_u64, Just(61_000)].prop_map(Act::Pass),
        5 => prop::bool::weighted(0.8).prop_map(Act::Stored),
        1 => (0..20_usize, any::<bool>()).prop_map(|(back, ok)| Act::StoredLate(back, ok)),
        1 => Just(Act::Reload),
    ]
}

const CLIENTS: usize = 6;

/// What a client knows.
#[derive(Clone, Debug, Default)]
struct Client {
    id: String,
    generation: i32,
    is_leader: bool,
    told: Vec<String>,
    waits: Option<Token>,
    /// Asks for its assignment next.
    is_sync_next: bool,
    assignment: Option<Bytes>,
}

struct Crowd {
    play: Play,
    clients: Vec<Client>,
    ids_drawn: u64,
    /// The greatest generation that anybody was told.
    greatest: i32,
    /// What the group is in, as far as was told.
    present: i32,
    /// Who was told to lead a generation, not counting those that are to skip it.
    leaders: BTreeMap<i32, String>,
    /// Who was given an assignment; the leader gives each a different one.
    holders: BTreeMap<Bytes, usize>,
    gifts: u64,
    /// What each member id has in a generation.
    assignments: BTreeMap<(i32, String), Bytes>,
    /// Generations whose assignments are durable.
    durable: BTreeSet<i32>,
    newest_durable: Option<Bytes>,
    /// Writes that were emitted before this are done or replaced.
    stores_done: usize,
    /// Writes before this were the business of a broker that is no more.
    life_began: usize,
    seen_answers: BTreeSet<Token>,
    abandoned: BTreeSet<Token>,
}

impl Crowd {
    fn new(delay: Duration) -> Self {
        let limits = GroupLimits { initial_rebalance_delay: delay, new_member_timeout: secs(60), ..limits() };
        Self {
            play: Play::new(limits),
            clients: vec![Client::default(); CLIENTS],
            ids_drawn: 0,
            greatest: 0,
            present: 0,
            leaders: BTreeMap::new(),
            holders: BTreeMap::new(),
            gifts: 0,
            assignments: BTreeMap::new(),
            durable: BTreeSet::new(),
            newest_durable: None,
            stores_done: 0,
            life_began: 0,
            seen_answers: BTreeSet::new(),
            abandoned: BTreeSet::new(),
        }
    }

    fn instance(who: usize) -> Option<String> {
        (who >= 3).then(|| format!("instance-{who}"))
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Join(who, topics) => self.join(who, topics),
            Act::Restart(who) => self.clients[who] = Client::default(),
            Act::Sync(who) => self.sync(who),
            Act::Heartbeat(who) => self.heartbeat(who),
            Act::Commit(who) => self.commit(who),
            Act::Leave(who) => self.leave(who),
            Act::Abandon(who) => {
                if let Some(token) = self.clients[who].waits.take() {
                    self.abandoned.insert(token);
                    self.play.abandon(token);
                }
            }
            Act::Pass(millis) => self.play.pass(Duration::from_millis(millis)),
            Act::Stored(ok) => self.stored(ok),
            Act::StoredLate(back, ok) => {
                let of_this_life = &self.play.stores[self.life_began..];
                if let Some((id, _)) = of_this_life.iter().rev().nth(1 + back) {
                    let id = *id;
                    let effects = self.play.group.stored(self.play.now, id, ok);
                    assert!(effects.is_empty(), "of a write that does not count any more");
                }
            }
            Act::Reload => self.reload(),
        }
        self.look();
    }

    fn join(&mut self, who: usize, topics: u8) {
        self.ids_drawn += 1;
        let topics = [&["a"][..], &["a", "b"], &["c"]][usize::from(topics)];
        let join = Join {
            member_id: self.clients[who].id.clone(),
            instance_id: Self::instance(who),
            // One old client that does not understand anything new.
            needs_known_id: who != 0,
            can_skip_assignment: who % 2 == 1,
            proposed_id: format!("{who}-{}", self.ids_drawn),
            ..subscribed(new(""), topics)
        };
        let token = self.play.join(join);
        self.clients[who].waits = Some(token);
        self.clients[who].is_sync_next = false;
    }

    fn sync(&mut self, who: usize) {
        let client = self.clients[who].clone();
        let told = if client.is_leader { client.told } else { Vec::new() };
        let assignments = told.into_iter().map(|id| {
            self.gifts += 1;
            (id, Bytes::from(format!("{} {}", client.generation, self.gifts)))
        });
        let sync = Sync {
            token: Token(0),
            member_id: client.id,
            instance_id: Self::instance(who),
            generation: client.generation,
            protocol_type: Some("consumer".to_owned()),
            protocol_name: Some("range".to_owned()),
            assignments: assignments.collect(),
        };
        let token = self.play.sync_with(sync);
        self.clients[who].waits = Some(token);
    }

    fn heartbeat(&mut self, who: usize) {
        let client = self.clients[who].clone();
        let instance = Self::instance(who);
        let member = MemberRef {
            member_id: &client.id,
            instance_id: instance.as_deref(),
            generation: client.generation,
        };
        let outcome = self.play.group.heartbeat(self.play.now, &member);
        match outcome {
            Ok(()) => assert_eq!(client.generation, self.present),
            Err(code) => self.clients[who].hear(code),
        }
    }

    fn commit(&mut self, who: usize) {
        let client = &self.clients[who];
        let instance = Self::instance(who);
        let member = MemberRef {
            member_id: &client.id,
            instance_id: instance.as_deref(),
            generation: client.generation,
        };
        if self.play.group.check_commit(self.play.now, &member).is_ok() {
            assert_eq!(client.generation, self.present, "a commit out of an old generation");
            assert_ne!(self.play.state(), GroupState::CompletingRebalance);
        }
    }

    fn leave(&mut self, who: usize) {
        let client = std::mem::take(&mut self.clients[who]);
        let instance = Self::instance(who);
        let leaver = Leaver { member_id: &client.id, instance_id: instance.as_deref() };
        let (codes, effects) = self.play.group.leave(self.play.now, &[leaver]);
        assert_eq!(codes.len(), 1);
        self.play.take(effects);
    }

    fn stored(&mut self, ok: bool) {
        if self.stores_done == self.play.stores.len() {
            return;
        }
        self.stores_done = self.play.stores.len();
        let (id, memory) = self.play.stores.last().expect("one is open").clone();
        if ok {
            let restored = self.restored(&memory);
            if restored.state() == GroupState::Stable {
                self.durable.insert(restored.generation());
            }
            self.newest_durable = Some(memory);
        }
        let effects = self.play.group.stored(self.play.now, id, ok);
        self.play.take(effects);
        let is_newest = self.stores_done == self.play.stores.len();
        if ok && is_newest && self.play.state() == GroupState::Stable {
            let memory = self.newest_durable.clone().expect("just now");
            assert_eq!(self.restored(&memory).describe(), self.play.group.describe());
        }
    }

    fn restored(&self, memory: &[u8]) -> Group {
        Group::restore(memory, self.play.group.limits, self.play.now).expect("its own memory")
    }

    fn reload(&mut self) {
        self.play.group = if let Some(memory) = self.newest_durable.clone() {
            self.restored(&memory)
        } else {
            // Nothing of it was ever durable: whoever was told anything is unknown now.
            self.greatest = 0;
            self.leaders.clear();
            self.holders.clear();
            Group::new(self.play.group.limits)
        };
        self.present = self.play.group.generation();
        self.stores_done = self.play.stores.len();
        self.life_began = self.stores_done;
        for client in &mut self.clients {
            self.abandoned.extend(client.waits.take());
        }
        // Ids that only the old life knew stay as they are: their owners find out.
    }

    /// Draws conclusions from new answers and looks at the group.
    fn look(&mut self) {
        let answered: Vec<_> =
            self.play.answers.iter().filter_map(|(token, answer)| Some((*token, answer.clone()?))).collect();
        for (token, answer) in answered {
            if !self.seen_answers.insert(token) {
                continue;
            }
            assert!(!self.abandoned.contains(&token), "nobody waits for {token:?}");
            let who = self.clients.iter().position(|client| client.waits == Some(token));
            if let Some(who) = who {
                self.clients[who].waits = None;
            }
            match answer {
                Answer::Joined(Ok(joined)) => self.see_joined(who, joined),
                Answer::Joined(Err(refused)) => {
                    if let Some(who) = who {
                        self.clients[who].hear(refused.code);
                        if refused.code == ErrorCode::MEMBER_ID_REQUIRED {
                            self.clients[who].id = refused.member_id;
                        }
                    }
                }
                Answer::Synced(Ok(synced)) => self.see_synced(who, synced.assignment),
                Answer::Synced(Err(code)) => {
                    if let Some(who) = who {
                        self.clients[who].hear(code);
                    }
                }
            }
        }
        self.look_at_group();
    }

    fn see_joined(&mut self, who: Option<usize>, joined: Joined) {
        if joined.generation != self.present {
            assert!(joined.generation > self.greatest, "generation {} was there before", joined.generation);
            self.present = joined.generation;
        }
        self.greatest = self.greatest.max(joined.generation);
        let is_leader = joined.member_id == joined.leader;
        if is_leader && !joined.skip_assignment {
            let leader = self.leaders.entry(joined.generation).or_insert_with(|| joined.member_id.clone());
            assert_eq!(*leader, joined.member_id, "two lead generation {}", joined.generation);
        }
        assert_eq!(is_leader, !joined.members.is_empty());
        let Some(who) = who else { return };
        self.clients[who] = Client {
            id: joined.member_id,
            generation: joined.generation,
            is_leader: is_leader && !joined.skip_assignment,
            told: joined.members.into_iter().map(|member| member.member_id).collect(),
            is_sync_next: true,
            ..Client::default()
        };
    }

    fn see_synced(&mut self, who: Option<usize>, assignment: Bytes) {
        let Some(who) = who else { return };
        let client = &mut self.clients[who];
        assert!(self.durable.contains(&client.generation), "assigned before it was durable");
        assert!(!assignment.is_empty(), "the leader left nobody out");
        assert!(
            assignment.starts_with(format!("{} ", client.generation).as_bytes()),
            "of another generation"
        );
        assert_eq!(*self.holders.entry(assignment.clone()).or_insert(who), who, "two have {assignment:?}");
        let key = (client.generation, client.id.clone());
        assert_eq!(*self.assignments.entry(key).or_insert_with(|| assignment.clone()), assignment);
        client.assignment = Some(assignment);
        client.is_sync_next = false;
    }

    fn look_at_group(&self) {
        let group = &self.play.group;
        let description = group.describe();
        if group.state() == GroupState::Stable {
            assert!(self.durable.contains(&group.generation()), "stable before it was durable");
        }
        let ids: BTreeSet<_> = description.members.iter().map(|member| &member.member_id).collect();
        assert_eq!(ids.len(), description.members.len());
        let is_anybody_waiting = self.play.answers.values().any(Option::is_none);
        if !description.members.is_empty() && !is_anybody_waiting {
            let limit = self.play.now + secs(60);
            assert!(
                group.next_deadline().is_some_and(|deadline| deadline <= limit),
                "a member without a session"
            );
        }
        if let Some((_, memory)) = self.play.stores.last() {
            let restored = self.restored(memory);
            assert!(restored.spent_generation >= restored.generation);
        }
    }

    /// Everybody does as it is told from now on, and writes succeed.
    fn calm_down(&mut self) {
        for round in 0..200 {
            self.stored(true);
            self.look();
            for who in 0..CLIENTS {
                let client = &self.clients[who];
                match (client.waits, &client.assignment) {
                    (Some(_), _) => continue,
                    (None, _) if client.is_sync_next => self.sync(who),
                    (None, None) => self.join(who, 0),
                    (None, Some(_)) => self.heartbeat(who),
                }
                self.look();
            }
            if self.is_settled() {
                return;
            }
            self.play.pass(if round % 2 == 0 { Duration::ZERO } else { secs(1) });
            self.look();
        }
        panic!("still {:?}, clients {:#?}", self.play.group, self.clients);
    }

    fn is_settled(&self) -> bool {
        let generation = self.play.group.generation();
        let has_all = |client: &Client| client.assignment.is_some() && client.generation == generation;
        self.play.state() == GroupState::Stable
            && self.play.members().len() == CLIENTS
            && self.clients.iter().all(has_all)
    }
}

impl Client {
    /// Does what Kafka's clients do after an error.
    fn hear(&mut self, code: ErrorCode) {
        self.assignment = None;
        self.is_sync_next = false;
        if code == ErrorCode::UNKNOWN_MEMBER_ID || code == ErrorCode::FENCED_INSTANCE_ID {
            *self = Self { waits: self.waits, ..Self::default() };
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_crowd_keeps_the_rules_and_settles_once_it_behaves(
        delay in prop_oneof![Just(Duration::ZERO), Just(secs(3))],
        acts in prop::collection::vec(act(), 0..150),
    ) {
        let mut crowd = Crowd::new(delay);
        for act in acts {
            crowd.act(act);
        }
        crowd.calm_down();
    }
}
