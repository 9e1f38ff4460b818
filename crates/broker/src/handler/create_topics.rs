//! `CreateTopics`: answered when the topics are durable.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use kolumn_kafka_wire::messages::create_topics_request::CreatableTopic;
use kolumn_kafka_wire::messages::create_topics_response::CreatableTopicResult;
use kolumn_kafka_wire::messages::{CreateTopicsRequest, CreateTopicsResponse};
use kolumn_kafka_wire::{ErrorCode, Str};
use kolumn_topic_store::{NewTopic, Timestamp, Topic, TopicConfig, TopicError, TopicErrorKind};
use tokio::time::Instant;

use super::refusal::Refusal;
use super::{config_rows, room};
use crate::bridge::{errors, ids};
use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(
    session: &Arc<Session>,
    request: &Request,
    now: Timestamp,
) -> Result<Started, CloseReason> {
    let message: CreateTopicsRequest<'_> = request.decode()?;
    let validate_only = message.validate_only;
    let deadline = room::deadline(message.timeout_ms);
    let wanted = wanted(session, &message);
    let (session, head) = (Arc::clone(session), request.head);
    Ok(Started::ordered(async move {
        let mut results = Vec::with_capacity(wanted.len());
        let mut configs_left = CONFIGS_MAX;
        for (name, wish) in wanted {
            let created = match wish {
                Ok(topic) => create(&session, topic, validate_only, now, deadline).await,
                Err(refusal) => Err(refusal),
            };
            results.push(match created {
                Ok(topic) => created_result(&topic, validate_only, &mut configs_left),
                Err(refusal) => CreatableTopicResult {
                    name: Str::from(name),
                    error_code: refusal.code,
                    error_message: Some(refusal.into_text()),
                    configs: None,
                    ..CreatableTopicResult::default()
                },
            });
        }
        head.answer(&CreateTopicsResponse { topics: results.into(), ..CreateTopicsResponse::default() })
    }))
}

/// Creates a topic and waits until it is durable.
pub(super) async fn create(
    session: &Session,
    topic: NewTopic,
    validate_only: bool,
    now: Timestamp,
    deadline: Instant,
) -> Result<Arc<Topic>, Refusal> {
    let view = session.context.view.id;
    let name = topic.name.clone();
    let commit = room::until_room(
        session,
        deadline,
        |store| store.create_topic(view, topic.clone(), validate_only, now),
        |error| matches!(error.kind(), TopicErrorKind::Busy | TopicErrorKind::Full),
    );
    let commit = commit.await.map_err(|error| refused(session, &name, &error))?;
    commit.await.map_err(|error| Refusal::new(errors::COMMIT_FAILED, error.to_string()))
}

/// The topics of the request by name, each with what is wrong with it.
fn wanted(
    session: &Session,
    message: &CreateTopicsRequest<'_>,
) -> BTreeMap<String, Result<NewTopic, Refusal>> {
    let mut wanted = BTreeMap::new();
    for topic in &message.topics {
        let name = topic.name.to_string();
        match wanted.entry(name) {
            Entry::Vacant(vacant) => {
                vacant.insert(new_topic(session, &topic));
            }
            Entry::Occupied(mut occupied) => {
                let text = "the request names this topic twice";
                *occupied.get_mut() = Err(Refusal::new(ErrorCode::INVALID_REQUEST, text));
            }
        }
    }
    wanted
}

fn new_topic(session: &Session, topic: &CreatableTopic<'_>) -> Result<NewTopic, Refusal> {
    let name = topic.name.to_string();
    if let Some(fault) = kolumn_topic_store::name_fault(&name) {
        return Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, fault));
    }
    let partitions = if topic.assignments.is_empty() {
        plain_partitions(session, topic)?
    } else {
        assigned_partitions(session, topic)?
    };
    let pairs: Vec<_> = topic.configs.iter().map(|config| (config.name, config.value)).collect();
    if let Some((key, _)) = pairs.iter().find(|(_, value)| value.is_none()) {
        return Err(Refusal::new(ErrorCode::INVALID_CONFIG, format!("`{key}` has no value")));
    }
    let pairs = pairs.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_ref()?.as_str())));
    let config = TopicConfig::parse(pairs)
        .map_err(|error| Refusal::new(ErrorCode::INVALID_CONFIG, error.to_string()))?;
    Ok(NewTopic { name, partitions, config })
}

fn plain_partitions(session: &Session, topic: &CreatableTopic<'_>) -> Result<i32, Refusal> {
    if !matches!(topic.replication_factor, -1 | 1) {
        let text = "the replication factor can only be 1: there is one broker";
        return Err(Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, text));
    }
    match topic.num_partitions {
        -1 => Ok(session.context.validated.settings.topics.default_partitions),
        partitions if partitions < 1 => {
            Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, "the number of partitions must be positive"))
        }
        partitions => Ok(partitions),
    }
}

/// Replicas chosen by the client: every partition from 0 on, each on this broker alone.
fn assigned_partitions(session: &Session, topic: &CreatableTopic<'_>) -> Result<i32, Refusal> {
    if topic.num_partitions != -1 || topic.replication_factor != -1 {
        let text = "with assignments, the number of partitions and the replication factor must be -1";
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, text));
    }
    let invalid = |text: &str| Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, text);
    let mut partitions: Vec<i32> = Vec::with_capacity(topic.assignments.len());
    for assignment in &topic.assignments {
        if !assignment.broker_ids.iter().eq([session.context.node_id()]) {
            return Err(invalid("every partition has one replica, on this broker"));
        }
        partitions.push(assignment.partition_index);
    }
    partitions.sort_unstable();
    let count = i32::try_from(partitions.len()).map_err(|_| invalid("too many partitions"))?;
    if !partitions.into_iter().eq(0..count) {
        return Err(invalid("partitions must be numbered from 0 without a gap"));
    }
    Ok(count)
}

fn refused(session: &Session, name: &str, error: &TopicError) -> Refusal {
    let kind = error.kind();
    if kind == TopicErrorKind::Exists {
        let topics = session.store().topics(session.context.view.id);
        let key = |name: &str| name.replace('.', "_");
        let other = topics.iter().find(|topic| *topic.name != *name && key(&topic.name) == key(name));
        if let Some(other) = other {
            let text = format!("`{name}` collides with topic `{}`: `.` and `_` count as one", other.name);
            return Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, text);
        }
    }
    Refusal::new(errors::topic_code(kind), error.to_string())
}

fn created_result(
    topic: &Topic,
    validate_only: bool,
    configs_left: &mut usize,
) -> CreatableTopicResult<'static> {
    let left = configs_left.checked_sub(TopicConfig::keys().count());
    *configs_left = left.unwrap_or(0);
    CreatableTopicResult {
        name: Str::from(topic.name.to_string()),
        topic_id: if validate_only {
            kolumn_kafka_wire::Uuid::default()
        } else {
            ids::topic_id_to_wire(topic.id)
        },
        num_partitions: topic.partitions,
        replication_factor: 1,
        // A request of many short names would have a huge answer: later topics are told without their settings.
        topic_config_error_code: if left.is_some() { ErrorCode::NONE } else { ErrorCode::INVALID_REQUEST },
        configs: left.map(|_| config_rows::of_topic(&topic.config).map(config_rows::Row::created).collect()),
        error_message: None,
        ..CreatableTopicResult::default()
    }
}

/// Settings in one answer, at most: those of three thousand topics.
const CONFIGS_MAX: usize = 100_000;
