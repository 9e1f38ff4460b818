//! `DeleteTopics`: by name, or by id from version 6 on.

use std::sync::Arc;

use kolumn_kafka_wire::messages::delete_topics_response::DeletableTopicResult;
use kolumn_kafka_wire::messages::{DeleteTopicsRequest, DeleteTopicsResponse};
use kolumn_kafka_wire::{ErrorCode, Str};
use kolumn_topic_store::{TopicErrorKind, TopicId};

use super::room;
use crate::bridge::{errors, ids};
use crate::context::Session;
use crate::dispatch::{Answer, Head, Request, Started};
use crate::observer::CloseReason;

/// A topic as the request has it.
#[derive(Debug, Clone)]
enum Target {
    Name(String),
    Id(TopicId),
    /// Both, or neither.
    Unclear,
}

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let targets = targets(request)?;
    let message: DeleteTopicsRequest<'_> = request.decode()?;
    let deadline = room::deadline(message.timeout_ms);
    let (session, head) = (Arc::clone(session), request.head);
    Ok(Started::ordered(async move {
        let mut results = Vec::with_capacity(targets.len());
        for target in &targets {
            results.push(delete(&session, target, deadline).await);
        }
        answer(head, results)
    }))
}

fn targets(request: &Request) -> Result<Vec<Target>, CloseReason> {
    let message: DeleteTopicsRequest<'_> = request.decode()?;
    if request.head.version < FIRST_VERSION_WITH_IDS {
        return Ok(message.topic_names.iter().map(|name| Target::Name(name.to_string())).collect());
    }
    let target = message.topics.iter().map(|topic| match topic.name {
        Some(name) if topic.topic_id.is_zero() => Target::Name(name.to_string()),
        None if !topic.topic_id.is_zero() => Target::Id(ids::topic_id_from_wire(topic.topic_id)),
        _ => Target::Unclear,
    });
    Ok(target.collect())
}

async fn delete(
    session: &Session,
    target: &Target,
    deadline: tokio::time::Instant,
) -> DeletableTopicResult<'static> {
    let (store, view) = (session.store(), session.context.view.id);
    let (topic, unknown) = match target {
        Target::Name(name) => (store.topic(view, name), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        Target::Id(id) => (store.topic_by_id(view, *id), ErrorCode::UNKNOWN_TOPIC_ID),
        Target::Unclear => (None, ErrorCode::INVALID_REQUEST),
    };
    let mut result = DeletableTopicResult::default();
    match target {
        Target::Name(name) => result.name = Some(Str::from(name.clone())),
        Target::Id(id) => result.topic_id = ids::topic_id_to_wire(*id),
        Target::Unclear => {}
    }
    let Some(topic) = topic else {
        result.error_code = unknown;
        result.error_message = Some(Str::from(match target {
            Target::Unclear => "give either a name or an id",
            Target::Name(_) | Target::Id(_) => "there is no such topic",
        }));
        return result;
    };
    result.name = Some(Str::from(topic.name.to_string()));
    result.topic_id = ids::topic_id_to_wire(topic.id);
    let commit = room::until_room(
        session,
        deadline,
        |store| store.delete_topic(view, topic.id),
        |error| matches!(error.kind(), TopicErrorKind::Busy | TopicErrorKind::Full),
    );
    let (error_code, text) = match commit.await {
        Err(error) if error.kind() == TopicErrorKind::UnknownTopic => (unknown, error.to_string()),
        Err(error) => (errors::topic_code(error.kind()), error.to_string()),
        Ok(commit) => match commit.await {
            Err(error) => (errors::COMMIT_FAILED, error.to_string()),
            Ok(()) => return result,
        },
    };
    result.error_code = error_code;
    result.error_message = Some(Str::from(text));
    result
}

fn answer(head: Head, mut results: Vec<DeletableTopicResult<'static>>) -> Answer {
    if head.version < FIRST_VERSION_WITH_IDS {
        for result in &mut results {
            // These versions know no result without a name.
            result.name.get_or_insert_default();
        }
    }
    head.answer(&DeleteTopicsResponse { responses: results.into(), ..DeleteTopicsResponse::default() })
}

const FIRST_VERSION_WITH_IDS: i16 = 6;
