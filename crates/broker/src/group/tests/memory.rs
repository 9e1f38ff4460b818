//! What survives a restart.

use super::*;

/// Where the greatest generation stands that may be given out before the next write.
const SPENT: std::ops::Range<usize> = 6..10;

fn restored(play: &Play) -> Group {
    let memory = &play.stores.last().expect("something is remembered").1;
    Group::restore(memory, limits(), play.now).expect("its own memory")
}

/// Another rebalance of `a` and `b`, without assignments; the Join of `b`.
fn rebalance(play: &mut Play, round: usize) -> Token {
    play.join(subscribed(known("a"), &[&format!("t{round}")]));
    play.rejoin("b")
}

#[test]
fn a_stable_group_goes_on_after_a_restart() {
    let mut play = Play::new(limits());
    play.join(subscribed(new("a"), &["t", "u"]));
    play.join(Join { session_timeout: secs(20), ..fixed("S", "s") });
    play.settle(&["a", "s"]);
    let (before, generation) = (play.group.describe(), play.group.generation());
    play.group = restored(&play);
    assert_eq!(play.group.describe(), before);
    assert_eq!((before.members[0].assignment.as_ref(), before.protocol_name.as_str()), (&b"a"[..], "range"));
    assert_eq!(play.heartbeat("a"), Ok(()));
    let s = MemberRef { member_id: "s", instance_id: Some("S"), generation };
    assert_eq!(play.group.check_commit(play.now, &s), Ok(()));
    let sync = play.sync("s");
    assert_eq!(play.assignment(sync), "s");
    assert_eq!(play.group.subscribed_topics(), Some(["t".to_owned(), "u".to_owned()].into()));
    play.pass(SESSION);
    assert_eq!(play.members(), ["s"], "sessions begin anew, as long as they were");
}

#[test]
fn a_generation_is_not_given_out_again_after_a_restart() {
    let mut play = Play::stable(&["a", "b"]);
    let remembered = play.group.generation();
    let memory = play.stores.last().expect("it was stable").1.clone();
    let mut greatest = remembered;
    for round in 0..5 {
        // Nothing of these is remembered.
        let b = rebalance(&mut play, round);
        greatest = play.joined(b).generation;
    }
    assert_eq!(greatest, remembered + 5);
    play.group = Group::restore(&memory, limits(), play.now).expect("its own");
    assert_eq!(play.group.generation(), remembered);
    play.rejoin("a");
    let b = play.rejoin("b");
    // Nothing is given out that the next restart does not know of.
    assert!(play.waits(b));
    play.durable();
    assert!(play.joined(b).generation > greatest);
}

#[test]
fn generations_without_assignments_are_covered_by_writes_in_time() {
    let mut play = Play::stable(&["a", "b"]);
    for round in 0..100 {
        let b = rebalance(&mut play, round);
        assert_eq!(play.joined(b).generation, play.group.generation());
        play.durable();
        let memory = &play.stores.last().expect("some").1;
        let restored = Group::restore(memory, limits(), play.now).expect("its own");
        assert!(restored.spent_generation >= play.group.generation());
    }
}

#[test]
fn a_generation_that_cannot_be_covered_is_not_given_out() {
    let mut play = Play::stable(&["a", "b"]);
    let (remembered, writes) = (play.group.generation(), play.stores.len());
    let tokens: Vec<_> = (0..30).map(|round| rebalance(&mut play, round)).collect();
    let greatest = play.group.generation();
    assert_eq!(greatest, remembered + GENERATIONS_AHEAD);
    assert_eq!(play.stores.len(), writes + 1, "a write that is under way is not begun again");
    let waiting = tokens[29];
    assert!(play.waits(waiting));
    play.stored(false);
    assert!(play.waits(waiting));
    let writes = play.stores.len();
    play.pass(secs(2));
    assert!(play.stores.len() > writes, "it is tried again");
    assert!(play.waits(waiting));
    play.durable();
    assert_eq!(play.joined(waiting).generation, greatest + 1);
}

#[test]
fn a_group_that_was_remembered_in_a_rebalance_is_in_one_after_a_restart() {
    let mut play = Play::stable(&["a", "b"]);
    let memory = play.stores.last().expect("it was stable").1.clone();
    play.group = Group::restore(&memory, limits(), play.now).expect("its own");
    play.rejoin("a");
    assert_eq!(restored(&play).describe(), play.group.describe());
    play.group = restored(&play);
    play.pass(ALMOST_SESSION);
    assert_eq!(play.members(), ["a", "b"], "they have time to come again");
    assert_eq!(play.heartbeat("b"), Err(ErrorCode::REBALANCE_IN_PROGRESS));
    let (a, b) = (play.rejoin("a"), play.rejoin("b"));
    play.durable();
    assert_eq!(play.joined(a).members.len(), 2);
    assert_eq!(play.joined(b).leader, "a");
}

#[test]
fn damaged_memory_is_refused_wherever_it_is_cut_and_never_panics() {
    let mut play = Play::new(limits());
    play.join(new("a"));
    play.join(fixed("S", "s"));
    play.settle(&["a", "s"]);
    let memory = play.stores.last().expect("it was stable").1.to_vec();
    for len in 0..memory.len() {
        assert!(Group::restore(&memory[..len], limits(), play.now).is_err(), "cut at {len}");
        for value in [0, 1, 2, 0x7f, 0xff] {
            let mut changed = memory.clone();
            changed[len] = value;
            let _ = Group::restore(&changed, limits(), play.now);
        }
    }
    let longer = [&memory[..], &[0]].concat();
    assert!(Group::restore(&longer, limits(), play.now).is_err());
}

#[test]
fn what_a_group_shows_depends_on_its_state() {
    let mut play = Play::stable(&["a", "b"]);
    let stable = play.group.describe();
    assert_eq!((stable.state.name(), stable.protocol_name.as_str()), ("Stable", "range"));
    assert_eq!(stable.members[1].metadata, subscription(&["t"]));
    assert_eq!(stable.members[1].assignment, "b");
    assert_eq!(
        (stable.members[1].client_id.as_str(), stable.members[1].client_host.as_str()),
        ("client", "/127.0.0.1")
    );
    for (who, state) in [("a", "PreparingRebalance"), ("b", "CompletingRebalance")] {
        play.rejoin(who);
        let description = play.group.describe();
        assert_eq!((description.state.name(), description.protocol_type.as_str()), (state, "consumer"));
        assert_eq!(description.protocol_name, "");
        assert!(description.members.iter().all(|it| it.metadata.is_empty() && it.assignment.is_empty()));
    }
}

#[test]
fn subscriptions_are_known_of_consumers_only_and_read_with_care() {
    #[track_caller]
    fn check(protocol_type: &str, metadata: &[u8], expect: Option<&[&str]>) {
        let mut play = Play::new(limits());
        let protocols = vec![("range".to_owned(), Bytes::copy_from_slice(metadata))];
        play.join(Join { protocol_type: protocol_type.to_owned(), protocols, ..new("a") });
        let expect = expect.map(|topics| topics.iter().map(|topic| (*topic).to_owned()).collect());
        assert_eq!(play.group.subscribed_topics(), expect);
    }
    check("consumer", &subscription(&["t", "u", "t"]), Some(&["t", "u"]));
    check("consumer", &subscription(&[]), Some(&[]));
    check("connect", &subscription(&["t"]), None);
    check("consumer", &[], None);
    check("consumer", &[0, 1, 0x7f, 0xff, 0xff, 0xff], None);
    check("consumer", &[0, 1, 0xff, 0xff, 0xff, 0xff], None);
    check("consumer", &[0, 1, 0, 0, 0, 1, 0xff, 0xff], None);
    check("consumer", &[0, 1, 0, 0, 0, 1, 0xff, 0xff, b't'], None);
    check("consumer", &[0, 1, 0, 0, 0, 1, 0, 2, b't'], None);
    check("consumer", &[0, 1, 0, 0, 0, 1, 0, 1, 0xff], None);
    check("consumer", &[0xff, 0xff, 0, 0, 0, 0], None);
    let mut play = Play::stable(&["a"]);
    play.join(subscribed(new("b"), &["v"]));
    assert_eq!(play.group.subscribed_topics(), Some(["t".to_owned(), "v".to_owned()].into()));
    play.leave("a");
    play.leave("b");
    assert_eq!(play.group.subscribed_topics(), Some(BTreeSet::new()));
}

#[test]
fn memory_that_contradicts_itself_is_refused() {
    #[track_caller]
    fn check(change: impl FnOnce(&mut Vec<u8>)) {
        let mut play = Play::new(limits());
        play.join(fixed("fixed-1", "member-1"));
        play.join(fixed("fixed-2", "member-2"));
        play.settle(&["member-1", "member-2"]);
        let mut memory = play.stores.last().expect("it was stable").1.to_vec();
        assert!(Group::restore(&memory, limits(), play.now).is_ok());
        change(&mut memory);
        assert!(Group::restore(&memory, limits(), play.now).is_err());
    }
    fn replace(memory: &mut [u8], from: &[u8], to: &[u8]) {
        let places: Vec<_> =
            (0..=memory.len() - from.len()).filter(|at| memory[*at..].starts_with(from)).collect();
        assert!(!places.is_empty());
        for at in places {
            memory[at..at + to.len()].copy_from_slice(to);
        }
    }
    const VERSION: usize = 0;
    const STATE: usize = 1;
    const LEADER: usize = 34;
    check(|memory| memory[VERSION] += 1);
    check(|memory| memory[STATE] = 0);
    check(|memory| memory[SPENT].fill(0));
    check(|memory| memory[LEADER] = 9);
    check(|memory| (memory[STATE], memory[LEADER]) = (0, 9));
    check(|memory| replace(memory, b"member-2", b"member-1"));
    check(|memory| replace(memory, b"fixed-2", b"fixed-1"));
    check(|memory| replace(memory, b"member-2", &[0xff; 8]));
}

#[test]
fn no_generation_is_given_out_beyond_what_was_covered_however_little_that_was() {
    let mut play = Play::stable(&["a", "b"]);
    let generation = play.group.generation();
    let mut memory = play.stores.last().expect("it was stable").1.to_vec();
    memory[SPENT].copy_from_slice(&generation.to_be_bytes());
    play.group = Group::restore(&memory, limits(), play.now).expect("it covers what was given out");
    play.rejoin("a");
    let b = play.rejoin("b");
    assert!(play.waits(b));
    play.durable();
    assert_eq!(play.joined(b).generation, generation + 1);
}

#[test]
fn the_leader_leads_after_a_restart_too() {
    let mut play = Play::new(limits());
    play.join(Join { session_timeout: secs(100), ..fixed("S", "s") });
    play.join(new("b"));
    play.settle(&["s", "b"]);
    let b = play.join(subscribed(known("b"), &["u"]));
    play.pass(REBALANCE);
    assert_eq!(play.joined(b).leader, "b", "the first member is away");
    play.sync_leader("b", &["s", "b"]);
    play.durable();
    play.group = restored(&play);
    let (b, s) = (play.rejoin("b"), play.join(subscribed(fixed("S", "s2"), &["u"])));
    play.durable();
    assert_eq!((play.joined(b).leader, play.joined(s).leader), ("b".to_owned(), "b".to_owned()));
}

#[test]
fn a_group_that_everybody_left_while_an_id_was_given_out_is_empty_after_a_restart() {
    let mut play = Play::stable(&["a"]);
    play.group = restored(&play);
    play.join(Join { needs_known_id: true, ..new("b") });
    let writes = play.stores.len();
    play.leave("a");
    assert_eq!((play.state(), play.members().len()), (GroupState::PreparingRebalance, 0));
    assert!(play.stores.len() > writes, "the next generations are covered");
    assert_eq!(restored(&play).state(), GroupState::Empty);
}

/// All have joined, and a write is under way that only covers generations.
#[track_caller]
fn completing_while_generations_are_covered() -> Play {
    let mut play = Play::stable(&["a", "b"]);
    let writes = play.stores.len();
    for round in 0..GENERATIONS_AHEAD.unsigned_abs() as usize {
        if play.stores.len() == writes {
            rebalance(&mut play, round);
        }
    }
    assert_eq!((play.stores.len(), play.state()), (writes + 1, GroupState::CompletingRebalance));
    play
}

#[test]
fn assignments_do_not_wait_for_a_write_that_only_covers_generations() {
    let mut play = completing_while_generations_are_covered();
    let a = play.sync_leader("a", &["a", "b"]);
    play.durable();
    assert_eq!(play.assignment(a), "a");
}

#[test]
fn a_write_that_only_covers_generations_does_not_make_the_group_stable() {
    #[track_caller]
    fn check(ok: bool) {
        let mut play = completing_while_generations_are_covered();
        let b = play.sync("b");
        play.stored(ok);
        assert!(play.waits(b));
        assert_eq!(play.state(), GroupState::CompletingRebalance);
    }
    check(true);
    check(false);
}

#[test]
fn a_member_that_does_not_support_the_chosen_protocol_subscribes_with_its_first() {
    let named = |name: &str, topics: &[&str]| (name.to_owned(), subscription(topics));
    let mut play = Play::new(limits());
    play.join(Join { protocols: vec![named("range", &["t"]), named("sticky", &["t"])], ..new("a") });
    play.settle(&["a"]);
    play.join(Join { protocols: vec![named("sticky", &["v"])], ..new("b") });
    assert_eq!(play.group.subscribed_topics(), Some(["t".to_owned(), "v".to_owned()].into()));
}

#[test]
fn a_group_costs_what_its_members_sent_and_something_for_each_member_and_id() {
    let mut play = Play::new(limits());
    assert_eq!(play.group.cost(), 0);
    assert!(play.group.is_empty());
    play.join(Join { needs_known_id: true, ..new("a") });
    assert_eq!(play.group.cost(), "a".len() + MEMBER_COST);
    assert!(!play.group.is_empty());
    play.join(known("a"));
    assert_eq!(play.group.cost(), play.group.roster.len() + MEMBER_COST);
    assert!(play.group.cost() > MEMBER_COST + subscription(&["t"]).len());
    assert!(!play.group.is_empty());
}
