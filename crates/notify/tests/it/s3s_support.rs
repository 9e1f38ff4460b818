//! What tests of the S3 server share: a hub with a target in memory, the server over a storage, signed requests.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::http::Extensions;
use hyper::service::{Service as _, service_fn};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use kolumn_notify::config::{Config, Environment, QueueConfig, StoredConfig};
use kolumn_notify::event::{Style, Timestamp};
use kolumn_notify::hub::{Hub, HubOptions};
use kolumn_notify::intent::Unresolved;
use kolumn_notify::rules::{BucketRules, Rule};
use kolumn_notify::s3s::{Notifying, NotifyingOptions, RequestIds};
use kolumn_notify::target::memory::{MemoryTarget, OtherSide};
use s3s::auth::{Credentials, SimpleAuth};
use s3s::crypto::{Checksum as _, Sha256};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpError, S3, S3Request};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const ARN: &str = "arn:minio:sqs::primary:kafka";
pub(crate) const ACCESS_KEY: &str = "alice";
const SECRET_KEY: &str = "alice's secret";
pub(crate) const PEER: &str = "192.168.1.10:50000";

/// A server of S3 over a storage, in a folder of its own.
pub(crate) struct Server<S: S3> {
    pub(crate) notifying: Notifying<S>,
    pub(crate) side: Arc<OtherSide>,
    pub(crate) unresolved: Vec<Unresolved>,
    service: S3Service,
    ids: u64,
}

/// What a request was answered.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl<S: S3> Server<S> {
    /// Starts it, with what earlier ones have left in the folder.
    pub(crate) async fn start(folder: &TempDir, storage: S) -> Self {
        let config = Config::resolve(&Environment::default(), &StoredConfig::default());
        let opened = Hub::open(HubOptions::new(folder.path().join("hub")), &config).await.unwrap();
        let hub = opened.hub;
        let (target, side) = MemoryTarget::new(ARN.parse().unwrap());
        hub.add_target(Arc::new(target), &QueueConfig::default(), Style::Minio).await.unwrap();
        let mut options = NotifyingOptions::default();
        options.tags_dir = Some(folder.path().join("tags"));
        let notifying = Notifying::new(storage, hub, options);
        let mut builder = S3ServiceBuilder::new(notifying.clone());
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        builder.set_route(notifying.listen_route());
        Self { notifying, side, unresolved: opened.unresolved, service: builder.build(), ids: 0 }
    }

    pub(crate) fn hub(&self) -> &Hub {
        self.notifying.hub()
    }

    /// Everything that happens is told of.
    pub(crate) async fn tell_all(&self) {
        self.hub().set_global_rules(rules_for_all()).await.unwrap();
    }

    /// Ends it in order.
    pub(crate) async fn stop(self) {
        self.hub().close(Duration::from_secs(5)).await;
    }

    /// Answers a request, whose path and query are encoded as they have to be.
    pub(crate) async fn request(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let response = self.send(signed(method, target, headers, Body::from(body.into()))).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// Answers a request whose answer may not end.
    pub(crate) async fn send(&self, request: Request<Body>) -> Response<Body> {
        let service = self.service.clone();
        let answer = move |request| {
            let service = service.clone();
            async move { Ok::<_, HttpError>(service.call(request).await.unwrap()) }
        };
        let service = RequestIds::new(service_fn(answer), "node-1").with_peer(PEER.parse().unwrap());
        service.call(request).await.unwrap()
    }

    pub(crate) async fn put(&self, target: &str, body: &str) -> Answer {
        let answer = self.request(Method::PUT, target, &[], body.to_owned()).await;
        assert_eq!(answer.status, StatusCode::OK, "{target}: {}", answer.text());
        answer
    }

    pub(crate) async fn delete(&self, target: &str) {
        let answer = self.request(Method::DELETE, target, &[], "").await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{target}: {}", answer.text());
    }

    /// The messages that have arrived, when there are so many; and that there are no more.
    pub(crate) async fn messages(&mut self, count: usize) -> Vec<Value> {
        // What comes in order behind them shows that there was nothing else.
        self.ids += 1;
        let last = format!("marker/{}", self.ids);
        self.request(Method::PUT, "/marker", &[], "").await;
        self.hub().set_rules("marker", rules_for_all()).await.unwrap();
        self.put(&format!("/{last}"), "").await;
        let is_last = |message: &Value| message["Key"] == *last;
        let waiting = async {
            loop {
                let messages = received(&self.side);
                if messages.iter().any(is_last) {
                    return messages;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let messages =
            tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("no marker arrives");
        let is_of_test = |message: &Value| !message["Key"].as_str().unwrap().starts_with("marker");
        let messages: Vec<Value> = messages.into_iter().filter(is_of_test).collect();
        assert_eq!(messages.len(), count, "{:?}", names(&messages));
        messages
    }
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    pub(crate) fn check_refused(&self, status: u16, code: &str) {
        let text = self.text();
        assert_eq!(self.status.as_u16(), status, "{text}");
        assert!(text.contains(&format!("<Code>{code}</Code>")), "{text}");
    }
}

/// What happened, and to which keys.
pub(crate) fn names(messages: &[Value]) -> Vec<(&str, &str)> {
    messages
        .iter()
        .map(|message| (message["EventName"].as_str().unwrap(), message["Key"].as_str().unwrap()))
        .collect()
}

fn rules_for_all() -> BucketRules {
    BucketRules::new(vec![Rule::new(ARN.parse().unwrap(), ["s3:*".parse().unwrap()]).unwrap()])
}

fn received(side: &OtherSide) -> Vec<Value> {
    side.received().iter().map(|message| serde_json::from_slice(&message.value).unwrap()).collect()
}

/// A request as the storage gets it.
pub(crate) fn requested<T>(input: T) -> S3Request<T> {
    S3Request {
        input,
        method: Method::POST,
        uri: "/".parse().unwrap(),
        headers: HeaderMap::new(),
        extensions: Extensions::new(),
        credentials: Some(Credentials { access_key: ACCESS_KEY.into(), secret_key: SECRET_KEY.into() }),
        region: None,
        service: None,
        trailing_headers: None,
    }
}

/// A request with a signature of version 4, without one of its body.
pub(crate) fn signed(method: Method, target: &str, headers: &[(&str, &str)], body: Body) -> Request<Body> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut pairs: Vec<String> =
        query.split('&').filter(|pair| !pair.is_empty()).map(canonical_pair).collect();
    pairs.sort_unstable();
    let time = now().replace(['-', ':'], "");
    let time = format!("{}Z", time.split_once('.').unwrap().0);
    let (day, _) = time.split_once('T').unwrap();
    let canonical = format!(
        "{method}\n{path}\n{}\nhost:localhost\nx-amz-content-sha256:{UNSIGNED}\nx-amz-date:{time}\n\n{SIGNED}\n{UNSIGNED}",
        pairs.join("&"),
    );
    let scope = format!("{day}/us-east-1/s3/aws4_request");
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::checksum(canonical.as_bytes())));
    let mut key = hmac(format!("AWS4{SECRET_KEY}").as_bytes(), day.as_bytes());
    for part in ["us-east-1", "s3", "aws4_request"] {
        key = hmac(&key, part.as_bytes());
    }
    let signature = hex(&hmac(&key, text.as_bytes()));
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, SignedHeaders={SIGNED}, Signature={signature}"
    );
    let mut request = Request::builder()
        .method(method)
        .uri(target)
        .header("host", "localhost")
        .header("x-amz-content-sha256", UNSIGNED)
        .header("x-amz-date", time)
        .header("authorization", authorization)
        .header("user-agent", "a client of the test");
    if let Some(len) = hyper::body::Body::size_hint(&body).exact() {
        request = request.header("content-length", len);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}

fn canonical_pair(pair: &str) -> String {
    if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") }
}

#[expect(clippy::disallowed_methods, reason = "a signature is of now")]
pub(crate) fn now() -> String {
    Timestamp::from(SystemTime::now()).to_string()
}

fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut block = [0_u8; 64];
    if key.len() > block.len() {
        block[..32].copy_from_slice(&Sha256::checksum(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner: Vec<u8> = block.iter().map(|byte| byte ^ 0x36).chain(text.iter().copied()).collect();
    let outer: Vec<u8> = block.iter().map(|byte| byte ^ 0x5c).chain(Sha256::checksum(&inner)).collect();
    Sha256::checksum(&outer)
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
const SIGNED: &str = "host;x-amz-content-sha256;x-amz-date";
