//! `DescribeCluster`: this broker is the cluster.

use kolumn_kafka_wire::messages::describe_cluster_response::DescribeClusterBroker;
use kolumn_kafka_wire::messages::{DescribeClusterRequest, DescribeClusterResponse};
use kolumn_kafka_wire::{ErrorCode, Str};

use super::{CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED};
use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Session, request: &Request) -> Result<Started, CloseReason> {
    let message: DescribeClusterRequest<'_> = request.decode()?;
    let context = &session.context;
    let refusal = match message.endpoint_type {
        BROKERS => None,
        CONTROLLERS => Some((ErrorCode::MISMATCHED_ENDPOINT_TYPE, "this is a broker, not a controller")),
        _ => Some((ErrorCode::UNSUPPORTED_ENDPOINT_TYPE, "unknown type of endpoint")),
    };
    let response = if let Some((error_code, text)) = refusal {
        DescribeClusterResponse {
            error_code,
            error_message: Some(Str::from(text)),
            endpoint_type: message.endpoint_type,
            ..DescribeClusterResponse::default()
        }
    } else {
        let broker = DescribeClusterBroker {
            broker_id: context.node_id(),
            host: Str::from(session.endpoint.host.as_str()),
            port: i32::from(session.endpoint.port),
            ..DescribeClusterBroker::default()
        };
        let asked = message.include_cluster_authorized_operations;
        DescribeClusterResponse {
            cluster_id: Str::from(&*context.view.cluster_id),
            controller_id: context.node_id(),
            brokers: vec![broker].into(),
            cluster_authorized_operations: if asked { CLUSTER_OPERATIONS } else { OPERATIONS_NOT_ASKED },
            ..DescribeClusterResponse::default()
        }
    };
    Ok(Started::Now(request.head.answer(&response)))
}

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;
