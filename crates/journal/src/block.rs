//! Aligned memory, and the bounded pool of blocks that groups are built in.

use std::collections::VecDeque;

use bytes::{Buf, BytesMut};

use crate::position::BLOCK;

/// Memory of this length, aligned to [`BLOCK`], filled with zeros.
pub(crate) fn aligned(len: usize) -> BytesMut {
    let mut memory = BytesMut::zeroed(len + BLOCK);
    memory.advance(lead(&memory));
    memory.truncate(len);
    memory
}

/// Blocks of memory for groups, without unsafe code: a block is an over-allocated buffer, advanced to an aligned
/// address. Groups are split off its front and frozen; what is left keeps the allocation known, and takes it back
/// as a whole once nobody holds a group of it any more.
#[derive(Debug)]
pub(crate) struct Pool {
    block_len: usize,
    len_max: usize,
    /// What small groups are being split off.
    current: BytesMut,
    current_len: usize,
    /// Used up blocks, oldest first, with their lengths.
    retired: VecDeque<(BytesMut, usize)>,
    retired_len: usize,
}

/// How many of the oldest blocks are asked whether they are free. Consumers let go of them in order, nearly.
const RECLAIM_TRIES: usize = 8;

impl Pool {
    pub(crate) fn new(block_len: usize, len_max: usize) -> Self {
        let block_len = block_len.next_multiple_of(BLOCK).max(BLOCK);
        Self {
            block_len,
            len_max,
            current: BytesMut::new(),
            current_len: 0,
            retired: VecDeque::new(),
            retired_len: 0,
        }
    }

    /// An empty aligned buffer with room for this much, a multiple of [`BLOCK`]; a new one has room for `len_wanted`.
    /// Filled up to a multiple of [`BLOCK`], it is given to [`Pool::split`].
    pub(crate) fn reserve(&mut self, len: usize, len_wanted: usize) -> &mut BytesMut {
        debug_assert!(self.current.is_empty(), "the group before was split off");
        if self.current.capacity() < len {
            self.retire();
            self.current_len = len.max(len_wanted).next_multiple_of(self.block_len);
            self.current =
                self.reclaim().unwrap_or_else(|| BytesMut::with_capacity(self.current_len + BLOCK));
            let lead = lead(&self.current);
            self.current.resize(lead, 0);
            self.current.advance(lead);
        }
        &mut self.current
    }

    /// The buffer that was reserved, with what it has been filled with.
    pub(crate) fn filling(&mut self) -> &mut BytesMut {
        &mut self.current
    }

    /// How much the buffer can be filled with in all, in whole blocks.
    pub(crate) fn room(&self) -> usize {
        self.current.capacity() / BLOCK * BLOCK
    }

    /// What was filled, as a buffer of its own.
    pub(crate) fn split(&mut self) -> BytesMut {
        debug_assert!(self.current.len().is_multiple_of(BLOCK), "groups are whole blocks");
        self.current.split()
    }

    fn retire(&mut self) {
        let used_up = std::mem::take(&mut self.current);
        if self.current_len > 0 {
            self.retired_len += self.current_len;
            self.retired.push_back((used_up, self.current_len));
        }
        while self.retired_len > self.len_max {
            let Some((_, len)) = self.retired.pop_front() else { break };
            self.retired_len -= len;
        }
    }

    /// A retired block that nobody holds any more and that is long enough.
    fn reclaim(&mut self) -> Option<BytesMut> {
        let need = self.current_len;
        let found = self
            .retired
            .iter_mut()
            .take(RECLAIM_TRIES)
            .position(|(block, len)| *len >= need && block.try_reclaim(need + BLOCK))?;
        let (block, len) = self.retired.remove(found)?;
        self.retired_len -= len;
        self.current_len = len;
        Some(block)
    }
}

/// Bytes from the buffer's address to the next aligned one.
fn lead(memory: &BytesMut) -> usize {
    memory.as_ptr().addr().wrapping_neg() % BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(pool: &mut Pool, len: usize, fill: u8) -> bytes::Bytes {
        pool.reserve(len, len).resize(len, fill);
        let group = pool.split();
        assert_eq!(group.as_ptr().addr() % BLOCK, 0);
        group.freeze()
    }

    #[test]
    fn small_groups_share_a_block_and_stay_aligned() {
        let mut pool = Pool::new(4 * BLOCK, 64 * BLOCK);
        let groups: Vec<_> = (0..4).map(|fill| group(&mut pool, BLOCK, fill)).collect();
        for (pair, fill) in groups.windows(2).zip(0..) {
            assert_eq!(pair[0].as_ptr().addr() + BLOCK, pair[1].as_ptr().addr());
            assert!(pair[0].iter().all(|byte| *byte == fill));
        }
        assert!(pool.retired.is_empty());
    }

    #[test]
    fn a_block_is_used_again_once_its_last_group_is_dropped() {
        let mut pool = Pool::new(BLOCK, 64 * BLOCK);
        let first = group(&mut pool, BLOCK, 1);
        let address = first.as_ptr();
        let kept = group(&mut pool, BLOCK, 2);
        drop(first);
        let third = group(&mut pool, BLOCK, 3);
        assert_eq!(third.as_ptr(), address);
        assert!(kept.iter().all(|byte| *byte == 2));
    }

    #[test]
    fn the_pool_forgets_blocks_over_its_limit() {
        let mut pool = Pool::new(BLOCK, 4 * BLOCK);
        let held: Vec<_> = (0..20).map(|fill| group(&mut pool, BLOCK, fill)).collect();
        assert!(pool.retired_len <= 4 * BLOCK);
        assert!(held.iter().zip(0..).all(|(group, fill)| group.iter().all(|byte| *byte == fill)));
    }

    #[test]
    fn a_group_longer_than_a_block_gets_its_own() {
        let mut pool = Pool::new(BLOCK, 64 * BLOCK);
        let group = group(&mut pool, 5 * BLOCK, 7);
        assert_eq!(group.len(), 5 * BLOCK);
    }
}
