//! Record batches: what producers send, topics keep and consumers fetch.
//!
//! A records field is a sequence of *batches* of format version 2 ("magic 2"). A batch is a header of
//! 61 bytes and a payload; the payload is a sequence of *records*, compressed as one stream if the
//! header names a codec.
//!
//! ```text
//! | base offset 8 | length 4 | leader epoch 4 | magic 1 | crc 4 | attributes 2 | last offset delta 4 |
//! | base timestamp 8 | max timestamp 8 | producer id 8 | epoch 2 | sequence 4 | record count 4 | records.. |
//!                                                      '------------- covered by the crc -------------..'
//! ```
//!
//! In reading order:
//! - [`batches`] splits a records field into [`Batch`]es, which are views: nothing is copied.
//! - [`iter_records`] walks a payload that is not compressed, without any allocation; an [`Inflater`]
//!   makes such a payload from a compressed one, within a limit, in buffers that it keeps.
//! - [`validate`] judges a producer's batch before it is stored.
//! - [`patch`] rewrites the header fields that a broker owns.
//! - [`BatchBuilder`] writes batches; [`control`] knows the markers that end transactions.
//!
//! Message sets of the old formats 0 and 1 are recognised and refused by name.
//!
//! # Example
//! ```
//! use kolumn_kafka_wire::records::{BatchBuilder, Header, Inflater, RecordLimits, batches, validate};
//!
//! let mut builder = BatchBuilder::new();
//! let tag = Header { key: "source", value: Some(b"till 4") };
//! builder.append(Some(b"apple"), Some(b"3"), [tag], 1_700_000_000_000)?;
//! builder.append(None, None, [], 1_700_000_000_005)?;
//! let bytes = builder.build()?;
//!
//! let batch = batches(&bytes).next().ok_or("no batch")??;
//! let mut inflater = Inflater::new();
//! let summary = validate(&batch, &mut inflater, &RecordLimits::default())?;
//! assert_eq!(summary.record_count, 2);
//! assert_eq!(summary.null_key_index, Some(1));
//!
//! let mut records = batch.records(&mut inflater, 1 << 20)?;
//! let first = records.next().ok_or("no record")??;
//! assert_eq!(first.key, Some(&b"apple"[..]));
//! assert_eq!(first.headers.iter().next(), Some(tag));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attributes;
mod batch;
mod builder;
mod compression;
pub mod control;
mod crc;
mod cursor;
mod error;
pub mod patch;
mod record;
mod validate;

pub use attributes::{Attributes, Compression, TimestampType, UnknownCodec};
pub use batch::{Batch, Batches, HEADER_LEN, batches};
pub use builder::{BatchBuilder, empty_batch};
pub use compression::Inflater;
pub use control::control_batch;
pub use error::{
    BatchError, BatchErrorKind, BuildError, BuildErrorKind, InflateError, InflateErrorKind, RecordError,
    RecordErrorKind, ValidateError, ValidateErrorKind,
};
pub use record::{Header, Headers, HeadersIter, Record, Records, iter_records};
pub use validate::{RecordLimits, Summary, validate};
