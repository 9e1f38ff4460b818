//! `Fetch`: whole batches of several partitions, or a wait until there are enough of them.
//!
//! There are no fetch sessions: every answer has session id 0, which tells clients to name all partitions each time.
//! The log never loses what it acknowledged, so no client can have diverged from it.

mod collect;

use std::sync::Arc;
use std::time::Duration;

use kolumn_kafka_wire::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kolumn_kafka_wire::messages::{FetchRequest, FetchResponse};
use kolumn_kafka_wire::{Array, ErrorCode, Records, Str, Uuid};
use kolumn_topic_store::{PartitionIndex, TopicId};
use tokio::time::Instant;

use self::collect::{Collected, collect};
use crate::bridge::ids;
use crate::context::{Phase, Session, reached};
use crate::dispatch::{Answer, Head, Request, Started};
use crate::observer::CloseReason;
use crate::stats::Counted;

/// What a request asks for.
#[derive(Debug)]
struct Plan {
    topics: Vec<TopicPlan>,
    /// Bytes of records that the answer may have, and those that make it worth sending before the deadline.
    max_len: usize,
    min_len: usize,
    read_committed: bool,
    /// Whether topics are given by their ids.
    by_id: bool,
    deadline: Instant,
}

#[derive(Debug)]
struct TopicPlan {
    name: Str<'static>,
    wire_id: Uuid,
    /// The topic, or how its absence is called.
    topic: Result<TopicId, ErrorCode>,
    partitions: Vec<PartitionPlan>,
}

#[derive(Debug, Clone, Copy)]
struct PartitionPlan {
    index: i32,
    current_leader_epoch: i32,
    offset: i64,
    max_len: usize,
}

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: FetchRequest<'_> = request.decode()?;
    if let Some(code) = session_fault(&message) {
        let response = FetchResponse { error_code: code, ..FetchResponse::default() };
        return Ok(Started::Now(request.head.answer(&response)));
    }
    let plan = Arc::new(Plan::new(session, request.head.version, &message));
    let (session, head) = (Arc::clone(session), request.head);
    Ok(Started::later(async move {
        let collected = wait(&session, &plan).await?;
        answer(head, &plan, collected)
    }))
}

/// A client can only be in a session that it was told of, and no session is ever given out.
fn session_fault(message: &FetchRequest<'_>) -> Option<ErrorCode> {
    let incremental = message.session_epoch > 0;
    match (message.session_id, incremental) {
        (_, false) => None,
        (0, true) => Some(ErrorCode::INVALID_FETCH_SESSION_EPOCH),
        (_, true) => Some(ErrorCode::FETCH_SESSION_ID_NOT_FOUND),
    }
}

impl Plan {
    fn new(session: &Session, version: i16, message: &FetchRequest<'_>) -> Self {
        let limits = &session.context.validated.settings.limits;
        let max_len = ids::len_from_wire(message.max_bytes).min(limits.fetch_len_max);
        let max_wait = Duration::from_millis(u64::try_from(message.max_wait_ms).unwrap_or(0));
        let topics = message.topics.iter().map(|topic| {
            let (store, view) = (session.store(), session.context.view.id);
            let found = if version >= FIRST_VERSION_WITH_IDS {
                let found = store.topic_by_id(view, ids::topic_id_from_wire(topic.topic_id));
                found.ok_or(ErrorCode::UNKNOWN_TOPIC_ID)
            } else {
                store.topic(view, &topic.topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
            };
            let partitions = topic.partitions.iter().map(|partition| PartitionPlan {
                index: partition.partition,
                current_leader_epoch: partition.current_leader_epoch,
                offset: partition.fetch_offset,
                max_len: ids::len_from_wire(partition.partition_max_bytes),
            });
            TopicPlan {
                name: Str::from(topic.topic.to_string()),
                wire_id: topic.topic_id,
                topic: found.map(|topic| topic.id),
                partitions: partitions.collect(),
            }
        });
        Self {
            topics: topics.collect(),
            max_len,
            min_len: ids::len_from_wire(message.min_bytes).min(max_len),
            read_committed: message.isolation_level == READ_COMMITTED,
            by_id: version >= FIRST_VERSION_WITH_IDS,
            deadline: Instant::now() + max_wait.min(WAIT_MAX),
        }
    }

    fn keys(&self) -> Vec<(TopicId, PartitionIndex)> {
        let keys = self.topics.iter().filter_map(|topic| Some((topic.topic.ok()?, &topic.partitions)));
        keys.flat_map(|(id, partitions)| {
            partitions.iter().map(move |partition| (id, PartitionIndex::new(partition.index)))
        })
        .collect()
    }

    /// Whether waiting cannot make the answer better.
    fn is_satisfied(&self, collected: &Collected) -> bool {
        collected.settled_len >= self.min_len || collected.has_error || self.topics.is_empty()
    }
}

/// Collects until there is enough, something is wrong, time is up or the broker drains.
async fn wait(session: &Session, plan: &Arc<Plan>) -> Result<Collected, CloseReason> {
    let collected = collect_anywhere(session, plan).await?;
    if plan.is_satisfied(&collected) || Instant::now() >= plan.deadline {
        return Ok(collected);
    }
    drop(collected);
    let _waiting = Counted::new(&session.context.counters.long_polls);
    let mut phase = session.context.phase.clone();
    let mut watch = session.store().watch(&plan.keys());
    loop {
        // What was appended before the watch was registered is seen here, what comes later wakes.
        let collected = collect_anywhere(session, plan).await?;
        if plan.is_satisfied(&collected) {
            return Ok(collected);
        }
        tokio::select! {
            () = watch.changed() => {}
            () = tokio::time::sleep_until(plan.deadline) => return Ok(collected),
            () = reached(&mut phase, Phase::Draining) => return Ok(collected),
        }
    }
}

/// Collects at once where the index is in memory, and on a thread that may block where it is not.
async fn collect_anywhere(session: &Session, plan: &Arc<Plan>) -> Result<Collected, CloseReason> {
    if let Some(collected) = collect(session.store(), plan, false) {
        return Ok(collected);
    }
    let (store, plan) = (session.store().clone(), Arc::clone(plan));
    let collected = tokio::task::spawn_blocking(move || collect(&store, &plan, true)).await;
    let failed = |why: String| CloseReason::Answer(why);
    collected
        .map_err(|error| failed(error.to_string()))?
        .ok_or_else(|| failed("nothing was collected".to_owned()))
}

fn answer(head: Head, plan: &Plan, collected: Collected) -> Answer {
    let mut partitions = collected.partitions.into_iter();
    let mut ranges = Vec::new();
    let topics = plan.topics.iter().map(|topic| {
        let answered = topic.partitions.iter().zip(partitions.by_ref()).map(|(planned, found)| {
            let mut data = PartitionData {
                partition_index: planned.index,
                error_code: found.error_code,
                high_watermark: -1,
                last_stable_offset: -1,
                log_start_offset: -1,
                aborted_transactions: plan.read_committed.then(Array::new),
                records: Some(Records::default()),
                ..PartitionData::default()
            };
            if let Some(offsets) = found.offsets {
                data.high_watermark = offsets.high_watermark.value();
                data.last_stable_offset = offsets.last_stable.value();
                data.log_start_offset = offsets.log_start.value();
            }
            if found.len > 0 {
                data.records = Some(Records::Deferred { len: found.len, token: ranges.len() as u64 });
                ranges.push(found.slices);
            }
            data
        });
        FetchableTopicResponse {
            topic: topic.name.clone(),
            topic_id: topic.wire_id,
            partitions: answered.collect::<Vec<_>>().into(),
            ..FetchableTopicResponse::default()
        }
    });
    let responses = topics.collect::<Vec<_>>().into();
    head.answer_with(&FetchResponse { responses, ..FetchResponse::default() }, head.version, ranges)
}

const READ_COMMITTED: i8 = 1;
const FIRST_VERSION_WITH_IDS: i16 = 13;
/// Longest wait, whatever the client says: below every idle timeout on the way.
const WAIT_MAX: Duration = Duration::from_mins(4);
