//! Closing a connection so that the peer gets what was written to it.
//!
//! A socket that is closed while bytes in it were not read resets the connection, which can take answers away that the
//! peer has not read yet. So only the side that writes is closed first, and for a while what arrives is thrown away.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::context::{Phase, reached};

/// Closes a connection to which everything was written. Holds no request memory.
pub(super) async fn close(stream: TcpStream, mut phase: watch::Receiver<Phase>) {
    if SockRef::from(&stream).shutdown(Shutdown::Write).is_err() {
        // The peer is gone.
        return;
    }
    tokio::select! {
        () = discard(&stream) => {}
        () = tokio::time::sleep(DISCARD_TIME_MAX) => {}
        () = reached(&mut phase, Phase::Ending) => {}
    }
}

/// Reads up to the end, or to what a peer that meant well can have had under way.
async fn discard(stream: &TcpStream) {
    let mut sink = vec![0; SINK_LEN];
    let mut left = DISCARD_LEN_MAX;
    while left > 0 && stream.readable().await.is_ok() {
        match stream.try_read(&mut sink) {
            Ok(0) => return,
            Ok(len) => left = left.saturating_sub(len),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

const DISCARD_TIME_MAX: Duration = Duration::from_secs(1);
const DISCARD_LEN_MAX: usize = 1 << 20;
const SINK_LEN: usize = 16 << 10;
