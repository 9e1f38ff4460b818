//! Listening, serving and stopping.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::connection;
use crate::engine::Engine;

/// Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers use struct update syntax")]
pub struct PostgresSettings {
    /// Where to listen; port 0 lets the system choose. Default 127.0.0.1:5432.
    pub listen: SocketAddr,
    /// Nobody has to say who they are. So an address that others can reach is refused, unless this is true.
    pub open_to_others: bool,
    /// Sessions that are open at a time; more of them are refused. Default 64.
    pub connections_max: usize,
    /// The longest message of a client: a statement, or the values of its parameters. Default 4 MiB.
    pub message_len_max: usize,
    /// How long a client may take to begin its session. Default ten seconds.
    pub startup_timeout: Duration,
    /// How long a session may be silent between two statements. Default an hour.
    pub idle_timeout: Duration,
    /// How long a client may leave an answer unread. Default a minute.
    pub stall_timeout: Duration,
}

impl Default for PostgresSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 5432)),
            open_to_others: false,
            connections_max: 64,
            message_len_max: 4 << 20,
            startup_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_hours(1),
            stall_timeout: Duration::from_mins(1),
        }
    }
}

/// A PostgreSQL server that is running. Dropping it ends it at once.
#[derive(Debug)]
pub struct PostgresServer {
    address: SocketAddr,
    phase: watch::Sender<Phase>,
    accepting: JoinHandle<()>,
}

/// How far a server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    /// Takes no new statements.
    Draining,
    /// Ends the running statements.
    Ended,
}

/// What all sessions of a server share.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) engine: Engine,
    pub(crate) settings: PostgresSettings,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) phase: watch::Receiver<Phase>,
    sessions: Mutex<HashMap<i32, Cancellable>>,
    last_process: AtomicI32,
    secrets: RandomState,
}

#[derive(Debug)]
struct Cancellable {
    secret: [u8; 4],
    cancel: watch::Sender<()>,
}

/// A session's place among those that can be cancelled.
#[derive(Debug)]
pub(crate) struct Registered {
    server: Arc<Server>,
    pub(crate) process: i32,
    pub(crate) secret: [u8; 4],
    /// Changes when the running statement shall end.
    pub(crate) cancel: watch::Receiver<()>,
}

impl PostgresServer {
    /// Listens and serves on the present tokio runtime until [`shutdown`](Self::shutdown).
    ///
    /// # Errors
    /// The address is taken, or can be reached by others without `open_to_others`.
    pub async fn start(engine: Engine, settings: PostgresSettings) -> io::Result<Self> {
        let address = settings.listen;
        if !settings.open_to_others && !address.ip().is_loopback() {
            let text = format!(
                "PostgreSQL at {address} would answer everybody who reaches it, since nobody has to say who they are: \
                 listen on 127.0.0.1, or set `open_to_others`"
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| {
            io::Error::new(error.kind(), format!("PostgreSQL cannot listen on {address}: {error}"))
        })?;
        let address = listener.local_addr()?;
        let (phase, receiver) = watch::channel(Phase::Running);
        let server = Arc::new(Server {
            engine,
            places: Arc::new(Semaphore::new(settings.connections_max)),
            settings,
            phase: receiver,
            sessions: Mutex::default(),
            last_process: AtomicI32::new(0),
            secrets: RandomState::new(),
        });
        let accepting = tokio::spawn(accept(server, listener));
        Ok(Self { address, phase, accepting })
    }

    /// The address that it listens on.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Stops: takes no new statements, ends the running ones after a second.
    pub async fn shutdown(mut self) {
        self.phase.send_replace(Phase::Draining);
        if timeout(GRACE, &mut self.accepting).await.is_err() {
            self.phase.send_replace(Phase::Ended);
            // The sessions have this long to say so to their clients; then they are dropped.
            let _ = timeout(FAREWELL, &mut self.accepting).await;
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Server {
    /// Gives a session a number by which its statements can be cancelled.
    pub(crate) fn register(self: &Arc<Self>) -> Registered {
        let process = self.last_process.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let [a, b, c, d, ..] = self.secrets.hash_one(process).to_be_bytes();
        let secret = [a, b, c, d];
        let (sender, cancel) = watch::channel(());
        self.sessions.lock().insert(process, Cancellable { secret, cancel: sender });
        Registered { server: Arc::clone(self), process, secret, cancel }
    }

    /// Cancels the running statement of a session, for whoever knows its secret.
    pub(crate) fn cancel(&self, process: i32, secret: &[u8]) {
        if let Some(session) = self.sessions.lock().get(&process)
            && session.secret == secret
        {
            session.cancel.send_replace(());
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.server.sessions.lock().remove(&self.process);
    }
}

/// Accepts connections until the server drains, and then waits for those that are open. Nothing that a peer does ends it.
async fn accept(server: Arc<Server>, listener: TcpListener) {
    let mut phase = server.phase.clone();
    // Some more than there are sessions: a client of which we have enough is told so, and one may come to cancel.
    let sockets = Arc::new(Semaphore::new(server.settings.connections_max.saturating_add(SOCKETS_EXTRA)));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = reached(&mut phase, Phase::Draining) => break,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                let Ok(socket) = Arc::clone(&sockets).try_acquire_owned() else { continue };
                let server = Arc::clone(&server);
                connections.spawn(async move {
                    let _socket = socket;
                    serve(stream, server).await;
                });
            }
            // Out of file descriptors, most likely: closing makes room.
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// A connection that breaks concerns its client alone, who knows.
async fn serve(stream: TcpStream, server: Arc<Server>) {
    if stream.set_nodelay(true).is_ok() {
        let _ = connection::serve(stream, server).await;
    }
}

/// Waits until a server has come this far, or is gone.
pub(crate) async fn reached(phase: &mut watch::Receiver<Phase>, at_least: Phase) {
    let _ = phase.wait_for(|phase| *phase >= at_least).await;
}

const SOCKETS_EXTRA: usize = 16;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const GRACE: Duration = Duration::from_secs(1);
const FAREWELL: Duration = Duration::from_millis(500);
