//! The bounded buffer that codecs inflate into.

use alloc::vec::Vec;

/// A buffer that grows with what is written to it, up to a limit.
///
/// The bytes are initialised once and reused, so that a warm buffer costs nothing.
#[derive(Default)]
pub(super) struct Output {
    // INVARIANT: `filled <= bytes.len()` and `filled <= limit`.
    bytes: Vec<u8>,
    filled: usize,
    limit: usize,
}

/// Why inflation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(any(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")),
    expect(dead_code, reason = "only codecs fail, and none is built")
)]
pub(super) enum Fault {
    /// The data is not the codec's.
    Corrupt(&'static str),
    /// The limit was reached.
    TooLarge,
    /// The codec's feature is off.
    #[cfg(not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")))]
    NotBuilt,
}

impl Output {
    /// Begins a payload of at most `limit` bytes.
    pub(super) fn start(&mut self, limit: usize) {
        self.filled = 0;
        self.limit = limit;
    }

    pub(super) fn filled(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn shrink_to(&mut self, len: usize) {
        self.filled = 0;
        self.bytes.truncate(len);
        self.bytes.shrink_to(len);
    }
}

#[cfg(any(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
impl Output {
    /// How many bytes may still be written.
    pub(super) fn allowance(&self) -> usize {
        self.limit - self.filled
    }

    /// Makes room for `len` more bytes, which must be within the allowance.
    pub(super) fn reserve(&mut self, len: usize) -> Result<(), Fault> {
        if len > self.allowance() {
            return Err(Fault::TooLarge);
        }
        let needed = self.filled + len;
        if needed > self.bytes.len() {
            // Doubling keeps many small steps cheap; the limit bounds it.
            let len = needed.max((self.bytes.len() * 2).min(self.limit));
            self.bytes.reserve_exact(len - self.bytes.len());
            self.bytes.resize(len, 0);
        }
        Ok(())
    }

    /// What has been written, and the room behind it within the allowance.
    pub(super) fn split(&mut self) -> (&[u8], &mut [u8]) {
        let end = self.bytes.len().min(self.limit);
        let usable = self.bytes.get_mut(..end).unwrap_or_default();
        let (filled, room) = usable.split_at_mut_checked(self.filled).unwrap_or_default();
        (filled, room)
    }

    #[cfg(any(feature = "snappy", feature = "lz4", feature = "zstd"))]
    /// The first `len` bytes of the room, after [`reserve`](Self::reserve) has made them.
    pub(super) fn room(&mut self, len: usize) -> &mut [u8] {
        self.split().1.get_mut(..len).unwrap_or_default()
    }

    /// Takes the first `len` bytes of the room as written.
    pub(super) fn advance(&mut self, len: usize) {
        debug_assert!(len <= self.split().1.len(), "only what there was room for is written");
        self.filled += len.min(self.split().1.len());
    }
}
