//! Members that fall silent, and peers that are lost while they wait.

use super::*;

#[test]
fn a_member_that_falls_silent_is_removed_and_the_others_rebalance() {
    let mut play = Play::stable(&["a", "b"]);
    play.pass(ALMOST_SESSION);
    assert_eq!(play.heartbeat("b"), Ok(()));
    play.pass(secs(1));
    assert_eq!(play.members(), ["b"]);
    assert_eq!(play.heartbeat("b"), Err(ErrorCode::REBALANCE_IN_PROGRESS));
    assert_eq!(play.heartbeat("a"), Err(ErrorCode::UNKNOWN_MEMBER_ID));
    let b = play.join(known("b"));
    assert_eq!(play.joined(b).leader, "b");
}

#[test]
fn a_group_that_loses_everybody_is_empty_and_remembers_a_new_generation() {
    let mut play = Play::stable(&["a", "b"]);
    let (generation, writes) = (play.group.generation(), play.stores.len());
    play.pass(secs(60));
    assert_eq!(play.state(), GroupState::Empty);
    assert_eq!(play.group.generation(), generation + 1);
    assert!(play.stores.len() > writes && play.group.is_empty());
    assert_eq!(play.group.next_deadline(), None);
    assert_eq!(play.group.protocol_type(), "consumer");
}

#[test]
fn everything_that_a_member_asks_renews_its_session() {
    let mut play = Play::stable(&["a", "b"]);
    let generation = play.group.generation();
    for ask in 0..12 {
        play.pass(ALMOST_SESSION);
        assert_eq!(play.heartbeat("a"), Ok(()));
        let member = MemberRef { member_id: "b", instance_id: None, generation };
        match ask % 4 {
            0 => assert_eq!(play.group.check_commit(play.now, &member), Ok(())),
            1 => drop(play.sync("b")),
            2 => drop(play.join(known("b"))),
            _ => assert_eq!(play.group.heartbeat(play.now, &member), Ok(())),
        }
    }
    assert_eq!(play.members(), ["a", "b"]);
}

#[test]
fn heartbeats_of_another_generation_are_refused() {
    let mut play = Play::stable(&["a"]);
    let generation = play.group.generation() - 1;
    let old = MemberRef { member_id: "a", instance_id: None, generation };
    assert_eq!(play.group.heartbeat(play.now, &old), Err(ErrorCode::ILLEGAL_GENERATION));
    play.pass(ALMOST_SESSION);
    let _ = play.group.heartbeat(play.now, &old);
    play.pass(secs(1));
    assert!(play.members().is_empty(), "and renew nothing");
}

#[test]
fn members_that_wait_for_a_rebalance_need_no_heartbeats() {
    let mut play = Play::stable(&["a", "b"]);
    let patient = Join { rebalance_timeout: secs(100), ..known("a") };
    let a = play.join(patient);
    play.pass(ALMOST_SESSION);
    let _ = play.heartbeat("b");
    play.pass(ALMOST_SESSION);
    assert!(play.waits(a));
    assert_eq!(play.members(), ["a", "b"]);
    let sync = play.join(known("b"));
    assert_eq!(play.joined(sync).leader, "a");
    // The same goes for who waits for its assignment.
    let b = play.sync("b");
    for _ in 0..3 {
        play.pass(ALMOST_SESSION);
        let _ = play.heartbeat("a");
    }
    assert!(play.waits(b));
    assert_eq!(play.members(), ["a", "b"]);
}

#[test]
fn a_new_member_waits_only_so_long() {
    let mut play = Play::new(GroupLimits { new_member_timeout: secs(20), ..limits() });
    play.join(new("a"));
    play.settle(&["a"]);
    let b = play.join(new("b"));
    for _ in 0..19 {
        play.pass(secs(1));
        let _ = play.heartbeat("a");
        assert_eq!(play.heartbeat("b"), Err(ErrorCode::REBALANCE_IN_PROGRESS), "which buys it no time");
    }
    assert!(play.waits(b));
    play.pass(secs(1));
    assert_eq!(play.refused(b), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(play.members(), ["a"]);
}

#[test]
fn lost_peers_that_never_learned_their_id_leave_nothing_behind() {
    let mut play = Play::stable(&["a"]);
    for retry in 0..100 {
        let token = play.join(new(&format!("b{retry}")));
        play.abandon(token);
        assert_eq!(play.members(), ["a"]);
    }
    let a = play.join(known("a"));
    assert_eq!(play.joined(a).members.len(), 1);
}

#[test]
fn a_lost_peer_that_knows_its_id_may_come_back() {
    let mut play = Play::stable(&["a"]);
    play.join(Join { needs_known_id: true, ..new("b") });
    let b = play.join(known("b"));
    play.abandon(b);
    assert_eq!(play.members(), ["a", "b"]);
    let a = play.join(known("a"));
    assert!(play.waits(a), "for the one that may come back");
    play.pass(secs(5));
    let b = play.join(known("b"));
    assert_eq!(play.joined(b).generation, play.joined(a).generation);
}

#[test]
fn a_lost_peer_that_does_not_come_back_is_removed_with_its_session() {
    let mut play = Play::stable(&["a", "b"]);
    let b = play.join(subscribed(known("b"), &["u"]));
    play.abandon(b);
    let a = play.join(known("a"));
    play.pass(ALMOST_SESSION);
    assert!(play.waits(a));
    play.pass(secs(1));
    assert_eq!(play.joined(a).members.len(), 1);
}

#[test]
fn an_abandoned_sync_is_not_answered_but_its_member_stays() {
    let mut play = Play::stable(&["a", "b"]);
    play.rejoin("a");
    play.rejoin("b");
    let b = play.sync("b");
    play.abandon(b);
    play.sync_leader("a", &["a", "b"]);
    play.durable();
    assert!(play.waits(b));
    let again = play.sync("b");
    assert_eq!(play.assignment(again), "b");
    play.pass(SESSION);
    assert!(play.members().is_empty(), "its session counts again");
}

#[test]
fn an_empty_group_whose_first_members_are_lost_forgets_them() {
    let mut play = Play::new(GroupLimits { initial_rebalance_delay: secs(3), ..limits() });
    let a = play.join(new("a"));
    play.abandon(a);
    play.pass(secs(60));
    assert_eq!((play.state(), play.group.generation()), (GroupState::Empty, 0));
    assert!(play.stores.is_empty(), "nothing happened that is worth a write");
}

#[test]
fn a_group_whose_only_member_is_lost_before_its_generation_is_covered_is_empty_at_once() {
    let mut play = Play::stable(&["a"]);
    play.leave("a");
    let memory = &play.stores.last().expect("remembered").1;
    play.group = Group::restore(memory, limits(), play.now).expect("its own");
    let b = play.join(new("b"));
    assert!(play.waits(b));
    play.abandon(b);
    assert_eq!(play.state(), GroupState::Empty);
}

#[test]
fn who_was_answered_before_waits_longer_than_a_new_member_may() {
    #[track_caller]
    fn check(is_restarted: bool) {
        let limits = GroupLimits { new_member_timeout: secs(20), ..limits() };
        let mut play = Play::new(limits);
        play.join(new("a"));
        play.join(new("b"));
        play.settle(&["a", "b"]);
        if is_restarted {
            let memory = &play.stores.last().expect("remembered").1;
            play.group = Group::restore(memory, limits, play.now).expect("its own");
        }
        let patient = Join { rebalance_timeout: secs(100), ..subscribed(known("b"), &["u"]) };
        let b = play.join(patient);
        for _ in 0..40 {
            play.pass(secs(1));
            let _ = play.heartbeat("a");
        }
        assert!(play.waits(b));
        assert_eq!(play.members(), ["a", "b"]);
    }
    check(false);
    check(true);
}
