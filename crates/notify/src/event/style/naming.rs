//! What AWS and those after it call what `MinIO` names differently.

use crate::event::{EventName, EventSet};

/// The name in AWS's words; where there is none, the name itself.
pub(super) fn in_aws_words(name: EventName) -> EventName {
    match name {
        EventName::ObjectCreatedPutTagging => EventName::ObjectTaggingPut,
        EventName::ObjectCreatedDeleteTagging => EventName::ObjectTaggingDelete,
        EventName::ObjectTransitionComplete => EventName::LifecycleTransition,
        EventName::LifecycleDelMarkerExpirationDelete => EventName::LifecycleExpirationDelete,
        other => other,
    }
}

/// The events after which there is no object, or none that has a size and a tag.
pub(super) const REMOVALS: EventSet = EventSet::of(&[
    EventName::ObjectRemovedDelete,
    EventName::ObjectRemovedDeleteMarkerCreated,
    EventName::ObjectRemovedNoOp,
    EventName::ObjectRemovedDeleteAllVersions,
    EventName::LifecycleDelMarkerExpirationDelete,
    EventName::LifecycleExpirationDelete,
    EventName::LifecycleExpirationDeleteMarkerCreated,
]);

/// The events whose records have a sequencer: those of an object being put or removed.
pub(super) const SEQUENCED: EventSet = EventSet::of(&[
    EventName::ObjectCreatedPut,
    EventName::ObjectCreatedPost,
    EventName::ObjectCreatedCopy,
    EventName::ObjectCreatedCompleteMultipartUpload,
])
.union(REMOVALS);
