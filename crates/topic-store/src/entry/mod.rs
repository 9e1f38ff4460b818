//! The entries that a store writes to its journal, and what each changes. The layout is in `FORMAT.md`.

mod batch;
pub(crate) mod body;

use std::sync::Arc;

use bytes::{BufMut, Bytes};
use kolumn_kafka_wire::records::Batch;

use crate::config::TopicConfig;
use crate::cursor::{Malformed, Reader, put_count, put_string};
use crate::group::OffsetCommit;
use crate::ids::{PartitionIndex, ProducerId, Timestamp, TopicId, ViewId};
use crate::topic::{Topic, View};

pub(crate) use batch::{BATCH_AT, BatchMeta, ProducerRun, batch_head, sequence_after};

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
    OffsetsCommitted(GroupOffsets),
    GroupStored { group: GroupRef, memory: Bytes },
    GroupDeleted { group: GroupRef },
    OffsetsDeleted { group: GroupRef, offsets: Vec<(TopicId, PartitionIndex)> },
    PartitionsCreated { topic: TopicId, count: i32 },
    TopicConfigured { topic: TopicId, config: TopicConfig },
}

/// A group of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupRef {
    pub(crate) view: ViewId,
    pub(crate) id: Arc<str>,
}

/// Offsets that a group commits at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupOffsets {
    pub(crate) group: GroupRef,
    pub(crate) offsets: Vec<OffsetCommit>,
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
            VIEW_CREATED => Self::ViewCreated(body::read_view(&mut reader)?),
            TOPIC_CREATED => Self::TopicCreated(Arc::new(body::read_topic(&mut reader)?)),
            TOPIC_DELETED => Self::TopicDeleted { topic: TopicId::new(reader.uuid()?) },
            LOG_START => {
                let (topic, partition) = body::read_place(&mut reader)?;
                Self::LogStart { topic, partition, offset: reader.i64()? }
            }
            PRODUCER_IDS => Self::ProducerIds { next: reader.i64()? },
            PRODUCERS_EXPIRED => {
                let (topic, partition) = body::read_place(&mut reader)?;
                let count = reader.count(size_of::<i64>())?;
                let mut producers = Vec::with_capacity(count);
                for _ in 0..count {
                    producers.push(ProducerId::new(reader.i64()?));
                }
                Self::ProducersExpired { topic, partition, producers }
            }
            PARTITIONS_CREATED => Self::PartitionsCreated {
                topic: TopicId::new(reader.uuid()?),
                count: body::read_partitions(&mut reader)?,
            },
            TOPIC_CONFIGURED => Self::TopicConfigured {
                topic: TopicId::new(reader.uuid()?),
                config: body::read_config(&mut reader)?,
            },
            _ => Self::decode_group(kind, &mut reader)?,
        };
        reader.end()?;
        Ok(entry)
    }

    fn decode_group(kind: u8, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        if !matches!(kind, OFFSETS_COMMITTED | GROUP_STORED | GROUP_DELETED | OFFSETS_DELETED) {
            return Err(Malformed("an entry has a kind that this build does not know"));
        }
        let group = GroupRef::read(reader)?;
        Ok(match kind {
            OFFSETS_COMMITTED => Self::OffsetsCommitted(GroupOffsets::read(group, reader)?),
            GROUP_STORED => Self::GroupStored { group, memory: body::read_memory(reader)? },
            GROUP_DELETED => Self::GroupDeleted { group },
            _ => {
                let count = reader.count(body::PLACE_LEN)?;
                let mut offsets = Vec::with_capacity(count);
                for _ in 0..count {
                    offsets.push(body::read_place(reader)?);
                }
                Self::OffsetsDeleted { group, offsets }
            }
        })
    }

    fn decode_batch(kind: u8, mut reader: Reader<'_>) -> Result<Self, Malformed> {
        reader.u16()?;
        let (topic, partition) = body::read_place(&mut reader)?;
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
        out.put_slice(&[self.kind(), VERSION]);
        match self {
            Self::Appended(_) | Self::Carried(_) => debug_assert!(false, "batches have their own encoder"),
            Self::ViewCreated(view) => body::put_view(&mut out, view),
            Self::TopicCreated(topic) => body::put_topic(&mut out, topic),
            Self::TopicDeleted { topic } => out.put_slice(topic.value().as_bytes()),
            Self::LogStart { topic, partition, offset } => {
                body::put_place(&mut out, *topic, *partition);
                out.put_i64(*offset);
            }
            Self::ProducerIds { next } => out.put_i64(*next),
            Self::ProducersExpired { topic, partition, producers } => {
                body::put_place(&mut out, *topic, *partition);
                put_count(&mut out, producers.len());
                for id in producers {
                    out.put_i64(id.value());
                }
            }
            Self::OffsetsCommitted(offsets) => offsets.put(&mut out),
            Self::GroupStored { group, memory } => {
                group.put(&mut out);
                body::put_memory(&mut out, memory);
            }
            Self::GroupDeleted { group } => group.put(&mut out),
            Self::OffsetsDeleted { group, offsets } => {
                group.put(&mut out);
                put_count(&mut out, offsets.len());
                for (topic, partition) in offsets {
                    body::put_place(&mut out, *topic, *partition);
                }
            }
            Self::PartitionsCreated { topic, count } => {
                out.put_slice(topic.value().as_bytes());
                out.put_i32(*count);
            }
            Self::TopicConfigured { topic, config } => {
                out.put_slice(topic.value().as_bytes());
                body::put_config(&mut out, config);
            }
        }
        out
    }

    /// Bytes of memory that it holds besides itself, about.
    pub(crate) fn held_len(&self) -> usize {
        match self {
            Self::OffsetsCommitted(GroupOffsets { group, offsets }) => {
                let metadata = offsets.iter().map(|new| new.committed.metadata.len()).sum::<usize>();
                group.id.len() + metadata + offsets.len() * size_of::<OffsetCommit>()
            }
            Self::GroupStored { group, memory } => group.id.len() + memory.len(),
            Self::GroupDeleted { group } => group.id.len(),
            Self::OffsetsDeleted { group, offsets } => {
                group.id.len() + offsets.len() * size_of::<(TopicId, PartitionIndex)>()
            }
            Self::ProducersExpired { producers, .. } => producers.len() * size_of::<ProducerId>(),
            _ => 0,
        }
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::ViewCreated(_) => VIEW_CREATED,
            Self::TopicCreated(_) => TOPIC_CREATED,
            Self::TopicDeleted { .. } => TOPIC_DELETED,
            Self::Appended(_) => APPENDED,
            Self::LogStart { .. } => LOG_START,
            Self::ProducerIds { .. } => PRODUCER_IDS,
            Self::ProducersExpired { .. } => PRODUCERS_EXPIRED,
            Self::Carried(_) => CARRIED,
            Self::OffsetsCommitted(_) => OFFSETS_COMMITTED,
            Self::GroupStored { .. } => GROUP_STORED,
            Self::GroupDeleted { .. } => GROUP_DELETED,
            Self::OffsetsDeleted { .. } => OFFSETS_DELETED,
            Self::PartitionsCreated { .. } => PARTITIONS_CREATED,
            Self::TopicConfigured { .. } => TOPIC_CONFIGURED,
        }
    }
}

impl GroupRef {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_slice(self.view.value().as_bytes());
        put_string(out, &self.id);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { view: ViewId::new(reader.uuid()?), id: reader.string()?.into() })
    }
}

impl GroupOffsets {
    fn put(&self, out: &mut Vec<u8>) {
        self.group.put(out);
        put_count(out, self.offsets.len());
        for new in &self.offsets {
            body::put_offset(out, new.topic, new.partition, &new.committed);
        }
    }

    fn read(group: GroupRef, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut offsets = Vec::new();
        for _ in 0..reader.count(body::OFFSET_LEN_MIN)? {
            offsets.push(body::read_offset(reader)?);
        }
        Ok(Self { group, offsets })
    }
}

const VERSION: u8 = 1;
const VIEW_CREATED: u8 = 1;
const TOPIC_CREATED: u8 = 2;
const TOPIC_DELETED: u8 = 3;
const APPENDED: u8 = 4;
const LOG_START: u8 = 5;
const PRODUCER_IDS: u8 = 6;
const PRODUCERS_EXPIRED: u8 = 7;
const CARRIED: u8 = 8;
const OFFSETS_COMMITTED: u8 = 9;
const GROUP_STORED: u8 = 10;
const GROUP_DELETED: u8 = 11;
const OFFSETS_DELETED: u8 = 12;
const PARTITIONS_CREATED: u8 = 13;
const TOPIC_CONFIGURED: u8 = 14;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::group::CommittedOffset;
    use crate::ids::{LeaderEpoch, Offset};

    #[track_caller]
    fn check(entry: &Entry) {
        let bytes = entry.encode();
        assert_eq!(Entry::decode(&bytes).as_ref(), Ok(entry));
        for len in 0..bytes.len() {
            assert!(Entry::decode(&bytes[..len]).is_err(), "cut at {len}");
        }
        assert!(Entry::decode(&[&bytes[..], &[0]].concat()).is_err(), "one byte too many");
        // Damage that the journal's checksum does not see has to be survived, and must not promise memory.
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut flipped = bytes.clone();
                flipped[at] ^= flip;
                let _ = Entry::decode(&flipped);
            }
        }
    }

    #[test]
    fn entries_survive_a_round_trip_and_no_cut_one_is_accepted() {
        let topic = TopicId::new(Uuid::from_u128(7));
        let view = ViewId::new(Uuid::from_u128(8));
        let partition = PartitionIndex::new(3);
        let config = || TopicConfig::parse([("retention.ms", "9")]).expect("legal");
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
            config: config(),
            created: Timestamp::new(6),
        })));
        check(&Entry::TopicDeleted { topic });
        check(&Entry::LogStart { topic, partition, offset: 77 });
        check(&Entry::ProducerIds { next: 1000 });
        let producers = vec![ProducerId::new(1), ProducerId::new(2)];
        check(&Entry::ProducersExpired { topic, partition, producers });
        check(&Entry::PartitionsCreated { topic, count: 9 });
        check(&Entry::TopicConfigured { topic, config: config() });
        check(&Entry::TopicConfigured { topic, config: TopicConfig::default() });
    }

    #[test]
    fn entries_of_groups_survive_a_round_trip_and_no_cut_one_is_accepted() {
        let place = (TopicId::new(Uuid::from_u128(7)), PartitionIndex::new(3));
        let group = || GroupRef { view: ViewId::new(Uuid::from_u128(8)), id: "café".into() };
        let commit = |leader_epoch, metadata: &str| OffsetCommit {
            topic: place.0,
            partition: place.1,
            committed: CommittedOffset {
                offset: Offset::new(77),
                leader_epoch,
                metadata: metadata.into(),
                committed: Timestamp::new(9),
            },
        };
        let offsets = vec![commit(None, ""), commit(Some(LeaderEpoch::new(5)), "naïve \u{0} \"")];
        check(&Entry::OffsetsCommitted(GroupOffsets { group: group(), offsets }));
        check(&Entry::OffsetsCommitted(GroupOffsets { group: group(), offsets: Vec::new() }));
        check(&Entry::GroupStored { group: group(), memory: Bytes::from_static(b"remember") });
        check(&Entry::GroupStored { group: group(), memory: Bytes::new() });
        check(&Entry::GroupDeleted { group: group() });
        check(&Entry::OffsetsDeleted { group: group(), offsets: vec![place, place] });
    }

    #[test]
    fn a_number_of_partitions_that_no_setting_allows_is_refused() {
        let topic = TopicId::new(Uuid::from_u128(7));
        for (count, is_legal) in
            [(i32::MIN, false), (0, false), (1, true), (1_000_000, true), (1_000_001, false)]
        {
            let bytes = Entry::PartitionsCreated { topic, count }.encode();
            assert_eq!(Entry::decode(&bytes).is_ok(), is_legal, "{count}");
        }
    }

    #[test]
    fn an_unknown_kind_or_version_is_refused_by_name() {
        assert!(Entry::decode(&[99, VERSION]).expect_err("kind").to_string().contains("kind"));
        assert!(Entry::decode(&[0, VERSION]).expect_err("kind").to_string().contains("kind"));
        assert!(Entry::decode(&[LOG_START, 9]).expect_err("version").to_string().contains("version"));
    }
}
