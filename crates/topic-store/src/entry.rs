//! The entries that a store writes to its journal, and what each changes. The layout is in `FORMAT.md`.

use std::sync::Arc;

use bytes::BufMut;
use kolumn_kafka_wire::records::Batch;

use crate::config::TopicConfig;
use crate::cursor::{Malformed, Reader, put_count, put_string};
use crate::ids::{PartitionIndex, ProducerId, Timestamp, TopicId, ViewId};
use crate::topic::{Topic, View};

/// One entry, decoded: a decision with its outcome, so that applying it decides nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    ViewCreated(View),
    TopicCreated(Arc<Topic>),
    TopicDeleted { topic: TopicId },
    Appended(BatchMeta),
    LogStart { topic: TopicId, partition: PartitionIndex, offset: i64 },
    ProducerIds { next: i64 },
    ProducersExpired { topic: TopicId, partition: PartitionIndex, producers: Vec<ProducerId> },
    Carried(BatchMeta),
}

/// What the state needs to know of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchMeta {
    pub(crate) topic: TopicId,
    pub(crate) partition: PartitionIndex,
    /// The store's clock when it was appended.
    pub(crate) appended: Timestamp,
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) producer: Option<ProducerRun>,
    pub(crate) len: usize,
}

/// The producer's side of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProducerRun {
    pub(crate) id: ProducerId,
    pub(crate) epoch: i16,
    pub(crate) first: i32,
    pub(crate) last: i32,
}

impl ProducerRun {
    /// The run of a batch of `count` records; `None` if the batch has no producer.
    pub(crate) fn of(batch: &Batch<'_>) -> Option<Self> {
        if batch.producer_id() < 0 {
            return None;
        }
        let first = batch.base_sequence();
        Some(Self {
            id: ProducerId::new(batch.producer_id()),
            epoch: batch.producer_epoch(),
            first,
            last: sequence_after(first, batch.last_offset_delta()),
        })
    }
}

/// The sequence `count` steps on: after 2^31-1 comes 0.
pub(crate) const fn sequence_after(sequence: i32, count: i32) -> i32 {
    match sequence.checked_add(count) {
        Some(next) => next,
        None => count.wrapping_sub(i32::MAX.wrapping_sub(sequence)).wrapping_sub(1),
    }
}

impl BatchMeta {
    /// Reads what the state needs from the bytes of a batch as it is stored.
    pub(crate) fn of(
        topic: TopicId,
        partition: PartitionIndex,
        appended: Timestamp,
        batch: &Batch<'_>,
    ) -> Self {
        Self {
            topic,
            partition,
            appended,
            base_offset: batch.base_offset(),
            last_offset: batch.last_offset(),
            max_timestamp: batch.max_timestamp(),
            leader_epoch: batch.partition_leader_epoch(),
            producer: ProducerRun::of(batch),
            len: batch.bytes().len(),
        }
    }
}

impl Entry {
    /// Reads one entry. Batches are not checked beyond their header: the journal's checksum covers them.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let kind = reader.u8()?;
        if reader.u8()? != VERSION {
            return Err(Malformed("an entry has a version that this build does not know"));
        }
        let entry = match kind {
            APPENDED | CARRIED => return Self::decode_batch(kind, reader),
            VIEW_CREATED => Self::ViewCreated(read_view(&mut reader)?),
            TOPIC_CREATED => Self::TopicCreated(Arc::new(read_topic(&mut reader)?)),
            TOPIC_DELETED => Self::TopicDeleted { topic: TopicId::new(reader.uuid()?) },
            LOG_START => Self::LogStart {
                topic: TopicId::new(reader.uuid()?),
                partition: PartitionIndex::new(reader.i32()?),
                offset: reader.i64()?,
            },
            PRODUCER_IDS => Self::ProducerIds { next: reader.i64()? },
            PRODUCERS_EXPIRED => {
                let topic = TopicId::new(reader.uuid()?);
                let partition = PartitionIndex::new(reader.i32()?);
                let count = reader.count(size_of::<i64>())?;
                let mut producers = Vec::with_capacity(count);
                for _ in 0..count {
                    producers.push(ProducerId::new(reader.i64()?));
                }
                Self::ProducersExpired { topic, partition, producers }
            }
            _ => return Err(Malformed("an entry has a kind that this build does not know")),
        };
        reader.end()?;
        Ok(entry)
    }

    fn decode_batch(kind: u8, mut reader: Reader<'_>) -> Result<Self, Malformed> {
        reader.u16()?;
        let topic = TopicId::new(reader.uuid()?);
        let partition = PartitionIndex::new(reader.i32()?);
        let appended = Timestamp::new(reader.i64()?);
        let (batch, rest) =
            Batch::parse(reader.rest()).map_err(|_| Malformed("a batch has a broken header"))?;
        Reader::new(rest).end()?;
        let meta = BatchMeta::of(topic, partition, appended, &batch);
        Ok(if kind == APPENDED { Self::Appended(meta) } else { Self::Carried(meta) })
    }

    /// The bytes of an entry that is not a batch; batches are written by [`batch_head`].
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        match self {
            Self::Appended(_) | Self::Carried(_) => debug_assert!(false, "batches have their own encoder"),
            Self::ViewCreated(view) => {
                out.put_slice(&[VIEW_CREATED, VERSION]);
                put_view(&mut out, view);
            }
            Self::TopicCreated(topic) => {
                out.put_slice(&[TOPIC_CREATED, VERSION]);
                put_topic(&mut out, topic);
            }
            Self::TopicDeleted { topic } => {
                out.put_slice(&[TOPIC_DELETED, VERSION]);
                out.put_slice(topic.value().as_bytes());
            }
            Self::LogStart { topic, partition, offset } => {
                out.put_slice(&[LOG_START, VERSION]);
                out.put_slice(topic.value().as_bytes());
                out.put_i32(partition.value());
                out.put_i64(*offset);
            }
            Self::ProducerIds { next } => {
                out.put_slice(&[PRODUCER_IDS, VERSION]);
                out.put_i64(*next);
            }
            Self::ProducersExpired { topic, partition, producers } => {
                out.put_slice(&[PRODUCERS_EXPIRED, VERSION]);
                out.put_slice(topic.value().as_bytes());
                out.put_i32(partition.value());
                put_count(&mut out, producers.len());
                for id in producers {
                    out.put_i64(id.value());
                }
            }
        }
        out
    }
}

/// What stands before a batch in its entry.
///
/// ```text
/// | kind 1 | version 1 | zero 2 | topic 16 | partition 4 | appended 8 | batch ... |
/// ```
pub(crate) fn batch_head(
    carried: bool,
    topic: TopicId,
    partition: PartitionIndex,
    appended: Timestamp,
) -> [u8; BATCH_AT] {
    let mut head = [0_u8; BATCH_AT];
    {
        let mut out = head.as_mut_slice();
        out.put_slice(&[if carried { CARRIED } else { APPENDED }, VERSION, 0, 0]);
        out.put_slice(topic.value().as_bytes());
        out.put_i32(partition.value());
        out.put_i64(appended.value());
    }
    head
}

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
    put_count(out, topic.config.given().count());
    for (key, value) in topic.config.given() {
        put_string(out, key);
        put_string(out, value);
    }
}

pub(crate) fn read_topic(reader: &mut Reader<'_>) -> Result<Topic, Malformed> {
    let (id, view) = (TopicId::new(reader.uuid()?), ViewId::new(reader.uuid()?));
    let created = Timestamp::new(reader.i64()?);
    let partitions = reader.i32()?;
    if !(1..=PARTITIONS_LIMIT).contains(&partitions) {
        return Err(Malformed("a topic's number of partitions is out of range"));
    }
    let name = reader.string()?.into();
    let mut pairs = Vec::new();
    for _ in 0..reader.count(4)? {
        pairs.push((reader.string()?, reader.string()?));
    }
    let config =
        TopicConfig::parse(pairs).map_err(|_| Malformed("a topic has a setting that this build refuses"))?;
    Ok(Topic { id, view, name, partitions, config, created })
}

/// Where the batch begins in its entry.
pub(crate) const BATCH_AT: usize = 32;

/// More partitions than any setting allows: what lies above is damage.
pub(crate) const PARTITIONS_LIMIT: i32 = 1_000_000;

const VERSION: u8 = 1;
const VIEW_CREATED: u8 = 1;
const TOPIC_CREATED: u8 = 2;
const TOPIC_DELETED: u8 = 3;
const APPENDED: u8 = 4;
const LOG_START: u8 = 5;
const PRODUCER_IDS: u8 = 6;
const PRODUCERS_EXPIRED: u8 = 7;
const CARRIED: u8 = 8;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[track_caller]
    fn check(entry: &Entry) {
        let bytes = entry.encode();
        assert_eq!(Entry::decode(&bytes).as_ref(), Ok(entry));
        for len in 0..bytes.len() {
            assert!(Entry::decode(&bytes[..len]).is_err(), "cut at {len}");
        }
    }

    #[test]
    fn entries_survive_a_round_trip_and_no_cut_one_is_accepted() {
        let topic = TopicId::new(Uuid::from_u128(7));
        let view = ViewId::new(Uuid::from_u128(8));
        let partition = PartitionIndex::new(3);
        check(&Entry::ViewCreated(View {
            id: view,
            bucket: "kafka".into(),
            cluster_id: "c".into(),
            created: Timestamp::new(5),
        }));
        check(&Entry::TopicCreated(Arc::new(Topic {
            id: topic,
            view,
            name: "orders".into(),
            partitions: 4,
            config: TopicConfig::parse([("retention.ms", "9")]).expect("legal"),
            created: Timestamp::new(6),
        })));
        check(&Entry::TopicDeleted { topic });
        check(&Entry::LogStart { topic, partition, offset: 77 });
        check(&Entry::ProducerIds { next: 1000 });
        let producers = vec![ProducerId::new(1), ProducerId::new(2)];
        check(&Entry::ProducersExpired { topic, partition, producers });
    }

    #[test]
    fn sequences_wrap_from_the_greatest_number_to_zero() {
        assert_eq!(sequence_after(0, 4), 4);
        assert_eq!(sequence_after(i32::MAX, 0), i32::MAX);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 2, 5), 2);
    }

    #[test]
    fn an_unknown_kind_or_version_is_refused_by_name() {
        assert!(Entry::decode(&[99, VERSION]).expect_err("kind").to_string().contains("kind"));
        assert!(Entry::decode(&[LOG_START, 9]).expect_err("version").to_string().contains("version"));
    }
}
