//! The parts of entries that checkpoints hold too: views, topics, settings, groups' offsets.

use bytes::{BufMut, Bytes};

use crate::config::TopicConfig;
use crate::cursor::{Malformed, Reader, put_count, put_string};
use crate::group::{CommittedOffset, OffsetCommit};
use crate::ids::{LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicId, ViewId};
use crate::topic::{Topic, View};

pub(crate) fn put_view(out: &mut Vec<u8>, view: &View) {
    out.put_slice(view.id.value().as_bytes());
    out.put_i64(view.created.value());
    put_string(out, &view.bucket);
    put_string(out, &view.cluster_id);
}

pub(crate) fn read_view(reader: &mut Reader<'_>) -> Result<View, Malformed> {
    Ok(View {
        id: ViewId::new(reader.uuid()?),
        created: Timestamp::new(reader.i64()?),
        bucket: reader.string()?.into(),
        cluster_id: reader.string()?.into(),
    })
}

pub(crate) fn put_topic(out: &mut Vec<u8>, topic: &Topic) {
    out.put_slice(topic.id.value().as_bytes());
    out.put_slice(topic.view.value().as_bytes());
    out.put_i64(topic.created.value());
    out.put_i32(topic.partitions);
    put_string(out, &topic.name);
    put_config(out, &topic.config);
}

pub(crate) fn read_topic(reader: &mut Reader<'_>) -> Result<Topic, Malformed> {
    let (id, view) = (TopicId::new(reader.uuid()?), ViewId::new(reader.uuid()?));
    let created = Timestamp::new(reader.i64()?);
    let partitions = read_partitions(reader)?;
    let name = reader.string()?.into();
    let config = read_config(reader)?;
    Ok(Topic { id, view, name, partitions, config, created })
}

pub(super) fn read_partitions(reader: &mut Reader<'_>) -> Result<i32, Malformed> {
    let partitions = reader.i32()?;
    if !(1..=PARTITIONS_LIMIT).contains(&partitions) {
        return Err(Malformed("a topic's number of partitions is out of range"));
    }
    Ok(partitions)
}

pub(super) fn put_config(out: &mut Vec<u8>, config: &TopicConfig) {
    put_count(out, config.given().count());
    for (key, value) in config.given() {
        put_string(out, key);
        put_string(out, value);
    }
}

pub(super) fn read_config(reader: &mut Reader<'_>) -> Result<TopicConfig, Malformed> {
    let mut pairs = Vec::new();
    for _ in 0..reader.count(4)? {
        pairs.push((reader.string()?, reader.string()?));
    }
    TopicConfig::parse(pairs).map_err(|_| Malformed("a topic has a setting that this build refuses"))
}

pub(crate) fn put_memory(out: &mut Vec<u8>, memory: &Bytes) {
    put_count(out, memory.len());
    out.put_slice(memory);
}

/// A copy: what it was read from is a block of the journal or a whole checkpoint.
pub(crate) fn read_memory(reader: &mut Reader<'_>) -> Result<Bytes, Malformed> {
    reader.bytes().map(Bytes::copy_from_slice)
}

pub(crate) fn put_place(out: &mut Vec<u8>, topic: TopicId, partition: PartitionIndex) {
    out.put_slice(topic.value().as_bytes());
    out.put_i32(partition.value());
}

pub(crate) fn read_place(reader: &mut Reader<'_>) -> Result<(TopicId, PartitionIndex), Malformed> {
    Ok((TopicId::new(reader.uuid()?), PartitionIndex::new(reader.i32()?)))
}

pub(crate) fn put_offset(
    out: &mut Vec<u8>,
    topic: TopicId,
    partition: PartitionIndex,
    committed: &CommittedOffset,
) {
    put_place(out, topic, partition);
    out.put_i64(committed.offset.value());
    out.put_i32(committed.leader_epoch.map_or(NO_EPOCH, LeaderEpoch::value));
    out.put_i64(committed.committed.value());
    put_string(out, &committed.metadata);
}

pub(crate) fn read_offset(reader: &mut Reader<'_>) -> Result<OffsetCommit, Malformed> {
    let (topic, partition) = read_place(reader)?;
    let offset = Offset::new(reader.i64()?);
    let leader_epoch = Some(LeaderEpoch::new(reader.i32()?)).filter(|epoch| epoch.value() != NO_EPOCH);
    let committed = Timestamp::new(reader.i64()?);
    let metadata = reader.string()?.into();
    let committed = CommittedOffset { offset, leader_epoch, metadata, committed };
    Ok(OffsetCommit { topic, partition, committed })
}

/// More partitions than any setting allows: what lies above is damage.
const PARTITIONS_LIMIT: i32 = 1_000_000;
const NO_EPOCH: i32 = -1;
pub(crate) const PLACE_LEN: usize = 20;
pub(crate) const OFFSET_LEN_MIN: usize = PLACE_LEN + 22;
