//! `ListOffsets`: the ends of partitions, and the first record from a moment on.

use std::sync::Arc;

use kolumn_kafka_wire::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kolumn_kafka_wire::messages::{ListOffsetsRequest, ListOffsetsResponse};
use kolumn_kafka_wire::{ErrorCode, Str};
use kolumn_topic_store::{PartitionIndex, PartitionOffsets, ReadError, Timestamp, TopicId};

use crate::bridge::errors;
use crate::context::Session;
use crate::dispatch::{Answer, Head, Request, Started};
use crate::observer::CloseReason;

/// What is asked of one partition.
#[derive(Debug, Clone, Copy)]
struct Question {
    /// `None` if the topic is unknown.
    topic: Option<TopicId>,
    partition: i32,
    current_leader_epoch: i32,
    timestamp: i64,
    read_committed: bool,
}

/// What is answered: offset, timestamp, leader epoch.
type Place = (i64, i64, i32);

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: ListOffsetsRequest<'_> = request.decode()?;
    let topics = questions(session, &message);
    let needs_disk = topics.iter().flat_map(|(_, questions)| questions).any(Question::needs_disk);
    let (session, head) = (Arc::clone(session), request.head);
    if !needs_disk {
        return Ok(Started::Now(answer(&session, head, topics)));
    }
    // Looking a moment up reads batches.
    Ok(Started::later(async move {
        let answered = tokio::task::spawn_blocking(move || answer(&session, head, topics)).await;
        answered.unwrap_or_else(|error| Err(CloseReason::Answer(error.to_string())))
    }))
}

fn questions(session: &Session, message: &ListOffsetsRequest<'_>) -> Vec<(String, Vec<Question>)> {
    let (store, view) = (session.store(), session.context.view.id);
    let questions = message.topics.iter().map(|topic| {
        let id = store.topic(view, &topic.name).map(|topic| topic.id);
        let questions = topic.partitions.iter().map(|partition| Question {
            topic: id,
            partition: partition.partition_index,
            current_leader_epoch: partition.current_leader_epoch,
            timestamp: partition.timestamp,
            read_committed: message.isolation_level == READ_COMMITTED,
        });
        (topic.name.to_string(), questions.collect())
    });
    questions.collect()
}

fn answer(session: &Session, head: Head, topics: Vec<(String, Vec<Question>)>) -> Answer {
    let topics = topics.into_iter().map(|(name, questions)| {
        let partitions = questions.iter().map(|question| {
            let mut response = ListOffsetsPartitionResponse {
                partition_index: question.partition,
                ..ListOffsetsPartitionResponse::default()
            };
            match question.answer(session, head.version) {
                // The epoch of a moment without a record is unknown, and its field has no other default.
                Ok(place) => (response.offset, response.timestamp, response.leader_epoch) = place,
                Err(error_code) => response.error_code = error_code,
            }
            if head.version < FIRST_VERSION_WITH_EPOCH {
                response.leader_epoch = -1;
            }
            response
        });
        let partitions: Vec<_> = partitions.collect();
        ListOffsetsTopicResponse {
            name: Str::from(name),
            partitions: partitions.into(),
            ..ListOffsetsTopicResponse::default()
        }
    });
    let topics: Vec<_> = topics.collect();
    head.answer(&ListOffsetsResponse { topics: topics.into(), ..ListOffsetsResponse::default() })
}

impl Question {
    fn needs_disk(&self) -> bool {
        self.timestamp >= 0 || self.timestamp == MAX_TIMESTAMP
    }

    fn answer(&self, session: &Session, version: i16) -> Result<Place, ErrorCode> {
        let store = session.store();
        let code = |error: ReadError| errors::read_code(error.kind(), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        let topic = self.topic.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let partition = PartitionIndex::new(self.partition);
        let offsets = store.offsets(topic, partition).map_err(code)?;
        check_epoch(self.current_leader_epoch, &offsets)?;
        // What is below the bound is durable, and visible to this reader.
        let bound = if self.read_committed { offsets.last_stable } else { offsets.high_watermark };
        let current = offsets.leader_epoch.value();
        let hit = match self.timestamp {
            LATEST => return Ok((bound.value(), -1, current)),
            EARLIEST => {
                return Ok((offsets.log_start.value(), -1, epoch_of(session, topic, partition, &offsets)));
            }
            EARLIEST_LOCAL if version >= 8 => {
                return Ok((offsets.log_start.value(), -1, epoch_of(session, topic, partition, &offsets)));
            }
            // Nothing is tiered.
            LATEST_TIERED if version >= 9 => return Ok((-1, -1, -1)),
            EARLIEST_PENDING_UPLOAD if version >= 11 => return Ok((-1, -1, -1)),
            MAX_TIMESTAMP if version >= 7 => store.max_timestamp(topic, partition).map_err(code)?,
            timestamp if timestamp >= 0 => {
                store.offset_for_time(topic, partition, Timestamp::new(timestamp)).map_err(code)?
            }
            _ => return Err(ErrorCode::UNSUPPORTED_VERSION),
        };
        Ok(match hit.filter(|hit| hit.offset < bound) {
            Some(hit) => (hit.offset.value(), hit.timestamp.value(), hit.leader_epoch.value()),
            None => (-1, -1, -1),
        })
    }
}

/// The epoch of the first record, or the current one if there is none.
fn epoch_of(session: &Session, topic: TopicId, partition: PartitionIndex, offsets: &PartitionOffsets) -> i32 {
    if offsets.log_start == offsets.high_watermark {
        return offsets.leader_epoch.value();
    }
    let epoch = session.store().epoch_of(topic, partition, offsets.log_start);
    epoch.unwrap_or(offsets.leader_epoch).value()
}

/// Compares the epoch that a client knows with ours: an older one means that it has to refresh its metadata.
pub(super) fn check_epoch(known: i32, offsets: &PartitionOffsets) -> Result<(), ErrorCode> {
    match known.cmp(&offsets.leader_epoch.value()) {
        _ if known < 0 => Ok(()),
        std::cmp::Ordering::Less => Err(ErrorCode::FENCED_LEADER_EPOCH),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(ErrorCode::UNKNOWN_LEADER_EPOCH),
    }
}

const READ_COMMITTED: i8 = 1;
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;
const FIRST_VERSION_WITH_EPOCH: i16 = 4;
