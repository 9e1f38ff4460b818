//! `AlterConfigs`: the settings given replace all that a resource had.

use std::sync::Arc;

use kolumn_kafka_wire::Str;
use kolumn_kafka_wire::messages::alter_configs_request::AlterConfigsResource;
use kolumn_kafka_wire::messages::alter_configs_response::AlterConfigsResourceResponse;
use kolumn_kafka_wire::messages::{AlterConfigsRequest, AlterConfigsResponse};

use super::config_changes::{self, Change, Operation, Wish, Wishes};
use super::refusal::Refusal;
use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: AlterConfigsRequest<'_> = request.decode()?;
    let mut wishes = Wishes::new();
    for resource in &message.resources {
        config_changes::add(&mut wishes, resource.resource_type, &resource.resource_name, wish(&resource));
    }
    let validate_only = message.validate_only;
    let (session, head) = (Arc::clone(session), request.head);
    Ok(Started::ordered(async move {
        let outcomes = config_changes::make(&session, wishes, validate_only).await;
        let responses = outcomes.into_iter().map(|((resource_type, name), outcome)| {
            let mut response = AlterConfigsResourceResponse {
                error_message: None,
                resource_type,
                resource_name: Str::from(name),
                ..AlterConfigsResourceResponse::default()
            };
            if let Err(refusal) = outcome {
                response.error_code = refusal.code;
                response.error_message = Some(refusal.into_text());
            }
            response
        });
        let responses = responses.collect();
        head.answer(&AlterConfigsResponse { responses, ..AlterConfigsResponse::default() })
    }))
}

fn wish(resource: &AlterConfigsResource<'_>) -> Result<Wish, Refusal> {
    let changes = resource.configs.iter().map(|config| Change {
        key: config.name.to_string(),
        operation: match config.value {
            Some(value) => Operation::Set(value.to_string()),
            None => Operation::Unset,
        },
    });
    Wish::new(true, changes.collect())
}
