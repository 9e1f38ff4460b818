//! The store's errors as the codes that clients act on: one match per family of errors.
//!
//! The codes are those that clients expect from the request in question: what passes by itself has a code that they
//! retry, what the caller has to correct has one that they report.

use kolumn_kafka_wire::ErrorCode;
use kolumn_topic_store::{
    AppendErrorKind, DeleteRecordsErrorKind, GroupErrorKind, ReadErrorKind, TopicErrorKind,
};

// These enums may grow in a later version of the store; what is not known here must not be mistaken for success.
macro_rules! kinds {
    ($kind:expr, { $($pattern:pat => $code:ident,)* }) => {
        match $kind {
            $($pattern => ErrorCode::$code,)*
            _ => ErrorCode::UNKNOWN_SERVER_ERROR,
        }
    };
}

pub(crate) fn append_code(kind: AppendErrorKind) -> ErrorCode {
    kinds!(kind, {
        AppendErrorKind::UnknownTopic | AppendErrorKind::UnknownPartition => UNKNOWN_TOPIC_OR_PARTITION,
        AppendErrorKind::Corrupt => CORRUPT_MESSAGE,
        AppendErrorKind::InvalidRecord => INVALID_RECORD,
        AppendErrorKind::UnsupportedFormat(_) => UNSUPPORTED_FOR_MESSAGE_FORMAT,
        AppendErrorKind::UnsupportedCompression => UNSUPPORTED_COMPRESSION_TYPE,
        AppendErrorKind::TooLarge { .. } => MESSAGE_TOO_LARGE,
        AppendErrorKind::InvalidTimestamp => INVALID_TIMESTAMP,
        AppendErrorKind::OutOfOrderSequence => OUT_OF_ORDER_SEQUENCE_NUMBER,
        AppendErrorKind::InvalidProducerEpoch => INVALID_PRODUCER_EPOCH,
        AppendErrorKind::Busy => REQUEST_TIMED_OUT,
        AppendErrorKind::Full | AppendErrorKind::ReadOnly => KAFKA_STORAGE_ERROR,
    })
}

pub(crate) fn topic_code(kind: TopicErrorKind) -> ErrorCode {
    kinds!(kind, {
        TopicErrorKind::UnknownView | TopicErrorKind::UnknownTopic => UNKNOWN_TOPIC_OR_PARTITION,
        TopicErrorKind::Exists => TOPIC_ALREADY_EXISTS,
        TopicErrorKind::InvalidName => INVALID_TOPIC_EXCEPTION,
        TopicErrorKind::InvalidPartitions => INVALID_PARTITIONS,
        TopicErrorKind::InvalidConfig => INVALID_CONFIG,
        TopicErrorKind::Busy => REQUEST_TIMED_OUT,
        TopicErrorKind::Full | TopicErrorKind::ReadOnly => KAFKA_STORAGE_ERROR,
    })
}

pub(crate) fn delete_records_code(kind: DeleteRecordsErrorKind) -> ErrorCode {
    kinds!(kind, {
        DeleteRecordsErrorKind::UnknownTopic
        | DeleteRecordsErrorKind::UnknownPartition => UNKNOWN_TOPIC_OR_PARTITION,
        DeleteRecordsErrorKind::OffsetOutOfRange => OFFSET_OUT_OF_RANGE,
        DeleteRecordsErrorKind::Policy => POLICY_VIOLATION,
        DeleteRecordsErrorKind::Busy => REQUEST_TIMED_OUT,
        DeleteRecordsErrorKind::Full | DeleteRecordsErrorKind::ReadOnly => KAFKA_STORAGE_ERROR,
    })
}

/// `unknown` is the code for a topic that does not exist: it depends on whether it was named or given by its id.
pub(crate) fn read_code(kind: ReadErrorKind, unknown: ErrorCode) -> ErrorCode {
    match kind {
        ReadErrorKind::UnknownTopic => unknown,
        other => kinds!(other, {
            ReadErrorKind::UnknownPartition => UNKNOWN_TOPIC_OR_PARTITION,
            ReadErrorKind::OffsetOutOfRange { .. } => OFFSET_OUT_OF_RANGE,
            ReadErrorKind::Gone | ReadErrorKind::Io => KAFKA_STORAGE_ERROR,
        }),
    }
}

/// Clients of a group look for its coordinator again where they would give up at an error of the storage.
pub(crate) fn group_code(kind: GroupErrorKind) -> ErrorCode {
    kinds!(kind, {
        GroupErrorKind::UnknownGroup => GROUP_ID_NOT_FOUND,
        GroupErrorKind::UnknownTopic | GroupErrorKind::UnknownPartition => UNKNOWN_TOPIC_OR_PARTITION,
        GroupErrorKind::TooLarge => INVALID_COMMIT_OFFSET_SIZE,
        GroupErrorKind::UnknownView | GroupErrorKind::Busy => COORDINATOR_NOT_AVAILABLE,
        GroupErrorKind::Full | GroupErrorKind::ReadOnly => COORDINATOR_NOT_AVAILABLE,
    })
}

/// A write that was accepted did not become durable: the log has failed.
pub(crate) const COMMIT_FAILED: ErrorCode = ErrorCode::KAFKA_STORAGE_ERROR;
/// Likewise, where clients of a group are told.
pub(crate) const GROUP_COMMIT_FAILED: ErrorCode = ErrorCode::COORDINATOR_NOT_AVAILABLE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_retry_what_passes_by_itself_and_nothing_else() {
        let retried = [
            AppendErrorKind::Busy,
            AppendErrorKind::Full,
            AppendErrorKind::ReadOnly,
            AppendErrorKind::Corrupt,
        ];
        let reported = [
            AppendErrorKind::InvalidRecord,
            AppendErrorKind::UnsupportedFormat(1),
            AppendErrorKind::UnsupportedCompression,
            AppendErrorKind::TooLarge { len: 2, max: 1 },
            AppendErrorKind::InvalidTimestamp,
            AppendErrorKind::OutOfOrderSequence,
            AppendErrorKind::InvalidProducerEpoch,
        ];
        assert!(retried.into_iter().all(|kind| append_code(kind).is_retriable()));
        assert!(reported.into_iter().all(|kind| !append_code(kind).is_retriable()));
        assert!(reported.into_iter().all(|kind| append_code(kind).is_error()));
    }

    #[test]
    fn lack_of_room_is_never_called_a_missing_sequence() {
        for kind in [AppendErrorKind::Busy, AppendErrorKind::Full, AppendErrorKind::ReadOnly] {
            assert_ne!(append_code(kind), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        }
    }

    #[test]
    fn a_read_that_can_be_repeated_never_resets_a_consumer() {
        for kind in [ReadErrorKind::Gone, ReadErrorKind::Io] {
            let code = read_code(kind, ErrorCode::UNKNOWN_TOPIC_ID);
            assert!(code.is_retriable() && code != ErrorCode::OFFSET_OUT_OF_RANGE);
            assert_ne!(code, ErrorCode::REQUEST_TIMED_OUT, "which is no answer to a fetch");
        }
        assert_eq!(
            read_code(ReadErrorKind::UnknownTopic, ErrorCode::UNKNOWN_TOPIC_ID),
            ErrorCode::UNKNOWN_TOPIC_ID
        );
    }
}
