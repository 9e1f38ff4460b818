//! The table of requests that are served, as `ApiVersions` tells it.
//!
//! The ranges are those of one Kafka release (4.2), so that no client meets a combination that no Kafka ever had. Topic
//! ids are spoken wherever that release speaks them. Two rows differ from what is really served:
//!
//! - Produce is announced from version 0, as Kafka does, because old clients look for it; 0 to 2 end the connection.
//! - `ApiVersions` of a version that is not in the table is answered in version 0, with error 35.

use kolumn_kafka_wire::{ApiKey, VersionRange};

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Api {
    pub(crate) key: ApiKey,
    pub(crate) versions: VersionRange,
    frame_len_max: usize,
}

pub(crate) const APIS: &[Api] = &[
    api(ApiKey::PRODUCE, 0, 13, usize::MAX),
    api(ApiKey::FETCH, 4, 18, QUESTION_LEN_MAX),
    api(ApiKey::LIST_OFFSETS, 1, 11, QUESTION_LEN_MAX),
    api(ApiKey::METADATA, 0, 13, QUESTION_LEN_MAX),
    api(ApiKey::OFFSET_COMMIT, 2, 10, QUESTION_LEN_MAX),
    api(ApiKey::OFFSET_FETCH, 1, 10, QUESTION_LEN_MAX),
    api(ApiKey::FIND_COORDINATOR, 0, 6, QUESTION_LEN_MAX),
    api(ApiKey::JOIN_GROUP, 0, 9, QUESTION_LEN_MAX),
    api(ApiKey::HEARTBEAT, 0, 4, QUESTION_LEN_MAX),
    api(ApiKey::LEAVE_GROUP, 0, 5, QUESTION_LEN_MAX),
    api(ApiKey::SYNC_GROUP, 0, 5, ASSIGNMENTS_LEN_MAX),
    api(ApiKey::DESCRIBE_GROUPS, 0, 6, QUESTION_LEN_MAX),
    api(ApiKey::LIST_GROUPS, 0, 5, QUESTION_LEN_MAX),
    api(ApiKey::API_VERSIONS, 0, 4, QUESTION_LEN_MAX),
    api(ApiKey::CREATE_TOPICS, 2, 7, QUESTION_LEN_MAX),
    api(ApiKey::DELETE_TOPICS, 1, 6, QUESTION_LEN_MAX),
    api(ApiKey::DELETE_RECORDS, 0, 2, QUESTION_LEN_MAX),
    api(ApiKey::INIT_PRODUCER_ID, 0, 5, QUESTION_LEN_MAX),
    api(ApiKey::OFFSET_FOR_LEADER_EPOCH, 2, 4, QUESTION_LEN_MAX),
    api(ApiKey::DESCRIBE_CONFIGS, 1, 4, QUESTION_LEN_MAX),
    api(ApiKey::ALTER_CONFIGS, 0, 2, QUESTION_LEN_MAX),
    api(ApiKey::DESCRIBE_LOG_DIRS, 1, 4, QUESTION_LEN_MAX),
    api(ApiKey::CREATE_PARTITIONS, 0, 3, QUESTION_LEN_MAX),
    api(ApiKey::DELETE_GROUPS, 0, 2, QUESTION_LEN_MAX),
    api(ApiKey::ELECT_LEADERS, 0, 2, QUESTION_LEN_MAX),
    api(ApiKey::INCREMENTAL_ALTER_CONFIGS, 0, 1, QUESTION_LEN_MAX),
    api(ApiKey::LIST_PARTITION_REASSIGNMENTS, 0, 0, QUESTION_LEN_MAX),
    api(ApiKey::OFFSET_DELETE, 0, 0, QUESTION_LEN_MAX),
    api(ApiKey::DESCRIBE_CLUSTER, 0, 2, QUESTION_LEN_MAX),
    api(ApiKey::DESCRIBE_TOPIC_PARTITIONS, 0, 0, QUESTION_LEN_MAX),
];

/// Versions of Produce that are announced but not served.
pub(crate) const PRODUCE_REFUSED_MAX: i16 = 2;

/// How long a frame of this request may be; `None` if it is not served. See [`crate::connection::Served`].
pub(crate) fn served(api_key: i16, api_version: i16) -> Option<usize> {
    let api = APIS.iter().find(|api| api.key.code() == api_key)?;
    let answered = api.versions.contains(api_version) || api.key == ApiKey::API_VERSIONS;
    answered.then_some(api.frame_len_max)
}

const fn api(key: ApiKey, min: i16, max: i16, frame_len_max: usize) -> Api {
    Api { key, versions: VersionRange::new(min, max), frame_len_max }
}

/// Requests without records: decoding must not make much out of little.
const QUESTION_LEN_MAX: usize = 1 << 20;
/// The leader of a large group hands in the assignments of all its members.
const ASSIGNMENTS_LEN_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_within_what_the_codec_knows() {
        assert!(APIS.is_sorted_by_key(|api| api.key.code()));
        for api in APIS {
            let known = api.key.versions().expect("a key of the codec");
            assert!(known.contains(api.versions.min) && known.contains(api.versions.max), "{}", api.key);
            let last_is_unstable = api.key.latest_unstable() && api.versions.max == known.max;
            assert!(!last_is_unstable, "{} announces an unstable version", api.key);
        }
    }

    #[test]
    fn what_is_not_in_the_table_is_not_served() {
        assert_eq!(served(ApiKey::FETCH.code(), 3), None);
        assert_eq!(served(ApiKey::FETCH.code(), 19), None);
        assert_eq!(served(ApiKey::DESCRIBE_ACLS.code(), 0), None);
        assert_eq!(served(-1, 0), None);
        assert!(served(ApiKey::API_VERSIONS.code(), 9).is_some());
    }
}
