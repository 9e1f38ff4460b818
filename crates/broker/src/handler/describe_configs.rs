//! `DescribeConfigs`: settings of topics and of this broker, with where each value comes from.

use std::collections::BTreeSet;
use std::sync::Arc;

use kolumn_kafka_wire::Str;
use kolumn_kafka_wire::messages::describe_configs_request::DescribeConfigsResource;
use kolumn_kafka_wire::messages::describe_configs_response::DescribeConfigsResult;
use kolumn_kafka_wire::messages::{DescribeConfigsRequest, DescribeConfigsResponse};

use super::broker_configs;
use super::config_resource::Resource;
use super::config_rows::{self, Detail, Row};
use super::refusal::Refusal;
use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: DescribeConfigsRequest<'_> = request.decode()?;
    let mut seen = BTreeSet::new();
    let mut room = ROWS_MAX;
    let mut results = Vec::new();
    for resource in &message.resources {
        // What is asked for twice is answered once.
        if seen.insert((resource.resource_type, resource.resource_name.clone())) {
            let rows = rows(session, &resource, &mut room);
            results.push(result(&message, resource, rows));
        }
    }
    let response = DescribeConfigsResponse { results: results.into(), ..DescribeConfigsResponse::default() };
    Ok(Started::Now(request.head.answer(&response)))
}

/// The settings that are asked for of a resource, and whether they are only read.
fn rows(
    session: &Session,
    asked: &DescribeConfigsResource<'_>,
    room: &mut usize,
) -> Result<(Vec<Row>, bool), Refusal> {
    if *room == 0 {
        return Err(too_much());
    }
    let resource = Resource::find(session, asked.resource_type, &asked.resource_name)?;
    // Clients that name no key mean all.
    let keys: Option<BTreeSet<_>> =
        asked.configuration_keys.as_ref().filter(|keys| !keys.is_empty()).map(|keys| keys.iter().collect());
    let is_asked = |row: &Row| keys.as_ref().is_none_or(|keys| keys.contains(&Str::from_static(row.name)));
    let rows: Vec<_> = match &resource {
        Resource::Topic(topic) => config_rows::of_topic(&topic.config).filter(is_asked).collect(),
        Resource::Broker => broker_configs::rows(session).into_iter().filter(is_asked).collect(),
        Resource::BrokerLogger | Resource::ClientMetrics | Resource::Group => Vec::new(),
    };
    let left = room.checked_sub(rows.len());
    *room = left.unwrap_or(0);
    left.ok_or_else(too_much)?;
    Ok((rows, !matches!(resource, Resource::Topic(_))))
}

fn too_much() -> Refusal {
    Refusal::invalid_request("the answer would be too long: describe fewer resources at a time")
}

fn result<'a>(
    message: &DescribeConfigsRequest<'_>,
    asked: DescribeConfigsResource<'a>,
    rows: Result<(Vec<Row>, bool), Refusal>,
) -> DescribeConfigsResult<'a> {
    let mut result = DescribeConfigsResult {
        error_message: None,
        resource_type: asked.resource_type,
        resource_name: asked.resource_name,
        ..DescribeConfigsResult::default()
    };
    match rows {
        Ok((rows, read_only)) => {
            let detail = Detail {
                read_only,
                synonyms: message.include_synonyms,
                documentation: message.include_documentation,
            };
            result.configs = rows.into_iter().map(|row| row.describe(detail)).collect();
        }
        Err(refusal) => {
            result.error_code = refusal.code;
            result.error_message = Some(refusal.into_text());
        }
    }
    result
}

/// Settings in one answer, at most: those of six thousand topics.
const ROWS_MAX: usize = 200_000;
