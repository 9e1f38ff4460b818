//! `Heartbeat`: keeps a member in its group, and tells it of a rebalance.

use std::sync::Arc;

use kolumn_kafka_wire::ErrorCode;
use kolumn_kafka_wire::messages::{HeartbeatRequest, HeartbeatResponse};

use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::group::MemberRef;
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: HeartbeatRequest<'_> = request.decode()?;
    let member = MemberRef {
        member_id: &message.member_id,
        instance_id: message.group_instance_id.as_deref(),
        generation: message.generation_id,
    };
    let error_code = if message.group_id.is_empty() {
        ErrorCode::INVALID_GROUP_ID
    } else {
        session.context.groups.heartbeat(&message.group_id, &member)
    };
    let response = HeartbeatResponse { error_code, ..HeartbeatResponse::default() };
    Ok(Started::Now(request.head.answer(&response)))
}
