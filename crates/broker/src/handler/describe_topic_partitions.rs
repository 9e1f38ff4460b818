//! `DescribeTopicPartitions`: topics in the order of their names, page by page.

use std::collections::BTreeMap;
use std::sync::Arc;

use kolumn_kafka_wire::messages::describe_topic_partitions_request;
use kolumn_kafka_wire::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kolumn_kafka_wire::messages::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};
use kolumn_kafka_wire::{Array, ErrorCode, Str};
use kolumn_topic_store::Topic;

use super::metadata::{is_internal, leader_epoch};
use super::{OPERATIONS_NOT_ASKED, TOPIC_OPERATIONS};
use crate::bridge::ids;
use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

/// What was asked for, by name; `None` where there is no such topic.
type Asked<'a> = BTreeMap<Str<'a>, Option<Arc<Topic>>>;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: DescribeTopicPartitionsRequest<'_> = request.decode()?;
    let from = message.cursor.clone().unwrap_or_default();
    let response = if from.partition_index < 0 {
        refuse(&message)
    } else {
        let limit = message.response_partition_limit.clamp(1, PARTITIONS_MAX);
        page(session, asked(session, &message, &from.topic_name), &from, limit)
    };
    Ok(Started::Now(request.head.answer(&response)))
}

/// The topics that the request names, or all, from the cursor's on.
fn asked<'a>(session: &Session, message: &DescribeTopicPartitionsRequest<'a>, from: &Str<'a>) -> Asked<'a> {
    let (store, view) = (session.store(), session.context.view.id);
    if message.topics.is_empty() {
        let all = store.topics(view).into_iter().filter(|topic| *topic.name >= **from);
        return all.map(|topic| (Str::from(Arc::clone(&topic.name)), Some(topic))).collect();
    }
    let names = message.topics.iter().map(|topic| topic.name).filter(|name| name >= from);
    names.map(|name| (name.clone(), store.topic(view, &name))).collect()
}

/// As many topics and partitions as the limit allows, and where to go on.
fn page<'a>(
    session: &Session,
    asked: Asked<'a>,
    from: &describe_topic_partitions_request::Cursor<'a>,
    limit: i32,
) -> DescribeTopicPartitionsResponse<'a> {
    let mut left = limit;
    let mut topics = Vec::new();
    let mut next_cursor = None;
    for (name, found) in asked {
        let first = if name == from.topic_name { from.partition_index } else { 0 };
        if left == 0 {
            next_cursor = Some(cursor(name, first));
            break;
        }
        let Some(topic) = found else {
            topics.push(missing(name));
            left -= 1;
            continue;
        };
        let end = topic.partitions.min(first.saturating_add(left));
        topics.push(describe(session, &topic, first..end));
        if end < topic.partitions {
            next_cursor = Some(cursor(name, end));
            break;
        }
        // A topic counts even if the cursor has left nothing of it.
        left -= end.saturating_sub(first).clamp(1, left);
    }
    DescribeTopicPartitionsResponse {
        topics: topics.into(),
        next_cursor,
        ..DescribeTopicPartitionsResponse::default()
    }
}

fn describe(
    session: &Session,
    topic: &Topic,
    partitions: std::ops::Range<i32>,
) -> DescribeTopicPartitionsResponseTopic<'static> {
    let node = || Array::from(vec![session.context.node_id()]);
    let partitions = partitions.map(|partition| DescribeTopicPartitionsResponsePartition {
        partition_index: partition,
        leader_id: session.context.node_id(),
        leader_epoch: leader_epoch(session, topic.id, partition),
        replica_nodes: node(),
        isr_nodes: node(),
        eligible_leader_replicas: Some(Array::new()),
        last_known_elr: Some(Array::new()),
        ..DescribeTopicPartitionsResponsePartition::default()
    });
    DescribeTopicPartitionsResponseTopic {
        name: Some(Str::from(Arc::clone(&topic.name))),
        topic_id: ids::topic_id_to_wire(topic.id),
        is_internal: is_internal(&topic.name),
        partitions: partitions.collect(),
        topic_authorized_operations: TOPIC_OPERATIONS,
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}

fn missing(name: Str<'_>) -> DescribeTopicPartitionsResponseTopic<'_> {
    let error_code = match kolumn_topic_store::name_fault(&name) {
        Some(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
        None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
    };
    DescribeTopicPartitionsResponseTopic {
        error_code,
        name: Some(name),
        topic_authorized_operations: OPERATIONS_NOT_ASKED,
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}

/// The answer to a cursor that no answer has given out: there is no field for an error of the whole request.
fn refuse<'a>(message: &DescribeTopicPartitionsRequest<'a>) -> DescribeTopicPartitionsResponse<'a> {
    let topics = message.topics.iter().map(|topic| DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::INVALID_REQUEST,
        name: Some(topic.name),
        topic_authorized_operations: OPERATIONS_NOT_ASKED,
        ..DescribeTopicPartitionsResponseTopic::default()
    });
    DescribeTopicPartitionsResponse { topics: topics.collect(), ..DescribeTopicPartitionsResponse::default() }
}

fn cursor(topic_name: Str<'_>, partition_index: i32) -> Cursor<'_> {
    Cursor { topic_name, partition_index, ..Cursor::default() }
}

/// Partitions in one answer, at most, whatever the client asks for (`max.request.partition.size.limit`).
pub(super) const PARTITIONS_MAX: i32 = 2_000;
