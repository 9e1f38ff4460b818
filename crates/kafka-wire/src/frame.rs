//! Frames: `FRAME => length:INT32 byte*length`, cut out of a stream without doing I/O.

use bytes::{Buf as _, Bytes, BytesMut};

use crate::error::{DecodeError, Reason};
use crate::limits::Limits;

/// Cuts frames out of a stream of bytes.
///
/// Put what arrives into [`FrameDecoder::buffer_mut`] or [`FrameDecoder::extend`], and take frames with
/// [`FrameDecoder::next_frame`] until there is none. The buffer grows with the bytes that arrive, never with the
/// length that a peer claims.
///
/// ```
/// use kolumn_kafka_wire::{FrameDecoder, Limits};
///
/// let mut decoder = FrameDecoder::new(Limits::default());
/// decoder.extend(&[0, 0, 0, 2, b'h']);
/// assert_eq!(decoder.next_frame()?, None);
/// decoder.extend(&[b'i', 0, 0]);
/// assert_eq!(decoder.next_frame()?.as_deref(), Some(&b"hi"[..]));
/// assert_eq!(decoder.buffered(), 2);
/// # Ok::<(), kolumn_kafka_wire::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    limits: Limits,
}

impl FrameDecoder {
    /// A decoder at the start of a stream.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { buffer: BytesMut::new(), limits }
    }

    /// Changes the bounds, as after authentication.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The buffer that bytes of the stream are appended to, with some room reserved.
    ///
    /// Only append: what is in it already are bytes of the stream.
    pub fn buffer_mut(&mut self) -> &mut BytesMut {
        let missing = self.missing().clamp(1, self.limits.frame_reserve_max.max(1));
        self.buffer.reserve(missing);
        &mut self.buffer
    }

    /// Appends bytes of the stream.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// How many bytes wait in the buffer.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// How many bytes the frame at hand still lacks (its length field included), as far as is known.
    #[must_use]
    pub fn missing(&self) -> usize {
        let wanted = match self.claimed_len() {
            Some(len) => LENGTH_LEN.saturating_add(usize::try_from(len).unwrap_or(0)),
            None => LENGTH_LEN,
        };
        wanted.saturating_sub(self.buffer.len())
    }

    /// The length that the peer claims for the frame at hand, once it has arrived and if it is within the limits.
    ///
    /// # Errors
    /// As [`FrameDecoder::next_frame`].
    pub fn peek_len(&self) -> Result<Option<usize>, DecodeError> {
        let Some(claimed) = self.claimed_len() else {
            return Ok(None);
        };
        let limit = self.limits.frame_len_max;
        let reason = match usize::try_from(claimed) {
            Ok(len) if len <= limit => return Ok(Some(len)),
            Ok(claimed) => Reason::FrameTooLong { claimed, limit },
            Err(_) => Reason::NegativeLength(claimed.into()),
        };
        Err(DecodeError::new(reason, 0))
    }

    /// The next frame without its length, once all of it has arrived.
    ///
    /// # Errors
    /// If the length is negative or over the limit. It stays in the buffer, so that every later call fails too: what
    /// follows a bad length means nothing.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let Some(len) = self.peek_len()? else {
            return Ok(None);
        };
        if self.buffer.len() - LENGTH_LEN < len {
            return Ok(None);
        }
        self.buffer.advance(LENGTH_LEN);
        Ok(Some(self.buffer.split_to(len).freeze()))
    }

    fn claimed_len(&self) -> Option<i32> {
        self.buffer.first_chunk::<LENGTH_LEN>().map(|length| i32::from_be_bytes(*length))
    }
}

const LENGTH_LEN: usize = 4;
