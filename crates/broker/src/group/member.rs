//! What a member says of itself when it joins.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;

use super::types::Join;

/// What a member may change each time that it joins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Profile {
    pub(super) client_id: String,
    pub(super) client_host: String,
    pub(super) session_timeout: Duration,
    pub(super) rebalance_timeout: Duration,
    /// Each name once.
    pub(super) protocols: Vec<(String, Bytes)>,
    pub(super) can_skip_assignment: bool,
}

impl Profile {
    pub(super) fn new(join: &Join) -> Self {
        let mut names = HashSet::new();
        let protocols = join
            .protocols
            .iter()
            .filter(|(name, _)| names.insert(name.as_str()))
            // A copy, because what came with a request keeps the whole request alive.
            .map(|(name, metadata)| (name.clone(), Bytes::copy_from_slice(metadata)))
            .collect();
        Self {
            client_id: join.client_id.clone(),
            client_host: join.client_host.clone(),
            session_timeout: join.session_timeout,
            rebalance_timeout: join.rebalance_timeout.min(REBALANCE_TIMEOUT_MAX),
            protocols,
            can_skip_assignment: join.can_skip_assignment,
        }
    }

    pub(super) fn has_timeouts_of(&self, other: &Self) -> bool {
        self.session_timeout == other.session_timeout && self.rebalance_timeout == other.rebalance_timeout
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.protocols.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn metadata(&self, protocol: &str) -> Option<&Bytes> {
        self.protocols.iter().find(|(name, _)| name == protocol).map(|(_, metadata)| metadata)
    }

    /// Bytes that it is counted with.
    pub(super) fn len(&self) -> usize {
        let protocols =
            self.protocols.iter().map(|(name, metadata)| name.len() + metadata.len() + PROTOCOL_LEN);
        self.client_id.len() + self.client_host.len() + protocols.sum::<usize>()
    }
}

/// The longest that the protocol can say.
const REBALANCE_TIMEOUT_MAX: Duration = Duration::from_millis(i32::MAX.unsigned_abs() as u64);
/// What an entry takes besides its text, so that many short names are not cheap.
const PROTOCOL_LEN: usize = 64;
