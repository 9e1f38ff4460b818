//! `ElectLeaders`: the one replica of each partition leads already.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kolumn_kafka_wire::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kolumn_kafka_wire::messages::{ElectLeadersRequest, ElectLeadersResponse};
use kolumn_kafka_wire::{ErrorCode, Str};

use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: ElectLeadersRequest<'_> = request.decode()?;
    let is_known = matches!(message.election_type, PREFERRED | UNCLEAN);
    let mut asked: BTreeMap<Str<'_>, BTreeSet<i32>> = BTreeMap::new();
    // Without topics all are meant; of all, only those are told whose leader changed or that could get none.
    for topic in message.topic_partitions.iter().flatten() {
        asked.entry(topic.topic).or_default().extend(topic.partitions.iter());
    }
    let results = asked.into_iter().map(|(topic, partitions)| {
        let count = if is_known { Some(partitions_of(session, &topic)) } else { None };
        ReplicaElectionResult {
            topic,
            partition_result: partitions.into_iter().map(|partition| elect(partition, count)).collect(),
            ..ReplicaElectionResult::default()
        }
    });
    let response = ElectLeadersResponse {
        // Version 0 knows neither types of elections nor an error of the whole request.
        error_code: if is_known { ErrorCode::NONE } else { ErrorCode::INVALID_REQUEST },
        replica_election_results: results.collect(),
        ..ElectLeadersResponse::default()
    };
    Ok(Started::Now(request.head.answer(&response)))
}

fn partitions_of(session: &Session, topic: &str) -> i32 {
    let topic = session.store().topic(session.context.view.id, topic);
    topic.map_or(0, |topic| topic.partitions)
}

/// `count` is how many partitions there are; `None` if the election is of an unknown type.
fn elect(partition_id: i32, count: Option<i32>) -> PartitionResult<'static> {
    let (error_code, text) = match count {
        None => (ErrorCode::INVALID_REQUEST, "unknown type of election"),
        Some(count) if (0..count).contains(&partition_id) => {
            (ErrorCode::ELECTION_NOT_NEEDED, "the partition has its leader")
        }
        Some(_) => (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition"),
    };
    let error_message = Some(Str::from_static(text));
    PartitionResult { partition_id, error_code, error_message, ..PartitionResult::default() }
}

const PREFERRED: i8 = 0;
const UNCLEAN: i8 = 1;
