//! Static members: they may be away as long as their session lasts, and their processes replace each other.

use super::*;

const NAMES: [&str; 3] = ["a", "s", "z"];

/// Dynamic `a` leads; static `s` and `z` follow.
#[track_caller]
fn stable() -> Play {
    let mut play = Play::new(limits());
    play.join(new("a"));
    play.join(fixed("S", "s"));
    play.join(fixed("Z", "z"));
    play.settle(&NAMES);
    play
}

/// The static member `s` leads alone.
#[track_caller]
fn led_by_static() -> Play {
    let mut play = Play::new(limits());
    play.join(fixed("S", "s"));
    play.join(new("b"));
    play.settle(&["s", "b"]);
    play
}

#[test]
fn a_static_member_needs_no_id_to_come_again_with() {
    let mut play = Play::new(limits());
    let token = play.join(Join { needs_known_id: true, ..fixed("S", "s") });
    assert_eq!(play.joined(token).member_id, "s");
    assert_eq!(play.joined(token).members[0].instance_id.as_deref(), Some("S"));
}

#[test]
fn a_static_member_that_restarts_keeps_its_assignment_without_a_rebalance() {
    let mut play = stable();
    let generation = play.group.generation();
    let token = play.join(fixed("S", "s2"));
    assert!(play.waits(token), "until its new id is durable");
    play.durable();
    let joined = play.joined(token);
    assert_eq!(
        (joined.generation, joined.member_id.as_str(), joined.leader.as_str()),
        (generation, "s2", "a")
    );
    assert!(joined.members.is_empty() && !joined.skip_assignment);
    assert_eq!(play.state(), GroupState::Stable);
    let sync = play.sync("s2");
    assert_eq!(play.assignment(sync), "s");
    assert_eq!(play.heartbeat("a"), Ok(()));
}

#[test]
fn the_former_self_of_a_static_member_is_fenced_off() {
    let mut play = stable();
    play.join(fixed("S", "s2"));
    play.durable();
    let generation = play.group.generation();
    let former = MemberRef { member_id: "s", instance_id: Some("S"), generation };
    let fenced = ErrorCode::FENCED_INSTANCE_ID;
    assert_eq!(play.group.heartbeat(play.now, &former), Err(fenced));
    assert_eq!(play.group.check_commit(play.now, &former), Err(fenced));
    let join = play.join(Join { instance_id: Some("S".to_owned()), ..known("s") });
    assert_eq!(play.refused(join), fenced);
    let leaver = Leaver { member_id: "s", instance_id: Some("S") };
    assert_eq!(play.group.leave(play.now, &[leaver]).0, [fenced]);
    let nameless = MemberRef { instance_id: None, ..former };
    assert_eq!(play.group.heartbeat(play.now, &nameless), Err(ErrorCode::UNKNOWN_MEMBER_ID));
}

#[test]
fn a_former_self_that_waits_is_fenced_off_at_once() {
    let mut play = stable();
    let join = play.join(subscribed(Join { instance_id: Some("S".to_owned()), ..known("s") }, &["u"]));
    let second = play.join(subscribed(fixed("S", "s2"), &["u"]));
    assert_eq!(play.refused(join), ErrorCode::FENCED_INSTANCE_ID);
    play.rejoin("a");
    play.rejoin("z");
    assert_eq!(play.joined(second).member_id, "s2");
    let sync = play.sync("s2");
    play.join(fixed("S", "s3"));
    assert_eq!(play.refused(sync), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(play.state(), GroupState::PreparingRebalance, "the leader may have assigned to the former id");
}

#[test]
fn a_static_member_that_restarts_with_another_subscription_starts_a_rebalance() {
    #[track_caller]
    fn check(join: Join, expect: GroupState) {
        let mut play = stable();
        play.join(join);
        assert_eq!(play.state(), expect);
    }
    check(subscribed(fixed("S", "s2"), &["t", "u"]), GroupState::PreparingRebalance);
    // What it holds is part of what cooperative consumers say, and gone after a start.
    let mut holding = BytesMut::from(&subscription(&["t"])[..]);
    holding.put_slice(b"partitions");
    let holding = Join { protocols: vec![("range".to_owned(), holding.freeze())], ..fixed("S", "s2") };
    check(holding, GroupState::Stable);
    let unreadable = vec![("range".to_owned(), Bytes::from_static(b"?"))];
    check(Join { protocols: unreadable, ..fixed("S", "s2") }, GroupState::PreparingRebalance);
    let more = vec![("range".to_owned(), subscription(&["t"])), ("sticky".to_owned(), subscription(&["t"]))];
    check(Join { protocols: more, ..fixed("S", "s2") }, GroupState::PreparingRebalance);
}

#[test]
fn a_static_member_whose_first_join_is_lost_may_come_back() {
    let mut play = Play::stable(&["a"]);
    let lost = play.join(fixed("S", "s"));
    play.abandon(lost);
    assert_eq!(play.members(), ["a", "s"]);
    let again = play.join(fixed("S", "s2"));
    play.rejoin("a");
    assert_eq!(play.joined(again).member_id, "s2");
    assert_eq!(play.members(), ["a", "s2"]);
}

#[test]
fn a_static_leader_that_restarts_skips_the_assignment_if_it_can() {
    let mut play = led_by_static();
    let generation = play.group.generation();
    let token = play.join(Join { can_skip_assignment: true, ..fixed("S", "s2") });
    play.durable();
    let joined = play.joined(token);
    assert_eq!((joined.generation, joined.leader.as_str()), (generation, "s2"));
    assert!(joined.skip_assignment);
    assert_eq!(joined.members.len(), 2);
    // An older client would assign, so it is told that somebody else leads.
    let token = play.join(fixed("S", "s3"));
    play.durable();
    let joined = play.joined(token);
    assert_eq!((joined.member_id.as_str(), joined.leader.as_str()), ("s3", "s2"));
    assert!(!joined.skip_assignment && joined.members.is_empty());
    // It leads the next rebalance all the same.
    let token = play.join(new("c"));
    play.rejoin("b");
    play.rejoin("s3");
    assert_eq!(play.joined(token).leader, "s3");
}

#[test]
fn a_replacement_that_cannot_be_remembered_rebalances() {
    let mut play = stable();
    let token = play.join(fixed("S", "s2"));
    play.stored(false);
    assert!(play.waits(token));
    assert_eq!(play.state(), GroupState::PreparingRebalance);
    play.rejoin("a");
    play.rejoin("z");
    assert_eq!(play.joined(token).member_id, "s2");
}

#[test]
fn replacements_share_a_write_and_none_is_answered_before_its_own() {
    let mut play = stable();
    let writes = play.stores.len();
    let first = play.join(fixed("S", "s2"));
    let second = play.join(fixed("Z", "z2"));
    let third = play.join(fixed("Z", "z3"));
    assert_eq!(play.stores.len(), writes + 1);
    assert_eq!(play.refused(second), ErrorCode::FENCED_INSTANCE_ID);
    play.durable();
    assert_eq!(play.stores.len(), writes + 2);
    assert!(play.waits(third));
    play.durable();
    assert_eq!(
        (play.joined(first).member_id, play.joined(third).member_id),
        ("s2".to_owned(), "z3".to_owned())
    );
}

#[test]
fn a_static_member_that_misses_a_rebalance_stays_until_its_session_is_over() {
    let mut play = Play::new(limits());
    play.join(new("a"));
    play.join(Join { session_timeout: secs(100), ..fixed("S", "s") });
    play.settle(&["a", "s"]);
    let a = play.join(subscribed(known("a"), &["u"]));
    play.pass(REBALANCE);
    assert_eq!(play.joined(a).members.len(), 2, "the leader assigns to it too");
    play.sync_leader("a", &["a", "s"]);
    play.durable();
    for _ in 0..60 {
        play.pass(secs(1));
        assert_eq!(play.heartbeat("a"), Ok(()));
    }
    assert_eq!(play.members(), ["a", "s"]);
    // It comes back: nobody else has to move.
    let s = play.join(Join { instance_id: Some("S".to_owned()), session_timeout: secs(100), ..known("s") });
    assert_eq!(play.joined(s).generation, play.group.generation());
    let sync = play.sync("s");
    assert_eq!(play.assignment(sync), "s");
    play.pass(secs(100));
    assert_eq!(play.members(), Vec::<String>::new());
}

#[test]
fn an_absent_static_member_does_not_lead() {
    let mut play = led_by_static();
    let s = Join { instance_id: Some("S".to_owned()), session_timeout: secs(100), ..known("s") };
    let (s, b) = (play.join(s), play.rejoin("b"));
    assert_eq!((play.joined(s).leader, play.joined(b).leader), ("s".to_owned(), "s".to_owned()));
    let b = play.join(subscribed(known("b"), &["u"]));
    play.pass(REBALANCE);
    let joined = play.joined(b);
    assert_eq!((joined.leader.as_str(), joined.members.len()), ("b", 2));
}

#[test]
fn a_rebalance_that_only_absent_static_members_remain_of_waits_for_them() {
    let mut play = Play::new(limits());
    play.join(Join { session_timeout: secs(100), rebalance_timeout: Duration::ZERO, ..fixed("S", "s") });
    play.settle(&["s"]);
    let b = play.join(Join { rebalance_timeout: Duration::ZERO, ..new("b") });
    play.abandon(b);
    let generation = play.group.generation();
    play.pass(secs(50));
    assert_eq!((play.state(), play.group.generation()), (GroupState::PreparingRebalance, generation));
    let s = play.join(Join { instance_id: Some("S".to_owned()), ..known("s") });
    assert_eq!(play.joined(s).generation, generation + 1);
}

#[test]
fn timeouts_that_a_member_changes_hold_at_once_and_after_a_restart() {
    #[track_caller]
    fn check(is_restarted: bool) {
        let mut play = stable();
        let mut join = if is_restarted { fixed("S", "s2") } else { known("s") };
        join.instance_id = Some("S".to_owned());
        let token = play.join(Join { session_timeout: secs(60), rebalance_timeout: secs(90), ..join });
        play.durable();
        assert_eq!(play.joined(token).generation, play.group.generation());
        play.pass(SESSION + secs(1));
        assert_eq!(play.members().len(), 1, "the others had shorter sessions");
        let memory = play.stores.iter().rev().find_map(|(_, memory)| {
            let group = Group::restore(memory, limits(), play.now).expect("its own");
            (group.state() == GroupState::Stable).then_some(group)
        });
        let mut group = memory.expect("it was stable");
        group.handle_timeout(play.now + SESSION);
        assert_eq!(group.describe().members.len(), 1);
        assert_eq!(group.next_deadline(), Some(play.now + secs(60)).min(group.next_deadline()));
        assert_eq!(group.rebalance_timeout(), secs(90));
    }
    check(true);
    check(false);
}

#[test]
fn an_administrator_removes_a_static_member_by_its_instance() {
    let mut play = stable();
    let leaver = |instance_id| Leaver { member_id: "", instance_id };
    let leavers = [leaver(Some("S")), leaver(Some("nobody")), leaver(None)];
    let (codes, effects) = play.group.leave(play.now, &leavers);
    play.take(effects);
    let unknown = ErrorCode::UNKNOWN_MEMBER_ID;
    assert_eq!(codes, [ErrorCode::NONE, unknown, unknown]);
    assert_eq!(play.members(), ["a", "z"]);
    assert_eq!(play.state(), GroupState::PreparingRebalance);
    let again = play.join(fixed("S", "s2"));
    play.rejoin("a");
    play.rejoin("z");
    assert_eq!(play.joined(again).member_id, "s2");
}

#[test]
fn a_replacement_that_came_during_a_write_that_fails_rebalances_too() {
    let mut play = stable();
    let first = play.join(fixed("S", "s2"));
    let second = play.join(fixed("Z", "z2"));
    play.stored(false);
    assert_eq!(play.state(), GroupState::PreparingRebalance);
    play.rejoin("a");
    assert_eq!(
        (play.joined(first).member_id, play.joined(second).member_id),
        ("s2".to_owned(), "z2".to_owned())
    );
}
