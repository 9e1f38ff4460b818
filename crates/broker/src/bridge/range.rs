//! Stored batches as part of a response: where they lie, not what they are.

use std::sync::Arc;

use bytes::Bytes;
use kolumn_topic_store::{ReadError, Slice};

/// A range of stored batches. It pins a file, no memory, so that a peer that does not read costs nothing.
#[derive(Debug, Clone)]
pub(crate) struct StoredRange(Arc<Slice>);

impl StoredRange {
    pub(crate) fn new(slice: Slice) -> Self {
        Self(Arc::new(slice))
    }

    /// The bytes, if they are still in memory.
    pub(crate) fn in_memory(&self, start: usize, len: usize) -> Option<Bytes> {
        let bytes = self.0.try_bytes()?;
        (start + len <= bytes.len()).then(|| bytes.slice(start..start + len))
    }

    /// The bytes, from memory or disk; blocks.
    pub(crate) fn read(&self, start: usize, len: usize) -> Result<Bytes, ReadError> {
        self.0.read(start..start + len)
    }
}
