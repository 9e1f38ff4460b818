//! The store's errors as the codes that clients act on: one exhaustive match per family.
//!
//! The codes are those that clients expect from the request in question: what passes by itself has a code that they
//! retry, what the caller has to correct has one that they report.

use kolumn_kafka_wire::ErrorCode;
use kolumn_topic_store::{AppendErrorKind, ReadErrorKind, TopicErrorKind};

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
        TopicErrorKind::Busy => REQUEST_TIMED_OUT,
        TopicErrorKind::Full | TopicErrorKind::ReadOnly => KAFKA_STORAGE_ERROR,
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

/// A write that was accepted did not become durable: the log has failed.
pub(crate) const COMMIT_FAILED: ErrorCode = ErrorCode::KAFKA_STORAGE_ERROR;
