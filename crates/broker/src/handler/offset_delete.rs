//! `OffsetDelete`: makes a group forget offsets, but for topics that its members are subscribed to.

use std::sync::Arc;

use kolumn_kafka_wire::ErrorCode;
use kolumn_kafka_wire::Str;
use kolumn_kafka_wire::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kolumn_kafka_wire::messages::{OffsetDeleteRequest, OffsetDeleteResponse};
use kolumn_topic_store::PartitionIndex;

use super::room;
use crate::bridge::errors;
use crate::context::Session;
use crate::coordinator::{Deletable, Refused};
use crate::dispatch::{Answer, Head, Request, Started};
use crate::observer::CloseReason;

/// A topic of the request; each partition with its offset, if it has one that could be deleted.
struct TopicPlan {
    name: Str<'static>,
    partitions: Vec<(i32, Option<Deletable>)>,
}

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: OffsetDeleteRequest<'_> = request.decode()?;
    let (group, plan) = (message.group_id.to_string(), plan(session, &message));
    let (session, head) = (Arc::clone(session), request.head);
    Ok(Started::ordered(async move {
        if group.is_empty() {
            return refuse(head, ErrorCode::INVALID_GROUP_ID);
        }
        let partitions = plan.iter().flat_map(|topic| &topic.partitions);
        let offsets: Vec<_> = partitions.filter_map(|(_, offset)| offset.clone()).collect();
        let deletion = room::until_room(
            &session,
            room::deadline(PATIENCE_MS),
            |_| session.context.groups.delete_offsets(&group, &offsets),
            Refused::lacks_room,
        );
        match deletion.await {
            Err(refused) => refuse(head, refused.code()),
            Ok((codes, commit)) => match commit.await {
                Err(_) => refuse(head, errors::GROUP_COMMIT_FAILED),
                Ok(()) => answer(head, plan, codes),
            },
        }
    }))
}

fn plan(session: &Session, message: &OffsetDeleteRequest<'_>) -> Vec<TopicPlan> {
    let (store, view) = (session.store(), session.context.view.id);
    let topics = message.topics.iter().map(|topic| {
        let found = store.topic(view, &topic.name);
        let partitions = topic.partitions.iter().map(|partition| {
            let index = partition.partition_index;
            let known = found.as_ref().filter(|topic| (0..topic.partitions).contains(&index));
            let deletable = known.map(|topic| Deletable {
                name: Arc::clone(&topic.name),
                topic: topic.id,
                partition: PartitionIndex::new(index),
            });
            (index, deletable)
        });
        TopicPlan { name: Str::from(topic.name.to_string()), partitions: partitions.collect() }
    });
    topics.collect()
}

fn refuse(head: Head, error_code: ErrorCode) -> Answer {
    head.answer(&OffsetDeleteResponse { error_code, ..OffsetDeleteResponse::default() })
}

fn answer(head: Head, plan: Vec<TopicPlan>, codes: Vec<ErrorCode>) -> Answer {
    let mut codes = codes.into_iter();
    let topics = plan.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter().map(|(partition_index, offset)| {
            let error_code = match offset {
                None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                Some(_) => codes.next().unwrap_or(ErrorCode::UNKNOWN_SERVER_ERROR),
            };
            OffsetDeleteResponsePartition { partition_index, error_code }
        });
        OffsetDeleteResponseTopic { name: topic.name, partitions: partitions.collect::<Vec<_>>().into() }
    });
    let topics = topics.collect::<Vec<_>>().into();
    head.answer(&OffsetDeleteResponse { topics, ..OffsetDeleteResponse::default() })
}

/// How long a deletion waits for room.
const PATIENCE_MS: i32 = 5_000;
