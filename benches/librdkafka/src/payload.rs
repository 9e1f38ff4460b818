//! The values of records: slices of one block of pseudo-random bytes, which no codec makes smaller.

/// Makes one value after the other.
#[derive(Debug)]
pub(crate) struct Payload {
    block: Vec<u8>,
    record_bytes: usize,
    at: usize,
}

impl Payload {
    /// Values of this length.
    pub(crate) fn new(record_bytes: usize) -> Self {
        let mut state: u64 = SEED;
        let words = BLOCK_BYTES.max(record_bytes).div_ceil(8);
        let block = (0..words).flat_map(|_| next(&mut state).to_le_bytes()).collect();
        Self { block, record_bytes, at: 0 }
    }

    /// The next value, which begins with `head` as far as it is long enough. Values of one batch are different bytes of the
    /// block, unless the batch is longer than that.
    pub(crate) fn next(&mut self, head: &[u8]) -> &[u8] {
        if self.at + self.record_bytes > self.block.len() {
            self.at = 0;
        }
        let start = self.at;
        self.at += self.record_bytes;
        let value = self.block.get_mut(start..self.at).unwrap_or_default();
        value.iter_mut().zip(head).for_each(|(byte, head)| *byte = *head);
        value
    }
}

/// What a value begins with if its receipt is measured: `sent:UINT64 run:UINT64`, big-endian.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mark {
    /// The intended time of sending, in nanoseconds since an epoch of the run.
    pub(crate) sent: u64,
    /// Which run it was, so that records of others are not taken for its own.
    pub(crate) run: u64,
}

impl Mark {
    /// The bytes of a mark.
    pub(crate) const LEN: usize = 16;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        (u128::from(self.sent) << 64 | u128::from(self.run)).to_be_bytes()
    }

    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        let (sent, rest) = value.split_first_chunk()?;
        let (run, _) = rest.split_first_chunk()?;
        Some(Self { sent: u64::from_be_bytes(*sent), run: u64::from_be_bytes(*run) })
    }
}

/// `SplitMix64`.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

const SEED: u64 = 0x6b6f_6c75_6d6e;
/// More than a batch of the usual size, and small enough for a processor's second cache.
const BLOCK_BYTES: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_length_and_begin_again_after_the_block() {
        for record_bytes in [1, 100, 1024, 1_000_000, 3_000_000] {
            let mut payload = Payload::new(record_bytes);
            let first = payload.next(&[]).to_vec();
            assert_eq!(first.len(), record_bytes);
            let again = (0..BLOCK_BYTES + 2).position(|_| payload.next(&[]) == first);
            assert!(again.is_some(), "{record_bytes}");
        }
    }

    #[test]
    fn a_mark_is_read_back_from_the_value_it_was_put_into() {
        let mark = Mark { sent: 1_234_567_890_123, run: 77 };
        let mut payload = Payload::new(20);
        assert_eq!(Mark::read(payload.next(&mark.to_bytes())), Some(mark));
        assert_ne!(Mark::read(payload.next(&[])), Some(mark));
        assert_eq!(Mark::read(&[0; Mark::LEN - 1]), None);
    }

    #[test]
    fn values_that_follow_each_other_differ() {
        let mut payload = Payload::new(1024);
        let first = payload.next(&[]).to_vec();
        assert_ne!(payload.next(&[]), first);
    }
}
