//! `IncrementalAlterConfigs`: settings change one by one, the others stay.

use std::sync::Arc;

use kolumn_kafka_wire::Str;
use kolumn_kafka_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kolumn_kafka_wire::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kolumn_kafka_wire::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

use super::config_changes::{self, Change, Operation, Wish, Wishes};
use super::refusal::Refusal;
use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: IncrementalAlterConfigsRequest<'_> = request.decode()?;
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
        head.answer(&IncrementalAlterConfigsResponse {
            responses,
            ..IncrementalAlterConfigsResponse::default()
        })
    }))
}

fn wish(resource: &AlterConfigsResource<'_>) -> Result<Wish, Refusal> {
    let changes = resource.configs.iter().map(|config| change(&config));
    Wish::new(false, changes.collect::<Result<_, _>>()?)
}

fn change(config: &AlterableConfig<'_>) -> Result<Change, Refusal> {
    let value = || {
        let value = config.value.as_ref().map(ToString::to_string);
        value.ok_or_else(|| Refusal::invalid_request(format!("`{}` has no value", config.name)))
    };
    let operation = match config.config_operation {
        SET => Operation::Set(value()?),
        DELETE => Operation::Unset,
        APPEND => Operation::Append(value()?),
        SUBTRACT => Operation::Subtract(value()?),
        other => return Err(Refusal::invalid_request(format!("there is no operation {other} on settings"))),
    };
    Ok(Change { key: config.name.to_string(), operation })
}

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;
