//! `JoinGroup`: has its effect at once; answered when the group's members have come together.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kolumn_kafka_wire::messages::join_group_response::JoinGroupResponseMember;
use kolumn_kafka_wire::messages::{JoinGroupRequest, JoinGroupResponse};
use kolumn_kafka_wire::{Blob, ErrorCode, Str};

use crate::context::Session;
use crate::coordinator::JoinOutcome;
use crate::dispatch::{Answer, Head, Request, Started};
use crate::group::{Join, JoinRefused, Token};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: JoinGroupRequest<'_> = request.decode()?;
    let (head, member_id) = (request.head, message.member_id.to_string());
    let refused = |code, member_id| Err(JoinRefused { code, member_id });
    let fault = if message.group_id.is_empty() {
        Some(ErrorCode::INVALID_GROUP_ID)
    } else if message.protocols.len() > PROTOCOLS_MAX {
        Some(ErrorCode::INCONSISTENT_GROUP_PROTOCOL)
    } else {
        None
    };
    if let Some(code) = fault {
        return Ok(Started::Now(answer(head, refused(code, member_id))));
    }
    let client_id = request.client_id().unwrap_or_default();
    let groups = &session.context.groups;
    let name = message.group_instance_id.as_deref().unwrap_or(&client_id);
    let proposed_id = groups.propose_id(name);
    let wish = |token| join(session, head, &message, client_id, proposed_id, token);
    Ok(match groups.join(&message.group_id, request.body_len(), wish) {
        Err(code) => Started::Now(answer(head, refused(code, member_id))),
        Ok(waiting) => Started::later(async move {
            let outcome = waiting.answer().await;
            let lost = || refused(ErrorCode::COORDINATOR_NOT_AVAILABLE, member_id);
            answer(head, outcome.unwrap_or_else(lost))
        }),
    })
}

fn join(
    session: &Session,
    head: Head,
    message: &JoinGroupRequest<'_>,
    client_id: String,
    proposed_id: String,
    token: Token,
) -> Join {
    // Copied, because a group keeps them for long and the frame may be much larger.
    let protocols = message
        .protocols
        .iter()
        .map(|protocol| (protocol.name.to_string(), Bytes::copy_from_slice(&protocol.metadata)));
    let millis = |ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
    let rebalance_timeout_ms = if head.version < FIRST_VERSION_WITH_REBALANCE_TIMEOUT {
        message.session_timeout_ms
    } else {
        message.rebalance_timeout_ms
    };
    Join {
        token,
        member_id: message.member_id.to_string(),
        instance_id: message.group_instance_id.as_ref().map(ToString::to_string),
        client_id,
        client_host: session.client_host(),
        session_timeout: millis(message.session_timeout_ms),
        rebalance_timeout: millis(rebalance_timeout_ms),
        protocol_type: message.protocol_type.to_string(),
        protocols: protocols.collect(),
        needs_known_id: head.version >= FIRST_VERSION_WITH_KNOWN_ID,
        can_skip_assignment: head.version >= FIRST_VERSION_WITH_SKIP,
        proposed_id,
    }
}

fn answer(head: Head, outcome: JoinOutcome) -> Answer {
    let has_null = head.version >= FIRST_VERSION_WITH_NULL_PROTOCOL;
    let response = match outcome {
        Ok(joined) => {
            let members = joined.members.into_iter().map(|member| JoinGroupResponseMember {
                member_id: Str::from(member.member_id),
                group_instance_id: member.instance_id.map(Str::from),
                metadata: Blob::from(member.metadata),
                ..JoinGroupResponseMember::default()
            });
            JoinGroupResponse {
                generation_id: joined.generation,
                protocol_type: Some(Str::from(joined.protocol_type)),
                protocol_name: Some(Str::from(joined.protocol_name)),
                leader: Str::from(joined.leader),
                skip_assignment: joined.skip_assignment,
                member_id: Str::from(joined.member_id),
                members: members.collect::<Vec<_>>().into(),
                ..JoinGroupResponse::default()
            }
        }
        Err(JoinRefused { code, member_id }) => JoinGroupResponse {
            error_code: code,
            generation_id: -1,
            protocol_name: (!has_null).then(Str::default),
            member_id: Str::from(member_id),
            ..JoinGroupResponse::default()
        },
    };
    head.answer(&response)
}

/// Members offer a few; each costs more memory than bytes on the wire.
const PROTOCOLS_MAX: usize = 64;
const FIRST_VERSION_WITH_REBALANCE_TIMEOUT: i16 = 1;
const FIRST_VERSION_WITH_KNOWN_ID: i16 = 4;
const FIRST_VERSION_WITH_NULL_PROTOCOL: i16 = 7;
const FIRST_VERSION_WITH_SKIP: i16 = 9;
