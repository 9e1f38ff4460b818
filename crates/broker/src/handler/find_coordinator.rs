//! `FindCoordinator`: this broker coordinates every group. Transactions and share groups do not exist here, so that nobody
//! coordinates them: who asks for those is told to try again, as while a cluster starts.

use kolumn_kafka_wire::messages::find_coordinator_response::Coordinator;
use kolumn_kafka_wire::messages::{FindCoordinatorRequest, FindCoordinatorResponse};
use kolumn_kafka_wire::{ErrorCode, Str};

use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Session, request: &Request) -> Result<Started, CloseReason> {
    let message: FindCoordinatorRequest<'_> = request.decode()?;
    let version = request.head.version;
    let coordinator = match message.key_type {
        GROUP => here(session),
        TRANSACTION => {
            session.miss_coordinator("transaction");
            nobody(ErrorCode::COORDINATOR_NOT_AVAILABLE, "there is no coordinator yet")
        }
        SHARE if version >= FIRST_VERSION_WITH_SHARE => {
            nobody(ErrorCode::COORDINATOR_NOT_AVAILABLE, "there are no share groups")
        }
        _ => nobody(ErrorCode::INVALID_REQUEST, "unknown type of coordinator"),
    };
    let response = if version < FIRST_VERSION_WITH_LIST {
        FindCoordinatorResponse {
            error_code: coordinator.error_code,
            error_message: coordinator.error_message,
            node_id: coordinator.node_id,
            host: coordinator.host,
            port: coordinator.port,
            ..FindCoordinatorResponse::default()
        }
    } else {
        let keys = message.coordinator_keys.iter();
        let coordinators = keys.map(|key| Coordinator { key, ..coordinator.clone() }).collect::<Vec<_>>();
        FindCoordinatorResponse { coordinators: coordinators.into(), ..FindCoordinatorResponse::default() }
    };
    Ok(Started::Now(request.head.answer(&response)))
}

fn here(session: &Session) -> Coordinator<'_> {
    Coordinator {
        node_id: session.context.node_id(),
        host: Str::from(session.endpoint.host.as_str()),
        port: i32::from(session.endpoint.port),
        ..Coordinator::default()
    }
}

fn nobody(error_code: ErrorCode, text: &'static str) -> Coordinator<'static> {
    Coordinator {
        node_id: -1,
        port: -1,
        error_code,
        error_message: Some(Str::from_static(text)),
        ..Coordinator::default()
    }
}

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;
const FIRST_VERSION_WITH_SHARE: i16 = 6;
const FIRST_VERSION_WITH_LIST: i16 = 4;
