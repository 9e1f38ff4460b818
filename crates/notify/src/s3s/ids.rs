//! Ids of requests, the same in answers and in events.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use hyper::header::{HeaderName, HeaderValue};
use hyper::service::Service;
use hyper::{Request, Response};
use s3s::crypto::{Checksum, Sha256};

use super::caller::PeerAddr;
use super::stamps::Stamps;

/// The id of a request, and that of the host that answers it. [`RequestIds`] puts it into the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId {
    request: Arc<str>,
    host: Arc<str>,
}

impl RequestId {
    /// The answer's `x-amz-request-id`: 16 hexadecimal digits in upper case.
    #[must_use]
    pub fn request(&self) -> &str {
        &self.request
    }

    /// The answer's `x-amz-id-2`: 64 hexadecimal digits.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// A service of hyper around another, which gives each request an id: in its extensions, and in the headers
/// `x-amz-request-id` and `x-amz-id-2` of its answer, whatever that is. Clones give ids of the same sequence.
#[derive(Debug, Clone)]
pub struct RequestIds<S> {
    inner: S,
    host: Arc<str>,
    stamps: Arc<Stamps>,
    peer: Option<PeerAddr>,
}

impl<S> RequestIds<S> {
    /// Around a service of this node; its id is the digest of the node's name.
    #[must_use]
    pub fn new(inner: S, node: &str) -> Self {
        Self { inner, host: digest(node.as_bytes()).into(), stamps: Arc::default(), peer: None }
    }

    /// The same for a connection from this address, which every request gets as [`PeerAddr`].
    #[must_use]
    pub fn with_peer(mut self, peer: SocketAddr) -> Self {
        self.peer = Some(PeerAddr(peer));
        self
    }
}

impl<S, B, R> Service<Request<B>> for RequestIds<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn call(&self, mut request: Request<B>) -> Self::Future {
        let id = format!("{:016X}", self.stamps.next().unix_nanos());
        let id = RequestId { request: id.into(), host: Arc::clone(&self.host) };
        request.extensions_mut().insert(id.clone());
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        let answer = self.inner.call(request);
        Box::pin(async move {
            let mut answer = answer.await?;
            for (name, value) in [(REQUEST_ID, &id.request), (HOST_ID, &id.host)] {
                if let Ok(value) = HeaderValue::from_str(value) {
                    answer.headers_mut().insert(name, value);
                }
            }
            Ok(answer)
        })
    }
}

/// SHA-256 in hexadecimal digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::checksum(bytes) {
        // Writing into a text never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");
const HOST_ID: HeaderName = HeaderName::from_static("x-amz-id-2");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_standard() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(b"abc"), abc);
    }
}
