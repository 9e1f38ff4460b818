//! What a group does not take.

use super::*;

#[test]
fn session_timeouts_out_of_range_are_refused() {
    #[track_caller]
    fn check(session_timeout: Duration, expect: bool) {
        let mut play = Play::new(limits());
        let token = play.join(Join { session_timeout, ..new("a") });
        match play.answer(token) {
            Some(Answer::Joined(Ok(_))) => assert!(expect),
            _ => assert!(!expect && play.refused(token) == ErrorCode::INVALID_SESSION_TIMEOUT),
        }
    }
    check(secs(6), true);
    check(secs(1800), true);
    check(Duration::from_millis(5_999), false);
    check(secs(1800) + Duration::from_millis(1), false);
}

#[test]
fn a_full_group_lets_nobody_in_but_its_members() {
    let mut play = Play::new(GroupLimits { members_max: 2, ..limits() });
    for name in ["a", "b"] {
        play.join(new(name));
    }
    play.settle(&["a", "b"]);
    let full = ErrorCode::GROUP_MAX_SIZE_REACHED;
    for join in [new("c"), fixed("C", "c"), Join { needs_known_id: true, ..new("c") }] {
        let token = play.join(join);
        assert_eq!(play.refused(token), full);
    }
    assert_eq!(play.state(), GroupState::Stable);
    play.settle(&["a", "b"]);
}

#[test]
fn an_id_is_no_seat() {
    let mut play = Play::new(GroupLimits { members_max: 1, initial_rebalance_delay: secs(3), ..limits() });
    play.join(Join { needs_known_id: true, ..new("a") });
    let full = play.join(Join { needs_known_id: true, ..new("b") });
    assert_eq!(play.refused(full), ErrorCode::GROUP_MAX_SIZE_REACHED, "ids have a bound too");
    play.join(new("c"));
    let late = play.join(known("a"));
    assert_eq!(play.refused(late), ErrorCode::GROUP_MAX_SIZE_REACHED);
}

#[track_caller]
fn refuses(play: &mut Play, join: Join, code: ErrorCode) {
    let before = play.group.roster.len();
    let token = play.join(join);
    assert_eq!(play.refused(token), code);
    assert_eq!(play.group.roster.len(), before);
}

#[test]
fn bytes_of_members_are_bounded_whatever_they_are() {
    let roomy = |name: &str, len: usize| Join {
        protocols: vec![("range".to_owned(), vec![0; len].into())],
        ..new(name)
    };
    let limits = GroupLimits { len_max: 1_000, ..limits() };
    let full = ErrorCode::GROUP_MAX_SIZE_REACHED;
    let mut play = Play::new(limits);
    refuses(&mut play, roomy("a", 1_000), full);
    refuses(&mut play, new(&"a".repeat(1_000)), full);
    refuses(&mut play, fixed(&"a".repeat(1_000), "a"), full);
    refuses(&mut play, Join { client_id: "a".repeat(1_000), ..new("a") }, full);
    refuses(&mut play, Join { needs_known_id: true, ..new(&"a".repeat(1_001)) }, full);
    let short_names = (0..20).map(|name| (name.to_string(), Bytes::new())).collect();
    refuses(&mut play, Join { protocols: short_names, ..new("a") }, full);
    // Its own bytes are given back when a member changes.
    let token = play.join(roomy("a", 600));
    assert_eq!(play.joined(token).generation, 1);
    refuses(&mut play, roomy("b", 600), full);
    let token = play.join(Join { member_id: "a".to_owned(), ..roomy("", 700) });
    assert_eq!(play.joined(token).generation, 2);
    refuses(&mut play, Join { member_id: "a".to_owned(), ..roomy("", 1_000) }, full);
    play.pass(secs(60));
    assert_eq!(play.group.roster.len(), 0);
}

#[test]
fn assignments_that_are_too_long_are_refused_and_leave_nothing_behind() {
    let mut play = Play::new(GroupLimits { len_max: 1_000, ..limits() });
    play.join(new("a"));
    let before = play.group.roster.len();
    let sync = |len| Sync {
        token: Token(0),
        member_id: "a".to_owned(),
        instance_id: None,
        generation: 1,
        protocol_type: None,
        protocol_name: None,
        assignments: vec![
            ("a".to_owned(), vec![0; len].into()),
            ("nobody".to_owned(), vec![0; 5_000].into()),
        ],
    };
    let token = play.sync_with(sync(1_000));
    assert_eq!(play.refused(token), ErrorCode::UNKNOWN_SERVER_ERROR);
    assert_eq!((play.state(), play.group.roster.len()), (GroupState::PreparingRebalance, before));
    play.rejoin("a");
    let token = play.sync_with(Sync { generation: 2, ..sync(500) });
    play.durable();
    assert_eq!(play.assignment(token).len(), 500);
}

#[test]
fn what_is_kept_does_not_keep_the_request_alive() {
    let request = Bytes::from(subscription(&["t"]).to_vec());
    let mut play = Play::new(limits());
    play.join(Join { protocols: vec![("range".to_owned(), request.slice(..))], ..new("a") });
    assert!(request.is_unique());
}

#[test]
fn no_patience_is_too_long_for_the_clock() {
    let mut play = Play::stable(&["a"]);
    let b = play.join(Join { rebalance_timeout: Duration::MAX, ..new("b") });
    assert!(play.waits(b));
    play.rejoin("a");
    assert_eq!(play.joined(b).members.len(), 0);
}

#[test]
fn an_assignment_for_an_id_that_nobody_uses_takes_no_room() {
    let mut play = Play::new(GroupLimits { len_max: 1_000, ..limits() });
    play.join(new("a"));
    play.join(Join { needs_known_id: true, ..new("unused") });
    let token = play.sync_with(Sync {
        token: Token(0),
        member_id: "a".to_owned(),
        instance_id: None,
        generation: 1,
        protocol_type: None,
        protocol_name: None,
        assignments: vec![
            ("a".to_owned(), Bytes::from_static(b"a")),
            ("unused".to_owned(), vec![0; 5_000].into()),
        ],
    });
    play.durable();
    assert_eq!(play.assignment(token), "a");
}
