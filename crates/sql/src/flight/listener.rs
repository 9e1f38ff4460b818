//! Listening, serving and stopping.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::FutureExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Server;

use super::connection::accept;
use super::service::Service;
use crate::engine::Engine;

/// Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers use struct update syntax")]
pub struct FlightSettings {
    /// Where to listen; port 0 lets the system choose. Default 127.0.0.1:8815.
    pub listen: SocketAddr,
    /// Nobody has to say who they are. So an address that others can reach is refused, unless this is true.
    pub open_to_others: bool,
}

impl Default for FlightSettings {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 8815)), open_to_others: false }
    }
}

/// A Flight SQL server that is running. To drop it without [`shutdown`](Self::shutdown) ends it at once.
#[derive(Debug)]
pub struct FlightServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    cut: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl FlightServer {
    /// Listens and serves on the present tokio runtime until [`shutdown`](Self::shutdown).
    ///
    /// # Errors
    /// The address is taken, or can be reached by others without `open_to_others`.
    pub async fn start(engine: Engine, settings: FlightSettings) -> io::Result<Self> {
        let listen = settings.listen;
        if !listen.ip().to_canonical().is_loopback() && !settings.open_to_others {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "others can reach {listen}, and nobody is asked who they are: listen on 127.0.0.1, or set \
                     `open_to_others` to let everybody read everything"
                ),
            ));
        }
        let explain = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot listen for Flight SQL on {listen}: {error}"))
        };
        let listener = TcpListener::bind(listen).await.map_err(explain)?;
        let address = listener.local_addr().map_err(explain)?;
        let service = Service::new(engine.settings()).map_err(io::Error::other)?;
        let message_len_max = MESSAGE_LEN_MAX.max(engine.settings().statement_len_max.saturating_mul(2));
        let service = FlightServiceServer::new(service)
            .max_decoding_message_size(message_len_max)
            .max_encoding_message_size(ANSWER_LEN_MAX);
        let (stop, stopped) = oneshot::channel();
        let (cut, was_cut) = oneshot::channel();
        let incoming = accept(listener, engine, was_cut.shared());
        let serving =
            server().add_service(service).serve_with_incoming_shutdown(incoming, stopped.map(|_| ()));
        let task = tokio::spawn(serving.map(|_| ()));
        Ok(Self { address, stop, cut, task })
    }

    /// The address that it listens on.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Stops: takes no new statements, ends the running ones after a second.
    pub async fn shutdown(self) {
        let Self { stop, cut, mut task, .. } = self;
        let _ = stop.send(());
        if tokio::time::timeout(GRACE, &mut task).await.is_err() {
            let _ = cut.send(());
            if tokio::time::timeout(GRACE, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

fn server() -> Server {
    Server::builder()
        .max_concurrent_streams(STREAMS_MAX)
        .http2_max_header_list_size(HEADERS_LEN_MAX)
        .http2_keepalive_interval(Some(PING_INTERVAL))
        .http2_keepalive_timeout(Some(PING_TIMEOUT))
}

/// Of what a client sends: a statement, or parameters.
const MESSAGE_LEN_MAX: usize = 4 << 20;
/// Of what it is sent. Only a single row that is so long makes a message of more than some 2 MiB.
const ANSWER_LEN_MAX: usize = 256 << 20;
/// Requests of one connection at a time.
const STREAMS_MAX: u32 = 64;
const HEADERS_LEN_MAX: u32 = 16 << 10;
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_secs(1);
