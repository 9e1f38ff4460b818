//! A state as the bytes of a checkpoint, and back. The layout is in `FORMAT.md`; the journal adds the checksum.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::BufMut;

use crate::cursor::{Malformed, Reader, put_count};
use crate::entry::{put_topic, put_view, read_topic, read_view};
use crate::ids::{ProducerId, Timestamp};
use crate::state::index::{Span, Thinning};
use crate::state::partition::{EpochStart, Partition};
use crate::state::producers::{Producer, Run, WINDOW};
use crate::state::{IndexLimits, State, TopicState, ViewState};
use crate::topic::collision_key;

pub(crate) fn encode(state: &State) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u8(VERSION);
    out.put_i64(state.next_producer_id);
    let thinning = state.thinning.clone().unwrap_or(Thinning::new(IndexLimits::new(0, 0)));
    out.put_u64(thinning.limits.spans_max as u64);
    out.put_u64(thinning.due_above as u64);
    out.put_u8(u8::try_from(thinning.stride_bits).unwrap_or(0));
    put_count(&mut out, state.views.len());
    for view in state.views.values() {
        put_view(&mut out, &view.view);
    }
    put_count(&mut out, state.topics.len());
    for topic in state.topics.values() {
        put_topic(&mut out, &topic.topic);
        for partition in &topic.partitions {
            put_partition(&mut out, partition);
        }
    }
    out
}

fn put_partition(out: &mut Vec<u8>, partition: &Partition) {
    out.put_i64(partition.log_start);
    out.put_i64(partition.next);
    put_count(out, partition.epochs.len());
    for epoch in &partition.epochs {
        out.put_i32(epoch.epoch);
        out.put_i64(epoch.start);
    }
    put_count(out, partition.producers.len());
    for (id, producer) in &partition.producers {
        out.put_i64(id.value());
        out.put_i16(producer.epoch);
        out.put_u8(u8::try_from(producer.runs.len()).unwrap_or(0));
        for run in &producer.runs {
            out.put_i32(run.first);
            out.put_i32(run.last);
            out.put_i64(run.base_offset);
            out.put_i64(run.appended.value());
        }
    }
    put_count(out, partition.spans.len());
    for span in &partition.spans {
        out.put_i64(span.base);
        out.put_i64(span.last);
        out.put_u64(span.group);
        out.put_u64(span.position);
        out.put_u64(span.end);
        out.put_u64(span.len);
        out.put_u32(span.batches);
        out.put_i64(span.own_max);
        out.put_i64(span.running_max);
        out.put_i64(span.aged_from);
    }
}

/// Reads a checkpoint. Thinning goes on where it stood if the limits are the same, else it begins anew.
pub(crate) fn decode(bytes: &[u8], limits: IndexLimits) -> Result<State, Malformed> {
    let mut reader = Reader::new(bytes);
    if reader.u8()? != VERSION {
        return Err(Malformed("the checkpoint has a version that this build does not know"));
    }
    let next_producer_id = reader.i64()?;
    let (spans_max, due_above) = (reader.u64()?, reader.u64()?);
    let stride_bits = u32::from(reader.u8()?);
    let mut views = BTreeMap::new();
    for _ in 0..reader.count(VIEW_LEN_MIN)? {
        let view = read_view(&mut reader)?;
        views.insert(view.id, ViewState { view, names: BTreeMap::new() });
    }
    let mut topics = BTreeMap::new();
    for _ in 0..reader.count(TOPIC_LEN_MIN)? {
        let topic = Arc::new(read_topic(&mut reader)?);
        let view = views.get_mut(&topic.view).ok_or(Malformed("a topic belongs to no view"))?;
        view.names.insert(collision_key(&topic.name), topic.id);
        let mut partitions = Vec::new();
        for _ in 0..topic.partitions {
            partitions.push(read_partition(&mut reader)?);
        }
        topics.insert(topic.id, TopicState { topic, partitions });
    }
    reader.end()?;
    let mut thinning = Thinning::new(limits);
    thinning.spans =
        topics.values().flat_map(|topic: &TopicState| &topic.partitions).map(|found| found.spans.len()).sum();
    thinning.stride_bits = thinning.stride_bits.max(stride_bits.min(limits.stride_bits_max));
    if spans_max == limits.spans_max as u64 {
        thinning.due_above = usize::try_from(due_above).unwrap_or(usize::MAX).max(limits.spans_max);
    }
    Ok(State { views, topics, next_producer_id, thinning: Some(thinning) })
}

fn read_partition(reader: &mut Reader<'_>) -> Result<Partition, Malformed> {
    let (log_start, next) = (reader.i64()?, reader.i64()?);
    if log_start < 0 || next < log_start {
        return Err(Malformed("a partition ends before it starts"));
    }
    let mut partition = Partition { log_start, next, ..Partition::default() };
    for _ in 0..reader.count(12)? {
        partition.epochs.push(EpochStart { epoch: reader.i32()?, start: reader.i64()? });
    }
    for _ in 0..reader.count(11)? {
        let id = ProducerId::new(reader.i64()?);
        let mut producer = Producer::new(reader.i16()?);
        let runs = usize::from(reader.u8()?);
        if runs > WINDOW {
            return Err(Malformed("a producer's window is too large"));
        }
        for _ in 0..runs {
            producer.runs.push_back(Run {
                first: reader.i32()?,
                last: reader.i32()?,
                base_offset: reader.i64()?,
                appended: Timestamp::new(reader.i64()?),
            });
        }
        partition.producers.insert(id, producer);
    }
    let spans = reader.count(SPAN_LEN)?;
    partition.spans = VecDeque::with_capacity(spans);
    let mut expected = log_start;
    for index in 0..spans {
        let span = read_span(reader)?;
        let begins_late = if index == 0 { span.last >= expected } else { span.base >= expected };
        if !begins_late || span.last < span.base || span.last >= next || span.end < span.position {
            return Err(Malformed("the index is out of order"));
        }
        expected = span.last.saturating_add(1);
        partition.len = partition.len.saturating_add(span.len);
        partition.spans.push_back(span);
    }
    Ok(partition)
}

fn read_span(reader: &mut Reader<'_>) -> Result<Span, Malformed> {
    Ok(Span {
        base: reader.i64()?,
        last: reader.i64()?,
        group: reader.u64()?,
        position: reader.u64()?,
        end: reader.u64()?,
        len: reader.u64()?,
        batches: reader.u32()?,
        own_max: reader.i64()?,
        running_max: reader.i64()?,
        aged_from: reader.i64()?,
    })
}

const VERSION: u8 = 1;
const VIEW_LEN_MIN: usize = 28;
const TOPIC_LEN_MIN: usize = 50;
const SPAN_LEN: usize = 76;

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use uuid::Uuid;

    use super::*;
    use crate::config::TopicConfig;
    use crate::entry::{BatchMeta, Entry, ProducerRun, batch_head};
    use crate::ids::{PartitionIndex, TopicId, ViewId};
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

    /// Compares with what the first version wrote. With `KOLUMN_WRITE_FIXTURES` set it is written anew instead.
    #[track_caller]
    fn check_fixture(name: &str, bytes: &[u8]) {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1").join(name);
        if std::env::var_os("KOLUMN_WRITE_FIXTURES").is_some() {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            std::fs::write(&path, hex(bytes)).expect("writable");
        }
        assert_eq!(std::fs::read_to_string(&path).expect("the fixture is there"), hex(bytes), "{name}");
    }

    #[test]
    fn version_one_is_written_and_read_as_ever() {
        let topic = Arc::new(topic(7));
        let (id, partition) = (topic.id, PartitionIndex::new(1));
        let producers = vec![ProducerId::new(3)];
        let entries = [
            Entry::ViewCreated(view()),
            Entry::TopicCreated(topic),
            Entry::LogStart { topic: id, partition, offset: 9 },
            Entry::ProducerIds { next: 1000 },
            Entry::ProducersExpired { topic: id, partition, producers },
            Entry::TopicDeleted { topic: id },
        ];
        for (entry, n) in entries.iter().zip(1..) {
            check_fixture(&format!("entry-{n}.hex"), &entry.encode());
        }
        check_fixture("batch-head.hex", &batch_head(false, id, partition, Timestamp::new(77)));
        let mut state = State::new(Some(LIMITS));
        for entry in &entries[..4] {
            state.apply(entry, None);
        }
        let run = ProducerRun { id: ProducerId::new(4), epoch: 2, first: 5, last: 6 };
        state
            .apply(&Entry::Appended(meta(id, partition, 0, 2, 300, Some(run))), Some(Place::new(4096, 8192)));
        check_fixture("checkpoint.hex", &encode(&state));
    }
}
