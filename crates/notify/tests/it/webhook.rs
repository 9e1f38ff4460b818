//! The webhook target against an HTTP server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use kolumn_notify::config::{Config, Environment, Secret, StoredConfig, TargetState};
use kolumn_notify::event::{EventName, Style, Timestamp};
use kolumn_notify::queue::{Delivery, Message};
use kolumn_notify::target::conformance::{Arrived, Failure, Fixture, check};
use kolumn_notify::target::webhook::{WebhookOptions, WebhookTarget};
use kolumn_notify::target::{BoxFuture, SendError, SendErrorKind, Target, build, chain};

use crate::webhook_support::{MARK, Posted, Server};

const ARN: &str = "arn:minio:sqs::primary:webhook";

fn target(options: &WebhookOptions, style: Style) -> WebhookTarget {
    WebhookTarget::new(ARN.parse().unwrap(), options, style).unwrap()
}

fn deliveries<'a>(keys: impl IntoIterator<Item = &'a str>) -> Vec<Delivery> {
    let delivery = |(number, key): (u64, &'a str)| {
        let value = format!(r#"{{"Key":"{key}","number":{number}}}"#);
        let name = EventName::ObjectCreatedPut;
        let message = Message::new(name, key.to_owned(), value, Timestamp::default());
        Delivery::new(number, message)
    };
    (0..).zip(keys).map(delivery).collect()
}

fn bodies(posted: &[Posted]) -> Vec<String> {
    posted.iter().map(|posted| String::from_utf8(posted.body.to_vec()).unwrap()).collect()
}

struct Webhook {
    server: Server,
}

impl Fixture for Webhook {
    fn target(&self) -> Result<Arc<dyn Target>, Failure> {
        let mut options = WebhookOptions::new(self.server.url("/events?key=in-the-query"));
        options.auth_token = Secret::new("the-token");
        Ok(Arc::new(WebhookTarget::new(ARN.parse()?, &options, Style::Minio)?))
    }

    fn arrived(&self) -> BoxFuture<'_, Result<Vec<Arrived>, Failure>> {
        Box::pin(async move {
            let arrived = |posted: Posted| {
                let value: serde_json::Value = serde_json::from_slice(&posted.body)?;
                let key = value["Key"].as_str().ok_or("no key")?.to_owned();
                Ok(Arrived { key: key.into(), value: posted.body })
            };
            self.server.posted().into_iter().map(arrived).collect()
        })
    }

    fn set_down(&self, is_down: bool) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            self.server.set_down(is_down).await;
            Ok(())
        })
    }

    fn unacceptable(&self) -> Option<(Bytes, Bytes)> {
        let value = format!(r#"{{"Key":"unacceptable/x","fill":"{MARK}"}}"#);
        Some((Bytes::from_static(b"unacceptable/x"), value.into()))
    }

    fn cut_after(&self, messages: usize) -> bool {
        self.server.cut_after(messages);
        true
    }

    fn secrets(&self) -> Vec<String> {
        vec!["the-token".into(), "in-the-query".into()]
    }
}

#[tokio::test]
async fn the_webhook_keeps_the_contract() {
    let fixture = Webhook { server: Server::start().await };
    check(&fixture).await.unwrap();
}

#[tokio::test]
async fn an_event_is_posted_as_minio_posts_it() {
    let server = Server::start().await;
    let mut options = WebhookOptions::new(server.url("/events?a=b"));
    let batch = deliveries(["photos/a"]);
    target(&options, Style::Minio).send(&batch).await.unwrap();
    options.auth_token = Secret::new("token");
    target(&options, Style::Minio).send(&batch).await.unwrap();
    options.auth_token = Secret::new("Basic dXNlcjpwYXNz");
    target(&options, Style::CloudEvents).send(&batch).await.unwrap();

    let posted = server.posted();
    assert_eq!(bodies(&posted), vec![String::from_utf8(batch[0].message.value.to_vec()).unwrap(); 3]);
    assert!(posted.iter().all(|posted| posted.method == "POST" && posted.path == "/events?a=b"));
    let header =
        |at: usize, name: &str| posted[at].headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(header(0, "content-type").as_deref(), Some("application/json"));
    assert_eq!(header(2, "content-type").as_deref(), Some("application/cloudevents+json; charset=UTF-8"));
    assert_eq!(header(0, "authorization"), None);
    assert_eq!(header(1, "authorization").as_deref(), Some("Bearer token"));
    assert_eq!(header(2, "authorization").as_deref(), Some("Basic dXNlcjpwYXNz"));
    assert!(header(0, "user-agent").unwrap().starts_with("kolumn-notify/"));
    assert_eq!(header(0, "content-length").unwrap(), batch[0].message.value.len().to_string());
}

async fn answered(
    server: &Server,
    status: u16,
    text: &'static str,
    retry_after: Option<&'static str>,
) -> SendError {
    let mut options = WebhookOptions::new(server.url("/hooks/in-the-path?key=in-the-query"));
    options.auth_token = Secret::new("the-token");
    server.answer(Some((StatusCode::from_u16(status).unwrap(), text, retry_after)));
    target(&options, Style::Minio).send(&deliveries(["photos/a"])).await.unwrap_err()
}

#[tokio::test]
async fn an_answer_says_whether_the_event_is_at_fault() {
    let server = Server::start().await;
    for status in [400, 413, 422] {
        assert_eq!(answered(&server, status, "", None).await.kind(), SendErrorKind::Permanent, "{status}");
    }
    for status in
        [301, 302, 307, 401, 403, 404, 405, 407, 408, 409, 410, 415, 425, 429, 500, 502, 503, 504, 599]
    {
        assert_eq!(answered(&server, status, "", None).await.kind(), SendErrorKind::Temporary, "{status}");
    }
    for status in [200, 201, 202, 204, 299] {
        server.answer(Some((StatusCode::from_u16(status).unwrap(), "", None)));
        let options = WebhookOptions::new(server.url("/"));
        target(&options, Style::Minio).send(&deliveries(["photos/a"])).await.unwrap();
    }
}

#[tokio::test]
async fn an_error_has_what_was_answered_but_no_secret() {
    let server = Server::start().await;
    let origin = server.url("");
    let error = answered(&server, 503, "try\nlater", Some("7")).await;
    assert_eq!(error.to_string(), format!("`{origin}` answered 503 Service Unavailable: try later"));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    let error =
        answered(&server, 401, "Bearer the-token is no good", Some("Wed, 21 Oct 2015 07:28:00 GMT")).await;
    assert_eq!(error.to_string(), format!("`{origin}` answered 401 Unauthorized"));
    assert_eq!(error.retry_after(), None);
    for echo in ["Cannot POST /hooks/in-the-path", "no such page: ?key=in-the-query"] {
        let error = answered(&server, 404, echo, None).await;
        assert_eq!(error.to_string(), format!("`{origin}` answered 404 Not Found"));
    }
    let error = answered(&server, 302, "", None).await;
    assert_eq!(error.to_string(), format!("`{origin}` answered 302 Found; redirections are not followed"));
}

#[tokio::test]
async fn events_of_different_keys_are_under_way_together_and_those_of_one_are_not() {
    let server = Server::start().await;
    let target = target(&WebhookOptions::new(server.url("/")), Style::Minio);
    target.send(&deliveries(["photos/a"; 20])).await.unwrap();
    assert_eq!(server.most_under_way(), 1);
    assert_eq!(server.connections(), 1);
    let keys: Vec<String> = (0..40).map(|at| format!("photos/{at}")).collect();
    target.send(&deliveries(keys.iter().map(String::as_str))).await.unwrap();
    assert!((2..=8).contains(&server.most_under_way()), "{}", server.most_under_way());
    assert!(server.connections() <= 8, "{}", server.connections());
    assert_eq!(server.posted().len(), 60);
}

#[tokio::test]
async fn an_endpoint_where_nobody_listens_is_a_matter_of_time() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let target = target(&WebhookOptions::new(format!("http://127.0.0.1:{port}/secret")), Style::Minio);
    for error in
        [target.send(&deliveries(["photos/a"])).await.unwrap_err(), target.probe().await.unwrap_err()]
    {
        assert_eq!((error.kind(), error.delivered()), (SendErrorKind::Temporary, 0));
        let text = chain(&error);
        assert!(text.contains("refused") && !text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = WebhookOptions::new(format!("http://{}/", listener.local_addr().unwrap()));
    options.request_timeout = Duration::from_millis(50);
    let error = target(&options, Style::Minio).send(&deliveries(["photos/a"])).await.unwrap_err();
    assert!(error.to_string().ends_with("did not answer within 50ms"), "{error}");
}

#[track_caller]
fn check_refused(change: impl FnOnce(&mut WebhookOptions), expect: &str) {
    let mut options = WebhookOptions::new("https://example.net/events");
    change(&mut options);
    let error = WebhookTarget::new(ARN.parse().unwrap(), &options, Style::Minio).unwrap_err();
    let text = chain(&error);
    assert!(text.starts_with(expect), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_when_the_target_is_made() {
    let endpoint =
        |text: &'static str| move |options: &mut WebhookOptions| options.endpoint = Secret::new(text);
    check_refused(endpoint(""), "the endpoint is not a URL: ");
    check_refused(endpoint("http://a b/hunter2"), "the endpoint is not a URL: ");
    check_refused(endpoint("ftp://example.net/hunter2"), "the endpoint begins neither with `http://`");
    check_refused(endpoint("example.net/hunter2"), "the endpoint ");
    check_refused(endpoint("/hunter2"), "the endpoint begins neither with");
    check_refused(endpoint("http://user:hunter2@example.net/"), "the endpoint has a user in it");
    check_refused(|options| options.auth_token = Secret::new("hunter2\u{1}"), "the token has a character");
    let missing = || Some(PathBuf::from("/there/is/none.pem"));
    check_refused(
        |options| options.tls.ca = missing(),
        "`/there/is/none.pem` is no PEM file that could be read: ",
    );
}

#[test]
fn a_kind_that_is_not_built_in_is_refused_by_name() {
    let environment = Environment::new([
        ("MINIO_NOTIFY_NSQ_ENABLE", "on"),
        ("MINIO_NOTIFY_NSQ_NSQD_ADDRESS", "localhost:4150"),
        ("MINIO_NOTIFY_NSQ_TOPIC", "events"),
    ]);
    let config = Config::resolve(&environment, &StoredConfig::default());
    let TargetState::Enabled(enabled) = config.targets()[0].state() else { panic!("{config:?}") };
    let error = build("", enabled).unwrap_err();
    assert_eq!(error.to_string(), "this program was built without targets of the kind `nsq`");
}

#[tokio::test]
async fn a_webhook_is_made_from_its_configuration() {
    let server = Server::start().await;
    let url = server.url("/events");
    let environment = Environment::new([
        ("MINIO_NOTIFY_WEBHOOK_ENABLE_PRIMARY", "on"),
        ("MINIO_NOTIFY_WEBHOOK_ENDPOINT_PRIMARY", &*url),
        ("MINIO_NOTIFY_WEBHOOK_AUTH_TOKEN_PRIMARY", "the-token"),
    ]);
    let config = Config::resolve(&environment, &StoredConfig::default());
    let TargetState::Enabled(enabled) = config.targets()[0].state() else { panic!("{config:?}") };
    let target = build("eu-central-1", enabled).unwrap();
    assert_eq!(target.arn().to_string(), "arn:minio:sqs:eu-central-1:primary:webhook");
    assert!(!format!("{target:?}").contains("the-token"));
    target.send(&deliveries(["photos/a"])).await.unwrap();
    let posted = server.posted();
    assert_eq!(posted[0].path, "/events");
    assert_eq!(posted[0].headers.get("authorization").unwrap(), "Bearer the-token");
}
