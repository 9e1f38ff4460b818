//! The cost of many members, counted in members that are walked over.

use super::*;

/// Joins, syncs, heartbeats and commits of so many members, a rebalance for one more, and the end of all sessions.
fn work(members: usize, is_static: bool) -> u64 {
    let mut play = Play::new(GroupLimits { initial_rebalance_delay: secs(3), ..limits() });
    let names: Vec<_> = (0..members).map(|index| format!("m{index}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    for name in &names {
        play.join(if is_static { fixed(name, name) } else { new(name) });
    }
    play.pass(secs(6));
    play.settle(&names);
    for round in 0..3 {
        for name in &names {
            assert_eq!(play.heartbeat(name), Ok(()));
            play.sync(name);
            if round == 0 && *name != names[0] {
                play.rejoin(name);
            }
        }
        play.pass(secs(1));
    }
    play.join(new("late"));
    for name in &names {
        play.rejoin(name);
    }
    for name in names.iter().copied().chain(["late"]) {
        let token = play.sync(name);
        if name == names[1] {
            play.abandon(token);
        }
    }
    if is_static {
        play.durable();
        for name in &names {
            play.join(fixed(name, &format!("{name}-2")));
        }
        play.durable();
        play.durable();
    }
    assert_eq!(play.members().len(), members + 1);
    play.pass(secs(60));
    assert_eq!(play.state(), GroupState::Empty);
    play.group.roster.visits()
}

#[test]
fn work_grows_with_the_number_of_members_not_with_its_square() {
    for is_static in [false, true] {
        let (few, many) = (work(500, is_static), work(4_000, is_static));
        assert!(few > 500, "it is counted");
        assert!(many <= few * 9, "8 times the members took {many} steps instead of {few}");
    }
}
