//! The styles in which an event is written as JSON.

mod aws;
mod cloud_events;
mod event_broker;
mod minio;
mod naming;

use std::fmt;
use std::str::FromStr;

pub use self::aws::test_event;
use super::json::{push, push_text};
use super::record::Event;

/// In which words an event is told.
///
/// | style | `eventSource` | `eventName` | key in `s3.object` | message |
/// | --- | --- | --- | --- | --- |
/// | `Minio` | `minio:s3` | `s3:ObjectCreated:Put` | `a%2Fb+c` | `{"EventName":…,"Key":…,"Records":[…]}` |
/// | `Aws` | `aws:s3` | `ObjectCreated:Put` | `a/b+c` | `{"Records":[…]}` |
/// | `EventBroker` | `vast:s3` | `s3:ObjectCreated:Put` | `a/b+c` | `{"Records":[…]}` |
/// | `CloudEvents` | `kolumn:s3` | `ObjectCreated:Put` | `a/b+c` | a `CloudEvent` 1.0, the record is its `data` |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Style {
    /// Byte for byte what `MinIO` writes.
    #[default]
    Minio,
    /// Amazon's event message structure, versions 2.1 to 2.3.
    Aws,
    /// What the event broker of a storage cluster publishes about its buckets.
    EventBroker,
    /// `CloudEvents` 1.0 in their structured JSON form, with the attributes that their adapter for S3 prescribes.
    CloudEvents,
}

impl Style {
    /// Each style once.
    pub const ALL: &'static [Self] = &[Self::Minio, Self::Aws, Self::EventBroker, Self::CloudEvents];

    /// The name of the style in settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minio => "minio",
            Self::Aws => "aws",
            Self::EventBroker => "event_broker",
            Self::CloudEvents => "cloudevents",
        }
    }

    /// The media type of a message in this style, for HTTP, and for the header `content-type` by which Kafka's binding
    /// of `CloudEvents` recognises a structured one.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Minio | Self::Aws | Self::EventBroker => "application/json",
            Self::CloudEvents => "application/cloudevents+json; charset=UTF-8",
        }
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Style {
    type Err = UnknownStyle;

    fn from_str(text: &str) -> Result<Self, UnknownStyle> {
        Self::ALL.iter().copied().find(|style| style.as_str() == text).ok_or(UnknownStyle)
    }
}

/// A text that names no style.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a style; there are minio, aws, event_broker and cloudevents")]
#[non_exhaustive]
pub struct UnknownStyle;

/// # As JSON
///
/// Each of these appends to a buffer, for which it reserves once; `rule_id` is the id of the rule that the event
/// matched, which all styles but `MinIO`'s write as `s3.configurationId`.
impl Event {
    /// Appends the message that targets send: what is a record's value in Kafka and a webhook's body.
    pub fn write_message(&self, style: Style, rule_id: &str, out: &mut Vec<u8>) {
        if style == Style::Minio {
            out.reserve(self.len_hint(style, rule_id));
            minio::envelope(self, out);
        } else {
            self.write_records(style, rule_id, out);
        }
    }

    /// Appends what databases keep: `{"Records":[…]}`; a `CloudEvent` is the same as in
    /// [`write_message`](Self::write_message).
    pub fn write_records(&self, style: Style, rule_id: &str, out: &mut Vec<u8>) {
        out.reserve(self.len_hint(style, rule_id));
        if style == Style::CloudEvents {
            return self.push_record(style, rule_id, out);
        }
        push(out, r#"{"Records":["#);
        self.push_record(style, rule_id, out);
        push(out, "]}");
    }

    /// Appends the record alone; of a `CloudEvent` the whole.
    pub fn write_record(&self, style: Style, rule_id: &str, out: &mut Vec<u8>) {
        out.reserve(self.len_hint(style, rule_id));
        self.push_record(style, rule_id, out);
    }

    /// Appends a line of the listen API: `MinIO`'s record, but with the key as the client wrote it.
    pub fn write_listen_line(&self, out: &mut Vec<u8>) {
        out.reserve(self.len_hint(Style::Minio, ""));
        push(out, r#"{"Records":["#);
        minio::record(self, minio::KeyForm::Raw, out);
        push(out, "]}\n");
    }

    fn push_record(&self, style: Style, rule_id: &str, out: &mut Vec<u8>) {
        match style {
            Style::Minio => minio::record(self, minio::KeyForm::Encoded, out),
            Style::Aws => aws::record(self, aws::SOURCE, rule_id, out),
            Style::EventBroker => event_broker::record(self, rule_id, out),
            Style::CloudEvents => cloud_events::event(self, rule_id, out),
        }
    }

    /// What the longest form of the event takes, if little of it has to be escaped.
    fn len_hint(&self, style: Style, rule_id: &str) -> usize {
        let (origin, facts) = (&self.origin, &self.facts);
        let metadata: usize =
            facts.user_metadata.iter().map(|(name, value)| name.len() + value.len() + 6).sum();
        let texts = [
            &facts.e_tag,
            &facts.content_type,
            &facts.version_id,
            &facts.range,
            &facts.user_agent,
            &facts.request_id,
            &facts.host_id,
            &origin.deployment_id,
            &origin.endpoint,
        ];
        let once: usize = texts.iter().map(|text| text.len()).sum();
        // An encoded byte is three. The key stands as it is and encoded in MinIO's message, twice encoded in a CloudEvent.
        let of_key = if style == Style::CloudEvents { 6 } else { 4 };
        let often = self.key.len() * of_key
            + facts.principal.len() * 3
            + origin.region.len() * 4
            + self.bucket.len() * 5
            + facts.source_host.len() * 2;
        FRAME_LEN + metadata + once + often + rule_id.len()
    }
}

/// More than the names, braces and constant values of a record in any style, with times and numbers.
const FRAME_LEN: usize = 1000;

/// Appends the object's version as a further member, if it has one.
fn push_version(event: &Event, out: &mut Vec<u8>) {
    if !event.facts.version_id.is_empty() {
        push_text(out, r#","versionId":"#, &event.facts.version_id);
    }
}

/// Appends the sequencer as a further member.
fn push_sequencer(event: &Event, out: &mut Vec<u8>) {
    push(out, r#","sequencer":""#);
    event.sequencer().push_text(out);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::{EventName, Origin, Timestamp};

    #[test]
    fn an_event_is_written_into_what_was_reserved_for_it() {
        let origin = Origin {
            region: "eu-central-1".repeat(4),
            deployment_id: "2369dcb4-348b-4d30-8fc9-61ab089ba4bc".into(),
            endpoint: "https://minio.test.svc.cluster.local".into(),
            node: String::new(),
        };
        let now = Timestamp::from_unix_nanos(u64::MAX);
        // Every byte of the key is written as three, once more than once.
        let event = Event::builder(
            &Arc::new(origin),
            EventName::ObjectRestoreCompleted,
            "b".repeat(63),
            "漢".repeat(341),
        )
        .size(u64::MAX)
        .e_tag("eb52f8e46f60a27a8a1a704e25757f30-10000")
        .content_type("application/x-of-some-length")
        .user_metadata("x-amz-meta-some-name", "v".repeat(1900))
        .version_id("b8d8a3a4-4a0f-4f5e-8f8c-2c4d8c9d8f0a")
        .mod_time(now)
        .requester("access_key", Some(&"user".repeat(30)))
        .source("2001:db8::1", "agent".repeat(30))
        .range("bytes=0-18446744073709551615")
        .request_id("182178E8B36AC9DF")
        .host_id("dd9025bab4ad464b049177c95eb6ebf374d3b3fd1af9251148b658df7ac2e3e8")
        .response_content_length(u64::MAX)
        .restored(now, "DEEP_ARCHIVE")
        .build(now)
        .unwrap();
        let rule_id = "r".repeat(255);
        for style in Style::ALL.iter().copied() {
            let mut out = Vec::new();
            event.write_message(style, &rule_id, &mut out);
            assert_eq!(out.capacity(), event.len_hint(style, &rule_id), "{style}");
        }
    }

    #[test]
    fn styles_have_names() {
        for style in Style::ALL.iter().copied() {
            assert_eq!(style.to_string().parse(), Ok(style));
        }
        let refused = "not a style; there are minio, aws, event_broker and cloudevents";
        assert_eq!("Minio".parse::<Style>().unwrap_err().to_string(), refused);
        assert_eq!(Style::default(), Style::Minio);
    }
}
