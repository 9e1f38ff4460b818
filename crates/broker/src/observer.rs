//! What the broker tells about itself: typed events, and an adapter that turns them into `tracing` records.

use std::fmt;
use std::net::SocketAddr;

use kolumn_topic_store::{Event as StoreEvent, PressureLevel};

use crate::settings::LimitSettings;

/// Receives the broker's events.
///
/// # Contract
/// `event` is called from the tasks that serve connections and from the store's threads: it must be quick and must
/// not block or panic. Events of one connection come in order; across connections no order is promised.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Something happened.
    fn event(&self, event: &Event<'_>);
}

/// Something that happened in the broker.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// A listener accepts connections.
    Listening {
        /// Its address, with the port that was chosen.
        address: SocketAddr,
    },
    /// The system allows fewer open files than the settings ask for connections; some are kept for the log.
    ConnectionsLimited {
        /// What the settings say.
        asked: usize,
        /// What holds.
        allowed: usize,
    },
    /// A connection was accepted.
    ConnectionOpened {
        /// The peer.
        peer: SocketAddr,
    },
    /// A connection was refused because there are as many as the settings allow.
    ConnectionRefused {
        /// The peer.
        peer: SocketAddr,
        /// The limit.
        connections_max: usize,
    },
    /// A connection ended.
    ConnectionClosed {
        /// The peer.
        peer: SocketAddr,
        /// Why.
        reason: &'e CloseReason,
    },
    /// A listener could not accept; it goes on after a pause.
    AcceptFailed {
        /// What the system said.
        error: &'e std::io::Error,
    },
    /// A client asked who coordinates its transaction, which does not exist here: it will wait and ask again.
    /// Told once for each connection.
    CoordinatorMissing {
        /// What it asked for: `transaction`.
        of: &'static str,
    },
    /// A consumer group has another state.
    GroupStateChanged {
        /// Its name.
        group: &'e str,
        /// The state, as Kafka calls it: `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Stable` or `Dead`.
        state: &'static str,
        /// The generation that its members know.
        generation: i32,
        /// How many members it has.
        members: usize,
    },
    /// What is stored of a consumer group cannot be read: its members have to join again.
    GroupUnreadable {
        /// Its name.
        group: &'e str,
        /// What is wrong.
        error: &'e (dyn std::error::Error + 'static),
    },
    /// A topic was made because a client asked for its metadata.
    TopicAutoCreated {
        /// Its name.
        name: &'e str,
    },
    /// Maintenance of the store failed; it is tried again.
    MaintenanceFailed {
        /// What the store said.
        error: &'e (dyn std::error::Error + 'static),
    },
    /// The store reported something.
    Store(&'e StoreEvent<'e>),
    /// Shutdown began.
    Draining {
        /// Connections that are still open.
        connections: usize,
    },
    /// Shutdown ended.
    Stopped,
}

/// Why a connection ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer closed it.
    Peer,
    /// Nothing was heard from the peer for too long.
    Idle,
    /// The peer left the protocol.
    Protocol(crate::connection::ConnectionError),
    /// A request could not be decoded.
    Malformed(kolumn_kafka_wire::DecodeError),
    /// A version that is only advertised for old clients was used, or a request without a response failed.
    Refused(&'static str),
    /// The bytes of an answer could not be read or encoded.
    Answer(String),
    /// The socket failed.
    Io(std::io::Error),
    /// The peer held request memory that others were waiting for.
    Evicted,
    /// Its answer did not fit the memory of all answers that wait for their peers.
    AnswersTooLong,
    /// The broker shuts down.
    Shutdown,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer => f.write_str("closed by the peer"),
            Self::Idle => f.write_str("idle for too long"),
            Self::Protocol(error) => write!(f, "protocol violated: {error}"),
            Self::Malformed(error) => write!(f, "malformed request: {error}"),
            Self::Refused(what) => write!(f, "refused: {what}"),
            Self::Answer(what) => write!(f, "answer failed: {what}"),
            Self::Io(error) => write!(f, "socket failed: {error}"),
            Self::Evicted => f.write_str("held request memory that others waited for"),
            Self::AnswersTooLong => f.write_str(
                "its answer did not fit `limits.answers_len_max` beside those that wait for their peers",
            ),
            Self::Shutdown => f.write_str("the broker shuts down"),
        }
    }
}

/// Writes every event to `tracing`.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct TracingObserver;

impl Observer for TracingObserver {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Listening { address } => tracing::info!(%address, "listening"),
            // Nobody asked for the default.
            Event::ConnectionsLimited { asked, allowed }
                if *asked == LimitSettings::default().connections_max =>
            {
                tracing::info!(allowed, "connections, as many as the limit of open files allows");
            }
            Event::ConnectionsLimited { asked, allowed } => {
                tracing::warn!(
                    asked,
                    allowed,
                    "fewer connections than asked for: the limit of open files is low"
                );
            }
            Event::CoordinatorMissing { of } => {
                tracing::warn!(of, "a client waits for a coordinator: transactions do not exist yet");
            }
            Event::GroupStateChanged { group, state, generation, members } => {
                tracing::info!(group, state, generation, members, "the state of a group has changed");
            }
            Event::GroupUnreadable { group, error } => {
                tracing::error!(group, error, "a stored group cannot be read: its members join again");
            }
            Event::ConnectionOpened { peer } => tracing::debug!(%peer, "connection opened"),
            Event::ConnectionRefused { peer, connections_max } => {
                tracing::warn!(%peer, connections_max, "connection refused: too many");
            }
            Event::ConnectionClosed { peer, reason: reason @ (CloseReason::Peer | CloseReason::Idle) } => {
                tracing::debug!(%peer, %reason, "connection closed");
            }
            Event::ConnectionClosed { peer, reason } => tracing::info!(%peer, %reason, "connection closed"),
            Event::AcceptFailed { error } => tracing::warn!(%error, "accept failed"),
            Event::TopicAutoCreated { name } => tracing::info!(name, "topic created on first use"),
            Event::MaintenanceFailed { error } => tracing::error!(error, "maintenance failed"),
            Event::Store(event) => trace_store(event),
            Event::Draining { connections } => tracing::info!(connections, "draining"),
            Event::Stopped => tracing::info!("stopped"),
        }
    }
}

fn trace_store(event: &StoreEvent<'_>) {
    match event {
        StoreEvent::Failed { cause, .. } => {
            tracing::error!(cause, "the log failed: it is read-only from now on");
        }
        StoreEvent::GrowthFailed { cause, .. } => {
            tracing::error!(cause, "the disk refuses the log another file");
        }
        StoreEvent::Pressure(pressure) if pressure.level >= PressureLevel::Half => {
            let (used, limit) = (pressure.used, pressure.limit);
            tracing::warn!(level = ?pressure.level, used, limit, "the log runs out of space");
        }
        StoreEvent::Opened { epoch, topics, replayed, torn_len, .. } => {
            tracing::info!(epoch, topics, replayed, torn_len, "log opened");
        }
        _ => tracing::debug!(?event, "log"),
    }
}
