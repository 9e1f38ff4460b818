//! The records of a storage cluster's event broker, `vast:s3`.

use super::naming::{REMOVALS, SEQUENCED, in_aws_words};
use super::{push_sequencer, push_version};
use crate::event::EventName;
use crate::event::json::{push, push_escaped, push_number, push_text};
use crate::event::key::{Slash, push_encoded};
use crate::event::record::Event;
use crate::event::time::Fraction;

/// Appends the record.
pub(super) fn record(event: &Event, rule_id: &str, out: &mut Vec<u8>) {
    let (origin, facts) = (&event.origin, &event.facts);
    let name = in_aws_words(event.name);
    push_text(out, r#"{"awsRegion":"#, &origin.region);
    push_text(out, r#","eventName":"#, name.as_str());
    push(out, r#","eventSource":"vast:s3","eventTime":""#);
    event.time.push_text(Fraction::Micros, out);
    push_text(out, r#"","eventVersion":"2.2","requestParameters":{"sourceIPAddress":"#, &facts.source_host);
    push_text(out, r#"},"responseElements":{"x-amz-request-id":"#, &facts.request_id);
    push_text(out, r#","x-amz-id-2":"#, &facts.host_id);
    push(out, r#"},"s3":{"bucket":{"arn":"arn:vast:s3:::"#);
    push_escaped(out, &event.bucket);
    push_text(out, r#"","name":"#, &event.bucket);
    push_text(out, r#","ownerIdentity":{"principalId":"#, &facts.principal);
    push_text(out, r#"}},"configurationId":"#, rule_id);
    push(out, r#","object":{"#);
    object(event, name, out);
    push_text(out, r#"},"s3SchemaVersion":"1.0"},"userIdentity":{"principalId":"#, &facts.principal);
    push(out, "}}");
}

fn object(event: &Event, name: EventName, out: &mut Vec<u8>) {
    let facts = &event.facts;
    let has_content = !REMOVALS.contains(name);
    if has_content && !facts.e_tag.is_empty() {
        push_text(out, r#""eTag":"#, &facts.e_tag);
        out.push(b',');
    }
    push(out, r#""key":""#);
    push_encoded(out, &event.key, Slash::Kept);
    out.push(b'"');
    push_version(event, out);
    if SEQUENCED.contains(name) {
        push_sequencer(event, out);
    }
    if let Some(size) = facts.size.filter(|_| has_content) {
        push(out, r#","size":"#);
        push_number(out, size);
    }
}
