//! Amazon's event message structure, and its test message.

use super::naming::{REMOVALS, SEQUENCED, in_aws_words};
use super::{push_sequencer, push_version};
use crate::event::EventName;
use crate::event::json::{push, push_escaped, push_number, push_text};
use crate::event::key::{Slash, push_encoded};
use crate::event::record::{Event, Restored};
use crate::event::time::{Fraction, Timestamp};

/// What AWS calls itself in records.
pub(super) const SOURCE: &str = "aws:s3";

/// Appends the record, said to come from `source`.
pub(super) fn record(event: &Event, source: &str, rule_id: &str, out: &mut Vec<u8>) {
    let (origin, facts) = (&event.origin, &event.facts);
    let name = in_aws_words(event.name);
    push_text(out, r#"{"eventVersion":"#, version(name));
    push_text(out, r#","eventSource":"#, source);
    push_text(out, r#","awsRegion":"#, &origin.region);
    push(out, r#","eventTime":""#);
    event.time.push_text(Fraction::Millis, out);
    push_text(out, r#"","eventName":"#, name.short());
    push_text(out, r#","userIdentity":{"principalId":"#, &facts.principal);
    push_text(out, r#"},"requestParameters":{"sourceIPAddress":"#, &facts.source_host);
    push_text(out, r#"},"responseElements":{"x-amz-request-id":"#, &facts.request_id);
    push_text(out, r#","x-amz-id-2":"#, &facts.host_id);
    push_text(out, r#"},"s3":{"s3SchemaVersion":"1.0","configurationId":"#, rule_id);
    push_text(out, r#","bucket":{"name":"#, &event.bucket);
    push_text(out, r#","ownerIdentity":{"principalId":"#, &facts.principal);
    push(out, r#"},"arn":"arn:aws:s3:::"#);
    push_escaped(out, &event.bucket);
    push(out, r#""},"object":"#);
    object(event, name, out);
    out.push(b'}');
    if let (EventName::ObjectRestoreCompleted, Some(restored)) = (name, &facts.restored) {
        push_restored(restored, out);
    }
    out.push(b'}');
}

/// The message that AWS sends to a queue when a rule for it is set; it has no records, and consumers have to bear that.
#[must_use]
pub fn test_event(bucket: &str, now: Timestamp, request_id: &str, host_id: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(160 + bucket.len() + request_id.len() + host_id.len());
    push(&mut out, r#"{"Service":"Amazon S3","Event":"s3:TestEvent","Time":""#);
    now.push_text(Fraction::Millis, &mut out);
    push_text(&mut out, r#"","Bucket":"#, bucket);
    push_text(&mut out, r#","RequestId":"#, request_id);
    push_text(&mut out, r#","HostId":"#, host_id);
    out.push(b'}');
    out
}

fn object(event: &Event, name: EventName, out: &mut Vec<u8>) {
    let facts = &event.facts;
    push(out, r#"{"key":""#);
    push_encoded(out, &event.key, Slash::Kept);
    out.push(b'"');
    if !REMOVALS.contains(name) {
        if let Some(size) = facts.size {
            push(out, r#","size":"#);
            push_number(out, size);
        }
        if !facts.e_tag.is_empty() {
            push_text(out, r#","eTag":"#, &facts.e_tag);
        }
    }
    push_version(event, out);
    if SEQUENCED.contains(name) {
        push_sequencer(event, out);
    }
    out.push(b'}');
}

fn push_restored(restored: &Restored, out: &mut Vec<u8>) {
    push(out, r#","glacierEventData":{"restoreEventData":{"lifecycleRestorationExpiryTime":""#);
    restored.until.push_text(Fraction::Millis, out);
    push_text(out, r#"","lifecycleRestoreStorageClass":"#, &restored.storage_class);
    push(out, "}}");
}

/// The version of the structure: 2.2 for replication; 2.3 for lifecycle, tiering, access lists, tags and the end of a
/// restored copy; 2.1 for all others.
fn version(name: EventName) -> &'static str {
    match name {
        EventName::ReplicationFailed
        | EventName::ReplicationCompleted
        | EventName::ReplicationNotTracked
        | EventName::ReplicationMissedThreshold
        | EventName::ReplicationReplicatedAfterThreshold => "2.2",
        EventName::LifecycleExpirationDelete
        | EventName::LifecycleExpirationDeleteMarkerCreated
        | EventName::LifecycleTransition
        | EventName::IntelligentTiering
        | EventName::ObjectAclPut
        | EventName::ObjectTaggingPut
        | EventName::ObjectTaggingDelete
        | EventName::ObjectRestoreDelete => "2.3",
        _ => "2.1",
    }
}
