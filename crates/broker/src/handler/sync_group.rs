//! `SyncGroup`: has its effect at once; answered when the leader's assignments are durable.

use std::sync::Arc;

use bytes::Bytes;
use kolumn_kafka_wire::messages::{SyncGroupRequest, SyncGroupResponse};
use kolumn_kafka_wire::{Blob, ErrorCode, Str};

use crate::context::Session;
use crate::coordinator::SyncOutcome;
use crate::dispatch::{Answer, Head, Request, Started};
use crate::group::{Sync, Token};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: SyncGroupRequest<'_> = request.decode()?;
    let head = request.head;
    let members_max = session.context.validated.settings.groups.members_max;
    let names_protocol = message.protocol_type.is_some() && message.protocol_name.is_some();
    let fault = if message.group_id.is_empty() {
        Some(ErrorCode::INVALID_GROUP_ID)
    } else if head.version >= FIRST_VERSION_WITH_PROTOCOL && !names_protocol {
        Some(ErrorCode::INCONSISTENT_GROUP_PROTOCOL)
    } else if message.assignments.len() > members_max {
        // No group has as many members.
        Some(ErrorCode::INVALID_REQUEST)
    } else {
        None
    };
    if let Some(code) = fault {
        return Ok(Started::Now(answer(head, Err(code))));
    }
    let wish = |token| sync(&message, token);
    Ok(match session.context.groups.sync(&message.group_id, request.body_len(), wish) {
        Err(code) => Started::Now(answer(head, Err(code))),
        Ok(waiting) => Started::later(async move {
            let outcome = waiting.answer().await;
            answer(head, outcome.unwrap_or(Err(ErrorCode::COORDINATOR_NOT_AVAILABLE)))
        }),
    })
}

fn sync(message: &SyncGroupRequest<'_>, token: Token) -> Sync {
    // Copied, because a group keeps them for long and the frame may be much larger.
    let assignments = message
        .assignments
        .iter()
        .map(|assignment| (assignment.member_id.to_string(), Bytes::copy_from_slice(&assignment.assignment)));
    Sync {
        token,
        member_id: message.member_id.to_string(),
        instance_id: message.group_instance_id.as_ref().map(ToString::to_string),
        generation: message.generation_id,
        protocol_type: message.protocol_type.as_ref().map(ToString::to_string),
        protocol_name: message.protocol_name.as_ref().map(ToString::to_string),
        assignments: assignments.collect(),
    }
}

fn answer(head: Head, outcome: SyncOutcome) -> Answer {
    head.answer(&match outcome {
        Ok(synced) => SyncGroupResponse {
            protocol_type: Some(Str::from(synced.protocol_type)),
            protocol_name: Some(Str::from(synced.protocol_name)),
            assignment: Blob::from(synced.assignment),
            ..SyncGroupResponse::default()
        },
        Err(error_code) => SyncGroupResponse { error_code, ..SyncGroupResponse::default() },
    })
}

const FIRST_VERSION_WITH_PROTOCOL: i16 = 5;
