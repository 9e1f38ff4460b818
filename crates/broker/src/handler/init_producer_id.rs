//! `InitProducerId`: gives an idempotent producer its identity.
//!
//! There are no transactions: a transactional id is answered as `FindCoordinator` answers it, with the code that tells
//! a client to look for a coordinator elsewhere, so that it neither takes its records for transactional ones nor
//! treats the answer as a fault of its own.

use std::sync::Arc;

use kolumn_kafka_wire::ErrorCode;
use kolumn_kafka_wire::messages::{InitProducerIdRequest, InitProducerIdResponse};
use kolumn_topic_store::{Store, TopicErrorKind};

use super::room;
use crate::bridge::errors;
use crate::context::Session;
use crate::dispatch::{Answer, Head, Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: InitProducerIdRequest<'_> = request.decode()?;
    let refusal = match message.transactional_id.as_deref() {
        Some("") => Some(ErrorCode::INVALID_REQUEST),
        Some(_) => {
            session.miss_coordinator("transaction");
            Some(ErrorCode::COORDINATOR_NOT_AVAILABLE)
        }
        // Either a producer that asks to go on with its identity, or one that has none: never half of it.
        None if (message.producer_id < 0) != (message.producer_epoch < 0) => Some(ErrorCode::INVALID_REQUEST),
        None => None,
    };
    if let Some(code) = refusal {
        return Ok(Started::Now(refuse(request.head, code)));
    }
    let (session, head) = (Arc::clone(session), request.head);
    Ok(Started::later(async move {
        let commit = room::until_room(&session, room::deadline(WAIT_MS), Store::init_producer_id, |error| {
            matches!(error.kind(), TopicErrorKind::Busy | TopicErrorKind::Full)
        });
        match commit.await {
            Err(error) => refuse(head, errors::topic_code(error.kind())),
            Ok(commit) => match commit.await {
                Err(_) => refuse(head, errors::COMMIT_FAILED),
                Ok((id, producer_epoch)) => head.answer(&InitProducerIdResponse {
                    producer_id: id.value(),
                    producer_epoch,
                    ..InitProducerIdResponse::default()
                }),
            },
        }
    }))
}

fn refuse(head: Head, error_code: ErrorCode) -> Answer {
    let response =
        InitProducerIdResponse { error_code, producer_epoch: -1, ..InitProducerIdResponse::default() };
    head.answer(&response)
}

const WAIT_MS: i32 = 5_000;
