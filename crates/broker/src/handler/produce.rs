//! `Produce`: appends one batch per partition, in the order of arrival, and answers when they are durable.
//!
//! ```text
//! decode -> refuse what breaks the request -> append each partition (in order; waits for room) -> await durability
//! ```
//! Only the last step overlaps with later requests of the same connection. `acks=1` is answered like `acks=all`.
//!
//! Records are walked on the runtime's thread up to a bound for each request. What is left then, and what has to wait for
//! room, is appended on threads for blocking work, of which only so many walk at the same time: small batches that inflate
//! to much take their time from each other, not from other requests.

use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use std::time::Duration;

use bytes::Bytes;
use kolumn_kafka_wire::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use kolumn_kafka_wire::messages::{ProduceRequest, ProduceResponse};
use kolumn_kafka_wire::records::{Batch, Compression};
use kolumn_kafka_wire::{ErrorCode, Str, Uuid, Value};
use kolumn_topic_store::{
    AppendError, AppendErrorKind, Appended, Commit, PartitionIndex, PressureLevel, Store, Timestamp, TopicId,
};
use smallvec::SmallVec;
use tokio::sync::Semaphore;
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
    topics: Few<Topic>,
    partitions: Few<Partition>,
    next: usize,
}

/// Most requests are about one partition.
type Few<T> = SmallVec<[T; 1]>;

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
    outcome: Option<Outcome>,
}

/// What became of a batch; a commit becomes one of the others when it is there.
enum Outcome {
    UnderWay(Commit<Appended>),
    Durable(Appended),
    Refused(Fault),
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
    let head = request.head;
    let mut walk_len = WALK_LEN_INLINE;
    if throttle.is_zero() && work.append_inline(session.store(), head.version, now, &mut walk_len) {
        if WALK_LEN_INLINE - walk_len <= WALK_LEN_UNNOTICED {
            return Ok(work.finish(head));
        }
        // Many of these in a row would add up: others have their turn before the connection's next request.
        return Ok(Started::Ordered(Box::pin(async move {
            tokio::task::yield_now().await;
            work.finish(head)
        })));
    }
    let session = Arc::clone(session);
    Ok(Started::Ordered(Box::pin(async move {
        tokio::time::sleep(throttle).await;
        match work.append_with_patience(&session, head.version, now).await {
            Ok(work) => work.finish(head),
            Err(reason) => Started::Now(Err(reason)),
        }
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
            topics: Few::new(),
            partitions: Few::new(),
            next: 0,
        };
        for topic in &message.topic_data {
            let found = match &refusal {
                Some(fault) => Err(fault.clone()),
                None => find_topic(session, request.head.version, &topic.name, topic.topic_id),
            };
            let found_id = found.as_ref().map(|found| found.id).map_err(Fault::clone);
            for partition in &topic.partition_data {
                work.partitions.push(Partition {
                    topic: found_id.clone(),
                    index: partition.index,
                    records: partition.records.and_then(kolumn_kafka_wire::Records::into_bytes),
                    outcome: None,
                });
            }
            work.topics.push(Topic {
                name: match found {
                    Ok(found) if *found.name == *topic.name => Str::from(Arc::clone(&found.name)),
                    // Requests with ids name nothing.
                    _ if topic.name.is_empty() => Str::default(),
                    _ => topic.name.into_owned(),
                },
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

    /// Appends partitions in order until `attempt` gives one no outcome.
    fn append_while<S>(
        &mut self,
        version: i16,
        mut attempt: impl FnMut(TopicId, PartitionIndex, Bytes) -> Result<Commit<Appended>, Stop<S>>,
    ) -> ControlFlow<S> {
        while let Some(partition) = self.partitions.get_mut(self.next) {
            let index = PartitionIndex::new(partition.index);
            let outcome = match partition.batch(version) {
                Err(fault) => Outcome::Refused(fault),
                Ok((topic, batch)) => match attempt(topic, index, batch) {
                    Err(Stop::Later(why)) => return ControlFlow::Break(why),
                    Err(Stop::Fault(fault)) => Outcome::Refused(fault),
                    Ok(commit) => Outcome::UnderWay(commit),
                },
            };
            partition.settle(outcome);
            self.next += 1;
        }
        ControlFlow::Continue(())
    }

    /// Appends what can be appended at once without walking more than this. Tells whether that was everything.
    fn append_inline(&mut self, store: &Store, version: i16, now: Timestamp, walk_len: &mut usize) -> bool {
        let appended = self.append_while(version, |topic, index, batch| {
            let appended = store.append_bounded(topic, index, batch, now, walk_len);
            match appended.map_err(Stop::of) {
                Ok(Some(commit)) => Ok(commit),
                Ok(None) | Err(Stop::Later(_)) => Err(Stop::Later(())),
                Err(Stop::Fault(fault)) => Err(Stop::Fault(fault)),
            }
        });
        appended.is_continue()
    }

    /// Appends the rest, however long it takes; stops where the store has no room.
    fn append(&mut self, store: &Store, version: i16, now: Timestamp) -> Option<AppendError> {
        self.append_while(version, |topic, index, batch| {
            store.append(topic, index, batch, now).map_err(Stop::of)
        })
        .break_value()
    }

    /// Appends the rest off the runtime; where the store has no room until the client's time is up, its answer says so.
    async fn append_with_patience(
        mut self,
        session: &Session,
        version: i16,
        now: Timestamp,
    ) -> Result<Self, CloseReason> {
        loop {
            // Registered before the attempt, so that room made in between is not missed.
            let room = session.store().space_changed();
            let refused;
            (self, refused) = self.append_off_runtime(session.store().clone(), version, now).await?;
            let Some(error) = refused else { return Ok(self) };
            if !room::is_made(session, room, self.deadline).await
                && let Some(partition) = self.partitions.get_mut(self.next)
            {
                partition.settle(Outcome::Refused(Fault::from(error)));
                self.next += 1;
            }
        }
    }

    async fn append_off_runtime(
        mut self,
        store: Store,
        version: i16,
        now: Timestamp,
    ) -> Result<(Self, Option<AppendError>), CloseReason> {
        let failed = |error: &dyn std::error::Error| CloseReason::Answer(error.to_string());
        let permit = Arc::clone(&WALKERS).acquire_owned().await.map_err(|error| failed(&error))?;
        let appended = tokio::task::spawn_blocking(move || {
            // Kept here: the walk goes on when the connection ends before it.
            let _permit = permit;
            let refused = self.append(&store, version, now);
            (self, refused)
        });
        appended.await.map_err(|error| failed(&error))
    }

    fn finish(mut self, head: Head) -> Started {
        if self.acks == 0 {
            let failed = |partition: &Partition| !matches!(partition.outcome, Some(Outcome::UnderWay(_)));
            // Without answers, closing is the only way to tell the producer that its records are lost.
            let refused = || Err(CloseReason::Refused("a batch without acknowledgement was not appended"));
            return Started::Now(if self.partitions.iter().any(failed) { refused() } else { Ok(None) });
        }
        Started::later(async move {
            for partition in &mut self.partitions {
                partition.wait().await;
            }
            self.answer(head)
        })
    }

    /// The answer, once every outcome is there.
    fn answer(self, head: Head) -> Answer {
        let answered: Few<_> = self.partitions.into_iter().map(Partition::answer).collect();
        let mut rest = answered.as_slice();
        let mut responses = Few::with_capacity(self.topics.len());
        for topic in self.topics {
            let (own, others) = rest.split_at_checked(topic.partitions).unwrap_or((rest, &[]));
            rest = others;
            responses.push(TopicProduceResponse {
                name: topic.name,
                topic_id: topic.wire_id,
                partition_responses: own.into(),
                ..TopicProduceResponse::default()
            });
        }
        let responses = responses.as_slice().into();
        head.answer(&ProduceResponse { responses, ..ProduceResponse::default() })
    }
}

/// Why an attempt did not append a batch.
enum Stop<L> {
    /// It can succeed later.
    Later(L),
    Fault(Fault),
}

impl Stop<AppendError> {
    fn of(error: AppendError) -> Self {
        match error.kind() {
            AppendErrorKind::Busy | AppendErrorKind::Full => Self::Later(error),
            _ => Self::Fault(Fault::from(error)),
        }
    }
}

impl Partition {
    /// Where its batch goes, and the batch.
    fn batch(&self, version: i16) -> Result<(TopicId, Bytes), Fault> {
        let topic = self.topic.clone()?;
        let records = self.records.clone().filter(|records| !records.is_empty());
        let missing = || Fault::new(ErrorCode::INVALID_RECORD, "a partition without a batch");
        let records = records.ok_or_else(missing)?;
        check_batch(&records, version)?;
        Ok((topic, records))
    }

    /// The records are not needed any more: the log has them, or refused them.
    fn settle(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
        self.records = None;
    }

    /// Waits until the outcome is there.
    async fn wait(&mut self) {
        if let Some(Outcome::UnderWay(commit)) = &mut self.outcome {
            self.outcome = Some(match commit.await {
                Ok(appended) => Outcome::Durable(appended),
                Err(error) => Outcome::Refused(Fault::new(errors::COMMIT_FAILED, error.to_string())),
            });
        }
    }

    fn answer(self) -> PartitionProduceResponse<'static> {
        let mut response =
            PartitionProduceResponse { index: self.index, ..PartitionProduceResponse::default() };
        let fault = match self.outcome {
            Some(Outcome::Durable(appended)) => {
                response.base_offset = appended.base_offset.value();
                response.log_append_time_ms = appended.log_append_time.map_or(-1, Timestamp::value);
                response.log_start_offset = appended.log_start_offset.value();
                return response;
            }
            Some(Outcome::Refused(fault)) => fault,
            Some(Outcome::UnderWay(_)) | None => {
                Fault::new(ErrorCode::UNKNOWN_SERVER_ERROR, "the batch was not looked at")
            }
        };
        response.error_code = fault.code;
        response.base_offset = -1;
        response.error_message = Some(Str::from(fault.text));
        let records = fault.records.into_iter().map(|(index, text)| BatchIndexAndErrorMessage {
            batch_index: index,
            batch_index_error_message: Some(Str::from(text)),
            ..BatchIndexAndErrorMessage::default()
        });
        response.record_errors = records.collect::<Vec<_>>().into();
        response
    }
}

fn find_topic(
    session: &Session,
    version: i16,
    name: &str,
    id: Uuid,
) -> Result<Arc<kolumn_topic_store::Topic>, Fault> {
    let (store, view) = (session.store(), session.context.view.id);
    if version >= FIRST_VERSION_WITH_IDS {
        let topic = store.topic_by_id(view, ids::topic_id_from_wire(id));
        let unknown = || Fault::new(ErrorCode::UNKNOWN_TOPIC_ID, "there is no topic with this id");
        topic.ok_or_else(unknown)
    } else {
        let unknown = || Fault::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "there is no topic of this name");
        store.topic(view, name).ok_or_else(unknown)
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

/// Who may walk records off the runtime at the same time, in all brokers of the process: they share its processors.
static WALKERS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(WALKERS_MIN, |cores| cores.get().max(WALKERS_MIN));
    Arc::new(Semaphore::new(cores))
});
const WALKERS_MIN: usize = 2;

/// Bytes of records that a request may walk on the runtime's thread: about a millisecond.
const WALK_LEN_INLINE: usize = 1 << 20;
/// What it may walk there without letting others have their turn.
const WALK_LEN_UNNOTICED: usize = 64 << 10;

const FIRST_VERSION_WITH_IDS: i16 = 13;
const FIRST_VERSION_WITH_ZSTD: i16 = 7;
const BATCH_LEN_MIN: usize = 61;
/// Entries that a request may have whatever its length is.
const ENTRIES_FREE: usize = 1_000;
