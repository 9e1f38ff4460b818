//! Writes what the engine has, resolving stored ranges only as the socket takes them.
//!
//! Ranges that are in memory are looked up anew for each write, so that a peer that does not read pins nothing. A
//! piece that comes from disk is read by a thread that may block, kept while the peer takes it, and given up when the
//! peer takes nothing for a while. As soon as the peer takes some of it, the piece behind it is read.

use std::future::pending;
use std::io::{self, IoSlice};
use std::time::Duration;

use bytes::{Buf, Bytes};
use kolumn_topic_store::ReadError;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::bridge::StoredRange;
use crate::connection::{Chunk, Connection};
use crate::observer::CloseReason;

#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Bytes from disk: what the engine hands out first, as a range.
    piece: Option<Bytes>,
    /// The piece behind it, or the first one, on its way.
    reading: Option<JoinHandle<Result<Bytes, ReadError>>>,
    /// Since when the socket takes nothing.
    blocked_since: Option<Instant>,
    /// There is more to write, but others should have their turn.
    again: bool,
}

impl Outgoing {
    pub(super) fn waits_for_socket(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// Writes until everything is written, the socket is full, the disk is needed, or it is others' turn.
    pub(super) fn flush(
        &mut self,
        stream: &TcpStream,
        engine: &mut Connection<StoredRange>,
    ) -> Result<(), CloseReason> {
        let mut left = TURN_LEN;
        let mut pieces = Vec::new();
        self.again = false;
        while (self.piece.is_some() || self.reading.is_none()) && engine.has_output() {
            if left == 0 {
                self.again = true;
                return Ok(());
            }
            self.collect(engine, &mut pieces);
            if pieces.is_empty() {
                break;
            }
            let slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
            match stream.try_write_vectored(&slices) {
                Ok(0) => return Err(CloseReason::Io(io::ErrorKind::WriteZero.into())),
                Ok(len) => {
                    left = left.saturating_sub(len);
                    self.sent(engine, len);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked_since.get_or_insert_with(Instant::now);
                    return Ok(());
                }
                Err(error) => return Err(CloseReason::Io(error)),
            }
            pieces.clear();
        }
        self.blocked_since = None;
        Ok(())
    }

    /// Resolves when a flush can go on for another reason than the socket. Cancel safe.
    pub(super) async fn progress(&mut self) -> Result<(), CloseReason> {
        if let (None, Some(reading)) = (&self.piece, &mut self.reading) {
            let read = reading.await;
            self.reading = None;
            let failed = |error: &dyn std::error::Error| CloseReason::Answer(error.to_string());
            self.piece = Some(read.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?);
        } else if self.again {
            tokio::task::yield_now().await;
        } else if let (Some(_), Some(since)) = (&self.piece, self.blocked_since) {
            tokio::time::sleep_until(since + PIECE_PATIENCE).await;
            // The thread that reads what is behind it ends by itself.
            (self.piece, self.reading) = (None, None);
        } else {
            pending::<()>().await;
        }
        Ok(())
    }

    /// What can be written without waiting; or starts to read it from disk.
    fn collect(&mut self, engine: &mut Connection<StoredRange>, pieces: &mut Vec<Bytes>) {
        if let Some(piece) = &self.piece {
            pieces.push(piece.clone());
            return;
        }
        let mut left = WRITE_LEN;
        while left > 0 && pieces.len() < PIECES_MAX {
            match engine.transmit(left) {
                None => break,
                Some(Chunk::Bytes(bytes)) => {
                    left -= bytes.len();
                    pieces.push(bytes);
                }
                Some(Chunk::Range { source, start, len }) => {
                    if let Some(bytes) = source.in_memory(start, len) {
                        left -= bytes.len();
                        pieces.push(bytes);
                        continue;
                    }
                    if pieces.is_empty() {
                        self.reading = Some(read(source, start, len));
                    }
                    break;
                }
            }
        }
        engine.rewind();
    }

    /// Begins to read what is behind the piece, if that is on disk, too.
    fn read_ahead(&mut self, engine: &mut Connection<StoredRange>) {
        let Some(piece) = self.piece.as_ref().filter(|_| self.reading.is_none()) else { return };
        let mut left = piece.len();
        while left > 0
            && let Some(chunk) = engine.transmit(left)
        {
            left -= match chunk {
                Chunk::Bytes(bytes) => bytes.len(),
                Chunk::Range { len, .. } => len,
            };
        }
        if let Some(Chunk::Range { source, start, len }) = engine.transmit(WRITE_LEN)
            && source.in_memory(start, len).is_none()
        {
            self.reading = Some(read(source, start, len));
        }
        engine.rewind();
    }

    fn sent(&mut self, engine: &mut Connection<StoredRange>, len: usize) {
        engine.sent(len, Instant::now().into_std());
        self.blocked_since = None;
        if let Some(piece) = &mut self.piece {
            piece.advance(len.min(piece.len()));
            if piece.is_empty() {
                self.piece = None;
            }
            self.read_ahead(engine);
        }
    }
}

fn read(source: &StoredRange, start: usize, len: usize) -> JoinHandle<Result<Bytes, ReadError>> {
    let source = source.clone();
    tokio::task::spawn_blocking(move || source.read(start, len))
}

/// Bytes and pieces of one write, and so of what is read from disk at once.
const WRITE_LEN: usize = 256 << 10;
const PIECES_MAX: usize = 256;
/// Bytes written before others have their turn.
const TURN_LEN: usize = 1 << 20;
/// How long a piece from disk is kept for a peer that takes nothing.
const PIECE_PATIENCE: Duration = Duration::from_secs(2);
