//! Version ranges, and what is known of each API.

use core::fmt;

use crate::api_key::ApiKey;

/// Versions from `min` to `max`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a range is its two ends")]
pub struct VersionRange {
    /// The first version.
    pub min: i16,
    /// The last version.
    pub max: i16,
}

impl VersionRange {
    /// Versions from `min` to `max`, both included.
    #[must_use]
    pub const fn new(min: i16, max: i16) -> Self {
        Self { min, max }
    }

    /// Whether `version` is one of them.
    #[must_use]
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// All of them, ascending.
    pub fn iter(self) -> impl Iterator<Item = i16> {
        self.min..=self.max
    }

    /// The versions that both have.
    ///
    /// ```
    /// use kolumn_kafka_wire::VersionRange;
    ///
    /// let ours = VersionRange::new(0, 9);
    /// assert_eq!(ours.intersect(VersionRange::new(4, 12)), Some(VersionRange::new(4, 9)));
    /// assert_eq!(ours.intersect(VersionRange::new(10, 12)), None);
    /// ```
    #[must_use]
    pub fn intersect(self, other: Self) -> Option<Self> {
        let both = Self { min: self.min.max(other.min), max: self.max.min(other.max) };
        (both.min <= both.max).then_some(both)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.min, self.max)
    }
}

/// One row of the table of APIs, which is generated from the schemas.
pub(crate) struct Api {
    pub(crate) key: ApiKey,
    pub(crate) name: &'static str,
    pub(crate) versions: VersionRange,
    /// The first flexible version.
    pub(crate) flexible: Option<i16>,
    pub(crate) latest_unstable: bool,
}

impl Api {
    pub(crate) const fn new(
        key: ApiKey,
        name: &'static str,
        versions: VersionRange,
        flexible: Option<i16>,
        latest_unstable: bool,
    ) -> Self {
        Self { key, name, versions, flexible, latest_unstable }
    }
}
