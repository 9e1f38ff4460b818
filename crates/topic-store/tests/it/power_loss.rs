//! Power loss at any call: nothing acknowledged is missing, doubled or out of order, and producers' windows are right.
//!
//! Each seed is a whole run on a simulated disk: random work, a cut at a random call, a restart, the comparison with
//! everything that was ever submitted, and on with the work.

use std::collections::BTreeSet;
use std::panic::catch_unwind;

use kolumn_journal::Mutant;
use kolumn_topic_store::Durability;

use crate::simulation::{Run, RunOptions};

/// How many runs: `KOLUMN_SEEDS`, or 200.
fn seeds() -> u64 {
    std::env::var("KOLUMN_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

#[test]
fn no_acknowledged_record_is_lost_doubled_or_moved_by_a_power_cut() {
    let (mut seen, mut records) = (BTreeSet::new(), 0);
    for seed in 0..seeds() {
        let outcome = catch_unwind(|| Run::new(seed, RunOptions::default()).go(4));
        let Ok((digest, events)) = outcome else { panic!("seed {seed} failed") };
        records += digest.iter().map(|(_, _, end)| end).sum::<i64>();
        seen.extend(events);
    }
    // The runs are worth something only if they get everywhere.
    let events = "Opened Retained RecordsDeleted Carried Freed Checkpoint Pressure Failed";
    let changes = "TopicDeleted Partitions Configured Committed Stored GroupDeleted OffsetsDeleted";
    for name in events.split(' ').chain(changes.split(' ')) {
        assert!(seen.contains(name), "no run saw {name}");
    }
    assert!(records > 5000, "{records}");
}

#[test]
fn without_syncs_a_power_cut_costs_the_end_and_never_the_beginning() {
    let options = RunOptions { durability: Durability::Os, ..RunOptions::default() };
    for seed in 0..seeds() / 4 {
        let outcome = catch_unwind(|| Run::new(seed, options).go(4));
        assert!(outcome.is_ok(), "seed {seed} failed");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..5 {
        let one = Run::new(seed, RunOptions::default()).go(3);
        let two = Run::new(seed, RunOptions::default()).go(3);
        assert_eq!(one, two, "seed {seed}");
    }
}

/// Whether some run with this fault in the journal fails.
fn is_caught(mutant: Mutant, options: RunOptions) -> bool {
    let options = RunOptions { mutant, ..options };
    (0..400).any(|seed| catch_unwind(|| Run::new(seed, options).go(4)).is_err())
}

#[test]
fn an_answer_before_the_sync_is_caught() {
    assert!(is_caught(Mutant::AnswersBeforeSync, RunOptions::default()));
}

#[test]
fn a_recycled_group_taken_for_valid_is_caught() {
    assert!(is_caught(Mutant::TrustsRecycledGroups, RunOptions::default()));
}

#[test]
fn a_checkpoint_ahead_of_its_journal_is_caught() {
    // Where every group is synced before it is in a checkpoint, the fault has no effect.
    let unsynced = RunOptions { durability: Durability::Os, ..RunOptions::default() };
    assert!(is_caught(Mutant::CheckpointsAhead, unsynced));
}

#[test]
fn an_append_admitted_without_room_is_caught() {
    let tight = RunOptions { capacity: Some(8 * (64 << 10)), ..RunOptions::default() };
    for seed in 0..10 {
        Run::new(seed, tight).go(3);
    }
    assert!(is_caught(Mutant::AdmitsUnreserved, tight));
}
