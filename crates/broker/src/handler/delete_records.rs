//! `DeleteRecords`: the oldest records go; answered when it is durable that they are gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use kolumn_kafka_wire::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kolumn_kafka_wire::messages::{DeleteRecordsRequest, DeleteRecordsResponse};
use kolumn_kafka_wire::{ErrorCode, Str};
use kolumn_topic_store::{Commit, DeleteRecordsErrorKind, Offset, PartitionIndex};
use tokio::time::Instant;

use super::room;
use crate::bridge::errors;
use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

/// What becomes of a partition.
type Begun = Result<Commit<Offset>, ErrorCode>;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: DeleteRecordsRequest<'_> = request.decode()?;
    let deadline = room::deadline(message.timeout_ms);
    let mut asked: BTreeMap<String, BTreeMap<i32, i64>> = BTreeMap::new();
    for topic in &message.topics {
        let partitions = topic.partitions.iter().map(|asked| (asked.partition_index, asked.offset));
        asked.entry(topic.name.to_string()).or_default().extend(partitions);
    }
    let (session, head) = (Arc::clone(session), request.head);
    Ok(Started::ordered(async move {
        let mut begun = Vec::with_capacity(asked.len());
        for (name, partitions) in asked {
            let mut commits = Vec::with_capacity(partitions.len());
            for (partition, before) in partitions {
                commits.push((partition, delete(&session, &name, partition, before, deadline).await));
            }
            begun.push((name, commits));
        }
        let mut topics = Vec::with_capacity(begun.len());
        for (name, commits) in begun {
            let mut partitions = Vec::with_capacity(commits.len());
            for (partition, commit) in commits {
                partitions.push(result(partition, commit).await);
            }
            topics.push(DeleteRecordsTopicResult {
                name: Str::from(name),
                partitions: partitions.into(),
                ..DeleteRecordsTopicResult::default()
            });
        }
        head.answer(&DeleteRecordsResponse { topics: topics.into(), ..DeleteRecordsResponse::default() })
    }))
}

async fn delete(session: &Session, topic: &str, partition: i32, before: i64, deadline: Instant) -> Begun {
    let topic = session.store().topic(session.context.view.id, topic);
    let topic = topic.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let before = (before != HIGH_WATERMARK).then(|| Offset::new(before));
    let commit = room::until_room(
        session,
        deadline,
        |store| store.delete_records(topic.id, PartitionIndex::new(partition), before),
        |error| matches!(error.kind(), DeleteRecordsErrorKind::Busy | DeleteRecordsErrorKind::Full),
    );
    commit.await.map_err(|error| errors::delete_records_code(error.kind()))
}

async fn result(partition_index: i32, begun: Begun) -> DeleteRecordsPartitionResult<'static> {
    let outcome = match begun {
        Ok(commit) => commit.await.map_err(|_| errors::COMMIT_FAILED),
        Err(error_code) => Err(error_code),
    };
    let (low_watermark, error_code) = match outcome {
        Ok(log_start) => (log_start.value(), ErrorCode::NONE),
        Err(error_code) => (UNKNOWN_WATERMARK, error_code),
    };
    DeleteRecordsPartitionResult {
        partition_index,
        low_watermark,
        error_code,
        ..DeleteRecordsPartitionResult::default()
    }
}

/// The offset that stands for all records.
const HIGH_WATERMARK: i64 = -1;
const UNKNOWN_WATERMARK: i64 = -1;
