//! Which rows of a partition are wanted.

use bytes::Bytes;

/// What a row has to fulfil besides its offset. The default takes every row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers use struct update syntax")]
pub struct RowFilter {
    /// The least timestamp, in ms. Where one of the bounds is given, rows without a timestamp are not wanted.
    pub timestamp_min: Option<i64>,
    /// The greatest timestamp, in ms.
    pub timestamp_max: Option<i64>,
    /// The keys that are wanted, in any order; rows without a key are then not.
    pub keys: Option<Vec<Bytes>>,
}

impl RowFilter {
    /// Whether it takes every row.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.timestamp_min.is_none() && self.timestamp_max.is_none() && self.keys.is_none()
    }
}
