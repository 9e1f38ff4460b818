//! The listen API.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::{Method, Request, StatusCode};
use s3s::Body;
use s3s_fs::FileSystem;
use serde_json::Value;
use tempfile::TempDir;

use crate::s3s_support::{Server, signed};

async fn files(folder: &TempDir) -> Server<FileSystem> {
    let root = folder.path().join("objects");
    std::fs::create_dir_all(&root).unwrap();
    Server::start(folder, FileSystem::new(root).unwrap()).await
}

async fn listen(server: &Server<FileSystem>, target: &str) -> Body {
    let response = server.send(signed(Method::GET, target, &[], Body::empty())).await;
    assert_eq!(response.status(), StatusCode::OK);
    for (name, value) in
        [("content-type", "text/event-stream"), ("cache-control", "no-cache"), ("x-accel-buffering", "no")]
    {
        assert_eq!(response.headers()[name], value);
    }
    response.into_body()
}

/// The next line that is no ping.
async fn record(body: &mut Body) -> Value {
    let reading = async {
        loop {
            let line = body.frame().await.expect("the answer ends").unwrap().into_data().unwrap();
            if &line[..] == b" " {
                continue;
            }
            assert!(line.ends_with(b"\n"));
            return serde_json::from_slice::<Value>(&line).unwrap()["Records"][0].clone();
        }
    };
    tokio::time::timeout(Duration::from_mins(1), reading).await.expect("nothing is heard")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_hears_what_it_has_asked_for() {
    let folder = TempDir::new().unwrap();
    let server = files(&folder).await;
    server.put("/photos", "").await;
    let mut of_bucket = listen(
        &server,
        "/photos?events=s3%3AObjectCreated%3A%2A&events=s3%3AObjectRemoved%3ADelete&prefix=a%20b%2F&suffix=.jpg",
    )
    .await;
    let mut of_all =
        listen(&server, "/?events=s3%3ABucketCreated%3A%2A&events=s3%3AObjectCreated%3APut").await;
    server.put("/photos/a%20b/1.txt", "x").await;
    server.put("/photos/a%20b/2.jpg", "x").await;
    server.delete("/photos/a%20b/2.jpg").await;
    server.put("/other", "").await;
    let first = record(&mut of_bucket).await;
    assert_eq!(
        (&first["eventName"], &first["s3"]["object"]["key"]),
        (&"s3:ObjectCreated:Put".into(), &"a b/2.jpg".into())
    );
    assert_eq!(record(&mut of_bucket).await["eventName"], "s3:ObjectRemoved:Delete");
    for key in ["a b/1.txt", "a b/2.jpg"] {
        assert_eq!(record(&mut of_all).await["s3"]["object"]["key"], key);
    }
    let made = record(&mut of_all).await;
    assert_eq!(
        (&made["eventName"], &made["s3"]["bucket"]["name"]),
        (&"s3:BucketCreated:*".into(), &"other".into())
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_is_pinged_as_it_wishes() {
    let folder = TempDir::new().unwrap();
    let server = files(&folder).await;
    for (target, ping) in [("/?events=s3:*&ping=1", "{\"Records\":null}\n"), ("/?events=s3:*", " ")] {
        let target = target.replace(":*", "%3A%2A");
        let mut body = listen(&server, &target).await;
        let frame = tokio::time::timeout(Duration::from_mins(1), body.frame()).await.expect("no ping");
        assert_eq!(frame.unwrap().unwrap().into_data().unwrap(), ping);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_listen_is_told_why() {
    let folder = TempDir::new().unwrap();
    let server = files(&folder).await;
    server.put("/photos", "").await;
    let get = async |target: &str| server.request(Method::GET, target, &[], "").await;
    get("/nothing?events=s3%3A%2A").await.check_refused(404, "NoSuchBucket");
    get("/photos?events=put").await.check_refused(400, "InvalidArgument");
    get("/photos?events=s3%3A%2A&ping=0").await.check_refused(400, "InvalidArgument");
    let anonymous = Request::get("/?events=s3:*").header("host", "localhost").body(Body::empty()).unwrap();
    assert_eq!(server.send(anonymous).await.status(), StatusCode::FORBIDDEN);
    // A listing is no listening.
    assert!(get("/photos?list-type=2").await.text().contains("ListBucketResult"));
    server.stop().await;
}
