//! Sets of events.

use std::fmt;

use super::name::EventName;

/// A set of single events, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct EventSet(u64);

impl EventSet {
    /// Every event.
    pub const ALL: Self = Self::of(EventName::ALL);

    /// The events that `MinIO` knows; it refuses the names of others in rules.
    pub const MINIO: Self = Self(Self::ALL.0 & !Self::AWS_ONLY.0);

    /// The events that AWS knows; it refuses the names of others in rules.
    pub const AWS: Self = Self(
        Self::AWS_ONLY.0
            | Self::of(&[
                EventName::ObjectCreatedPut,
                EventName::ObjectCreatedPost,
                EventName::ObjectCreatedCopy,
                EventName::ObjectCreatedCompleteMultipartUpload,
                EventName::ObjectRemovedDelete,
                EventName::ObjectRemovedDeleteMarkerCreated,
                EventName::ReplicationFailed,
                EventName::ReplicationNotTracked,
                EventName::ReplicationMissedThreshold,
                EventName::ReplicationReplicatedAfterThreshold,
                EventName::ObjectRestorePost,
                EventName::ObjectRestoreCompleted,
            ])
            .0,
    );

    const AWS_ONLY: Self = Self::of(&[
        EventName::ReducedRedundancyLostObject,
        EventName::ObjectRestoreDelete,
        EventName::LifecycleExpirationDelete,
        EventName::LifecycleExpirationDeleteMarkerCreated,
        EventName::LifecycleTransition,
        EventName::IntelligentTiering,
        EventName::ObjectTaggingPut,
        EventName::ObjectTaggingDelete,
        EventName::ObjectAclPut,
    ]);

    /// The set of these events.
    #[must_use]
    pub const fn of(names: &[EventName]) -> Self {
        let mut bits = 0;
        let mut rest = names;
        while let Some((name, tail)) = rest.split_first() {
            bits |= 1 << *name as u8;
            rest = tail;
        }
        Self(bits)
    }

    /// Whether the event is in the set.
    #[must_use]
    pub const fn contains(self, name: EventName) -> bool {
        self.0 & (1 << name as u8) != 0
    }

    /// Adds an event.
    pub const fn insert(&mut self, name: EventName) {
        self.0 |= 1 << name as u8;
    }

    /// What is in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether an event is in both sets.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no event is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The events of the set, in the order of [`EventName::ALL`].
    pub fn iter(self) -> impl Iterator<Item = EventName> {
        EventName::ALL.iter().copied().filter(move |name| self.contains(*name))
    }
}

impl FromIterator<EventName> for EventSet {
    fn from_iter<I: IntoIterator<Item = EventName>>(names: I) -> Self {
        let mut set = Self::default();
        names.into_iter().for_each(|name| set.insert(name));
        set
    }
}

impl fmt::Debug for EventSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minio_has_thirty_two_events_and_aws_its_own() {
        assert_eq!(EventSet::MINIO.iter().count(), 32);
        assert_eq!(EventSet::AWS.iter().count(), 21);
        assert_eq!(EventSet::MINIO.union(EventSet::AWS), EventSet::ALL);
        assert!(!EventSet::MINIO.contains(EventName::ObjectTaggingPut));
        assert!(!EventSet::AWS.contains(EventName::ObjectCreatedPutTagging));
        assert!(!EventSet::AWS.contains(EventName::ReplicationCompleted));
    }

    #[test]
    fn sets_are_sets() {
        let (put, get) = (EventName::ObjectCreatedPut, EventName::ObjectAccessedGet);
        let both: EventSet = [put, get, put].into_iter().collect();
        assert_eq!(both.iter().collect::<Vec<_>>(), [get, put]);
        assert_eq!(format!("{both:?}"), "{ObjectAccessedGet, ObjectCreatedPut}");
        assert_eq!(EventSet::of(&[put]).union(EventSet::of(&[get])), both);
        assert!(
            both.intersects(EventSet::of(&[put])) && !EventSet::of(&[put]).intersects(EventSet::of(&[get]))
        );
        assert!(EventSet::default().is_empty() && !both.is_empty());
        assert!(!both.intersects(EventSet::default()));
    }
}
