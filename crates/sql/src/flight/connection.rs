//! Connections: accepted under a limit, told apart from those who never speak, and cut when the server ends.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::Shared;
use futures::{FutureExt, Stream, stream};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Sleep;
use tonic::transport::server::Connected;

use super::bind::Statements;
use crate::engine::Engine;
use crate::policy::Principal;
use crate::session::Session;

/// What a connection is to its requests: a session, and what was prepared in it.
#[derive(Debug)]
pub(super) struct Connection {
    engine: Engine,
    session: Mutex<Arc<Session>>,
    pub(super) statements: Mutex<Statements>,
}

impl Connection {
    fn new(engine: Engine) -> Self {
        let session = Mutex::new(Arc::new(engine.session(Principal::anonymous())));
        Self { engine, session, statements: Mutex::default() }
    }

    pub(super) fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session.lock())
    }

    /// Forgets what was set and prepared.
    pub(super) fn reset(&self) {
        *self.session.lock() = Arc::new(self.engine.session(Principal::anonymous()));
        *self.statements.lock() = Statements::default();
    }
}

/// Ends when the sender sends, or is dropped.
pub(super) type Cut = Shared<oneshot::Receiver<()>>;

/// The connections of a listener. More than [`CONNECTIONS_MAX`] at a time are closed at once.
pub(super) fn accept(
    listener: TcpListener,
    engine: Engine,
    cut: Cut,
) -> impl Stream<Item = io::Result<Socket>> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    stream::unfold((listener, engine, cut, places), |state| async move {
        let (listener, engine, cut, places) = &state;
        let socket = loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await; // out of file descriptors, most likely
                continue;
            };
            let Ok(place) = Arc::clone(places).try_acquire_owned() else { continue };
            let _ = stream.set_nodelay(true);
            break Socket {
                stream,
                connection: Arc::new(Connection::new(engine.clone())),
                cut: Some(cut.clone()),
                greeting: Some(Greeting {
                    len: GREETING_LEN,
                    deadline: Box::pin(tokio::time::sleep(GREETING_TIMEOUT)),
                }),
                _place: place,
            };
        };
        Some((Ok(socket), state))
    })
}

/// A connection's socket.
pub(super) struct Socket {
    stream: TcpStream,
    connection: Arc<Connection>,
    /// `None` once it has ended.
    cut: Option<Cut>,
    /// `None` once the client has begun to speak HTTP/2; from then on pings tell whether it is there.
    greeting: Option<Greeting>,
    _place: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Greeting {
    /// Bytes that are still to come.
    len: usize,
    deadline: Pin<Box<Sleep>>,
}

impl Socket {
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.cut.as_mut().is_none_or(|cut| cut.poll_unpin(cx).is_ready()) {
            self.cut = None;
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the server ends"));
        }
        Ok(())
    }
}

impl Connected for Socket {
    type ConnectInfo = Arc<Connection>;

    fn connect_info(&self) -> Arc<Connection> {
        Arc::clone(&self.connection)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.check(cx)?;
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        if let Some(greeting) = &mut this.greeting {
            greeting.len = greeting.len.saturating_sub(buf.filled().len() - before);
            if greeting.len == 0 {
                this.greeting = None;
            } else if greeting.deadline.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client says nothing")));
            }
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("stream", &self.stream).finish_non_exhaustive()
    }
}

const CONNECTIONS_MAX: usize = 256;
/// HTTP/2's preface, and the head of the frame that follows it.
const GREETING_LEN: usize = 24 + 9;
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
