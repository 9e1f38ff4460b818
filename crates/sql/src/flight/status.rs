//! Errors in gRPC's terms.

use arrow_flight::error::FlightError;
use datafusion::arrow::error::ArrowError;
use tonic::{Code, Status};

use crate::error::{QueryError, QueryErrorKind};

/// An error of a statement as the client is told it.
pub(super) fn of_query(error: &QueryError) -> Status {
    Status::new(code(error.kind()), shortened(error.to_string()))
}

/// A fault of ours.
pub(super) fn internal(error: impl std::fmt::Display) -> Status {
    Status::internal(shortened(error.to_string()))
}

/// What cannot be encoded is a fault of ours.
pub(super) fn of_arrow(error: &ArrowError) -> Status {
    internal(error)
}

/// An error that came out of an encoder or a decoder.
pub(super) fn of_flight(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => internal(other),
    }
}

const fn code(kind: QueryErrorKind) -> Code {
    match kind {
        QueryErrorKind::Syntax | QueryErrorKind::Data => Code::InvalidArgument,
        QueryErrorKind::NotFound => Code::NotFound,
        QueryErrorKind::ReadOnly => Code::PermissionDenied,
        QueryErrorKind::Unsupported => Code::Unimplemented,
        QueryErrorKind::ResourcesExhausted => Code::ResourceExhausted,
        QueryErrorKind::Timeout => Code::DeadlineExceeded,
        QueryErrorKind::Internal => Code::Internal,
    }
}

/// A message travels in a header, percent-encoded, and clients bound those: some of them at 8 KiB.
fn shortened(mut message: String) -> String {
    if message.len() > MESSAGE_LEN_MAX {
        let end = (0..=MESSAGE_LEN_MAX).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
    }
    message
}

const MESSAGE_LEN_MAX: usize = 2000;
