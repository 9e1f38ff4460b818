//! Frames out of bytes: a buffer that grows with what arrives, never with what is declared.
//!
//! ```text
//! | length int32 | api key int16 | api version int16 | correlation id int32 | … |
//! ```
//! The first eight bytes are judged as soon as they are there, so that a request that is not served costs nothing.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};

use super::memory::{Buffer, FrameMemory};
use super::{ConnectionError, ConnectionErrorKind, Served};

/// INVARIANT: `head` is set exactly when the frame at the front of the buffer has passed the check of its head.
#[derive(Debug)]
pub(super) struct Input {
    buffer: Buffer,
    memory: Arc<FrameMemory>,
    head: Option<Head>,
    /// Length of the last frame: the next one is probably as long.
    expected_len: usize,
    /// The buffer's length when everything that was asked for has come.
    asked_len: usize,
    /// How much is read of short frames at once: more, as long as reading fills it.
    burst_len: usize,
    /// The bytes at the front are no frame.
    is_faulty: bool,
    frame_len_max: usize,
    served: Served,
}

#[derive(Debug, Clone, Copy)]
struct Head {
    /// Length of the frame with its prefix.
    len: usize,
}

impl Input {
    pub(super) fn new(frame_len_max: usize, served: Served, memory: Arc<FrameMemory>) -> Self {
        Self {
            buffer: Buffer::default(),
            memory,
            head: None,
            expected_len: 0,
            asked_len: 0,
            burst_len: 0,
            is_faulty: false,
            frame_len_max,
            served,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.buffer.bytes.len()
    }

    /// Bytes that are worth reading now: the rest of the frame, but never more than doubles what is there. Of short
    /// frames that come one upon the other, several.
    pub(super) fn want(&self) -> Option<usize> {
        let step = self.len().max(self.expected_len).clamp(READ_LEN_MIN, READ_LEN_MAX);
        match self.head {
            None if self.expected_len <= SHORT_FRAME_LEN_MAX => Some(step.max(self.burst_len)),
            None => Some(step),
            Some(head) => match head.len.saturating_sub(self.len()) {
                0 => None,
                rest if head.len <= SHORT_FRAME_LEN_MAX => Some(rest.min(step).max(self.burst_len)),
                rest => Some(rest.min(step)),
            },
        }
    }

    /// Whether the frame at the front is known to be longer than `len`.
    pub(super) fn is_longer_than(&self, len: usize) -> bool {
        self.head.is_some_and(|head| head.len > len)
    }

    pub(super) fn buffer(&mut self, len: usize) -> &mut BytesMut {
        self.memory.reserve(&mut self.buffer, len);
        self.asked_len = self.len() + len;
        &mut self.buffer.bytes
    }

    /// Looks at what has come into the buffer.
    pub(super) fn received(&mut self) -> Result<(), ConnectionError> {
        let is_filled = self.len() >= self.asked_len;
        self.burst_len = if is_filled { (self.burst_len * 2).clamp(READ_LEN_MIN, BURST_LEN_MAX) } else { 0 };
        self.check()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.head.is_some_and(|head| self.len() >= head.len)
    }

    /// Whether the bytes at the front were found to be no frame.
    pub(super) fn is_faulty(&self) -> bool {
        self.is_faulty
    }

    /// Judges the head of the frame at the front, once it is there.
    pub(super) fn check(&mut self) -> Result<(), ConnectionError> {
        let judged = self.judge();
        self.is_faulty = judged.is_err();
        judged
    }

    fn judge(&mut self) -> Result<(), ConnectionError> {
        if self.head.is_some() {
            return Ok(());
        }
        let Some((prefix, rest)) = self.buffer.bytes.split_first_chunk::<PREFIX_LEN>() else { return Ok(()) };
        let declared = i32::from_be_bytes(*prefix);
        let len = usize::try_from(declared)
            .ok()
            .filter(|len| *len >= HEADER_LEN_MIN)
            .ok_or_else(|| ConnectionError::new(ConnectionErrorKind::FrameLength(declared)))?;
        let too_long = |max| ConnectionError::new(ConnectionErrorKind::FrameTooLong { len, max });
        if len > self.frame_len_max {
            return Err(too_long(self.frame_len_max));
        }
        let Some(&[k0, k1, v0, v1]) = rest.first_chunk::<4>() else { return Ok(()) };
        let (api_key, api_version) = (i16::from_be_bytes([k0, k1]), i16::from_be_bytes([v0, v1]));
        let Some(max) = (self.served)(api_key, api_version) else {
            return Err(ConnectionError::new(ConnectionErrorKind::Unsupported { api_key, api_version }));
        };
        if len > max {
            return Err(too_long(max));
        }
        self.head = Some(Head { len: PREFIX_LEN + len });
        Ok(())
    }

    /// Takes the frame at the front, without its prefix, if it is complete.
    pub(super) fn take_frame(&mut self) -> Result<Option<Bytes>, ConnectionError> {
        self.check()?;
        let Some(head) = self.head.filter(|head| self.len() >= head.len) else { return Ok(None) };
        let mut frame = self.buffer.bytes.split_to(head.len).freeze();
        frame.advance(PREFIX_LEN);
        self.expected_len = head.len;
        self.head = None;
        if self.buffer.bytes.is_empty() {
            // An idle connection keeps no buffer; the frame keeps what it needs.
            self.memory.put(std::mem::take(&mut self.buffer));
        }
        // What follows is judged now, but an error in it must not lose this frame: the next call reports it.
        drop(self.check());
        Ok(Some(frame))
    }
}

const PREFIX_LEN: usize = 4;
/// API key, version and correlation id.
const HEADER_LEN_MIN: usize = 8;
const READ_LEN_MIN: usize = 4 << 10;
const READ_LEN_MAX: usize = 1 << 20;
/// Of frames up to this length several are read at once, though the end of a read is then copied to where the next begins.
const SHORT_FRAME_LEN_MAX: usize = 64 << 10;
const BURST_LEN_MAX: usize = 128 << 10;

impl Drop for Input {
    fn drop(&mut self) {
        self.memory.put(std::mem::take(&mut self.buffer));
    }
}
