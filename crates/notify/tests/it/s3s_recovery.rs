//! What becomes of operations in doubt: clients that go away, storages that panic, processes that end.

use std::io;

use bytes::Bytes;
use futures::stream;
use http_body_util::StreamBody;
use hyper::Method;
use hyper::body::Frame;
use kolumn_notify::event::{EventName, Timestamp};
use kolumn_notify::intent::Intent;
use kolumn_notify::s3s::{recover, recover_doubtful};
use s3s::Body;
use serde_json::Value;
use tempfile::TempDir;

use crate::s3s_storage::{After, MemoryStorage};
use crate::s3s_support::{Server, names, signed};

async fn memory(folder: &TempDir, storage: &MemoryStorage) -> Server<MemoryStorage> {
    let server = Server::start(folder, storage.clone()).await;
    server.tell_all().await;
    server
}

/// Begins a request, and goes away when it is committed.
async fn abandon(server: &Server<MemoryStorage>, storage: &MemoryStorage, method: Method, target: &str) {
    storage.set_after(After::Wait);
    tokio::select! {
        answer = server.request(method, target, &[], "x") => panic!("it was answered {}", answer.status),
        () = storage.committed() => {}
    }
    storage.set_after(After::Answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_does_not_take_the_event_with_it() {
    let folder = TempDir::new().unwrap();
    let storage = MemoryStorage::new();
    let mut server = memory(&folder, &storage).await;
    for (method, target) in [(Method::PUT, "/photos/a"), (Method::DELETE, "/photos/a")] {
        abandon(&server, &storage, method, target).await;
        storage.go_on();
    }
    let told = server.messages(2).await;
    let expect = [("s3:ObjectCreated:Put", "photos/a"), ("s3:ObjectRemoved:Delete", "photos/a")];
    assert_eq!(names(&told), expect);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_breaks_off_is_not_told_and_not_in_doubt() {
    let folder = TempDir::new().unwrap();
    let storage = MemoryStorage::new();
    let mut server = memory(&folder, &storage).await;
    let pieces =
        [Ok(Frame::data(Bytes::from_static(b"half"))), Err(io::Error::from(io::ErrorKind::ConnectionReset))];
    let body = Body::http_body_unsync(StreamBody::new(stream::iter(pieces)));
    let request = signed(Method::PUT, "/photos/a", &[("content-length", "8")], body);
    assert!(server.send(request).await.status().is_server_error());
    assert!(server.messages(0).await.is_empty());
    server.stop().await;
    let server = memory(&folder, &storage).await;
    assert!(server.unresolved.is_empty(), "{:?}", server.unresolved);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_panic_leaves_in_doubt_is_looked_at() {
    let folder = TempDir::new().unwrap();
    let storage = MemoryStorage::new();
    let mut server = memory(&folder, &storage).await;
    let notifying = server.notifying.clone();
    let looking = tokio::spawn(async move { recover_doubtful(&notifying, notifying.hub()).await });
    for key in ["a", "b"] {
        server.put(&format!("/photos/{key}"), "x").await;
    }
    storage.set_after(After::Panic);
    let answer = server.request(Method::PUT, "/photos/c", &[], "four").await;
    assert!(answer.status.is_server_error());
    storage.set_after(After::Answer);
    let removal = "<Delete><Object><Key>a</Key></Object><Object><Key>broken</Key></Object><Object><Key>b</Key></Object></Delete>";
    server.request(Method::POST, "/photos?delete", &[], removal).await.check_refused(500, "InternalError");
    wait_for_events(&server, 4).await;
    let mut told = server.messages(4).await;
    let doubtful = told.split_off(2);
    let mut names = names(&doubtful);
    names.sort_unstable();
    assert_eq!(names, [("s3:ObjectCreated:Put", "photos/c"), ("s3:ObjectRemoved:Delete", "photos/a")]);
    let put = doubtful.iter().find(|message| message["Key"] == "photos/c").unwrap();
    let record = &put["Records"][0];
    assert_eq!(
        record["responseElements"]["x-amz-request-id"],
        answer.headers["x-amz-request-id"].to_str().unwrap()
    );
    let object = &record["s3"]["object"];
    assert_eq!((&object["size"], &object["eTag"]), (&Value::from(4), &Value::from("4")));
    looking.abort();
    server.stop().await;
}

async fn wait_for_events(server: &Server<MemoryStorage>, count: usize) {
    for _ in 0..5_000 {
        if server.side.received().len() >= count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_has_left_in_doubt_is_told_if_it_has_happened() {
    let folder = TempDir::new().unwrap();
    let storage = MemoryStorage::new();
    let server = memory(&folder, &storage).await;
    server.put("/photos/there", "x").await;
    server.put("/photos/gone", "x").await;
    // Committed, and the process ends before it is told.
    abandon(&server, &storage, Method::PUT, "/photos/new").await;
    abandon(&server, &storage, Method::DELETE, "/photos/gone").await;
    // Begun, and the process ends before it is committed.
    for (name, key) in [(EventName::ObjectCreatedPut, "never"), (EventName::ObjectRemovedDelete, "there")] {
        let intent = Intent::new(name, "photos", key, Timestamp::from_unix_nanos(1));
        std::mem::forget(server.hub().begin(intent).await.unwrap().expect("it is wanted"));
    }
    server.stop().await;

    let mut server = memory(&folder, &storage).await;
    let left = std::mem::take(&mut server.unresolved);
    let begun: Vec<_> = left.iter().map(|one| (one.intent.key.clone(), one.intent.time)).collect();
    let recovery = recover(&server.notifying, server.hub(), left).await;
    let counts = (recovery.happened, recovery.did_not_happen, recovery.in_doubt.len());
    assert_eq!(counts, (2, 2, 0));
    let told = server.messages(2).await;
    let expect = [("s3:ObjectCreated:Put", "photos/new"), ("s3:ObjectRemoved:Delete", "photos/gone")];
    assert_eq!(names(&told), expect);
    for message in &told {
        let key = message["Key"].as_str().unwrap().strip_prefix("photos/").unwrap();
        let (_, time) = begun.iter().find(|(begun, _)| begun == key).unwrap();
        let record = &message["Records"][0];
        assert_eq!(record["s3"]["object"]["sequencer"], format!("{:016X}", time.unix_nanos()));
        assert_eq!(record["userIdentity"]["principalId"], "alice");
        assert_eq!(record["source"]["host"], "192.168.1.10");
    }
    server.stop().await;

    let server = memory(&folder, &storage).await;
    assert!(server.unresolved.is_empty(), "{:?}", server.unresolved);
    server.stop().await;
}
