//! Walking the records of a batch: which of them are wanted, without copying any.

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

use bytes::Bytes;
use kolumn_kafka_wire::records::{Batch, Inflater, TimestampType};

use super::RowFilter;
use super::rows::Row;
use crate::error::{ReadError, ReadErrorKind};
use crate::state::index::Span;

/// A filter, prepared for being asked for each row.
#[derive(Debug)]
pub(super) struct Sieve {
    timestamps: Option<(i64, i64)>,
    keys: Keys,
}

#[derive(Debug)]
enum Keys {
    Any,
    One(Bytes),
    Of(HashSet<Bytes>),
}

impl Sieve {
    pub(super) fn new(filter: &RowFilter) -> Self {
        let bounds = filter.timestamp_min.or(filter.timestamp_max).map(|_| {
            // Rows without a timestamp are below every bound.
            let min = filter.timestamp_min.unwrap_or(0).max(0);
            (min, filter.timestamp_max.unwrap_or(i64::MAX))
        });
        let keys = match filter.keys.as_deref() {
            None => Keys::Any,
            Some([key]) => Keys::One(key.clone()),
            Some(keys) => Keys::Of(keys.iter().cloned().collect()),
        };
        Self { timestamps: bounds, keys }
    }

    pub(super) const fn is_open(&self) -> bool {
        self.timestamps.is_none() && matches!(self.keys, Keys::Any)
    }

    /// Whether a batch may have rows that pass, by its greatest timestamp or a bound of it. The smallest is not known.
    pub(super) fn may_pass(&self, own_max: i64) -> bool {
        self.timestamps.is_none_or(|(min, max)| min <= max && own_max >= min)
    }

    #[inline]
    pub(super) fn passes(&self, timestamp: i64, key: Option<&[u8]>) -> bool {
        self.timestamps.is_none_or(|(min, max)| (min..=max).contains(&timestamp))
            && match &self.keys {
                Keys::Any => true,
                Keys::One(wanted) => key.is_some_and(|key| key == wanted),
                Keys::Of(wanted) => key.is_some_and(|key| wanted.contains(key)),
            }
    }
}

/// Hands over the rows of a batch with these offsets that pass, in order, until the function breaks off or none can
/// follow. Says how many records were walked.
pub(super) fn walk<'b>(
    batch: &Batch<'b>,
    inflater: &'b mut Inflater,
    inflated_len_max: usize,
    offsets: &Range<i64>,
    sieve: &Sieve,
    mut each: impl FnMut(Row<'b>) -> Result<ControlFlow<()>, ReadError>,
) -> Result<u64, ReadError> {
    let (base, base_timestamp) = (batch.base_offset(), batch.base_timestamp());
    // Where the store gave the timestamps, one stands for all.
    let appended =
        (batch.attributes().timestamp_type() == TimestampType::LogAppendTime).then(|| batch.max_timestamp());
    let mut walked = 0;
    for record in batch.records(inflater, inflated_len_max).map_err(damaged)? {
        let record = record.map_err(damaged)?;
        walked += 1;
        let offset = base.saturating_add(i64::from(record.offset_delta));
        if offset < offsets.start {
            continue;
        }
        if offset >= offsets.end {
            break;
        }
        let timestamp = match appended {
            Some(timestamp) => timestamp,
            None => base_timestamp.saturating_add(record.timestamp_delta),
        };
        if sieve.passes(timestamp, record.key) {
            let row =
                Row { offset, timestamp, key: record.key, value: record.value, headers: record.headers };
            if each(row)?.is_break() {
                break;
            }
        }
        if offset.saturating_add(1) >= offsets.end {
            break;
        }
    }
    Ok(walked)
}

/// The batch that lies in these bytes, if it is the one that the index knows there.
pub(super) fn parse<'b>(span: &Span, bytes: &'b [u8]) -> Result<Batch<'b>, ReadError> {
    let (batch, _) = Batch::parse(bytes).map_err(damaged)?;
    if (batch.base_offset(), batch.last_offset()) != (span.base, span.last) {
        return Err(misplaced(span.base));
    }
    Ok(batch)
}

pub(super) fn misplaced(offset: i64) -> ReadError {
    damaged(format!("the batch at offset {offset} is not where it was"))
}

pub(super) fn damaged(error: impl std::fmt::Display) -> ReadError {
    ReadError::new(ReadErrorKind::Io, error)
}
