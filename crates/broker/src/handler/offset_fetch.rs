//! `OffsetFetch`: what groups have committed, of one group, or of several from version 8 on.

use std::collections::HashSet;
use std::sync::Arc;

use kolumn_kafka_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kolumn_kafka_wire::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kolumn_kafka_wire::messages::{OffsetFetchRequest, OffsetFetchResponse};
use kolumn_kafka_wire::{Array, ErrorCode, Str, Uuid};
use kolumn_topic_store::{CommittedOffset, PartitionIndex, TopicId};

use crate::bridge::ids;
use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

/// What is told of a topic.
struct Found<'a> {
    name: Str<'a>,
    wire_id: Uuid,
    error_code: ErrorCode,
    partitions: Vec<(i32, Option<CommittedOffset>)>,
}

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: OffsetFetchRequest<'_> = request.decode()?;
    let response = if request.head.version < FIRST_VERSION_WITH_GROUPS {
        let found = match &message.topics {
            None => all(session, &message.group_id),
            Some(topics) => {
                let topics =
                    topics.iter().map(|topic| (topic.name, Uuid::default(), topic.partition_indexes));
                asked(session, &message.group_id, request.head.version, topics)
            }
        };
        let topics = found.into_iter().map(topic).collect::<Vec<_>>();
        OffsetFetchResponse { topics: topics.into(), ..OffsetFetchResponse::default() }
    } else {
        // A group that is named twice would be answered twice, with many times the length of its name.
        let mut named = HashSet::new();
        let groups = message.groups.iter().filter(|asked| named.insert(asked.group_id.clone()));
        let groups = groups.map(|asked| group(session, request.head.version, asked)).collect::<Vec<_>>();
        OffsetFetchResponse { groups: groups.into(), ..OffsetFetchResponse::default() }
    };
    Ok(Started::Now(request.head.answer(&response)))
}

fn group<'a>(
    session: &Session,
    version: i16,
    group: OffsetFetchRequestGroup<'a>,
) -> OffsetFetchResponseGroup<'a> {
    let found = match &group.topics {
        None => all(session, &group.group_id),
        Some(topics) => {
            let topics = topics.iter().map(|topic| (topic.name, topic.topic_id, topic.partition_indexes));
            asked(session, &group.group_id, version, topics)
        }
    };
    let topics = found.into_iter().map(group_topic).collect::<Vec<_>>();
    OffsetFetchResponseGroup {
        group_id: group.group_id,
        topics: topics.into(),
        ..OffsetFetchResponseGroup::default()
    }
}

/// The partitions that were asked for, each once.
fn asked<'a>(
    session: &Session,
    group: &str,
    version: i16,
    topics: impl Iterator<Item = (Str<'a>, Uuid, Array<'a, i32>)>,
) -> Vec<Found<'a>> {
    let (store, view) = (session.store(), session.context.view.id);
    let mut told: HashSet<(TopicId, i32)> = HashSet::new();
    let found = topics.map(|(name, wire_id, indexes)| {
        let (topic, unknown) = if version >= FIRST_VERSION_WITH_IDS {
            (store.topic_by_id(view, ids::topic_id_from_wire(wire_id)), ErrorCode::UNKNOWN_TOPIC_ID)
        } else {
            // Of a topic that does not exist nothing is committed, which is no error.
            (store.topic(view, &name), ErrorCode::NONE)
        };
        let error_code = if topic.is_some() { ErrorCode::NONE } else { unknown };
        let partitions = indexes.iter().filter_map(|index| {
            let Some(topic) = &topic else { return Some((index, None)) };
            let committed = store.committed_offset(view, group, topic.id, PartitionIndex::new(index));
            told.insert((topic.id, index)).then_some((index, committed))
        });
        Found { name, wire_id, error_code, partitions: partitions.collect() }
    });
    found.collect()
}

/// Everything that a group has committed, by topic.
fn all(session: &Session, group: &str) -> Vec<Found<'static>> {
    let (store, view) = (session.store(), session.context.view.id);
    let mut topics: Vec<(TopicId, Found<'static>)> = Vec::new();
    for (id, partition, committed) in store.committed_offsets(view, group) {
        if topics.last().is_none_or(|(last, _)| *last != id) {
            // One that was deleted at this moment has no name any more.
            let Some(topic) = store.topic_by_id(view, id) else { continue };
            let found = Found {
                name: Str::from(Arc::clone(&topic.name)),
                wire_id: ids::topic_id_to_wire(id),
                error_code: ErrorCode::NONE,
                partitions: Vec::new(),
            };
            topics.push((id, found));
        }
        if let Some((_, found)) = topics.last_mut() {
            found.partitions.push((partition.value(), Some(committed)));
        }
    }
    let mut found: Vec<_> = topics.into_iter().map(|(_, found)| found).collect();
    found.sort_by(|one, two| one.name.cmp(&two.name));
    found
}

fn topic(found: Found<'_>) -> OffsetFetchResponseTopic<'_> {
    let error_code = found.error_code;
    let partitions = found.partitions.into_iter().map(|(partition_index, committed)| {
        let (committed_offset, committed_leader_epoch, metadata) = fields(committed);
        OffsetFetchResponsePartition {
            partition_index,
            committed_offset,
            committed_leader_epoch,
            metadata: Some(metadata),
            error_code,
            ..OffsetFetchResponsePartition::default()
        }
    });
    OffsetFetchResponseTopic {
        name: found.name,
        partitions: partitions.collect::<Vec<_>>().into(),
        ..OffsetFetchResponseTopic::default()
    }
}

fn group_topic(found: Found<'_>) -> OffsetFetchResponseTopics<'_> {
    let error_code = found.error_code;
    let partitions = found.partitions.into_iter().map(|(partition_index, committed)| {
        let (committed_offset, committed_leader_epoch, metadata) = fields(committed);
        OffsetFetchResponsePartitions {
            partition_index,
            committed_offset,
            committed_leader_epoch,
            metadata: Some(metadata),
            error_code,
            ..OffsetFetchResponsePartitions::default()
        }
    });
    OffsetFetchResponseTopics {
        name: found.name,
        topic_id: found.wire_id,
        partitions: partitions.collect::<Vec<_>>().into(),
        ..OffsetFetchResponseTopics::default()
    }
}

/// Offset, leader epoch and metadata as clients expect them, also where there are none. Some clients cannot read a null.
fn fields(committed: Option<CommittedOffset>) -> (i64, i32, Str<'static>) {
    match committed {
        None => (-1, -1, Str::default()),
        Some(committed) => (
            committed.offset.value(),
            committed.leader_epoch.map_or(-1, kolumn_topic_store::LeaderEpoch::value),
            Str::from(committed.metadata),
        ),
    }
}

const FIRST_VERSION_WITH_GROUPS: i16 = 8;
const FIRST_VERSION_WITH_IDS: i16 = 10;
