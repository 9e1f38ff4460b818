//! What a request asks for: first as it was sent, then with the partitions of its session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kolumn_kafka_wire::messages::FetchRequest;
use kolumn_kafka_wire::{ErrorCode, Str, Uuid};
use kolumn_topic_store::{PartitionIndex, TopicId};
use tokio::time::Instant;

use super::collect::Collected;
use crate::bridge::ids;
use crate::context::Session;
use crate::fetch_session::{Asked, TopicRef, Wanted};

/// Bounds of an answer, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// Bytes of records that the answer may have, and those that make it worth sending before the deadline.
    pub(super) max_len: usize,
    pub(super) min_len: usize,
    pub(super) read_committed: bool,
    /// Whether topics are given by their ids.
    pub(super) by_id: bool,
    pub(super) deadline: Instant,
}

/// What is read, in this order.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) terms: Terms,
    pub(super) partitions: Vec<Wanted>,
    /// The topic of each partition, or how its absence is called.
    pub(super) topics: Vec<Result<TopicId, ErrorCode>>,
}

impl Terms {
    pub(super) fn new(session: &Session, version: i16, message: &FetchRequest<'_>) -> Self {
        let limits = &session.context.validated.settings.limits;
        let max_len = ids::len_from_wire(message.max_bytes).min(limits.fetch_len_max);
        let max_wait = Duration::from_millis(u64::try_from(message.max_wait_ms).unwrap_or(0));
        Self {
            max_len,
            min_len: ids::len_from_wire(message.min_bytes).min(max_len),
            read_committed: message.isolation_level == READ_COMMITTED,
            by_id: version >= FIRST_VERSION_WITH_IDS,
            deadline: Instant::now() + max_wait.min(WAIT_MAX),
        }
    }
}

impl Plan {
    pub(super) fn new(session: &Session, terms: Terms, partitions: Vec<Wanted>) -> Self {
        let topics = {
            let mut known = HashMap::new();
            let mut found = |topic| *known.entry(topic).or_insert_with(|| find(session, terms.by_id, topic));
            partitions.iter().map(|wanted| found(&*wanted.topic)).collect()
        };
        Self { terms, partitions, topics }
    }

    pub(super) fn keys(&self) -> Vec<(TopicId, PartitionIndex)> {
        let wanted = self.partitions.iter().zip(&self.topics);
        wanted
            .filter_map(|(wanted, topic)| Some(((*topic).ok()?, PartitionIndex::new(wanted.partition))))
            .collect()
    }

    /// Whether waiting cannot make the answer better.
    pub(super) fn is_satisfied(&self, collected: &Collected) -> bool {
        collected.settled_len >= self.terms.min_len || collected.has_error || self.partitions.is_empty()
    }
}

/// The part that concerns sessions, with nothing of the request's frame.
pub(super) fn asked(terms: &Terms, message: &FetchRequest<'_>) -> Asked {
    let named = |name: &Str<'_>, id| {
        let name = if terms.by_id { Str::default() } else { Str::from(name.to_string()) };
        Arc::new(TopicRef { name, id: if terms.by_id { id } else { Uuid::ZERO } })
    };
    let mut partitions: Vec<Wanted> = Vec::new();
    // A partition that is named twice is read once, as it was named last: small requests must not make much work.
    let mut places = HashMap::new();
    for wanted in &message.topics {
        let topic = named(&wanted.topic, wanted.topic_id);
        for partition in &wanted.partitions {
            let wanted = Wanted {
                topic: Arc::clone(&topic),
                partition: partition.partition,
                current_leader_epoch: partition.current_leader_epoch,
                offset: partition.fetch_offset,
                max_len: ids::len_from_wire(partition.partition_max_bytes),
            };
            let place = *places.entry((Arc::clone(&topic), wanted.partition)).or_insert(partitions.len());
            match partitions.get_mut(place) {
                Some(named_before) => *named_before = wanted,
                None => partitions.push(wanted),
            }
        }
    }
    let mut forgotten = Vec::new();
    for topic in &message.forgotten_topics_data {
        let named = named(&topic.topic, topic.topic_id);
        forgotten.extend(topic.partitions.iter().map(|partition| (Arc::clone(&named), partition)));
    }
    let (id, epoch) = (message.session_id, message.session_epoch);
    Asked { id, epoch, by_id: terms.by_id, partitions, forgotten }
}

fn find(session: &Session, by_id: bool, topic: &TopicRef) -> Result<TopicId, ErrorCode> {
    let (store, view) = (session.store(), session.context.view.id);
    let found = if by_id {
        store.topic_by_id(view, ids::topic_id_from_wire(topic.id)).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)
    } else {
        store.topic(view, &topic.name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    };
    found.map(|topic| topic.id)
}

const READ_COMMITTED: i8 = 1;
const FIRST_VERSION_WITH_IDS: i16 = 13;
/// Longest wait, whatever the client says: below every idle timeout on the way.
const WAIT_MAX: Duration = Duration::from_mins(4);
