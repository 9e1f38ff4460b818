//! Events posted to an HTTP endpoint, one a request, as `MinIO` does it.

use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{BoxFuture, BuildError, Limits, SendError, Target, tls};
use crate::config::{Arn, ClientCertificate, Secret, TargetSettings, TlsConfig};
use crate::event::Style;
use crate::queue::Delivery;

/// Where and how events are posted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WebhookOptions {
    /// The URL, `http://` or `https://`; without a user in it.
    pub endpoint: Secret,
    /// The `Authorization` header: two words as they are, one word as `Bearer`'s token. Empty if there is none.
    pub auth_token: Secret,
    /// How to know the server, and be known to it; without effect on `http://`.
    pub tls: TlsConfig,
    /// How many requests are under way at once at most. They are of different keys, so that the events of a key stay in
    /// order.
    pub requests: NonZeroUsize,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long a request may take, from its begin to the end of the answer.
    pub request_timeout: Duration,
    /// How long a connection is kept that is not used.
    pub idle_timeout: Duration,
}

impl WebhookOptions {
    /// To post to this URL, with nothing else set.
    #[must_use]
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: Secret::new(endpoint),
            auth_token: Secret::default(),
            tls: TlsConfig { verify: true, client: None, ca: None },
            requests: const { NonZeroUsize::new(8).unwrap() },
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
        }
    }

    /// What is configured as `notify_webhook`.
    #[must_use]
    pub fn from_settings(settings: &TargetSettings) -> Self {
        let value = |key| settings.value(key).unwrap_or_default();
        let file = |key| settings.value(key).filter(|path| !path.is_empty()).map(Into::into);
        let mut options = Self::new(value("endpoint"));
        options.auth_token = Secret::new(value("auth_token"));
        options.tls.client = match (file("client_cert"), file("client_key")) {
            (Some(cert), Some(key)) => Some(ClientCertificate { cert, key }),
            _ => None,
        };
        options
    }
}

/// Posts each event to an HTTP endpoint.
///
/// An event is delivered when it is answered by a status from 200 to 299. It will never be taken if the answer says that the
/// request itself is no good: 400, 413 or 422. Every other answer, and none, is a matter of time: an endpoint that is gone or
/// a token that is refused are the operator's to repair, and events wait for that. Redirections are not followed.
pub struct WebhookTarget {
    arn: Arn,
    endpoint: Uri,
    /// Scheme, host and port: what may be shown of an endpoint, whose path or query can be a secret.
    origin: String,
    token: Secret,
    headers: HeaderMap,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    requests: NonZeroUsize,
    connect_timeout: Duration,
    request_timeout: Duration,
}

impl WebhookTarget {
    /// A target of this name, for events that are written in this style. Nothing is connected.
    ///
    /// # Errors
    ///
    /// The endpoint is no such URL, the token cannot be a header, or a file of the certificates is no good.
    pub fn new(arn: Arn, options: &WebhookOptions, style: Style) -> Result<Self, BuildError> {
        let endpoint = endpoint(options.endpoint.expose())?;
        let scheme = endpoint.scheme_str().unwrap_or_default();
        let authority = endpoint.authority().map(ToString::to_string).unwrap_or_default();
        let origin = format!("{scheme}://{authority}");
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(style.content_type()));
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("kolumn-notify/", env!("CARGO_PKG_VERSION"))),
        );
        if let Some(authorization) = authorization(&options.auth_token)? {
            headers.insert(AUTHORIZATION, authorization);
        }
        // The client's files are read in any case, so that a mistake shows before the endpoint is changed to `https`.
        let tls = tls::client_config(&options.tls, scheme == "https")?;
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(options.connect_timeout));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(options.idle_timeout)
            .pool_max_idle_per_host(options.requests.get())
            .build(connector);
        Ok(Self {
            arn,
            endpoint,
            origin,
            token: options.auth_token.clone(),
            headers,
            client,
            requests: options.requests,
            connect_timeout: options.connect_timeout,
            request_timeout: options.request_timeout,
        })
    }

    async fn post(&self, value: Bytes) -> Result<(), SendError> {
        let mut request = Request::new(Full::new(value));
        *request.method_mut() = hyper::Method::POST;
        *request.uri_mut() = self.endpoint.clone();
        *request.headers_mut() = self.headers.clone();
        let origin = &self.origin;
        let exchange = async {
            let response = self.client.request(request).await.map_err(|error| {
                SendError::temporary(format!("`{origin}` did not answer")).caused_by(error)
            })?;
            self.judge(response).await
        };
        let late =
            |_| SendError::temporary(format!("`{origin}` did not answer within {:?}", self.request_timeout));
        timeout(self.request_timeout, exchange).await.map_err(late)?
    }

    /// What the answer means. Its body is read, within a bound, so that the connection can be used again.
    async fn judge(&self, response: Response<Incoming>) -> Result<(), SendError> {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_LEN_MAX).collect().await;
        let status = head.status;
        if status.is_success() {
            return Ok(());
        }
        let mut what = format!("`{}` answered {status}", self.origin);
        if status.is_redirection() {
            what += "; redirections are not followed";
        }
        if let Ok(body) = body
            && let Some(text) = self.excerpt(&body.to_bytes())
        {
            what = format!("{what}: {text}");
        }
        if matches!(
            status,
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY
        ) {
            return Err(SendError::permanent(what));
        }
        let error = SendError::temporary(what);
        Err(match retry_after(&head.headers) {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        })
    }

    /// The begin of an answer, fit for a line of a log. Nothing of one that repeats what may be a secret.
    fn excerpt(&self, body: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(body);
        let parts =
            [self.token.expose().trim(), self.endpoint.path(), self.endpoint.query().unwrap_or_default()];
        if parts.iter().any(|part| part.len() > 1 && text.contains(part)) {
            return None;
        }
        let printable = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
        let excerpt: String = printable.take(EXCERPT_CHARS_MAX).collect();
        (!excerpt.is_empty()).then_some(excerpt)
    }
}

impl Target for WebhookTarget {
    fn arn(&self) -> &Arn {
        &self.arn
    }

    /// A batch may take as long as its requests may one after the other, which is how they go if all have the same key.
    fn limits(&self) -> Limits {
        let events = self.requests.get().saturating_mul(ROUNDS);
        let rounds = u32::try_from(events).unwrap_or(u32::MAX);
        Limits::DEFAULT.with_events(events).with_patience(self.request_timeout.saturating_mul(rounds))
    }

    fn send<'a>(&'a self, batch: &'a [Delivery]) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move {
            let mut rest = batch;
            while !rest.is_empty() {
                let (window, after) =
                    rest.split_at_checked(window(rest, self.requests)).unwrap_or((rest, &[]));
                let posts = window.iter().map(|delivery| self.post(delivery.message.value.clone()));
                for (outcome, at) in join_all(posts).await.into_iter().zip(batch.len() - rest.len()..) {
                    outcome.map_err(|error| error.after(at))?;
                }
                rest = after;
            }
            Ok(())
        })
    }

    /// Connects to the endpoint's host, and says nothing: a request would be an event.
    fn probe(&self) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(async move {
            let host = self.endpoint.host().unwrap_or_default().trim_matches(['[', ']']);
            let is_https = self.endpoint.scheme_str() == Some("https");
            let port = self.endpoint.port_u16().unwrap_or(if is_https { 443 } else { 80 });
            let origin = &self.origin;
            let late = |_| {
                SendError::temporary(format!("no connection to `{origin}` within {:?}", self.connect_timeout))
            };
            let connection =
                timeout(self.connect_timeout, TcpStream::connect((host, port))).await.map_err(late)?;
            connection.map(drop).map_err(|error| {
                SendError::temporary(format!("no connection to `{origin}`")).caused_by(error)
            })
        })
    }
}

impl fmt::Debug for WebhookTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("WebhookTarget");
        shown.field("arn", &self.arn).field("endpoint", &self.origin).finish_non_exhaustive()
    }
}

/// How many deliveries from the front can be under way at once: they have different keys.
///
/// If one of them fails, those behind it may have arrived and will be sent again. None of them has its key, so nothing has
/// arrived before an older event of its own key.
fn window(rest: &[Delivery], most: NonZeroUsize) -> usize {
    let front = rest.get(..most.get()).unwrap_or(rest);
    let is_new = |(at, delivery): &(usize, &Delivery)| {
        !front.iter().take(*at).any(|before| before.message.key == delivery.message.key)
    };
    front.iter().enumerate().take_while(is_new).count()
}

fn endpoint(text: &str) -> Result<Uri, BuildError> {
    let uri = text.parse::<Uri>();
    let uri = uri.map_err(|error| BuildError::new("the endpoint is not a URL").caused_by(error))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(BuildError::new("the endpoint begins neither with `http://` nor with `https://`"));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(BuildError::new("the endpoint has a user in it; `auth_token` is for that: `Basic …`"));
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err(BuildError::new("the endpoint has no host"));
    }
    Ok(uri)
}

/// Two words as they are, one word as `Bearer`'s token.
fn authorization(token: &Secret) -> Result<Option<HeaderValue>, BuildError> {
    let text = match token.expose().split_whitespace().count() {
        0 => return Ok(None),
        1 => format!("Bearer {}", token.expose().trim()),
        _ => token.expose().trim().to_owned(),
    };
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| BuildError::new("the token has a character that no header has"))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// The seconds of a `Retry-After` header; a date is not read.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// How often the requests of a batch wait for one another, if their keys are all different.
const ROUNDS: usize = 16;
/// What is read of an answer. A longer one ends its connection.
const ANSWER_LEN_MAX: usize = 64 << 10;
const EXCERPT_CHARS_MAX: usize = 200;
