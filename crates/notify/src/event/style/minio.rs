//! `MinIO`'s records, byte for byte: the order of the fields, what is left out, how keys are encoded.

use super::{push_sequencer, push_version};
use crate::event::json::{push, push_escaped, push_number, push_text};
use crate::event::key::{Slash, push_encoded};
use crate::event::record::Event;
use crate::event::time::Fraction;
use crate::event::{EventName, EventSet};

/// How the key stands in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// Encoded, as targets get it.
    Encoded,
    /// As the client wrote it, as listeners get it.
    Raw,
}

/// Appends the message of a target: the record within what it is filed under.
pub(super) fn envelope(event: &Event, out: &mut Vec<u8>) {
    push_text(out, r#"{"EventName":"#, event.name.as_str());
    push(out, r#","Key":""#);
    push_escaped(out, &event.bucket);
    out.push(b'/');
    push_escaped(out, &event.key);
    push(out, r#"","Records":["#);
    record(event, KeyForm::Encoded, out);
    push(out, "]}");
}

/// Appends the record.
pub(super) fn record(event: &Event, key: KeyForm, out: &mut Vec<u8>) {
    let (origin, facts) = (&event.origin, &event.facts);
    push_text(out, r#"{"eventVersion":"2.0","eventSource":"minio:s3","awsRegion":"#, &origin.region);
    push(out, r#","eventTime":""#);
    event.time.push_text(Fraction::Millis, out);
    push_text(out, r#"","eventName":"#, event.name.as_str());
    push_text(out, r#","userIdentity":{"principalId":"#, &facts.principal);
    push_text(out, r#"},"requestParameters":{"principalId":"#, &facts.principal);
    if !facts.range.is_empty() {
        push_text(out, r#","range":"#, &facts.range);
    }
    push_text(out, r#","region":"#, &origin.region);
    push_text(out, r#","sourceIPAddress":"#, &facts.source_host);
    push(out, r#"},"responseElements":{"#);
    if let Some(bytes) = facts.content_length {
        push(out, r#""content-length":""#);
        push_number(out, bytes);
        push(out, r#"","#);
    }
    push_text(out, r#""x-amz-id-2":"#, &facts.host_id);
    push_text(out, r#","x-amz-request-id":"#, &facts.request_id);
    push_text(out, r#","x-minio-deployment-id":"#, &origin.deployment_id);
    push_text(out, r#","x-minio-origin-endpoint":"#, &origin.endpoint);
    push(out, r#"},"s3":{"s3SchemaVersion":"1.0","configurationId":"Config","#);
    push_text(out, r#""bucket":{"name":"#, &event.bucket);
    push_text(out, r#","ownerIdentity":{"principalId":"#, &facts.principal);
    push(out, r#"},"arn":"arn:aws:s3:::"#);
    push_escaped(out, &event.bucket);
    push(out, r#""},"object":"#);
    object(event, key, out);
    push_text(out, r#"},"source":{"host":"#, &facts.source_host);
    push_text(out, r#","port":"","userAgent":"#, &facts.user_agent);
    push(out, "}}");
}

fn object(event: &Event, key: KeyForm, out: &mut Vec<u8>) {
    push(out, r#"{"key":""#);
    match key {
        KeyForm::Encoded => push_encoded(out, &event.key, Slash::Encoded),
        KeyForm::Raw => push_escaped(out, &event.key),
    }
    out.push(b'"');
    if !BARE.contains(event.name) {
        content(event, out);
    }
    push_version(event, out);
    push_sequencer(event, out);
    out.push(b'}');
}

/// Appends what an object has; zeros and empty texts are left out, and so an empty object has no size.
fn content(event: &Event, out: &mut Vec<u8>) {
    let facts = &event.facts;
    if let Some(size) = facts.size.filter(|size| *size > 0) {
        push(out, r#","size":"#);
        push_number(out, size);
    }
    if !facts.e_tag.is_empty() {
        push_text(out, r#","eTag":"#, &facts.e_tag);
    }
    if !facts.content_type.is_empty() {
        push_text(out, r#","contentType":"#, &facts.content_type);
    }
    let mut before = r#","userMetadata":{"#;
    for (name, value) in &facts.user_metadata {
        push_text(out, before, name);
        push_text(out, ":", value);
        before = ",";
    }
    if !facts.user_metadata.is_empty() {
        out.push(b'}');
    }
}

/// The events whose records tell nothing of an object but its key and version.
const BARE: EventSet = EventSet::of(&[
    EventName::ObjectRemovedDelete,
    EventName::ObjectRemovedDeleteMarkerCreated,
    EventName::ObjectRemovedNoOp,
]);
