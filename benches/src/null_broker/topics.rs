//! The topics of a broker that stores nothing: every partition holds one batch, again and again.

use std::ops::Range;

use super::Shared;
use crate::answer::{Found, Topics, Wanted};

impl Topics for Shared {
    /// Always the shared batch.
    type Stored = ();

    fn cluster(&self) -> &'static str {
        "null-broker"
    }

    fn partitions(&self) -> i32 {
        self.partitions
    }

    fn offsets(&self, _topic: &str, _partition: i32) -> Range<i64> {
        0..HIGH_WATERMARK
    }

    /// One whole batch a partition, whatever limits the request sets, as brokers do for the first one.
    fn read(&self, wanted: &Wanted<'_>) -> Found<()> {
        if !(0..HIGH_WATERMARK).contains(&wanted.offset) {
            return Found::nothing(0);
        }
        let base_offset = wanted.offset - wanted.offset % i64::from(self.batch.count);
        let tail_len = self.batch.bytes.len().saturating_sub(8);
        Found { error: 0, base_offset: Some(base_offset), stored: vec![((), tail_len)] }
    }
}

/// Offsets end here: a fetch never reaches it, and a client that asks for the latest offset gets it.
const HIGH_WATERMARK: i64 = 1 << 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_is_answered_with_the_batch_that_covers_its_offset() {
        let batch = crate::batch::build(100, 2000, 0);
        let (count, len) = (i64::from(batch.count), batch.bytes.len());
        let shared = Shared { batch, partitions: 1, taken: 0.into() };
        let read = |offset| shared.read(&Wanted { topic: "t", partition: 0, offset, len_max: 1 });
        let found = read(3 * count + 2);
        assert_eq!(found.base_offset, Some(3 * count));
        assert_eq!(found.stored, [((), len - 8)]);
        assert!(read(HIGH_WATERMARK).stored.is_empty());
        assert!(read(-1).stored.is_empty());
    }
}
