//! What the store keeps of a group: the group's own memory, behind the time at which it was written.
//!
//! ```text
//! | written: i64, ms since the Unix epoch, big-endian | memory of the group's state machine |
//! ```
//! A group writes its memory when it becomes empty, so that for an empty group the time says since when it is.

use bytes::{BufMut, Bytes, BytesMut};
use kolumn_topic_store::Timestamp;

/// Puts the time in front of a memory.
pub(super) fn seal(written: Timestamp, memory: &[u8]) -> Bytes {
    let mut sealed = BytesMut::with_capacity(TIME_LEN + memory.len());
    sealed.put_i64(written.value());
    sealed.put_slice(memory);
    sealed.freeze()
}

/// The time and the memory; `None` if there is no memory, which is so for a group that has offsets only.
pub(super) fn open(sealed: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (written, memory) = sealed.split_first_chunk::<TIME_LEN>()?;
    Some((Timestamp::new(i64::from_be_bytes(*written)), memory))
}

const TIME_LEN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_comes_back_with_its_time() {
        let sealed = seal(Timestamp::new(1_700_000_000_123), b"memory");
        assert_eq!(open(&sealed), Some((Timestamp::new(1_700_000_000_123), &b"memory"[..])));
    }

    #[test]
    fn a_group_with_offsets_only_has_no_memory() {
        assert_eq!(open(b""), None);
    }
}
