//! `CreatePartitions`: topics get more partitions; answered when these are durable.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use kolumn_kafka_wire::messages::create_partitions_request::CreatePartitionsTopic;
use kolumn_kafka_wire::messages::create_partitions_response::CreatePartitionsTopicResult;
use kolumn_kafka_wire::messages::{CreatePartitionsRequest, CreatePartitionsResponse};
use kolumn_kafka_wire::{ErrorCode, Str};
use kolumn_topic_store::{Commit, Topic, TopicErrorKind};
use tokio::time::Instant;

use super::refusal::Refusal;
use super::room;
use crate::bridge::errors;
use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

/// What is wished for a topic.
#[derive(Debug, Clone, Copy)]
struct Wish {
    /// How many partitions it has then.
    count: i32,
    assigned: Option<Assigned>,
}

/// Replicas chosen by the client, one list for each new partition.
#[derive(Debug, Clone, Copy)]
struct Assigned {
    partitions: usize,
    /// Each on this broker alone.
    here: bool,
}

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: CreatePartitionsRequest<'_> = request.decode()?;
    let validate_only = message.validate_only;
    let deadline = room::deadline(message.timeout_ms);
    let wishes = wishes(session, &message);
    let (session, head) = (Arc::clone(session), request.head);
    Ok(Started::ordered(async move {
        let mut begun = Vec::with_capacity(wishes.len());
        for (name, wish) in wishes {
            let commit = match wish {
                Ok(wish) => create(&session, &name, wish, validate_only, deadline).await,
                Err(refusal) => Err(refusal),
            };
            begun.push((name, commit));
        }
        let mut results = Vec::with_capacity(begun.len());
        for (name, commit) in begun {
            results.push(result(name, commit).await);
        }
        head.answer(&CreatePartitionsResponse {
            results: results.into(),
            ..CreatePartitionsResponse::default()
        })
    }))
}

/// The topics of the request by name, each with what is wrong with it.
fn wishes(
    session: &Session,
    message: &CreatePartitionsRequest<'_>,
) -> BTreeMap<String, Result<Wish, Refusal>> {
    let mut wishes = BTreeMap::new();
    for topic in &message.topics {
        match wishes.entry(topic.name.to_string()) {
            Entry::Vacant(vacant) => {
                vacant.insert(Ok(wish(session, &topic)));
            }
            Entry::Occupied(mut occupied) => {
                let refusal = Refusal::invalid_request("the request names this topic twice");
                *occupied.get_mut() = Err(refusal);
            }
        }
    }
    wishes
}

fn wish(session: &Session, topic: &CreatePartitionsTopic<'_>) -> Wish {
    let own = session.context.node_id();
    // Clients that choose no replicas send no list or an empty one.
    let assigned = topic.assignments.as_ref().filter(|chosen| !chosen.is_empty()).map(|chosen| Assigned {
        partitions: chosen.len(),
        here: chosen.iter().all(|partition| partition.broker_ids.iter().eq([own])),
    });
    Wish { count: topic.count, assigned }
}

async fn create(
    session: &Session,
    name: &str,
    wish: Wish,
    validate_only: bool,
    deadline: Instant,
) -> Result<Commit<Arc<Topic>>, Refusal> {
    let view = session.context.view.id;
    let topic = session.store().topic(view, name).ok_or_else(|| {
        Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, format!("there is no topic `{name}`"))
    })?;
    check(wish, topic.partitions)?;
    let commit = room::until_room(
        session,
        deadline,
        |store| store.create_partitions(view, topic.id, wish.count, validate_only),
        |error| matches!(error.kind(), TopicErrorKind::Busy | TopicErrorKind::Full),
    );
    let refused = |error: kolumn_topic_store::TopicError| {
        Refusal::new(errors::topic_code(error.kind()), error.to_string())
    };
    commit.await.map_err(refused)
}

fn check(wish: Wish, present: i32) -> Result<(), Refusal> {
    if wish.count <= present {
        let text = if wish.count == present {
            format!("the topic already has {present} partitions")
        } else {
            format!("the topic currently has {present} partitions; {} would not be an increase", wish.count)
        };
        return Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, text));
    }
    let Some(assigned) = wish.assigned else { return Ok(()) };
    let added = wish.count.saturating_sub(present);
    if usize::try_from(added) != Ok(assigned.partitions) {
        let text = format!("{added} partitions are added, but replicas chosen for {}", assigned.partitions);
        return Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, text));
    }
    if !assigned.here {
        let text = "every partition has one replica, on this broker";
        return Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, text));
    }
    Ok(())
}

async fn result(
    name: String,
    begun: Result<Commit<Arc<Topic>>, Refusal>,
) -> CreatePartitionsTopicResult<'static> {
    let outcome = match begun {
        Ok(commit) => commit.await.map_err(|error| Refusal::new(errors::COMMIT_FAILED, error.to_string())),
        Err(refusal) => Err(refusal),
    };
    let mut result = CreatePartitionsTopicResult {
        name: Str::from(name),
        error_message: None,
        ..CreatePartitionsTopicResult::default()
    };
    if let Err(refusal) = outcome {
        result.error_code = refusal.code;
        result.error_message = Some(refusal.into_text());
    }
    result
}
