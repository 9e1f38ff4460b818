//! An event: what a storage server tells about one finished operation.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::builder::EventBuilder;
use super::json::push_hex;
use super::key::record_key;
use super::name::EventName;
use super::time::Timestamp;

/// What is the same in all events of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Origin {
    /// The server's region; often empty.
    pub region: String,
    /// The deployment's id, for `x-minio-deployment-id`.
    pub deployment_id: String,
    /// The URL under which clients reach the server, for `x-minio-origin-endpoint`.
    pub endpoint: String,
    /// The host's name, for events that no client asked for.
    pub node: String,
}

/// What a storage server tells about one finished operation.
///
/// It is built by [`Event::builder`], which takes each fact by a method of its own: no list of headers is passed
/// through, so none can leak that consumers should not see. What a record then shows of the facts depends on its name
/// and on the [`Style`](super::Style).
///
/// An absent text is the empty one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub(super) origin: Arc<Origin>,
    pub(super) name: EventName,
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) time: Timestamp,
    pub(super) facts: Facts,
}

/// What the builder gathers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Facts {
    pub(super) mod_time: Option<Timestamp>,
    pub(super) size: Option<u64>,
    pub(super) e_tag: String,
    pub(super) content_type: String,
    pub(super) version_id: String,
    /// By name, in the order of Go's maps in JSON, which is by bytes.
    pub(super) user_metadata: BTreeMap<String, String>,
    pub(super) principal: String,
    pub(super) source_host: String,
    pub(super) user_agent: String,
    pub(super) range: String,
    pub(super) request_id: String,
    pub(super) host_id: String,
    pub(super) content_length: Option<u64>,
    pub(super) restored: Option<Restored>,
}

/// How long an archived object's copy stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Restored {
    pub(super) until: Timestamp,
    pub(super) storage_class: String,
}

impl Event {
    /// Begins the event of an operation on an object of a bucket, whose key is given as the client wrote it; for an
    /// event of a bucket the key is empty.
    pub fn builder(
        origin: &Arc<Origin>,
        name: EventName,
        bucket: impl Into<String>,
        key: impl Into<String>,
    ) -> EventBuilder {
        EventBuilder::new(Arc::clone(origin), name, bucket.into(), key.into())
    }

    /// What the event has in common with the others of its server.
    #[must_use]
    pub fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// What happened.
    #[must_use]
    pub fn name(&self) -> EventName {
        self.name
    }

    /// The bucket.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The object's key as the client wrote it, which is what rules are matched with; empty in an event of a bucket.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// When the event was made.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// The size of the object in bytes, if it is known.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.facts.size
    }

    /// The object's tag, without quotes.
    #[must_use]
    pub fn e_tag(&self) -> &str {
        &self.facts.e_tag
    }

    /// The object's content type.
    #[must_use]
    pub fn content_type(&self) -> &str {
        &self.facts.content_type
    }

    /// The version of the object or of its delete marker; empty where the bucket has no versions.
    #[must_use]
    pub fn version_id(&self) -> &str {
        &self.facts.version_id
    }

    /// The object's metadata by name, such as `X-Amz-Meta-Colour`, sorted.
    pub fn user_metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        self.facts.user_metadata.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Who did it: the access key, or the user that it was made for.
    #[must_use]
    pub fn principal(&self) -> &str {
        &self.facts.principal
    }

    /// The address of the client, or the name of the server's host if no client asked for it.
    #[must_use]
    pub fn source_host(&self) -> &str {
        &self.facts.source_host
    }

    /// What the client calls itself.
    #[must_use]
    pub fn user_agent(&self) -> &str {
        &self.facts.user_agent
    }

    /// The id of the request, as its answer's header `x-amz-request-id` has it.
    #[must_use]
    pub fn request_id(&self) -> &str {
        &self.facts.request_id
    }

    /// The id of the host that answered, as the answer's header `x-amz-id-2` has it.
    #[must_use]
    pub fn host_id(&self) -> &str {
        &self.facts.host_id
    }

    /// What orders the events of a key.
    #[must_use]
    pub fn sequencer(&self) -> Sequencer {
        Sequencer(self.facts.mod_time.unwrap_or(self.time))
    }

    /// The key of the event's record in Kafka: `bucket/key`, see [`record_key`].
    #[must_use]
    pub fn record_key(&self) -> String {
        record_key(&self.bucket, &self.key)
    }
}

/// What orders the events of a key: the object's time of modification, or the event's if there is no object any more,
/// as 16 hexadecimal digits.
///
/// Consumers compare it as text, after padding the shorter one; AWS's documents do not agree on the side that is
/// padded, so the width is always the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequencer(Timestamp);

impl Sequencer {
    /// The digits of a sequencer, in upper case.
    pub(super) fn push_text(self, out: &mut Vec<u8>) {
        push_hex(out, self.0.unix_nanos(), 16, b'A');
    }

    /// The time that it tells.
    #[must_use]
    pub fn time(self) -> Timestamp {
        self.0
    }
}

impl fmt::Display for Sequencer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:016X}", self.0.unix_nanos()))
    }
}
