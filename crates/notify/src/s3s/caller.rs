//! Who makes a request, and how it is told in events.

use std::net::SocketAddr;

use hyper::header::USER_AGENT;
use s3s::S3Request;
use serde::{Deserialize, Serialize};

use super::ids::RequestId;
use super::stamps::Stamps;
use crate::event::EventBuilder;

/// The address of the client. A server puts it into the extensions of each request, or has
/// [`RequestIds`](super::RequestIds) do it; events then name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "it is a name for an address")]
pub struct PeerAddr(pub SocketAddr);

/// Who makes a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Caller {
    pub(super) request_id: String,
    pub(super) host_id: String,
    pub(super) access_key: String,
    pub(super) host: String,
    pub(super) agent: String,
}

impl Caller {
    pub(super) fn of<T>(request: &S3Request<T>, stamps: &Stamps) -> Self {
        let extensions = &request.extensions;
        let (request_id, host_id) = match extensions.get::<RequestId>() {
            Some(id) => (id.request().to_owned(), id.host().to_owned()),
            None => (format!("{:016X}", stamps.next().unix_nanos()), String::new()),
        };
        let agent = request.headers.get(USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()));
        Self {
            request_id,
            host_id,
            access_key: request
                .credentials
                .as_ref()
                .map(|known| known.access_key.clone())
                .unwrap_or_default(),
            host: extensions.get::<PeerAddr>().map(|peer| peer.0.ip().to_string()).unwrap_or_default(),
            agent: agent.map(|agent| agent.chars().take(AGENT_CHARS_MAX).collect()).unwrap_or_default(),
        }
    }

    pub(super) fn tell(&self, builder: EventBuilder) -> EventBuilder {
        builder
            .requester(&self.access_key, None)
            .source(&*self.host, &*self.agent)
            .request_id(&*self.request_id)
            .host_id(&*self.host_id)
    }
}

/// An intent has to hold it, so it cannot be as long as a header may be.
const AGENT_CHARS_MAX: usize = 1_000;
