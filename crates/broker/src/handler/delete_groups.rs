//! `DeleteGroups`: groups without members, with their offsets.

use std::collections::HashSet;
use std::sync::Arc;

use kolumn_kafka_wire::messages::delete_groups_response::DeletableGroupResult;
use kolumn_kafka_wire::messages::{DeleteGroupsRequest, DeleteGroupsResponse};
use kolumn_kafka_wire::{ErrorCode, Str};

use super::room;
use crate::bridge::errors;
use crate::context::Session;
use crate::coordinator::Refused;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: DeleteGroupsRequest<'_> = request.decode()?;
    // A name that is there twice would be found missing the second time.
    let mut seen = HashSet::new();
    let names = message.groups_names.iter().filter(|name| seen.insert(name.clone()));
    let names: Vec<_> = names.map(|name| name.to_string()).collect();
    let (session, head) = (Arc::clone(session), request.head);
    Ok(Started::ordered(async move {
        let deadline = room::deadline(PATIENCE_MS);
        let mut deletions = Vec::with_capacity(names.len());
        for name in names {
            let deletion = room::until_room(
                &session,
                deadline,
                |_| session.context.groups.delete(&name),
                Refused::lacks_room,
            );
            let deletion = deletion.await;
            deletions.push((name, deletion));
        }
        let mut results = Vec::with_capacity(deletions.len());
        for (name, deletion) in deletions {
            let error_code = match deletion {
                Err(refused) => refused.code(),
                Ok(commit) => commit.await.map_or(errors::GROUP_COMMIT_FAILED, |()| ErrorCode::NONE),
            };
            let group_id = Str::from(name);
            results.push(DeletableGroupResult { group_id, error_code, ..DeletableGroupResult::default() });
        }
        head.answer(&DeleteGroupsResponse { results: results.into(), ..DeleteGroupsResponse::default() })
    }))
}

/// How long the deletion of a group waits for room.
const PATIENCE_MS: i32 = 5_000;
