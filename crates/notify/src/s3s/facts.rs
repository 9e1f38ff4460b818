//! What events tell of an object, gathered from requests and answers.

use std::sync::Arc;

use s3s::dto::{ETag, HeadObjectOutput, Metadata, Timestamp as S3Timestamp, TimestampFormat};

use super::begun::About;
use crate::event::{BuildError, Event, EventName, Origin, Timestamp};

/// What an event tells of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) size: Option<u64>,
    pub(super) e_tag: String,
    pub(super) content_type: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) version_id: String,
    pub(super) range: String,
    pub(super) content_length: Option<u64>,
}

/// The [`Facts`] that are the content type and the metadata of a request or an answer: their types have the same fields,
/// and nothing in common.
macro_rules! described {
    ($from:expr) => {{
        let from = &$from;
        let content_type = from.content_type.clone().unwrap_or_default();
        let mut facts = Facts { content_type, ..Facts::default() };
        let storage_class = from.storage_class.as_ref().map(|class| class.as_str());
        facts.add_headers([
            ("cache-control", from.cache_control.as_deref()),
            ("content-disposition", from.content_disposition.as_deref()),
            ("content-encoding", from.content_encoding.as_deref()),
            ("content-language", from.content_language.as_deref()),
            ("x-amz-storage-class", storage_class),
        ]);
        facts.add_expires(from.expires.as_ref());
        facts.add_metadata(from.metadata.as_ref());
        facts
    }};
}
pub(super) use described;

impl Facts {
    /// What an answer to `HeadObject` tells.
    pub(super) fn of_head(head: &HeadObjectOutput) -> Self {
        let mut facts = described!(head);
        facts.size = size(head.content_length);
        facts.set_e_tag(head.e_tag.as_ref());
        facts.version_id = head.version_id.clone().unwrap_or_default();
        facts
    }

    pub(super) fn set_e_tag(&mut self, tag: Option<&ETag>) {
        if let Some(tag) = tag {
            tag.value().clone_into(&mut self.e_tag);
        }
    }

    pub(super) fn add_headers<const N: usize>(&mut self, headers: [(&str, Option<&str>); N]) {
        for (name, value) in headers {
            if let Some(value) = value {
                self.headers.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    pub(super) fn add_expires(&mut self, expires: Option<&S3Timestamp>) {
        let text = expires.and_then(|time| written(time, TimestampFormat::HttpDate));
        self.add_headers([("expires", text.as_deref())]);
    }

    pub(super) fn add_metadata(&mut self, metadata: Option<&Metadata>) {
        for (name, value) in metadata.into_iter().flatten() {
            self.headers.push((format!("x-amz-meta-{name}"), value.clone()));
        }
    }

    /// The event. It has a sequencer of `stamp`, and is made `now`.
    pub(super) fn event(
        self,
        origin: &Arc<Origin>,
        name: EventName,
        about: &About,
        stamp: Timestamp,
        now: Timestamp,
    ) -> Result<Event, BuildError> {
        let builder = Event::builder(origin, name, &*about.bucket, &*about.key);
        let mut builder = about
            .caller
            .tell(builder)
            .mod_time(stamp)
            .e_tag(&self.e_tag)
            .content_type(self.content_type)
            .version_id(self.version_id)
            .range(self.range);
        for (name, value) in self.headers {
            builder = builder.user_metadata(&name, value);
        }
        if let Some(bytes) = self.size {
            builder = builder.size(bytes);
        }
        if let Some(bytes) = self.content_length {
            builder = builder.response_content_length(bytes);
        }
        builder.build(now)
    }
}

/// A length as S3 has it; a negative one is none.
pub(super) fn size(len: Option<i64>) -> Option<u64> {
    len.and_then(|len| u64::try_from(len).ok())
}

/// A time of S3 in milliseconds; `None` if it is before 1970.
pub(super) fn time(time: &S3Timestamp) -> Option<Timestamp> {
    written(time, TimestampFormat::DateTime)?.parse().ok()
}

fn written(time: &S3Timestamp, format: TimestampFormat) -> Option<String> {
    let mut text = Vec::new();
    time.format(format, &mut text).ok()?;
    String::from_utf8(text).ok()
}
