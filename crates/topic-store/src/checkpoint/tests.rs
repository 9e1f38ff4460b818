//! Checkpoints against whole folds, damage, and what earlier versions wrote.

use std::fmt::Write as _;

use bytes::Bytes;
use uuid::Uuid;

use super::*;
use crate::config::TopicConfig;
use crate::entry::{BatchMeta, Entry, GroupOffsets, GroupRef, ProducerRun, batch_head};
use crate::group::{CommittedOffset, OffsetCommit};
use crate::ids::{LeaderEpoch, Offset, PartitionIndex};
use crate::state::Place;
use crate::topic::{Topic, View};

const LIMITS: IndexLimits = IndexLimits { spans_max: 24, stride_bits_max: 17 };

fn view() -> View {
    View {
        id: ViewId::new(Uuid::from_u128(1)),
        bucket: "kafka".into(),
        cluster_id: "AAAAAAAAAAAAAAAAAAAAAQ".into(),
        created: Timestamp::new(5),
    }
}

fn topic(n: u128) -> Topic {
    Topic {
        id: TopicId::new(Uuid::from_u128(n)),
        view: view().id,
        name: format!("topic.{n}").into(),
        partitions: 2,
        config: TopicConfig::parse([("retention.ms", "1000")]).expect("legal"),
        created: Timestamp::new(6),
    }
}

/// A long random history, as the store could have written it.
fn history(seed: u64) -> Vec<(Entry, Option<Place>)> {
    let mut chance = seed | 1;
    let mut random = move |below: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % below
    };
    let mut entries = vec![(Entry::ViewCreated(view()), None)];
    let mut state = State::new(Some(LIMITS));
    state.apply(&entries[0].0, None);
    let mut position = 4096;
    for step in 0..600_i64 {
        let ids: Vec<_> = state.topics.keys().copied().collect();
        let pick = random(100);
        let id = ids.get(usize::try_from(random(ids.len().max(1) as u64)).expect("small")).copied();
        let partition = PartitionIndex::new(i32::try_from(random(2)).expect("small"));
        let entry = match (pick, id) {
            (0..=3, _) | (_, None) if ids.len() < 4 => {
                Entry::TopicCreated(Arc::new(topic(u128::try_from(step).expect("positive") + 10)))
            }
            (4, Some(topic)) => Entry::TopicDeleted { topic },
            (5..=8, Some(topic)) => {
                let found = state.partition(topic, partition).expect("known");
                let ends: Vec<_> = found.spans.iter().map(|span| span.last + 1).collect();
                let offset = ends.get(ends.len() / 2).copied().unwrap_or(found.next);
                Entry::LogStart { topic, partition, offset }
            }
            (9, _) => Entry::ProducerIds { next: step * 10 },
            (10..=11, Some(topic)) => {
                Entry::ProducersExpired { topic, partition, producers: vec![ProducerId::new(1)] }
            }
            (26..=45, topic) => group_entry(&mut random, topic, step),
            (46..=49, Some(topic)) => {
                let before = state.topics[&topic].topic.partitions;
                let count = before - 1 + i32::try_from(random(3)).expect("small");
                let entry = Entry::PartitionsCreated { topic, count };
                state.apply(&entry, None);
                let after = &state.topics[&topic];
                assert_eq!((after.topic.partitions, after.partitions.len()), two(before.max(count)));
                entry
            }
            (50, Some(topic)) => {
                let age = step.to_string();
                let config = TopicConfig::parse([("retention.ms", age.as_str())]).expect("legal");
                Entry::TopicConfigured { topic, config }
            }
            (12..=25, Some(topic)) => {
                let found = state.partition(topic, partition).expect("known");
                let Some(span) = found.spans.front() else { continue };
                Entry::Carried(meta(topic, partition, span.base, 1, step, None))
            }
            (_, Some(topic)) => {
                let found = state.partition(topic, partition).expect("known");
                let count = 1 + i64::try_from(random(3)).expect("small");
                let first = i32::try_from(step).expect("small");
                let last = first + i32::try_from(count).expect("small") - 1;
                let id = ProducerId::new(i64::try_from(random(4)).expect("small"));
                let run = ProducerRun { id, epoch: 0, first, last };
                Entry::Appended(meta(topic, partition, found.next, 1, step, Some(run)))
            }
            (_, None) => continue,
        };
        position += 4096 * (1 + random(3));
        let place = matches!(entry, Entry::Appended(_) | Entry::Carried(_))
            .then_some(Place::new(position / 2, position));
        state.apply(&entry, place);
        state.check();
        entries.push((entry, place));
    }
    entries
}

fn two(count: i32) -> (i32, usize) {
    (count, usize::try_from(count).expect("positive"))
}

/// What happens to one of six groups. Topics that have been deleted and partitions that are not there are among the places.
fn group_entry(random: &mut impl FnMut(u64) -> u64, topic: Option<TopicId>, step: i64) -> Entry {
    let group = GroupRef { view: view().id, id: format!("group-{}", random(6)).into() };
    let place = |random: &mut dyn FnMut(u64) -> u64| {
        let topic = topic.filter(|_| random(8) > 0).unwrap_or(TopicId::new(Uuid::from_u128(10)));
        (topic, PartitionIndex::new(i32::try_from(random(4)).expect("small")))
    };
    match random(10) {
        0 => Entry::GroupDeleted { group },
        1 | 2 => {
            let memory = vec![7; usize::try_from(random(3) * 50).expect("small")].into();
            Entry::GroupStored { group, memory }
        }
        3 | 4 => Entry::OffsetsDeleted { group, offsets: vec![place(random), place(random)] },
        _ => {
            let offsets = (0..=random(3)).map(|_| commit(place(random), step)).collect();
            Entry::OffsetsCommitted(GroupOffsets { group, offsets })
        }
    }
}

fn commit((topic, partition): (TopicId, PartitionIndex), step: i64) -> OffsetCommit {
    let committed = CommittedOffset {
        offset: Offset::new(step),
        leader_epoch: (step % 3 > 0).then_some(LeaderEpoch::new(2)),
        metadata: "m".repeat(usize::try_from(step % 5).expect("small")).into(),
        committed: Timestamp::new(step),
    };
    OffsetCommit { topic, partition, committed }
}

fn meta(
    topic: TopicId,
    partition: PartitionIndex,
    base: i64,
    count: i64,
    step: i64,
    producer: Option<ProducerRun>,
) -> BatchMeta {
    BatchMeta {
        topic,
        partition,
        appended: Timestamp::new(step),
        base_offset: base,
        last_offset: base + count - 1,
        max_timestamp: if step % 7 == 0 { -1 } else { 10_000 - step },
        leader_epoch: i32::try_from(step / 200).expect("small"),
        producer,
        len: 100,
    }
}

#[test]
fn a_checkpoint_and_the_rest_are_the_whole_fold_for_every_prefix() {
    for seed in 1..4 {
        let entries = history(seed);
        let fold = |mut state: State, entries: &[(Entry, Option<Place>)]| {
            for (entry, place) in entries {
                state.apply(entry, *place);
            }
            state
        };
        let whole = fold(State::new(Some(LIMITS)), &entries);
        assert!(whole.thinning.as_ref().is_some_and(|thinning| thinning.spans > 10));
        assert!(whole.groups_cost() > 1000, "{}", whole.groups_cost());
        for prefix in 0..=entries.len() {
            let (before, after) = entries.split_at(prefix);
            let state = fold(State::new(Some(LIMITS)), before);
            let restored = decode(&encode(&state), LIMITS).expect("readable");
            // Not `assert_eq`: two whole states say less than the place where they begin to differ.
            assert!(restored == state, "seed {seed}, prefix {prefix}");
            assert!(fold(restored, after) == whole, "seed {seed}, prefix {prefix}");
        }
    }
}

#[test]
fn a_checkpoint_that_is_cut_anywhere_is_refused_and_never_trusted_with_a_count() {
    let mut state = State::new(Some(LIMITS));
    for (entry, place) in history(1).iter().take(80) {
        state.apply(entry, *place);
    }
    let bytes = encode(&state);
    for len in 0..bytes.len() {
        assert!(decode(&bytes[..len], LIMITS).is_err(), "cut at {len}");
    }
    // Flips may give another legal state; they have to be survived.
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0xff;
        let _ = decode(&flipped, LIMITS);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.chunks(40).fold(String::new(), |mut text, line| {
        for byte in line {
            write!(text, "{byte:02x}").expect("a string grows");
        }
        text + "\n"
    })
}

/// Compares with what was written when the version came out. With `KOLUMN_WRITE_FIXTURES` set it is written anew instead.
#[track_caller]
fn check_fixture(name: &str, bytes: &[u8]) {
    if std::env::var_os("KOLUMN_WRITE_FIXTURES").is_some() {
        let path = path_of(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        std::fs::write(&path, hex(bytes)).expect("writable");
    }
    assert_eq!(std::fs::read_to_string(path_of(name)).expect("the fixture is there"), hex(bytes), "{name}");
}

fn fixture(name: &str) -> Vec<u8> {
    let text = std::fs::read_to_string(path_of(name)).expect("the fixture is there");
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hexadecimal digits")
    };
    digits.chunks(2).map(byte).collect()
}

fn path_of(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

const PARTITION: PartitionIndex = PartitionIndex::new(1);

/// What the first version could write: all but the last make the state of its checkpoint.
fn first_entries() -> Vec<Entry> {
    let topic = Arc::new(topic(7));
    let (id, partition) = (topic.id, PARTITION);
    vec![
        Entry::ViewCreated(view()),
        Entry::TopicCreated(topic),
        Entry::LogStart { topic: id, partition, offset: 9 },
        Entry::ProducerIds { next: 1000 },
        Entry::ProducersExpired { topic: id, partition, producers: vec![ProducerId::new(3)] },
        Entry::TopicDeleted { topic: id },
    ]
}

fn first_state() -> State {
    let mut state = State::new(Some(LIMITS));
    for entry in &first_entries()[..4] {
        state.apply(entry, None);
    }
    let run = ProducerRun { id: ProducerId::new(4), epoch: 2, first: 5, last: 6 };
    let id = topic(7).id;
    let appended = Entry::Appended(meta(id, PARTITION, 0, 2, 300, Some(run)));
    state.apply(&appended, Some(Place::new(4096, 8192)));
    state
}

/// What came with groups and changes of topics.
fn later_entries() -> Vec<Entry> {
    let id = topic(7).id;
    let group = |n: u32| GroupRef { view: view().id, id: format!("group-{n}").into() };
    let offsets = vec![commit((id, PartitionIndex::new(0)), 4), commit((id, PARTITION), 6)];
    vec![
        Entry::OffsetsCommitted(GroupOffsets { group: group(1), offsets }),
        Entry::GroupStored { group: group(2), memory: Bytes::from_static(b"memory") },
        Entry::PartitionsCreated { topic: id, count: 3 },
        Entry::TopicConfigured { topic: id, config: TopicConfig::default() },
        Entry::OffsetsDeleted { group: group(1), offsets: vec![(id, PARTITION)] },
        Entry::GroupDeleted { group: group(2) },
    ]
}

#[test]
fn entries_are_written_and_read_as_ever() {
    for (entry, n) in first_entries().iter().zip(1..) {
        check_fixture(&format!("v1/entry-{n}.hex"), &entry.encode());
    }
    check_fixture("v1/batch-head.hex", &batch_head(false, topic(7).id, PARTITION, Timestamp::new(77)));
    for (entry, n) in later_entries().iter().zip(7..) {
        check_fixture(&format!("v2/entry-{n}.hex"), &entry.encode());
    }
}

#[test]
fn a_checkpoint_of_the_first_version_is_read() {
    let restored = decode(&fixture("v1/checkpoint.hex"), LIMITS).expect("readable");
    assert!(restored == first_state());
}

#[test]
fn a_checkpoint_of_the_second_version_is_written_and_read_as_ever() {
    let mut state = first_state();
    for entry in &later_entries()[..4] {
        state.apply(entry, None);
    }
    check_fixture("v2/checkpoint.hex", &encode(&state));
    assert!(decode(&fixture("v2/checkpoint.hex"), LIMITS).expect("readable") == state);
}
