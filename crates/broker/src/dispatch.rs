//! From a complete frame to the handler of its kind, and from a handler's message to the bytes of the response.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use kolumn_kafka_wire::messages::{RequestHeader, ResponseHeader};
use kolumn_kafka_wire::{ApiKey, Message, Part, Reader, RequestMessage, ResponseMessage};
use kolumn_topic_store::{Slice, Timestamp};

use crate::bridge::StoredRange;
use crate::connection::Response;
use crate::context::Session;
use crate::handler;
use crate::observer::CloseReason;

/// The bytes of an answer; `None` if the request has none; or why the connection has to end.
pub(crate) type Answer = Result<Option<Response<StoredRange>>, CloseReason>;

pub(crate) type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What became of a request.
pub(crate) enum Started {
    /// It is answered.
    Now(Answer),
    /// Its effects are in order; the answer follows. Later requests of the connection may start.
    Later(Pending<Answer>),
    /// Its effects are still to come: later requests of the connection have to wait for them.
    Ordered(Pending<Started>),
}

impl Started {
    pub(crate) fn later(answer: impl Future<Output = Answer> + Send + 'static) -> Self {
        Self::Later(Box::pin(answer))
    }

    /// A request whose effects happen while it is awaited.
    pub(crate) fn ordered(answer: impl Future<Output = Answer> + Send + 'static) -> Self {
        Self::Ordered(Box::pin(async move { Self::Now(answer.await) }))
    }
}

/// A request whose header has been read.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: Head,
    frame: Bytes,
    body: Bytes,
}

/// What is needed to answer a request. Answers to come keep this, not the request, so that its memory is free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) key: ApiKey,
    pub(crate) version: i16,
    correlation_id: i32,
}

/// Starts a request. Effects that are not `Ordered` have happened when this returns.
pub(crate) fn start(session: &Arc<Session>, frame: &Bytes, now: Timestamp) -> Started {
    let started = Request::read(frame).and_then(|request| {
        if !is_known_version(request.head) {
            return handler::api_versions::refuse_version(request.head);
        }
        match request.head.key {
            ApiKey::PRODUCE => handler::produce::start(session, &request, now),
            ApiKey::FETCH => Ok(handler::fetch::start(session, &request)),
            ApiKey::LIST_OFFSETS => handler::list_offsets::start(session, &request),
            ApiKey::METADATA => handler::metadata::start(session, &request, now),
            ApiKey::FIND_COORDINATOR => handler::find_coordinator::start(session, &request),
            ApiKey::API_VERSIONS => handler::api_versions::start(&request),
            ApiKey::CREATE_TOPICS => handler::create_topics::start(session, &request, now),
            ApiKey::DELETE_TOPICS => handler::delete_topics::start(session, &request),
            ApiKey::INIT_PRODUCER_ID => handler::init_producer_id::start(session, &request),
            ApiKey::DESCRIBE_CLUSTER => handler::describe_cluster::start(session, &request),
            ApiKey::OFFSET_COMMIT
            | ApiKey::OFFSET_FETCH
            | ApiKey::JOIN_GROUP
            | ApiKey::HEARTBEAT
            | ApiKey::LEAVE_GROUP
            | ApiKey::SYNC_GROUP
            | ApiKey::DESCRIBE_GROUPS
            | ApiKey::LIST_GROUPS
            | ApiKey::DELETE_GROUPS
            | ApiKey::OFFSET_DELETE => start_group(session, &request, now),
            _ => start_admin(session, &request),
        }
    });
    started.unwrap_or_else(|reason| Started::Now(Err(reason)))
}

/// What members of groups and those who look after groups ask.
fn start_group(session: &Arc<Session>, request: &Request, now: Timestamp) -> Result<Started, CloseReason> {
    match request.head.key {
        ApiKey::OFFSET_COMMIT => handler::offset_commit::start(session, request, now),
        ApiKey::OFFSET_FETCH => handler::offset_fetch::start(session, request),
        ApiKey::JOIN_GROUP => handler::join_group::start(session, request),
        ApiKey::HEARTBEAT => handler::heartbeat::start(session, request),
        ApiKey::LEAVE_GROUP => handler::leave_group::start(session, request),
        ApiKey::SYNC_GROUP => handler::sync_group::start(session, request),
        ApiKey::DESCRIBE_GROUPS => handler::describe_groups::start(session, request),
        ApiKey::LIST_GROUPS => handler::list_groups::start(session, request),
        ApiKey::DELETE_GROUPS => handler::delete_groups::start(session, request),
        ApiKey::OFFSET_DELETE => handler::offset_delete::start(session, request),
        _ => Err(CloseReason::Refused("a request that is not in the table")),
    }
}

/// What administrators ask.
fn start_admin(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    match request.head.key {
        ApiKey::DELETE_RECORDS => handler::delete_records::start(session, request),
        ApiKey::OFFSET_FOR_LEADER_EPOCH => handler::offset_for_leader_epoch::start(session, request),
        ApiKey::DESCRIBE_CONFIGS => handler::describe_configs::start(session, request),
        ApiKey::ALTER_CONFIGS => handler::alter_configs::start(session, request),
        ApiKey::DESCRIBE_LOG_DIRS => handler::describe_log_dirs::start(session, request),
        ApiKey::CREATE_PARTITIONS => handler::create_partitions::start(session, request),
        ApiKey::ELECT_LEADERS => handler::elect_leaders::start(session, request),
        ApiKey::INCREMENTAL_ALTER_CONFIGS => handler::incremental_alter_configs::start(session, request),
        ApiKey::LIST_PARTITION_REASSIGNMENTS => {
            handler::list_partition_reassignments::start(session, request)
        }
        ApiKey::DESCRIBE_TOPIC_PARTITIONS => handler::describe_topic_partitions::start(session, request),
        _ => Err(CloseReason::Refused("a request that is not in the table")),
    }
}

impl Request {
    fn read(frame: &Bytes) -> Result<Self, CloseReason> {
        let mut reader = Reader::new(frame);
        let header = RequestHeader::read_frame(&mut reader).map_err(CloseReason::Malformed)?;
        let head = Head {
            key: header.api_key(),
            version: header.request_api_version,
            correlation_id: header.correlation_id,
        };
        let body = frame.slice(reader.position()..);
        Ok(Self { head, frame: frame.clone(), body })
    }

    /// What the client calls itself; read again where it matters, because most requests do not ask.
    pub(crate) fn client_id(&self) -> Option<String> {
        let header = RequestHeader::read_frame(&mut Reader::new(&self.frame)).ok()?;
        header.client_id.map(|id| id.to_string())
    }

    /// The length of the body.
    pub(crate) fn body_len(&self) -> usize {
        self.body.len()
    }

    /// The decoded body; byte strings and records in it share the frame's memory.
    ///
    /// Bytes behind the message are passed over, as Kafka does: librdkafka up to 2.8 ends a Metadata request for all
    /// topics with three of them.
    pub(crate) fn decode<'a, M: RequestMessage<'a>>(&'a self) -> Result<M, CloseReason> {
        M::read(&mut Reader::shared(&self.body), self.head.version).map_err(CloseReason::Malformed)
    }
}

impl Head {
    /// The answer in the version of the request.
    pub(crate) fn answer<'a>(self, message: &impl ResponseMessage<'a>) -> Answer {
        self.answer_with(message, self.version, Vec::new())
    }

    /// The answer in another version, with the slices that its deferred records stand for: the token of deferred
    /// records is an index in `ranges`.
    pub(crate) fn answer_with<'a>(
        self,
        message: &impl ResponseMessage<'a>,
        version: i16,
        ranges: Vec<Vec<Slice>>,
    ) -> Answer {
        let header = ResponseHeader { correlation_id: self.correlation_id, ..ResponseHeader::default() };
        let header_version = self.key.response_header_version(version);
        let encoded = kolumn_kafka_wire::encode_frame(&mut |writer| {
            Message::write(&header, writer, header_version)?;
            Message::write(message, writer, version)
        })
        .map_err(|error| CloseReason::Answer(error.to_string()))?;
        let mut ranges: Vec<Option<Vec<Slice>>> = ranges.into_iter().map(Some).collect();
        let mut response = Response::new();
        for part in encoded {
            match part {
                Part::Bytes(bytes) => response.push_bytes(bytes),
                Part::Deferred { token, .. } => {
                    let index = usize::try_from(token).unwrap_or(usize::MAX);
                    for slice in ranges.get_mut(index).and_then(Option::take).into_iter().flatten() {
                        let len = slice.len();
                        response.push_range(StoredRange::new(slice), len);
                    }
                }
            }
        }
        Ok(Some(response))
    }
}

fn is_known_version(head: Head) -> bool {
    crate::api::APIS.iter().any(|api| api.key == head.key && api.versions.contains(head.version))
}
