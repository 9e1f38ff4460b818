//! `CloudEvents` 1.0, structured as JSON.
//!
//! The attributes are those of the project's adapter for S3 events: `type` is `com.amazonaws.s3.` and the event's name
//! whoever the server is, `source` is made of the event's source, the region and the bucket, `subject` is the key as
//! the record has it. In one thing it cannot be followed: it makes `id` of the ids of request and host alone, but one
//! request can remove many objects, and the specification wants `source` and `id` to be unique together.

use super::aws;
use super::naming::in_aws_words;
use crate::event::json::{push, push_escaped, push_hex};
use crate::event::key::{Slash, push_encoded};
use crate::event::record::Event;
use crate::event::time::Fraction;
use crate::fnv::fnv1a_64;

/// Appends the event.
pub(super) fn event(event: &Event, rule_id: &str, out: &mut Vec<u8>) {
    push(out, r#"{"specversion":"1.0","id":""#);
    push_escaped(out, &event.facts.request_id);
    out.push(b'.');
    push_escaped(out, &event.facts.host_id);
    out.push(b'.');
    push_hex(out, digest(event), 16, b'a');
    push(out, r#"","source":""#);
    push(out, SOURCE);
    // A source is a reference to a URI, in which no character is one that a key's encoding keeps out.
    for part in [&event.origin.region, &event.bucket] {
        out.push(b'.');
        push_encoded(out, part, Slash::Encoded);
    }
    push(out, r#"","type":"com.amazonaws.s3."#);
    push(out, in_aws_words(event.name).short());
    push(out, r#"","datacontenttype":"application/json""#);
    if !event.key.is_empty() {
        push(out, r#","subject":""#);
        push_encoded(out, &event.key, Slash::Kept);
        out.push(b'"');
    }
    push(out, r#","time":""#);
    event.time.push_text(Fraction::Millis, out);
    push(out, r#"","data":"#);
    aws::record(event, SOURCE, rule_id, out);
    out.push(b'}');
}

/// FNV-1a of 64 bits over what tells the events of one request apart; the same when an event is sent again.
fn digest(event: &Event) -> u64 {
    let time = event.sequencer().time().unix_nanos().to_be_bytes();
    let parts = [event.name.as_str(), &event.facts.version_id, &event.key].map(str::as_bytes);
    // 0xff is in no UTF-8, so it tells the parts' ends.
    let parts = parts.iter().flat_map(|part| part.iter().chain(&[0xff]));
    fnv1a_64(time.iter().chain(parts).copied())
}

/// What the records of this style say that they come from; the adapter wants it to be the server's own, not AWS's.
const SOURCE: &str = "kolumn:s3";
