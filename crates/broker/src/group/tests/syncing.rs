//! Assignments reach everybody once they are durable.

use super::*;

/// All have joined; nobody has synced.
#[track_caller]
fn completing() -> Play {
    let mut play = Play::stable(&["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        play.rejoin(name);
    }
    assert_eq!(play.state(), GroupState::CompletingRebalance);
    play
}

#[test]
fn every_member_gets_what_the_leader_gave_it() {
    let mut play = completing();
    let b = play.sync("b");
    let a = play.sync_leader("a", &["a", "b", "stranger"]);
    assert!(play.waits(a) && play.waits(b), "not durable yet");
    play.durable();
    assert_eq!(play.state(), GroupState::Stable);
    assert_eq!(play.assignment(a), "a");
    assert_eq!(play.assignment(b), "b");
    let c = play.sync("c");
    assert_eq!(play.assignment(c), "", "the leader left it out");
    let Some(Answer::Synced(Ok(synced))) = play.answer(c) else { panic!() };
    assert_eq!((synced.protocol_type.as_str(), synced.protocol_name.as_str()), ("consumer", "range"));
}

#[test]
fn only_the_leader_assigns() {
    let mut play = completing();
    let writes = play.stores.len();
    let b = play.sync_leader("b", &["a", "b", "c"]);
    assert!(play.waits(b));
    assert_eq!(play.stores.len(), writes);
}

#[test]
fn assignments_that_come_twice_count_once() {
    let mut play = completing();
    let first = play.sync_leader("a", &["a", "b"]);
    let writes = play.stores.len();
    let second = play.sync_leader("a", &["c"]);
    assert_eq!(play.refused(first), ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(play.stores.len(), writes);
    play.durable();
    assert_eq!(play.assignment(second), "a");
}

#[test]
fn a_sync_must_fit_the_group() {
    #[track_caller]
    fn check(change: impl FnOnce(&mut Sync), expect: ErrorCode) {
        let mut play = completing();
        let mut sync = Sync {
            token: Token(0),
            member_id: "b".to_owned(),
            instance_id: None,
            generation: play.group.generation(),
            protocol_type: Some("consumer".to_owned()),
            protocol_name: Some("range".to_owned()),
            assignments: Vec::new(),
        };
        let accepted = play.sync_with(sync.clone());
        assert!(play.waits(accepted));
        change(&mut sync);
        let token = play.sync_with(sync);
        assert_eq!(play.refused(token), expect);
        assert!(play.waits(accepted));
    }
    check(|sync| sync.member_id = "z".to_owned(), ErrorCode::UNKNOWN_MEMBER_ID);
    check(|sync| sync.instance_id = Some("z".to_owned()), ErrorCode::UNKNOWN_MEMBER_ID);
    check(|sync| sync.generation -= 1, ErrorCode::ILLEGAL_GENERATION);
    check(|sync| sync.generation += 1, ErrorCode::ILLEGAL_GENERATION);
    check(|sync| sync.protocol_type = Some("connect".to_owned()), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    check(|sync| sync.protocol_name = Some("sticky".to_owned()), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn a_rebalance_sends_back_who_waits_for_an_assignment() {
    let mut play = completing();
    let b = play.sync("b");
    play.join(new("d"));
    assert_eq!(play.refused(b), ErrorCode::REBALANCE_IN_PROGRESS);
    let late = play.sync("c");
    assert_eq!(play.refused(late), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn assignments_of_a_generation_that_is_over_do_not_make_the_group_stable() {
    let mut play = completing();
    let a = play.sync_leader("a", &["a"]);
    let old = play.stores.last().expect("the assignment").0;
    play.join(new("d"));
    assert_eq!(play.refused(a), ErrorCode::REBALANCE_IN_PROGRESS);
    let effects = play.group.stored(play.now, old, true);
    assert!(effects.is_empty());
    assert_eq!(play.state(), GroupState::PreparingRebalance);
    for name in ["a", "b", "c"] {
        play.rejoin(name);
    }
    let effects = play.group.stored(play.now, old, true);
    assert!(effects.is_empty());
    assert_eq!(play.state(), GroupState::CompletingRebalance);
    // Nor do they stand for those of the present generation.
    let a = play.sync_leader("a", &["a"]);
    let effects = play.group.stored(play.now, old, true);
    assert!(effects.is_empty());
    assert!(play.waits(a));
    play.durable();
    assert_eq!(play.assignment(a), "a");
}

#[test]
fn assignments_that_are_durable_only_in_the_next_generation_do_not_make_the_group_stable() {
    let mut play = completing();
    play.sync_leader("a", &["a"]);
    play.join(new("d"));
    for name in ["a", "b", "c"] {
        play.rejoin(name);
    }
    let b = play.sync("b");
    play.durable();
    assert!(play.waits(b));
    assert_eq!(play.state(), GroupState::CompletingRebalance);
}

#[test]
fn assignments_that_cannot_be_remembered_are_not_given_out() {
    let mut play = completing();
    let (a, b) = (play.sync_leader("a", &["a", "b"]), play.sync("b"));
    play.stored(false);
    assert_eq!(play.refused(a), ErrorCode::COORDINATOR_NOT_AVAILABLE);
    assert_eq!(play.refused(b), ErrorCode::COORDINATOR_NOT_AVAILABLE);
    assert_eq!(play.state(), GroupState::PreparingRebalance);
    play.settle(&["a", "b", "c"]);
}

#[test]
fn members_that_never_ask_for_their_assignment_are_removed() {
    #[track_caller]
    fn check(has_leader_synced: bool, expect: &[&str]) {
        let mut play = completing();
        play.sync("b");
        if has_leader_synced {
            play.sync_leader("a", &["a", "b", "c"]);
            play.durable();
        }
        for _ in 0..30 {
            play.pass(secs(1));
            for name in ["a", "b", "c"] {
                let _ = play.heartbeat(name);
            }
        }
        assert_eq!(play.members(), expect);
        assert_eq!(play.state(), GroupState::PreparingRebalance);
    }
    check(true, &["a", "b"]);
    check(false, &["b"]);
}

#[test]
fn who_has_its_assignment_is_left_alone_when_the_time_to_ask_is_over() {
    let mut play = Play::stable(&["a", "b"]);
    for _ in 0..40 {
        play.pass(secs(1));
        assert_eq!((play.heartbeat("a"), play.heartbeat("b")), (Ok(()), Ok(())));
    }
    assert_eq!(play.state(), GroupState::Stable);
}
