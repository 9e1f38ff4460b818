//! Listening and accepting. Nothing that a peer does, and no lack of file descriptors, ends the loop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::connection;
use crate::context::{Context, Phase, Session, reached};
use crate::observer::{CloseReason, Event};
use crate::stats::Counted;

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Listener {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A broker that is restarted must not wait for the connections of its former life.
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let socket = TcpListener::from_std(socket.into())?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }
}

/// Accepts connections until the broker drains. `places` are the connections that may be open; each takes one with it.
pub(crate) async fn accept(context: Arc<Context>, listener: Listener, places: Arc<Semaphore>) {
    let mut phase = context.phase.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.socket.accept() => accepted,
            () = reached(&mut phase, Phase::Draining) => return,
        };
        match accepted {
            Ok((stream, peer)) => welcome(&context, stream, peer, &places),
            Err(error) => {
                context.event(&Event::AcceptFailed { error: &error });
                if !concerns_one_peer(&error) {
                    // Out of descriptors or memory: what is open goes on, and closing makes room.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

fn welcome(context: &Arc<Context>, stream: TcpStream, peer: SocketAddr, places: &Arc<Semaphore>) {
    let counters = &context.counters;
    let Ok(place) = Arc::clone(places).try_acquire_owned() else {
        counters.connections_refused.fetch_add(1, Ordering::Relaxed);
        let connections_max = context.validated.settings.limits.connections_max;
        context.event(&Event::ConnectionRefused { peer, connections_max });
        return;
    };
    counters.connections_accepted.fetch_add(1, Ordering::Relaxed);
    let context = Arc::clone(context);
    tokio::spawn(async move {
        let _place = place;
        let _counted = Counted::new(&context.counters.connections);
        context.event(&Event::ConnectionOpened { peer });
        let reason = match prepare(&stream) {
            Ok(local) => {
                let session = Arc::new(Session::new(Arc::clone(&context), local, peer));
                connection::serve(stream, session).await
            }
            Err(error) => CloseReason::Io(error),
        };
        context.event(&Event::ConnectionClosed { peer, reason: &reason });
    });
}

/// A peer may be gone already: then this fails, for this connection alone.
fn prepare(stream: &TcpStream) -> io::Result<SocketAddr> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)?;
    stream.local_addr()
}

fn concerns_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

const BACKLOG: i32 = 4096;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const KEEPALIVE: Duration = Duration::from_mins(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_concerns_one_peer_is_accepted_over_at_once() {
        assert!(concerns_one_peer(&io::ErrorKind::ConnectionAborted.into()));
        assert!(!concerns_one_peer(&io::Error::from_raw_os_error(24)), "too many open files");
    }
}
