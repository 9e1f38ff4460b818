//! What the handlers of all connections share, and what one connection knows.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kolumn_topic_store::{Store, View};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::answers::Answers;
use crate::budget::Budget;
use crate::connection::FrameMemory;
use crate::coordinator::Coordinator;
use crate::fetch_session;
use crate::observer::{Event, Observer};
use crate::settings::{HostPort, Validated};
use crate::stats::Counters;

/// One broker: its store, its view and what is counted.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) store: Store,
    pub(crate) view: View,
    pub(crate) groups: Arc<Coordinator>,
    pub(crate) validated: Validated,
    /// Where the log lies, for people: the directory, or the view of a store that was handed in.
    pub(crate) log_dir: String,
    pub(crate) budget: Arc<Budget>,
    pub(crate) answers: Arc<Answers>,
    pub(crate) frame_memory: Arc<FrameMemory>,
    pub(crate) fetch_sessions: fetch_session::Cache,
    pub(crate) counters: Counters,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) phase: watch::Receiver<Phase>,
}

/// How far the broker's life has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    /// Nothing new is accepted; what was accepted is answered.
    Draining,
    /// Connections end at once.
    Ending,
}

impl Context {
    pub(crate) fn event(&self, event: &Event<'_>) {
        self.observer.event(event);
    }

    pub(crate) fn node_id(&self) -> i32 {
        self.validated.settings.node_id
    }
}

/// One connection, as its handlers see it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) context: Arc<Context>,
    /// The address that this client is told to connect to.
    pub(crate) endpoint: HostPort,
    peer: IpAddr,
    /// It was told that it waits for a coordinator in vain.
    missed_coordinator: AtomicBool,
}

impl Session {
    pub(crate) fn new(context: Arc<Context>, local: SocketAddr, peer: SocketAddr) -> Self {
        let endpoint = context.validated.advertised.clone().unwrap_or_else(|| HostPort {
            host: match local.ip() {
                // A listener for both families sees IPv4 clients in this form, which they could not connect to.
                IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or_else(|| ip.to_string(), |ip| ip.to_string()),
                IpAddr::V4(ip) => ip.to_string(),
            },
            port: local.port(),
        });
        Self { context, endpoint, peer: peer.ip().to_canonical(), missed_coordinator: AtomicBool::new(false) }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.context.store
    }

    /// Where the client is, as Kafka writes it in the descriptions of groups.
    pub(crate) fn client_host(&self) -> String {
        format!("/{}", self.peer)
    }

    /// Tells, once, that the client waits for a coordinator of something that does not exist here.
    pub(crate) fn miss_coordinator(&self, of: &'static str) {
        if !self.missed_coordinator.swap(true, Ordering::Relaxed) {
            self.context.event(&Event::CoordinatorMissing { of });
        }
    }
}

/// Waits for `event`; `false` if time is up or the broker drains before.
pub(crate) async fn comes_in_time(
    event: impl Future<Output = ()>,
    deadline: Instant,
    mut phase: watch::Receiver<Phase>,
) -> bool {
    tokio::select! {
        () = event => true,
        () = tokio::time::sleep_until(deadline) => false,
        () = reached(&mut phase, Phase::Draining) => false,
    }
}

/// Resolves when the broker has reached `phase`, or is gone.
pub(crate) async fn reached(receiver: &mut watch::Receiver<Phase>, phase: Phase) {
    // An error means that the broker was dropped, which ends everything.
    let _ = receiver.wait_for(|current| *current >= phase).await;
}
