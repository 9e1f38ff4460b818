//! `Metadata`: this broker, and topics by name or id. Unknown names are created if client and settings allow it.

use std::collections::BTreeSet;
use std::sync::Arc;

use kolumn_kafka_wire::messages::metadata_request::MetadataRequestTopic;
use kolumn_kafka_wire::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kolumn_kafka_wire::messages::{MetadataRequest, MetadataResponse};
use kolumn_kafka_wire::{Array, ErrorCode, Str};
use kolumn_topic_store::{NewTopic, PartitionIndex, Timestamp, Topic, TopicConfig, TopicId};

use super::refusal::Refusal;
use super::{CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED, TOPIC_OPERATIONS, create_topics, room};
use crate::bridge::ids;
use crate::context::Session;
use crate::dispatch::{Answer, Head, Request, Started};
use crate::observer::{CloseReason, Event};

/// A topic that the request asks for; a set of them answers each once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Name(String),
    Id(TopicId),
}

/// What is known of it.
#[derive(Debug)]
enum Found {
    Topic(Arc<Topic>),
    Missing(Asked, ErrorCode),
}

impl Found {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Topic(topic) => Some(&topic.name),
            Self::Missing(Asked::Name(name), _) => Some(name),
            Self::Missing(Asked::Id(_), _) => None,
        }
    }
}

pub(crate) fn start(
    session: &Arc<Session>,
    request: &Request,
    now: Timestamp,
) -> Result<Started, CloseReason> {
    let message: MetadataRequest<'_> = request.decode()?;
    let (store, view) = (session.store(), session.context.view.id);
    let Some(asked) = asked(request.head.version, &message) else {
        let found = store.topics(view).into_iter().map(Found::Topic).collect();
        return Ok(Started::Now(answer(session, request.head, Options::new(&message), found)));
    };
    let may_create =
        message.allow_auto_topic_creation && session.context.validated.settings.topics.auto_create;
    let mut found = Vec::with_capacity(asked.len());
    let mut to_create = Vec::new();
    for asked in asked {
        match &asked {
            Asked::Id(id) => found.push(match store.topic_by_id(view, *id) {
                Some(topic) => Found::Topic(topic),
                None => Found::Missing(asked, ErrorCode::UNKNOWN_TOPIC_ID),
            }),
            Asked::Name(name) => match store.topic(view, name) {
                Some(topic) => found.push(Found::Topic(topic)),
                None if kolumn_topic_store::name_fault(name).is_some() => {
                    found.push(Found::Missing(asked, ErrorCode::INVALID_TOPIC_EXCEPTION));
                }
                None if may_create => to_create.push(name.clone()),
                None => found.push(Found::Missing(asked, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)),
            },
        }
    }
    let options = Options::new(&message);
    if to_create.is_empty() {
        return Ok(Started::Now(answer(session, request.head, options, found)));
    }
    let (session, head) = (Arc::clone(session), request.head);
    Ok(Started::ordered(async move {
        for name in to_create {
            found.push(create(&session, name, now).await);
        }
        found.sort_by(|one, two| one.name().cmp(&two.name()));
        answer(&session, head, options, found)
    }))
}

/// What the request wants to know besides topics.
#[derive(Debug, Clone, Copy)]
struct Options {
    topic_operations: i32,
    cluster_operations: i32,
}

impl Options {
    fn new(message: &MetadataRequest<'_>) -> Self {
        let asked = |asked, operations| if asked { operations } else { OPERATIONS_NOT_ASKED };
        Self {
            topic_operations: asked(message.include_topic_authorized_operations, TOPIC_OPERATIONS),
            cluster_operations: asked(message.include_cluster_authorized_operations, CLUSTER_OPERATIONS),
        }
    }
}

/// The topics asked for; `None` means all.
fn asked(version: i16, message: &MetadataRequest<'_>) -> Option<BTreeSet<Asked>> {
    let topics = message.topics.as_ref()?;
    if version == 0 && topics.is_empty() {
        return None;
    }
    let asked = |topic: MetadataRequestTopic<'_>| match topic.name {
        Some(name) => Asked::Name(name.to_string()),
        None => Asked::Id(ids::topic_id_from_wire(topic.topic_id)),
    };
    Some(topics.iter().map(asked).collect())
}

async fn create(session: &Session, name: String, now: Timestamp) -> Found {
    let context = &session.context;
    let partitions = context.validated.settings.topics.default_partitions;
    let topic = NewTopic { name: name.clone(), partitions, config: TopicConfig::default() };
    match create_topics::create(session, topic, false, now, room::deadline(CREATE_WAIT_MS)).await {
        Ok(topic) => {
            context.event(&Event::TopicAutoCreated { name: &topic.name });
            Found::Topic(topic)
        }
        Err(Refusal { code: ErrorCode::TOPIC_ALREADY_EXISTS, .. }) => {
            // Somebody else was faster; the topic is there or about to be, and clients ask again for this code.
            match session.store().topic(context.view.id, &name) {
                Some(topic) => Found::Topic(topic),
                None => Found::Missing(Asked::Name(name), ErrorCode::LEADER_NOT_AVAILABLE),
            }
        }
        // Clients ask again for the leader; what asking again cannot change is said as it is.
        Err(Refusal { code, .. }) if code.is_retriable() => {
            Found::Missing(Asked::Name(name), ErrorCode::LEADER_NOT_AVAILABLE)
        }
        Err(Refusal { code, .. }) => Found::Missing(Asked::Name(name), code),
    }
}

fn answer(session: &Session, head: Head, options: Options, found: Vec<Found>) -> Answer {
    let context = &session.context;
    let broker = MetadataResponseBroker {
        node_id: context.node_id(),
        host: Str::from(session.endpoint.host.as_str()),
        port: i32::from(session.endpoint.port),
        ..MetadataResponseBroker::default()
    };
    let topics: Vec<_> = found
        .into_iter()
        .map(|found| MetadataResponseTopic {
            topic_authorized_operations: options.topic_operations,
            ..describe(session, head.version, found)
        })
        .collect();
    head.answer(&MetadataResponse {
        brokers: vec![broker].into(),
        cluster_id: Some(Str::from(&*context.view.cluster_id)),
        controller_id: context.node_id(),
        topics: topics.into(),
        cluster_authorized_operations: options.cluster_operations,
        ..MetadataResponse::default()
    })
}

fn describe(session: &Session, version: i16, found: Found) -> MetadataResponseTopic<'static> {
    match found {
        Found::Topic(topic) => MetadataResponseTopic {
            name: Some(Str::from(topic.name.to_string())),
            topic_id: ids::topic_id_to_wire(topic.id),
            is_internal: is_internal(&topic.name),
            partitions: partitions(session, &topic).into(),
            ..MetadataResponseTopic::default()
        },
        Found::Missing(Asked::Name(name), error_code) => MetadataResponseTopic {
            error_code,
            name: Some(Str::from(name)),
            ..MetadataResponseTopic::default()
        },
        Found::Missing(Asked::Id(id), error_code) => MetadataResponseTopic {
            error_code,
            topic_id: ids::topic_id_to_wire(id),
            name: (version < FIRST_VERSION_WITHOUT_NAMES).then(Str::default),
            ..MetadataResponseTopic::default()
        },
    }
}

fn partitions(session: &Session, topic: &Topic) -> Vec<MetadataResponsePartition<'static>> {
    let node = session.context.node_id();
    (0..topic.partitions)
        .map(|partition| MetadataResponsePartition {
            partition_index: partition,
            leader_id: node,
            leader_epoch: leader_epoch(session, topic.id, partition),
            replica_nodes: Array::from(vec![node]),
            isr_nodes: Array::from(vec![node]),
            ..MetadataResponsePartition::default()
        })
        .collect()
}

/// The epoch of a partition's leader; -1 if the partition is gone.
pub(super) fn leader_epoch(session: &Session, topic: TopicId, partition: i32) -> i32 {
    let offsets = session.store().offsets(topic, PartitionIndex::new(partition));
    offsets.map_or(-1, |offsets| offsets.leader_epoch.value())
}

/// Whether Kafka keeps such a topic for itself. Clients that copy or list topics leave these out.
pub(super) fn is_internal(name: &str) -> bool {
    matches!(name, "__consumer_offsets" | "__transaction_state" | "__share_group_state")
}

/// A topic that was asked for by its id and is unknown has no name from this version on.
const FIRST_VERSION_WITHOUT_NAMES: i16 = 12;
const CREATE_WAIT_MS: i32 = 5_000;
