//! One connection: requests are cut from one buffer, answers wait until what they report is durable.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;

use super::log::{Log, Place};
use super::request::{self, Reply};
use crate::wire::{invalid, truncated};

/// A client's socket, what has arrived of its requests, and what is to be sent.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    host: SocketAddr,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    out: VecDeque<Piece>,
    is_readable: bool,
    /// The peer has ended its direction; what it has sent is still answered.
    has_ended: bool,
    /// How long the fetch in front waits for more to read.
    pub(super) parked: Option<Instant>,
}

#[derive(Debug)]
enum Piece {
    Bytes { bytes: Vec<u8>, sent: usize },
    Stored(Place),
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let host = stream.local_addr()?;
        let buffer = vec![0; BUFFER_LEN];
        let out = VecDeque::new();
        let (from, to, is_readable, has_ended) = (0, 0, true, false);
        Ok(Self { stream, host, buffer, from, to, out, is_readable, has_ended, parked: None })
    }

    pub(super) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub(super) fn can_read(&mut self) {
        self.is_readable = true;
    }

    /// Receives and handles requests, until nothing more arrives or others should have their turn.
    pub(super) fn turn(&mut self, log: &mut Log, now: Instant) -> io::Result<()> {
        let mut received = 0;
        loop {
            while self.has_room()
                && let Some(len) = self.complete()?
            {
                if !self.handle(len, log, now)? {
                    return Ok(());
                }
            }
            if !self.wants_bytes() || received >= TURN_LEN {
                return Ok(());
            }
            received += self.receive()?;
        }
    }

    /// Whether a turn would do anything now.
    pub(super) fn wants_turn(&self) -> bool {
        let has_request = self.complete().is_ok_and(|len| len.is_some());
        self.parked.is_none() && ((has_request && self.has_room()) || self.wants_bytes())
    }

    pub(super) fn is_finished(&self) -> bool {
        self.has_ended && self.out.is_empty() && !self.wants_turn()
    }

    /// Sends what the socket takes: what stands in front of stored bytes leaves together with them.
    pub(super) fn flush(&mut self, log: &mut Log) -> io::Result<()> {
        loop {
            let (head, place) = match (self.out.front(), self.out.get(1)) {
                (None, _) => return Ok(()),
                (Some(Piece::Stored(place)), _) => (&[][..], Some(*place)),
                (Some(Piece::Bytes { bytes, sent }), next) => {
                    let place = match next {
                        Some(Piece::Stored(place)) => Some(*place),
                        _ => None,
                    };
                    (bytes.get(*sent..).unwrap_or_default(), place)
                }
            };
            let body = place.map_or(Ok(&[][..]), |place| log.bytes(place))?;
            match self.stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.sent(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn sent(&mut self, mut len: usize) {
        while let Some(piece) = self.out.front_mut() {
            let left = match piece {
                Piece::Bytes { bytes, sent } => {
                    let taken = len.min(bytes.len() - *sent);
                    len -= taken;
                    *sent += taken;
                    bytes.len() - *sent
                }
                Piece::Stored(place) => {
                    let taken = len.min(place.len);
                    len -= taken;
                    place.at += u64::try_from(taken).unwrap_or_default();
                    place.len -= taken;
                    place.len
                }
            };
            if left > 0 {
                return;
            }
            self.out.pop_front();
        }
    }

    /// Handles the request in front, of so many bytes; false if it waits.
    fn handle(&mut self, len: usize, log: &mut Log, now: Instant) -> io::Result<bool> {
        let begin = self.from + LENGTH_LEN;
        let frame = self.buffer.get(begin..begin + len).ok_or_else(truncated)?;
        let reply = request::handle(frame, log, self.host)?;
        if let Some(patience) = reply.as_ref().and_then(|reply| reply.patience) {
            let deadline = *self.parked.get_or_insert(now + patience.min(PATIENCE_MAX));
            if now < deadline {
                return Ok(false);
            }
        }
        self.parked = None;
        self.from = begin + len;
        if let Some(reply) = reply {
            self.answer(&reply, log)?;
        }
        Ok(true)
    }

    /// Puts an answer behind the others.
    fn answer(&mut self, reply: &Reply, log: &mut Log) -> io::Result<()> {
        let frame = reply.frame();
        let mut put = 0;
        for (at, place, _) in &reply.stored {
            let at = at + LENGTH_LEN;
            self.put(frame.get(put..at).unwrap_or_default());
            put = at;
            if place.len <= COPIED_LEN_MAX {
                // A copy is cheaper than a system call of its own.
                self.put(log.bytes(*place)?);
            } else {
                self.out.push_back(Piece::Stored(*place));
            }
        }
        self.put(frame.get(put..).unwrap_or_default());
        Ok(())
    }

    fn put(&mut self, more: &[u8]) {
        match self.out.back_mut() {
            _ if more.is_empty() => {}
            Some(Piece::Bytes { bytes, .. }) if bytes.len() < JOINED_LEN_MAX => bytes.extend_from_slice(more),
            _ => self.out.push_back(Piece::Bytes { bytes: more.to_vec(), sent: 0 }),
        }
    }

    /// The length of the request in front, if all of it has arrived.
    fn complete(&self) -> io::Result<Option<usize>> {
        let arrived = self.buffer.get(self.from..self.to).unwrap_or_default();
        let Some((prefix, rest)) = arrived.split_first_chunk::<LENGTH_LEN>() else { return Ok(None) };
        let len = usize::try_from(i32::from_be_bytes(*prefix)).unwrap_or(usize::MAX);
        if len > FRAME_LEN_MAX {
            return Err(invalid("a request is longer than this broker takes"));
        }
        Ok((len <= rest.len()).then_some(len))
    }

    fn wants_bytes(&self) -> bool {
        self.is_readable && !self.has_ended && self.parked.is_none() && self.has_room()
    }

    fn has_room(&self) -> bool {
        self.out.len() < OUT_PIECES_MAX
    }

    /// One read: the rest of a request that has begun, or as many small ones as come at once.
    fn receive(&mut self) -> io::Result<usize> {
        let pending = self.to - self.from;
        if pending == 0 {
            (self.from, self.to) = (0, 0);
        }
        let prefix = self.buffer.get(self.from..self.to).and_then(<[u8]>::first_chunk::<LENGTH_LEN>);
        let whole = prefix.map_or(0, |prefix| usize::try_from(i32::from_be_bytes(*prefix)).unwrap_or(0));
        let missing = (whole + LENGTH_LEN).saturating_sub(pending);
        let want = if pending >= SMALL_LEN { missing } else { BUFFER_LEN - SMALL_LEN };
        if self.from > 0 && self.to + want > self.buffer.len() {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, pending);
        }
        if self.to + want > self.buffer.len() {
            self.buffer.resize(self.to + want, 0);
        }
        let free = self.buffer.get_mut(self.to..self.to + want).ok_or_else(truncated)?;
        match self.stream.read(free) {
            Ok(0) => self.has_ended = true,
            Ok(read) => {
                self.to += read;
                return Ok(read);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_readable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(0)
    }
}

const LENGTH_LEN: usize = 4;
const FRAME_LEN_MAX: usize = 32 << 20;
/// What is read at once when no long request has begun, and what of one may lie in front of it.
const BUFFER_LEN: usize = 128 << 10;
const SMALL_LEN: usize = 64 << 10;
/// A connection's share of a turn: its group is committed after so much at the latest.
const TURN_LEN: usize = 2 << 20;
/// Stored stretches up to this length are copied into the answer, and answers join up to the other.
const COPIED_LEN_MAX: usize = 16 << 10;
const JOINED_LEN_MAX: usize = 64 << 10;
/// Above this a client that does not read is not listened to.
const OUT_PIECES_MAX: usize = 1024;
const PATIENCE_MAX: Duration = Duration::from_mins(1);
