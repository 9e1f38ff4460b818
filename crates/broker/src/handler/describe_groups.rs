//! `DescribeGroups`: states and members of groups.

use std::collections::HashSet;
use std::sync::Arc;

use kolumn_kafka_wire::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kolumn_kafka_wire::messages::{DescribeGroupsRequest, DescribeGroupsResponse};
use kolumn_kafka_wire::{Blob, ErrorCode, Str};

use super::OPERATIONS_NOT_ASKED;
use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::group::{DescribedMember, Description, GroupState};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: DescribeGroupsRequest<'_> = request.decode()?;
    let operations =
        if message.include_authorized_operations { GROUP_OPERATIONS } else { OPERATIONS_NOT_ASKED };
    let mut named = HashSet::new();
    let mut len_left = ANSWER_LEN_MAX;
    let mut groups = Vec::new();
    for id in &message.groups {
        // A group that is named twice would be answered twice, with many times the length of its name.
        if !named.insert(id.clone()) {
            continue;
        }
        let described = session.context.groups.describe(&id);
        let mut group = match described {
            Some(description) if len_left == 0 && !description.members.is_empty() => {
                refused(ErrorCode::INVALID_REQUEST, "too many groups at once")
            }
            Some(description) => {
                len_left = len_left.saturating_sub(len(&description));
                found(description)
            }
            None if request.head.version >= FIRST_VERSION_WITH_MESSAGE => {
                refused(ErrorCode::GROUP_ID_NOT_FOUND, "there is no such group")
            }
            None => DescribedGroup { error_message: None, ..refused(ErrorCode::NONE, "") },
        };
        if request.head.version < FIRST_VERSION_WITH_MESSAGE {
            group.error_message = None;
        }
        group.group_id = id;
        group.authorized_operations = operations;
        groups.push(group);
    }
    let groups = groups.into();
    let response = DescribeGroupsResponse { groups, ..DescribeGroupsResponse::default() };
    Ok(Started::Now(request.head.answer(&response)))
}

fn refused(error_code: ErrorCode, text: &'static str) -> DescribedGroup<'static> {
    DescribedGroup {
        error_code,
        error_message: Some(Str::from_static(text)),
        group_state: Str::from_static(GroupState::Dead.name()),
        ..DescribedGroup::default()
    }
}

fn found(description: Description) -> DescribedGroup<'static> {
    DescribedGroup {
        group_state: Str::from_static(description.state.name()),
        protocol_type: Str::from(description.protocol_type),
        protocol_data: Str::from(description.protocol_name),
        members: description.members.into_iter().map(member).collect::<Vec<_>>().into(),
        ..DescribedGroup::default()
    }
}

fn member(member: DescribedMember) -> DescribedGroupMember<'static> {
    DescribedGroupMember {
        member_id: Str::from(member.member_id),
        group_instance_id: member.instance_id.map(Str::from),
        client_id: Str::from(member.client_id),
        client_host: Str::from(member.client_host),
        member_metadata: Blob::from(member.metadata),
        member_assignment: Blob::from(member.assignment),
        ..DescribedGroupMember::default()
    }
}

/// About how long the description is on the wire.
fn len(description: &Description) -> usize {
    let member = |member: &DescribedMember| {
        let texts = member.member_id.len() + member.client_id.len() + member.client_host.len();
        texts + member.metadata.len() + member.assignment.len()
    };
    description.members.iter().map(member).sum()
}

/// What a client may do with a group where nobody is refused, as bits: read, delete, describe, describe configs, alter
/// configs.
const GROUP_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;
/// Once members take this many bytes, those of further groups are not described in the same answer.
const ANSWER_LEN_MAX: usize = 32 << 20;
const FIRST_VERSION_WITH_MESSAGE: i16 = 6;
