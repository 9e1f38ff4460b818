//! API keys: which request a frame carries. An open enum, so that a key from a newer peer survives.

use core::fmt;

use crate::api_version::{Api, VersionRange};
use crate::messages::APIS;

/// The number of a request kind; the named ones are generated from the schemas.
///
/// ```
/// use kolumn_kafka_wire::ApiKey;
///
/// assert_eq!(ApiKey::METADATA.code(), 3);
/// assert_eq!(ApiKey::new(3).to_string(), "Metadata");
/// assert!(ApiKey::METADATA.versions().unwrap().contains(13));
/// assert_eq!(ApiKey::METADATA.request_header_version(9), 2);
/// assert_eq!(ApiKey::new(9999).versions(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiKey(i16);

impl ApiKey {
    /// Any number, known or not.
    #[must_use]
    pub const fn new(code: i16) -> Self {
        Self(code)
    }

    /// The number.
    #[must_use]
    pub const fn code(self) -> i16 {
        self.0
    }

    /// Every key that this crate has messages for, ascending.
    #[must_use]
    pub fn all() -> impl ExactSizeIterator<Item = ApiKey> {
        APIS.iter().map(|api| api.key)
    }

    /// The name, if this crate has messages for the key.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.api().map(|api| api.name)
    }

    /// The versions that this crate can read and write.
    #[must_use]
    pub fn versions(self) -> Option<VersionRange> {
        self.api().map(|api| api.versions)
    }

    /// Whether the last version is still being designed: it should not be advertised.
    #[must_use]
    pub fn latest_unstable(self) -> bool {
        self.api().is_some_and(|api| api.latest_unstable)
    }

    /// Whether requests of this version use compact lengths and tagged fields.
    #[must_use]
    pub fn is_flexible(self, version: i16) -> bool {
        self.api().and_then(|api| api.flexible).is_some_and(|first| version >= first)
    }

    /// The version of the header before requests of this version: 2 if they are flexible, else 1.
    #[must_use]
    pub fn request_header_version(self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// The version of the header before responses of this version: 1 if they are flexible, else 0.
    ///
    /// `ApiVersions` has 0 always, because its client does not know yet what the broker speaks.
    #[must_use]
    pub fn response_header_version(self, version: i16) -> i16 {
        i16::from(self != Self::API_VERSIONS && self.is_flexible(version))
    }

    fn api(self) -> Option<&'static Api> {
        let index = APIS.binary_search_by_key(&self, |api| api.key).ok()?;
        APIS.get(index)
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
