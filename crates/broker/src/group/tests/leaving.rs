//! Members that leave.

use super::*;

#[test]
fn a_member_that_leaves_starts_a_rebalance() {
    let mut play = Play::stable(&["a", "b"]);
    play.leave("a");
    assert_eq!(play.members(), ["b"]);
    assert_eq!(play.heartbeat("b"), Err(ErrorCode::REBALANCE_IN_PROGRESS));
    let b = play.rejoin("b");
    assert_eq!(play.joined(b).leader, "b");
}

#[test]
fn a_rebalance_does_not_wait_for_who_left() {
    let mut play = Play::stable(&["a", "b"]);
    let a = play.rejoin("a");
    assert!(play.waits(a));
    play.leave("b");
    assert_eq!(play.joined(a).members.len(), 1);
}

#[test]
fn a_rebalance_does_not_wait_for_an_id_that_was_given_back() {
    let mut play = Play::stable(&["a"]);
    play.join(Join { needs_known_id: true, ..new("b") });
    let a = play.rejoin("a");
    assert!(play.waits(a));
    play.leave("b");
    assert_eq!(play.joined(a).members.len(), 1);
}

#[test]
fn giving_an_id_back_disturbs_nobody() {
    let mut play = Play::stable(&["a"]);
    play.join(Join { needs_known_id: true, ..new("b") });
    play.leave("b");
    assert_eq!(play.state(), GroupState::Stable);
    assert_eq!(play.heartbeat("a"), Ok(()));
}

#[test]
fn who_waits_and_leaves_is_answered() {
    let mut play = Play::stable(&["a", "b", "c"]);
    let b = play.join(subscribed(known("b"), &["u"]));
    play.leave("b");
    assert_eq!(play.refused(b), ErrorCode::UNKNOWN_MEMBER_ID);
    play.rejoin("a");
    play.rejoin("c");
    let c = play.sync("c");
    play.leave("c");
    assert_eq!(play.refused(c), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn each_of_several_that_leave_has_its_own_code() {
    let mut play = Play::stable(&["a", "b", "c"]);
    let leaver = |member_id| Leaver { member_id, instance_id: None };
    let (codes, effects) = play.group.leave(play.now, &[leaver("a"), leaver("x"), leaver("c"), leaver("a")]);
    play.take(effects);
    let (none, unknown) = (ErrorCode::NONE, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(codes, [none, unknown, none, unknown]);
    assert_eq!(play.members(), ["b"]);
    let (codes, effects) = play.group.leave(play.now, &[]);
    assert!(codes.is_empty() && effects.is_empty());
}

#[test]
fn the_last_member_leaves_an_empty_group_with_a_new_generation() {
    let mut play = Play::stable(&["a"]);
    let generation = play.group.generation();
    play.leave("a");
    assert_eq!((play.state(), play.group.generation()), (GroupState::Empty, generation + 1));
    let memory = &play.stores.last().expect("remembered").1;
    let restored = Group::restore(memory, limits(), play.now).expect("its own");
    assert_eq!(restored.describe(), play.group.describe());
    assert_eq!(restored.generation(), generation + 1);
    let b = play.join(new("b"));
    assert_eq!(play.joined(b).generation, generation + 2);
}
