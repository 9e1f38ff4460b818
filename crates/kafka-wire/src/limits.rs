//! Every bound on what a peer may send, in one place.

/// Bounds that this crate checks before it believes a length.
///
/// Inside a frame nothing is reserved for a claimed length or count at all: decoding compares each with the bytes
/// that are there. So the one bound that a caller has to choose is that of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest frame, its four length bytes not counted.
    pub frame_len_max: usize,
    /// How much a frame decoder reserves ahead of the bytes that have arrived.
    pub frame_reserve_max: usize,
}

impl Limits {
    /// What Kafka allows an authenticated client: 100 MiB.
    pub const FRAME_LEN_MAX: usize = 100 * 1024 * 1024;
    /// What Kafka allows before a client has authenticated: 512 KiB.
    pub const FRAME_LEN_MAX_BEFORE_SASL: usize = 512 * 1024;

    /// Other bounds on the length of a frame.
    #[must_use]
    pub const fn with_frame_len_max(self, frame_len_max: usize) -> Self {
        Self { frame_len_max, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { frame_len_max: Self::FRAME_LEN_MAX, frame_reserve_max: 64 * 1024 }
    }
}
