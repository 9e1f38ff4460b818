//! Identities and numbers of the store as the protocol writes them.

use kolumn_kafka_wire::Uuid;
use kolumn_topic_store::TopicId;

pub(crate) fn topic_id_to_wire(id: TopicId) -> Uuid {
    Uuid::from_bytes(*id.value().as_bytes())
}

pub(crate) fn topic_id_from_wire(id: Uuid) -> TopicId {
    TopicId::new(uuid::Uuid::from_bytes(*id.as_bytes()))
}

/// A number of bytes off the wire, where negative ones mean nothing.
pub(crate) fn len_from_wire(len: i32) -> usize {
    usize::try_from(len).unwrap_or(0)
}
