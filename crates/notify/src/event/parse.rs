//! Reading `MinIO`'s records back into events.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use super::builder::check;
use super::key::decode;
use super::name::EventName;
use super::record::{Event, Facts, Origin};
use super::time::Timestamp;

impl Event {
    /// Reads a record in `MinIO`'s style, or a message with exactly one: what its queue folders have in their files.
    ///
    /// Members that are not known are ignored, and those that an event can do without may be absent or `null`. Written
    /// again, the event gives the same record; its time is told in milliseconds only.
    ///
    /// # Errors
    ///
    /// If it is no JSON, or JSON of another shape; if there is not exactly one record; if a member that is needed is
    /// absent or has no value that it could have: `eventName`, `eventTime`, `s3.bucket.name`, `s3.object.key`.
    pub fn from_record_json(json: &[u8]) -> Result<Self, RecordError> {
        let message: RawMessage = serde_json::from_slice(json).map_err(RecordError::json)?;
        let Some(records) = message.records else {
            return from_raw(serde_json::from_slice(json).map_err(RecordError::json)?);
        };
        let count = records.len();
        match <[RawRecord; 1]>::try_from(records) {
            Ok([record]) => from_raw(record),
            Err(_) => Err(RecordError::new(Kind::Count, format!("a message has {count} records, not one"))),
        }
    }
}

fn from_raw(raw: RawRecord) -> Result<Event, RecordError> {
    let name = event_name(&raw.event_name)?;
    let time: Timestamp = raw.event_time.parse().map_err(|_| invalid("eventTime", &raw.event_time))?;
    let RawS3 { bucket, object } = raw.s3;
    let key = decode(&object.key).ok_or_else(|| invalid("s3.object.key", &object.key))?;
    check(name, &bucket.name, &key).map_err(|error| RecordError::new(Kind::Member, error.to_string()))?;
    let mod_time = match object.sequencer.as_deref().unwrap_or_default() {
        "" => None,
        digits => Some(sequencer(digits).ok_or_else(|| invalid("s3.object.sequencer", digits))?),
    };
    let request = raw.request_parameters.unwrap_or_default();
    let mut response = raw.response_elements.unwrap_or_default();
    let mut element = |name: &str| response.remove(name).unwrap_or_default();
    let content_length = match element("content-length") {
        bytes if bytes.is_empty() => None,
        bytes => Some(bytes.parse().map_err(|_| invalid("responseElements.content-length", &bytes))?),
    };
    let source = raw.source.unwrap_or_default();
    let origin = Origin {
        region: raw.aws_region.unwrap_or_default(),
        deployment_id: element("x-minio-deployment-id"),
        endpoint: element("x-minio-origin-endpoint"),
        node: String::new(),
    };
    let facts = Facts {
        mod_time,
        size: object.size,
        e_tag: object.e_tag.unwrap_or_default(),
        content_type: object.content_type.unwrap_or_default(),
        version_id: object.version_id.unwrap_or_default(),
        user_metadata: object.user_metadata.unwrap_or_default(),
        principal: raw.user_identity.unwrap_or_default().principal_id.unwrap_or_default(),
        source_host: source.host.or(request.source_ip_address).unwrap_or_default(),
        user_agent: source.user_agent.unwrap_or_default(),
        range: request.range.unwrap_or_default(),
        request_id: element("x-amz-request-id"),
        host_id: element("x-amz-id-2"),
        content_length,
        restored: None,
    };
    Ok(Event { origin: Arc::new(origin), name, bucket: bucket.name, key, time, facts })
}

/// A name with or without the `s3:` that AWS leaves out.
fn event_name(text: &str) -> Result<EventName, RecordError> {
    let known = text.parse().or_else(|_| format!("s3:{text}").parse());
    known.map_err(|_| invalid("eventName", text))
}

fn sequencer(digits: &str) -> Option<Timestamp> {
    let nanos =
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16));
    nanos?.ok().map(Timestamp::from_unix_nanos)
}

fn invalid(member: &str, value: &str) -> RecordError {
    let told: String = value.chars().take(CHARS_TOLD).collect();
    RecordError::new(Kind::Member, format!("the record's `{member}` cannot be `{told}`"))
}

/// Why a text is not a record of one event.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct RecordError {
    kind: Kind,
    message: String,
    #[source]
    source: Option<serde_json::Error>,
}

impl RecordError {
    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> RecordErrorKind {
        self.kind
    }

    fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), source: None }
    }

    fn json(error: serde_json::Error) -> Self {
        Self { source: Some(error), ..Self::new(Kind::Json, "not a record of an event") }
    }
}

/// Kinds of [`RecordError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordErrorKind {
    /// It is not JSON, is cut short, lacks a member that a record needs, or a member is of another type.
    Json,
    /// A message has no record or several.
    Count,
    /// A member has a value that it cannot have.
    Member,
}

use RecordErrorKind as Kind;

/// A message of any target; a record has none of its members.
#[derive(Deserialize)]
struct RawMessage {
    #[serde(rename = "Records")]
    records: Option<Vec<RawRecord>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRecord {
    aws_region: Option<String>,
    event_time: String,
    event_name: String,
    user_identity: Option<RawIdentity>,
    request_parameters: Option<RawRequest>,
    response_elements: Option<BTreeMap<String, String>>,
    s3: RawS3,
    source: Option<RawSource>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct RawIdentity {
    principal_id: Option<String>,
}

#[derive(Deserialize, Default)]
struct RawRequest {
    #[serde(rename = "sourceIPAddress")]
    source_ip_address: Option<String>,
    range: Option<String>,
}

#[derive(Deserialize)]
struct RawS3 {
    bucket: RawBucket,
    object: RawObject,
}

#[derive(Deserialize)]
struct RawBucket {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawObject {
    key: String,
    size: Option<u64>,
    e_tag: Option<String>,
    content_type: Option<String>,
    user_metadata: Option<BTreeMap<String, String>>,
    version_id: Option<String>,
    sequencer: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct RawSource {
    host: Option<String>,
    user_agent: Option<String>,
}

/// How much of a wrong value an error repeats.
const CHARS_TOLD: usize = 100;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::Style;

    /// The least that a record has.
    fn least() -> Value {
        json!({
            "eventTime": "2025-02-06T01:04:31.998Z",
            "eventName": "s3:ObjectCreated:Put",
            "s3": {"bucket": {"name": "b"}, "object": {"key": "a%2Fb+c"}},
        })
    }

    fn read(value: &Value) -> Result<Event, RecordError> {
        Event::from_record_json(value.to_string().as_bytes())
    }

    #[track_caller]
    fn check_refused(value: &Value, kind: RecordErrorKind, message: &str) {
        let error = read(value).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, message));
    }

    #[test]
    fn what_an_event_can_do_without_may_be_absent_or_null() {
        let event = read(&least()).unwrap();
        assert_eq!((event.bucket(), event.key()), ("b", "a/b c"));
        assert_eq!(event.time().to_string(), "2025-02-06T01:04:31.998Z");
        assert_eq!((event.size(), event.principal(), event.request_id()), (None, "", ""));
        let mut nulls = least();
        for name in ["awsRegion", "userIdentity", "requestParameters", "responseElements", "source", "more"] {
            nulls[name] = Value::Null;
        }
        for name in ["size", "eTag", "contentType", "userMetadata", "versionId", "sequencer"] {
            nulls["s3"]["object"][name] = Value::Null;
        }
        assert_eq!(read(&nulls).unwrap(), event);
        let mut address = least();
        address["requestParameters"] = json!({"sourceIPAddress": "10.0.0.1"});
        assert_eq!(read(&address).unwrap().source_host(), "10.0.0.1");
    }

    #[test]
    fn a_message_has_to_have_one_record() {
        let event = read(&least()).unwrap();
        let message = json!({"EventName": "s3:ObjectCreated:Put", "Key": "b/a/b c", "Records": [least()]});
        assert_eq!(read(&message).unwrap(), event);
        for count in [0, 2] {
            let message = json!({"Records": vec![least(); count]});
            let told = format!("a message has {count} records, not one");
            check_refused(&message, RecordErrorKind::Count, &told);
        }
    }

    #[test]
    fn a_name_may_lack_what_aws_leaves_out() {
        let mut value = least();
        value["eventName"] = json!("ObjectTagging:Put");
        assert_eq!(read(&value).unwrap().name(), EventName::ObjectTaggingPut);
    }

    #[test]
    fn values_that_cannot_be_are_named() {
        let cases = [
            ("/eventName", json!("s3:Lost"), "the record's `eventName` cannot be `s3:Lost`"),
            ("/eventTime", json!("now"), "the record's `eventTime` cannot be `now`"),
            ("/s3/object/key", json!("%zz"), "the record's `s3.object.key` cannot be `%zz`"),
            ("/s3/object/key", json!(""), "an event `s3:ObjectCreated:Put` needs a key"),
            ("/s3/bucket/name", json!(""), "an event `s3:ObjectCreated:Put` needs a bucket"),
        ];
        for (member, wrong, message) in cases {
            let mut value = least();
            *value.pointer_mut(member).unwrap() = wrong;
            check_refused(&value, RecordErrorKind::Member, message);
        }
        for wrong in ["+1", "182178E8B3728CAC0", "18 "] {
            let mut value = least();
            value["s3"]["object"]["sequencer"] = json!(wrong);
            let told = format!("the record's `s3.object.sequencer` cannot be `{wrong}`");
            check_refused(&value, RecordErrorKind::Member, &told);
        }
        let mut value = least();
        value["responseElements"] = json!({"content-length": "-1"});
        let told = "the record's `responseElements.content-length` cannot be `-1`";
        check_refused(&value, RecordErrorKind::Member, told);
    }

    #[test]
    fn other_json_and_no_json_are_refused_with_the_place() {
        for wrong in ["", "{", "[]", "{}", "7", "{\"Records\":{}}", "{\"Records\":null}", "\u{0}"] {
            let error = Event::from_record_json(wrong.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), RecordErrorKind::Json, "{wrong}");
            assert_eq!(error.to_string(), "not a record of an event");
        }
        let error = Event::from_record_json(b"{\"eventTime\":3}").unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("line 1 column 14"), "{cause}");
        let deep = [vec![b'['; 1 << 20], vec![b']'; 1 << 20]].concat();
        assert_eq!(Event::from_record_json(&deep).unwrap_err().kind(), RecordErrorKind::Json);
    }

    #[test]
    fn a_record_that_is_cut_anywhere_is_refused() {
        let mut whole = Vec::new();
        read(&least()).unwrap().write_record(Style::Minio, "", &mut whole);
        assert!(Event::from_record_json(&whole).is_ok());
        for end in 0..whole.len() {
            assert!(Event::from_record_json(&whole[..end]).is_err(), "{end}");
        }
    }
}
