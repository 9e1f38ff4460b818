//! `FindCoordinator`: there are no groups and no transactions here, so there is nobody to coordinate them.
//!
//! The request is served all the same, because old clients take its absence for an old broker and give up
//! compression. The answer is the one that clients retry, as they do while a cluster starts.

use kolumn_kafka_wire::messages::find_coordinator_response::Coordinator;
use kolumn_kafka_wire::messages::{FindCoordinatorRequest, FindCoordinatorResponse};
use kolumn_kafka_wire::{ErrorCode, Str};

use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Session, request: &Request) -> Result<Started, CloseReason> {
    let message: FindCoordinatorRequest<'_> = request.decode()?;
    let of = match message.key_type {
        GROUP => Some("group"),
        TRANSACTION => Some("transaction"),
        SHARE if request.head.version >= FIRST_VERSION_WITH_SHARE => Some("share group"),
        _ => None,
    };
    let (error_code, text) = match of {
        Some(of) => {
            session.miss_coordinator(of);
            (ErrorCode::COORDINATOR_NOT_AVAILABLE, "there is no coordinator yet")
        }
        None => (ErrorCode::INVALID_REQUEST, "unknown type of coordinator"),
    };
    let error_message = Some(Str::from(text));
    let response = if request.head.version < FIRST_VERSION_WITH_LIST {
        FindCoordinatorResponse {
            error_code,
            error_message,
            node_id: -1,
            port: -1,
            ..FindCoordinatorResponse::default()
        }
    } else {
        let coordinators = message.coordinator_keys.iter().map(|key| Coordinator {
            key,
            node_id: -1,
            port: -1,
            error_code,
            error_message: error_message.clone(),
            ..Coordinator::default()
        });
        let coordinators: Vec<_> = coordinators.collect();
        FindCoordinatorResponse { coordinators: coordinators.into(), ..FindCoordinatorResponse::default() }
    };
    Ok(Started::Now(request.head.answer(&response)))
}

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;
const FIRST_VERSION_WITH_SHARE: i16 = 6;
const FIRST_VERSION_WITH_LIST: i16 = 4;
