//! `ListGroups`: all groups, or those in certain states and of certain types.

use std::sync::Arc;

use kolumn_kafka_wire::messages::list_groups_response::ListedGroup;
use kolumn_kafka_wire::messages::{ListGroupsRequest, ListGroupsResponse};
use kolumn_kafka_wire::{Array, Str};

use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: ListGroupsRequest<'_> = request.decode()?;
    let (states, types) = (Filter::new(&message.states_filter), Filter::new(&message.types_filter));
    let (groups, head) = (Arc::clone(&session.context.groups), request.head);
    Ok(Started::later(async move {
        let listed = if types.admits(CLASSIC) {
            // There may be many, each of which is looked at.
            let listed = tokio::task::spawn_blocking(move || groups.list()).await;
            listed.map_err(|error| CloseReason::Answer(error.to_string()))?
        } else {
            Vec::new()
        };
        let listed = listed.into_iter().filter(|(.., state)| states.admits(state.name()));
        let groups = listed.map(|(name, protocol_type, state)| ListedGroup {
            group_id: Str::from(name),
            protocol_type: Str::from(protocol_type),
            group_state: Str::from_static(state.name()),
            group_type: Str::from_static(CLASSIC),
            ..ListedGroup::default()
        });
        let groups = groups.collect::<Vec<_>>().into();
        head.answer(&ListGroupsResponse { groups, ..ListGroupsResponse::default() })
    }))
}

/// Words of which one has to fit, whatever their case; none of them: everything fits.
struct Filter(Vec<String>);

impl Filter {
    fn new(words: &Array<'_, Str<'_>>) -> Self {
        // Longer words fit nothing; repeated ones change nothing.
        let short = words.iter().filter(|word| word.len() <= WORD_LEN_MAX);
        let mut kept: Vec<_> = short.map(|word| word.to_ascii_lowercase()).collect();
        kept.sort_unstable();
        kept.dedup();
        if kept.is_empty() && !words.is_empty() {
            kept.push("?".to_owned());
        }
        Self(kept)
    }

    fn admits(&self, word: &str) -> bool {
        self.0.is_empty() || self.0.binary_search(&word.to_ascii_lowercase()).is_ok()
    }
}

const CLASSIC: &str = "classic";
const WORD_LEN_MAX: usize = 32;
