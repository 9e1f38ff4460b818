//! Where a byte of the log lies.

use std::fmt;

/// A byte in the log's endless space.
///
/// Positions only grow and are never reused, whatever becomes of the files. A file with base position `b` holds the
/// positions from `b` on, its first block (the file header) included, so that a group's place in its file is the
/// difference of two positions. Groups start at multiples of [`BLOCK`]; entries lie anywhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(u64);

impl Position {
    /// The beginning of every log.
    pub const ORIGIN: Self = Self(0);

    /// The position with this number.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The number of bytes of log space before this position.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The position this many bytes further.
    #[must_use]
    pub const fn plus(self, len: u64) -> Self {
        Self(self.0.saturating_add(len))
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The unit of writing: every group, header and checkpoint starts at a multiple of it and fills multiples of it.
pub const BLOCK: usize = 4096;

/// [`BLOCK`] for arithmetic on positions.
pub(crate) const BLOCK_U64: u64 = BLOCK as u64;

/// The next multiple of [`BLOCK`].
pub(crate) const fn round_up(len: u64) -> u64 {
    len.div_ceil(BLOCK_U64).saturating_mul(BLOCK_U64)
}

/// The multiple of [`BLOCK`] at or before this number.
pub(crate) const fn round_down(value: u64) -> u64 {
    value - value % BLOCK_U64
}

/// A length for memory; lengths beyond the address space saturate, and then fail where they are used.
pub(crate) fn in_memory(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}
