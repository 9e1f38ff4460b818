//! The protocol engine of one connection, without I/O: bytes in, requests out; responses in, chunks to write out.
//!
//! ```text
//!  socket -> receive_buf/received -> next_request -> (the shell starts it)
//!  socket <- transmit/sent        <- respond/skip <- (its answer, at any time, in any order)
//! ```
//!
//! The engine keeps what the protocol promises, whatever the shell does: responses leave in the order of their
//! requests, a request without a response (`acks=0`) holds nobody up, and what a peer can make us hold is bounded -
//! frames grow as their bytes arrive, the number of requests in flight and the bytes of unsent answers have limits.
//! A response may contain ranges (`S`) that stay where they are until the socket takes them.

mod input;
mod memory;
mod output;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use self::input::Input;
pub use self::memory::FrameMemory;
use self::output::Output;
pub use self::output::{Chunk, Response};

/// What one connection may hold and how long it may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionLimits {
    /// Longest frame, without its length prefix.
    pub frame_len_max: usize,
    /// Requests whose responses have not been written yet.
    pub in_flight_max: usize,
    /// Bytes of answers that wait in memory before further requests are taken up.
    pub answer_len_max: usize,
    /// Silence in both directions after which the connection ends.
    pub idle_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            frame_len_max: 100 << 20,
            in_flight_max: 64,
            answer_len_max: 1 << 20,
            idle_timeout: Duration::from_mins(10),
        }
    }
}

/// Says whether a request of this key and version is served at all, and if so how long its frame may be. The limit of
/// [`ConnectionLimits::frame_len_max`] holds as well.
pub type Served = fn(api_key: i16, api_version: i16) -> Option<usize>;

/// The place of a request in the order of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(u64);

/// A complete request, not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedRequest {
    /// Where its response goes.
    pub slot: SlotId,
    /// Header and body, without the length prefix.
    pub frame: Bytes,
}

/// Why the engine gave the peer up. The connection must be closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionError {
    kind: ConnectionErrorKind,
}

/// The ways in which a peer leaves the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionErrorKind {
    /// The length prefix is negative or too short for a header.
    FrameLength(i32),
    /// The frame is longer than the limit.
    FrameTooLong {
        /// Length that the peer declared.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// The request kind, or this version of it, is not served.
    Unsupported {
        /// API key of the request.
        api_key: i16,
        /// Version of the request.
        api_version: i16,
    },
}

impl ConnectionError {
    pub(crate) fn new(kind: ConnectionErrorKind) -> Self {
        Self { kind }
    }

    /// What the peer did.
    #[must_use]
    pub fn kind(&self) -> ConnectionErrorKind {
        self.kind
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ConnectionErrorKind::FrameLength(len) => write!(f, "frame length `{len}` is impossible"),
            ConnectionErrorKind::FrameTooLong { len, max } => {
                write!(f, "frame of {len} bytes is longer than the limit of {max}")?;
                match len >> 16 {
                    0x1603 => f.write_str(": its first bytes are those of TLS, which is not served here"),
                    // "GE", "PO" and "HE" of a request for a page.
                    0x4745 | 0x504F | 0x4845 => {
                        f.write_str(": its first bytes are those of HTTP, not of Kafka")
                    }
                    _ => Ok(()),
                }
            }
            ConnectionErrorKind::Unsupported { api_key, api_version } => {
                write!(f, "request key {api_key} version {api_version} is not served")
            }
        }
    }
}

impl std::error::Error for ConnectionError {}

/// One connection's protocol state. `S` is what a response's deferred ranges come from.
#[derive(Debug)]
pub struct Connection<S> {
    input: Input,
    output: Output<S>,
    limits: ConnectionLimits,
    last_activity: Instant,
    receiving: bool,
}

impl<S> Connection<S> {
    /// A fresh connection; it holds no buffer before the first byte.
    #[must_use]
    pub fn new(limits: ConnectionLimits, served: Served, now: Instant) -> Self {
        Self::with_memory(limits, served, Arc::new(FrameMemory::new(0)), now)
    }

    /// A fresh connection that shares the memory of long frames with others.
    #[must_use]
    pub fn with_memory(
        limits: ConnectionLimits,
        served: Served,
        memory: Arc<FrameMemory>,
        now: Instant,
    ) -> Self {
        Self {
            input: Input::new(limits.frame_len_max, served, memory),
            output: Output::new(),
            limits,
            last_activity: now,
            receiving: true,
        }
    }

    /// How many bytes the engine would take now; `None` while it wants none, which is how it slows the peer down.
    #[must_use]
    pub fn receive_want(&self) -> Option<usize> {
        if self.receiving && self.output.in_flight() < self.limits.in_flight_max {
            self.input.want()
        } else {
            None
        }
    }

    /// The buffer to read into, with room for `len` bytes at its end. Call [`Connection::received`] afterwards.
    pub fn receive_buf(&mut self, len: usize) -> &mut BytesMut {
        self.input.buffer(len)
    }

    /// Looks at what arrived in the receive buffer.
    ///
    /// # Errors
    /// The peer left the protocol; nothing more can be read from it.
    pub fn received(&mut self, now: Instant) -> Result<(), ConnectionError> {
        self.last_activity = now;
        self.input.received()
    }

    /// Takes the next complete request, if one is there and the limits allow to start it.
    ///
    /// # Errors
    /// The peer left the protocol; nothing more can be read from it.
    pub fn next_request(&mut self) -> Result<Option<ReceivedRequest>, ConnectionError> {
        if !self.has_room() {
            return Ok(None);
        }
        let Some(frame) = self.input.take_frame()? else { return Ok(None) };
        let slot = self.output.open_slot(frame.len());
        Ok(Some(ReceivedRequest { slot: SlotId(slot), frame }))
    }

    /// Hands in the response of a request. It leaves when all earlier ones have left.
    pub fn respond(&mut self, slot: SlotId, response: Response<S>) {
        self.output.fill(slot.0, Some(response));
    }

    /// Says that a request has no response.
    pub fn skip(&mut self, slot: SlotId) {
        self.output.fill(slot.0, None);
    }

    /// The next piece to write, at most `budget` bytes of it. Each call goes on behind the piece before;
    /// [`Connection::sent`] confirms, [`Connection::rewind`] goes back to what was not confirmed.
    pub fn transmit(&mut self, budget: usize) -> Option<Chunk<'_, S>> {
        self.output.transmit(budget)
    }

    /// Confirms that the socket took `len` bytes.
    pub fn sent(&mut self, len: usize, now: Instant) {
        if len > 0 {
            self.last_activity = now;
        }
        self.output.sent(len);
    }

    /// Forgets what [`Connection::transmit`] handed out and was not confirmed.
    pub fn rewind(&mut self) {
        self.output.rewind();
    }

    /// Takes no further bytes: what is complete is still handed out.
    pub fn stop_receiving(&mut self) {
        self.receiving = false;
    }

    /// Whether another response may be computed: little is waiting to be written.
    #[must_use]
    pub fn wants_answers(&self) -> bool {
        self.output.unsent_len() <= self.limits.answer_len_max
    }

    /// Whether there is something to write now.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.output.unsent_len() > 0
    }

    /// Requests that were handed out and whose response is not completely written.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.output.in_flight()
    }

    /// Whether a complete request waits in the receive buffer.
    #[must_use]
    pub fn has_request(&self) -> bool {
        self.input.is_complete()
    }

    /// Whether [`Connection::next_request`] would hand out a request, or an error, now.
    #[must_use]
    pub fn can_start(&self) -> bool {
        self.has_room() && (self.has_request() || self.input.is_faulty())
    }

    /// Bytes of requests held: what is buffered and the frames without an answer.
    #[must_use]
    pub fn held_len(&self) -> usize {
        self.input.len().saturating_add(self.output.frames_len())
    }

    /// Whether the frame that arrives is known to be longer than `len`.
    #[must_use]
    pub fn receives_longer_than(&self, len: usize) -> bool {
        self.input.is_longer_than(len)
    }

    /// Bytes held of a frame that has not arrived completely.
    #[must_use]
    pub fn partial_len(&self) -> usize {
        if self.input.is_complete() { 0 } else { self.input.len() }
    }

    /// Bytes of answers in memory that are not written yet. Ranges do not count.
    #[must_use]
    pub fn answer_len(&self) -> usize {
        self.output.answer_len()
    }

    fn has_room(&self) -> bool {
        self.output.in_flight() < self.limits.in_flight_max
            && self.output.answer_len() <= self.limits.answer_len_max
    }

    /// When [`Connection::handle_timeout`] wants to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        self.last_activity + self.limits.idle_timeout
    }

    /// Whether the connection was silent for too long. A request that is being answered keeps it alive, as long as
    /// nothing waits to be taken by the peer.
    #[must_use]
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if now < self.next_deadline() {
            return false;
        }
        if self.output.is_answering() {
            self.last_activity = now;
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(first: [u8; 4], told: &str) {
        let len = usize::try_from(u32::from_be_bytes(first)).expect("fits");
        let error = ConnectionError::new(ConnectionErrorKind::FrameTooLong { len, max: 1000 });
        assert_eq!(error.to_string(), format!("frame of {len} bytes is longer than the limit of 1000{told}"));
    }

    #[test]
    fn peers_that_speak_another_protocol_are_called_by_it() {
        check([0x16, 3, 1, 2], ": its first bytes are those of TLS, which is not served here");
        check(*b"GET ", ": its first bytes are those of HTTP, not of Kafka");
        check([0x16, 4, 1, 2], "");
    }
}
