//! `OffsetCommit`: written in the order of requests, answered when durable.

use std::sync::Arc;

use kolumn_kafka_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kolumn_kafka_wire::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kolumn_kafka_wire::messages::{OffsetCommitRequest, OffsetCommitResponse};
use kolumn_kafka_wire::{ErrorCode, Str, Uuid};
use kolumn_topic_store::{
    Commit, CommittedOffset, LeaderEpoch, Offset, OffsetCommit, PartitionIndex, Timestamp, Topic,
};

use super::room;
use crate::bridge::{errors, ids};
use crate::context::Session;
use crate::coordinator::Refused;
use crate::dispatch::{Answer, Head, Request, Started};
use crate::group::MemberRef;
use crate::observer::CloseReason;

/// What a request wants committed.
struct Plan {
    group: String,
    member_id: String,
    instance_id: Option<String>,
    generation: i32,
    /// The code for a member of a group that does not exist.
    unknown: ErrorCode,
    topics: Vec<TopicPlan>,
}

struct TopicPlan {
    name: Str<'static>,
    wire_id: Uuid,
    partitions: Vec<(i32, Result<OffsetCommit, ErrorCode>)>,
}

/// The writes of a plan: one for all of it, or one for each offset that may be committed.
enum Writes {
    All(Result<Commit<()>, ErrorCode>),
    Each(Vec<Result<Commit<()>, ErrorCode>>),
}

pub(crate) fn start(
    session: &Arc<Session>,
    request: &Request,
    now: Timestamp,
) -> Result<Started, CloseReason> {
    let head = request.head;
    let plan = Plan::new(session, request, now)?;
    if plan.offsets().next().is_none() {
        return Ok(Started::Now(plan.answer(head, &mut std::iter::empty())));
    }
    Ok(match plan.commit(session) {
        Err(refused) if refused.lacks_room() => {
            let session = Arc::clone(session);
            Started::Ordered(Box::pin(async move {
                let deadline = room::deadline(PATIENCE_MS);
                let attempt =
                    room::until_room(&session, deadline, |_| plan.commit(&session), Refused::lacks_room);
                let writes = attempt.await.unwrap_or_else(|refused| Writes::All(Err(refused.code())));
                Started::later(plan.finish(head, writes))
            }))
        }
        Err(refused) => Started::later(plan.finish(head, Writes::All(Err(refused.code())))),
        Ok(writes) => Started::later(plan.finish(head, writes)),
    })
}

impl Plan {
    fn new(session: &Session, request: &Request, now: Timestamp) -> Result<Self, CloseReason> {
        let message: OffsetCommitRequest<'_> = request.decode()?;
        let version = request.head.version;
        let topics = message.topics.iter().map(|topic| {
            let found = find_topic(session, version, &topic);
            let partitions = topic.partitions.iter().map(|partition| {
                let offset = found.as_deref().map_err(|code| *code);
                let offset = offset.and_then(|topic| offset_commit(session, topic, &partition, now));
                (partition.partition_index, offset)
            });
            TopicPlan {
                name: Str::from(topic.name.to_string()),
                wire_id: topic.topic_id,
                partitions: partitions.collect(),
            }
        });
        Ok(Self {
            group: message.group_id.to_string(),
            member_id: message.member_id.to_string(),
            instance_id: message.group_instance_id.as_ref().map(ToString::to_string),
            generation: message.generation_id_or_member_epoch,
            unknown: if version >= FIRST_VERSION_WITH_UNKNOWN_GROUP {
                ErrorCode::GROUP_ID_NOT_FOUND
            } else {
                ErrorCode::ILLEGAL_GENERATION
            },
            topics: topics.collect(),
        })
    }

    fn offsets(&self) -> impl Iterator<Item = &OffsetCommit> {
        self.topics.iter().flat_map(|topic| &topic.partitions).filter_map(|(_, offset)| offset.as_ref().ok())
    }

    /// Writes all offsets at once, or each by itself if one of their topics has just gone.
    fn commit(&self, session: &Session) -> Result<Writes, Refused> {
        match self.write(session, self.offsets().cloned().collect()) {
            Err(refused) if refused.lacks_topic() => {
                let each = self.offsets().map(|offset| self.write(session, vec![offset.clone()]));
                Ok(Writes::Each(each.map(|write| write.map_err(|refused| refused.code())).collect()))
            }
            written => Ok(Writes::All(Ok(written?))),
        }
    }

    fn write(&self, session: &Session, offsets: Vec<OffsetCommit>) -> Result<Commit<()>, Refused> {
        let member = MemberRef {
            member_id: &self.member_id,
            instance_id: self.instance_id.as_deref(),
            generation: self.generation,
        };
        session.context.groups.commit(&self.group, &member, self.unknown, offsets)
    }

    async fn finish(self, head: Head, writes: Writes) -> Answer {
        match writes {
            Writes::All(write) => self.answer(head, &mut std::iter::repeat(settled(write).await)),
            Writes::Each(writes) => {
                let mut codes = Vec::with_capacity(writes.len());
                for write in writes {
                    codes.push(settled(write).await);
                }
                self.answer(head, &mut codes.into_iter())
            }
        }
    }

    /// Answers with the next of these codes for each offset that was written.
    fn answer(self, head: Head, codes: &mut dyn Iterator<Item = ErrorCode>) -> Answer {
        let topics = self.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.into_iter().map(|(partition_index, offset)| {
                let error_code = match offset {
                    Ok(_) => codes.next().unwrap_or(ErrorCode::UNKNOWN_SERVER_ERROR),
                    Err(code) => code,
                };
                OffsetCommitResponsePartition {
                    partition_index,
                    error_code,
                    ..OffsetCommitResponsePartition::default()
                }
            });
            OffsetCommitResponseTopic {
                name: topic.name,
                topic_id: topic.wire_id,
                partitions: partitions.collect::<Vec<_>>().into(),
                ..OffsetCommitResponseTopic::default()
            }
        });
        let topics = topics.collect::<Vec<_>>().into();
        head.answer(&OffsetCommitResponse { topics, ..OffsetCommitResponse::default() })
    }
}

fn find_topic(
    session: &Session,
    version: i16,
    topic: &OffsetCommitRequestTopic<'_>,
) -> Result<Arc<Topic>, ErrorCode> {
    let (store, view) = (session.store(), session.context.view.id);
    if version >= FIRST_VERSION_WITH_IDS {
        let found = store.topic_by_id(view, ids::topic_id_from_wire(topic.topic_id));
        found.ok_or(ErrorCode::UNKNOWN_TOPIC_ID)
    } else {
        store.topic(view, &topic.name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    }
}

fn offset_commit(
    session: &Session,
    topic: &Topic,
    partition: &OffsetCommitRequestPartition<'_>,
    now: Timestamp,
) -> Result<OffsetCommit, ErrorCode> {
    let index = partition.partition_index;
    if !(0..topic.partitions).contains(&index) {
        return Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    }
    let metadata = partition.committed_metadata.as_deref().unwrap_or_default();
    if metadata.len() > session.context.validated.settings.groups.offset_metadata_len_max {
        return Err(ErrorCode::OFFSET_METADATA_TOO_LARGE);
    }
    let leader_epoch = Some(partition.committed_leader_epoch).filter(|epoch| *epoch >= 0);
    let committed = CommittedOffset {
        offset: Offset::new(partition.committed_offset),
        leader_epoch: leader_epoch.map(LeaderEpoch::new),
        metadata: metadata.into(),
        committed: now,
    };
    Ok(OffsetCommit { topic: topic.id, partition: PartitionIndex::new(index), committed })
}

async fn settled(write: Result<Commit<()>, ErrorCode>) -> ErrorCode {
    match write {
        Err(code) => code,
        Ok(commit) => commit.await.map_or(errors::GROUP_COMMIT_FAILED, |()| ErrorCode::NONE),
    }
}

/// How long a commit waits for room, as long as Kafka gives it.
const PATIENCE_MS: i32 = 5_000;
const FIRST_VERSION_WITH_UNKNOWN_GROUP: i16 = 9;
const FIRST_VERSION_WITH_IDS: i16 = 10;
