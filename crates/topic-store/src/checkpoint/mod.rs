//! A state as the bytes of a checkpoint, and back. The layout is in `FORMAT.md`; the journal adds the checksum.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::BufMut;

use crate::cursor::{Malformed, Reader, put_count, put_string};
use crate::entry::body;
use crate::ids::{ProducerId, Timestamp, TopicId, ViewId};
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
        body::put_view(&mut out, &view.view);
    }
    put_count(&mut out, state.topics.len());
    for topic in state.topics.values() {
        body::put_topic(&mut out, &topic.topic);
        for partition in &topic.partitions {
            put_partition(&mut out, partition);
        }
    }
    put_count(&mut out, state.views.values().map(|view| view.groups.len()).sum());
    for (id, view) in &state.views {
        for (name, group) in view.groups.iter() {
            out.put_slice(id.value().as_bytes());
            put_string(&mut out, name);
            body::put_memory(&mut out, &group.memory);
            put_count(&mut out, group.offsets.len());
            for ((topic, partition), committed) in &group.offsets {
                body::put_offset(&mut out, *topic, *partition, committed);
            }
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
    let version = reader.u8()?;
    if !(WITHOUT_GROUPS..=VERSION).contains(&version) {
        return Err(Malformed("the checkpoint has a version that this build does not know"));
    }
    let next_producer_id = reader.i64()?;
    let (spans_max, due_above) = (reader.u64()?, reader.u64()?);
    let stride_bits = u32::from(reader.u8()?);
    let mut views = BTreeMap::new();
    for _ in 0..reader.count(VIEW_LEN_MIN)? {
        let view = body::read_view(&mut reader)?;
        views.insert(view.id, ViewState::new(view));
    }
    let mut topics = BTreeMap::new();
    for _ in 0..reader.count(TOPIC_LEN_MIN)? {
        let topic = Arc::new(body::read_topic(&mut reader)?);
        let view = views.get_mut(&topic.view).ok_or(Malformed("a topic belongs to no view"))?;
        view.names.insert(collision_key(&topic.name), topic.id);
        let mut partitions = Vec::new();
        for _ in 0..topic.partitions {
            partitions.push(read_partition(&mut reader)?);
        }
        topics.insert(topic.id, TopicState { topic, partitions });
    }
    if version > WITHOUT_GROUPS {
        read_groups(&mut reader, &mut views, &topics)?;
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

fn read_groups(
    reader: &mut Reader<'_>,
    views: &mut BTreeMap<ViewId, ViewState>,
    topics: &BTreeMap<TopicId, TopicState>,
) -> Result<(), Malformed> {
    for _ in 0..reader.count(GROUP_LEN_MIN)? {
        let id = ViewId::new(reader.uuid()?);
        let view = views.get_mut(&id).ok_or(Malformed("a group belongs to no view"))?;
        let name: Arc<str> = reader.string()?.into();
        let memory = body::read_memory(reader)?;
        let mut offsets = Vec::new();
        for _ in 0..reader.count(body::OFFSET_LEN_MIN)? {
            let committed = body::read_offset(reader)?;
            let topic = topics.get(&committed.topic).filter(|topic| topic.topic.view == id);
            if topic.and_then(|topic| topic.partition(committed.partition)).is_none() {
                return Err(Malformed("an offset belongs to no partition"));
            }
            offsets.push(committed);
        }
        if view.groups.get(&name).is_some() || (memory.is_empty() && offsets.is_empty()) {
            return Err(Malformed("a group is there twice or empty"));
        }
        view.groups.store(&name, &memory);
        view.groups.commit(&name, offsets.iter());
    }
    Ok(())
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

const VERSION: u8 = 2;
/// The version before groups were kept.
const WITHOUT_GROUPS: u8 = 1;
const GROUP_LEN_MIN: usize = 26;
const VIEW_LEN_MIN: usize = 28;
const TOPIC_LEN_MIN: usize = 50;
const SPAN_LEN: usize = 76;

#[cfg(test)]
mod tests;
