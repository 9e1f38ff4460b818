//! Who is let in, who waits for whom, who leads and by which protocol.

use super::*;

fn protocols(names: &[&str]) -> Vec<(String, Bytes)> {
    names.iter().map(|name| ((*name).to_owned(), Bytes::from(format!("of {name}")))).collect()
}

fn preferring(name: &str, names: &[&str]) -> Join {
    Join { protocols: protocols(names), ..new(name) }
}

#[test]
fn the_first_member_leads_and_is_told_of_all() {
    let mut play = Play::new(GroupLimits { initial_rebalance_delay: secs(3), ..limits() });
    let (a, b) = (play.join(new("a")), play.join(new("b")));
    play.pass(secs(6));
    let (a, b) = (play.joined(a), play.joined(b));
    assert_eq!((a.generation, b.generation), (1, 1));
    assert_eq!((a.leader.as_str(), b.leader.as_str()), ("a", "a"));
    assert_eq!(a.members.iter().map(|member| member.member_id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(a.members[0].metadata, subscription(&["t"]));
    assert!(b.members.is_empty() && !a.skip_assignment);
    assert_eq!((b.protocol_type.as_str(), b.protocol_name.as_str()), ("consumer", "range"));
}

#[test]
fn an_empty_group_waits_as_long_as_members_come_but_not_longer_than_they_allow() {
    let mut play = Play::new(GroupLimits { initial_rebalance_delay: secs(3), ..limits() });
    let impatient = |name| Join { rebalance_timeout: secs(7), ..new(name) };
    let a = play.join(impatient("a"));
    for name in ["b", "c", "d"] {
        play.pass(secs(2));
        play.join(impatient(name));
        assert!(play.waits(a));
    }
    play.pass(Duration::from_millis(999));
    assert!(play.waits(a));
    play.pass(Duration::from_millis(1));
    assert_eq!(play.joined(a).members.len(), 4);
}

#[test]
fn an_empty_group_that_nobody_else_joins_waits_once() {
    let mut play = Play::new(GroupLimits { initial_rebalance_delay: secs(3), ..limits() });
    let a = play.join(new("a"));
    play.pass(secs(3));
    assert_eq!(play.joined(a).generation, 1);
}

#[test]
fn a_second_member_waits_for_the_first_to_come_again() {
    let mut play = Play::stable(&["a"]);
    let generation = play.group.generation();
    let b = play.join(new("b"));
    assert!(play.waits(b));
    assert_eq!(play.heartbeat("a"), Err(ErrorCode::REBALANCE_IN_PROGRESS));
    let a = play.join(known("a"));
    assert_eq!(play.joined(a).generation, generation + 1);
    assert_eq!(play.joined(a).members.len(), 2);
    assert_eq!(play.joined(b).generation, generation + 1);
}

#[test]
fn members_that_do_not_come_again_in_time_are_removed() {
    let mut play = Play::stable(&["a", "b"]);
    let c = play.join(new("c"));
    for _ in 0..9 {
        play.pass(secs(3));
        // It heartbeats, but never joins.
        assert_eq!(play.heartbeat("a"), Err(ErrorCode::REBALANCE_IN_PROGRESS));
        let _ = play.heartbeat("b");
    }
    let b = play.join(known("b"));
    assert!(play.waits(c));
    play.pass(secs(3));
    assert_eq!(play.members(), ["b", "c"]);
    assert_eq!(play.joined(c).leader, "b", "who leads has to be there");
    assert_eq!(play.joined(b).members.len(), 2);
    assert_eq!(play.heartbeat("a"), Err(ErrorCode::UNKNOWN_MEMBER_ID));
}

#[test]
fn the_leader_stays_the_leader() {
    let mut play = Play::stable(&["a", "b"]);
    let c = play.join(new("c"));
    let b = play.join(known("b"));
    let a = play.join(known("a"));
    assert!([a, b, c].into_iter().all(|token| play.joined(token).leader == "a"));
}

#[test]
fn from_version_4_on_a_new_member_comes_again_with_its_id() {
    let mut play = Play::new(limits());
    let first = play.join(Join { needs_known_id: true, ..new("a") });
    assert_eq!(play.refused(first), ErrorCode::MEMBER_ID_REQUIRED);
    let Some(Answer::Joined(Err(JoinRefused { member_id, .. }))) = play.answer(first) else { panic!() };
    assert_eq!(member_id, "a");
    assert!(play.members().is_empty() && !play.group.is_empty());
    let second = play.join(Join { needs_known_id: true, ..known("a") });
    assert_eq!(play.joined(second).member_id, "a");
}

#[test]
fn an_id_that_was_given_out_is_waited_for_until_its_session_is_over() {
    let mut play = Play::stable(&["a"]);
    play.join(Join { needs_known_id: true, ..new("b") });
    assert_eq!(play.state(), GroupState::Stable, "an id alone is no member");
    let a = play.join(known("a"));
    assert!(play.waits(a));
    play.pass(ALMOST_SESSION);
    assert!(play.waits(a));
    play.pass(secs(1));
    assert_eq!(play.joined(a).members.len(), 1);
    let late = play.join(known("b"));
    assert_eq!(play.refused(late), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn an_unknown_id_is_refused() {
    let mut play = Play::stable(&["a"]);
    let token = play.join(known("b"));
    assert_eq!(play.refused(token), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(play.state(), GroupState::Stable);
}

#[test]
fn most_members_choose_the_protocol_among_those_of_all() {
    #[track_caller]
    fn check(members: &[&[&str]], expect: &str) {
        let mut play = Play::new(GroupLimits { initial_rebalance_delay: secs(3), ..limits() });
        let names = ["a", "b", "c"];
        let tokens: Vec<_> =
            names.iter().zip(members).map(|(name, members)| play.join(preferring(name, members))).collect();
        play.pass(secs(9));
        let leader = play.joined(tokens[0]);
        assert_eq!(leader.protocol_name, expect);
        assert!(leader.members.iter().all(|member| member.metadata == format!("of {expect}")));
    }
    check(&[&["x", "y"], &["y", "x"], &["y", "x"]], "y");
    check(&[&["x", "y"], &["x", "y"], &["y", "x"]], "x");
    check(&[&["z", "y"], &["z", "y"], &["y"]], "y");
    check(&[&["x", "x", "y"], &["y", "x", "x"], &["y", "x"]], "y");
}

#[test]
fn a_member_that_has_no_protocol_in_common_is_refused() {
    #[track_caller]
    fn check(join: Join, expect: Option<ErrorCode>) {
        let mut play = Play::stable(&["a"]);
        let token = play.join(join);
        match expect {
            Some(code) => assert_eq!(play.refused(token), code),
            None => assert!(play.waits(token)),
        }
        assert_eq!(play.state() == GroupState::Stable, expect.is_some());
    }
    let inconsistent = Some(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    check(preferring("b", &["sticky"]), inconsistent);
    check(preferring("b", &[]), inconsistent);
    check(Join { protocol_type: "connect".to_owned(), ..new("b") }, inconsistent);
    check(Join { protocol_type: String::new(), ..new("b") }, inconsistent);
    check(Join { needs_known_id: true, ..preferring("b", &["sticky"]) }, inconsistent);
    check(preferring("b", &["sticky", "range"]), None);
    // The only member may change what nobody else depends on, but not what it is.
    let mut play = Play::stable(&["a"]);
    let changed = play.join(Join { protocols: protocols(&["x"]), ..known("a") });
    assert_eq!(play.joined(changed).protocol_name, "x");
    let changed = play.join(Join { protocol_type: "connect".to_owned(), ..known("a") });
    assert_eq!(play.refused(changed), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn the_last_common_protocol_cannot_be_dropped() {
    let mut play = Play::stable(&["a", "b"]);
    let b = play.join(Join { protocols: protocols(&["sticky"]), ..known("b") });
    assert_eq!(play.refused(b), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn a_follower_that_did_not_change_hears_the_present_generation_again() {
    let mut play = Play::stable(&["a", "b"]);
    let generation = play.group.generation();
    let b = play.join(known("b"));
    assert_eq!(play.joined(b).generation, generation);
    assert!(play.joined(b).members.is_empty());
    assert_eq!(play.state(), GroupState::Stable);
    let sync = play.sync("b");
    assert_eq!(play.assignment(sync), "b");
}

#[test]
fn a_follower_with_another_subscription_starts_a_rebalance() {
    let mut play = Play::stable(&["a", "b"]);
    let b = play.join(subscribed(known("b"), &["t", "u"]));
    assert!(play.waits(b));
    assert_eq!(play.state(), GroupState::PreparingRebalance);
    let a = play.join(known("a"));
    assert_eq!(play.joined(a).members[1].metadata, subscription(&["t", "u"]));
}

#[test]
fn the_leader_that_comes_again_starts_a_rebalance() {
    let mut play = Play::stable(&["a", "b"]);
    let a = play.join(known("a"));
    assert!(play.waits(a));
    assert_eq!(play.state(), GroupState::PreparingRebalance);
}

#[test]
fn who_did_not_see_the_answer_hears_it_again_before_the_assignment() {
    let mut play = Play::stable(&["a", "b"]);
    play.join(known("a"));
    play.join(known("b"));
    assert_eq!(play.state(), GroupState::CompletingRebalance);
    let generation = play.group.generation();
    let (a, b) = (play.join(known("a")), play.join(known("b")));
    assert_eq!((play.joined(a).generation, play.joined(b).generation), (generation, generation));
    assert_eq!(play.joined(a).members.len(), 2);
    let changed = play.join(subscribed(known("b"), &["u"]));
    assert!(play.waits(changed));
    assert_eq!(play.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_join_replaces_the_one_of_the_same_member_that_waits() {
    let mut play = Play::stable(&["a", "b"]);
    let first = play.join(known("a"));
    let second = play.join(known("a"));
    assert_eq!(play.refused(first), ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(play.waits(second));
    play.join(known("b"));
    assert_eq!(play.joined(second).members.len(), 2);
}

#[test]
fn a_protocol_that_is_named_twice_counts_once() {
    let mut play = Play::new(GroupLimits { initial_rebalance_delay: secs(3), ..limits() });
    play.join(preferring("a", &["x", "x", "y"]));
    let b = play.join(preferring("b", &["y"]));
    let c = play.join(preferring("c", &["x"]));
    assert!(play.waits(b));
    assert_eq!(play.refused(c), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let mut play = Play::new(GroupLimits { initial_rebalance_delay: secs(3), ..limits() });
    play.join(preferring("a", &["x", "x"]));
    let b = play.join(preferring("b", &["x"]));
    assert!(play.waits(b));
}

#[test]
fn a_follower_that_comes_again_costs_a_write_only_if_a_timeout_changed() {
    #[track_caller]
    fn check(session_timeout: Duration, rebalance_timeout: Duration, expect: usize) {
        let mut play = Play::stable(&["a", "b"]);
        let writes = play.stores.len();
        let b = play.join(Join { session_timeout, rebalance_timeout, ..known("b") });
        assert_eq!(play.joined(b).generation, play.group.generation());
        assert_eq!(play.stores.len(), writes + expect);
    }
    check(SESSION, REBALANCE, 0);
    check(SESSION + secs(1), REBALANCE, 1);
    check(SESSION, REBALANCE + secs(1), 1);
}

#[test]
fn a_timeout_that_cannot_be_remembered_disturbs_nobody() {
    let mut play = Play::stable(&["a", "b"]);
    play.join(Join { session_timeout: SESSION + secs(1), ..known("b") });
    play.stored(false);
    assert_eq!(play.state(), GroupState::Stable);
}
