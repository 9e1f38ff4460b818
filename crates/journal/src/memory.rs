//! Memory that files are read into, used again.
//!
//! Reads go past the operating system's cache into memory of their own. Fresh memory is zeroed and faulted in page by
//! page, which costs as much as a fifth of the read; what was read into before is neither.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;

use crate::block::aligned;
use crate::position::BLOCK;

/// Memory that was read into, each piece used again once nobody holds bytes of it.
#[derive(Debug, Default)]
pub(crate) struct ReadMemory {
    /// The oldest first: its readers are the first to let go.
    pieces: Mutex<VecDeque<Bytes>>,
}

impl ReadMemory {
    /// Aligned memory of at least this length, with whatever it has in it. It must not be shortened: what is kept is counted
    /// by its length.
    pub(crate) fn take(&self, len: usize) -> BytesMut {
        self.reclaim(len).unwrap_or_else(|| aligned(len))
    }

    /// Freezes what was taken, and keeps it for others if it is long.
    pub(crate) fn freeze(&self, memory: BytesMut) -> Bytes {
        let bytes = memory.freeze();
        if (KEPT_LEN_MIN..=KEPT_LEN_MAX).contains(&bytes.len()) {
            let mut pieces = self.pieces.lock();
            pieces.push_back(bytes.clone());
            let mut len = pieces.iter().map(Bytes::len).sum::<usize>();
            while len > KEPT_LEN_MAX {
                len -= pieces.pop_front().map_or(len, |oldest| oldest.len());
            }
        }
        bytes
    }

    fn reclaim(&self, len: usize) -> Option<BytesMut> {
        let mut pieces = self.pieces.lock();
        let fits = |piece: &Bytes| piece.len() >= len && piece.len() / SLACK_MAX <= len && piece.is_unique();
        let found = pieces.iter().position(fits)?;
        let piece = pieces.remove(found)?;
        drop(pieces);
        let memory = piece.try_into_mut().ok()?;
        memory.as_ptr().addr().is_multiple_of(BLOCK).then_some(memory)
    }
}

/// Shorter pieces come from the allocator, which keeps memory for them itself.
const KEPT_LEN_MIN: usize = 64 << 10;
/// Bytes that are kept in all, whoever holds some of them; more than readers hold for long.
const KEPT_LEN_MAX: usize = 16 << 20;
/// How many times as long as needed a piece may be.
const SLACK_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(memory: &ReadMemory, len: usize, fill: u8) -> Bytes {
        let mut piece = memory.take(len);
        assert!(piece.len() >= len);
        assert!(piece.as_ptr().addr().is_multiple_of(BLOCK));
        piece.fill(fill);
        memory.freeze(piece)
    }

    #[test]
    fn a_piece_is_used_again_once_its_readers_let_go() {
        let memory = ReadMemory::default();
        let first = filled(&memory, 40 * BLOCK, 1);
        let address = first.as_ptr();
        let part = first.slice(BLOCK..2 * BLOCK);
        drop(first);
        let second = filled(&memory, 40 * BLOCK, 2);
        assert_ne!(second.as_ptr(), address, "a part of it is still read");
        assert!(part.iter().all(|byte| *byte == 1));
        drop(part);
        assert_eq!(filled(&memory, 30 * BLOCK, 3).as_ptr(), address);
        assert!(second.iter().all(|byte| *byte == 2));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let memory = ReadMemory::default();
        for round in 0..40 {
            drop(filled(&memory, (100 + 7 * round) * BLOCK, 1));
            let held: Vec<_> = (0..20).map(|fill| filled(&memory, 200 * BLOCK, fill)).collect();
            assert!(held.iter().zip(0..).all(|(piece, fill)| piece.iter().all(|byte| *byte == fill)));
            let pieces = memory.pieces.lock();
            assert!(pieces.iter().map(Bytes::len).sum::<usize>() <= KEPT_LEN_MAX);
        }
    }

    #[test]
    fn long_memory_that_is_used_for_short_reads_counts_as_what_it_is() {
        let memory = ReadMemory::default();
        for len in [256, 128, 64, 32, 16].repeat(20) {
            let held: Vec<_> = (0..8).map(|fill| filled(&memory, len * BLOCK, fill)).collect();
            drop(held);
        }
        let pieces = std::mem::take(&mut *memory.pieces.lock());
        let memories = pieces.into_iter().map(|piece| piece.try_into_mut().expect("nobody holds it"));
        let held = memories.map(|memory| memory.capacity()).sum::<usize>();
        assert!(held <= KEPT_LEN_MAX + (KEPT_LEN_MAX >> 3), "{held}");
    }

    #[test]
    fn a_short_read_gets_no_memory_of_a_long_one() {
        let memory = ReadMemory::default();
        drop(filled(&memory, 400 * BLOCK, 1));
        assert!(memory.take(20 * BLOCK).capacity() < 100 * BLOCK);
    }
}
