//! Building an event, fact by fact.

use std::fmt;
use std::sync::Arc;

use super::name::EventName;
use super::record::{Event, Facts, Origin, Restored};
use super::time::Timestamp;

/// Gathers the facts of one finished operation; begun by [`Event::builder`], ended by [`build`](Self::build).
///
/// Every fact may be told whatever the event is: the records of removals leave out what there is no more, and so on.
#[derive(Debug, Clone)]
#[must_use]
pub struct EventBuilder {
    origin: Arc<Origin>,
    name: EventName,
    bucket: String,
    key: String,
    facts: Facts,
}

impl EventBuilder {
    pub(super) fn new(origin: Arc<Origin>, name: EventName, bucket: String, key: String) -> Self {
        Self { origin, name, bucket, key, facts: Facts::default() }
    }

    /// The size of the object in bytes.
    pub fn size(mut self, bytes: u64) -> Self {
        self.facts.size = Some(bytes);
        self
    }

    /// The object's tag, with or without the quotes that it has in HTTP.
    pub fn e_tag(mut self, tag: &str) -> Self {
        let bare = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag);
        bare.clone_into(&mut self.facts.e_tag);
        self
    }

    /// The object's content type, which is also part of its metadata.
    pub fn content_type(mut self, media_type: impl Into<String>) -> Self {
        self.facts.content_type = media_type.into();
        self
    }

    /// The version of the object, or of the delete marker that was made.
    pub fn version_id(mut self, id: impl Into<String>) -> Self {
        self.facts.version_id = id.into();
        self
    }

    /// A header that the object was stored with.
    ///
    /// Kept are those that start with `x-amz-meta-`, in any case, and the standard ones that describe the content
    /// (`cache-control`, `content-disposition`, `content-encoding`, `content-language`, `content-type`, `expires`,
    /// `x-amz-storage-class`); every other one is dropped: a request's headers can be given as they are, and neither
    /// credentials nor keys of encryption get into a record. A name that comes again replaces the value.
    pub fn user_metadata(mut self, name: &str, value: impl Into<String>) -> Self {
        if let Some(name) = metadata_name(name) {
            self.facts.user_metadata.insert(name, value.into());
        }
        self
    }

    /// When the object was last modified; it orders the events of a key. Removals have none.
    pub fn mod_time(mut self, time: Timestamp) -> Self {
        self.facts.mod_time = Some(time);
        self
    }

    /// The access key of the request, and the user on whose behalf it was made if the key is a service account's or a
    /// temporary one: then the event names the user.
    pub fn requester(mut self, access_key: &str, parent: Option<&str>) -> Self {
        let principal = parent.filter(|parent| !parent.is_empty()).unwrap_or(access_key);
        principal.clone_into(&mut self.facts.principal);
        self
    }

    /// The client: its address without the port, and what it calls itself.
    pub fn source(mut self, host: impl Into<String>, user_agent: impl Into<String>) -> Self {
        self.facts.source_host = host.into();
        self.facts.user_agent = user_agent.into();
        self
    }

    /// A part of the server itself in place of a client, such as `ILM-Expiry`.
    pub fn source_internal(mut self, actor: &str) -> Self {
        self.facts.source_host.clone_from(&self.origin.node);
        self.facts.user_agent = format!("Internal: [{actor}]");
        self
    }

    /// The request's header `range`.
    pub fn range(mut self, range: impl Into<String>) -> Self {
        self.facts.range = range.into();
        self
    }

    /// The id of the request: the same as in the answer's header `x-amz-request-id`.
    pub fn request_id(mut self, id: impl Into<String>) -> Self {
        self.facts.request_id = id.into();
        self
    }

    /// The id of the host: the same as in the answer's header `x-amz-id-2`.
    pub fn host_id(mut self, id: impl Into<String>) -> Self {
        self.facts.host_id = id.into();
        self
    }

    /// The answer's header `content-length`.
    pub fn response_content_length(mut self, bytes: u64) -> Self {
        self.facts.content_length = Some(bytes);
        self
    }

    /// Until when the restored copy of an archived object stays, and from which class it was restored.
    pub fn restored(mut self, until: Timestamp, storage_class: impl Into<String>) -> Self {
        self.facts.restored = Some(Restored { until, storage_class: storage_class.into() });
        self
    }

    /// The event, made at this time: after the operation was committed, since what a consumer then reads has to be
    /// there.
    ///
    /// # Errors
    ///
    /// If there is no bucket, or a slash in its name; if an event of an object has no key, or one of a bucket has one.
    pub fn build(mut self, now: Timestamp) -> Result<Event, BuildError> {
        check(self.name, &self.bucket, &self.key)?;
        if !self.facts.content_type.is_empty() {
            self.facts.user_metadata.insert("content-type".to_owned(), self.facts.content_type.clone());
        }
        let Self { origin, name, bucket, key, facts } = self;
        Ok(Event { origin, name, bucket, key, time: now, facts })
    }
}

/// Whether an event can be about this.
pub(super) fn check(name: EventName, bucket: &str, key: &str) -> Result<(), BuildError> {
    let kind = if bucket.is_empty() {
        BuildErrorKind::NoBucket
    } else if bucket.contains('/') {
        BuildErrorKind::InvalidBucket
    } else if key.is_empty() && !name.is_of_bucket() {
        BuildErrorKind::NoKey
    } else if !key.is_empty() && name.is_of_bucket() {
        BuildErrorKind::UnexpectedKey
    } else {
        return Ok(());
    };
    Err(BuildError { kind, name })
}

/// What is missing or contradictory in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event `{name}` {kind}")]
pub struct BuildError {
    kind: BuildErrorKind,
    name: EventName,
}

impl BuildError {
    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> BuildErrorKind {
        self.kind
    }
}

/// Kinds of [`BuildError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildErrorKind {
    /// The bucket's name is empty.
    NoBucket,
    /// The bucket's name has a slash, so that it could not be told from the key.
    InvalidBucket,
    /// The event is about an object, and the key is empty.
    NoKey,
    /// The event is about a bucket, and there is a key.
    UnexpectedKey,
}

impl fmt::Display for BuildErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoBucket => "needs a bucket",
            Self::InvalidBucket => "cannot have a slash in its bucket's name",
            Self::NoKey => "needs a key",
            Self::UnexpectedKey => "is about a bucket and cannot have a key",
        })
    }
}

/// The name under which a header is part of the metadata; `None` if it is not.
fn metadata_name(name: &str) -> Option<String> {
    let is_of_user =
        name.get(..USER_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(USER_PREFIX));
    if is_of_user {
        return Some(canonical(name));
    }
    DESCRIPTIVE.iter().find(|known| known.eq_ignore_ascii_case(name)).map(|known| (*known).to_owned())
}

/// A header's name as Go's `textproto` writes it, `X-Amz-Meta-Colour`: each part capitalised, unless there is a byte in
/// it that no header's name has.
fn canonical(name: &str) -> String {
    if !name.bytes().all(is_token) {
        return name.to_owned();
    }
    let mut at_start = true;
    name.chars()
        .map(|char| {
            let cased = if at_start { char.to_ascii_uppercase() } else { char.to_ascii_lowercase() };
            at_start = char == '-';
            cased
        })
        .collect()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

const USER_PREFIX: &str = "x-amz-meta-";

/// The headers that describe the content and are stored with it.
const DESCRIPTIVE: &[&str] = &[
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
    "x-amz-storage-class",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn builder(name: EventName, bucket: &str, key: &str) -> EventBuilder {
        Event::builder(&Arc::new(Origin::default()), name, bucket, key)
    }

    fn put() -> EventBuilder {
        builder(EventName::ObjectCreatedPut, "b", "k")
    }

    #[track_caller]
    fn check_refused(name: EventName, bucket: &str, key: &str, kind: BuildErrorKind, message: &str) {
        let error = builder(name, bucket, key).build(Timestamp::default()).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, message));
    }

    #[test]
    fn an_event_about_nothing_is_refused() {
        use BuildErrorKind as Kind;
        let noop = EventName::ObjectRemovedNoOp;
        let (put, created) = (EventName::ObjectCreatedPut, EventName::BucketCreated);
        check_refused(put, "", "k", Kind::NoBucket, "an event `s3:ObjectCreated:Put` needs a bucket");
        check_refused(noop, "b", "", Kind::NoKey, "an event `s3:ObjectRemoved:NoOP` needs a key");
        let slash = "an event `s3:ObjectCreated:Put` cannot have a slash in its bucket's name";
        check_refused(put, "a/b", "k", Kind::InvalidBucket, slash);
        let unexpected = "an event `s3:BucketCreated:*` is about a bucket and cannot have a key";
        check_refused(created, "b", "k", Kind::UnexpectedKey, unexpected);
        assert!(builder(created, "b", "").build(Timestamp::default()).is_ok());
    }

    #[track_caller]
    fn check_metadata(name: &str, expect: Option<&str>) {
        let event = put().user_metadata(name, "v").build(Timestamp::default()).unwrap();
        let names: Vec<&str> = event.user_metadata().map(|(name, _)| name).collect();
        assert_eq!(names, expect.into_iter().collect::<Vec<_>>(), "{name}");
    }

    #[test]
    fn only_headers_that_describe_the_object_are_kept() {
        check_metadata("x-amz-meta-foo", Some("X-Amz-Meta-Foo"));
        check_metadata("X-AMZ-META-fOO-bAR_baz", Some("X-Amz-Meta-Foo-Bar_baz"));
        check_metadata("x-amz-meta-two words", Some("x-amz-meta-two words"));
        check_metadata("x-amz-meta-größe", Some("x-amz-meta-größe"));
        for kept in [
            "Cache-Control",
            "Content-Disposition",
            "Content-Encoding",
            "Content-Language",
            "Content-Type",
            "Expires",
            "X-Amz-Storage-Class",
        ] {
            check_metadata(kept, Some(&kept.to_ascii_lowercase()));
        }
        for dropped in [
            "authorization",
            "Cookie",
            "x-amz-security-token",
            "x-amz-server-side-encryption-customer-key",
            "x-amz-copy-source-server-side-encryption-customer-key",
            "x-minio-internal-compression",
            "X-Minio-Internal-Server-Side-Encryption-Sealed-Key",
            "x-amz-tagging",
            "foo",
            "",
            "x-amz-met",
            "x-amz-mété",
        ] {
            check_metadata(dropped, None);
        }
    }

    #[test]
    fn the_last_value_of_a_name_counts_and_the_content_type_is_metadata() {
        let event = put()
            .content_type("image/jpeg")
            .user_metadata("x-amz-meta-a", "1")
            .user_metadata("Content-Type", "text/plain")
            .user_metadata("X-Amz-Meta-A", "2")
            .build(Timestamp::default())
            .unwrap();
        let metadata: Vec<_> = event.user_metadata().collect();
        assert_eq!(metadata, [("X-Amz-Meta-A", "2"), ("content-type", "image/jpeg")]);
    }

    #[test]
    fn a_tag_loses_its_quotes_and_a_parent_stands_for_its_key() {
        let event = put().e_tag("\"abc-2\"").requester("service", Some("alice"));
        let event = event.build(Timestamp::default()).unwrap();
        assert_eq!((event.e_tag(), event.principal()), ("abc-2", "alice"));
        let event = put().e_tag("abc").requester("key", Some("")).build(Timestamp::default()).unwrap();
        assert_eq!((event.e_tag(), event.principal()), ("abc", "key"));
        let event = put().requester("key", None).build(Timestamp::default()).unwrap();
        assert_eq!(event.principal(), "key");
    }

    #[test]
    fn a_part_of_the_server_is_named_with_its_host() {
        let origin = Origin { node: "node1".into(), ..Origin::default() };
        let event = Event::builder(&Arc::new(origin), EventName::ObjectRemovedDelete, "b", "k")
            .source_internal("ILM-Expiry")
            .build(Timestamp::default())
            .unwrap();
        assert_eq!((event.source_host(), event.user_agent()), ("node1", "Internal: [ILM-Expiry]"));
    }
}
