//! The listen API: events as they happen, in the answer of a request that does not end.
//!
//! ```text
//! GET /bucket?events=NAME&events=NAME&prefix=P&suffix=S&ping=N       GET /?events=NAME… for all buckets
//! ```
//!
//! The answer is a line `{"Records":[…]}` for each event, with the key as it is. With `ping` there is a line
//! `{"Records":null}` every so many seconds, without it a blank every half second: so a client notices that the server
//! is gone, and the server that the client is. A client that is too slow loses events.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{Stream, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::Extensions;
use hyper::{HeaderMap, Method, Uri};
use s3s::route::S3Route;
use s3s::{Body, S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::look::check_bucket;
use super::notification::refusal;
use crate::event::{EventSelector, EventSet};
use crate::hub::{Hub, Listen, Listener};
use crate::rules::KeyFilter;

/// The listen API as a route of `S3Service`, which has verified the signature. Anonymous requests are refused.
pub struct ListenRoute {
    hub: Hub,
    storage: Arc<dyn S3>,
}

impl ListenRoute {
    /// Lets clients listen to a hub. The storage is asked whether a bucket exists.
    #[must_use]
    pub fn new(hub: Hub, storage: Arc<dyn S3>) -> Self {
        Self { hub, storage }
    }
}

impl fmt::Debug for ListenRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenRoute").finish_non_exhaustive()
    }
}

#[async_trait]
impl S3Route for ListenRoute {
    fn is_match(&self, method: &Method, uri: &Uri, _: &HeaderMap, _: &mut Extensions) -> bool {
        let is_bucket_or_root = !uri.path().trim_matches('/').contains('/');
        method == Method::GET && is_bucket_or_root && pairs(uri).any(|(name, _)| name == "events")
    }

    async fn call(&self, request: S3Request<Body>) -> S3Result<S3Response<Body>> {
        let Asked { listen, every, ping } = Asked::read(&request.uri)?;
        if let Some(bucket) = &listen.bucket {
            check_bucket(&*self.storage, bucket).await?;
        }
        let listener = self.hub.listen(listen).map_err(|error| {
            S3Error::with_message(S3ErrorCode::SlowDown, format!("nobody else can listen now: {error}"))
        })?;
        let mut pings = interval(every);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        let lines = lines(listener, pings, ping);
        let mut response = S3Response::new(Body::http_body_unsync(StreamBody::new(lines)));
        for (name, value) in [
            (CONTENT_TYPE, "text/event-stream"),
            (CACHE_CONTROL, "no-cache"),
            // Otherwise nginx keeps lines back until it has a block of them.
            (HeaderName::from_static("x-accel-buffering"), "no"),
        ] {
            response.headers.insert(name, HeaderValue::from_static(value));
        }
        Ok(response)
    }
}

type Line = Result<Frame<Bytes>, Infallible>;

/// What is sent, until the hub is closed.
fn lines(listener: Listener, pings: Interval, ping: &'static [u8]) -> impl Stream<Item = Line> + Send {
    stream::unfold((listener, pings), move |(mut listener, mut pings)| async move {
        let line = tokio::select! {
            event = listener.next() => {
                let mut line = Vec::new();
                event?.write_listen_line(&mut line);
                Bytes::from(line)
            }
            _ = pings.tick() => Bytes::from_static(ping),
        };
        Some((Ok(Frame::data(line)), (listener, pings)))
    })
}

/// What a request asks for.
struct Asked {
    listen: Listen,
    every: Duration,
    ping: &'static [u8],
}

impl Asked {
    fn read(uri: &Uri) -> S3Result<Self> {
        let refuse = |why: String| Err(S3Error::with_message(S3ErrorCode::InvalidArgument, why));
        let (mut events, mut prefix, mut suffix) = (EventSet::default(), None, None);
        let (mut every, mut ping) = (BLANK_EVERY, BLANK);
        for (name, value) in pairs(uri) {
            match &*name {
                "events" => match value.parse::<EventSelector>() {
                    Ok(selector) => events = events.union(selector.events()),
                    Err(error) => {
                        return refuse(format!(
                            "A specified event is not supported for notifications. {error}"
                        ));
                    }
                },
                "prefix" | "suffix" => {
                    let slot = if name == "prefix" { &mut prefix } else { &mut suffix };
                    if slot.replace(value.into_owned()).is_some() {
                        return refuse(format!("Cannot specify more than one {name} rule in a filter."));
                    }
                }
                "ping" => match value.parse() {
                    Ok(seconds @ 1..=PING_SECONDS_MAX) => {
                        (every, ping) = (Duration::from_secs(seconds), PING);
                    }
                    _ => return refuse(format!("ping is a number of seconds from 1 to {PING_SECONDS_MAX}")),
                },
                _ => {}
            }
        }
        let filter = KeyFilter::new(prefix.unwrap_or_default(), suffix.unwrap_or_default());
        let filter = filter.map_err(|error| refusal(&error))?;
        let bucket = uri.path().trim_matches('/');
        let mut listen = Listen::new(events);
        listen.bucket = (!bucket.is_empty()).then(|| bucket.to_owned());
        filter.prefix().clone_into(&mut listen.prefix);
        filter.suffix().clone_into(&mut listen.suffix);
        Ok(Self { listen, every, ping })
    }
}

fn pairs(uri: &Uri) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
}

const BLANK: &[u8] = b" ";
const BLANK_EVERY: Duration = Duration::from_millis(500);
const PING: &[u8] = b"{\"Records\":null}\n";
/// A day: whoever asks for less often does not want to be pinged.
const PING_SECONDS_MAX: u64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(query: &str, message: &str) {
        let uri: Uri = format!("/photos?{query}").parse().unwrap();
        let error = Asked::read(&uri).err().unwrap();
        let (code, text) = (error.code().as_str(), error.message().unwrap_or_default());
        assert_eq!((code, error.status_code().map(|status| status.as_u16())), ("InvalidArgument", Some(400)));
        assert!(text.starts_with(message), "{text}");
    }

    #[test]
    fn what_cannot_be_listened_to_is_refused() {
        check_refused(
            "events=put",
            "A specified event is not supported for notifications. unknown event `put`",
        );
        check_refused("events=s3%3A*&prefix=a&prefix=b", "Cannot specify more than one prefix rule");
        check_refused("events=s3%3A*&suffix=a&suffix=", "Cannot specify more than one suffix rule");
        check_refused(
            "events=s3%3A*&prefix=a/../b",
            "A filter rule's value cannot be part of an object's key.",
        );
        for ping in ["0", "-1", "x", "", "1.5", "99999999999999999999"] {
            check_refused(&format!("events=s3%3A*&ping={ping}"), "ping is a number of seconds");
        }
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        let uri =
            "/?events=s3:ObjectCreated:*&events=s3%3ABucketRemoved%3A*&prefix=&ping=10".parse().unwrap();
        let asked = Asked::read(&uri).unwrap();
        assert_eq!((asked.every, asked.ping), (Duration::from_secs(10), PING));
        assert_eq!(asked.listen.bucket, None);
        let asked = Asked::read(&"/photos/?events=s3:*&prefix=a+b%2F".parse().unwrap());
        let asked = asked.unwrap();
        assert_eq!((asked.every, asked.ping), (BLANK_EVERY, BLANK));
        assert_eq!(asked.listen.bucket.as_deref(), Some("photos"));
    }
}
