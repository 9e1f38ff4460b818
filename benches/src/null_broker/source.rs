//! The two directions of a connection: requests through one small buffer, answers gathered until the
//! buffer is empty.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;

use crate::wire::{Cursor, invalid, truncated};

/// Large enough for a few system calls a megabyte, small enough to stay in the cache.
const BUFFER_LEN: usize = 256 * 1024;

/// The longest request that is held as a whole; only Produce, which is walked, may be longer.
const HELD_LEN_MAX: usize = 64 * 1024;

/// Answers are written in pieces of this size, which loopback carries fastest.
const PIECE_LEN: usize = 256 * 1024;

/// A connection's buffered input and the answers that wait for the next read.
pub(super) struct Source {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes consumed since the connection began.
    position: usize,
    answers: Vec<u8>,
}

impl Source {
    pub(super) fn new(stream: TcpStream) -> Self {
        let buffer = vec![0; BUFFER_LEN];
        Self { stream, buffer, start: 0, end: 0, position: 0, answers: Vec::new() }
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// The length of the next frame; `None` where the peer ended between two frames.
    pub(super) fn frame_len(&mut self) -> io::Result<Option<usize>> {
        if self.start == self.end && self.refill()? == 0 {
            return Ok(None);
        }
        let len = self.cursor(4)?.int32()?;
        usize::try_from(len).map(Some).map_err(|_| invalid("a frame's length is negative"))
    }

    /// The next `len` bytes, which must fit the buffer.
    pub(super) fn cursor(&mut self, len: usize) -> io::Result<Cursor<'_>> {
        while self.end - self.start < len {
            if self.refill()? == 0 {
                return Err(truncated());
            }
        }
        let bytes = self.buffer.get(self.start..self.start + len).ok_or_else(truncated)?;
        self.start += len;
        self.position += len;
        Ok(Cursor::new(bytes))
    }

    /// A copy of the next `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> io::Result<Vec<u8>> {
        if len > HELD_LEN_MAX {
            return Err(invalid("a request is longer than this broker holds"));
        }
        Ok(self.cursor(len)?.rest().to_vec())
    }

    pub(super) fn string(&mut self) -> io::Result<String> {
        let len = usize::try_from(self.cursor(2)?.int16()?).unwrap_or(0);
        String::from_utf8(self.take(len)?).map_err(|_| invalid("a string is not UTF-8"))
    }

    pub(super) fn skip_string(&mut self) -> io::Result<()> {
        let len = usize::try_from(self.cursor(2)?.int16()?).unwrap_or(0);
        self.skip(len)
    }

    /// Receives `len` bytes and forgets them.
    pub(super) fn skip(&mut self, len: usize) -> io::Result<()> {
        let mut left = len;
        loop {
            let taken = left.min(self.end - self.start);
            self.start += taken;
            self.position += taken;
            left -= taken;
            if left == 0 {
                return Ok(());
            }
            if self.refill()? == 0 {
                return Err(truncated());
            }
        }
    }

    /// Puts an answer behind those that wait; they leave before the next read.
    pub(super) fn answer(&mut self, frame: &[u8]) {
        self.answers.extend_from_slice(frame);
    }

    /// Writes `head` and `body` at once, after the answers that wait.
    pub(super) fn send(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        self.flush()?;
        let mut head = head;
        for piece in body.chunks(PIECE_LEN) {
            write_both(&mut self.stream, head, piece)?;
            head = &[];
        }
        self.stream.write_all(head)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.answers.is_empty() {
            self.stream.write_all(&self.answers)?;
            self.answers.clear();
        }
        Ok(())
    }

    fn refill(&mut self) -> io::Result<usize> {
        self.flush()?;
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let free = self.buffer.get_mut(self.end..).unwrap_or_default();
        if free.is_empty() {
            return Err(invalid("a field is longer than the buffer"));
        }
        let received = self.stream.read(free)?;
        self.end += received;
        Ok(received)
    }
}

fn write_both(stream: &mut TcpStream, head: &[u8], body: &[u8]) -> io::Result<()> {
    let written = stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)])?;
    if written == 0 {
        return Err(io::ErrorKind::WriteZero.into());
    }
    match head.get(written..) {
        Some(left) => stream.write_all(left).and_then(|()| stream.write_all(body)),
        None => stream.write_all(body.get(written - head.len()..).unwrap_or_default()),
    }
}
