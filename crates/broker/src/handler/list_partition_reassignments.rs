//! `ListPartitionReassignments`: a broker that is alone moves no replicas.

use std::sync::Arc;

use kolumn_kafka_wire::messages::{ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse};

use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(_session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let _: ListPartitionReassignmentsRequest<'_> = request.decode()?;
    let response = ListPartitionReassignmentsResponse {
        error_message: None,
        ..ListPartitionReassignmentsResponse::default()
    };
    Ok(Started::Now(request.head.answer(&response)))
}
