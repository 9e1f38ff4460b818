//! `Produce`: appends one batch per partition, in the order of arrival, and answers when they are durable.
//!
//! ```text
//! decode -> refuse what breaks the request -> append each partition (in order; waits for room) -> await durability
//! ```
//! Only the last step overlaps with later requests of the same connection. `acks=1` is answered like `acks=all`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kolumn_kafka_wire::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use kolumn_kafka_wire::messages::{ProduceRequest, ProduceResponse};
use kolumn_kafka_wire::records::{Batch, Compression};
use kolumn_kafka_wire::{ErrorCode, Str, Uuid};
use kolumn_topic_store::{
    AppendError, AppendErrorKind, Appended, Commit, PartitionIndex, PressureLevel, Store, Timestamp, TopicId,
};
use tokio::time::Instant;

use super::room;
use crate::api::PRODUCE_REFUSED_MAX;
use crate::bridge::{errors, ids};
use crate::context::Session;
use crate::dispatch::{Answer, Head, Request, Started};
use crate::observer::CloseReason;

/// A request that is being appended. INVARIANT: partitions before `next` have an outcome, those from it on have none.
struct Work {
    acks: i16,
    deadline: Instant,
    topics: Vec<Topic>,
    partitions: Vec<Partition>,
    next: usize,
}

struct Topic {
    name: Str<'static>,
    wire_id: Uuid,
    /// How many of the partitions are its own.
    partitions: usize,
}

struct Partition {
    /// The topic, or what is wrong with it.
    topic: Result<TopicId, Fault>,
    index: i32,
    records: Option<Bytes>,
    outcome: Option<Result<Commit<Appended>, Fault>>,
}

/// Why a partition's batch was not appended.
#[derive(Debug, Clone)]
struct Fault {
    code: ErrorCode,
    text: String,
    records: Vec<(i32, String)>,
}

impl Fault {
    fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), records: Vec::new() }
    }
}

impl From<AppendError> for Fault {
    fn from(error: AppendError) -> Self {
        let code = errors::append_code(error.kind());
        Self { code, text: error.to_string(), records: error.record_errors().to_vec() }
    }
}

pub(crate) fn start(
    session: &Arc<Session>,
    request: &Request,
    now: Timestamp,
) -> Result<Started, CloseReason> {
    if request.head.version <= PRODUCE_REFUSED_MAX {
        return Err(CloseReason::Refused("produce versions 0 to 2 are announced for old clients only"));
    }
    let mut work = Work::new(session, request)?;
    let pressure = session.store().pressure();
    // A full log needs no throttle: the append itself waits for room, and goes on as soon as there is some.
    let throttle = if pressure.level < PressureLevel::Full { pressure.throttle } else { Duration::ZERO };
    if throttle.is_zero() && work.append(session.store(), request.head.version, now).is_ok() {
        return Ok(work.finish(request.head));
    }
    let (session, head) = (Arc::clone(session), request.head);
    Ok(Started::Ordered(Box::pin(async move {
        tokio::time::sleep(throttle).await;
        work.append_with_patience(&session, head.version, now).await;
        work.finish(head)
    })))
}

impl Work {
    fn new(session: &Session, request: &Request) -> Result<Self, CloseReason> {
        let message: ProduceRequest<'_> = request.decode()?;
        let refusal = if !matches!(message.acks, -1..=1) {
            Some(Fault::new(ErrorCode::INVALID_REQUIRED_ACKS, "acks can be 0, 1 or -1"))
        } else if message.transactional_id.is_some() {
            Some(Fault::new(ErrorCode::INVALID_TXN_STATE, "there are no transactions"))
        } else {
            None
        };
        let mut work = Self {
            acks: message.acks,
            deadline: room::deadline(message.timeout_ms),
            topics: Vec::new(),
            partitions: Vec::new(),
            next: 0,
        };
        for topic in &message.topic_data {
            let found = match &refusal {
                Some(fault) => Err(fault.clone()),
                None => find_topic(session, request.head.version, &topic.name, topic.topic_id),
            };
            for partition in &topic.partition_data {
                work.partitions.push(Partition {
                    topic: found.clone(),
                    index: partition.index,
                    records: partition.records.and_then(kolumn_kafka_wire::Records::into_bytes),
                    outcome: None,
                });
            }
            work.topics.push(Topic {
                name: Str::from(topic.name.to_string()),
                wire_id: topic.topic_id,
                partitions: topic.partition_data.len(),
            });
            // Each partition that means something has a batch; without this rule a frame of empty ones would be
            // answered with many times its length.
            let entries = work.partitions.len() + work.topics.len();
            if entries > ENTRIES_FREE && entries > request.body_len() / BATCH_LEN_MIN {
                return Err(CloseReason::Refused("a produce request of partitions without batches"));
            }
        }
        Ok(work)
    }

    /// Appends what has not been appended; stops where the store has no room.
    fn append(&mut self, store: &Store, version: i16, now: Timestamp) -> Result<(), AppendError> {
        while let Some(partition) = self.partitions.get_mut(self.next) {
            let outcome = match partition.append(store, version, now) {
                Err(AttemptError::Room(error)) => return Err(error),
                Err(AttemptError::Fault(fault)) => Err(fault),
                Ok(commit) => Ok(commit),
            };
            partition.settle(outcome);
            self.next += 1;
        }
        Ok(())
    }

    /// Appends the rest; where the store has no room until the client's time is up, its answer says so.
    async fn append_with_patience(&mut self, session: &Session, version: i16, now: Timestamp) {
        let deadline = self.deadline;
        while let Err(error) =
            room::until_room(session, deadline, |store| self.append(store, version, now), |_| true).await
        {
            if let Some(partition) = self.partitions.get_mut(self.next) {
                partition.settle(Err(Fault::from(error)));
                self.next += 1;
            }
        }
    }

    fn finish(self, head: Head) -> Started {
        if self.acks == 0 {
            let failed = self.partitions.iter().any(|partition| !matches!(partition.outcome, Some(Ok(_))));
            // Without answers, closing is the only way to tell the producer that its records are lost.
            let refused = || Err(CloseReason::Refused("a batch without acknowledgement was not appended"));
            return Started::Now(if failed { refused() } else { Ok(None) });
        }
        Started::later(self.answer(head))
    }

    async fn answer(self, head: Head) -> Answer {
        let mut partitions = self.partitions.into_iter();
        let mut responses = Vec::with_capacity(self.topics.len());
        for topic in self.topics {
            let mut answered = Vec::with_capacity(topic.partitions);
            for partition in partitions.by_ref().take(topic.partitions) {
                answered.push(partition.answer().await);
            }
            responses.push(TopicProduceResponse {
                name: topic.name,
                topic_id: topic.wire_id,
                partition_responses: answered.into(),
                ..TopicProduceResponse::default()
            });
        }
        head.answer(&ProduceResponse { responses: responses.into(), ..ProduceResponse::default() })
    }
}

enum AttemptError {
    /// The store has no room now.
    Room(AppendError),
    Fault(Fault),
}

impl Partition {
    fn append(&self, store: &Store, version: i16, now: Timestamp) -> Result<Commit<Appended>, AttemptError> {
        let topic = self.topic.clone().map_err(AttemptError::Fault)?;
        let records = self.records.clone().filter(|records| !records.is_empty());
        let records = records.ok_or_else(|| {
            AttemptError::Fault(Fault::new(ErrorCode::INVALID_RECORD, "a partition without a batch"))
        })?;
        check_batch(&records, version).map_err(AttemptError::Fault)?;
        store.append(topic, PartitionIndex::new(self.index), records, now).map_err(|error| {
            match error.kind() {
                AppendErrorKind::Busy | AppendErrorKind::Full => AttemptError::Room(error),
                _ => AttemptError::Fault(Fault::from(error)),
            }
        })
    }

    /// The records are not needed any more: the log has them, or refused them.
    fn settle(&mut self, outcome: Result<Commit<Appended>, Fault>) {
        self.outcome = Some(outcome);
        self.records = None;
    }

    async fn answer(self) -> PartitionProduceResponse<'static> {
        let mut response =
            PartitionProduceResponse { index: self.index, ..PartitionProduceResponse::default() };
        let appended = match self.outcome {
            Some(Ok(commit)) => {
                commit.await.map_err(|error| Fault::new(errors::COMMIT_FAILED, error.to_string()))
            }
            Some(Err(fault)) => Err(fault),
            None => Err(Fault::new(ErrorCode::UNKNOWN_SERVER_ERROR, "the batch was not looked at")),
        };
        match appended {
            Ok(appended) => {
                response.base_offset = appended.base_offset.value();
                response.log_append_time_ms = appended.log_append_time.map_or(-1, Timestamp::value);
                response.log_start_offset = appended.log_start_offset.value();
            }
            Err(fault) => {
                response.error_code = fault.code;
                response.base_offset = -1;
                response.error_message = Some(Str::from(fault.text));
                let records = fault.records.into_iter().map(|(index, text)| BatchIndexAndErrorMessage {
                    batch_index: index,
                    batch_index_error_message: Some(Str::from(text)),
                    ..BatchIndexAndErrorMessage::default()
                });
                response.record_errors = records.collect::<Vec<_>>().into();
            }
        }
        response
    }
}

fn find_topic(session: &Session, version: i16, name: &str, id: Uuid) -> Result<TopicId, Fault> {
    let (store, view) = (session.store(), session.context.view.id);
    if version >= FIRST_VERSION_WITH_IDS {
        let topic = store.topic_by_id(view, ids::topic_id_from_wire(id));
        let unknown = || Fault::new(ErrorCode::UNKNOWN_TOPIC_ID, "there is no topic with this id");
        topic.map(|topic| topic.id).ok_or_else(unknown)
    } else {
        let unknown = || Fault::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "there is no topic of this name");
        store.topic(view, name).map(|topic| topic.id).ok_or_else(unknown)
    }
}

/// What the request's version and this broker demand of a batch; the store judges everything else.
fn check_batch(records: &[u8], version: i16) -> Result<(), Fault> {
    let Ok((batch, rest)) = Batch::parse(records) else { return Ok(()) };
    let zstd = batch.attributes().codec().is_ok_and(|codec| codec == Compression::Zstd);
    let fault = if !rest.is_empty() {
        Fault::new(ErrorCode::INVALID_RECORD, "a partition has more than one batch")
    } else if zstd && version < FIRST_VERSION_WITH_ZSTD {
        Fault::new(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE, "zstd needs version 7 of the request")
    } else if batch.attributes().is_transactional() {
        Fault::new(ErrorCode::INVALID_TXN_STATE, "there are no transactions")
    } else {
        return Ok(());
    };
    // What was damaged on its way says nothing about the producer.
    let damaged = || Fault::new(ErrorCode::CORRUPT_MESSAGE, "the checksum of the batch is wrong");
    Err(if batch.crc() == batch.computed_crc() { fault } else { damaged() })
}

const FIRST_VERSION_WITH_IDS: i16 = 13;
const FIRST_VERSION_WITH_ZSTD: i16 = 7;
const BATCH_LEN_MIN: usize = 61;
/// Entries that a request may have whatever its length is.
const ENTRIES_FREE: usize = 1_000;
