//! The names of events: of single ones, and of groups.

use std::fmt;
use std::str::FromStr;

use super::set::EventSet;

/// Declares an enum whose variants each have one spelling, with `ALL`, `as_str`, `FromStr` and `Display`.
macro_rules! spelled {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $name { $($(#[$inner])* $variant,)* }

        impl $name {
            /// Each of them once, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name as S3 clients write it, with `s3:` in front.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl FromStr for $name {
            type Err = UnknownEvent;

            /// Reads exactly the spelling of [`as_str`](Self::as_str): S3 compares names with their case.
            fn from_str(text: &str) -> Result<Self, UnknownEvent> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    _ => Err(UnknownEvent::new(text)),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

spelled! {
    /// One kind of event: what happened to an object or a bucket.
    ///
    /// The first 32 are `MinIO`'s, in its own order of families; the rest are names that only AWS has
    /// ([`EventSet::MINIO`] and [`EventSet::AWS`] tell which are whose).
    EventName {
        /// An object was read.
        ObjectAccessedGet = "s3:ObjectAccessed:Get",
        /// An object's metadata was read.
        ObjectAccessedHead = "s3:ObjectAccessed:Head",
        /// An object's retention was read.
        ObjectAccessedGetRetention = "s3:ObjectAccessed:GetRetention",
        /// An object's legal hold was read.
        ObjectAccessedGetLegalHold = "s3:ObjectAccessed:GetLegalHold",
        /// An object's attributes were read.
        ObjectAccessedAttributes = "s3:ObjectAccessed:Attributes",
        /// An object was uploaded in one request.
        ObjectCreatedPut = "s3:ObjectCreated:Put",
        /// An object was uploaded by a browser's form.
        ObjectCreatedPost = "s3:ObjectCreated:Post",
        /// An object was copied, perhaps onto itself.
        ObjectCreatedCopy = "s3:ObjectCreated:Copy",
        /// An object was put together from its uploaded parts.
        ObjectCreatedCompleteMultipartUpload = "s3:ObjectCreated:CompleteMultipartUpload",
        /// An object's retention was set.
        ObjectCreatedPutRetention = "s3:ObjectCreated:PutRetention",
        /// An object's legal hold was set or lifted.
        ObjectCreatedPutLegalHold = "s3:ObjectCreated:PutLegalHold",
        /// An object's tags were set, as `MinIO` names it.
        ObjectCreatedPutTagging = "s3:ObjectCreated:PutTagging",
        /// An object's tags were removed, as `MinIO` names it.
        ObjectCreatedDeleteTagging = "s3:ObjectCreated:DeleteTagging",
        /// An object, or a version of it, was removed.
        ObjectRemovedDelete = "s3:ObjectRemoved:Delete",
        /// An object of a versioned bucket was hidden by a delete marker.
        ObjectRemovedDeleteMarkerCreated = "s3:ObjectRemoved:DeleteMarkerCreated",
        /// A removal found no object.
        ObjectRemovedNoOp = "s3:ObjectRemoved:NoOP",
        /// All versions of an object were removed.
        ObjectRemovedDeleteAllVersions = "s3:ObjectRemoved:DeleteAllVersions",
        /// A lifecycle rule removed a lone delete marker.
        LifecycleDelMarkerExpirationDelete = "s3:LifecycleDelMarkerExpiration:Delete",
        /// A bucket was made; a single name although it ends like a group.
        BucketCreated = "s3:BucketCreated:*",
        /// A bucket was removed; a single name although it ends like a group.
        BucketRemoved = "s3:BucketRemoved:*",
        /// An object could not be replicated.
        ReplicationFailed = "s3:Replication:OperationFailedReplication",
        /// An object was replicated.
        ReplicationCompleted = "s3:Replication:OperationCompletedReplication",
        /// An object's replication is no longer tracked.
        ReplicationNotTracked = "s3:Replication:OperationNotTracked",
        /// An object's replication took longer than it may.
        ReplicationMissedThreshold = "s3:Replication:OperationMissedThreshold",
        /// An object was replicated, but later than it should have been.
        ReplicationReplicatedAfterThreshold = "s3:Replication:OperationReplicatedAfterThreshold",
        /// The restoration of an archived object was begun.
        ObjectRestorePost = "s3:ObjectRestore:Post",
        /// The restoration of an archived object was completed.
        ObjectRestoreCompleted = "s3:ObjectRestore:Completed",
        /// An object could not be moved to another tier.
        ObjectTransitionFailed = "s3:ObjectTransition:Failed",
        /// An object was moved to another tier.
        ObjectTransitionComplete = "s3:ObjectTransition:Complete",
        /// The scanner found an object with too many versions.
        ScannerManyVersions = "s3:Scanner:ManyVersions",
        /// The scanner found an object whose versions are too large together.
        ScannerLargeVersions = "s3:Scanner:LargeVersions",
        /// The scanner found a prefix with too many folders.
        ScannerBigPrefix = "s3:Scanner:BigPrefix",
        /// An object of reduced redundancy was lost.
        ReducedRedundancyLostObject = "s3:ReducedRedundancyLostObject",
        /// The restored copy of an archived object has expired.
        ObjectRestoreDelete = "s3:ObjectRestore:Delete",
        /// A lifecycle rule removed an object.
        LifecycleExpirationDelete = "s3:LifecycleExpiration:Delete",
        /// A lifecycle rule hid an object by a delete marker.
        LifecycleExpirationDeleteMarkerCreated = "s3:LifecycleExpiration:DeleteMarkerCreated",
        /// A lifecycle rule moved an object to another storage class.
        LifecycleTransition = "s3:LifecycleTransition",
        /// An object was moved to an archive by its rare use.
        IntelligentTiering = "s3:IntelligentTiering",
        /// An object's tags were set, as AWS names it.
        ObjectTaggingPut = "s3:ObjectTagging:Put",
        /// An object's tags were removed, as AWS names it.
        ObjectTaggingDelete = "s3:ObjectTagging:Delete",
        /// An object's access control list was set.
        ObjectAclPut = "s3:ObjectAcl:Put",
    }
}

spelled! {
    /// A name that stands for several events.
    EventGroup {
        /// Every event.
        All = "s3:*",
        /// Every event, as it is sometimes written: the same as [`All`](Self::All), which is kept apart from it so that
        /// a rule is given back as it was written.
        Star = "*",
        /// Reads.
        ObjectAccessed = "s3:ObjectAccessed:*",
        /// Uploads and copies; in `MinIO` also what changes retention, legal hold and tags.
        ObjectCreated = "s3:ObjectCreated:*",
        /// Removals.
        ObjectRemoved = "s3:ObjectRemoved:*",
        /// What happens in replication.
        Replication = "s3:Replication:*",
        /// Restorations from archives.
        ObjectRestore = "s3:ObjectRestore:*",
        /// Moves to another tier.
        ObjectTransition = "s3:ObjectTransition:*",
        /// What the scanner finds.
        Scanner = "s3:Scanner:*",
        /// Removals by lifecycle rules, as AWS names them.
        LifecycleExpiration = "s3:LifecycleExpiration:*",
        /// Changes of tags, as AWS names them.
        ObjectTagging = "s3:ObjectTagging:*",
    }
}

impl EventName {
    /// The name without `s3:`, as AWS writes it into records.
    #[must_use]
    pub const fn short(self) -> &'static str {
        let text = self.as_str();
        match text.as_bytes().split_at_checked("s3:".len()) {
            Some((_, tail)) => match std::str::from_utf8(tail) {
                Ok(short) => short,
                Err(_) => text,
            },
            None => text,
        }
    }

    /// Whether the event is about a bucket and not about an object in it.
    #[must_use]
    pub const fn is_of_bucket(self) -> bool {
        matches!(self, Self::BucketCreated | Self::BucketRemoved)
    }
}

impl EventGroup {
    /// The events that the group stands for.
    #[must_use]
    pub fn events(self) -> EventSet {
        match self.as_str().strip_suffix('*') {
            Some(prefix) => {
                EventName::ALL.iter().copied().filter(|name| name.as_str().starts_with(prefix)).collect()
            }
            None => EventSet::default(),
        }
    }
}

/// What a rule names: one event or a group, kept as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a name is either of one event or of several")]
pub enum EventSelector {
    /// One event.
    One(EventName),
    /// Several events.
    Group(EventGroup),
}

impl EventSelector {
    /// The name as it was written, such as `s3:ObjectCreated:*`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::One(name) => name.as_str(),
            Self::Group(group) => group.as_str(),
        }
    }

    /// The events that are meant.
    #[must_use]
    pub fn events(self) -> EventSet {
        match self {
            Self::One(name) => EventSet::of(&[name]),
            Self::Group(group) => group.events(),
        }
    }
}

impl FromStr for EventSelector {
    type Err = UnknownEvent;

    /// Reads the name of one event, or of a group.
    fn from_str(text: &str) -> Result<Self, UnknownEvent> {
        text.parse().map(Self::One).or_else(|_| text.parse().map(Self::Group))
    }
}

impl fmt::Display for EventSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is of no event and of no group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown event `{name}`")]
pub struct UnknownEvent {
    name: String,
}

impl UnknownEvent {
    fn new(text: &str) -> Self {
        Self { name: text.chars().take(NAME_CHARS_TOLD).collect() }
    }

    /// The name, its first 100 characters.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// No name is half as long; an error need not repeat more of what it was given.
const NAME_CHARS_TOLD: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_has_a_bit_of_its_own() {
        assert_eq!(EventName::ALL.len(), 41);
        let mut seen = EventSet::default();
        for name in EventName::ALL.iter().copied() {
            assert!(!seen.contains(name), "{name}");
            seen.insert(name);
            assert_eq!(name.as_str().parse(), Ok(name));
            assert_eq!(name.as_str().parse(), Ok(EventSelector::One(name)));
            assert_eq!(format!("s3:{}", name.short()), name.to_string());
            assert_eq!(EventSelector::One(name).events().iter().collect::<Vec<_>>(), [name]);
        }
        assert_eq!(seen, EventSet::ALL);
    }

    #[track_caller]
    fn check(group: &str, members: &[&str]) {
        let selector: EventSelector = group.parse().unwrap();
        assert_eq!(selector.to_string(), group);
        assert!(matches!(selector, EventSelector::Group(_)), "{selector:?}");
        let names: Vec<&str> = selector.events().iter().map(EventName::as_str).collect();
        let expect: Vec<String> = members.iter().map(|name| group.replace('*', name)).collect();
        assert_eq!(names, expect);
    }

    #[test]
    fn groups_stand_for_the_events_that_they_name() {
        check("s3:ObjectAccessed:*", &["Get", "Head", "GetRetention", "GetLegalHold", "Attributes"]);
        let contents = ["Put", "Post", "Copy", "CompleteMultipartUpload"];
        let others = ["PutRetention", "PutLegalHold", "PutTagging", "DeleteTagging"];
        check("s3:ObjectCreated:*", &[contents, others].concat());
        check("s3:ObjectRemoved:*", &["Delete", "DeleteMarkerCreated", "NoOP", "DeleteAllVersions"]);
        check(
            "s3:Replication:*",
            &[
                "OperationFailedReplication",
                "OperationCompletedReplication",
                "OperationNotTracked",
                "OperationMissedThreshold",
                "OperationReplicatedAfterThreshold",
            ],
        );
        check("s3:ObjectRestore:*", &["Post", "Completed", "Delete"]);
        check("s3:ObjectTransition:*", &["Failed", "Complete"]);
        check("s3:Scanner:*", &["ManyVersions", "LargeVersions", "BigPrefix"]);
        check("s3:LifecycleExpiration:*", &["Delete", "DeleteMarkerCreated"]);
        check("s3:ObjectTagging:*", &["Put", "Delete"]);
        for all in ["s3:*", "*"] {
            let selector: EventSelector = all.parse().unwrap();
            assert_eq!((selector.as_str(), selector.events()), (all, EventSet::ALL));
        }
        // A test for each group: these nine and the two of all events.
        assert_eq!(EventGroup::ALL.len(), 11);
    }

    #[test]
    fn the_names_that_look_like_groups_are_single() {
        for name in [EventName::BucketCreated, EventName::BucketRemoved] {
            assert_eq!(name.as_str().parse(), Ok(EventSelector::One(name)));
            assert!(name.is_of_bucket());
        }
        assert_eq!(EventName::ALL.iter().filter(|name| name.is_of_bucket()).count(), 2);
    }

    #[test]
    fn other_spellings_are_refused_and_named() {
        for wrong in
            ["", "put", "ObjectCreated:Put", "s3:objectcreated:put", "s3:ObjectCreated", "s3:ObjectCreated:"]
        {
            let error = wrong.parse::<EventSelector>().unwrap_err();
            assert_eq!((error.name(), error.to_string()), (wrong, format!("unknown event `{wrong}`")));
        }
        let error = "é".repeat(1 << 20).parse::<EventName>().unwrap_err();
        assert_eq!(error.name(), "é".repeat(100));
    }
}
