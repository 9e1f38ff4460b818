//! Operations in doubt: those whose intent was written, and of which nobody knows whether they were committed.
//!
//! Each is looked at:
//!
//! | intent | has happened if |
//! | --- | --- |
//! | an object is made | it exists, is of the size that was uploaded, and was not modified before the request came |
//! | an object is removed | there is none; never, if there was none before |
//! | tags are set or removed | the object has these |
//! | a bucket is made or removed | it exists, or does not |
//! | an object is read | always: the intent is written afterwards |
//! | retention, legal hold, restoration | the object exists |
//!
//! What has happened is told with the sequencer and the request's id that it had, so that a consumer can tell whether it
//! has it already. In doubt it is told: an upload that was broken off may be taken for done if somebody else had written
//! as many bytes to the same key while it was under way. What the storage refuses to answer stays in doubt until the
//! next start.

use hyper::StatusCode;
use s3s::dto::GetObjectTaggingInput;
use s3s::{S3, S3Error, S3Result};

use super::begun::About;
use super::detail::Detail;
use super::facts::Facts;
use super::look::{check_bucket, is_absence, look, quiet};
use super::stamps::now;
use super::tagging::sum;
use crate::event::{EventGroup, EventName, Timestamp};
use crate::hub::Hub;
use crate::intent::Unresolved;

/// What became of operations in doubt.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// Those that had happened, and were told of.
    pub happened: u64,
    /// Those that had not.
    pub did_not_happen: u64,
    /// Those that could not be looked at, with what the storage said; they stay in doubt.
    pub in_doubt: Vec<(Unresolved, S3Error)>,
}

/// Looks at what an earlier process has left in doubt, as [`Hub::open`] gives it. The storage may be a
/// [`Notifying`](super::Notifying) one, which knows the tags that it keeps; it tells nobody of this.
pub async fn recover<S: S3>(storage: &S, hub: &Hub, unresolved: Vec<Unresolved>) -> Recovery {
    let mut recovery = Recovery::default();
    for one in unresolved {
        let detail = Detail::decode(&one.intent.detail);
        let facts = match judge(storage, &one, &detail).await {
            Ok(facts) => facts,
            Err(error) => {
                recovery.in_doubt.push((one, error));
                continue;
            }
        };
        let (name, stamp) = (one.intent.event, one.intent.time);
        let about =
            About { bucket: one.intent.bucket.clone(), key: one.intent.key.clone(), caller: detail.caller };
        let event = facts.and_then(|facts| facts.event(hub.origin(), name, &about, stamp, now()).ok());
        match event {
            Some(_) => recovery.happened += 1,
            None => recovery.did_not_happen += 1,
        }
        // The hub's observer is told of targets that will not get to know.
        drop(hub.recover(one, event).await);
    }
    recovery
}

/// Looks at what this process leaves in doubt, as a request that was broken off within, for as long as it is polled: a
/// task for the life of the server.
pub async fn recover_doubtful<S: S3>(storage: &S, hub: &Hub) {
    loop {
        let unresolved = hub.doubtful().await;
        recover(storage, hub, vec![unresolved]).await;
    }
}

/// What is to be told, or `None` if it has not happened.
async fn judge<S: S3>(storage: &S, unresolved: &Unresolved, detail: &Detail) -> S3Result<Option<Facts>> {
    let intent = &unresolved.intent;
    if intent.event.is_of_bucket() {
        let exists = match check_bucket(storage, &intent.bucket).await {
            Ok(()) => true,
            Err(error) if is_absence(&error) => false,
            Err(error) => return Err(error),
        };
        return Ok((exists == (intent.event == EventName::BucketCreated)).then(Facts::default));
    }
    let looked = look(storage, &intent.bucket, &intent.key, detail.version_id.clone()).await?;
    if intent.event == EventName::ObjectRemovedNoOp {
        return Ok(None);
    }
    if matches!(intent.event, EventName::ObjectRemovedDelete | EventName::ObjectRemovedDeleteMarkerCreated) {
        let version_id = detail.version_id.clone().unwrap_or_default();
        return Ok(looked.is_none().then(|| Facts { version_id, ..Facts::default() }));
    }
    let is_reading = EventGroup::ObjectAccessed.events().contains(intent.event);
    let Some(looked) = looked else { return Ok(is_reading.then(Facts::default)) };
    let happened = match intent.event {
        EventName::ObjectCreatedPut
        | EventName::ObjectCreatedPost
        | EventName::ObjectCreatedCopy
        | EventName::ObjectCreatedCompleteMultipartUpload => {
            let is_same = detail.size.is_none_or(|size| looked.facts.size.is_none_or(|found| found == size));
            is_same && looked.modified.is_none_or(|time| is_not_before(time, detail.not_before))
        }
        EventName::ObjectCreatedPutTagging | EventName::ObjectCreatedDeleteTagging => {
            has_tags(storage, unresolved, detail).await?
        }
        _ => true,
    };
    Ok(happened.then_some(looked.facts))
}

/// File systems tell times of modification as of their last tick, up to ten milliseconds ago, and other storages in whole
/// seconds.
fn is_not_before(modified: Timestamp, not_before: u64) -> bool {
    let modified = modified.unix_nanos();
    let grain = if modified.is_multiple_of(SECOND) { SECOND } else { TICK };
    modified.saturating_add(grain) >= not_before
}

async fn has_tags<S: S3>(storage: &S, unresolved: &Unresolved, detail: &Detail) -> S3Result<bool> {
    let Some(expected) = &detail.tags else { return Ok(true) };
    let mut input = GetObjectTaggingInput::default();
    unresolved.intent.bucket.clone_into(&mut input.bucket);
    unresolved.intent.key.clone_into(&mut input.key);
    input.version_id.clone_from(&detail.version_id);
    let found = match storage.get_object_tagging(quiet(input)).await {
        Ok(found) => found.output.tag_set,
        Err(error) if is_absence(&error) => Vec::new(),
        Err(error) if error.status_code() == Some(StatusCode::NOT_IMPLEMENTED) => return Ok(true),
        Err(error) => return Err(error),
    };
    let found = found.into_iter().map(|tag| (tag.key.unwrap_or_default(), tag.value.unwrap_or_default()));
    Ok(sum(&found.collect::<Vec<_>>()) == *expected)
}

const SECOND: u64 = 1_000_000_000;
const TICK: u64 = 50_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(modified: u64, not_before: u64, expect: bool) {
        let found = is_not_before(Timestamp::from_unix_nanos(modified), not_before);
        assert_eq!(found, expect, "{modified} and {not_before}");
    }

    #[test]
    fn times_of_modification_are_taken_as_exactly_as_they_are_told() {
        let second = 1_700_000_000 * SECOND;
        check(second + 1, second + 1, true);
        check(second + 1, second + TICK, true);
        check(second + 1, second + TICK + 2, false);
        check(second, second + SECOND, true);
        check(second, second + SECOND + 1, false);
        check(second + SECOND, second, true);
    }
}
