//! `LeaveGroup`: one member, or several from version 3 on.

use std::sync::Arc;

use kolumn_kafka_wire::ErrorCode;
use kolumn_kafka_wire::messages::leave_group_response::MemberResponse;
use kolumn_kafka_wire::messages::{LeaveGroupRequest, LeaveGroupResponse};

use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::group::Leaver;
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: LeaveGroupRequest<'_> = request.decode()?;
    let groups = &session.context.groups;
    let response = if message.group_id.is_empty() {
        LeaveGroupResponse { error_code: ErrorCode::INVALID_GROUP_ID, ..LeaveGroupResponse::default() }
    } else if request.head.version < FIRST_VERSION_WITH_LIST {
        let leaver = Leaver { member_id: &message.member_id, instance_id: None };
        let codes = groups.leave(&message.group_id, &[leaver]);
        let error_code = codes.first().copied().unwrap_or(ErrorCode::NONE);
        LeaveGroupResponse { error_code, ..LeaveGroupResponse::default() }
    } else {
        let members: Vec<_> = message.members.iter().collect();
        let leavers = members.iter().map(|member| Leaver {
            member_id: &member.member_id,
            instance_id: member.group_instance_id.as_deref(),
        });
        let codes = groups.leave(&message.group_id, &leavers.collect::<Vec<_>>());
        let answered = members.iter().zip(codes).map(|(member, error_code)| MemberResponse {
            member_id: member.member_id.clone(),
            group_instance_id: member.group_instance_id.clone(),
            error_code,
            ..MemberResponse::default()
        });
        LeaveGroupResponse { members: answered.collect::<Vec<_>>().into(), ..LeaveGroupResponse::default() }
    };
    Ok(Started::Now(request.head.answer(&response)))
}

const FIRST_VERSION_WITH_LIST: i16 = 3;
