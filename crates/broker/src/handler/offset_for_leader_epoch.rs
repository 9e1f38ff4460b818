//! `OffsetForLeaderEpoch`: where the records of an epoch end, so that a consumer sees whether what it read was lost.

use std::sync::Arc;

use kolumn_kafka_wire::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kolumn_kafka_wire::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kolumn_kafka_wire::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};
use kolumn_kafka_wire::{Array, ErrorCode};
use kolumn_topic_store::{LeaderEpoch, PartitionIndex, ReadError, TopicId};

use super::list_offsets::check_epoch;
use crate::bridge::errors;
use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: OffsetForLeaderEpochRequest<'_> = request.decode()?;
    let topics = message.topics.iter().map(|topic| {
        let id = session.store().topic(session.context.view.id, &topic.topic).map(|topic| topic.id);
        OffsetForLeaderTopicResult {
            topic: topic.topic,
            partitions: ends(session, id, &topic.partitions),
            ..OffsetForLeaderTopicResult::default()
        }
    });
    let topics = topics.collect();
    Ok(Started::Now(
        request
            .head
            .answer(&OffsetForLeaderEpochResponse { topics, ..OffsetForLeaderEpochResponse::default() }),
    ))
}

fn ends(
    session: &Session,
    topic: Option<TopicId>,
    asked: &Array<'_, OffsetForLeaderPartition<'_>>,
) -> Array<'static, EpochEndOffset<'static>> {
    let ends = asked.iter().map(|asked| {
        let mut end = EpochEndOffset { partition: asked.partition, ..EpochEndOffset::default() };
        match end_of(session, topic, &asked) {
            Ok(found) => (end.leader_epoch, end.end_offset) = found.unwrap_or(UNDEFINED),
            Err(error_code) => end.error_code = error_code,
        }
        end
    });
    ends.collect()
}

/// The greatest epoch up to the one that was asked for, and the offset after its last record.
fn end_of(
    session: &Session,
    topic: Option<TopicId>,
    asked: &OffsetForLeaderPartition<'_>,
) -> Result<Option<(i32, i64)>, ErrorCode> {
    let code = |error: ReadError| errors::read_code(error.kind(), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let topic = topic.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let partition = PartitionIndex::new(asked.partition);
    let offsets = session.store().offsets(topic, partition).map_err(code)?;
    check_epoch(asked.current_leader_epoch, &offsets)?;
    let epoch = LeaderEpoch::new(asked.leader_epoch);
    let end = session.store().epoch_end(topic, partition, epoch).map_err(code)?;
    Ok(end.map(|(epoch, offset)| (epoch.value(), offset.value())))
}

const UNDEFINED: (i32, i64) = (-1, -1);
