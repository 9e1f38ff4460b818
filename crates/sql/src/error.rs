//! What can go wrong with a statement.

use std::error::Error;
use std::fmt;
use std::io;

use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use kolumn_topic_store::ReadError;

/// A statement was refused or has failed.
#[derive(Debug)]
pub struct QueryError {
    kind: QueryErrorKind,
    message: String,
    source: Option<Box<DataFusionError>>,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueryErrorKind {
    /// The text is not SQL, or means nothing: correct it.
    Syntax,
    /// A table, schema, column or function does not exist, or may not be seen.
    NotFound,
    /// The statement would change something; everything here is read-only.
    ReadOnly,
    /// What is asked for is not supported.
    Unsupported,
    /// The rows do not fit the statement: a cast, a division by zero.
    Data,
    /// Memory, spill space or the number of statements is used up: ask for less, or later.
    ResourcesExhausted,
    /// The statement took longer than allowed.
    Timeout,
    /// The disk refuses, or a fault of ours.
    Internal,
}

impl QueryError {
    /// An error without a cause.
    pub(crate) fn new(kind: QueryErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> QueryErrorKind {
        self.kind
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for QueryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        if let Some((kind, message)) = kind_and_message(&error).or_else(|| spilled(&error)) {
            return Self { kind, message, source: None };
        }
        let message = "a fault inside of the engine".to_owned();
        Self { kind: QueryErrorKind::Internal, message, source: Some(Box::new(error)) }
    }
}

/// What an error says to whoever has written the statement, if it says something to them. Where it happened is left out.
fn kind_and_message(error: &DataFusionError) -> Option<(QueryErrorKind, String)> {
    use DataFusionError as Fault;
    let own = |kind: QueryErrorKind, message: &str| Some((kind, first_line(message)));
    match error {
        Fault::Context(_, inner) | Fault::Diagnostic(_, inner) => kind_and_message(inner),
        Fault::Shared(inner) => kind_and_message(inner),
        Fault::Collection(errors) => errors.first().and_then(kind_and_message),
        Fault::External(inner) => external(inner.as_ref()),
        Fault::SQL(error, _) => own(QueryErrorKind::Syntax, &error.to_string()),
        Fault::Plan(message) => {
            let is_missing = message.contains("not found") || message.starts_with("failed to resolve");
            own(if is_missing { QueryErrorKind::NotFound } else { QueryErrorKind::Syntax }, message)
        }
        Fault::SchemaError(error, _) => match error.as_ref() {
            SchemaError::FieldNotFound { .. } => own(QueryErrorKind::NotFound, &error.to_string()),
            _ => own(QueryErrorKind::Syntax, &error.to_string()),
        },
        Fault::Configuration(message) => own(QueryErrorKind::Syntax, message),
        Fault::Internal(message) if message.starts_with(RANGE_OF_BYTES) => {
            let text =
                "a window is not ordered by bytes: cast them to text, or give the window `ROWS BETWEEN …`";
            own(QueryErrorKind::Unsupported, text)
        }
        Fault::NotImplemented(message) => own(QueryErrorKind::Unsupported, message),
        Fault::Execution(message) => own(QueryErrorKind::Data, message),
        Fault::ResourcesExhausted(message) if first_line(message).ends_with(NO_SPILLING) => {
            let text = "the memory of queries (`memory_len_max`) is used up, and there is no folder to spill to (`spill_dir`)";
            own(QueryErrorKind::ResourcesExhausted, text)
        }
        Fault::ResourcesExhausted(message) => own(QueryErrorKind::ResourcesExhausted, message),
        Fault::ArrowError(error, _) => arrow(error),
        _ => None,
    }
}

fn arrow(error: &ArrowError) -> Option<(QueryErrorKind, String)> {
    match error {
        ArrowError::ExternalError(inner) => external(inner.as_ref()),
        ArrowError::NotYetImplemented(message) => Some((QueryErrorKind::Unsupported, first_line(message))),
        ArrowError::DivideByZero => Some((QueryErrorKind::Data, "division by zero".to_owned())),
        ArrowError::CastError(message)
        | ArrowError::ParseError(message)
        | ArrowError::ComputeError(message)
        | ArrowError::InvalidArgumentError(message)
        | ArrowError::ArithmeticOverflow(message) => Some((QueryErrorKind::Data, first_line(message))),
        ArrowError::OffsetOverflowError(_) => Some((
            QueryErrorKind::ResourcesExhausted,
            "the bytes of a column do not fit one batch".to_owned(),
        )),
        _ => None,
    }
}

/// An error of the disk, if it says that there is no more space for what is spilled. Writers put one error into another.
fn spilled(error: &(dyn Error + 'static)) -> Option<(QueryErrorKind, String)> {
    let mut next = Some(error);
    while let Some(error) = next {
        let io = error.downcast_ref::<io::Error>();
        let is_full =
            |io: &io::Error| matches!(io.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let text = if io.is_some_and(is_full) {
            Some("there is no space to spill to: the disk of `spill_dir` is full")
        } else if error.to_string().contains(SPILLED_TOO_MUCH) {
            Some("queries have spilled as much as they may (`spill_len_max`)")
        } else {
            None
        };
        if let Some(text) = text {
            return Some((QueryErrorKind::ResourcesExhausted, text.to_owned()));
        }
        next = match io.and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

/// An error that has only passed through.
fn external(error: &(dyn Error + Send + Sync + 'static)) -> Option<(QueryErrorKind, String)> {
    if let Some(error) = error.downcast_ref::<QueryError>() {
        return Some((error.kind, error.message.clone()));
    }
    if let Some(error) = error.downcast_ref::<DataFusionError>() {
        return kind_and_message(error);
    }
    if let Some(error) = error.downcast_ref::<ArrowError>() {
        return arrow(error);
    }
    let error = error.downcast_ref::<ReadError>()?;
    Some((QueryErrorKind::Internal, format!("rows cannot be read: {}", error.message())))
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}

/// What DataFusion says of `OVER (ORDER BY key)`, whose frame is a range unless the statement says otherwise.
const RANGE_OF_BYTES: &str = "Cannot run range queries on datatype: Binary";
/// How DataFusion ends the error of a sort that would have to spill and may not.
const NO_SPILLING: &str = "(DiskManager is disabled)";
/// What DataFusion says when the space for spilling is used up.
const SPILLED_TOO_MUCH: &str = "used disk space during the spilling process has exceeded";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_for_spilling_that_is_used_up_is_told_however_the_error_is_wrapped() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let limit = || io::Error::other(format!("The {SPILLED_TOO_MUCH} the allowable limit of 1.0 MB."));
        for (make, part) in
            [(&full as &dyn Fn() -> io::Error, "disk of `spill_dir` is full"), (&limit, "`spill_len_max`")]
        {
            let written = || io::Error::other(DataFusionError::IoError(make()));
            for error in [
                DataFusionError::IoError(make()),
                DataFusionError::IoError(written()),
                DataFusionError::External(Box::new(written())),
                ArrowError::from(written()).into(),
                ArrowError::ExternalError(Box::new(written())).into(),
                DataFusionError::from(ArrowError::from(written())).context("spilling"),
            ] {
                let text = format!("{error:?}");
                let error = QueryError::from(error);
                assert_eq!(error.kind(), QueryErrorKind::ResourcesExhausted, "{text}");
                assert!(error.to_string().contains(part), "{text}: {error}");
            }
        }
        let other = QueryError::from(DataFusionError::IoError(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(other.kind(), QueryErrorKind::Internal, "{other}");
    }
}
