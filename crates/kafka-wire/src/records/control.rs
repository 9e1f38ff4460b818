//! Control batches: the markers that end transactions.
//!
//! ```text
//! key   => version:INT16 type:INT16            type 0 abort, 1 commit, others are the controller's
//! value => version:INT16 coordinatorEpoch:INT32
//! ```

use bytes::Bytes;

use super::attributes::Attributes;
use super::builder::{Fields, encode};
use super::record::Record;

/// How a transaction ended.
#[expect(clippy::exhaustive_enums, reason = "a transaction ends in one of two ways")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its records never count.
    Abort,
    /// Its records count from here on.
    Commit,
}

/// The record that ends a producer's transaction in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Marker {
    /// How the transaction ended.
    pub outcome: Outcome,
    /// The epoch of the transaction coordinator that decided so.
    pub coordinator_epoch: i32,
}

impl Marker {
    /// A marker.
    #[must_use]
    pub const fn new(outcome: Outcome, coordinator_epoch: i32) -> Self {
        Self { outcome, coordinator_epoch }
    }

    /// The marker in a record of a control batch; none if the record is another control record or
    /// malformed. Versions above 0 may have more fields, which are ignored.
    #[must_use]
    pub fn from_record(record: &Record<'_>) -> Option<Self> {
        let [v0, v1, t0, t1] = *record.key?.first_chunk()?;
        let outcome = match i16::from_be_bytes([t0, t1]) {
            0 => Outcome::Abort,
            1 => Outcome::Commit,
            _ => return None,
        };
        let [w0, w1, e0, e1, e2, e3] = *record.value?.first_chunk()?;
        let known = i16::from_be_bytes([v0, v1]) >= 0 && i16::from_be_bytes([w0, w1]) >= 0;
        known.then_some(Self { outcome, coordinator_epoch: i32::from_be_bytes([e0, e1, e2, e3]) })
    }
}

/// The batch with which a producer's transaction ends in a partition. It takes one offset.
///
/// Base offset and leader epoch are 0; [`patch`](super::patch) sets them.
#[must_use]
pub fn control_batch(producer_id: i64, producer_epoch: i16, timestamp_ms: i64, marker: Marker) -> Bytes {
    let [t0, t1] = match marker.outcome {
        Outcome::Abort => 0_i16,
        Outcome::Commit => 1,
    }
    .to_be_bytes();
    let [e0, e1, e2, e3] = marker.coordinator_epoch.to_be_bytes();
    // | length 16 | attributes | timestamp delta | offset delta | 4 | key | 6 | value | no headers |
    let record = [32, 0, 0, 0, 8, 0, 0, t0, t1, 12, 0, 0, e0, e1, e2, e3, 0];
    let fields = Fields {
        attributes: Attributes::TRANSACTIONAL | Attributes::CONTROL,
        producer_id,
        producer_epoch,
        base_timestamp: timestamp_ms,
        max_timestamp: timestamp_ms,
        record_count: 1,
        ..Fields::default()
    };
    encode(&fields, record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Batch, Inflater};

    #[track_caller]
    fn check(marker: Marker) {
        let bytes = control_batch(7, 3, 1_234, marker);
        let (batch, rest) = Batch::parse(&bytes).expect("a batch");
        assert!(rest.is_empty());
        assert!(batch.attributes().is_control() && batch.attributes().is_transactional());
        assert_eq!(batch.crc(), batch.computed_crc());
        assert_eq!((batch.producer_id(), batch.producer_epoch(), batch.base_sequence()), (7, 3, -1));
        assert_eq!((batch.last_offset_delta(), batch.max_timestamp()), (0, 1_234));
        let mut inflater = Inflater::new();
        let records: alloc::vec::Vec<_> = batch.records(&mut inflater, 0).expect("not compressed").collect();
        let [Ok(record)] = records.as_slice() else { panic!("one record: {records:?}") };
        assert_eq!(Marker::from_record(record), Some(marker));
    }

    #[test]
    fn a_control_batch_holds_one_marker() {
        check(Marker::new(Outcome::Commit, 5));
        check(Marker::new(Outcome::Abort, i32::MAX));
    }
}
