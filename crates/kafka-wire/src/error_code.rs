//! Error codes: an open enum, so that a code from a newer peer survives.

use core::fmt;

/// An error code of the protocol; [`ErrorCode::NONE`] is success.
///
/// ```
/// use kolumn_kafka_wire::ErrorCode;
///
/// assert_eq!(ErrorCode::NOT_LEADER_OR_FOLLOWER.code(), 6);
/// assert!(ErrorCode::NOT_LEADER_OR_FOLLOWER.is_retriable());
/// assert_eq!(ErrorCode::new(30_000).to_string(), "30000");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ErrorCode(i16);

/// What a client does after an error code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Final,
    Retry,
    /// Retry after refreshing the metadata.
    Refresh,
}

impl ErrorCode {
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

    /// Whether this is no error.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether this is an error.
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 != 0
    }

    /// The name, if this crate knows the code.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.entry().map(|(name, _)| name)
    }

    /// Whether clients try the same request again.
    #[must_use]
    pub fn is_retriable(self) -> bool {
        self.entry().is_some_and(|(_, class)| class != Class::Final)
    }

    /// Whether clients refresh their metadata before they try again.
    #[must_use]
    pub fn refreshes_metadata(self) -> bool {
        self.entry().is_some_and(|(_, class)| class == Class::Refresh)
    }

    fn entry(self) -> Option<(&'static str, Class)> {
        // the table starts at -1 and has no gaps
        let index = usize::try_from(i32::from(self.0) + 1).ok()?;
        CODES.get(index).copied()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! codes {
    ($($code:literal, $name:ident, $class:ident;)*) => {
        impl ErrorCode {$(
            #[doc = concat!("Code ", stringify!($code), ".")]
            pub const $name: Self = Self($code);
        )*}

        const CODES: &[(&str, Class)] = &[$((stringify!($name), Class::$class),)*];

        #[cfg(test)]
        const NUMBERS: &[i16] = &[$($code,)*];
    };
}

codes! {
    -1, UNKNOWN_SERVER_ERROR, Final;
    0, NONE, Final;
    1, OFFSET_OUT_OF_RANGE, Final;
    2, CORRUPT_MESSAGE, Retry;
    3, UNKNOWN_TOPIC_OR_PARTITION, Refresh;
    4, INVALID_FETCH_SIZE, Final;
    5, LEADER_NOT_AVAILABLE, Refresh;
    6, NOT_LEADER_OR_FOLLOWER, Refresh;
    7, REQUEST_TIMED_OUT, Retry;
    8, BROKER_NOT_AVAILABLE, Final;
    9, REPLICA_NOT_AVAILABLE, Refresh;
    10, MESSAGE_TOO_LARGE, Final;
    11, STALE_CONTROLLER_EPOCH, Final;
    12, OFFSET_METADATA_TOO_LARGE, Final;
    13, NETWORK_EXCEPTION, Refresh;
    14, COORDINATOR_LOAD_IN_PROGRESS, Retry;
    15, COORDINATOR_NOT_AVAILABLE, Retry;
    16, NOT_COORDINATOR, Retry;
    17, INVALID_TOPIC_EXCEPTION, Final;
    18, RECORD_LIST_TOO_LARGE, Final;
    19, NOT_ENOUGH_REPLICAS, Retry;
    20, NOT_ENOUGH_REPLICAS_AFTER_APPEND, Retry;
    21, INVALID_REQUIRED_ACKS, Final;
    22, ILLEGAL_GENERATION, Final;
    23, INCONSISTENT_GROUP_PROTOCOL, Final;
    24, INVALID_GROUP_ID, Final;
    25, UNKNOWN_MEMBER_ID, Final;
    26, INVALID_SESSION_TIMEOUT, Final;
    27, REBALANCE_IN_PROGRESS, Final;
    28, INVALID_COMMIT_OFFSET_SIZE, Final;
    29, TOPIC_AUTHORIZATION_FAILED, Final;
    30, GROUP_AUTHORIZATION_FAILED, Final;
    31, CLUSTER_AUTHORIZATION_FAILED, Final;
    32, INVALID_TIMESTAMP, Final;
    33, UNSUPPORTED_SASL_MECHANISM, Final;
    34, ILLEGAL_SASL_STATE, Final;
    35, UNSUPPORTED_VERSION, Final;
    36, TOPIC_ALREADY_EXISTS, Final;
    37, INVALID_PARTITIONS, Final;
    38, INVALID_REPLICATION_FACTOR, Final;
    39, INVALID_REPLICA_ASSIGNMENT, Final;
    40, INVALID_CONFIG, Final;
    41, NOT_CONTROLLER, Retry;
    42, INVALID_REQUEST, Final;
    43, UNSUPPORTED_FOR_MESSAGE_FORMAT, Final;
    44, POLICY_VIOLATION, Final;
    45, OUT_OF_ORDER_SEQUENCE_NUMBER, Final;
    46, DUPLICATE_SEQUENCE_NUMBER, Final;
    47, INVALID_PRODUCER_EPOCH, Final;
    48, INVALID_TXN_STATE, Final;
    49, INVALID_PRODUCER_ID_MAPPING, Final;
    50, INVALID_TRANSACTION_TIMEOUT, Final;
    51, CONCURRENT_TRANSACTIONS, Retry;
    52, TRANSACTION_COORDINATOR_FENCED, Final;
    53, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Final;
    54, SECURITY_DISABLED, Final;
    55, OPERATION_NOT_ATTEMPTED, Final;
    56, KAFKA_STORAGE_ERROR, Refresh;
    57, LOG_DIR_NOT_FOUND, Final;
    58, SASL_AUTHENTICATION_FAILED, Final;
    59, UNKNOWN_PRODUCER_ID, Final;
    60, REASSIGNMENT_IN_PROGRESS, Final;
    61, DELEGATION_TOKEN_AUTH_DISABLED, Final;
    62, DELEGATION_TOKEN_NOT_FOUND, Final;
    63, DELEGATION_TOKEN_OWNER_MISMATCH, Final;
    64, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, Final;
    65, DELEGATION_TOKEN_AUTHORIZATION_FAILED, Final;
    66, DELEGATION_TOKEN_EXPIRED, Final;
    67, INVALID_PRINCIPAL_TYPE, Final;
    68, NON_EMPTY_GROUP, Final;
    69, GROUP_ID_NOT_FOUND, Final;
    70, FETCH_SESSION_ID_NOT_FOUND, Retry;
    71, INVALID_FETCH_SESSION_EPOCH, Retry;
    72, LISTENER_NOT_FOUND, Refresh;
    73, TOPIC_DELETION_DISABLED, Final;
    74, FENCED_LEADER_EPOCH, Refresh;
    75, UNKNOWN_LEADER_EPOCH, Retry;
    76, UNSUPPORTED_COMPRESSION_TYPE, Final;
    77, STALE_BROKER_EPOCH, Final;
    78, OFFSET_NOT_AVAILABLE, Retry;
    79, MEMBER_ID_REQUIRED, Final;
    80, PREFERRED_LEADER_NOT_AVAILABLE, Refresh;
    81, GROUP_MAX_SIZE_REACHED, Final;
    82, FENCED_INSTANCE_ID, Final;
    83, ELIGIBLE_LEADERS_NOT_AVAILABLE, Refresh;
    84, ELECTION_NOT_NEEDED, Refresh;
    85, NO_REASSIGNMENT_IN_PROGRESS, Final;
    86, GROUP_SUBSCRIBED_TO_TOPIC, Final;
    87, INVALID_RECORD, Final;
    88, UNSTABLE_OFFSET_COMMIT, Retry;
    89, THROTTLING_QUOTA_EXCEEDED, Retry;
    90, PRODUCER_FENCED, Final;
    91, RESOURCE_NOT_FOUND, Final;
    92, DUPLICATE_RESOURCE, Final;
    93, UNACCEPTABLE_CREDENTIAL, Final;
    94, INCONSISTENT_VOTER_SET, Final;
    95, INVALID_UPDATE_VERSION, Final;
    96, FEATURE_UPDATE_FAILED, Final;
    97, PRINCIPAL_DESERIALIZATION_FAILURE, Final;
    98, SNAPSHOT_NOT_FOUND, Final;
    99, POSITION_OUT_OF_RANGE, Final;
    100, UNKNOWN_TOPIC_ID, Refresh;
    101, DUPLICATE_BROKER_REGISTRATION, Final;
    102, BROKER_ID_NOT_REGISTERED, Final;
    103, INCONSISTENT_TOPIC_ID, Refresh;
    104, INCONSISTENT_CLUSTER_ID, Final;
    105, TRANSACTIONAL_ID_NOT_FOUND, Final;
    106, FETCH_SESSION_TOPIC_ID_ERROR, Retry;
    107, INELIGIBLE_REPLICA, Final;
    108, NEW_LEADER_ELECTED, Final;
    109, OFFSET_MOVED_TO_TIERED_STORAGE, Final;
    110, FENCED_MEMBER_EPOCH, Final;
    111, UNRELEASED_INSTANCE_ID, Final;
    112, UNSUPPORTED_ASSIGNOR, Final;
    113, STALE_MEMBER_EPOCH, Final;
    114, MISMATCHED_ENDPOINT_TYPE, Final;
    115, UNSUPPORTED_ENDPOINT_TYPE, Final;
    116, UNKNOWN_CONTROLLER_ID, Final;
    117, UNKNOWN_SUBSCRIPTION_ID, Final;
    118, TELEMETRY_TOO_LARGE, Final;
    119, INVALID_REGISTRATION, Final;
    120, TRANSACTION_ABORTABLE, Final;
    121, INVALID_RECORD_STATE, Final;
    122, SHARE_SESSION_NOT_FOUND, Retry;
    123, INVALID_SHARE_SESSION_EPOCH, Retry;
    124, FENCED_STATE_EPOCH, Final;
    125, INVALID_VOTER_KEY, Final;
    126, DUPLICATE_VOTER, Final;
    127, VOTER_NOT_FOUND, Final;
    128, INVALID_REGULAR_EXPRESSION, Final;
    129, REBOOTSTRAP_REQUIRED, Final;
    130, STREAMS_INVALID_TOPOLOGY, Final;
    131, STREAMS_INVALID_TOPOLOGY_EPOCH, Final;
    132, STREAMS_TOPOLOGY_FENCED, Final;
    133, SHARE_SESSION_LIMIT_REACHED, Retry;
    134, GROUP_DELETION_FAILED, Final;
    135, STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED, Final;
    136, CONTROLLER_ID_NOT_REGISTERED, Final;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_no_gaps() {
        assert!(NUMBERS.iter().copied().eq(-1..=136));
        assert_eq!(ErrorCode::CONTROLLER_ID_NOT_REGISTERED.name(), Some("CONTROLLER_ID_NOT_REGISTERED"));
        assert_eq!(ErrorCode::UNKNOWN_SERVER_ERROR.name(), Some("UNKNOWN_SERVER_ERROR"));
        assert_eq!(ErrorCode::new(137).name(), None);
        assert_eq!(ErrorCode::new(-2).name(), None);
        assert_eq!(ErrorCode::new(i16::MIN).name(), None);
    }

    #[test]
    fn classes_are_those_of_the_clients() {
        assert!(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.refreshes_metadata());
        assert!(ErrorCode::NOT_COORDINATOR.is_retriable());
        assert!(!ErrorCode::NOT_COORDINATOR.refreshes_metadata());
        assert!(!ErrorCode::OFFSET_OUT_OF_RANGE.is_retriable());
    }
}
