//! Who may commit offsets, and when.

use super::*;

#[track_caller]
fn check(
    play: &mut Play,
    member_id: &str,
    instance_id: Option<&str>,
    generation: i32,
    expect: Result<(), ErrorCode>,
) {
    let member = MemberRef { member_id, instance_id, generation };
    assert_eq!(play.group.check_commit(play.now, &member), expect);
}

const UNKNOWN: Result<(), ErrorCode> = Err(ErrorCode::UNKNOWN_MEMBER_ID);

#[test]
fn who_is_in_no_generation_commits_to_empty_groups_only() {
    let mut play = Play::new(limits());
    check(&mut play, "", None, -1, Ok(()));
    check(&mut play, "", Some("S"), -1, Ok(()));
    check(&mut play, "left", None, -1, Ok(()));
    check(&mut play, "a", None, 0, UNKNOWN);
    check(&mut play, "", None, 1, UNKNOWN);
    let mut play = Play::stable(&["a"]);
    check(&mut play, "", None, -1, UNKNOWN);
    check(&mut play, "", Some("S"), -1, UNKNOWN);
    check(&mut play, "a", None, -1, Err(ErrorCode::ILLEGAL_GENERATION));
}

#[test]
fn members_commit_in_their_generation() {
    let mut play = Play::stable(&["a", "b"]);
    let generation = play.group.generation();
    check(&mut play, "a", None, generation, Ok(()));
    check(&mut play, "a", None, generation - 1, Err(ErrorCode::ILLEGAL_GENERATION));
    check(&mut play, "a", None, generation + 1, Err(ErrorCode::ILLEGAL_GENERATION));
    check(&mut play, "a", Some("S"), generation, UNKNOWN);
    check(&mut play, "z", None, generation, UNKNOWN);
}

#[test]
fn commits_go_on_while_a_rebalance_prepares_but_not_before_the_assignment() {
    let mut play = Play::stable(&["a", "b"]);
    let generation = play.group.generation();
    play.rejoin("a");
    check(&mut play, "b", None, generation, Ok(()));
    play.rejoin("b");
    check(&mut play, "b", None, generation, Err(ErrorCode::ILLEGAL_GENERATION));
    check(&mut play, "b", None, generation + 1, Err(ErrorCode::REBALANCE_IN_PROGRESS));
}

#[test]
fn a_deleted_group_takes_nothing() {
    let mut play = Play::stable(&["a"]);
    assert_eq!(play.group.delete(), Err(ErrorCode::NON_EMPTY_GROUP));
    play.leave("a");
    play.join(Join { needs_known_id: true, ..new("b") });
    assert_eq!(play.group.delete(), Ok(()));
    assert_eq!(play.state(), GroupState::Dead);
    let gone = ErrorCode::COORDINATOR_NOT_AVAILABLE;
    check(&mut play, "", None, -1, Err(gone));
    assert_eq!(play.heartbeat("a"), Err(gone));
    let (join, sync) = (play.join(known("b")), play.sync("a"));
    assert_eq!((play.refused(join), play.refused(sync)), (gone, gone));
    let (codes, _) = play.group.leave(play.now, &[Leaver { member_id: "a", instance_id: None }]);
    assert_eq!(codes, [gone]);
    assert_eq!(play.group.delete(), Err(ErrorCode::GROUP_ID_NOT_FOUND));
    assert_eq!(play.group.next_deadline(), None);
    play.durable();
    assert_eq!(play.state(), GroupState::Dead);
}
